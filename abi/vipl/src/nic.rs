//! Opening, closing and querying NICs.

use std::ffi::c_ulong;

use via::{Discriminator, Error, NetAddress, NicAttributes};

use crate::abi_types::{VipAutodiscoveryList, VipBoolean, VipNicAttributes, VipReturn};
use crate::address::Capacity;
use crate::caller::{Out, Place, Text};
use crate::drivers;
use crate::guard::{caught, guard};
use crate::handles::{Handle, Object};
use crate::objects::Nic;

#[unsafe(no_mangle)]
pub(crate) extern "C" fn VipOpenNic(device: Text, nic: Out<Handle<Nic>>) -> VipReturn {
    let opened = caught(|| {
        let nic = nic.place()?;
        let device = device.read()?;
        let device = device.to_str().map_err(|_| Error::InvalidParameter)?;
        let (driver, options) = drivers::find(device)?;
        // Handles tell the processes apart that a fork leaves.
        sys::fork::watch().map_err(|_| Error::Resource)?;
        nic.write(Nic::adopt(driver.open(options)?)?);
        Ok(())
    });
    opened.unwrap_or(Err(Error::Resource)).into()
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn VipCloseNic(nic: Handle<Nic>) -> VipReturn {
    guard(nic, || {
        let closing = Nic::table().remove(nic).ok_or(Error::InvalidParameter)?;
        closing.ops.close();
        closing.disown_all();
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipQueryNic(nic: Handle<Nic>, attributes: Out<VipNicAttributes>) -> VipReturn {
    guard(nic, || {
        let nic = nic.get()?;
        attributes.place()?.write(convert(nic.ops.attributes()));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipQuerySystemManagementInfo(
    nic: Handle<Nic>,
    info_type: c_ulong,
    info: Out<VipAutodiscoveryList>,
) -> VipReturn {
    guard(nic, || {
        let nic = nic.get()?;
        let info = info.place()?;
        if info_type != AUTODISCOVERY {
            return Err(Error::InvalidParameter);
        }
        autodiscover(&nic, info)
    })
}

/// Where the array is too short, nothing is written but how long it must be.
fn autodiscover(nic: &Nic, info: Place<VipAutodiscoveryList>) -> Result<(), Error> {
    let list = info.read();
    let hosts = nic.ops.discover(list.number_of_hops)?;
    let found = VipAutodiscoveryList {
        num_ad_addrs: hosts.len() as c_ulong,
        ..list
    };
    if list.num_ad_addrs < found.num_ad_addrs {
        info.write(found);
        return Err(Error::Resource);
    }
    let mut places = Vec::with_capacity(hosts.len());
    for index in 0..hosts.len() {
        // SAFETY: the caller says that the array has `num_ad_addrs` elements, which are enough.
        let place = unsafe { list.ad_addr_array.nth(index) }?;
        places.push(place.check()?);
    }
    for (place, host) in places.into_iter().zip(hosts) {
        let discriminator = Discriminator::default();
        let address = NetAddress {
            host,
            discriminator,
        };
        place.write(&address, Capacity::NONE);
    }
    info.write(found);
    Ok(())
}

fn convert(nic: &NicAttributes) -> VipNicAttributes {
    let mut name = [0; 64];
    // The last byte stays NUL.
    for (to, from) in name[..63].iter_mut().zip(nic.name.bytes()) {
        *to = from;
    }
    VipNicAttributes {
        name,
        hardware_version: nic.hardware_version.into(),
        provider_version: nic.provider_version.into(),
        nic_address_len: nic.local_address.len() as u16,
        // These attributes are part of the NIC, which the table holds until it is closed.
        local_nic_address: nic.local_address.as_ptr(),
        thread_safe: VipBoolean::from(nic.thread_safe),
        max_discriminator_len: nic.max_discriminator_len,
        max_register_bytes: nic.max_register_bytes,
        max_register_regions: nic.max_register_regions.into(),
        max_register_block_bytes: nic.max_register_block_bytes,
        max_vi: nic.max_vi.into(),
        max_descriptors_per_queue: nic.max_descriptors_per_queue.into(),
        max_segments_per_desc: nic.max_segments_per_desc.into(),
        max_cq: nic.max_cq.into(),
        max_cq_entries: nic.max_cq_entries.into(),
        max_transfer_size: nic.max_transfer_size.into(),
        native_mtu: nic.native_mtu.into(),
        max_ptags: nic.max_ptags.into(),
        reliability_level_support: nic.reliability.bits(),
        rdma_read_support: nic.rdma_read.bits(),
    }
}

/// `VIP_SMI_AUTODISCOVERY`.
const AUTODISCOVERY: c_ulong = 1;
