//! Posting descriptors, and getting them back.

use via::provider::DoneHandler;
use via::{Completion, DescriptorAt, Done, Error, MemHandle, Queue};

use crate::abi_types::{Milliseconds, VipReturn};
use crate::caller::{Callback, Context, DescriptorAddress, Out, Place, ViCallback};
use crate::guard::guard;
use crate::handles::Handle;
use crate::objects::Vi;

#[unsafe(no_mangle)]
extern "C" fn VipPostSend(vi: Handle<Vi>, descriptor: DescriptorAddress, handle: u32) -> VipReturn {
    guard(vi, || post(vi, Queue::Send, descriptor, handle))
}

#[unsafe(no_mangle)]
extern "C" fn VipPostRecv(vi: Handle<Vi>, descriptor: DescriptorAddress, handle: u32) -> VipReturn {
    guard(vi, || post(vi, Queue::Recv, descriptor, handle))
}

#[unsafe(no_mangle)]
extern "C" fn VipSendDone(vi: Handle<Vi>, descriptor: Out<DescriptorAddress>) -> VipReturn {
    guard(vi, || done(vi, Queue::Send, descriptor))
}

#[unsafe(no_mangle)]
extern "C" fn VipRecvDone(vi: Handle<Vi>, descriptor: Out<DescriptorAddress>) -> VipReturn {
    guard(vi, || done(vi, Queue::Recv, descriptor))
}

#[unsafe(no_mangle)]
extern "C" fn VipSendWait(
    vi: Handle<Vi>,
    timeout: Milliseconds,
    descriptor: Out<DescriptorAddress>,
) -> VipReturn {
    guard(vi, || wait(vi, Queue::Send, timeout, descriptor))
}

#[unsafe(no_mangle)]
extern "C" fn VipRecvWait(
    vi: Handle<Vi>,
    timeout: Milliseconds,
    descriptor: Out<DescriptorAddress>,
) -> VipReturn {
    guard(vi, || wait(vi, Queue::Recv, timeout, descriptor))
}

#[unsafe(no_mangle)]
extern "C" fn VipSendNotify(vi: Handle<Vi>, context: Context, function: ViCallback) -> VipReturn {
    guard(vi, || notify(vi, Queue::Send, context, function))
}

#[unsafe(no_mangle)]
extern "C" fn VipRecvNotify(vi: Handle<Vi>, context: Context, function: ViCallback) -> VipReturn {
    guard(vi, || notify(vi, Queue::Recv, context, function))
}

#[inline]
fn post(
    vi: Handle<Vi>,
    queue: Queue,
    descriptor: DescriptorAddress,
    handle: u32,
) -> Result<(), Error> {
    vi.with(|vi| {
        let at = DescriptorAt {
            addr: descriptor.get()?,
            handle: MemHandle(handle),
        };
        vi.ops.post_at(queue, at)
    })
}

#[inline]
fn done(
    vi: Handle<Vi>,
    queue: Queue,
    descriptor: Out<DescriptorAddress>,
) -> Result<VipReturn, Error> {
    vi.with(|vi| {
        let place = descriptor.place()?;
        Ok(deliver(vi.ops.done(queue)?, place))
    })
}

fn wait(
    vi: Handle<Vi>,
    queue: Queue,
    timeout: Milliseconds,
    descriptor: Out<DescriptorAddress>,
) -> Result<VipReturn, Error> {
    vi.with(|vi| {
        let place = descriptor.place()?;
        Ok(deliver(vi.ops.wait(queue, timeout.timeout())?, place))
    })
}

fn notify(
    vi: Handle<Vi>,
    queue: Queue,
    context: Context,
    function: ViCallback,
) -> Result<(), Error> {
    let vi = vi.get()?;
    let function = Callback::new(function, context).ok_or(Error::InvalidParameter)?;
    let (nic, handle) = (vi.nic.handle, vi.handle);
    let handler: DoneHandler = Box::new(move |completion| {
        function.call(nic, handle, descriptor_of(&completion));
    });
    vi.ops.notify(queue, handler)
}

#[inline]
fn deliver(done: Done, place: Place<DescriptorAddress>) -> VipReturn {
    match done {
        Done::Completed(completion) => {
            place.write(descriptor_of(&completion));
            if completion.status.bits() & STATUS_ERROR_MASK == 0 {
                VipReturn::SUCCESS
            } else {
                VipReturn::DESCRIPTOR_ERROR
            }
        }
        Done::Empty => {
            place.write(DescriptorAddress::NULL);
            VipReturn::DESCRIPTOR_ERROR
        }
        Done::NotDone => VipReturn::NOT_DONE,
    }
}

fn descriptor_of(completion: &Completion) -> DescriptorAddress {
    DescriptorAddress::from(completion.token)
}

/// `VIP_STATUS_ERROR_MASK`.
const STATUS_ERROR_MASK: u32 = 0x1fe;
