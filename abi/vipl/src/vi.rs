//! VIs: making, querying, changing and destroying them, and the consumer's pointer.

use std::sync::Arc;

use sys::sync::Ordering;
use via::provider::CqId;
use via::{Error, Queue, Reliability, ViAttributes};

use crate::abi_types::{VipBoolean, VipReturn, VipViAttributes};
use crate::caller::{In, Out};
use crate::guard::{caught, guard};
use crate::handles::Handle;
use crate::objects::{Cq, Nic, Vi};

#[unsafe(no_mangle)]
extern "C" fn VipCreateVi(
    nic: Handle<Nic>,
    attributes: In<VipViAttributes>,
    send_cq: Handle<Cq>,
    recv_cq: Handle<Cq>,
    vi: Out<Handle<Vi>>,
) -> VipReturn {
    guard(nic, || {
        let nic = nic.get()?;
        let send_cq = cq_of(&nic, send_cq)?;
        let recv_cq = cq_of(&nic, recv_cq)?;
        let place = vi.place()?;
        let attributes = from_c(&nic, &attributes.read()?)?;
        let ops = nic.ops.create_vi(attributes, send_cq, recv_cq)?;
        place.write(nic.adopt_vi(ops)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipDestroyVi(vi: Handle<Vi>) -> VipReturn {
    guard(vi, || {
        let vi = vi.get()?;
        vi.ops.destroy()?;
        vi.disown();
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipQueryVi(
    vi: Handle<Vi>,
    state: Out<u32>,
    attributes: Out<VipViAttributes>,
    send_empty: Out<VipBoolean>,
    recv_empty: Out<VipBoolean>,
) -> VipReturn {
    guard(vi, || {
        let vi = vi.get()?;
        let places = (state.place()?, attributes.place()?);
        let empties = (send_empty.place()?, recv_empty.place()?);
        places.0.write(vi.ops.state()? as u32);
        places.1.write(to_c(&vi.nic, &vi.ops.attributes()?));
        empties.0.write(vi.ops.is_empty(Queue::Send)?.into());
        empties.1.write(vi.ops.is_empty(Queue::Recv)?.into());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipSetViAttributes(vi: Handle<Vi>, attributes: In<VipViAttributes>) -> VipReturn {
    guard(vi, || {
        let vi = vi.get()?;
        let attributes = from_c(&vi.nic, &attributes.read()?)?;
        vi.ops.set_attributes(attributes)
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipGetUserData(vi: Handle<Vi>) -> usize {
    let data = caught(|| vi.with(|vi| Ok(vi.user_data.load(Ordering::Relaxed))));
    data.and_then(Result::ok).unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn VipSetUserData(vi: Handle<Vi>, data: usize) {
    caught(|| {
        vi.with(|vi| {
            vi.user_data.store(data, Ordering::Relaxed);
            Ok(())
        })
    });
}

/// What a VI of the peer, or of ours, is like. A tag is named only where it is a tag of `nic`.
pub(crate) fn to_c(nic: &Nic, attributes: &ViAttributes) -> VipViAttributes {
    VipViAttributes {
        reliability_level: attributes.reliability.bits(),
        max_transfer_size: attributes.max_transfer_size.into(),
        qos: attributes.qos as usize,
        ptag: nic.ptag_handle(attributes.ptag),
        enable_rdma_write: attributes.enable_rdma_write.into(),
        enable_rdma_read: attributes.enable_rdma_read.into(),
    }
}

fn from_c(nic: &Nic, attributes: &VipViAttributes) -> Result<ViAttributes, Error> {
    Ok(ViAttributes {
        reliability: Reliability::from_bits(attributes.reliability_level)
            .ok_or(Error::InvalidReliabilityLevel)?,
        max_transfer_size: u32::try_from(attributes.max_transfer_size)
            .map_err(|_| Error::InvalidMtu)?,
        qos: attributes.qos as u64,
        ptag: nic.ptag(attributes.ptag)?,
        enable_rdma_write: attributes.enable_rdma_write.is_true(),
        enable_rdma_read: attributes.enable_rdma_read.is_true(),
    })
}

/// The completion queue to bind to; NULL is none.
fn cq_of(nic: &Arc<Nic>, cq: Handle<Cq>) -> Result<Option<CqId>, Error> {
    if cq == Handle::NULL {
        return Ok(None);
    }
    let cq = cq.get()?;
    // Ids are the NIC handle's own: another's would name another queue.
    if !Arc::ptr_eq(&cq.nic, nic) {
        return Err(Error::InvalidParameter);
    }
    Ok(Some(cq.ops.id()))
}
