//! The time between two polls.

use std::sync::OnceLock;
use std::time::Instant;

use crate::quiet::once;

/// Passes the time between two polls of memory that another CPU writes: about [`PAUSE_NS`].
///
/// A poll takes the line away from the writer, who must get it back before he can write. Where polls follow each other as closely
/// as one `pause` instruction allows (10 ns on some machines, 60 on others) almost every hand-off pays for that.
#[inline]
pub fn pause() {
    for _ in 0..*calibrate() {
        std::hint::spin_loop();
    }
}

/// Passes half as long, between two polls of a wait. As the writer does not read what it has written (decision 27), a poll costs it nothing more: 64 B there and
/// back through `epoll` take 0.50 to 0.53 µs with this, 0.53 to 0.55 with a whole one, and with a quarter the same.
#[inline]
pub(super) fn pause_in_wait() {
    for _ in 0..(calibrate() / 2).max(1) {
        std::hint::spin_loop();
    }
}

/// Lets a peer answer what has just been sent: a look at the line that it is about to write takes that away from it. 8 bytes there and back by
/// [notes](crate::ring::Note) take 167 ns each way without, 129 with half a [`pause`], 136 with one, 154 with two.
#[inline]
pub fn let_answer() {
    pause_in_wait();
}

/// Lets a sender of small messages write a few before one looks again. Who looks after each takes the line away from the sender each time, which
/// costs both more than the message.
#[inline]
pub fn let_gather() {
    for _ in 0..GATHER_PAUSES {
        pause();
    }
}

/// With 64-byte messages: without, 4.5 million a second; with 4 pauses 10.5, with 8 11.8.
const GATHER_PAUSES: u32 = 8;

/// How many `pause` instructions take [`PAUSE_NS`]; measured once in a process.
#[inline]
pub(super) fn calibrate() -> &'static u32 {
    static PAUSES: OnceLock<u32> = OnceLock::new();
    once(&PAUSES, || {
        let once = || {
            let start = Instant::now();
            for _ in 0..PAUSES_TIMED {
                std::hint::spin_loop();
            }
            u32::try_from(start.elapsed().as_nanos()).unwrap_or(u32::MAX)
        };
        // The best of a few, for any of them may have been interrupted.
        let best_ns = (0..3).map(|_| once()).min().unwrap_or(0).max(1);
        (PAUSE_NS * PAUSES_TIMED)
            .div_ceil(best_ns)
            .clamp(1, PAUSE_NS)
    })
}

/// Between two polls. With 10 ns an 8-byte frame takes 130 ns one way; with 40, 75 or 130, as the two sides happen to fall into step;
/// with 50, 80 to 105; with 100, 115: by then it is noticed late.
pub const PAUSE_NS: u32 = 50;

const PAUSES_TIMED: u32 = 32;

/// How many CPUs this host has online; 1 when the kernel does not say.
///
/// Not how many this thread may use: one that is bound to a CPU of its own does best to poll for a peer on another, and where both are bound to the same, yielding
/// hands over sooner than sleeping.
pub fn cpus() -> usize {
    // It is read from a file, and asked for with each connection.
    static KNOWN: OnceLock<usize> = OnceLock::new();
    *once(&KNOWN, || {
        // SAFETY: asks for a number.
        let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        usize::try_from(online).map_or(1, |online| online.max(1))
    })
}
