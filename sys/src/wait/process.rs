//! What the waits of one process tell each other of its CPUs.

use super::{BAR_MAX_NS, Bar};
use crate::sync::Ordering;
use crate::sync::mapped::AtomicU64;

/// What they have met.
#[derive(Debug)]
pub(super) struct Process {
    /// The last bar. Two threads that store at once may leave a mixture, which is one as good as either.
    until_ns: AtomicU64,
    len_ns: AtomicU64,
    /// How many threads have asked for a [turn](super::keeping), in its lower half; in the upper the generation of the process, for a child of a fork has one.
    threads: AtomicU64,
    /// The CPUs, a bit each, where the last yield lost a slice, and no crowd was known; of more than 64 some share theirs.
    losing: AtomicU64,
    since_ns: [AtomicU64; CPUS],
    last_ns: [AtomicU64; CPUS],
}

impl Process {
    pub(super) const fn new() -> Self {
        Self {
            until_ns: AtomicU64::new(0),
            len_ns: AtomicU64::new(0),
            threads: AtomicU64::new(0),
            losing: AtomicU64::new(0),
            since_ns: [const { AtomicU64::new(0) }; CPUS],
            last_ns: [const { AtomicU64::new(0) }; CPUS],
        }
    }

    pub(super) fn last_bar(&self) -> Bar {
        Bar {
            until_ns: self.until_ns.load(Ordering::Relaxed),
            len_ns: self.len_ns.load(Ordering::Relaxed),
        }
    }

    pub(super) fn note_bar(&self, bar: Bar) {
        self.until_ns.store(bar.until_ns, Ordering::Relaxed);
        self.len_ns.store(bar.len_ns, Ordering::Relaxed);
    }

    /// A thread asks for the first time.
    #[cold]
    pub(super) fn note_thread(&self, generation: u32) {
        let before = self.threads.load(Ordering::Relaxed);
        let after = if before >> 32 == u64::from(generation) {
            before + 1
        } else {
            // It, and the one that has forked.
            u64::from(generation) << 32 | 2
        };
        // Two at once may count as one.
        self.threads.store(after, Ordering::Relaxed);
    }

    /// A yield on `cpu` has just lost a slice, until `now_ns`: since when each there has. 0 where no other thread can have had it.
    pub(super) fn losing_since_ns(&self, generation: u32, cpu: usize, now_ns: u64) -> u64 {
        let threads = self.threads.load(Ordering::Relaxed);
        if threads < u64::from(generation) << 32 | 2 {
            return 0;
        }
        let (at, bit) = place(cpu);
        let since_ns = &self.since_ns[at];
        let gone_ns = now_ns.saturating_sub(self.last_ns[at].swap(now_ns, Ordering::Relaxed));
        if self.losing.load(Ordering::Relaxed) & bit == 0 || gone_ns > BAR_MAX_NS {
            since_ns.store(now_ns, Ordering::Relaxed);
            self.losing.fetch_or(bit, Ordering::Relaxed);
        }
        since_ns.load(Ordering::Relaxed)
    }

    /// Whether yields on any CPU lose slices.
    #[inline]
    pub(super) fn is_losing(&self) -> bool {
        self.losing.load(Ordering::Relaxed) != 0
    }

    /// A yield on `cpu` has lost none.
    #[cold]
    pub(super) fn note_kept(&self, cpu: usize) {
        let (_, bit) = place(cpu);
        if self.losing.load(Ordering::Relaxed) & bit != 0 {
            self.losing.fetch_and(!bit, Ordering::Relaxed);
        }
    }
}

fn place(cpu: usize) -> (usize, u64) {
    let at = cpu % CPUS;
    (at, 1 << at)
}

const CPUS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_known_since_when_a_cpu_loses_slices() {
        let process = Process::new();
        process.note_thread(0);
        let losing_since_ns = |cpu, now_ns| process.losing_since_ns(0, cpu, now_ns);
        assert_eq!(losing_since_ns(3, 100), 0, "nobody else can have had it");
        assert!(!process.is_losing());
        process.note_thread(0);
        assert_eq!(losing_since_ns(3, 200), 200);
        assert_eq!(losing_since_ns(70, 300), 300);
        assert_eq!(losing_since_ns(3, 400), 200);
        process.note_kept(3);
        assert!(process.is_losing());
        assert_eq!(losing_since_ns(3, 500), 500);
        assert_eq!(losing_since_ns(70, 600), 300);
        assert_eq!(losing_since_ns(3, 501 + BAR_MAX_NS), 501 + BAR_MAX_NS);
    }

    #[test]
    fn a_child_has_one_thread() {
        let process = Process::new();
        for _ in 0..50 {
            process.note_thread(0);
        }
        assert_eq!(process.losing_since_ns(1, 3, 100), 0);
        process.note_thread(1);
        assert_eq!(process.losing_since_ns(1, 3, 200), 200);
    }
}
