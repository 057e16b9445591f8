//! The TCP connection beneath a stream, as far as a stream needs it.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use sys::errno::Errno;
use sys::tcp::{self, State};

use crate::flow::Stop;

/// One end of a kernel TCP connection. Nothing here waits.
///
/// A trait, so that the rules of [`flow`](crate::flow) can be driven over a model of TCP in tests.
pub trait Kernel {
    /// Sends some of `bytes`.
    ///
    /// # Errors
    /// `EAGAIN` if there is no room, else the connection's.
    fn send(&self, bytes: &[u8]) -> Result<usize, Errno>;

    /// Sends some of several `pieces`, one of them at least, as if they were one.
    ///
    /// # Errors
    /// As [`Kernel::send`].
    fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> Result<usize, Errno>;

    /// Receives into `into`; 0 bytes are the end.
    ///
    /// # Errors
    /// `EAGAIN` if there is nothing, else the connection's.
    fn recv(&self, into: &mut [u8]) -> Result<usize, Errno>;

    /// As [`Kernel::recv`], and leaves the bytes there.
    ///
    /// # Errors
    /// As [`Kernel::recv`].
    fn peek(&self, into: &mut [u8]) -> Result<usize, Errno>;

    /// As [`Kernel::peek`], into several buffers; into the first at least.
    ///
    /// # Errors
    /// As [`Kernel::recv`].
    fn peek_pieces(&self, into: &mut [IoSliceMut<'_>]) -> Result<usize, Errno> {
        self.peek(into.first_mut().map_or(&mut [], |first| &mut **first))
    }

    /// `SO_LINGER`, if it is on.
    fn linger(&self) -> Option<Duration>;

    /// Sets `SO_LINGER`.
    fn set_linger(&self, linger: Option<Duration>);

    /// Has the connection reset when it is closed, as the kernel does where bytes were not read.
    fn reset_on_close(&self) {
        self.set_linger(Some(Duration::ZERO));
    }

    /// Resets the connection, whoever has it, and keeps the error that this makes to itself.
    fn reset_now(&self);

    /// Whether the program has it reset when it is closed.
    fn resets_on_close(&self) -> bool {
        self.linger() == Some(Duration::ZERO)
    }

    /// `shutdown(SHUT_WR)`.
    fn finish(&self);

    /// Whether this end has shut its sending side down, or the connection is over.
    fn has_finished(&self) -> bool {
        false
    }

    /// Whether the other end's FIN has come, or the connection is over: what has come is all there will be.
    fn has_ended(&self) -> bool;

    /// Bytes sent in all, by whomever.
    ///
    /// # Errors
    /// The kernel's.
    fn written(&self) -> Result<u64, Errno>;

    /// Bytes received in all, by whomever.
    ///
    /// # Errors
    /// The kernel's.
    fn taken(&self) -> Result<u64, Errno>;

    /// Bytes that can be received.
    ///
    /// # Errors
    /// The kernel's.
    fn queued(&self) -> Result<usize, Errno>;

    /// As [`Kernel::taken`], where urgent data may be queued: of what lies behind it the kernel does not tell at once.
    ///
    /// # Errors
    /// The kernel's.
    fn taken_past_mark(&self) -> Result<u64, Errno> {
        self.taken()
    }

    /// As [`Kernel::queued`], with urgent data and what lies behind it.
    ///
    /// # Errors
    /// The kernel's.
    fn queued_past_mark(&self) -> Result<usize, Errno> {
        self.queued()
    }

    /// Whether urgent data is queued, so that [`Kernel::taken`] and [`Kernel::queued`] are not to be relied on. Nobody may be receiving meanwhile.
    fn has_mark(&self) -> bool {
        false
    }

    /// Whether the urgent byte comes next, or came last.
    fn is_at_mark(&self) -> bool {
        false
    }
}

/// A real one.
#[derive(Clone, Copy, Debug)]
pub struct Tcp<'a> {
    /// Any descriptor of the connection.
    pub fd: BorrowedFd<'a>,
    /// Whether this end called `connect`.
    pub opener: bool,
}

