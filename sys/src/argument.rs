//! What C hands to calls on sockets: by pointer a `struct sockaddr_in` and the `int` of an option, and the `how` of `shutdown`.
//!
//! Where a pointer cannot be one of memory the answer is `EFAULT`, as the kernel's.

use std::ffi::{c_int, c_void};
use std::net::{Ipv4Addr, SocketAddrV4};

use libc::{sockaddr_in, socklen_t};

use crate::errno::Errno;

mod family;
mod own_v6;

pub use family::{Family, LOOPBACK_OF_V6, is_own_of_v6};

/// Which directions `shutdown` is to end: whether the receiving one, and whether the sending one.
///
/// # Errors
/// `EINVAL`.
pub fn directions(how: c_int) -> Result<(bool, bool), Errno> {
    match how {
        libc::SHUT_RD => Ok((true, false)),
        libc::SHUT_WR => Ok((false, true)),
        libc::SHUT_RDWR => Ok((true, true)),
        _ => Err(Errno::INVAL),
    }
}

/// Reads an address.
///
/// # Errors
/// `EFAULT`; `EINVAL` if it is too short, or longer than any; `EAFNOSUPPORT` if it is not one of IPv4.
///
/// # Safety
/// `len` bytes at `at`, if that is memory.
pub unsafe fn address(at: *const c_void, len: u32) -> Result<SocketAddrV4, Errno> {
    if len as usize > size_of::<libc::sockaddr_storage>() {
        return Err(Errno::INVAL);
    }
    check(at)?;
    if (len as usize) < size_of::<sockaddr_in>() {
        return Err(Errno::INVAL);
    }
    // SAFETY: by the contract so much is there; any bytes are a `sockaddr_in`.
    let found = unsafe { at.cast::<sockaddr_in>().read_unaligned() };
    if i32::from(found.sin_family) != libc::AF_INET {
        return Err(Errno::AFNOSUPPORT);
    }
    let ip = Ipv4Addr::from(u32::from_be(found.sin_addr.s_addr));
    Ok(SocketAddrV4::new(ip, u16::from_be(found.sin_port)))
}

/// Whether it is no address (`AF_UNSPEC`).
///
/// # Safety
/// As of [`address`].
pub unsafe fn is_none(at: *const c_void, len: u32) -> bool {
    let family = size_of::<libc::sa_family_t>();
    check(at).is_ok()
        && (family..=size_of::<libc::sockaddr_storage>()).contains(&(len as usize))
        // SAFETY: by the contract so much is there.
        && i32::from(unsafe { at.cast::<libc::sa_family_t>().read_unaligned() }) == libc::AF_UNSPEC
}

/// Writes as much of an address as there is room for, and says how long it is.
///
/// # Errors
/// `EFAULT`; `EINVAL` for a length below zero. Nothing is written then.
///
/// # Safety
/// A length at `len`, and room for so many bytes at `at`, if they are memory.
pub unsafe fn put_address(from: SocketAddrV4, at: *mut c_void, len: *mut u32) -> Result<(), Errno> {
    check(at)?;
    // SAFETY: by the contract.
    let room = unsafe { room(len) }?;
    // SAFETY: zeros are a valid `sockaddr_in`.
    let mut full: sockaddr_in = unsafe { std::mem::zeroed() };
    full.sin_family = libc::AF_INET as libc::sa_family_t;
    full.sin_port = from.port().to_be();
    full.sin_addr.s_addr = u32::from(*from.ip()).to_be();
    let count = room.min(size_of::<sockaddr_in>());
    let source = (&raw const full).cast::<u8>();
    // SAFETY: `count` bytes of each.
    unsafe { at.cast::<u8>().copy_from_nonoverlapping(source, count) };
    // SAFETY: by the contract.
    unsafe { len.write_unaligned(size_of::<sockaddr_in>() as socklen_t) };
    Ok(())
}

/// The value of an option, or as much of it as any that we look at has.
///
/// # Errors
/// `EFAULT`; `EINVAL` for a length below zero.
///
/// # Safety
/// `len` bytes at `value`, if that is memory, which nothing changes meanwhile.
pub unsafe fn value<'a>(value: *const c_void, len: u32) -> Result<&'a [u8], Errno> {
    if len.cast_signed() < 0 {
        return Err(Errno::INVAL);
    }
    if len == 0 {
        // That this is too little the kernel says before it looks.
        return Ok(&[]);
    }
    check(value)?;
    // SAFETY: by the contract, no more than so much is there.
    Ok(unsafe { std::slice::from_raw_parts(value.cast(), (len as usize).min(VALUE_MAX)) })
}

/// Answers for an option that is an `int`: as many of its bytes as there is room for, and how many.
///
/// # Errors
/// `EFAULT`.
///
/// # Safety
/// A length at `len`, and room for so many bytes at `value`, if they are memory.
pub unsafe fn put_int(answer: c_int, value: *mut c_void, len: *mut u32) -> Result<(), Errno> {
    // SAFETY: the same contract.
    unsafe { put_bytes(&answer.to_ne_bytes(), value, len) }
}

