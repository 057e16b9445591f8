use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What carries the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Transport {
    /// kernel TCP over loopback, TCP_NODELAY, cubic
    Tcp,
    /// Unix stream sockets
    Unix,
    /// a Virtual Interface
    Vi,
}

/// How an end learns that something has come: the paper's "synchronization".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Wait {
    /// ask again and again
    Poll,
    /// sleep in the kernel at once
    Block,
    /// poll for some microseconds, then sleep: what a VI does unless told otherwise (VI on two CPUs only)
    Adaptive,
}

/// Where the two processes run: the paper's uni- and dual-processor columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Placement {
    /// both on the same CPU
    One,
    /// each on a CPU of its own
    Two,
}

/// Who sends when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pattern {
    /// One message there, one back.
    PingPong,
    /// Messages one way, an acknowledgement after each block of them.
    Stream,
    /// Both ends send at the same time.
    Bidirectional,
    /// RDMA writes one way, then one message that says so.
    RdmaWrite,
    /// Connect and disconnect.
    Connect,
}

/// One column: everything about a measurement but the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Column {
    pub(crate) transport: Transport,
    pub(crate) wait: Wait,
    pub(crate) placement: Placement,
    /// Maximum transfer size of the VI; `None` for the NIC's own limit, and for sockets.
    pub(crate) mtu: Option<u32>,
}

impl Column {
    /// Sockets know no adaptive wait, and with one CPU there is nothing to adapt to.
    pub(crate) fn exists(self) -> bool {
        self.wait != Wait::Adaptive
            || (self.transport == Transport::Vi && self.placement == Placement::Two)
    }
}

/// Repetitions: `blocks` intervals are timed, each of `rounds` messages (or round trips).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) pattern: Pattern,
    pub(crate) size: usize,
    pub(crate) rounds: u32,
    pub(crate) blocks: u32,
}

/// How much time one run may take, and in blocks of which length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) run: Duration,
    pub(crate) block: Duration,
}

/// NetPIPE's block sizes: powers of two from `min` to `max`, each also with `perturbation` bytes less and more, so that
/// sizes just beside an internal buffer's show. Sorted, without repetitions.
pub(crate) fn sizes(min: usize, max: usize, perturbation: usize) -> Vec<usize> {
    let mut sizes: Vec<usize> = centres(min, max)
        .into_iter()
        .flat_map(|centre| {
            [
                centre.saturating_sub(perturbation),
                centre,
                centre.saturating_add(perturbation),
            ]
        })
        .filter(|&size| size >= min.max(1))
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The powers of two from `min` to `max`, and both of these themselves.
pub(crate) fn centres(min: usize, max: usize) -> Vec<usize> {
    let min = min.max(1);
    let mut centres = vec![min];
    let powers = std::iter::successors(min.checked_next_power_of_two(), |size| size.checked_mul(2));
    centres.extend(powers.take_while(|&size| size < max));
    centres.push(max.max(min));
    centres.dedup();
    centres
}

impl Job {
    /// One-way messages that pass one after the other in a round; the time of a block is divided by these.
    fn legs(self) -> f64 {
        match self.pattern {
            Pattern::PingPong => 2.0,
            Pattern::Stream | Pattern::Bidirectional | Pattern::RdmaWrite | Pattern::Connect => 1.0,
        }
    }

    /// Nanoseconds a message, from the nanoseconds of a block.
    pub(crate) fn per_message(self, block_ns: u64) -> f64 {
        block_ns as f64 / (f64::from(self.rounds) * self.legs())
    }

    /// The same job with rounds and blocks such that a run takes about `budget`, judged by one block that took
    /// `block_ns`. A long message leaves few blocks, but never fewer than five: below that a median says little.
    pub(crate) fn fitted(self, block_ns: u64, budget: Budget) -> Self {
        let round_ns = (block_ns as f64 / f64::from(self.rounds)).max(1.0);
        let rounds = (budget.block.as_nanos() as f64 / round_ns)
            .ceil()
            .clamp(f64::from(self.pattern.rounds_min()), 1e7);
        let blocks = (budget.run.as_nanos() as f64 / (round_ns * rounds)).clamp(5.0, 100.0);
        Self {
            rounds: rounds as u32,
            blocks: blocks as u32,
            ..self
        }
    }
}

impl Pattern {
    /// A stream of one message would measure the acknowledgement as well.
    pub(crate) fn rounds_min(self) -> u32 {
        match self {
            Self::Stream | Self::RdmaWrite => 4,
            Self::PingPong | Self::Bidirectional | Self::Connect => 1,
        }
    }

    /// Bytes that cross, both ways together, while one message takes its time.
    pub(crate) fn bytes(self, size: usize) -> usize {
        match self {
            Self::Bidirectional => 2 * size,
            Self::PingPong | Self::Stream | Self::RdmaWrite => size,
            Self::Connect => 0,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Unix => "Unix",
            Self::Vi => "VI",
        })
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Poll => "poll",
            Self::Block => "block",
            Self::Adaptive => "adaptive",
        })
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::One => "one CPU",
            Self::Two => "two CPUs",
        })
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.transport, self.wait)?;
        match self.mtu {
            Some(mtu) => write!(f, ", max transfer {mtu}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAPER_MAX: usize = 8 << 20;

    #[test]
    fn the_papers_sizes() {
        let sizes = sizes(1, PAPER_MAX, 3);
        assert_eq!(sizes[..9], [1, 2, 4, 5, 7, 8, 11, 13, 16]);
        assert_eq!(
            sizes[sizes.len() - 3..],
            [PAPER_MAX - 3, PAPER_MAX, PAPER_MAX + 3]
        );
        assert!(sizes.len() <= 72);
    }

    proptest! {
        #[test]
        fn sizes_are_sorted_distinct_and_near_a_centre(
            min in 1usize..100_000, span in 0usize..10_000_000, perturbation in 0usize..64,
        ) {
            let max = min + span;
            let centres = centres(min, max);
            let sizes = sizes(min, max, perturbation);
            prop_assert!(sizes.is_sorted_by(|a, b| a < b));
            prop_assert!(sizes.iter().all(|&size| size >= min && size <= max + perturbation));
            prop_assert!(sizes.iter().all(|&size| centres.iter().any(|&c| c.abs_diff(size) <= perturbation)));
            prop_assert!(centres.iter().all(|centre| sizes.contains(centre)));
            prop_assert!(centres.windows(2).all(|pair| pair[0] < pair[1] && pair[1] <= 2 * pair[0]));
        }

        #[test]
        fn a_fitted_job_keeps_to_its_budget(round_ns in 50u64..20_000_000, run_ms in 5u64..200) {
            let job = Job { pattern: Pattern::PingPong, size: 8, rounds: 10, blocks: 1 };
            let budget = Budget { run: Duration::from_millis(run_ms), block: Duration::from_millis(1) };
            let fitted = job.fitted(10 * round_ns, budget);
            let run_ns = round_ns * u64::from(fitted.rounds) * u64::from(fitted.blocks);
            let least_ns = 5 * round_ns.max(2_000_000);
            prop_assert!(fitted.rounds >= 1 && fitted.blocks >= 5);
            prop_assert!(run_ns <= (run_ms * 1_100_000).max(least_ns), "{fitted:?} takes {run_ns} ns");
        }
    }
}
