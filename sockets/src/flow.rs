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
use std::os::fd::{AsRawFd, RawFd};

use sys::errno::Errno;
use sys::stream::{BACK, Corrupt, FIN, GONE, RING, Rx, SLEEPER, Side, Stream};
use sys::sync::mapped::AtomicU64;
use sys::sync::{AtomicU32, Ordering};

use crate::kernel::{Closed, Kernel, fill, skip};

/// The turn in which one sends.
pub const SEND: usize = 0;
/// The turn in which one receives.
pub const RECEIVE: usize = 1;

/// An upgraded connection: what this process knows beside what lies in the shared memory.
#[derive(Debug)]
pub struct Flow {
    stream: Stream,
    /// What the TCP connection said when doorbells were drained: 0, [`ENDED`], or an errno.
    kernel_end: AtomicU32,
    /// Whether this process shut its receiving side down.
    read_shut: AtomicU32,
    /// Whether this process has to ring for a sender that waits for room.
    owes_bell: AtomicU32,
    bells: &'static AtomicU64,
    /// A doorbell was taken off the connection.
    took_bell: AtomicU32,
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
}

impl<'a> Pieces<'a> {
    #[inline]
    fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut skip = self.skip;
        self.buffers.iter().map(move |buffer| {
            let buffer: &'a [u8] = buffer;
            let (gone, left) = buffer.split_at(skip.min(buffer.len()));
            skip -= gone.len();
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
}

impl Flow {
    /// Both ends have agreed on `stream`; all bytes are still on TCP. Counts the doorbells that it rings.
    pub fn new(stream: Stream, bells: &'static AtomicU64) -> Self {
        stream.holders().fetch_add(1, Ordering::AcqRel);
        Self::resume(stream, bells)
    }

    /// What is left of a connection that was reset: both directions are on TCP, which says so, and the memory is nobody else's.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn of_reset(bells: &'static AtomicU64) -> io::Result<Self> {
        let stream = Stream::map(Stream::memory()?, Side::A)?;
        stream.tx().set_to_ring(0);
        stream.tx().set_to_tcp(0);
        stream.rx().set_phase(AFTER);
        Ok(Self::new(stream, bells))
    }

    /// Goes on where the program before this one was, in this process or the one that started it: it is counted as a holder already.
    pub fn resume(stream: Stream, bells: &'static AtomicU64) -> Self {
        Self {
            stream,
            kernel_end: AtomicU32::new(0),
            read_shut: AtomicU32::new(0),
            owes_bell: AtomicU32::new(0),
            bells,
            took_bell: AtomicU32::new(0),
        }
    }

    /// Whether both directions have gone back to TCP for good.
    pub(crate) fn is_back_on_tcp(&self) -> bool {
        self.stream.tx().to_tcp().is_some() && self.stream.rx().phase() == AFTER
    }

    /// Moves the hidden descriptor away from `number`, if it is there; whether it is elsewhere now.
    pub(crate) fn step_aside(&mut self, number: RawFd) -> bool {
        self.stream.fd().as_raw_fd() != number || self.stream.step_aside().is_ok()
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
            if tx.to_tcp().is_some() && !self.serve_back(kernel)? {
                return Err(Stop::Again);
            }
            if let Some(errno) = self.take_error() {
                return Err(Stop::Failed(errno));
            }
            return send_plain(kernel, pieces);
        }
        if tx.finished() != 0 {
            return Err(Stop::Failed(Errno::PIPE));
        }
        let ended = self.kernel_end.load(Ordering::Relaxed) != 0;
        if ended || self.stream.peer_deaf() {
            if let Some(errno) = self.take_error() {
                return Err(Stop::Failed(errno));
            }
            // The kernel knows best what becomes of bytes that nobody reads: an end that is gone answers with a reset.
            if self.stream.peer_deaf() {
                return send_plain(kernel, pieces);
            }
            // One that sends no more may read, and takes what is on TCP for doorbells. One that was killed answers the same.
            match kernel.send(&[DOORBELL]) {
                Ok(_) | Err(Errno::AGAIN) => {}
                Err(errno) => return Err(Stop::Failed(errno)),
            }
        }
        let (sent, bits) = tx.write(nested, || pieces.iter())?;
        if bits != 0 {
            self.attend(kernel, bits)?;
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
        if self.stream.rx().phase() == ON_RING {
            match self.receive_from_ring(into, take)? {
                Some(n) => return Ok(n),
                None => return self.nothing(kernel, into, take),
            }
        }
        self.receive_plain(kernel, into, take)
    }

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
            ENDED => Some(None),
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
        self.kernel_end.store(ENDED, Ordering::Release);
        Some(errno)
    }

