//! `poll`, and `select` on top of it, over connections with rings, sets of them, and whatever else has a descriptor.
//!
//! Connections whose bytes come through memory are looked at there, all others by the kernel, in one call. The wait polls for a while, as
//! every wait here does; then each connection is [armed](crate::ready), and the kernel sleeps on all of them.

use std::os::fd::{BorrowedFd, RawFd};
use std::time::Duration;

use sys::errno::Errno;
use sys::wait::Spin;

use crate::leftover;
use crate::ready::{self, ALWAYS, Deadline, ERR, HUP, IN, LOOK, NVAL, Naps, RDHUP, READ};

mod night;
pub mod select;
mod survey;
#[cfg(test)]
mod tests;

use night::{Night, get_up, lie_down};
use survey::{Survey, What, survey};

/// An entry of `poll`, as C has it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollFd {
    /// Not looked at if negative.
    pub fd: RawFd,
    /// What is waited for.
    pub events: i16,
    /// What there is.
    pub revents: i16,
}

/// The kernel's part: `ppoll`, with the program's signal mask.
pub trait Poller {
    /// As `poll`; no timeout is for ever.
    ///
    /// # Errors
    /// As `poll`.
    fn poll(&self, fds: &mut [PollFd], timeout: Option<Duration>) -> Result<usize, Errno>;
}

/// As `poll`.
///
/// # Errors
/// As `poll`.
pub fn poll(
    fds: &mut [PollFd],
    timeout: Option<Duration>,
    kernel: &impl Poller,
) -> Result<usize, Errno> {
    let mut found = survey(fds);
    if found.in_memory == 0 {
        if let Some(result) = plain(fds, timeout, kernel, &found) {
            return result;
        }
        // One has got rings just now.
        found = survey(fds);
    }
    let mut few = [NONE; FEW];
    let mut many = Vec::new();
    let scratch = if let Some(few) = few.get_mut(..fds.len()) {
        few
    } else {
        many.resize(fds.len(), NONE);
        &mut many
    };
    mixed(fds, scratch, timeout, kernel, &found)
}

/// Only the kernel knows, but for connections a non-blocking look or a few are quicker than sleep and wake-up. `None` if that is no longer so.
fn plain(
    fds: &mut [PollFd],
    timeout: Option<Duration>,
    kernel: &impl Poller,
    found: &Survey,
) -> Option<Result<usize, Errno>> {
    let Some(conn) = found.connection.filter(|_| timeout != Some(Duration::ZERO)) else {
        return Some(kernel.poll(fds, timeout));
    };
    let end = Deadline::after(timeout);
    let mut spin = found.socket().begin();
    let trickles = found.connections == 1 && conn.trickles();
    while !trickles && ready::worth_polling(timeout) {
        match kernel.poll(fds, Some(Duration::ZERO)) {
            Ok(0) => {}
            result => {
                spin.hit();
                return Some(result);
            }
        }
        if !spin.again() {
            break;
        }
    }
    ready::unaware();
    if survey(fds).in_memory > 0 {
        ready::aware();
        return None;
    }
    let result = if trickles {
        conn.gather(|| kernel.poll(fds, end.left()))
    } else {
        kernel.poll(fds, end.left())
    };
    ready::aware();
    if result != Ok(0) {
        spin.hit();
    }
    Some(result)
}

fn mixed(
    fds: &mut [PollFd],
    scratch: &mut [PollFd],
    timeout: Option<Duration>,
    kernel: &impl Poller,
    found: &Survey,
) -> Result<usize, Errno> {
    let end = Deadline::after(timeout.filter(|timeout| !timeout.is_zero()));
    let mut spin: Spin<'_> = found.memory().begin();
    let patient = timeout != Some(Duration::ZERO);
    let mut looks = 0u32;
    let mut naps = Naps::default();
    loop {
        let shown = show(fds, scratch);
        // What the kernel knows belongs to the answer, as far as somebody asks for it.
        let due = shown.ready > 0 || looks.is_multiple_of(KERNEL_EACH) || !patient;
        let ask = found.others || shown.ask || (!patient && shown.ready == 0);
        let mut ready = shown.ready;
        if ask && due {
            kernel.poll(scratch, Some(Duration::ZERO))?;
            ready = answer(fds, scratch);
        }
        if ready > 0 {
            spin.hit();
            return Ok(ready);
        }
        if !patient {
            return Ok(0);
        }
        looks += 1;
        if ready::worth_polling(timeout) && spin.again() {
            continue;
        }
        ready::poller_rests();
        let Some(rest) = lie_down(fds, scratch) else {
            ready::poller_is_up();
            continue;
        };
        let left = leftover::within(end.left());
        let limit = match rest {
            Night::Nap => Some(naps.next_within(left)),
            Night::Look => Some(left.map_or(LOOK, |left| left.min(LOOK))),
            Night::Sleep => left,
        };
        let slept = kernel.poll(scratch, limit);
        ready::poller_is_up();
        get_up(fds);
        let woken = slept?;
        let ready = answer(fds, scratch);
        if ready > 0 {
            spin.hit();
            count_sleep(fds);
            return Ok(ready);
        }
        if woken == 0 && end.left() == Some(Duration::ZERO) {
            return Ok(0);
        }
    }
}

