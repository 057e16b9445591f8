//! How long connections last, learned from those that have ended, and when it is best for the next one to leave TCP.
//!
//! To leave TCP costs both ends as much as some dozens of turns over it. A connection that ends soon afterwards does not earn that, and one that lasts gains
//! nothing by waiting. Nobody knows which of both a young one is, but those to one port are mostly alike. So each that ends is asked what it would have
//! cost it to leave at each [`Level`], and the next to that port leaves at the one that would have been best for those before it, the last ones above all. Both
//! ends see the same connections, so they mostly find the same. See [decision 63](../../docs/decisions/0063-lifetimes.md).
//!
//! What is learned is a process's and of those that it forks, and is lost with them.

use sys::family::Words;
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU64;

use self::cost::cost_us;

mod cost;

/// When a connection leaves TCP: after so many turns, or so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Changes between sending and receiving.
    pub turns: u32,
    /// In both directions together.
    pub bytes: u64,
}

impl Level {
    /// Where connections last.
    pub const SOON: Self = Self {
        turns: 8,
        bytes: 128 << 10,
    };
    /// Where nothing is known.
    pub const USUAL: Self = Self {
        turns: 48,
        bytes: 1 << 20,
    };
    /// Where they do not.
    pub const LATE: Self = Self {
        turns: 512,
        bytes: 16 << 20,
    };
    /// From the first to the last.
    pub(crate) const ALL: [Self; 3] = [Self::SOON, Self::USUAL, Self::LATE];
}

/// Connections that are alike: those that a process begins to a port, or that come to one of its.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(u32);

impl Kind {
    /// Those of an end that called `connect`, if it `opens`, and of a server's `port`. Ports that the kernel gave are all one: they say nothing of who is there.
    pub(crate) fn new(opens: bool, port: u16) -> Self {
        let port = if port < GIVEN { port } else { GIVEN };
        Self(u32::from(port) << 2 | u32::from(opens) << 1 | 1)
    }

    /// As one word, which is neither 0 nor the greatest.
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// What has that number.
    pub(crate) fn from_number(number: u32) -> Self {
        Self(number & TAG)
    }

    fn word(self, words: &[AtomicU64; LEN]) -> Option<&AtomicU64> {
        let mixed = (self.0 >> 1).wrapping_mul(0x9e37_79b1);
        words.get((mixed >> (u32::BITS - LEN.ilog2())) as usize)
    }
}

/// The family begins here: children that are born from now on learn from each other.
pub(crate) fn share() {
    let _ = WORDS.get();
}

/// When the next connection of that kind is to leave TCP.
pub(crate) fn level(kind: Kind) -> Level {
    let word = WORDS.get().and_then(|words| kind.word(words));
    word.map_or(Level::USUAL, |word| {
        Regrets::of(kind, word.load(Ordering::Relaxed)).least()
    })
}

/// One has ended after so many turns and bytes.
pub(crate) fn note(kind: Kind, turns: u32, bytes: u64) {
    if let Some(word) = WORDS.get().and_then(|words| kind.word(words)) {
        let costs = Level::ALL.map(|level| cost_us(level, turns, bytes));
        let before = word.load(Ordering::Relaxed);
        let now = Regrets::of(kind, before).with(costs);
        // A lesson that two threads lose is worth less than a locked instruction.
        word.store(now.word(kind), Ordering::Relaxed);
    }
}

/// How much longer connections took by leaving at each level than at the best for each of them: microseconds, on average, the last one counting most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Regrets([u64; 3]);

impl Regrets {
    /// As if there had been some of either sort before. It takes two that last for the next to leave soon, and some that end in vain for it to leave late.
    const NONE: Self = Self([120, 60, 100]);

    fn of(kind: Kind, word: u64) -> Self {
        if word as u32 & TAG != kind.number() {
            return Self::NONE;
        }
        Self([0, 1, 2].map(|index| word >> (TAG_BITS + index * BITS) & MOST))
    }

    fn word(self, kind: Kind) -> u64 {
        let [soon, usual, late] = self.0;
        u64::from(kind.number())
            | soon << TAG_BITS
            | usual << (TAG_BITS + BITS)
            | late << (TAG_BITS + 2 * BITS)
    }

    fn with(self, costs: [u64; 3]) -> Self {
        let best = costs.into_iter().min().unwrap_or(0);
        let mut now = self.0;
        for (regret, cost) in now.iter_mut().zip(costs) {
            *regret = (*regret - *regret / WEIGHT + (cost - best) / WEIGHT).min(MOST);
        }
        Self(now)
    }

    fn least(self) -> Level {
        let [soon, usual, late] = self.0;
        if usual <= soon.min(late) {
            Level::USUAL
        } else if soon <= late {
            Level::SOON
        } else {
            Level::LATE
        }
    }
}

/// By kind. In each the number of the kind, and three averages.
static WORDS: Words<LEN> = Words::new();
/// A page.
const LEN: usize = 512;
const TAG_BITS: u32 = 18;
const TAG: u32 = (1 << TAG_BITS) - 1;
const BITS: u32 = 15;
const MOST: u64 = (1 << BITS) - 1;
/// The last connection is an eighth of the average.
const WEIGHT: u64 = 8;
/// Linux gives ports from here on, if it is not told otherwise.
const GIVEN: u16 = 32768;

#[cfg(all(test, not(loom)))]
mod tests;