/// How many bytes there is room for.
///
/// # Errors
/// `EFAULT`; `EINVAL` for a length below zero.
///
/// # Safety
/// A length at `len`, if that is memory.
pub unsafe fn room(len: *const u32) -> Result<usize, Errno> {
    check(len)?;
    // SAFETY: by the contract.
    let len = unsafe { len.read_unaligned() };
    if len.cast_signed() < 0 {
        return Err(Errno::INVAL);
    }
    Ok(len as usize)
}

/// As [`put_int`], for an option that is more than an `int`.
///
/// # Errors
/// `EFAULT`.
///
/// # Safety
/// As of [`put_int`].
pub unsafe fn put_bytes(bytes: &[u8], value: *mut c_void, len: *mut u32) -> Result<(), Errno> {
    check(value)?;
    check(len)?;
    // SAFETY: by the contract.
    let room = unsafe { len.read_unaligned() } as usize;
    let count = room.min(bytes.len());
    // SAFETY: `count` bytes of each.
    unsafe { value.copy_from_nonoverlapping(bytes.as_ptr().cast(), count) };
    // SAFETY: by the contract.
    unsafe { len.write_unaligned(count as socklen_t) };
    Ok(())
}

/// Whether it may be memory: the first page and the last are never a program's.
///
/// # Errors
/// `EFAULT`.
pub fn check<T>(pointer: *const T) -> Result<(), Errno> {
    match (PAGE..usize::MAX - PAGE).contains(&pointer.addr()) {
        true => Ok(()),
        false => Err(Errno::FAULT),
    }
}

const PAGE: usize = 4096;
/// A `struct tcp_md5sig`, and no path, list or filter, which are elsewhere.
const VALUE_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_was_written() {
        let address = SocketAddrV4::new(Ipv4Addr::new(10, 1, 2, 3), 0x1234);
        let mut bytes = [0u8; 20];
        let mut len = 20;
        let at = bytes.as_mut_ptr();
        // SAFETY: 20 bytes, and their number.
        let put = unsafe { put_address(address, at.cast(), &raw mut len) };
        assert_eq!(put, Ok(()));
        assert_eq!((len, &bytes[2..8]), (16, &[0x12, 0x34, 10, 1, 2, 3][..]));
        // SAFETY: as above.
        let read = |len| unsafe { super::address(at.cast(), len) };
        assert_eq!(read(16), Ok(address));
        assert_eq!(read(15), Err(Errno::INVAL));
        assert_eq!(read(u32::MAX), Err(Errno::INVAL));
        // SAFETY: as above.
        assert!(!unsafe { is_none(at.cast(), 16) });
        bytes[0] = libc::AF_UNSPEC as u8;
        // SAFETY: as above.
        assert!(unsafe { is_none(bytes.as_ptr().cast(), 2) });
        bytes[0] = libc::AF_INET6 as u8;
        // SAFETY: as above.
        let other = unsafe { super::address(bytes.as_ptr().cast(), 16) };
        assert_eq!(other, Err(Errno::AFNOSUPPORT));
    }

    #[test]
    fn what_does_not_fit_is_cut_off_and_said_to_be_longer() {
        let mut bytes = [9u8; 16];
        let mut len = 4;
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7);
        // SAFETY: more than 4 bytes, and their number.
        let put = unsafe { put_address(address, bytes.as_mut_ptr().cast(), &raw mut len) };
        assert_eq!(put, Ok(()));
        assert_eq!((len, &bytes[..5]), (16, &[2, 0, 0, 7, 9][..]));
        len = u32::MAX;
        // SAFETY: as above.
        let put = unsafe { put_address(address, bytes.as_mut_ptr().cast(), &raw mut len) };
        assert_eq!((put, len), (Err(Errno::INVAL), u32::MAX));
    }

    #[test]
    fn no_memory() {
        let mut len = 4u32;
        let nowhere = std::ptr::without_provenance_mut::<c_void>(8);
        // SAFETY: neither is memory.
        assert_eq!(unsafe { value(nowhere, 4) }, Err(Errno::FAULT));
        // SAFETY: as above.
        let written = unsafe { put_int(1, nowhere, &raw mut len) };
        assert_eq!((written, len), (Err(Errno::FAULT), 4));
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7);
        // SAFETY: as above.
        let put = unsafe { put_address(address, nowhere, &raw mut len) };
        assert_eq!((put, len), (Err(Errno::FAULT), 4));
        let mut room = [9u8; 16];
        // SAFETY: the length is not memory.
        let put = unsafe { put_address(address, room.as_mut_ptr().cast(), nowhere.cast()) };
        assert_eq!((put, room), (Err(Errno::FAULT), [9; 16]));
    }
}
