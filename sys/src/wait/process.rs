//! What the waits of one process tell each other of its CPUs.

use super::Bar;
use crate::sync::Ordering;
use crate::sync::mapped::{AtomicU32, AtomicU64};

/// What they have met.
#[derive(Debug)]
pub(super) struct Process {
    /// The last bar. Two threads that store at once may leave a mixture, which is one as good as either.
    until_ns: AtomicU64,
    len_ns: AtomicU64,
    /// How many threads have waited.
    threads: AtomicU32,
    /// The CPUs, a bit each, where the last yield lost a slice; of more than 64 some share theirs...
    losing: AtomicU64,
    /// ... and since when all did.
    since_ns: [AtomicU64; CPUS],
}

impl Process {
    pub(super) const fn new() -> Self {
        Self {
            until_ns: AtomicU64::new(0),
            len_ns: AtomicU64::new(0),
            threads: AtomicU32::new(0),
            losing: AtomicU64::new(0),
            since_ns: [const { AtomicU64::new(0) }; CPUS],
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

    /// Another thread waits for the first time.
    #[cold]
    pub(super) fn note_thread(&self) {
        self.threads.fetch_add(1, Ordering::Relaxed);
    }

    /// A yield on `cpu` has just lost a slice, until `now_ns`: since when each there has. 0 where no other thread can have had it.
    pub(super) fn losing_since_ns(&self, cpu: usize, now_ns: u64) -> u64 {
        if self.threads.load(Ordering::Relaxed) < 2 {
            return 0;
        }
        let (at, bit) = place(cpu);
        if self.losing.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            self.since_ns[at].store(now_ns, Ordering::Relaxed);
        }
        self.since_ns[at].load(Ordering::Relaxed)
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
        process.note_thread();
        assert_eq!(
            process.losing_since_ns(3, 100),
            0,
            "nobody else can have had it"
        );
        assert!(!process.is_losing());
        process.note_thread();
        assert_eq!(process.losing_since_ns(3, 200), 200);
        assert_eq!(process.losing_since_ns(70, 300), 300);
        assert_eq!(process.losing_since_ns(3, 400), 200);
        process.note_kept(3);
        assert!(process.is_losing());
        assert_eq!(process.losing_since_ns(3, 500), 500);
        assert_eq!(process.losing_since_ns(70, 600), 300);
    }
}
