use crate::{
    mem::{STREAM_MIN, Store},
    sync::{Ordering, fence},
    wait::{Clock, Monotonic},
};

/// Chooses, while it copies, the stores for memory that another core reads: one per target, owned by who writes there.
///
/// Neither kind is right everywhere, and a virtual machine moves between the cases every few seconds to minutes. Where the two CPUs
/// share an L3, plain stores are better for both sides: 64 KiB pieces pass at 14 GB/s against 10, and a copy of 1 MiB takes its
/// writer 46 us against 83. Where they do not, the writer of plain stores waits for each line that the reader still has:
/// 2.2 GB/s against 15. So the writer's own cost tells which case it is. The thresholds lean to plain stores,
/// for the reader of streamed bytes pays as well (13.8 GB/s against 18.5), and the writer does not see that; but little: where others fill a shared L3, plain stores
/// cost the writer 1.25 to 1.6 times as much, and pieces of 64 KiB pass at 12.3 GB/s with them, at 15.1 with streaming ones. Where the reader's
/// cost is [what matters](StoreChoice::copy_for), because the writer is ahead of it, plain stores are used as long as the two share a cache.
///
/// It begins with plain stores, which lose most where they are wrong but are found out within some twenty copies, by a
/// comparison of two kinds that both were just tried. Below [`STREAM_MIN`] nothing is kept and nothing timed.
#[derive(Clone, Debug, Default)]
pub struct StoreChoice {
    classes: [Class; CLASSES],
}

impl StoreChoice {
    /// Calls `copy` for `len` bytes with the stores that are best now. A failed copy teaches nothing.
    ///
    /// One copy in [`SAMPLE`] is timed: two clock reads and a fence.
    ///
    /// # Errors
    /// Those of `copy`.
    #[inline]
    pub fn copy<R, E>(
        &mut self,
        len: usize,
        copy: impl FnOnce(Store) -> Result<R, E>,
    ) -> Result<R, E> {
        self.copy_for(|| false, len, copy)
    }

    /// As [`StoreChoice::copy`], but with the stores that are better for the reader if `favours_reader` says that the reader's cost is what matters, and the two share a
    /// cache. It is asked where that would change anything.
    ///
    /// # Errors
    /// Those of `copy`.
    #[inline]
    pub fn copy_for<R, E>(
        &mut self,
        favours_reader: impl FnOnce() -> bool,
        len: usize,
        copy: impl FnOnce(Store) -> Result<R, E>,
    ) -> Result<R, E> {
        if len < STREAM_MIN {
            return copy(Store::Plain);
        }
        self.copy_timed(&Monotonic, favours_reader, len, copy)
    }

    #[inline]
    fn copy_timed<R, E>(
        &mut self,
        clock: &impl Clock,
        favours_reader: impl FnOnce() -> bool,
        len: usize,
        copy: impl FnOnce(Store) -> Result<R, E>,
    ) -> Result<R, E> {
        let class = &mut self.classes[class_of(len)];
        let (mut store, timed, trial) = class.next();
        if (store == Store::Streaming || trial) && class.is_near() && favours_reader() {
            // What is tried is what is not used: else nobody would notice that the CPUs have moved apart.
            store = if trial {
                Store::Streaming
            } else {
                Store::Plain
            };
        }
        if !timed {
            return copy(store);
        }
        let before_ns = clock.now_ns();
        let result = copy(store)?;
        // Up to 4 KiB of plain stores fit into the store buffer, and have cost nothing until it drains.
        fence(Ordering::SeqCst);
        class.learn(store, cost(len, clock.now_ns().saturating_sub(before_ns)));
        Ok(result)
    }
}

/// What is known of copies of about the same size: their fixed costs differ too much to be compared with others.
#[derive(Clone, Debug)]
struct Class {
    chosen: Store,
    /// Smoothed costs, 0 before the first sample.
    plain: u32,
    streaming: u32,
    copies: u32,
    /// How many copies there are between two trials of the kind that is not chosen.
    interval: u32,
}

