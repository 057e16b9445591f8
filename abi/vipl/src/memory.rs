//! Protection tags and registered memory.

use std::ffi::c_ulong;
use std::sync::Arc;

use via::{Error, MemAttributes, MemHandle, Memory};

use crate::abi_types::{PtagHandle, VipBoolean, VipMemAttributes, VipReturn};
use crate::caller::{In, Out};
use crate::guard::guard;
use crate::handles::Handle;
use crate::objects::Nic;

#[unsafe(no_mangle)]
extern "C" fn VipCreatePtag(nic: Handle<Nic>, ptag: Out<PtagHandle>) -> VipReturn {
    guard(nic, || {
        let nic = nic.get()?;
        let place = ptag.place()?;
        place.write(nic.ptag_handle(Some(nic.ops.create_ptag()?)));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipDestroyPtag(nic: Handle<Nic>, ptag: PtagHandle) -> VipReturn {
    guard(nic, || {
        let nic = nic.get()?;
        let ptag = nic.ptag(ptag)?.ok_or(Error::InvalidPtag)?;
        nic.ops.destroy_ptag(ptag)
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipRegisterMem(
    nic: Handle<Nic>,
    address: usize,
    length: c_ulong,
    attributes: In<VipMemAttributes>,
    handle: Out<u32>,
) -> VipReturn {
    guard(nic, || {
        let nic = nic.get()?;
        let place = handle.place()?;
        if address == 0 || (attributes.is_null() && nic.ops.is_strict()) {
            return Err(Error::InvalidParameter);
        }
        let attributes = if attributes.is_null() {
            MemAttributes::default()
        } else {
            convert(&nic, attributes)?
        };
        if length > nic.ops.attributes().max_register_block_bytes {
            return Err(Error::Resource);
        }
        // SAFETY: VIPL's contract on registered memory: its owner keeps it until it is deregistered or the NIC is closed, after
        // which the NIC does not touch it, and expects it to change. It is checked here that there is memory.
        let memory = unsafe { Memory::borrowed(address, length as usize) };
        let memory = memory.map_err(|_| Error::InvalidParameter)?;
        let MemHandle(number) = nic.ops.register_mem(Arc::new(memory), attributes)?;
        place.write(number);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipDeregisterMem(nic: Handle<Nic>, address: usize, handle: u32) -> VipReturn {
    guard(nic, || {
        let nic = nic.get()?;
        nic.ops.deregister_mem(address as u64, MemHandle(handle))
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipSetMemAttributes(
    nic: Handle<Nic>,
    address: usize,
    handle: u32,
    attributes: In<VipMemAttributes>,
) -> VipReturn {
    guard(nic, || {
        let nic = nic.get()?;
        let attributes = convert(&nic, attributes)?;
        nic.ops
            .set_mem_attributes(address as u64, MemHandle(handle), attributes)
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipQueryMem(
    nic: Handle<Nic>,
    address: usize,
    handle: u32,
    attributes: Out<VipMemAttributes>,
) -> VipReturn {
    guard(nic, || {
        let nic = nic.get()?;
        let place = attributes.place()?;
        let found = nic.ops.query_mem(address as u64, MemHandle(handle))?;
        place.write(VipMemAttributes {
            ptag: nic.ptag_handle(found.ptag),
            enable_rdma_write: VipBoolean::from(found.enable_rdma_write),
            enable_rdma_read: VipBoolean::from(found.enable_rdma_read),
        });
        Ok(())
    })
}

fn convert(nic: &Nic, attributes: In<VipMemAttributes>) -> Result<MemAttributes, Error> {
    let attributes = attributes.read()?;
    Ok(MemAttributes {
        ptag: nic.ptag(attributes.ptag)?,
        enable_rdma_write: attributes.enable_rdma_write.is_true(),
        enable_rdma_read: attributes.enable_rdma_read.is_true(),
    })
}
