//! What becomes of one packet on the way.

use std::fmt;
use std::time::Duration;

use crate::config::{FabricConfig, Noise};
use crate::fault::Act;
use crate::random::Random;

/// What becomes of one packet.
pub(crate) enum Fate {
    Lost(&'static str),
    Arrives {
        twice: bool,
        corrupt_bit: Option<u64>,
        late: Duration,
    },
    Disconnects,
}

/// What chance has in store for one packet.
///
/// Every packet draws the same numbers, so that one knob does not move what the others decide.
pub(crate) struct Lot {
    lost: bool,
    corrupt: bool,
    twice: bool,
    late: bool,
    bit: u64,
    lateness: Duration,
}

impl Lot {
    /// Draws for a packet of `len` bytes.
    pub(crate) fn draw(random: &mut Random, noise: Noise, config: &FabricConfig, len: u64) -> Self {
        let latency_ns = config.latency.as_nanos() as u64;
        Self {
            lost: random.chance(noise.loss_ppm),
            corrupt: random.chance(noise.corrupt_ppm),
            twice: random.chance(noise.duplicate_ppm),
            late: random.chance(noise.reorder_ppm),
            bit: random.below(len * 8),
            // Late enough for the next to overtake it.
            lateness: Duration::from_nanos(latency_ns + random.below(2 * latency_ns + 1) + 1),
        }
    }

    /// What happens when nothing is planned.
    pub(crate) fn by_chance(&self) -> Fate {
        if self.lost {
            return Fate::Lost("lost");
        }
        Fate::Arrives {
            twice: self.twice && !self.corrupt,
            corrupt_bit: self.corrupt.then_some(self.bit),
            late: match self.late && !self.corrupt {
                true => self.lateness,
                false => Duration::ZERO,
            },
        }
    }

    /// What happens when `act` is planned.
    pub(crate) fn by_plan(&self, act: Act) -> Fate {
        let (corrupt_bit, late) = match act {
            Act::Drop => return Fate::Lost("dropped"),
            Act::Disconnect => return Fate::Disconnects,
            Act::Corrupt => (Some(self.bit), Duration::ZERO),
            Act::Delay(late) => (None, late),
        };
        Fate::Arrives {
            twice: false,
            corrupt_bit,
            late,
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(how) => write!(f, ": {how}"),
            Self::Disconnects => f.write_str(": disconnects"),
            Self::Arrives {
                twice,
                corrupt_bit,
                late,
            } => {
                if *twice {
                    f.write_str(": twice")?;
                }
                if let Some(bit) = corrupt_bit {
                    write!(f, ": bit {bit} changed")?;
                }
                if !late.is_zero() {
                    write!(f, ": {late:?} late")?;
                }
                Ok(())
            }
        }
    }
}