impl Kernel for Tcp<'_> {
    fn send(&self, bytes: &[u8]) -> Result<usize, Errno> {
        tcp::send_dontwait(self.fd, bytes)
    }

    fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> Result<usize, Errno> {
        tcp::send_pieces_dontwait(self.fd, pieces)
    }

    fn recv(&self, into: &mut [u8]) -> Result<usize, Errno> {
        tcp::recv_dontwait(self.fd, into)
    }

    fn peek(&self, into: &mut [u8]) -> Result<usize, Errno> {
        tcp::recv_peek(self.fd, into)
    }

    fn peek_pieces(&self, into: &mut [IoSliceMut<'_>]) -> Result<usize, Errno> {
        tcp::recv_peek_pieces(self.fd, into)
    }

    fn linger(&self) -> Option<Duration> {
        sys::socket::linger(self.fd)
    }

    fn set_linger(&self, linger: Option<Duration>) {
        sys::socket::set_linger(self.fd, linger);
    }

    fn reset_now(&self) {
        sys::socket::reset_now(self.fd);
        sys::socket::forget_error(self.fd);
    }

    fn finish(&self) {
        sys::socket::finish(self.fd);
    }

    fn has_finished(&self) -> bool {
        !matches!(
            tcp::state(self.fd),
            Ok(State::Established | State::FinReceived)
        )
    }

    fn has_ended(&self) -> bool {
        !matches!(tcp::state(self.fd), Ok(State::Established | State::FinSent))
    }

    fn written(&self) -> Result<u64, Errno> {
        tcp::written_by(self.fd, self.opener)
    }

    fn taken(&self) -> Result<u64, Errno> {
        tcp::taken(self.fd)
    }

    fn queued(&self) -> Result<usize, Errno> {
        tcp::inq(self.fd).map(|queued| queued as usize)
    }

    fn taken_past_mark(&self) -> Result<u64, Errno> {
        self.past_mark(|| self.taken())
    }

    fn queued_past_mark(&self) -> Result<usize, Errno> {
        self.past_mark(|| self.queued())
    }

    fn has_mark(&self) -> bool {
        let inline = sys::socket::urgent_inline(self.fd);
        let so = self.queued();
        sys::socket::set_urgent_inline(self.fd, !inline);
        let otherwise = self.queued();
        sys::socket::set_urgent_inline(self.fd, inline);
        // What comes in between changes it, too.
        so != otherwise && so == self.queued()
    }

    fn is_at_mark(&self) -> bool {
        sys::socket::is_at_mark(self.fd)
    }
}

impl Tcp<'_> {
    /// Whether `enough` bytes are queued, and urgent data among them: a byte that would be left out is not counted if it is the next.
    pub(crate) fn has_past_mark(&self, enough: usize) -> bool {
        let left_out = self.is_at_mark() && !sys::socket::urgent_inline(self.fd);
        (self.queued_past_mark()).is_ok_and(|n| n >= enough + usize::from(left_out))
    }

    /// Asks with `SO_OOBINLINE` set: with it the kernel counts all that is queued, without it up to the mark. It changes nothing else while nobody receives.
    fn past_mark<T>(&self, ask: impl FnOnce() -> T) -> T {
        if sys::socket::urgent_inline(self.fd) {
            return ask();
        }
        sys::socket::set_urgent_inline(self.fd, true);
        let answer = ask();
        sys::socket::set_urgent_inline(self.fd, false);
        answer
    }
}

/// Reads into one buffer after the other, `limit` bytes at most, until there is less than there is room for.
pub(crate) fn fill(
    into: &mut [IoSliceMut<'_>],
    limit: usize,
    mut read: impl FnMut(&mut [u8]) -> Result<usize, Errno>,
) -> Result<usize, Stop> {
    let mut filled = 0;
    for buffer in into.iter_mut().filter(|buffer| !buffer.is_empty()) {
        let most = buffer.len().min(limit - filled);
        let Some(room) = buffer.get_mut(..most) else {
            break;
        };
        if room.is_empty() {
            break;
        }
        match read(room) {
            Ok(n) => {
                filled += n;
                if n < most {
                    break;
                }
            }
            Err(_) if filled > 0 => break,
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(filled)
}

/// Takes bytes that nobody wants, `most` at most. Not in its caller, by which every call receives from TCP, on whatever stack.
#[inline(never)]
pub(crate) fn skip(
    most: usize,
    mut read: impl FnMut(&mut [u8]) -> Result<usize, Errno>,
) -> Result<usize, Stop> {
    let mut scratch = [0; 4096];
    let mut skipped = 0;
    while skipped < most {
        let Some(room) = scratch.get_mut(..(most - skipped).min(4096)) else {
            break;
        };
        match read(room) {
            Ok(0) => break,
            Ok(n) => skipped += n,
            Err(_) if skipped > 0 => break,
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(skipped)
}
