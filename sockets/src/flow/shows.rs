//! What a connection shows, as far as memory tells.

use sys::errno::Errno;
use sys::sync::Ordering;

use super::back::back_at;
use super::{BEFORE, ENDED, ERRNO_MAX, Flow, ON_RING, OVER, Stop, TOLD};
use crate::kernel::Kernel;

/// How far both ends have read: as long as that stays, nothing moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crammed {
    pub(crate) peer_took: u64,
    pub(crate) took: u64,
    /// So much is unread here that the other end may have no room either.
    pub(crate) mutually: bool,
}

impl Flow {
    /// Whether all that came has been taken, and nothing is to be given back once the connection rests: see [`leftover`](crate::leftover).
    #[inline]
    pub(crate) fn leaves_nothing(&self) -> bool {
        self.stream.rx().settled() && !self.stream.tx().has_grown()
    }

    /// Whether the bytes that this end sends go to the ring.
    #[inline]
    pub fn sends_on_ring(&self) -> bool {
        self.stream.tx().is_on_ring()
    }

    /// Whether the bytes that this end receives come from the ring.
    #[inline]
    pub fn receives_on_ring(&self) -> bool {
        self.stream.rx().phase() == ON_RING
    }

    /// Whether what this end receives comes from the ring, and nobody has said that it ends, nor TCP that anything has.
    #[inline]
    pub(crate) fn goes_on_in_memory(&self) -> bool {
        let rx = self.stream.rx();
        self.receives_on_ring()
            && rx.to_tcp().is_none()
            && rx.finished() == 0
            && !self.stream.peer_deaf()
            && !self.has_ended()
            && self.read_shut.load(Ordering::Relaxed) == 0
    }

    /// Whether a receive would not wait, as far as memory tells: bytes, the end, or an error. TCP's own bytes are not looked at.
    #[inline]
    pub fn readable(&self) -> bool {
        let rx = self.stream.rx();
        match rx.phase() {
            ON_RING => {
                rx.has_bytes() != Ok(false)
                    || rx.finished() != 0
                    || back_at(rx).is_some()
                    || self.has_ended()
                    || self.read_shut.load(Ordering::Relaxed) != 0
            }
            BEFORE => rx.to_ring().is_some(),
            _ => false,
        }
    }

    /// Whether a send would not wait, as far as memory tells; always false while this direction is on TCP.
    #[inline]
    pub fn writable(&self) -> bool {
        self.sends_on_ring()
            && (self.stream.tx().writable() != Ok(false)
                || self.stream.peer_deaf()
                || self.stream.tx().finished() != 0
                || self.has_ended())
    }

    /// How far both ends have read, where there is no room on the ring to send.
    #[cold]
    pub(crate) fn crammed(&self, kernel: &impl Kernel) -> Option<Crammed> {
        let (tx, rx) = (self.stream.tx(), self.stream.rx());
        if !self.sends_on_ring() || self.writable() || self.stream.peer_deaf() {
            return None;
        }
        let (unread, len) = rx.filled();
        let mutually = if self.receives_on_ring() && back_at(rx).is_none() {
            // One that has said all that it has to say waits for nothing.
            unread >= len / 4 * 3 && rx.finished() == 0
        } else {
            unread + kernel.queued().unwrap_or(0) >= MUCH_ON_TCP
        };
        Some(Crammed {
            peer_took: tx.read(),
            took: rx.head(),
            mutually,
        })
    }

    /// Whether the peer will send no more (`EPOLLRDHUP`).
    #[inline]
    pub fn peer_finished(&self) -> bool {
        self.receives_on_ring() && (self.stream.rx().finished() != 0 || self.has_ended())
    }

    /// Whether the peer has said by the ring that it will send no more, before all has been taken that it had put on TCP.
    #[inline]
    pub(crate) fn is_to_finish(&self) -> bool {
        self.has_bytes_before_ring() && self.stream.rx().finished() != 0
    }

