//! How frames lie on the wire.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{HEAD, PAYLOAD_MAX, PLACES_MAX, POSTED_MAX};

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Head {
    pub(super) kind: u8,
    pub(super) count: u8,
    pub(super) stream: U16,
    pub(super) control: U16,
    pub(super) zero: U16,
    pub(super) a: U32,
    pub(super) b: U32,
}

/// Its places follow.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct PostedBody {
    pub(super) len: U32,
    pub(super) places: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct PlaceBody {
    pub(super) addr: U64,
    pub(super) handle: U32,
    pub(super) len: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct AdvertBody {
    pub(super) tag: U64,
    pub(super) addr: U64,
    pub(super) len: U64,
}

pub(super) const HELLO: u8 = 1;
pub(super) const DATA: u8 = 2;
pub(super) const FIN: u8 = 3;
pub(super) const MESSAGE: u8 = 4;
pub(super) const POSTED: u8 = 5;
pub(super) const PLACED: u8 = 6;
pub(super) const ADVERTISE: u8 = 7;
pub(super) const WITHDRAW: u8 = 8;
pub(super) const CREDIT: u8 = 9;
pub(super) const MAY_READ: u32 = 0x1;
pub(super) const MAY_WRITE: u32 = 0x2;

const _: () = assert!(size_of::<Head>() == HEAD);
const _: () = {
    let longest = size_of::<PostedBody>() + PLACES_MAX * size_of::<PlaceBody>();
    assert!(POSTED_MAX * longest <= PAYLOAD_MAX);
};
