//! The way back to TCP.

use sys::errno::Errno;
use sys::stream::Rx;

use super::drain::READS;
use super::{AFTER, BEFORE, Flow, Stop};
use crate::kernel::Kernel;

impl Flow {
    /// Whether both directions have gone back to TCP for good.
    pub(crate) fn is_back_on_tcp(&self) -> bool {
        self.stream.tx().to_tcp().is_some() && self.stream.rx().phase() == AFTER
    }

    /// Whether the receiver has called back what this end sends, and it has gone.
    pub(crate) fn was_called_back(&self) -> bool {
        let tx = self.stream.tx();
        tx.to_tcp().is_some() && tx.back_wanted()
    }

    /// How many of the bytes that wait on TCP are doorbells, where the sender has gone back there.
    ///
    /// # Errors
    /// If the kernel does not say how much was taken.
    pub fn doorbells(&self, kernel: &impl Kernel) -> Result<Option<u64>, Stop> {
        Ok(match back_at(self.stream.rx()) {
            Some(end) => Some(end.saturating_sub(self.taken_in_all(kernel)?)),
            None => None,
        })
    }

    /// Goes back to TCP with what this end sends, in a turn of side [`SEND`](super::SEND). The receiver takes what is in the ring first.
    ///
    /// # Errors
    /// If the kernel does not say how much is on TCP.
    pub fn leave_ring(&self, kernel: &impl Kernel) -> Result<(), Stop> {
        let tx = self.stream.tx();
        if !self.sends_on_ring() {
            return Ok(());
        }
        if tx.back_wanted() {
            return self.serve_back(kernel).map(|_| ());
        }
        // What comes next on TCP wakes whoever sleeps to receive. One who sleeps for room can be rung for no more, and is to find that out.
        if self.stream.rx().knock() {
            self.ring_bell_now(kernel)?;
        }
        if self.bell_is_to_come(kernel) {
            return Err(Stop::Again);
        }
        self.go_to_tcp(self.written_in_all(kernel)?);
        if tx.is_left() {
            // It has called in between, and does not wait for what is in the ring.
            self.go_to_tcp(kernel.written()? | SERVED);
            return self.serve_back(kernel).map(|_| ());
        }
        self.repeat_end(kernel);
        Ok(())
    }

    /// How much was written to TCP. Of a connection that is over the kernel does not say: doorbells, since the ring.
    fn written_in_all(&self, kernel: &impl Kernel) -> Result<u64, Errno> {
        match kernel.written() {
            Err(Errno::NOTCONN) => {
                let tx = self.stream.tx();
                let before = tx.to_ring().unwrap_or_default();
                Ok(before.saturating_add(tx.bells()))
            }
            written => written,
        }
    }

    /// As [`Flow::leave_ring`], and for good, also where this direction never was on the ring. No other call of this process is sending on TCP.
    ///
    /// # Errors
    /// As [`Flow::leave_ring`].
    pub fn renounce_ring(&self, kernel: &impl Kernel) -> Result<(), Stop> {
        let tx = self.stream.tx();
        if tx.to_ring().is_none() {
            if kernel.has_finished() {
                // What has ended on TCP goes nowhere else.
                return Ok(());
            }
            let written = kernel.written()?;
            self.go_to_ring(written);
            if !tx.back_wanted() {
                // No doorbell: who has not consented does not count what it takes, and nobody waits to be rung where there was no ring.
                self.go_to_tcp(written);
                return Ok(());
            }
        }
        self.leave_ring(kernel)
    }

    /// Asks the peer to go back to TCP with what it sends, and to put there what this end has not taken; in both turns. Receive nothing from
    /// now on; poll [`Flow::came_back`].
    ///
    /// # Errors
    /// If the doorbell cannot be rung.
    pub fn call_back(&self, kernel: &impl Kernel, may_switch: bool) -> Result<(), Stop> {
        let rx = self.stream.rx();
        if back_at(rx).is_some() {
            // The sender went by itself, and what it sent since is on TCP behind what is still in the ring.
            return if rx.available()? == 0 {
                Ok(())
            } else {
                Err(Stop::Failed(Errno::NOBUFS))
            };
        }
        rx.want_back();
        if kernel.has_ended() {
            // Nobody is there to hear it, and the kernel would answer with a reset: an error where the program is to see the end.
            return Ok(());
        }
        self.bell_if_possible(kernel, may_switch).map(drop)
    }

    /// An end that was said in memory must be said on TCP too, once that is where the receiver looks.
    pub(super) fn repeat_end(&self, kernel: &impl Kernel) {
        if self.finished() {
            kernel.finish();
        }
    }

