//! How this end finishes, and leaves.

use sys::stream::{FIN, GONE};
use sys::sync::Ordering;

use super::back::back_at;
use super::{Flow, ON_RING, Stop};
use crate::kernel::Kernel;

impl Flow {
    /// Ends the sending direction (`shutdown(SHUT_WR)`), in a turn of side [`SEND`](super::SEND). False if the kernel must do it.
    ///
    /// On the ring the end is said in memory and TCP stays open, because the doorbells of the other direction still need it.
    ///
    /// # Errors
    /// If the doorbell cannot be rung.
    pub fn finish(&self, kernel: &impl Kernel, may_switch: bool) -> Result<bool, Stop> {
        if !(self.sends_on_ring() || may_switch && self.switch(kernel)?) {
            // What goes back to TCP goes there before the end, which `serve_back` says after it.
            let served = self.stream.tx().to_tcp().is_none() || self.serve_back(kernel)?;
            if !served {
                self.stream.tx().finish(FIN);
            }
            return Ok(!served);
        }
        let bits = self.stream.tx().finish(FIN);
        self.ring_bell(kernel, bits)?;
        Ok(true)
    }

    /// What the kernel is to shut of TCP, to receive and to send, where the program has shut this (`asked`): `in_memory` says that the end of what is sent
    /// lies there. In a turn of side [`SEND`](super::SEND), in which that is to be done.
    ///
    /// An end that is shut both ways is deaf, and takes no doorbell: what the peer sends from now on goes over TCP, which answers with a reset.
    pub fn end_of_tcp(&self, kernel: &impl Kernel, asked: [bool; 2], in_memory: bool) -> [bool; 2] {
        let [reading, writing] = asked;
        if !self.read_is_shut() || !(writing || in_memory || kernel.has_finished()) {
            return [reading, writing && !in_memory];
        }
        self.stream.set_deaf();
        // What moves to TCP goes there before the end.
        if self.owes_back() {
            let _ = self.serve_back(kernel);
        }
        [reading, self.sends_on_ring() || (writing && !in_memory)]
    }

    /// Bytes that the peer has not taken from the ring.
    pub fn unread(&self) -> u64 {
        let tx = self.stream.tx();
        tx.tail().wrapping_sub(tx.read())
    }

    /// Whether [`Flow::finish`] has ended the sending direction in memory.
    pub fn finished(&self) -> bool {
        self.stream.tx().finished() & FIN != 0
    }

    /// `shutdown(SHUT_RD)`, which is the end's, whichever process does it.
    pub fn shut_read(&self) {
        self.stream.options().fetch_or(READ_SHUT, Ordering::Relaxed);
        self.read_shut.store(1, Ordering::Release);
    }

    /// Another process of this end may have shut it, or the program before this one.
    pub(crate) fn heed_shut_read(&self) {
        if self.stream.options().load(Ordering::Relaxed) & READ_SHUT != 0 {
            self.read_shut.store(1, Ordering::Release);
        }
    }

    /// What to tell the program of a receiving side that is shut and has been read: an error if the connection has been reset.
    #[cold]
    pub(super) fn shut_means(&self, kernel: &impl Kernel) -> Stop {
        if kernel.has_ended() {
            let _ = self.drain_to_end(kernel);
        }
        self.end_or_error()
    }

    /// What to tell a receiver for which nothing more comes. An error is told once; after it comes the end. One that has read the peer's end is told no
    /// error any more, but who sends is.
    #[cold]
    pub(super) fn end_or_error(&self) -> Stop {
        if self.peer_has_shut() {
            return Stop::End;
        }
        self.take_error().map_or(Stop::End, Stop::Failed)
    }

    /// Whether [`Flow::shut_read`] has been called.
    #[inline]
    pub fn read_is_shut(&self) -> bool {
        self.read_shut.load(Ordering::Relaxed) != 0
    }

    /// This process has no descriptor of the connection any more. If it was the last that had this end, the peer is told, and the
    /// connection is left as the kernel would leave it: closed in order, or reset if bytes were not read.
    ///
    /// `may_switch` as for [`Flow::send`].
    pub fn leave(&self, kernel: &impl Kernel, may_switch: bool) {
        let holders = self.stream.holders();
        let is_last = match self.has_left.load(Ordering::Relaxed) {
            0 => holders.leave(),
            // The program's last acts, of which this is one: who is left was counted without this process.
            _ => holders.count() == 0,
        };
        if !is_last || self.is_alone() {
            // The peer, which has not found out that this end is on TCP, would take a word in memory for more than it is.
            return;
        }
        let _ = self.follow(kernel);
        let unread = self.leaves_unread(kernel);
        // Cut off, the sender's bytes would be missing and nobody told.
        let cut = self.owes_back() && self.serve_back(kernel) != Ok(true);
        self.stream.set_deaf();
        // Closed with a doorbell on it, a connection would be reset, and what we sent might be lost.
        let _ = self.drain(kernel);
        if unread == Unread::Ring || cut {
            // The kernel tells it, as a reset.
            kernel.reset_on_close();
        } else if unread == Unread::Nothing
            && (self.sends_on_ring() || may_switch && self.switch(kernel) == Ok(true))
            && !kernel.resets_on_close()
            && !self.has_failed()
        {
            // On the ring it can be said, if only for this: a doorbell that comes too late makes a reset of the end that TCP has.
            // Whoever sleeps is woken by the end of the TCP connection.
            self.stream.tx().finish(GONE);
        }
    }

    /// In the child of a fork, which is counted whatever its parent has said.
    pub(crate) fn is_there(&self) {
        self.has_left.store(0, Ordering::Relaxed);
    }

    /// Where bytes of the program lie that it has not taken, urgent ones among them. For those on TCP the kernel resets the connection by itself once nobody
    /// has it any more, among whom may be some who do not use the rings; but an end that was said on the ring would be all that the peer looks for.
    fn leaves_unread(&self, kernel: &impl Kernel) -> Unread {
        let rx = self.stream.rx();
        let doorbells = match (rx.phase(), back_at(rx)) {
            // Ended in both directions it is over for the kernel, too, which resets nothing any more.
            (ON_RING, _) if self.finished() && rx.finished() & FIN != 0 => return Unread::Nothing,
            (ON_RING, _) if rx.available() != Ok(0) => return Unread::Ring,
            (ON_RING, None) => return Unread::Nothing,
            (ON_RING, Some(end)) => self.taken_in_all(kernel).map(|at| end.saturating_sub(at)),
            _ => Ok(0),
        };
        let on_tcp = doorbells.is_ok_and(|doorbells| {
            (kernel.queued_past_mark()).is_ok_and(|queued| queued as u64 > doorbells)
        });
        if on_tcp { Unread::Tcp } else { Unread::Nothing }
    }

    /// Before the process ends: as [`Flow::leave`], but in memory nothing is said, for until then it may send: what is in the buffers of `stdio`, say.
    pub(crate) fn leave_at_exit(&self, kernel: &impl Kernel) {
        self.has_left.store(1, Ordering::Relaxed);
        let is_last = self.stream.holders().leave_at_exit(std::process::id());
        if !is_last || self.is_alone() {
            return;
        }
        let _ = self.follow(kernel);
        if self.leaves_unread(kernel) == Unread::Ring {
            kernel.reset_on_close();
        }
        let _ = self.drain(kernel);
    }
}

/// See [`Flow::leaves_unread`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unread {
    Nothing,
    Tcp,
    Ring,
}

/// Among the options of an end: its receiving side is shut. The others are in `conn::option` and `owed`.
const READ_SHUT: u32 = 16;
