//! Addresses and networks.

use std::net::{IpAddr, Ipv6Addr};

/// Addresses that begin alike: `10.0.0.0/8`, `::1`. An IPv4 address is the same as its mapped form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    first: u128,
    /// Bits that count, of 128.
    len: u32,
}

impl Network {
    /// `None` if it is no address, or has no such prefix.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (address, len) = match text.split_once('/') {
            Some((address, len)) => (address, Some(len.parse::<u32>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let (most, offset) = match address {
            IpAddr::V4(_) => (32, 96),
            IpAddr::V6(_) => (128, 0),
        };
        let len = len.unwrap_or(most);
        (len <= most).then(|| Self {
            first: bits(address),
            len: len + offset,
        })
    }

    /// Whether the address has bits beyond the prefix, so that it is rather a host's.
    #[must_use]
    pub fn is_too_exact(&self) -> bool {
        self.first & !self.mask() != 0
    }

    /// Whether `address` begins like it.
    #[must_use]
    pub fn holds(&self, address: IpAddr) -> bool {
        (bits(address) ^ self.first) & self.mask() == 0
    }

    fn mask(&self) -> u128 {
        u128::MAX.checked_shl(128 - self.len).unwrap_or(0)
    }
}

fn bits(address: IpAddr) -> u128 {
    let address: Ipv6Addr = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    address.to_bits()
}
