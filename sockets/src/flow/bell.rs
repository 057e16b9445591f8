//! Doorbells: bytes on TCP that wake whoever sleeps there.

use sys::board::Place;
use sys::errno::Errno;
use sys::stream::{BACK, BOARD, SLEEPER, STANDS};
use sys::sync::{AtomicU32, Ordering, compiler_fence};
use sys::time;

use super::back::back_at;
use super::{BEFORE, Flow, ON_RING, RECEIVE, Stop};
use crate::kernel::Kernel;

impl Flow {
    /// Before sleeping until something can be received, in a turn of side [`RECEIVE`]: takes the doorbells off the connection, arms, and
    /// looks once more. True if one may sleep on the connection.
    ///
    /// # Errors
    /// If TCP's bytes cannot be told apart any more.
    pub fn arm_receive(&self, kernel: &impl Kernel) -> Result<bool, Stop> {
        self.drain(kernel)?;
        self.arm_unheard(kernel, None)
    }

    /// As [`Flow::arm_receive`], where others may sleep on the same doorbells.
    ///
    /// # Errors
    /// As [`Flow::arm_receive`].
    pub fn arm_beside_others(&self, kernel: &impl Kernel) -> Result<bool, Stop> {
        self.drain_beside_others(kernel)?;
        self.arm_unheard(kernel, None)
    }

    /// As [`Flow::arm_receive`], where no doorbell has been heard since the last were taken. On the ring, if there is a `place` of a board, what comes is to
    /// be noted there instead of rung for.
    ///
    /// # Errors
    /// As [`Flow::arm_receive`].
    pub(crate) fn arm_unheard(
        &self,
        kernel: &impl Kernel,
        place: Option<Place>,
    ) -> Result<bool, Stop> {
        let rx = self.stream.rx();
        match rx.phase() {
            ON_RING => {
                match place {
                    Some(place) => rx.arm_at(place),
                    None => rx.arm(),
                }
                Ok(rx.settled() && !self.readable() || self.awaits_tcp(kernel))
            }
            BEFORE => {
                rx.arm();
                // What the sender had put on TCP before comes there.
                Ok(rx.to_ring().is_none_or(|end| self.is_to_come(kernel, end)))
            }
            _ => Ok(true),
        }
    }

    /// Whether the sender went back to TCP, and the bytes that it says were written there before have not all come: those wake who sleeps.
    pub(crate) fn awaits_tcp(&self, kernel: &impl Kernel) -> bool {
        let rx = self.stream.rx();
        back_at(rx).is_some_and(|end| rx.available() == Ok(0) && self.is_to_come(kernel, end))
    }

    pub(super) fn is_to_come(&self, kernel: &impl Kernel, end: u64) -> bool {
        self.taken_in_all(kernel).is_ok_and(|taken| taken < end)
    }

    /// Before sleeping until there is room, in a turn of side [`SEND`](super::SEND). True if one may sleep.
    ///
    /// # Errors
    /// If the peer spoilt the stream.
    pub fn arm_send(&self) -> Result<bool, Stop> {
        let tx = self.stream.tx();
        tx.arm();
        Ok(!tx.writable()?
            && !self.stream.peer_deaf()
            && tx.to_tcp().is_none()
            && !tx.back_wanted())
    }

    /// Rings the peer's doorbell if `bits` say that it sleeps, and serves it if it wants to go back to TCP. What is wrong with the connection the next call
    /// tells.
    #[cold]
    pub(super) fn attend(&self, kernel: &impl Kernel, bits: u32) {
        let _ = if bits & BACK != 0 {
            // No doorbell then: it would stand between bytes of the program.
            self.serve_back(kernel).map(|_| ())
        } else {
            self.ring_bell(kernel, bits)
        };
    }