    /// Whether what a peer that [is to finish](Flow::is_to_finish) had put on TCP has all come: who is told of the end counts on that.
    #[cold]
    pub(crate) fn has_all_of_tcp(&self, kernel: &impl Kernel) -> bool {
        let here = |taken| Ok::<_, Errno>(kernel.queued()? as u64 + taken);
        let here = self.taken_in_all(kernel).and_then(here);
        let end = self.stream.rx().to_ring();
        end.is_some_and(|end| here.is_ok_and(|here| here >= end))
    }

    /// Whether what comes has come over TCP so far, and the sender may move to the ring, or has.
    #[inline]
    pub(crate) fn is_before_ring(&self) -> bool {
        self.stream.rx().phase() == BEFORE
    }

    /// Whether the sender has moved to the ring, and what it sent before has not all been taken.
    #[inline]
    pub(crate) fn has_bytes_before_ring(&self) -> bool {
        let rx = self.stream.rx();
        rx.phase() == BEFORE && rx.to_ring().is_some()
    }

    /// What TCP said at its end: `None` while it goes on, `Some(None)` for an orderly end, else the error.
    #[inline]
    pub fn kernel_end(&self) -> Option<Option<Errno>> {
        match self.kernel_end.load(Ordering::Relaxed) {
            0 => None,
            errno @ 1..=ERRNO_MAX => {
                Some(self.meant(Errno::from_raw_os_error(errno.cast_signed())))
            }
            _ => Some(None),
        }
    }

    /// Whether TCP has ended, in whatever way. What the peer wrote before is in memory then.
    #[inline]
    pub(super) fn has_ended(&self) -> bool {
        self.kernel_end.load(Ordering::Acquire) != 0
    }

    /// Bytes that can be received now without waiting, as `FIONREAD` counts them, but for what is still on TCP.
    ///
    /// # Errors
    /// If the peer spoilt the stream.
    pub fn available(&self) -> Result<usize, Stop> {
        Ok(if self.receives_on_ring() {
            self.stream.rx().available()?
        } else {
            0
        })
    }

