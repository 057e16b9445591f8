//! `struct sockaddr_in`.

use std::net::{Ipv4Addr, SocketAddrV4};

use libc::{sockaddr, sockaddr_in, socklen_t};
use sys::errno::Errno;

/// # Safety
/// `len` bytes at `address`.
pub(crate) unsafe fn read(address: *const sockaddr, len: socklen_t) -> Result<SocketAddrV4, Errno> {
    if address.is_null() {
        return Err(Errno::FAULT);
    }
    if (len as usize) < size_of::<sockaddr_in>() {
        return Err(Errno::INVAL);
    }
    // SAFETY: by the contract, so much is there; any bytes are a `sockaddr_in`.
    let found = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
    if i32::from(found.sin_family) != libc::AF_INET {
        return Err(Errno::AFNOSUPPORT);
    }
    let ip = Ipv4Addr::from(u32::from_be(found.sin_addr.s_addr));
    Ok(SocketAddrV4::new(ip, u16::from_be(found.sin_port)))
}

/// Writes as much as there is room for, and says how long it is, as the kernel does.
///
/// # Safety
/// Either is null, or there is room for `*len` bytes.
pub(crate) unsafe fn write(from: SocketAddrV4, address: *mut sockaddr, len: *mut socklen_t) {
    if address.is_null() || len.is_null() {
        return;
    }
    // SAFETY: zeros are a valid `sockaddr_in`.
    let mut full: sockaddr_in = unsafe { std::mem::zeroed() };
    full.sin_family = libc::AF_INET as libc::sa_family_t;
    full.sin_port = from.port().to_be();
    full.sin_addr.s_addr = u32::from(*from.ip()).to_be();
    // SAFETY: by the contract.
    let room = unsafe { len.read_unaligned() } as usize;
    let count = room.min(size_of::<sockaddr_in>());
    let source = (&raw const full).cast::<u8>();
    // SAFETY: `count` bytes of each.
    unsafe { address.cast::<u8>().copy_from_nonoverlapping(source, count) };
    // SAFETY: as above.
    unsafe { len.write_unaligned(size_of::<sockaddr_in>() as socklen_t) };
}