impl Class {
    /// The stores of the next copy, whether to time it, and whether it is one of a trial.
    #[inline]
    fn next(&mut self) -> (Store, bool, bool) {
        self.copies += 1;
        if self.copies <= self.interval {
            return (self.chosen, self.copies.is_multiple_of(SAMPLE), false);
        }
        if self.copies == self.interval + TRIAL {
            self.copies = 0;
            self.interval = (self.interval * 2).min(INTERVAL_MAX);
        }
        (other(self.chosen), true, true)
    }

    /// Whether plain stores, as far as known, cost the writer no more than where the two CPUs share an L3.
    #[inline]
    fn is_near(&self) -> bool {
        self.streaming != 0 && self.plain < FAR_RATIO * self.streaming
    }

    fn learn(&mut self, store: Store, sample: u32) {
        let known = match store {
            Store::Streaming => &mut self.streaming,
            Store::Plain | Store::Own => &mut self.plain,
        };
        *known = match *known {
            0 => sample,
            // What was lost to others does not come again.
            known if sample < known => (known + 3 * sample) / 4,
            // Up by no more than double, for one lost time slice is a thousandfold.
            known => known + (sample - known).min(4 * known) / 4,
        };
        self.choose();
    }

    fn choose(&mut self) {
        if self.plain == 0 || self.streaming == 0 {
            return;
        }
        let best = match self.chosen {
            Store::Plain if 3 * self.plain > 4 * self.streaming => Store::Streaming,
            Store::Streaming if self.plain < self.streaming => Store::Plain,
            chosen => chosen,
        };
        if best != self.chosen {
            *self = Self {
                chosen: best,
                copies: 0,
                interval: INTERVAL_MIN,
                ..*self
            };
        }
    }
}

impl Default for Class {
    fn default() -> Self {
        Self {
            chosen: Store::Plain,
            plain: 0,
            streaming: 0,
            copies: 0,
            interval: INTERVAL_MIN,
        }
    }
}

const fn other(store: Store) -> Store {
    match store {
        Store::Streaming => Store::Plain,
        Store::Plain | Store::Own => Store::Streaming,
    }
}

fn class_of(len: usize) -> usize {
    usize::from(len >= 16 << 10) + usize::from(len >= 64 << 10)
}

/// Nanoseconds per 16 KiB, from 1 to a bound that leaves room to calculate.
fn cost(len: usize, ns: u64) -> u32 {
    let cost = ns.saturating_mul(16 << 10) / len as u64;
    u32::try_from(cost.clamp(1, 1 << 24)).unwrap_or(u32::MAX)
}