struct Shown {
    ready: usize,
    /// Whether the kernel must be asked about one that memory knows.
    ask: bool,
}

/// Sets `revents` as memory shows, and `scratch` to the questions for the kernel.
fn show(fds: &mut [PollFd], scratch: &mut [PollFd]) -> Shown {
    let mut shown = Shown {
        ready: 0,
        ask: false,
    };
    for (entry, question) in fds.iter_mut().zip(scratch) {
        entry.revents = 0;
        *question = PollFd {
            revents: 0,
            ..*entry
        };
        let interest = bits(entry.events);
        match What::is(entry.fd) {
            What::Ring(conn) => {
                let look = with(entry.fd, |fd| ready::look(conn, fd, interest)).unwrap_or_default();
                entry.revents = revents(look.ready & (interest | ALWAYS));
                let ask = look.ask & (interest | ALWAYS);
                shown.ask |= ask != 0;
                // An end that memory does not show yet, too: that of a peer that was killed.
                question.events = revents(ask | RDHUP);
            }
            What::Set(set) => {
                question.fd = -1;
                if interest & READ != 0 && set.is_ready(entry.fd) {
                    entry.revents = revents(interest & READ);
                }
            }
            What::Nothing | What::Other => {}
        }
        shown.ready += usize::from(entry.revents != 0);
    }
    shown
}

/// Adds what the kernel answered; how many entries are ready.
fn answer(fds: &mut [PollFd], scratch: &[PollFd]) -> usize {
    let mut ready = 0;
    for (entry, question) in fds.iter_mut().zip(scratch) {
        let interest = bits(entry.events);
        let said = bits(question.revents);
        match What::is(entry.fd) {
            What::Ring(conn) if said & NVAL == 0 => {
                let mut said = said;
                if said & (RDHUP | ALWAYS) != 0 {
                    sys::tcp::with_borrowed(entry.fd, |fd| ready::note_end(conn, fd));
                    // What was an error is in memory now, or none to the program.
                    said &= !ERR;
                    said |= u32::from(sys::epoll::shows(entry.fd, 0)) & ERR;
                }
                let look = with(entry.fd, |fd| ready::look(conn, fd, interest)).unwrap_or_default();
                // Beside what memory shows: something in the error queue, and the end of a connection that is read from TCP.
                let ask = look.ask | ERR | if look.ask & READ == 0 { 0 } else { HUP };
                let told = look.ready | said & ask & !look.hush;
                entry.revents = revents(told & (interest | ALWAYS));
            }
            What::Set(set) => {
                let is_ready =
                    interest & READ != 0 && (entry.revents != 0 || set.is_ready(entry.fd));
                entry.revents = if is_ready {
                    revents(interest & READ)
                } else {
                    0
                };
            }
            What::Nothing => entry.revents = 0,
            What::Ring(_) | What::Other => {
                entry.revents = revents(said & (interest | ALWAYS | NVAL));
            }
        }
        ready += usize::from(entry.revents != 0);
    }
    ready
}

/// The poller slept until these were ready.
fn count_sleep(fds: &[PollFd]) {
    for entry in fds.iter().filter(|entry| entry.revents != 0) {
        if let What::Ring(conn) = What::is(entry.fd) {
            conn.count_sleep();
        }
    }
}

#[inline]
fn with<R>(fd: RawFd, act: impl FnOnce(BorrowedFd<'_>) -> Option<R>) -> Option<R> {
    sys::tcp::with_borrowed(fd, act).flatten()
}

#[inline]
fn bits(events: i16) -> u32 {
    u32::from(events.cast_unsigned())
}

#[inline]
fn revents(bits: u32) -> i16 {
    // All events have bits below the sign's.
    (bits as u16).cast_signed()
}

const NONE: PollFd = PollFd {
    fd: -1,
    events: 0,
    revents: 0,
};

/// So many descriptors cost no allocation.
const FEW: usize = 256;
/// While polling, memory is looked at so much oftener than the kernel.
const KERNEL_EACH: u32 = 16;

const _: () = assert!(IN == 1 && size_of::<PollFd>() == 8);
