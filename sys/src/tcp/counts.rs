//! How many bytes went over a connection, whoever wrote or read them.
//!
//! The kernel counts sequence numbers, and the SYN of who opened the connection and a FIN take one each:
//!
//! - *acknowledged* plus *queued to send* is what was written, plus 1 at the active opener, whose SYN was acknowledged, plus 1 after a
//!   FIN. (The passive end's SYN is acknowledged before its socket exists.)
//! - *sent* less *retransmitted* plus *not yet sent* is what was written, plus 1 while a FIN waits. It counts payload only, so the difference of
//!   the two tells the active opener, for sockets too that were inherited or came over a Unix socket. But it counts twice what a queueing
//!   discipline dropped at the source: with `tbf` on `lo` it was wrong by megabytes within seconds, where the first was exact. So where it is known
//!   who opened, [`written_by`] is the better question; and [`written`] answers only if the two agree.
//! - *received* less *queued to receive* is what was taken, plus 1 after the peer's FIN.
//!
//! Tried on Linux 6.18, also with TCP Fast Open, whose data in the SYN changes nothing.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, ioctl};

use super::option::{Plain, get};

/// The states of a TCP socket, by the kernel's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Both directions are open.
    Established,
    /// This end has sent a FIN, the other has not.
    FinSent,
    /// The other end has sent a FIN, this one has not.
    FinReceived,
    /// Both have.
    Closing,
    /// There is no connection: not yet, or no longer.
    None,
}

/// How far the connection is. One system call.
///
/// # Errors
/// `ENOPROTOOPT`, `EOPNOTSUPP` for what is no TCP socket.
pub fn state(fd: BorrowedFd<'_>) -> Result<State, Errno> {
    Ok(info(fd)?.state())
}

/// Bytes written to the connection so far. Three system calls; the caller sees to it that nobody writes meanwhile.
///
/// # Errors
/// `EINVAL` if the kernel's counts contradict each other; `ENOTCONN` if the connection is over.
pub fn written(fd: BorrowedFd<'_>) -> Result<u64, Errno> {
    both_counts(fd).map(|(payload, _)| payload)
}

/// Whether this end called `connect`. Best asked while the connection is young: see [`written`]. Three system calls.
///
/// # Errors
/// As [`written`].
pub fn is_opener(fd: BorrowedFd<'_>) -> Result<bool, Errno> {
    both_counts(fd).map(|(_, syn)| syn == 1)
}

/// As [`written`], for an end of which it is known whether it called `connect`; then nothing can contradict.
///
/// # Errors
/// `ENOTCONN` if the connection is over.
pub fn written_by(fd: BorrowedFd<'_>, opener: bool) -> Result<u64, Errno> {
    let (info, queued) = settled(fd, outq, |info| info.acked)?;
    info.counted(queued)?
        .checked_sub(u64::from(opener))
        .ok_or(Errno::INVAL)
}

/// Bytes taken from the connection so far. Three system calls; the caller sees to it that nobody reads meanwhile.
///
/// Not to be relied on while urgent data is in the stream: the kernel then says of what is queued only how far it is to the mark.
///
/// # Errors
/// `ENOTCONN` if the connection is over: the kernel no longer says whether a FIN is among what it counted.
pub fn taken(fd: BorrowedFd<'_>) -> Result<u64, Errno> {
    let (info, queued) = settled(fd, inq, |info| info.received)?;
    let fin = match info.state() {
        State::Established | State::FinSent => 0,
        State::FinReceived | State::Closing => 1,
        State::None => return Err(Errno::NOTCONN),
    };
    info.received
        .checked_sub(fin + u64::from(queued))
        .ok_or(Errno::INVAL)
}

/// Bytes that have come in all, taken or not; with a FIN it is one more.
///
/// # Errors
/// `EINVAL` for what is no connection of TCP.
pub fn received(fd: BorrowedFd<'_>) -> Result<u64, Errno> {
    Ok(info(fd)?.received)
}