const CLASSES: usize = 3;
/// One copy in so many is timed.
pub const SAMPLE: u32 = 8;
/// So many times as much as streaming stores plain ones cost only where the CPUs share no L3.
const FAR_RATIO: u32 = 3;
/// Copies in a row with the kind that is not chosen.
const TRIAL: u32 = 2;
/// Copies between trials: few at first and after each change, then so many that a trial which costs ninefold costs 3 %.
const INTERVAL_MIN: u32 = 8;
const INTERVAL_MAX: u32 = 512;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn near_costs_keep_plain_stores() {
        let mut machine = Machine::new(NEAR);
        assert_eq!(machine.streamed(64 << 10, 2000), 2 * TRIALS);
    }

    #[test]
    fn costs_of_a_crowded_cache_are_found_out() {
        let mut machine = Machine::new(CROWDED);
        machine.streamed(64 << 10, 200);
        assert!(machine.streamed(64 << 10, 2000) >= 1980);
    }

    #[test]
    fn far_costs_are_found_out_within_twenty_copies() {
        for len in [4096, 16 << 10, 1 << 20] {
            let mut machine = Machine::new(FAR);
            machine.streamed(len, 20);
            assert_eq!(machine.streamed(len, 8), 8, "{len}");
            assert!(machine.streamed(len, 2000) >= 1980, "{len}");
        }
    }

    #[test]
    fn the_reader_is_spared_unless_it_is_far() {
        for costs in [CROWDED, NEAR, FAR] {
            let mut machine = Machine::new(costs);
            machine.streamed(64 << 10, 200);
            machine.favours_reader = true;
            let streamed = machine.streamed(64 << 10, 2000);
            assert!(if costs == FAR {
                streamed >= 1980
            } else {
                streamed <= 2 * TRIALS
            });
            machine.favours_reader = false;
            let streamed = machine.streamed(64 << 10, 2000);
            assert!(costs == NEAR || streamed >= 1970, "{costs:?}: {streamed}");
        }
    }

    #[test]
    fn a_reader_who_is_always_behind_hides_no_change_of_place() {
        // The first streaming copies may find pages that are not there yet.
        for first in [NEAR, [2000, 2000]] {
            let mut machine = Machine::new(first);
            machine.favours_reader = true;
            machine.streamed(64 << 10, 30);
            machine.costs = NEAR;
            machine.streamed(64 << 10, 5000);
            machine.costs = FAR;
            machine.streamed(64 << 10, 600);
            assert!(machine.streamed(64 << 10, 1000) >= 980);
            machine.costs = NEAR;
            machine.streamed(64 << 10, 600);
            assert!(machine.streamed(64 << 10, 1000) <= 20);
        }
    }

    #[test]
    fn a_change_of_place_is_followed() {
        let mut machine = Machine::new(NEAR);
        machine.streamed(64 << 10, 5000);
        for _ in 0..3 {
            machine.costs = FAR;
            machine.streamed(64 << 10, 3 * SAMPLE);
            assert!(machine.streamed(64 << 10, 1000) >= 980);
            machine.costs = NEAR;
            machine.streamed(64 << 10, INTERVAL_MAX + TRIAL);
            assert!(machine.streamed(64 << 10, 1000) <= 20);
        }
    }

    #[test]
    fn a_lost_time_slice_changes_nothing() {
        for costs in [NEAR, FAR] {
            let mut machine = Machine::new(costs);
            machine.streamed(64 << 10, 1000);
            for _ in 0..100 {
                machine.lost_ns = 4_000_000;
                machine.streamed(64 << 10, 1);
                machine.lost_ns = 0;
                let streamed = machine.streamed(64 << 10, 99);
                assert!(if costs == FAR {
                    streamed >= 95
                } else {
                    streamed <= 4
                });
            }
        }
    }

    #[test]
    fn small_and_failed_copies_teach_nothing() {
        let mut machine = Machine::new(FAR);
        assert_eq!(machine.streamed(4095, 1000), 0);
        let mut choice = StoreChoice::default();
        for _ in 0..1000 {
            assert_eq!(choice.copy(8192, |_| Err::<(), _>(7)), Err(7));
        }
        assert!(choice.classes.iter().all(|class| class.plain == 0));
    }

    /// A machine with given costs of plain and of streaming stores, in ns per 4 KiB.
    struct Machine {
        costs: [u64; 2],
        favours_reader: bool,
        lost_ns: u64,
        now_ns: Cell<u64>,
        choice: StoreChoice,
    }

    impl Machine {
        fn new(costs: [u64; 2]) -> Self {
            Self {
                costs,
                favours_reader: false,
                lost_ns: 0,
                now_ns: Cell::new(0),
                choice: StoreChoice::default(),
            }
        }

        /// Copies `times` times, and counts the streaming ones.
        fn streamed(&mut self, len: usize, times: u32) -> u32 {
            let mut streamed = 0;
            for _ in 0..times {
                let copy = |store| {
                    let cost = match store {
                        Store::Streaming => self.costs[1],
                        Store::Plain | Store::Own => self.costs[0],
                    };
                    streamed += u32::from(store == Store::Streaming);
                    self.now_ns
                        .set(self.now_ns.get() + cost * len as u64 / 4096 + self.lost_ns);
                    Ok::<_, ()>(())
                };
                let result = if len < STREAM_MIN {
                    self.choice.copy(len, copy)
                } else {
                    let favours_reader = || self.favours_reader;
                    self.choice
                        .copy_timed(&Hand(&self.now_ns), favours_reader, len, copy)
                };
                result.expect("it cannot fail");
            }
            streamed
        }
    }

    struct Hand<'a>(&'a Cell<u64>);

    impl Clock for Hand<'_> {
        fn now_ns(&self) -> u64 {
            self.0.get()
        }

        fn pause(&self) {}

        fn yield_now(&self) {}
    }

    const NEAR: [u64; 2] = [200, 370];
    const FAR: [u64; 2] = [1900, 230];
    const CROWDED: [u64; 2] = [350, 240];
    /// Trials in 2000 copies, at intervals of 8, 16, up to 512.
    const TRIALS: u32 = 8;
}