    pub(super) fn ring_bell(&self, kernel: &impl Kernel, bits: u32) -> Result<(), Stop> {
        if bits & (SLEEPER | BOARD) == 0 {
            return Ok(());
        }
        let tx = self.stream.tx();
        // Of a set that sleeps, or a board that is not here, it is taken, so that what comes next does not ring too.
        if bits & (SLEEPER | STANDS) == STANDS && !tx.note(bits) {
            return Ok(());
        }
        let asked = tx.knock();
        let unseen = asked & BOARD != 0 && tx.note(asked);
        if asked & SLEEPER != 0 || unseen {
            self.read_then
                .store(self.stream.tx().read(), Ordering::Relaxed);
            self.unlooked().store(RANG, Ordering::Relaxed);
            self.rang_ms.store(time::coarse_ms(), Ordering::Relaxed);
            self.ring_bell_now(kernel)?;
        }
        Ok(())
    }

    /// Sends since the peer was last looked at.
    #[inline]
    fn unlooked(&self) -> &AtomicU32 {
        self.stream.sends()
    }

    /// Before a send: whether the peer has taken nothing of what is there for it, during some sends, or for some milliseconds since its doorbell was rung.
    /// It may have been killed, and then says nothing in memory. In a turn of side [`SEND`](super::SEND).
    #[inline]
    pub(crate) fn is_time_to_look(&self) -> bool {
        let sends = self.unlooked().load(Ordering::Relaxed).wrapping_add(1);
        self.unlooked().store(sends, Ordering::Relaxed);
        sends > LOOK_EACH && self.takes_nothing(sends)
    }

    /// After [`Flow::is_time_to_look`]: it was no send, which counts.
    #[inline]
    pub(crate) fn was_not_sent(&self) {
        let sends = self.unlooked().load(Ordering::Relaxed).saturating_sub(1);
        self.unlooked().store(sends, Ordering::Relaxed);
    }

    #[cold]
    fn takes_nothing(&self, sends: u32) -> bool {
        self.unlooked().store(0, Ordering::Relaxed);
        let tx = self.stream.tx();
        let heard = tx.acknowledged();
        let is_silent = self.stream.heard().load(Ordering::Relaxed) == heard as u32;
        self.stream.heard().store(heard as u32, Ordering::Relaxed);
        if !is_silent && sends < RANG {
            // What it has taken by its own count lies in a line that nothing else here needs, and what that was in another.
            return false;
        }
        let read = tx.read();
        let before = self.read_then.swap(read, Ordering::Relaxed);
        let is_same = before == read || (is_silent && heard == read);
        let nothing = is_same && read != tx.tail();
        if !nothing || !self.sends_on_ring() {
            self.rang_ms.store(0, Ordering::Relaxed);
            return false;
        }
        if self.rang_ms.load(Ordering::Relaxed) == 0 {
            return true;
        }
        // It may only not have woken yet: the next send asks again.
        self.unlooked().store(RANG, Ordering::Relaxed);
        let now_ms = time::coarse_ms();
        self.rang_ms.swap(now_ms, Ordering::Relaxed) != now_ms
    }

    /// Whether there is something on TCP now for the peer to find.
    pub(super) fn ring_bell_now(&self, kernel: &impl Kernel) -> Result<bool, Stop> {
        if self.stream.peer_deaf() {
            // It has closed, or is about to, and would be reset.
            return Ok(false);
        }
        self.bells.fetch_add(1, Ordering::Relaxed);
        match self.hear(self.put_bell(kernel)) {
            // A full connection is readable, which is all that a doorbell says; one that is gone wakes sleepers by itself, and the next call tells.
            Ok(()) | Err(Errno::AGAIN) => Ok(true),
            Err(Errno::PIPE) => Ok(false),
            Err(_) if self.has_ended() => Ok(false),
            Err(_) => {
                // Nobody would ring for what is there, and the peer would sleep beside it.
                self.abort(kernel);
                Err(Stop::Failed(Errno::CONNRESET))
            }
        }
    }

