//! How long a thread keeps its CPU while it is always answered in time.
//!
//! Who finds each answer while he pauses never yields, and so never finds out that others want his CPU. Of fifty threads with a connection each, on one CPU, one had
//! its answers in 0.2 us for a slice of the kernel's, and then each of the others, and it again 300 ms later; and to each that yielded the others were hogs.
//! So the first wait of each thread in each of the [times](TURNS_NS) that all processes share yields first. As all who keep a CPU do so at once, each is back soon, and has met the crowd.
//! Who has lost a slice to a hog in that way does it only in the first of [`BARRED_TURNS`] of these times.

use super::TURNS_NS;

/// Whether a thread that has last asked in the turn `last` is to yield at `now_ns`.
#[inline]
pub(super) fn is_over(last: u64, now_ns: u64, is_barred: impl FnOnce() -> bool) -> bool {
    let turn = turn(now_ns);
    last != turn && (last / BARRED_TURNS != turn / BARRED_TURNS || !is_barred())
}

/// The number of the time in which `now_ns` is.
#[inline]
pub(super) fn turn(now_ns: u64) -> u64 {
    now_ns / TURNS_NS
}

/// A slice of 4 ms in each 131 is 3 %.
pub(super) const BARRED_TURNS: u64 = 256;
