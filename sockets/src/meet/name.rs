//! The name at which the ends of a connection meet.

use std::fmt::{self, Write};
use std::net::{IpAddr, SocketAddr};

use sys::tcp::Identity;

/// An abstract name, the same at both ends: their network namespace and addresses, in hexadecimal.
#[derive(Clone, Copy)]
pub(super) struct Name {
    bytes: [u8; LEN_MAX],
    len: usize,
}

impl Name {
    pub(super) fn of(identity: &Identity) -> Self {
        let mut name = Self {
            bytes: [0; LEN_MAX],
            len: 0,
        };
        let low = identity.local.min(identity.peer);
        let high = identity.local.max(identity.peer);
        let written = write!(name, "sovia1-{:x}-", identity.netns)
            .and_then(|()| name.address(low))
            .and_then(|()| name.write_char('-'))
            .and_then(|()| name.address(high));
        debug_assert!(written.is_ok(), "LEN_MAX is enough");
        name
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&self.bytes)
    }

    fn address(&mut self, address: SocketAddr) -> fmt::Result {
        match address.ip() {
            IpAddr::V4(v4) => write!(self, "{:08x}", v4.to_bits())?,
            IpAddr::V6(v6) => write!(self, "{:032x}", v6.to_bits())?,
        }
        write!(self, "{:04x}", address.port())
    }
}

impl Write for Name {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        let room = self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// What an abstract name may have: two addresses of 36 digits, a namespace of 16, and 9 characters between.
const LEN_MAX: usize = 107;

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(local: &str, peer: &str) -> Identity {
        Identity {
            local: local.parse().expect("an address"),
            peer: peer.parse().expect("an address"),
            netns: u64::MAX,
            interface: 0,
        }
    }

    #[test]
    fn both_ends_have_the_same() {
        let pairs = [
            ("127.0.0.1:80", "127.0.0.1:40000"),
            ("[::1]:80", "[::1]:40000"),
        ];
        for (one, other) in pairs {
            let ours = Name::of(&identity(one, other));
            let theirs = Name::of(&identity(other, one));
            assert_eq!(ours.as_bytes(), theirs.as_bytes());
            assert_ne!(
                ours.as_bytes(),
                Name::of(&identity(one, "127.0.0.1:40001")).as_bytes()
            );
        }
    }

    #[test]
    fn the_longest_fits() {
        let last = "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535";
        let name = Name::of(&identity(last, last));
        assert_eq!(name.as_bytes().len(), 97);
        assert!(name.as_bytes().starts_with(b"sovia1-ffffffffffffffff-ff"));
    }
}
