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
    last != turn && (is_long_over(last, turn) || !is_barred())
}

/// Who asks for the first time, or seldom, is no one who keeps a CPU.
fn is_long_over(last: u64, turn: u64) -> bool {
    (1..=SELDOM).contains(&(turn / BARRED_TURNS).saturating_sub(last / BARRED_TURNS))
}

/// The number of the time in which `now_ns` is.
#[inline]
pub(super) fn turn(now_ns: u64) -> u64 {
    now_ns / TURNS_NS
}

/// A slice of 4 ms in each 131 is 3 %. Beside several hogs it is away for longer, as it is after each slice of its own.
pub(super) const BARRED_TURNS: u64 = 256;

/// A hundred others of a whole slice each.
const SELDOM: u64 = 4;
