//! VIPL's scalars and structures, laid out as in `vipl.h`.

use std::ffi::{c_char, c_ulong};
use std::mem::offset_of;
use std::time::Duration;

use via::Error;
use via::provider::Timeout;

use crate::address::AddressOut;
use crate::caller::In;
use crate::handles::Handle;
use crate::objects::{Cq, Nic, Vi};

/// `VIP_RETURN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct VipReturn(u32);

impl VipReturn {
    pub(crate) const SUCCESS: Self = Self(0);
    pub(crate) const NOT_DONE: Self = Self(1);
    pub(crate) const DESCRIPTOR_ERROR: Self = Self(11);
}

impl From<()> for VipReturn {
    fn from((): ()) -> Self {
        Self::SUCCESS
    }
}

impl From<Error> for VipReturn {
    fn from(error: Error) -> Self {
        Self(error as u32)
    }
}

impl<R: Into<Self>> From<Result<R, Error>> for VipReturn {
    #[inline]
    fn from(result: Result<R, Error>) -> Self {
        match result {
            Ok(result) => result.into(),
            Err(error) => error.into(),
        }
    }
}

/// `VIP_BOOLEAN`: any value but 0 is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct VipBoolean(i32);

impl VipBoolean {
    pub(crate) fn is_true(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for VipBoolean {
    fn from(value: bool) -> Self {
        Self(i32::from(value))
    }
}

/// A time limit in milliseconds.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Milliseconds(pub(crate) c_ulong);

impl Milliseconds {
    /// `VIP_INFINITE`, also as a program has it that widens `(unsigned)~0`, is no limit.
    pub(crate) fn timeout(self) -> Timeout {
        const INFINITE: c_ulong = c_ulong::MAX;
        const WIDENED: c_ulong = u32::MAX as c_ulong;
        match self.0 {
            INFINITE | WIDENED => None,
            ms => Some(Duration::from_millis(ms)),
        }
    }
}

/// `VIP_NIC_ATTRIBUTES`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct VipNicAttributes {
    pub(crate) name: [u8; 64],
    pub(crate) hardware_version: c_ulong,
    pub(crate) provider_version: c_ulong,
    pub(crate) nic_address_len: u16,
    pub(crate) local_nic_address: *const u8,
    pub(crate) thread_safe: VipBoolean,
    pub(crate) max_discriminator_len: u16,
    pub(crate) max_register_bytes: c_ulong,
    pub(crate) max_register_regions: c_ulong,
    pub(crate) max_register_block_bytes: c_ulong,
    pub(crate) max_vi: c_ulong,
    pub(crate) max_descriptors_per_queue: c_ulong,
    pub(crate) max_segments_per_desc: c_ulong,
    pub(crate) max_cq: c_ulong,
    pub(crate) max_cq_entries: c_ulong,
    pub(crate) max_transfer_size: c_ulong,
    pub(crate) native_mtu: c_ulong,
    pub(crate) max_ptags: c_ulong,
    pub(crate) reliability_level_support: u16,
    pub(crate) rdma_read_support: u16,
}

/// `VIP_VI_ATTRIBUTES`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct VipViAttributes {
    pub(crate) reliability_level: u16,
    pub(crate) max_transfer_size: c_ulong,
    pub(crate) qos: usize,
    pub(crate) ptag: PtagHandle,
    pub(crate) enable_rdma_write: VipBoolean,
    pub(crate) enable_rdma_read: VipBoolean,
}

/// `VIP_MEM_ATTRIBUTES`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct VipMemAttributes {
    pub(crate) ptag: PtagHandle,
    pub(crate) enable_rdma_write: VipBoolean,
    pub(crate) enable_rdma_read: VipBoolean,
}

/// `VIP_PROTECTION_HANDLE`; [`Nic::ptag`] tells what it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct PtagHandle(pub(crate) usize);

/// `VIP_ERROR_DESCRIPTOR`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct VipErrorDescriptor {
    pub(crate) nic_handle: Handle<Nic>,
    pub(crate) vi_handle: Handle<Vi>,
    pub(crate) cq_handle: Handle<Cq>,
    pub(crate) descriptor_ptr: usize,
    pub(crate) op_code: c_ulong,
    pub(crate) resource_code: u32,
    pub(crate) error_code: u32,
}

/// The fixed part of `VIP_NET_ADDRESS`; the bytes of the host and of the discriminator follow it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct VipNetAddressHead {
    pub(crate) host_address_len: u16,
    pub(crate) discriminator_len: u16,
}

/// `VIP_AUTODISCOVERY_LIST`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct VipAutodiscoveryList {
    pub(crate) number_of_hops: c_ulong,
    pub(crate) ad_addr_array: In<AddressOut>,
    pub(crate) num_ad_addrs: c_ulong,
}

/// The structures that the NIC reads and writes where they lie, or that nobody reads: here for their layout only.
mod layout {
    #[repr(C)]
    pub(super) struct VipNetAddress {
        pub(super) head: super::VipNetAddressHead,
        pub(super) host_address: [u8; 1],
    }

