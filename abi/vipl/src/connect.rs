//! Connecting and disconnecting.

use std::sync::PoisonError;

use via::Error;
use via::provider::ConnOps;

use crate::abi_types::{Milliseconds, VipReturn, VipViAttributes};
use crate::address::{AddressIn, AddressOut};
use crate::caller::Out;
use crate::guard::guard;
use crate::handles::Handle;
use crate::objects::{Conn, Nic, Vi};
use crate::vi::to_c;

#[unsafe(no_mangle)]
extern "C" fn VipConnectWait(
    nic: Handle<Nic>,
    local: AddressIn,
    timeout: Milliseconds,
    remote: AddressOut,
    remote_attributes: Out<VipViAttributes>,
    conn: Out<Handle<Conn>>,
) -> VipReturn {
    guard(nic, || {
        let nic = nic.get()?;
        let local = local.check()?;
        let remote = remote.check()?;
        let remote_attributes = remote_attributes.place()?;
        let place = conn.place()?;
        let local = local.read()?;
        let capacity = remote.capacity();
        let request = nic.ops.connect_wait(&local, timeout.timeout())?;
        remote.write(&request.remote_address(), capacity);
        remote_attributes.write(peer_to_c(&nic, &*request));
        place.write(nic.adopt_conn(request)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipConnectAccept(conn: Handle<Conn>, vi: Handle<Vi>) -> VipReturn {
    guard(conn, || {
        let conn = conn.get()?;
        let vi = vi.get()?;
        let mut ops = conn.ops.lock().unwrap_or_else(PoisonError::into_inner);
        let request = ops.as_mut().ok_or(Error::InvalidParameter)?;
        let accepted = request.accept(&*vi.ops);
        if !request.is_pending() {
            *ops = None;
            conn.disown();
        }
        accepted
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipConnectReject(conn: Handle<Conn>) -> VipReturn {
    guard(conn, || {
        let conn = conn.get()?;
        let ops = conn
            .ops
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let request = ops.ok_or(Error::InvalidParameter)?;
        conn.disown();
        request.reject()
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipConnectRequest(
    vi: Handle<Vi>,
    local: AddressIn,
    remote: AddressIn,
    timeout: Milliseconds,
    remote_attributes: Out<VipViAttributes>,
) -> VipReturn {
    guard(vi, || {
        let vi = vi.get()?;
        let local = local.check()?;
        let remote = remote.check()?;
        let place = remote_attributes.place()?;
        let peer = vi
            .ops
            .connect_request(&local.read()?, &remote.read()?, timeout.timeout())?;
        place.write(to_c(&vi.nic, &without_tag(peer)));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipDisconnect(vi: Handle<Vi>) -> VipReturn {
    guard(vi, || vi.get()?.ops.disconnect())
}

#[unsafe(no_mangle)]
extern "C" fn VipConnectPeerRequest(
    vi: Handle<Vi>,
    local: AddressIn,
    remote: AddressIn,
    timeout: Milliseconds,
) -> VipReturn {
    guard(vi, || {
        let vi = vi.get()?;
        let local = local.check()?;
        let remote = remote.check()?;
        vi.ops
            .peer_request(&local.read()?, &remote.read()?, timeout.timeout())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipConnectPeerDone(
    vi: Handle<Vi>,
    remote_attributes: Out<VipViAttributes>,
) -> VipReturn {
    guard(vi, || {
        let vi = vi.get()?;
        let place = remote_attributes.place()?;
        Ok(match vi.ops.peer_done()? {
            Some(peer) => {
                place.write(to_c(&vi.nic, &without_tag(peer)));
                VipReturn::SUCCESS
            }
            None => VipReturn::NOT_DONE,
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipConnectPeerWait(
    vi: Handle<Vi>,
    remote_attributes: Out<VipViAttributes>,
) -> VipReturn {
    guard(vi, || {
        let vi = vi.get()?;
        let place = remote_attributes.place()?;
        let peer = vi.ops.peer_wait()?;
        place.write(to_c(&vi.nic, &without_tag(peer)));
        Ok(())
    })
}

fn peer_to_c(nic: &Nic, request: &dyn ConnOps) -> VipViAttributes {
    to_c(nic, &without_tag(request.remote_attributes()))
}

/// A peer's tag means nothing here.
fn without_tag(peer: via::ViAttributes) -> via::ViAttributes {
    via::ViAttributes { ptag: None, ..peer }
}
