//! Completion queues.

use std::ffi::c_ulong;
use std::sync::Arc;

use via::provider::CqHandler;
use via::{CqEntry, Error, Queue};

use crate::abi_types::{Milliseconds, VipBoolean, VipReturn};
use crate::caller::{Callback, Context, CqCallback, Out, Place};
use crate::guard::guard;
use crate::handles::Handle;
use crate::objects::{Cq, Nic, Vi};

#[unsafe(no_mangle)]
pub(crate) extern "C" fn VipCreateCQ(
    nic: Handle<Nic>,
    entry_count: c_ulong,
    cq: Out<Handle<Cq>>,
) -> VipReturn {
    guard(nic, || {
        let nic = nic.get()?;
        let place = cq.place()?;
        let ops = nic.ops.create_cq(capacity(entry_count)?)?;
        place.write(nic.adopt_cq(ops)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipDestroyCQ(cq: Handle<Cq>) -> VipReturn {
    guard(cq, || {
        let cq = cq.get()?;
        cq.ops.destroy()?;
        cq.disown();
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipResizeCQ(cq: Handle<Cq>, entry_count: c_ulong) -> VipReturn {
    guard(cq, || cq.get()?.ops.resize(capacity(entry_count)?))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn VipCQDone(
    cq: Handle<Cq>,
    vi: Out<Handle<Vi>>,
    recv_queue: Out<VipBoolean>,
) -> VipReturn {
    guard(cq, || {
        cq.with(|cq| {
            let places = (vi.place()?, recv_queue.place()?);
            loop {
                let Some(entry) = cq.ops.done()? else {
                    return Ok(VipReturn::NOT_DONE);
                };
                if deliver(cq, entry, places) {
                    return Ok(VipReturn::SUCCESS);
                }
            }
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipCQWait(
    cq: Handle<Cq>,
    timeout: Milliseconds,
    vi: Out<Handle<Vi>>,
    recv_queue: Out<VipBoolean>,
) -> VipReturn {
    guard(cq, || {
        cq.with(|cq| {
            let places = (vi.place()?, recv_queue.place()?);
            while !deliver(cq, cq.ops.wait(timeout.timeout())?, places) {}
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipCQNotify(cq: Handle<Cq>, context: Context, function: CqCallback) -> VipReturn {
    guard(cq, || {
        let cq = cq.get()?;
        let function = Callback::new(function, context).ok_or(Error::InvalidParameter)?;
        notify(&cq, function)
    })
}

fn notify(cq: &Arc<Cq>, function: CqFunction) -> Result<(), Error> {
    // The queue holds its handlers: by a strong reference it would hold itself.
    let again = Arc::downgrade(cq);
    let handler: CqHandler = Box::new(move |entry| {
        let Some(cq) = again.upgrade() else { return };
        match cq.nic.vi(entry.vi) {
            Some(vi) => function.call(cq.nic.handle, vi, entry),
            // The registration was for an entry of a VI that lives. If the queue does not either, there is nothing to wait for.
            None => drop(notify(&cq, function)),
        }
    });
    cq.ops.notify(handler)
}

/// Writes the entry out; `false` if its VI has been destroyed since.
#[inline]
fn deliver(cq: &Cq, entry: CqEntry, places: (Place<Handle<Vi>>, Place<VipBoolean>)) -> bool {
    let Some(vi) = cq.nic.vi(entry.vi) else {
        return false;
    };
    places.0.write(vi);
    places.1.write((entry.queue == Queue::Recv).into());
    true
}

/// No provider has queues for more entries than 32 bits count.
fn capacity(entry_count: c_ulong) -> Result<u32, Error> {
    u32::try_from(entry_count).map_err(|_| Error::Resource)
}

type CqFunction = Callback<unsafe extern "C" fn(Context, Handle<Nic>, Handle<Vi>, VipBoolean)>;