    #[repr(C)]
    pub(super) struct VipControlSegment {
        pub(super) next: u64,
        pub(super) next_handle: u32,
        pub(super) seg_count: u16,
        pub(super) control: u16,
        pub(super) reserved: u32,
        pub(super) immediate_data: u32,
        pub(super) length: u32,
        pub(super) status: u32,
    }

    #[repr(C)]
    pub(super) struct VipAddressSegment {
        pub(super) data: u64,
        pub(super) handle: u32,
        pub(super) reserved: u32,
    }

    #[repr(C)]
    pub(super) struct VipDataSegment {
        pub(super) data: u64,
        pub(super) handle: u32,
        pub(super) length: u32,
    }

    #[repr(C)]
    pub(super) struct VipDescriptor {
        pub(super) cs: VipControlSegment,
        pub(super) ds: [VipDataSegment; 2],
    }
}

/// The numbers of `vipl.h` for LP64, the one data model that is provided.
macro_rules! is_laid_out {
    ($type:ty, $size:literal, { $($field:ident: $offset:literal),* $(,)? }) => {
        const _: () = {
            assert!(size_of::<$type>() == $size);
            $(assert!(offset_of!($type, $field) == $offset);)*
        };
    };
}

const _: () = assert!(size_of::<usize>() == 8 && size_of::<c_ulong>() == 8);
const _: () = assert!(size_of::<c_char>() == 1 && size_of::<VipReturn>() == 4);

is_laid_out!(layout::VipControlSegment, 32, {
    next: 0, next_handle: 8, seg_count: 12, control: 14, reserved: 16, immediate_data: 20, length: 24, status: 28,
});
is_laid_out!(layout::VipAddressSegment, 16, { data: 0, handle: 8, reserved: 12 });
is_laid_out!(layout::VipDataSegment, 16, { data: 0, handle: 8, length: 12 });
is_laid_out!(layout::VipDescriptor, 64, { cs: 0, ds: 32 });
is_laid_out!(layout::VipNetAddress, 6, { head: 0, host_address: 4 });
is_laid_out!(VipNetAddressHead, 4, { host_address_len: 0, discriminator_len: 2 });
is_laid_out!(VipNicAttributes, 200, {
    name: 0, hardware_version: 64, provider_version: 72, nic_address_len: 80, local_nic_address: 88, thread_safe: 96,
    max_discriminator_len: 100, max_register_bytes: 104, max_register_regions: 112, max_register_block_bytes: 120,
    max_vi: 128, max_descriptors_per_queue: 136, max_segments_per_desc: 144, max_cq: 152, max_cq_entries: 160,
    max_transfer_size: 168, native_mtu: 176, max_ptags: 184, reliability_level_support: 192, rdma_read_support: 194,
});
is_laid_out!(VipViAttributes, 40, {
    reliability_level: 0, max_transfer_size: 8, qos: 16, ptag: 24, enable_rdma_write: 32, enable_rdma_read: 36,
});
is_laid_out!(VipMemAttributes, 16, { ptag: 0, enable_rdma_write: 8, enable_rdma_read: 12 });
is_laid_out!(VipErrorDescriptor, 48, {
    nic_handle: 0, vi_handle: 8, cq_handle: 16, descriptor_ptr: 24, op_code: 32, resource_code: 40, error_code: 44,
});
is_laid_out!(VipAutodiscoveryList, 24, { number_of_hops: 0, ad_addr_array: 8, num_ad_addrs: 16 });

#[cfg(test)]
mod tests {
    use super::*;
    use via::{ErrorCode, Resource, ViState};

    #[test]
    fn the_numbers_of_the_header() {
        let errors = [
            (Error::InvalidParameter, 2),
            (Error::Resource, 3),
            (Error::Timeout, 4),
            (Error::Reject, 5),
            (Error::InvalidReliabilityLevel, 6),
            (Error::InvalidMtu, 7),
            (Error::InvalidQos, 8),
            (Error::InvalidPtag, 9),
            (Error::InvalidRdmaRead, 10),
            (Error::InvalidState, 12),
            (Error::NameService, 13),
            (Error::NoMatch, 14),
            (Error::NotReachable, 15),
            (Error::NotSupported, 16),
        ];
        for (error, number) in errors {
            assert_eq!(VipReturn::from(error), VipReturn(number));
        }
        assert_eq!(ViState::ALL.map(|state| state as u32), [0, 1, 2, 3]);
        assert_eq!(ErrorCode::RdmaTransport as u32, 9);
        assert_eq!(ErrorCode::Catastrophic as u32, 10);
        assert_eq!(Resource::Descriptor as u32, 3);
    }

    #[test]
    fn timeouts() {
        let ms = |ms| Milliseconds(ms).timeout();
        assert_eq!(ms(0), Some(Duration::ZERO));
        assert_eq!(ms(1), Some(Duration::from_millis(1)));
        assert_eq!(ms(0xffff_fffe), Some(Duration::from_millis(0xffff_fffe)));
        assert_eq!(ms(0xffff_ffff), None);
        assert_eq!(ms(0x1_0000_0000), Some(Duration::from_millis(1 << 32)));
        assert_eq!(
            ms(c_ulong::MAX - 1),
            Some(Duration::from_millis(u64::MAX - 1))
        );
        assert_eq!(ms(c_ulong::MAX), None);
    }
}