    /// Consents to the ring for what this end receives. No other call of this process may be receiving on TCP.
    pub fn consent(&self) {
        if !self.stream.rx().consented() {
            self.stream.rx().consent();
        }
    }

    /// Before sleeping until something can be received, in a turn of side [`RECEIVE`]: takes the doorbells off the connection, arms, and
    /// looks once more. True if one may sleep on the connection.
    ///
    /// # Errors
    /// If TCP's bytes cannot be told apart any more.
    pub fn arm_receive(&self, kernel: &impl Kernel) -> Result<bool, Stop> {
        let rx = self.stream.rx();
        match rx.phase() {
            ON_RING => {
                self.drain(kernel)?;
                rx.arm();
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

    fn is_to_come(&self, kernel: &impl Kernel, end: u64) -> bool {
        self.taken(kernel).is_ok_and(|taken| taken < end)
    }

    /// Before sleeping until there is room, in a turn of side [`SEND`]. True if one may sleep.
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

    /// Takes doorbells off the connection, in a turn of side [`RECEIVE`]; notes if TCP has ended. Arm afterwards.
    ///
    /// # Errors
    /// If TCP's bytes cannot be told apart any more.
    pub fn drain(&self, kernel: &impl Kernel) -> Result<(), Stop> {
        if !self.receives_on_ring() || self.kernel_end.load(Ordering::Relaxed) != 0 {
            return Ok(());
        }
        let mut scratch = [0; 64];
        let rx = self.stream.rx();
        for _ in 0..READS {
            let limit = match back_at(rx) {
                None => scratch.len(),
                Some(end) => usize::try_from(end.saturating_sub(self.taken(kernel)?))
                    .unwrap_or(usize::MAX)
                    .min(scratch.len()),
            };
            if limit == 0 {
                return Ok(());
            }
            let Some(room) = scratch.get_mut(..limit) else {
                return Ok(());
            };
            match kernel.recv(room) {
                Ok(0) => {
                    self.kernel_end.store(ENDED, Ordering::Release);
                    return Ok(());
                }
                Ok(n) => {
                    self.took_bell.store(1, Ordering::Relaxed);
                    // The sender may have gone back to TCP while we read: what lies after that point are its bytes.
                    if let Some(end) = back_at(rx) {
                        let beyond = usize::try_from(self.taken(kernel)?.saturating_sub(end))
                            .unwrap_or(usize::MAX)
                            .min(n);
                        if let Some(bytes) = scratch.get(n - beyond..n) {
                            rx.put_back(bytes)?;
                        }
                    }
                    if n < limit {
                        return Ok(());
                    }
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(errno) => {
                    self.kernel_end
                        .store(self.reset_means(errno), Ordering::Release);
                    return Ok(());
                }
            }
        }
        Ok(())
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

    /// Ends the sending direction (`shutdown(SHUT_WR)`), in a turn of side [`SEND`]. False if the kernel must do it.
    ///
    /// On the ring the end is said in memory and TCP stays open, because the doorbells of the other direction still need it.
    ///
    /// # Errors
    /// If the doorbell cannot be rung.
    pub fn finish(&self, kernel: &impl Kernel, may_switch: bool) -> Result<bool, Stop> {
        if !(self.sends_on_ring() || may_switch && self.switch(kernel)?) {
            return Ok(false);
        }
        let bits = self.stream.tx().finish(FIN);
        self.ring_bell(kernel, bits)?;
        Ok(true)
    }

    /// Follows the sender to the ring if all that it had put on TCP before has been taken; in a turn of side [`RECEIVE`].
    ///
    /// # Errors
    /// If the kernel does not say how much was taken.
    pub fn follow(&self, kernel: &impl Kernel) -> Result<(), Stop> {
        let rx = self.stream.rx();
        if rx.phase() == BEFORE
            && let Some(end) = rx.to_ring()
            && self.taken(kernel)? >= end
        {
            rx.set_phase(ON_RING);
        }
        Ok(())
    }

    /// How much was taken from TCP.
    fn taken(&self, kernel: &impl Kernel) -> Result<u64, Errno> {
        if self.stream.rx().mark().is_some() {
            kernel.taken_past_mark()
        } else {
            kernel.taken()
        }
    }

    /// How many of the bytes that wait on TCP are doorbells, where the sender has gone back there.
    ///
    /// # Errors
    /// If the kernel does not say how much was taken.
    pub fn doorbells(&self, kernel: &impl Kernel) -> Result<Option<u64>, Stop> {
        Ok(match back_at(self.stream.rx()) {
            Some(end) => Some(end.saturating_sub(self.taken(kernel)?)),
            None => None,
        })
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

    /// `shutdown(SHUT_RD)`.
    pub fn shut_read(&self) {
        self.read_shut.store(1, Ordering::Release);
    }

    /// Whether [`Flow::shut_read`] has been called.
    #[inline]
    pub fn read_is_shut(&self) -> bool {
        self.read_shut.load(Ordering::Relaxed) != 0
    }

    /// As [`Flow::leave`], after the descriptor was closed.
    pub fn leave_closed(&self) {
        self.leave(&Closed);
    }

    /// This process has no descriptor of the connection any more. If it was the last that had this end, the peer is told, and the
    /// connection is left as the kernel would leave it: closed in order, or reset if bytes were not read.
    pub fn leave(&self, kernel: &impl Kernel) {
        if self.stream.holders().fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let unread = self.receives_on_ring() && self.stream.rx().available() != Ok(0);
        self.stream.set_deaf();
        // Closed with a doorbell on it, a connection would be reset, and what we sent might be lost.
        let _ = self.drain(kernel);
        if unread {
            // The kernel tells it, as a reset.
            kernel.reset_on_close();
        } else if self.sends_on_ring() && !kernel.resets_on_close() {
            // Whoever sleeps is woken by the end of the TCP connection.
            self.stream.tx().finish(GONE);
        }
    }

    /// Goes back to TCP with what this end sends, in a turn of side [`SEND`]. The receiver takes what is in the ring first.
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
        // Nobody need be woken: what comes next on TCP wakes whoever sleeps there.
        tx.set_to_tcp(kernel.written()?);
        self.repeat_end(kernel);
        Ok(())
    }

    /// As [`Flow::leave_ring`], and for good, also where this direction never was on the ring. No other call of this process is sending on TCP.
    ///
    /// # Errors
    /// As [`Flow::leave_ring`].
    pub fn renounce_ring(&self, kernel: &impl Kernel) -> Result<(), Stop> {
        let tx = self.stream.tx();
        if tx.to_ring().is_none() {
            tx.set_to_ring(kernel.written()?);
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
        self.bell_if_possible(kernel, may_switch)
    }

    /// Serves a receiver that wants its direction back on TCP, in a turn of side [`SEND`]: what it has not taken goes there. True when done.
    ///
    /// # Errors
    /// TCP's.
    pub fn serve_back(&self, kernel: &impl Kernel) -> Result<bool, Stop> {
        let tx = self.stream.tx();
        if !tx.back_wanted() {
            return Ok(true);
        }
        if tx.to_tcp().is_some_and(|at| at & SERVED == 0) {
            return Ok(true);
        }
        if tx.to_tcp().is_none() {
            // A direction that never was on the ring goes there and back: the receiver waits for the second step.
            if tx.to_ring().is_none() {
                tx.set_to_ring(kernel.written()?);
            }
            tx.set_to_tcp(kernel.written()? | SERVED);
        }
        let mut chunk = [0; 4096];
        let mut moved = 0;
        // More than the ring holds is left only by a peer that moves its cursor back.
        while moved <= RING {
            let n = tx.unread(0, &mut chunk)?;
            let Some(bytes) = chunk.get(..n) else {
                return Ok(true);
            };
            if bytes.is_empty() {
                self.repeat_end(kernel);
                return Ok(true);
            }
            match kernel.send(bytes) {
                Ok(sent) => {
                    moved += sent;
                    tx.take_back(sent)?;
                }
                Err(Errno::AGAIN) => return Ok(false),
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(Corrupt.into())
    }

    /// Whether [`Flow::serve_back`] is due.
    #[inline]
    pub fn owes_back(&self) -> bool {
        let tx = self.stream.tx();
        tx.back_wanted()
            && tx
                .to_tcp()
                .is_none_or(|at| at & SERVED != 0 && tx.drained() == Ok(false))
    }

    /// An end that was said in memory must be said on TCP too, once that is where the receiver looks.
    fn repeat_end(&self, kernel: &impl Kernel) {
        if self.finished() {
            kernel.finish();
        }
    }

    /// Whether the peer has done what [`Flow::call_back`] asked, and its doorbells are off the connection; in a turn of side [`RECEIVE`].
    ///
    /// # Errors
    /// TCP's.
    pub fn came_back(&self, kernel: &impl Kernel) -> Result<bool, Stop> {
        let rx = self.stream.rx();
        let Some(end) = back_at(rx) else {
            return Ok(false);
        };
        match rx.phase() {
            AFTER => return Ok(true),
            BEFORE if rx.to_ring() == Some(end) => {
                // It never was on the ring, or nothing but bytes of the program is on TCP.
                rx.set_phase(AFTER);
                return Ok(true);
            }
            // Doorbells behind bytes that nobody has read: whoever reads TCP from now on would take them for data.
            BEFORE
                if rx
                    .to_ring()
                    .is_some_and(|at| self.taken(kernel).is_ok_and(|taken| taken < at)) =>
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

    /// Rings the peer's doorbell if `bits` say that it sleeps, and serves it if it wants to go back to TCP.
    #[cold]
    fn attend(&self, kernel: &impl Kernel, bits: u32) -> Result<(), Stop> {
        if bits & BACK != 0 {
            // No doorbell then: it would stand between bytes of the program.
            self.serve_back(kernel)?;
            return Ok(());
        }
        self.ring_bell(kernel, bits)
    }

    fn ring_bell(&self, kernel: &impl Kernel, bits: u32) -> Result<(), Stop> {
        if bits & SLEEPER != 0 && self.stream.tx().knock() != 0 {
            self.ring_bell_now(kernel)?;
        }
        Ok(())
    }

    fn ring_bell_now(&self, kernel: &impl Kernel) -> Result<(), Stop> {
        self.bells.fetch_add(1, Ordering::Relaxed);
        match kernel.send(&[DOORBELL]) {
            // A full connection is readable, which is all that a doorbell says; one that is gone wakes sleepers by itself.
            Ok(_) | Err(Errno::AGAIN | Errno::PIPE | Errno::CONNRESET) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Moves the sending direction to the ring, if the receiver has consented.
    #[cold]
    fn switch(&self, kernel: &impl Kernel) -> Result<bool, Stop> {
        let tx = self.stream.tx();
        if tx.to_ring().is_some() || !tx.consented() || tx.back_wanted() {
            return Ok(false);
        }
        // After an end on TCP no doorbell can follow. And a connection that is over has no counts; what to say of it the kernel knows.
        let (false, Ok(written)) = (kernel.has_finished(), kernel.written()) else {
            return Ok(false);
        };
        tx.set_to_ring(written);
        Ok(true)
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
            if let Take::Skip(most) = take {
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
            let at = if take == Take::Peek { head } else { at };
            let (taken, wake) = rx.take(head, at);
            if wake {
                self.owes_bell.store(1, Ordering::Relaxed);
            }
            if taken {
                return Ok(Some(n));
            }
        }
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
            self.ring_bell_now(kernel)?;
        }
        Ok(())
    }

    /// Wakes a sender that sleeps for room, in a turn of side [`SEND`]: its doorbell is a byte of the other direction.
    ///
    /// # Errors
    /// TCP's.
    #[cold]
    pub fn pay_bell(&self, kernel: &impl Kernel, may_switch: bool) -> Result<(), Stop> {
        let unasked = self.owes_bell.swap(0, Ordering::Relaxed) == UNASKED;
        if self.stream.rx().knock() || unasked {
            self.bell_if_possible(kernel, may_switch)?;
        }
        Ok(())
    }

    /// A doorbell can go only where no data goes. A sender that cannot be rung for naps instead of sleeping.
    fn bell_if_possible(&self, kernel: &impl Kernel, may_switch: bool) -> Result<(), Stop> {
        if self.sends_on_ring() || (may_switch && self.switch(kernel)?) {
            self.ring_bell_now(kernel)?;
        }
        Ok(())
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
                return self.receive(kernel, into, take);
            }
            if !self.drop_doorbells(kernel, end)? {
                return Err(Stop::Again);
            }
            return self.receive_plain(kernel, into, take);
        }
        let ended = rx.finished() != 0 || self.kernel_end.load(Ordering::Acquire) != 0;
        if ended {
            // What was written before the end was said is there by now.
            if rx.available()? != 0 {
                return self.receive(kernel, into, take);
            }
            // An error is told once; after it comes the end.
            if let Some(errno) = self.take_error() {
                return Err(Stop::Failed(errno));
            }
            return Err(Stop::End);
        }
        if self.read_shut.load(Ordering::Relaxed) != 0 {
            return Err(Stop::End);
        }
        Err(Stop::Again)
    }

    /// Takes doorbells off the connection up to the count at which TCP goes on; true when there.
    fn drop_doorbells(&self, kernel: &impl Kernel, end: u64) -> Result<bool, Stop> {
        let mut scratch = [0; 64];
        for _ in 0..READS {
            let left =
                usize::try_from(end.saturating_sub(self.taken(kernel)?)).unwrap_or(usize::MAX);
            if left == 0 {
                self.stream.rx().set_phase(AFTER);
                return Ok(true);
            }
            let Some(room) = scratch.get_mut(..left.min(64)) else {
                return Ok(false);
            };
            match kernel.recv(room) {
                Ok(0) => return Err(Stop::End),
                Ok(_) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(false)
    }

    /// From TCP, before the ring or after it.
    #[cold]
    fn receive_plain(
        &self,
        kernel: &impl Kernel,
        into: &mut [IoSliceMut<'_>],
        take: Take,
    ) -> Result<usize, Stop> {
        let rx = self.stream.rx();
        let before = rx.phase() == BEFORE;
        let mut limit = usize::MAX;
        if before && let Some(end) = rx.to_ring() {
            limit = match self.taken(kernel) {
                Ok(taken) => usize::try_from(end.saturating_sub(taken)).unwrap_or(usize::MAX),
                // Ended on both sides, the kernel counts no more: what there is, is there.
                Err(Errno::NOTCONN) => match kernel.peek(&mut [0]) {
                    Ok(n) if n > 0 => usize::MAX - 1,
                    _ => 0,
                },
                Err(errno) => return Err(errno.into()),
            };
            if limit == 0 {
                rx.set_phase(ON_RING);
                return self.receive(kernel, into, take);
            }
        }
        let n = match take {
            Take::Skip(most) => skip(kernel, most.min(limit))?,
            Take::Read => fill(into, limit, |room| kernel.recv(room))?,
            // One call, for a second would see the same bytes again.
            Take::Peek => fill(into.get_mut(..1).unwrap_or_default(), limit, |room| {
                kernel.peek(room)
            })?,
        };
        if before
            && limit == usize::MAX
            && let Some(end) = rx.to_ring()
        {
            // The sender went to the ring while we read: what we have beyond that point are doorbells.
            let peeked = if take == Take::Peek { n as u64 } else { 0 };
            let taken = match self.taken(kernel) {
                Ok(taken) => taken + peeked,
                // Ended on both sides, the kernel counts no more. It brought no doorbell with the last bytes, or they came late.
                Err(Errno::NOTCONN) => end.saturating_add(u64::from(n == 0)),
                Err(errno) => return Err(errno.into()),
            };
            let beyond = usize::try_from(taken.saturating_sub(end))
                .unwrap_or(usize::MAX)
                .min(n);
            if beyond == n && n > 0 {
                return self.receive(kernel, into, take);
            }
            return if n == 0 {
                self.receive(kernel, into, take)
            } else {
                Ok(n - beyond)
            };
        }
        if n == 0 && !into.iter().all(|buffer| buffer.is_empty()) {
            return Err(self.take_error().map_or(Stop::End, Stop::Failed));
        }
        Ok(n)
    }

    /// What to tell the program of an error on a connection that carried doorbells: a peer that was killed with one of ours unread is
    /// reset, though it had read all of the program's bytes, and the program would have seen an orderly end. One that closed, and is deaf, took the
    /// doorbells first, so if it is reset it meant that.
    fn reset_means(&self, errno: Errno) -> u32 {
        let closed = self.stream.rx().finished() & GONE != 0 || self.stream.peer_deaf();
        if errno == Errno::CONNRESET && !closed && self.stream.tx().drained() == Ok(true) {
            ENDED
        } else {
            errno.raw_os_error().cast_unsigned()
        }
    }
}

/// Where on TCP the bytes go on.
#[inline]
fn back_at(rx: Rx<'_>) -> Option<u64> {
    rx.to_tcp().map(|at| at & !SERVED)
}

fn send_plain(kernel: &impl Kernel, pieces: &Pieces<'_>) -> Result<usize, Stop> {
    let mut sent = 0;
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        match kernel.send(piece) {
            Ok(n) => {
                sent += n;
                if n < piece.len() {
                    break;
                }
            }
            Err(_) if sent > 0 => break,
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(sent)
}

/// In the count at which a direction goes back to TCP: the sender takes back what is in the ring.
const SERVED: u64 = 1 << 62;

const BEFORE: u32 = 0;
const ON_RING: u32 = 1;
const AFTER: u32 = 2;

const ENDED: u32 = u32::MAX;
/// What [`Corrupt`] is until the connection has been reset for it: no call on a socket has this error.
pub(crate) const SPOILT: Errno = Errno::BADMSG;
/// Doorbells are few. Who sends more must not keep a call here: it goes on at the next one.
const READS: u32 = 64;
/// In `owes_bell`: whether the sender asked for it or not.
const UNASKED: u32 = 2;
/// Its value means nothing; who sees it in a trace may know it.
const DOORBELL: u8 = 0x07;

#[cfg(test)]
mod tests;
