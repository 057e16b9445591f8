//! The bytes of one connection, on TCP and on the ring: which is when, and never both.
//!
//! Each direction goes from TCP to the ring at most once, and back at most once:
//!
//! ```text
//!            consent and no native call under way          way back (by either end)
//!   ┌─────┐ ───────────────────────────────────▶ ┌──────┐ ─────────────────────────▶ ┌──────────┐
//!   │ TCP │  sender: to_ring := bytes on TCP     │ ring │  sender: to_tcp := bytes   │ TCP again│
//!   └─────┘                                      └──────┘     on TCP, doorbells too  └──────────┘
//!   receiver: takes TCP up to to_ring,     receiver: empties the ring, drops what is on TCP
//!             then follows                           up to to_tcp (doorbells), then follows
//! ```
//!
//! While a direction is on the ring, what comes on TCP is doorbells, of one byte each. Since the sender says how many bytes it had put on TCP, and the
//! kernel knows how many were taken, by whomever, each byte is known for what it is, whatever the interleaving.
//! All calls are made in a [turn](sys::turn): of side [`SEND`] or [`RECEIVE`].

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::offset_of;

use sys::errno::Errno;
use sys::stream::{Corrupt, Side, Size, Stream};
use sys::sync::mapped::AtomicU64;
use sys::sync::{AtomicU32, Ordering};

use self::back::back_at;
use crate::kernel::Kernel;

pub(crate) use self::shows::{Crammed, is_refusal};

mod alone;
mod back;
mod bell;
mod drain;
mod ends;
mod owed;
mod peek;
mod short;
mod shows;
mod steps;
mod tcp;
#[cfg(all(test, not(loom)))]
pub(crate) mod watch;

/// The turn in which one sends.
pub const SEND: usize = 0;
/// The turn in which one receives.
pub const RECEIVE: usize = 1;

/// An upgraded connection: what this process knows beside what lies in the shared memory.
#[derive(Debug)]
// What each call reads comes first, and the stream's own does so, too.
#[repr(C)]
pub struct Flow {
    /// What this process knows of the end of the TCP connection: 0, [`ENDED`], [`TOLD`], [`OVER`], or an errno.
    kernel_end: AtomicU32,
    /// Whether this process shut its receiving side down.
    read_shut: AtomicU32,
    /// Whether this process has to ring for a sender that waits for room.
    owes_bell: AtomicU32,
    /// A doorbell was taken off the connection.
    took_bell: AtomicU32,
    /// Bytes of the program went to TCP because the peer had closed.
    spoke: AtomicU32,
    /// This process has left, and goes on until it has ended.
    has_left: AtomicU32,
    stream: Stream,
    /// How far the peer had read when it was last looked at.
    read_then: AtomicU64,
    bells: &'static AtomicU64,
    /// When the peer was last rung for bytes, or looked at for that; 0 once it has taken some.
    rang_ms: AtomicU32,
    /// A doorbell is being written, which a signal handler may find.
    ringing: AtomicU32,
    /// While bytes of a direction that was called back move to TCP: how the program would have the connection linger. See `owed`.
    guard: AtomicU64,
    #[cfg(all(test, not(loom)))]
    pub(crate) watch: watch::Watch,
}

/// Why a call moved no byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// There is nothing now; or no room.
    Again,
    /// The sender has ended the stream.
    End,
    /// The connection, or the caller.
    Failed(Errno),
}

impl From<Corrupt> for Stop {
    fn from(_: Corrupt) -> Self {
        Self::Failed(SPOILT)
    }
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::AGAIN => Self::Again,
            errno => Self::Failed(errno),
        }
    }
}

/// What is to be sent: the program's buffers, but for the first `skip` bytes of them.
#[derive(Clone, Copy, Debug)]
pub struct Pieces<'a> {
    /// The buffers.
    pub buffers: &'a [IoSlice<'a>],
    /// How much of them has been sent.
    pub skip: usize,
    /// So many of what is left, at most.
    pub most: usize,
}

impl<'a> Pieces<'a> {
    #[inline]
    fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (mut skip, mut most) = (self.skip, self.most);
        self.buffers.iter().map(move |buffer| {
            let buffer: &'a [u8] = buffer;
            let (gone, left) = buffer.split_at(skip.min(buffer.len()));
            skip -= gone.len();
            let (left, _) = left.split_at(most.min(left.len()));
            most -= left.len();
            left
        })
    }

    fn is_empty(&self) -> bool {
        self.iter().all(<[u8]>::is_empty)
    }
}

/// What a receiver does with the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// Copies and takes them.
    Read,
    /// Copies them and leaves them there (`MSG_PEEK`).
    Peek,
    /// Takes this many without copying (`MSG_TRUNC`).
    Skip(usize),
    /// Says how many there are, this many at most, and leaves them there (`MSG_PEEK` with `MSG_TRUNC`).
    Count(usize),
}

