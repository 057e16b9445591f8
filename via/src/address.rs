//! Network addresses: a host part and a discriminator.

use std::fmt;

use crate::Error;

/// Longest discriminator, bytes.
pub const DISCRIMINATOR_MAX: usize = 16;

/// Names one endpoint on one host within that host (`VIP_NET_ADDRESS`, second part).
///
/// Discriminators compare as byte strings of equal length.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Discriminator {
    len: u8,
    bytes: [u8; DISCRIMINATOR_MAX],
}

impl Discriminator {
    /// # Errors
    /// [`Error::InvalidParameter`] beyond [`DISCRIMINATOR_MAX`] bytes.
    pub fn new(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() > DISCRIMINATOR_MAX {
            return Err(Error::InvalidParameter);
        }
        let mut it = Self {
            len: bytes.len() as u8,
            ..Self::default()
        };
        it.bytes[..bytes.len()].copy_from_slice(bytes);
        Ok(it)
    }

    /// The bytes, without padding.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Debug for Discriminator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_bytes().escape_ascii())
    }
}

/// Where a VI can be reached (`VIP_NET_ADDRESS`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NetAddress {
    /// The NIC's address on its network, six bytes as every known provider had.
    pub host: [u8; 6],
    /// The endpoint on that host.
    pub discriminator: Discriminator,
}

impl NetAddress {
    /// # Errors
    /// [`Error::InvalidParameter`] when the discriminator is longer than [`DISCRIMINATOR_MAX`].
    ///
    /// ```
    /// let server = via::NetAddress::new([2, 0, 0, 0, 0, 1], b"crossword")?;
    /// assert_eq!(server.to_string(), "02:00:00:00:00:01/crossword");
    /// # Ok::<(), via::Error>(())
    /// ```
    pub fn new(host: [u8; 6], discriminator: &[u8]) -> Result<Self, Error> {
        Ok(Self {
            host,
            discriminator: Discriminator::new(discriminator)?,
        })
    }
}

impl fmt::Display for NetAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.host;
        write!(
            f,
            "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}/{:?}",
            self.discriminator
        )
    }
}

impl fmt::Debug for NetAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
