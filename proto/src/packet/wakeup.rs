//! The payload of a WAKEUP packet.

use thiserror::Error;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::settings::{BadSettings, Settings};

/// Bytes of the payload.
pub const WAKEUP_LEN: usize = size_of::<Body>();

/// Who the sender of a WAKEUP packet is, and what it has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wakeup {
    /// The sender's socket descriptor, in its own process.
    pub descriptor: u32,
    /// Its IPv4 address.
    pub address: [u8; 4],
    /// Its port.
    pub port: u16,
    /// The packets that it receives: how many, how long, how often acknowledged.
    pub settings: Settings,
    /// Where it would hand its end over, and the proof that who asks for it there is its peer; nobody else knows them.
    pub place: [u8; PLACE_LEN],
}

/// Bytes of a [`Wakeup::place`].
pub const PLACE_LEN: usize = 16;

/// Why bytes are no WAKEUP payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadWakeup {
    /// Too many or too few.
    #[error("wrong length")]
    Length,
    /// Another version of the protocol.
    #[error("version {0} of the protocol")]
    Version(u16),
    /// Settings under which nothing could be sent.
    #[error("settings out of bounds: {0}")]
    Settings(BadSettings),
}

impl Wakeup {
    /// Reads a payload.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadWakeup> {
        let body = Body::read_from_bytes(bytes).map_err(|_| BadWakeup::Length)?;
        if body.version != VERSION {
            return Err(BadWakeup::Version(body.version.get()));
        }
        let mtu = body.mtu.get();
        let settings = match (body.window.get(), body.threshold.get()) {
            (0, 0) => Settings::without_window(mtu),
            (window, threshold) => Settings::new(window, threshold, mtu),
        };
        Ok(Self {
            descriptor: body.descriptor.get(),
            address: body.address,
            port: body.port.get(),
            settings: settings.map_err(BadWakeup::Settings)?,
            place: body.place,
        })
    }

    /// As it travels.
    #[must_use]
    pub fn encode(self) -> [u8; WAKEUP_LEN] {
        let body = Body {
            version: U16::new(VERSION),
            port: U16::new(self.port),
            address: self.address,
            descriptor: U32::new(self.descriptor),
            window: U32::new(self.settings.window),
            threshold: U32::new(self.settings.threshold),
            mtu: U32::new(self.settings.mtu),
            place: self.place,
        };
        zerocopy::transmute!(body)
    }
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Body {
    version: U16,
    port: U16,
    address: [u8; 4],
    descriptor: U32,
    window: U32,
    threshold: U32,
    mtu: U32,
    place: [u8; PLACE_LEN],
}

const _: () = assert!(WAKEUP_LEN == 40);

const VERSION: u16 = 2;