impl Take {
    /// Whether the bytes stay where they are.
    #[inline]
    pub(crate) fn leaves(self) -> bool {
        matches!(self, Self::Peek | Self::Count(_))
    }
}

impl Flow {
    /// So long is what comes first, which each call touches: two lines of the processor's.
    pub(crate) const TOUCHED: usize = offset_of!(Self, stream) + Stream::TOUCHED;

    /// Both ends have agreed on `stream`; all bytes are still on TCP. Counts the doorbells that it rings.
    pub fn new(stream: Stream, bells: &'static AtomicU64) -> Self {
        stream.holders().join();
        Self::resume(stream, bells)
    }

    /// What is left of a connection that was reset: both directions are on TCP, which says so, and the memory is nobody else's.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn of_reset(bells: &'static AtomicU64) -> io::Result<Self> {
        let stream = Stream::map(Stream::memory(Size::LEAST)?, Side::A)?;
        stream.give_up_fd();
        stream.tx().set_to_ring(0);
        stream.tx().set_to_tcp(0);
        stream.rx().set_phase(AFTER);
        Ok(Self::new(stream, bells))
    }

    /// Goes on where the program before this one was, in this process or the one that started it: it is counted as a holder already.
    pub fn resume(stream: Stream, bells: &'static AtomicU64) -> Self {
        let flow = Self {
            stream,
            kernel_end: AtomicU32::new(0),
            read_shut: AtomicU32::new(0),
            owes_bell: AtomicU32::new(0),
            bells,
            took_bell: AtomicU32::new(0),
            spoke: AtomicU32::new(0),
            read_then: AtomicU64::new(0),
            rang_ms: AtomicU32::new(0),
            has_left: AtomicU32::new(0),
            ringing: AtomicU32::new(0),
            guard: AtomicU64::new(0),
            #[cfg(all(test, not(loom)))]
            watch: watch::Watch::default(),
        };
        flow.heed_shut_read();
        flow
    }

    /// The shared memory.
    #[inline]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Sends what there is room for. `may_switch` says that no other call of this process is under way on TCP.
    ///
    /// # Errors
    /// [`Stop::Again`] if there is no room at all.
    #[inline]
    pub fn send(
        &self,
        kernel: &impl Kernel,
        pieces: &Pieces<'_>,
        nested: bool,
        may_switch: bool,
    ) -> Result<usize, Stop> {
        let tx = self.stream.tx();
        if !(self.sends_on_ring() || may_switch && self.switch(kernel)?) {
            if let Some(errno) = self.take_error() {
                return Err(Stop::Failed(errno));
            }
            if tx.to_ring().is_none() && tx.back_wanted() {
                // Who does nothing but send would never answer. What is wrong with TCP the kernel says.
                let _ = self.serve_back(kernel);
            }
            if tx.to_tcp().is_some() && !self.serve_back(kernel).map_err(|stop| self.told(stop))? {
                return Err(if self.finished() {
                    Stop::Failed(Errno::PIPE)
                } else {
                    Stop::Again
                });
            }
            return self.send_plain(kernel, pieces);
        }
        tx.foresee();
        if tx.finished() != 0 {
            return Err(Stop::Failed(Errno::PIPE));
        }
        let ended = self.has_ended();
        if ended || self.stream.peer_deaf() {
            if let Some(errno) = self.take_error() {
                return Err(Stop::Failed(errno));
            }
            if self.error_is_told() {
                return Err(Stop::Failed(Errno::PIPE));
            }
            if tx.is_left() {
                // What has ended is another's that it left TCP to.
                return match self.serve_back(kernel) {
                    Ok(true) => self.send_plain(kernel, pieces),
                    Ok(false) => Err(Stop::Again),
                    Err(stop) => Err(self.told(stop)),
                };
            }
            // The kernel knows best what becomes of bytes that nobody reads: an end that is gone, or shut both ways, answers with a reset.
            if self.stream.peer_deaf() {
                self.spoke.store(1, Ordering::Relaxed);
                return self.send_plain(kernel, pieces);
            }
            // One that sends no more may read, and takes what is on TCP for doorbells. One that was killed answers the same.
            match self.put_bell(kernel) {
                Ok(()) | Err(Errno::AGAIN) => {}
                Err(errno) => return Err(Stop::Failed(errno)),
            }
        }
        let (sent, bits) = tx.write(nested, || pieces.iter())?;
        if bits != 0 {
            // Whatever comes of it, the bytes are sent: told that they are not, the program would send them again.
            self.attend(kernel, bits);
        }
        if sent == 0 && !pieces.is_empty() {
            return Err(Stop::Again);
        }
        Ok(sent)
    }

    /// Receives what there is.
    ///
    /// # Errors
    /// [`Stop::Again`] if there is nothing, [`Stop::End`] at the end.
    #[inline]
    pub fn receive(
        &self,
        kernel: &impl Kernel,
        into: &mut [IoSliceMut<'_>],
        take: Take,
    ) -> Result<usize, Stop> {
        if take.leaves() {
            return self.look(kernel, into, take);
        }
        self.receive_here(kernel, into, take)
    }

    /// As [`Flow::receive`], from where the direction is: a look ends where that does.
    #[inline]
    fn receive_here(
        &self,
        kernel: &impl Kernel,
        into: &mut [IoSliceMut<'_>],
        take: Take,
    ) -> Result<usize, Stop> {
        if self.stream.rx().phase() == ON_RING {
            match self.receive_from_ring(into, take)? {
                Some(n) => return Ok(n),
                None => return self.nothing(kernel, into, take),
            }
        }
        self.receive_plain(kernel, into, take)
    }

    /// Consents to the ring for what this end receives, in a turn of side [`RECEIVE`]. No other call of this process may be receiving on TCP.
    ///
    /// Not while urgent data is on TCP: a sender that did not [mark](sys::stream::Tx::mark) it, for there were no rings or it is the program before this
    /// one's, would move to the ring behind it, and of what lies in between nobody could say how much is the program's.
    pub fn consent(&self, kernel: &impl Kernel) {
        if !self.stream.rx().consented() && !kernel.has_mark() {
            self.stream.rx().consent();
            // Now, for a connection that is over has no counts.
            self.begin_count(kernel);
        }
    }

    #[inline]
    fn receive_from_ring(
        &self,
        into: &mut [IoSliceMut<'_>],
        take: Take,
    ) -> Result<Option<usize>, Stop> {
        let rx = self.stream.rx();
        loop {
            let head = rx.head();
            let mut at = head;
            if let Take::Skip(most) | Take::Count(most) = take {
                at = at.wrapping_add(rx.available()?.min(most) as u64);
            } else {
                for buffer in into.iter_mut() {
                    let n = rx.peek(at, buffer)?;
                    at = at.wrapping_add(n as u64);
                    if n < buffer.len() {
                        break;
                    }
                }
            }
            let n = at.wrapping_sub(head) as usize;
            if n == 0 {
                return Ok(None);
            }
            // Who only peeks takes nothing, but must also find out whether a handler took what it was copying.
            let at = if take.leaves() { head } else { at };
            let (taken, wake) = rx.take(head, at);
            if wake {
                self.owes_bell.store(1, Ordering::Relaxed);
            }
            if taken {
                return Ok(Some(n));
            }
        }
    }

    /// The ring is empty: is that the end, or does TCP go on?
    #[cold]
    fn nothing(
        &self,
        kernel: &impl Kernel,
        into: &mut [IoSliceMut<'_>],
        take: Take,
    ) -> Result<usize, Stop> {
        let rx = self.stream.rx();
        if let Some(end) = back_at(rx) {
            // The sender went back after its last write to the ring, so an empty ring now is empty for good.
            if rx.available()? != 0 {
                return match take {
                    // Else a peer who writes while we look could have us look for ever.
                    Take::Skip(0) | Take::Count(0) => Ok(0),
                    _ => self.receive_here(kernel, into, take),
                };
            }
            if !(self.drop_doorbells(kernel, end)).map_err(|stop| self.told(stop))? {
                return Err(Stop::Again);
            }
            return self.receive_plain(kernel, into, take);
        }
        let ended = rx.finished() != 0 || self.has_ended();
        if ended {
            // What was written before the end was said is there by now.
            if rx.available()? != 0 {
                return self.receive_here(kernel, into, take);
            }
            return Err(self.end_or_error());
        }
        if self.read_shut.load(Ordering::Relaxed) != 0 {
            return Err(self.shut_means(kernel));
        }
        Err(Stop::Again)
    }
}

#[cfg(not(loom))]
const _: () = assert!(Flow::TOUCHED <= 128);
// A line of the processor's: who receives while another sends reads nothing beyond.
#[cfg(not(loom))]
const _: () = assert!(offset_of!(Flow, stream) + Stream::WRITTEN == 64);

const BEFORE: u32 = 0;
const ON_RING: u32 = 1;
const AFTER: u32 = 2;

/// In `kernel_end`: TCP was read to its end, which was one in order. In [`Stream::tcp_error`], too.
const ENDED: u32 = u32::MAX;
/// There was an error, which has been told. In [`Stream::tcp_error`], too.
const TOLD: u32 = ENDED - 1;
/// TCP is over, as somebody saw who did not read its end; there may still be an error to tell.
const OVER: u32 = ENDED - 2;
const ERRNO_MAX: u32 = 4095;
/// What [`Corrupt`] is until the connection has been reset for it: no call on a socket has this error.
pub(crate) const SPOILT: Errno = Errno::BADMSG;

#[cfg(all(test, loom))]
pub(crate) mod model;
#[cfg(all(test, not(loom)))]
mod tests;