    /// Bytes of the program that can be received, on TCP and on the ring after it.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn waiting(&self, kernel: &impl Kernel) -> Result<usize, Stop> {
        let rx = self.stream.rx();
        let queued = kernel.queued()?;
        let up_to = |end: u64| {
            let left = end.saturating_sub(self.taken_in_all(kernel)?);
            Ok::<_, Errno>(queued.min(usize::try_from(left).unwrap_or(usize::MAX)))
        };
        let before = match (rx.phase(), rx.to_ring()) {
            (ON_RING, _) => 0,
            (BEFORE, Some(end)) => up_to(end)?,
            _ => return Ok(queued),
        };
        let after = match back_at(rx) {
            Some(end) => queued - up_to(end)?,
            None => 0,
        };
        Ok(before + rx.available()? + after)
    }

    /// What to tell the program of an error that the kernel has told in answer to `SO_ERROR`, and of one that was kept; `None` if there is none to it.
    pub(crate) fn tell(&self, kernels: Option<Errno>) -> Option<Errno> {
        if let Some(errno) = kernels {
            if !is_of_connection(errno) {
                return Some(errno);
            }
            self.note_error(errno);
        }
        self.take_error()
    }

    /// Whether TCP's errors are none to the program: its end has come in order, or bytes lie there that were sent before the ring's, and what can have
    /// been reset is a doorbell; see [`Flow::meant`].
    #[inline]
    pub(crate) fn is_reset_by_bell(&self, kernel: &impl Kernel) -> bool {
        let ended = self.has_ended() && self.kernel_end() == Some(None) && !self.error_is_told();
        (ended || self.has_bytes_before_ring())
            && self.only_bells_are_unread()
            && (ended || kernel.queued().is_ok_and(|queued| queued > 0))
    }

    /// TCP has ended, as somebody has seen who did not read that far.
    pub fn note_end(&self) {
        self.note(0, OVER);
    }

    /// The kernel, which tells an error once, has told it to a call that does not pass it on: it is kept for the next that does.
    pub fn note_error(&self, errno: Errno) {
        let raw = errno.raw_os_error().cast_unsigned();
        self.note(0, raw);
        self.note(OVER, raw);
        let all = self.stream.tcp_error();
        let _ = all.compare_exchange(0, raw, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Keeps an error of the connection for a call that tells it; [`Flow::told`] says that one does.
    pub(super) fn hear<T>(&self, result: Result<T, Errno>) -> Result<T, Errno> {
        if let Err(errno) = result
            && is_of_connection(errno)
        {
            self.note_error(errno);
        }
        result
    }

    /// The program is told why a call failed, and need not be told again.
    pub(super) fn told(&self, stop: Stop) -> Stop {
        if let Stop::Failed(_) = stop {
            self.take_error();
        }
        stop
    }

    /// A call that has moved bytes does not tell the program why it stopped: the next one does.
    #[cold]
    pub(crate) fn tell_later(&self, stop: Stop) {
        if let Stop::Failed(errno) = stop
            && is_of_connection(errno)
        {
            let raw = errno.raw_os_error().cast_unsigned();
            self.note_error(errno);
            self.note(TOLD, raw);
            self.stream.tcp_error().store(raw, Ordering::Relaxed);
        }
    }

    /// Whether the connection ended in an error, told or not.
    pub(super) fn has_failed(&self) -> bool {
        self.error_is_told() || matches!(self.kernel_end(), Some(Some(_)))
    }

    /// Whether there is nothing more to be heard from TCP.
    pub(super) fn is_read_to_its_end(&self) -> bool {
        !matches!(self.kernel_end.load(Ordering::Relaxed), 0 | OVER)
    }

    /// TCP has been read to its end.
    pub(super) fn note_last(&self) {
        self.learn_error();
        let end = self.end_means();
        self.note(0, end);
        self.note(OVER, end);
        if end == ENDED {
            // What is sent from now on would make it look cut off to the next process that comes to the end.
            let all = self.stream.tcp_error();
            let _ = all.compare_exchange(0, ENDED, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// There is nothing more to read from TCP. If that is for an error, another process of this end may have been told, or the program before this one.
    pub(super) fn learn_error(&self) {
        let told = self.stream.tcp_error().load(Ordering::Relaxed);
        // The peer can write there, and is not to surprise the program.
        let is_error = (1..=ERRNO_MAX).contains(&told)
            && is_of_connection(Errno::from_raw_os_error(told.cast_signed()));
        if is_error || told == TOLD || told == ENDED {
            self.note(0, told);
            self.note(OVER, told);
        }
    }

    fn note(&self, from: u32, to: u32) {
        let _ = self
            .kernel_end
            .compare_exchange(from, to, Ordering::Release, Ordering::Relaxed);
    }

    /// The error of the connection, if it has not been told to the program: it is now.
    pub fn take_error(&self) -> Option<Errno> {
        let errno = self.kernel_end()??;
        self.kernel_end.store(TOLD, Ordering::Release);
        self.stream.tcp_error().store(TOLD, Ordering::Relaxed);
        Some(errno)
    }

    /// Whether the connection had an error that the program was told.
    pub fn error_is_told(&self) -> bool {
        self.kernel_end.load(Ordering::Relaxed) == TOLD
    }
}

/// Whether the kernel refused the call, which says nothing of the connection: there may be memory for the next.
pub(crate) fn is_refusal(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOMEM | Errno::NOBUFS | Errno::PERM | Errno::ACCESS
    )
}

/// Whether the kernel tells it once of a connection that is over.
fn is_of_connection(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::CONNRESET | Errno::TIMEDOUT | Errno::HOSTUNREACH | Errno::NETUNREACH
    )
}

/// So much is unread where the other end may have no room to send on TCP: less than the least that its socket takes by itself, for the program may have set less.
const MUCH_ON_TCP: usize = 8 << 10;