    /// Writes a doorbell to TCP. `EPIPE` if it would be a byte of the program there: the peer has left the ring and others read, or a signal handler has come
    /// into this turn and has left it.
    pub(super) fn put_bell(&self, kernel: &impl Kernel) -> Result<(), Errno> {
        let tx = self.stream.tx();
        if !tx.begin_bell() {
            return Err(Errno::PIPE);
        }
        // From here on a handler lets the ring be.
        self.ringing.store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let put = if self.sends_on_ring() {
            kernel.send(&[DOORBELL]).map(drop)
        } else {
            Err(Errno::PIPE)
        };
        compiler_fence(Ordering::SeqCst);
        self.ringing.store(0, Ordering::Relaxed);
        if put.is_err() {
            tx.cancel_bell();
        }
        put
    }

    /// In a signal handler: whether its thread is about to write a doorbell to TCP, behind which nothing else may come there now.
    pub(super) fn bell_is_to_come(&self, kernel: &impl Kernel) -> bool {
        if self.ringing.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let tx = self.stream.tx();
        let counted = tx.to_ring().unwrap_or_default().saturating_add(tx.bells());
        kernel.written().is_ok_and(|written| written < counted)
    }

    /// Resets the connection, for what became of bytes of the program can no more be said. Both ends are told: neither takes it for an orderly end.
    #[cold]
    pub(super) fn abort(&self, kernel: &impl Kernel) {
        self.stream.set_deaf();
        kernel.reset_now();
        self.note_error(Errno::CONNRESET);
    }

    /// Whether [`Flow::pay_bell`] is due after a receive.
    #[inline]
    pub fn owes_bell(&self) -> bool {
        self.owes_bell.load(Ordering::Relaxed) != 0
    }

    /// Does the duty of one who was killed in a turn of `side`, perhaps before he rang the peer's doorbell; in such a turn.
    ///
    /// # Errors
    /// TCP's.
    pub fn ring_for_another(&self, kernel: &impl Kernel, side: usize) -> Result<(), Stop> {
        if side == RECEIVE {
            self.owes_bell.store(UNASKED, Ordering::Relaxed);
            return Ok(());
        }
        if self.sends_on_ring() {
            self.stream.tx().publish_left();
            self.ring_bell_now(kernel)?;
        }
        Ok(())
    }

    /// Wakes a sender that sleeps for room, in a turn of side [`SEND`](super::SEND): its doorbell is a byte of the other direction. While that cannot go,
    /// it is owed.
    ///
    /// # Errors
    /// TCP's.
    #[cold]
    pub fn pay_bell(&self, kernel: &impl Kernel, may_switch: bool) -> Result<(), Stop> {
        let can_ring = self.sends_on_ring() || (may_switch && self.switch(kernel)?);
        if !can_ring && self.stream.tx().to_tcp().is_none() {
            return Ok(());
        }
        // Where this direction has gone back to TCP for good, the sender knows that nobody rings.
        let unasked = self.owes_bell.swap(0, Ordering::Relaxed) == UNASKED;
        if can_ring && (self.stream.rx().knock() || unasked) {
            self.ring_bell_now(kernel)?;
        }
        Ok(())
    }

    /// Whether the peer can ring for room: with a byte where it sends no data, or will send none once it is to ring.
    pub fn can_be_rung(&self) -> bool {
        let rx = self.stream.rx();
        rx.consented() && rx.to_tcp().is_none()
    }

    /// A doorbell can go only where no data goes. A sender that cannot be rung for naps instead of sleeping. True if it has something to find on TCP.
    pub(super) fn bell_if_possible(
        &self,
        kernel: &impl Kernel,
        may_switch: bool,
    ) -> Result<bool, Stop> {
        if self.sends_on_ring() || (may_switch && self.switch(kernel)?) {
            return self.ring_bell_now(kernel);
        }
        Ok(false)
    }
}

/// So many sends go without a look at the peer.
const LOOK_EACH: u32 = 16;
/// What stands for the sends since then once its doorbell was rung: each send looks, at its own count. One that [was not sent](Flow::was_not_sent) takes one away.
const RANG: u32 = 1 << 16;
/// In `owes_bell`: whether the sender asked for it or not.
const UNASKED: u32 = 2;
/// Its value means nothing; who sees it in a trace may know it.
pub(super) const DOORBELL: u8 = 0x07;
