//! How many packets an end has room for.

use thiserror::Error;

/// Largest window.
pub const WINDOW_MAX: u32 = 4096;

/// What one end has room for: DATA and WAKEUP packets, and the others that can come in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// *w*: packets that the peer may send without an acknowledgement; 0 is without a window.
    pub window: u32,
    /// *t*: packets that are acknowledged together; 0 without a window.
    pub threshold: u32,
    /// Most bytes of a DATA packet.
    pub mtu: u32,
}

/// Why settings are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadSettings {
    /// Not 1 to [`WINDOW_MAX`].
    #[error("window")]
    Window,
    /// Not 1 to the window.
    #[error("threshold")]
    Threshold,
    /// Less than a WAKEUP packet needs, or more than a VI moves.
    #[error("maximum transfer unit")]
    Mtu,
}

impl Settings {
    /// Packets of at most `mtu` bytes, `window` outstanding, acknowledged `threshold` at a time.
    ///
    /// # Errors
    /// Outside the bounds that are given there.
    pub fn new(window: u32, threshold: u32, mtu: u32) -> Result<Self, BadSettings> {
        if window == 0 || window > WINDOW_MAX {
            return Err(BadSettings::Window);
        }
        if threshold == 0 || threshold > window {
            return Err(BadSettings::Threshold);
        }
        if !(MTU_MIN..=MTU_MAX).contains(&mtu) {
            return Err(BadSettings::Mtu);
        }
        Ok(Self {
            window,
            threshold,
            mtu,
        })
    }

    /// Packets of at most `mtu` bytes, as many as the NIC lets through: it holds a sender back whose packets find no descriptor.
    ///
    /// # Errors
    /// [`BadSettings::Mtu`].
    pub fn without_window(mtu: u32) -> Result<Self, BadSettings> {
        let settings = Self::new(1, 1, mtu)?;
        Ok(Self {
            window: 0,
            threshold: 0,
            ..settings
        })
    }

    /// Whether packets are counted and acknowledged.
    #[must_use]
    #[inline]
    pub fn has_window(&self) -> bool {
        self.window > 0
    }

    /// *P = w + w/t + 1*: descriptors that are posted before the connection is made. A window of DATA, an ACK for each *t* of our own, and a FIN.
    /// Without a window there is no least number.
    #[must_use]
    pub fn pre_posted(&self) -> u32 {
        match self.window.checked_div(self.threshold) {
            Some(acks) => self.window + acks + 1,
            None => POSTED_WITHOUT_WINDOW,
        }
    }

    /// *P + 1*: places for packets. The last is posted before our FIN leaves, for the FINACK: it may come while all the others are still there.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.pre_posted() + 1
    }
}

impl Default for Settings {
    /// The paper's: *w* = 32, *t* = 16, 32 kB.
    fn default() -> Self {
        Self {
            window: 32,
            threshold: 16,
            mtu: 32 << 10,
        }
    }
}

const POSTED_WITHOUT_WINDOW: u32 = 16;
const MTU_MIN: u32 = 64;
const MTU_MAX: u32 = 1 << 20;
