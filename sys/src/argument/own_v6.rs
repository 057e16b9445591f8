//! The addresses of IPv6 that this host has, beside `::1`, as addresses of IPv4 that no host has: 0.0.0.2 and up. All processes of a host make the same number of one.

use std::net::{Ipv4Addr, Ipv6Addr};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::read;

/// An address of this host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Own {
    pub(super) ip: Ipv6Addr,
    /// Its interface, where the address means nothing without.
    pub(super) scope: u32,
}

impl Own {
    /// The one that has this number.
    pub(super) fn numbered(number: Ipv4Addr) -> Option<Self> {
        // None of IPv4's begins so but that which is any.
        let own = || list().into_iter().find(|own| own.hash() == number);
        (number.octets()[0] == 0 && !number.is_unspecified())
            .then(own)
            .flatten()
    }

    /// Its number; `None` where this host has no such address.
    pub(super) fn number(self) -> Option<Ipv4Addr> {
        let number = self.hash();
        // Of two that have the same the second is not to be had.
        (Self::numbered(number) == Some(self)).then_some(number)
    }

    /// FNV-1a, folded into 24 bits.
    fn hash(self) -> Ipv4Addr {
        let bytes = self.ip.octets().into_iter().chain(self.scope.to_be_bytes());
        let hash = bytes.fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        let folded = (hash >> 24) ^ (hash & 0x00ff_ffff);
        Ipv4Addr::from_bits(folded.max(FIRST))
    }
}

/// As the kernel lists them.
fn list() -> Vec<Own> {
    let Ok(file) = open(
        "/proc/self/net/if_inet6",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    ) else {
        return Vec::new();
    };
    let mut text = Vec::new();
    let mut room = [0; 4096];
    while let Ok(count @ 1..) = read(&file, &mut room) {
        text.extend_from_slice(room.get(..count).unwrap_or_default());
    }
    let text = String::from_utf8_lossy(&text);
    text.lines().filter_map(parse).collect()
}

/// A line: the address and the interface's number, both in hexadecimal, and what else is known of it.
fn parse(line: &str) -> Option<Own> {
    let mut words = line.split_ascii_whitespace();
    let ip = Ipv6Addr::from_bits(u128::from_str_radix(words.next()?, 16).ok()?);
    let interface = u32::from_str_radix(words.next()?, 16).ok()?;
    let scope = if ip.is_unicast_link_local() {
        interface
    } else {
        0
    };
    Some(Own { ip, scope })
}

/// That before it is the number of `::1`.
const FIRST: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernels_is_an_address() {
        let line = "fe80000000000000fc00fffffe000001 04 40 20 80     eth0";
        let own = parse(line).expect("an address");
        assert_eq!(
            own.ip,
            "fe80::fc00:ffff:fe00:1".parse::<Ipv6Addr>().unwrap()
        );
        assert_eq!(own.scope, 4);
        let other = parse("fd000000000000000000000000000002 04 40 00 82     eth0");
        assert_eq!(other.expect("an address").scope, 0);
        assert_eq!(parse("no address"), None);
    }

    #[test]
    fn all_that_there_are_have_numbers_of_their_own() {
        for own in list() {
            let number = own.number().expect("there are few");
            assert_eq!(number.octets()[0], 0);
            assert!(number > Ipv4Addr::new(0, 0, 0, 1));
            assert_eq!(Own::numbered(number), Some(own));
        }
        let ip = "2001:db8::1".parse().expect("for documents");
        assert_eq!(Own { ip, scope: 0 }.number(), None);
        assert_eq!(Own::numbered(Ipv4Addr::UNSPECIFIED), None);
        assert_eq!(Own::numbered(Ipv4Addr::LOCALHOST), None);
    }
}
