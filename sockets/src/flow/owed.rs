//! What a sender owes to a receiver that has called its direction back: the bytes on the ring, over TCP.

use std::time::Duration;

use sys::errno::Errno;
use sys::stream::{Corrupt, Tx};
use sys::sync::Ordering;

use super::back::SERVED;
use super::{Flow, Stop};
use crate::kernel::Kernel;

impl Flow {
    /// Serves a receiver that wants its direction back on TCP, in a turn of side [`SEND`](super::SEND): what it has not taken goes there. True when done.
    ///
    /// Not in its callers, who seldom have to, on whatever stack.
    ///
    /// # Errors
    /// TCP's.
    #[inline(never)]
    pub fn serve_back(&self, kernel: &impl Kernel) -> Result<bool, Stop> {
        let tx = self.stream.tx();
        if !tx.back_wanted() {
            return Ok(true);
        }
        if tx.to_tcp().is_some_and(|at| at & SERVED == 0) {
            return Ok(true);
        }
        if tx.to_tcp().is_none() {
            if self.bell_is_to_come(kernel) {
                return Err(Stop::Again);
            }
            // A direction that never was on the ring goes there and back: the receiver waits for the second step.
            // One count for both: what a native call of another thread writes meanwhile is the program's.
            let written = kernel.written()?;
            if tx.to_ring().is_none() {
                self.go_to_ring(written);
            }
            if tx.drained() != Ok(true) {
                // Before the receiver can see that it is served, and so before the doorbell, which would have it reset, is off TCP.
                self.guard(kernel);
            }
            self.go_to_tcp(written | SERVED);
        }
        let mut chunk = [0; 4096];
        let mut moved = 0;
        // More than the ring holds is left only by a peer that moves its cursor back.
        while moved <= self.stream.size().bytes() {
            let n = tx.unread(0, &mut chunk)?;
            let Some(bytes) = chunk.get(..n) else {
                return Ok(true);
            };
            if bytes.is_empty() {
                self.unguard(kernel);
                self.repeat_end(kernel);
                return Ok(true);
            }
            match self.hear(kernel.send(bytes)) {
                Ok(sent) => {
                    moved += sent;
                    tx.take_back(sent)?;
                }
                Err(Errno::AGAIN) => return Ok(false),
                Err(errno) => {
                    self.give_up(tx);
                    return Err(errno.into());
                }
            }
        }
        Err(Corrupt.into())
    }

    /// Whether [`Flow::serve_back`] is due.
    #[inline]
    pub fn owes_back(&self) -> bool {
        let tx = self.stream.tx();
        // To one who is gone nothing is owed, but to the heirs of one that left.
        tx.back_wanted()
            && (!self.has_ended() || tx.is_left())
            && tx
                .to_tcp()
                .is_none_or(|at| at & SERVED != 0 && tx.drained() == Ok(false))
    }

    /// Has the connection reset if this process is killed before all is on TCP: an end there would say that it was. In a turn of side
    /// [`SEND`](super::SEND).
    fn guard(&self, kernel: &impl Kernel) {
        let options = self.stream.options();
        if options.fetch_or(GUARDED, Ordering::Relaxed) & GUARDED == 0 {
            self.guard.store(kept(kernel.linger()), Ordering::Relaxed);
            kernel.reset_on_close();
        }
    }

    /// All is there: the connection lingers as the program has it, or as it has set it since. Where another process has guarded it, it does not linger.
    fn unguard(&self, kernel: &impl Kernel) {
        let kept = self.guard.swap(NOT, Ordering::Relaxed);
        let options = self.stream.options();
        if options.fetch_and(!GUARDED, Ordering::Relaxed) & GUARDED != 0 && kernel.resets_on_close()
        {
            kernel.set_linger(linger(kept));
        }
    }

    /// Gives up what cannot be put on TCP for a receiver that has left.
    pub(super) fn give_up(&self, tx: Tx<'_>) {
        if tx.is_left() {
            let _ = tx.take_back(usize::try_from(self.unread()).unwrap_or_default());
        }
    }
}

/// Among the options of an end: it is guarded. The others are in `conn::option` and `ends`.
const GUARDED: u32 = 8;

/// `SO_LINGER` as a guarded connection keeps it: seconds, plus 1.
fn kept(linger: Option<Duration>) -> u64 {
    linger.map_or(NOT, |time| time.as_secs().saturating_add(1))
}

/// And back.
fn linger(kept: u64) -> Option<Duration> {
    kept.checked_sub(1).map(Duration::from_secs)
}

/// It is not to linger.
const NOT: u64 = 0;
