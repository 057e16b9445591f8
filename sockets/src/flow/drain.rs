//! Taking doorbells off TCP.

use sys::errno::Errno;
use sys::sync::Ordering;

use super::back::back_at;
use super::shows::is_refusal;
use super::{Flow, Stop};
use crate::kernel::Kernel;

impl Flow {
    /// Takes doorbells off the connection, in a turn of side [`RECEIVE`](super::RECEIVE); notes if TCP has ended. Arm afterwards.
    ///
    /// # Errors
    /// If TCP's bytes cannot be told apart any more.
    pub fn drain(&self, kernel: &impl Kernel) -> Result<(), Stop> {
        self.take_bells(kernel, |room| kernel.recv(room).map(Some))
            .map(drop)
    }

    /// As [`Flow::drain`], where others may sleep on the same doorbells: those that rang for what is still there stay, for who has not got up yet would find none,
    /// and sleep on. Whether some did.
    ///
    /// # Errors
    /// As [`Flow::drain`].
    pub fn drain_beside_others(&self, kernel: &impl Kernel) -> Result<bool, Stop> {
        let rx = self.stream.rx();
        self.take_bells(kernel, |room| {
            rx.arm();
            let there = kernel.peek(room)?;
            if there == 0 {
                return Ok(Some(0));
            }
            // Whoever rang had said before what for; and what comes after this look is rung for, unless somebody has taken what was asked above: who was asked for
            // bytes before, and rings for them only now, takes that, too, and would not ring for those that come next.
            if !rx.settled() || !rx.is_armed() {
                return Ok(None);
            }
            match room.get_mut(..there) {
                Some(rung) => kernel.recv(rung).map(Some),
                None => Ok(None),
            }
        })
    }

    /// Takes doorbells off by `take`, which says `None` to leave them; whether it did.
    fn take_bells(
        &self,
        kernel: &impl Kernel,
        take: impl Fn(&mut [u8]) -> Result<Option<usize>, Errno>,
    ) -> Result<bool, Stop> {
        if !self.receives_on_ring() || self.is_read_to_its_end() || self.is_called(kernel) {
            return Ok(false);
        }
        let mut scratch = [0; 64];
        let rx = self.stream.rx();
        for _ in 0..READS {
            let limit = match back_at(rx) {
                None => scratch.len(),
                Some(end) => usize::try_from(end.saturating_sub(self.taken_in_all(kernel)?))
                    .unwrap_or(usize::MAX)
                    .min(scratch.len()),
            };
            if limit == 0 {
                return Ok(false);
            }
            let Some(room) = scratch.get_mut(..limit) else {
                return Ok(false);
            };
            match take(room) {
                Ok(None) => return Ok(true),
                // What the kernel says of a receiving side that the program has shut says nothing of the peer.
                Ok(Some(0)) if !kernel.has_ended() => {
                    self.shut_read();
                    return Ok(false);
                }
                Ok(Some(0)) => {
                    self.note_last();
                    return Ok(false);
                }
                Ok(Some(n)) => {
                    self.took_bell.store(1, Ordering::Relaxed);
                    self.count(n);
                    // The sender may have gone back to TCP while we read: what lies after that point are its bytes.
                    if let Some(end) = back_at(rx) {
                        let Ok(taken) = self.taken_in_all(kernel) else {
                            self.abort(kernel);
                            return Ok(false);
                        };
                        let beyond = usize::try_from(taken.saturating_sub(end))
                            .unwrap_or(usize::MAX)
                            .min(n);
                        if let Some(bytes) = scratch.get(n - beyond..n) {
                            rx.put_back(bytes)?;
                        }
                    }
                    if n < limit {
                        return Ok(false);
                    }
                }
                Err(Errno::AGAIN) => return Ok(false),
                Err(errno) if is_refusal(errno) => return Err(errno.into()),
                Err(errno) => {
                    self.note_error(errno);
                    return Ok(false);
                }
            }
        }
        Ok(false)
    }

    /// As [`Flow::drain`], where TCP has ended for all that is known: the end may lie behind a doorbell, which a read stops at.
    ///
    /// # Errors
    /// As [`Flow::drain`].
    pub fn drain_to_end(&self, kernel: &impl Kernel) -> Result<(), Stop> {
        self.drain(kernel)?;
        self.drain(kernel)
    }

    /// Whether a doorbell was taken off the connection since this was last asked. Others may have waited for it: see
    /// [`epoll::rang`](crate::epoll::rang).
    #[inline]
    pub fn took_bell(&self) -> bool {
        self.took_bell.load(Ordering::Relaxed) != 0
            && self.took_bell.swap(0, Ordering::Relaxed) != 0
    }
}

/// Doorbells are few. Who sends more must not keep a call here: it goes on at the next one.
pub(super) const READS: u32 = 64;