    /// Whether the peer has done what [`Flow::call_back`] asked, or has gone, and its doorbells are off the connection; in a turn of side
    /// [`RECEIVE`](super::RECEIVE).
    ///
    /// # Errors
    /// TCP's.
    pub fn came_back(&self, kernel: &impl Kernel) -> Result<bool, Stop> {
        let rx = self.stream.rx();
        // First: what the peer does, it does before it goes. Doorbells, which come only where there is a ring, may still be under way then.
        let is_gone = back_at(rx).is_none()
            && (kernel.has_ended() || (self.stream.peer_deaf() && rx.to_ring().is_none()));
        let Some(end) = back_at(rx) else {
            return if is_gone {
                self.is_left_on_tcp(kernel)
            } else {
                Ok(false)
            };
        };
        match rx.phase() {
            AFTER => return Ok(true),
            BEFORE if rx.to_ring() == Some(end) => {
                // It never was on the ring, or nothing but bytes of the program is on TCP.
                self.follow_to(AFTER);
                return Ok(true);
            }
            // Doorbells behind bytes that nobody has read: whoever reads TCP from now on would take them for data.
            BEFORE
                if rx
                    .to_ring()
                    .is_some_and(|at| self.taken_in_all(kernel).is_ok_and(|taken| taken < at)) =>
            {
                return Err(Stop::Failed(Errno::NOBUFS));
            }
            _ => {}
        }
        if rx.available()? != 0 && rx.to_tcp().is_some_and(|at| at & SERVED == 0) {
            // The sender had left by itself before it was called: what it sent since is on TCP behind what is still in the ring.
            return Err(Stop::Failed(Errno::NOBUFS));
        }
        self.drop_doorbells(kernel, end)
    }

    /// Where the peer has gone without a way back: true if all that it left is on TCP.
    fn is_left_on_tcp(&self, kernel: &impl Kernel) -> Result<bool, Stop> {
        let rx = self.stream.rx();
        self.follow(kernel)?;
        if rx.to_ring().is_some() {
            if rx.phase() == BEFORE || rx.available()? != 0 {
                // Its bytes on the ring nobody can put on TCP.
                return Err(Stop::Failed(Errno::NOBUFS));
            }
            // An error is not to be taken, but left to who reads TCP from now on. It shows itself only where no byte is.
            let mut scratch = [0; 64];
            while let Some(room) = scratch.get_mut(..kernel.queued()?.min(64))
                && !room.is_empty()
            {
                match kernel.recv(room) {
                    Ok(0) | Err(Errno::AGAIN) => break,
                    taken => self.count(taken?),
                }
            }
            if self.meant(Errno::CONNRESET).is_none() {
                // But for one that only a doorbell made.
                self.drain_to_end(kernel)?;
            }
            if let Some(Some(errno)) = self.kernel_end() {
                return Err(Stop::Failed(errno));
            }
        }
        self.follow_to(AFTER);
        Ok(true)
    }

    /// Takes doorbells off the connection up to the count at which TCP goes on; true when there.
    pub(super) fn drop_doorbells(&self, kernel: &impl Kernel, end: u64) -> Result<bool, Stop> {
        let mut scratch = [0; 64];
        if self.is_called(kernel) {
            return Ok(false);
        }
        for _ in 0..READS {
            let taken = match self.taken_in_all(kernel) {
                // The connection is over, and was before anything was counted here. What is there is the program's if no doorbell ever was.
                Err(Errno::NOTCONN)
                    if self.stream.rx().to_ring() == Some(end) || kernel.queued() == Ok(0) =>
                {
                    end
                }
                Err(Errno::NOTCONN) => return Err(Stop::Failed(Errno::CONNRESET)),
                taken => taken?,
            };
            let left = usize::try_from(end.saturating_sub(taken)).unwrap_or(usize::MAX);
            if left == 0 {
                self.follow_to(AFTER);
                return Ok(true);
            }
            let Some(room) = scratch.get_mut(..left.min(64)) else {
                return Ok(false);
            };
            match self.hear(kernel.recv(room)) {
                Ok(0) => return Err(Stop::End),
                Ok(n) => self.count(n),
                Err(Errno::AGAIN) => return Ok(false),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(false)
    }
}

/// Where on TCP the bytes go on.
#[inline]
pub(super) fn back_at(rx: Rx<'_>) -> Option<u64> {
    rx.to_tcp().map(|at| at & !SERVED)
}

/// In the count at which a direction goes back to TCP: the sender takes back what is in the ring.
pub(super) const SERVED: u64 = 1 << 62;
