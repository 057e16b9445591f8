//! What a connection shows, as far as memory tells.

use sys::errno::Errno;
use sys::sync::Ordering;

use super::back::back_at;
use super::{BEFORE, ENDED, Flow, ON_RING, Stop, TOLD};
use crate::kernel::Kernel;

impl Flow {
    /// Whether the bytes that this end sends go to the ring.
    #[inline]
    pub fn sends_on_ring(&self) -> bool {
        let tx = self.stream.tx();
        tx.to_ring().is_some() && tx.to_tcp().is_none()
    }

    /// Whether the bytes that this end receives come from the ring.
    #[inline]
    pub fn receives_on_ring(&self) -> bool {
        self.stream.rx().phase() == ON_RING
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
                    || self.kernel_end.load(Ordering::Relaxed) != 0
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
                || self.kernel_end.load(Ordering::Relaxed) != 0)
    }

    /// Whether the peer will send no more (`EPOLLRDHUP`).
    pub fn peer_finished(&self) -> bool {
        self.receives_on_ring()
            && (self.stream.rx().finished() != 0 || self.kernel_end.load(Ordering::Relaxed) != 0)
    }

    /// What TCP said at its end: `None` while it goes on, `Some(None)` for an orderly end, else the error.
    pub fn kernel_end(&self) -> Option<Option<Errno>> {
        match self.kernel_end.load(Ordering::Relaxed) {
            0 => None,
            ENDED | TOLD => Some(None),
            errno => Some(Some(Errno::from_raw_os_error(errno.cast_signed()))),
        }
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
        Ok(match (rx.phase(), rx.to_ring()) {
            (ON_RING, _) => rx.available()?,
            (BEFORE, Some(end)) => {
                let before = end.saturating_sub(self.taken(kernel)?);
                queued.min(usize::try_from(before).unwrap_or(usize::MAX)) + rx.available()?
            }
            _ => queued,
        })
    }

    /// TCP has ended, as somebody has seen who did not read that far.
    pub fn note_end(&self) {
        let _ = self
            .kernel_end
            .compare_exchange(0, ENDED, Ordering::Release, Ordering::Relaxed);
    }

    /// The kernel has told somebody who slept there of an error.
    pub fn note_error(&self, errno: Errno) {
        let _ = self.kernel_end.compare_exchange(
            0,
            self.reset_means(errno),
            Ordering::Release,
            Ordering::Relaxed,
        );
    }

    /// The error of the connection, if it has not been told to the program: it is now.
    pub fn take_error(&self) -> Option<Errno> {
        let errno = self.kernel_end()??;
        self.kernel_end.store(TOLD, Ordering::Release);
        Some(errno)
    }

    /// Whether the connection had an error that the program was told.
    pub fn error_is_told(&self) -> bool {
        self.kernel_end.load(Ordering::Relaxed) == TOLD
    }
}