/// Bytes that can be received.
///
/// # Errors
/// `EINVAL` for a socket that listens.
pub fn inq(fd: BorrowedFd<'_>) -> Result<u32, Errno> {
    // SAFETY: SIOCINQ stores an int.
    unsafe { ioctl(fd, Getter::<SIOCINQ, u32>::new()) }
}

/// Bytes sent that the peer has not acknowledged.
///
/// # Errors
/// `EINVAL` for a socket that listens.
pub fn outq(fd: BorrowedFd<'_>) -> Result<u32, Errno> {
    // SAFETY: SIOCOUTQ stores an int.
    unsafe { ioctl(fd, Getter::<SIOCOUTQ, u32>::new()) }
}

/// Bytes of payload written, and 1 for the SYN if it is among what was acknowledged.
fn both_counts(fd: BorrowedFd<'_>) -> Result<(u64, u64), Errno> {
    let (info, queued) = settled(fd, outq, |info| info.acked)?;
    let counted = info.counted(queued)?;
    let waiting = u64::from(info.not_sent);
    let fin_waits = u64::from(info.sent_fin() && waiting > 0);
    let payload = (info.sent + waiting)
        .checked_sub(info.retransmitted + fin_waits)
        .ok_or(Errno::INVAL)?;
    match counted.checked_sub(payload) {
        Some(syn @ (0 | 1)) => Ok((payload, syn)),
        _ => Err(Errno::INVAL),
    }
}

/// A queue and the count that goes with it, of one moment: packets come in between two system calls.
fn settled(
    fd: BorrowedFd<'_>,
    queue: fn(BorrowedFd<'_>) -> Result<u32, Errno>,
    count: fn(&Info) -> u64,
) -> Result<(Info, u32), Errno> {
    let mut before = info(fd)?;
    for _ in 0..TRIES {
        let queued = queue(fd)?;
        let after = info(fd)?;
        if count(&before) == count(&after) && before.state == after.state {
            return Ok((after, queued));
        }
        before = after;
    }
    Err(Errno::AGAIN)
}

fn info(fd: BorrowedFd<'_>) -> Result<Info, Errno> {
    get(fd, libc::IPPROTO_TCP, libc::TCP_INFO)
}

/// `struct tcp_info` as far as it is of use here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Info {
    state: u8,
    _bytes: [u8; 7],
    _rto_to_total_retrans: [u32; 24],
    _pacing: [u64; 2],
    /// Sequence numbers.
    acked: u64,
    /// Sequence numbers.
    received: u64,
    _segs: [u32; 2],
    /// Sequence numbers.
    not_sent: u32,
    _min_rtt_to_data_segs: [u32; 3],
    _rates: [u64; 4],
    _delivered: [u32; 2],
    /// Bytes of payload.
    sent: u64,
    /// Bytes of payload.
    retransmitted: u64,
}

// SAFETY: integers, without padding.
unsafe impl Plain for Info {}

const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(Info, acked) == 120 && offset_of!(Info, received) == 128);
    assert!(offset_of!(Info, not_sent) == 144);
    assert!(offset_of!(Info, sent) == 200 && offset_of!(Info, retransmitted) == 208);
    assert!(size_of::<Info>() == 216);
};

impl Info {
    fn state(&self) -> State {
        match self.state {
            1 => State::Established,
            4 | 5 => State::FinSent,
            8 => State::FinReceived,
            6 | 9 | 11 => State::Closing,
            _ => State::None,
        }
    }

    fn sent_fin(&self) -> bool {
        matches!(self.state(), State::FinSent | State::Closing)
    }

    /// What was written, plus 1 at the active opener.
    fn counted(&self, queued: u32) -> Result<u64, Errno> {
        if self.state() == State::None {
            return Err(Errno::NOTCONN);
        }
        (self.acked + u64::from(queued))
            .checked_sub(u64::from(self.sent_fin()))
            .ok_or(Errno::INVAL)
    }
}

const SIOCINQ: Opcode = libc::FIONREAD as Opcode;
const SIOCOUTQ: Opcode = libc::TIOCOUTQ as Opcode;
/// A segment may come in between two looks, but hardly so many times.
const TRIES: u32 = 64;
