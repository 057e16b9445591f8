//! Addresses of sockets of IPv6, by which one reaches IPv4 and this host.
//!
//! What is behind knows addresses of IPv4. One that is mapped (`::ffff:a.b.c.d`) is that of IPv4, `::` is any, and `::1`, which is none of IPv4's, is 0.0.0.1:
//! no host has that. The others that this host has are numbered, too.

use std::ffi::c_void;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use libc::sockaddr_in6;

use super::own_v6::Own;
use super::{address, check, put_address, put_bytes};
use crate::errno::Errno;

/// Of what family a socket's addresses are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// `AF_INET`.
    V4,
    /// `AF_INET6`.
    V6,
}

/// The number of `::1`.
pub const LOOPBACK_OF_V6: Ipv4Addr = Ipv4Addr::new(0, 0, 0, 1);

/// Whether it is the number of one of this host's addresses of IPv6.
#[must_use]
pub fn is_own_of_v6(number: Ipv4Addr) -> bool {
    number == LOOPBACK_OF_V6 || Own::numbered(number).is_some()
}

impl Family {
    /// As [`address`], of this family.
    ///
    /// # Errors
    /// As [`address`]; `ENETUNREACH` if it is one of IPv6's other hosts, `EINVAL` if it means nothing without an interface and says none.
    ///
    /// # Safety
    /// As of [`address`].
    pub unsafe fn address(self, at: *const c_void, len: u32) -> Result<SocketAddrV4, Errno> {
        if self == Self::V4 {
            // SAFETY: the same contract.
            return unsafe { address(at, len) };
        }
        check(at)?;
        if (len as usize) < WITHOUT_SCOPE {
            return Err(Errno::INVAL);
        }
        // SAFETY: zeros are a valid `sockaddr_in6`.
        let mut found: sockaddr_in6 = unsafe { std::mem::zeroed() };
        let count = (len as usize).min(size_of::<sockaddr_in6>());
        // SAFETY: by the contract so much is there.
        unsafe {
            at.cast::<u8>()
                .copy_to_nonoverlapping((&raw mut found).cast(), count)
        };
        if i32::from(found.sin6_family) != libc::AF_INET6 {
            return Err(Errno::AFNOSUPPORT);
        }
        let ip = Ipv6Addr::from(found.sin6_addr.s6_addr);
        let ip = match ip.to_ipv4_mapped() {
            Some(ip) => ip,
            None if ip.is_unspecified() => Ipv4Addr::UNSPECIFIED,
            None if ip.is_loopback() => LOOPBACK_OF_V6,
            None => {
                let scope = match ip.is_unicast_link_local() {
                    true if found.sin6_scope_id == 0 => return Err(Errno::INVAL),
                    true => found.sin6_scope_id,
                    false => 0,
                };
                Own { ip, scope }.number().ok_or(Errno::NETUNREACH)?
            }
        };
        Ok(SocketAddrV4::new(ip, u16::from_be(found.sin6_port)))
    }

    /// As [`put_address`], of this family.
    ///
    /// # Errors
    /// `EFAULT`; nothing is written then.
    ///
    /// # Safety
    /// As of [`put_address`].
    pub unsafe fn put_address(
        self,
        from: SocketAddrV4,
        at: *mut c_void,
        len: *mut u32,
    ) -> Result<(), Errno> {
        let from = match self.shown(from) {
            // SAFETY: the same contract.
            SocketAddr::V4(from) => return unsafe { put_address(from, at, len) },
            SocketAddr::V6(from) => from,
        };
        // SAFETY: zeros are a valid `sockaddr_in6`.
        let mut full: sockaddr_in6 = unsafe { std::mem::zeroed() };
        full.sin6_family = libc::AF_INET6 as libc::sa_family_t;
        full.sin6_port = from.port().to_be();
        full.sin6_addr.s6_addr = from.ip().octets();
        full.sin6_scope_id = from.scope_id();
        let bytes = (&raw const full).cast::<u8>();
        // SAFETY: the bytes of `full`, which has no padding.
        let bytes = unsafe { std::slice::from_raw_parts(bytes, size_of::<sockaddr_in6>()) };
        // SAFETY: the same contract.
        unsafe { put_bytes(bytes, at, len) }?;
        // SAFETY: by the contract; it has just been written.
        unsafe { len.write_unaligned(size_of::<sockaddr_in6>() as u32) };
        Ok(())
    }

    /// As a program of this family sees it.
    #[must_use]
    pub fn shown(self, address: SocketAddrV4) -> SocketAddr {
        let (ip, port) = (*address.ip(), address.port());
        let is_numbered = ip.octets()[0] == 0 && !ip.is_unspecified();
        match self {
            Self::V4 if is_numbered => SocketAddrV4::new(Ipv4Addr::LOCALHOST, port).into(),
            Self::V4 => address.into(),
            Self::V6 => {
                let own = of_v6(ip);
                SocketAddrV6::new(own.ip, port, 0, own.scope).into()
            }
        }
    }
}

/// What that is in IPv6. One that this host has no more is shown as itself.
fn of_v6(ip: Ipv4Addr) -> Own {
    let of_all = |ip| Own { ip, scope: 0 };
    match ip {
        LOOPBACK_OF_V6 => of_all(Ipv6Addr::LOCALHOST),
        Ipv4Addr::UNSPECIFIED => of_all(Ipv6Addr::UNSPECIFIED),
        _ => Own::numbered(ip).unwrap_or_else(|| of_all(ip.to_ipv6_mapped())),
    }
}

/// An address without its last field, as it was before RFC 2553; the kernel takes it.
const WITHOUT_SCOPE: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_v6_is_read_as_it_was_written() {
        for ip in [
            Ipv4Addr::UNSPECIFIED,
            LOOPBACK_OF_V6,
            Ipv4Addr::LOCALHOST,
            Ipv4Addr::new(10, 1, 2, 3),
        ] {
            let address = SocketAddrV4::new(ip, 0x1234);
            let mut bytes = [9u8; 32];
            let mut len = 32;
            let at = bytes.as_mut_ptr().cast();
            // SAFETY: 32 bytes, and their number.
            let put = unsafe { Family::V6.put_address(address, at, &raw mut len) };
            assert_eq!((put, len), (Ok(()), 28));
            // SAFETY: as above.
            let read = |len| unsafe { Family::V6.address(at, len) };
            assert_eq!(read(28), Ok(address));
            assert_eq!(read(23), Err(Errno::INVAL));
        }
        let mapped = Family::V6.shown(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7));
        assert_eq!(mapped.to_string(), "[::ffff:127.0.0.1]:7");
        let own = Family::V6.shown(SocketAddrV4::new(LOOPBACK_OF_V6, 7));
        assert_eq!(own.to_string(), "[::1]:7");
    }
}
