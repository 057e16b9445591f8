//! `poll`, and `select` on top of it, over connections with rings, sets of them, and whatever else has a descriptor.
//!
//! Connections whose bytes come through memory are looked at there, all others by the kernel, in one call. The wait polls for a while, as
//! every wait here does; then each connection is [armed](crate::ready), and the kernel sleeps on all of them.

use std::os::fd::{BorrowedFd, RawFd};
use std::time::Duration;

use sys::errno::Errno;
use sys::wait::Spin;

use crate::conn::Conn;
use crate::host::has_threads;
use crate::ready::{self, Deadline, IN, LOOK, LOOK_SELDOM, Naps, READ};
use crate::{leftover, table};

mod habit;
mod night;
pub mod select;
mod show;
mod survey;
#[cfg(test)]
mod tests;

use habit::Habit;
use night::{Night, Watched, get_up, lie_down, lie_down_unaware};
use show::{answer, show};
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
    match fds.len() {
        len if len <= FEW => mixed_in::<FEW>(fds, timeout, kernel, &found),
        len if len <= SOME => mixed_in::<SOME>(fds, timeout, kernel, &found),
        len => mixed(fds, &mut vec![NONE; len], timeout, kernel, &found),
    }
}

/// As [`mixed`], of no more than `ROOM`. Not in its caller, which may run on the stack of a signal handler: all have the room that they need and no more.
#[inline(never)]
fn mixed_in<const ROOM: usize>(
    fds: &mut [PollFd],
    timeout: Option<Duration>,
    kernel: &impl Poller,
    found: &Survey,
) -> Result<usize, Errno> {
    let mut scratch = [NONE; ROOM];
    let scratch = scratch.get_mut(..fds.len()).unwrap_or_default();
    mixed(fds, scratch, timeout, kernel, found)
}

/// Only the kernel knows, but for connections a non-blocking look or a few are quicker than sleep and wake-up. `None` if that is no longer so.
fn plain(
    fds: &mut [PollFd],
    timeout: Option<Duration>,
    kernel: &impl Poller,
    found: &Survey,
) -> Option<Result<usize, Errno>> {
    let Some(conn) = found.connection.filter(|_| timeout != Some(Duration::ZERO)) else {
        return match found.sets {
            0 => Some(kernel.poll(fds, timeout)),
            _ => plain_sets(fds, timeout, kernel),
        };
    };
    let mut spin = found.socket().begin();
    let trickles = found.connections == 1 && conn.trickles();
    let mut end = None;
    if !trickles && ready::worth_polling(timeout) {
        let met = spin.poll_kernel(|| {
            // Who sleeps at once has all of the time left.
            end.get_or_insert_with(|| Deadline::after(timeout));
            match kernel.poll(fds, Some(Duration::ZERO)) {
                Ok(0) => None,
                result => Some(result),
            }
        });
        if met.is_some() {
            spin.hit();
            return met;
        }
    }
    if found.sets > 0 {
        return plain_sets(fds, end.map_or(timeout, Deadline::left), kernel);
    }
    ready::unaware();
    if survey(fds).in_memory > 0 {
        ready::aware();
        return None;
    }
    let result = if fds.iter().any(may_miss) {
        let end = end.unwrap_or_else(|| Deadline::after(timeout));
        loop {
            let left = end.left();
            let result = kernel.poll(
                fds,
                Some(left.map_or(LOOK_SELDOM, |left| left.min(LOOK_SELDOM))),
            );
            if result != Ok(0) || end.left() == Some(Duration::ZERO) {
                break result;
            }
            if survey(fds).in_memory > 0 {
                ready::aware();
                return Some(poll(fds, end.left(), kernel));
            }
        }
    } else {
        let left = end.map_or(timeout, Deadline::left);
        if trickles {
            conn.gather(|| kernel.poll(fds, left))
        } else {
            kernel.poll(fds, left)
        }
    };
    ready::aware();
    if result != Ok(0) {
        spin.hit();
    }
    Some(result)
}

/// As [`plain`], of sets among others, without polling.
#[cold]
fn plain_sets(
    fds: &mut [PollFd],
    timeout: Option<Duration>,
    kernel: &impl Poller,
) -> Option<Result<usize, Errno>> {
    if timeout == Some(Duration::ZERO) {
        return Some(kernel.poll(fds, timeout));
    }
    if !lie_down_unaware(fds) {
        return None;
    }
    ready::unaware();
    let end = Deadline::after(timeout);
    let step = fds.iter().any(may_miss).then_some(LOOK_SELDOM);
    let mut said = None;
    while survey(fds).in_memory == 0 {
        let left = end.left();
        let most = step.map_or(left, |step| Some(left.map_or(step, |left| left.min(step))));
        let result = kernel.poll(fds, most);
        if result != Ok(0) || end.left() == Some(Duration::ZERO) {
            said = Some(result);
            break;
        }
    }
    ready::aware();
    get_up(fds);
    match said {
        Some(Ok(_)) if survey(fds).in_memory > 0 => None,
        said => said,
    }
    // Who was woken to know of rings is not to say so.
    .or_else(|| Some(poll(fds, end.left(), kernel)))
}

/// Whether another thread may have it leave TCP while it is slept on, and its end then rings with a byte, of which the kernel does not tell who waits for none.
fn may_miss(entry: &PollFd) -> bool {
    bits(entry.events) & READ == 0
        && table::known(entry.fd).is_some_and(Conn::may_meet)
        && has_threads()
}

#[inline(never)]
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
    let (mut habit, mut due) = Habit::of(found.others_key);
    loop {
        let shown = show(fds, scratch);
        // What only the kernel knows of a connection belongs to the answer; of others, and of urgent bytes, it may come with a later one.
        let of_rings = shown.ask && (shown.ready > 0 || looks.is_multiple_of(RINGS_EACH));
        let of_others =
            found.others_key != habit::NOTHING && (looks + 1).is_multiple_of(habit.looks());
        let of_all =
            !patient && (shown.ask || found.others_key != habit::NOTHING || shown.ready == 0);
        let mut ready = shown.ready;
        if due || of_rings || of_others || of_all {
            match kernel.poll(scratch, Some(Duration::ZERO)) {
                Ok(_) => {
                    let answer = answer(fds, scratch);
                    habit.had(answer.news);
                    (ready, due) = (answer.ready, false);
                }
                // A signal that the mask lets through; the kernel's call says first what is ready.
                Err(Errno::INTR) if ready > 0 => {}
                Err(errno) => return Err(errno),
            }
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
        // Of those that are on TCP.
        ready::unaware();
        let mut watched = Watched::none();
        let Some(rest) = lie_down(fds, scratch, &mut watched) else {
            ready::aware();
            ready::poller_is_up();
            continue;
        };
        let left = leftover::within(end.left());
        let limit = match rest {
            Night::Nap => Some(naps.next_within(left)),
            Night::Look => Some(left.map_or(LOOK, |left| left.min(LOOK))),
            Night::LookSeldom => Some(left.map_or(LOOK_SELDOM, |left| left.min(LOOK_SELDOM))),
            Night::Sleep => left,
        };
        let slept = kernel.poll(scratch, limit);
        drop(watched);
        ready::aware();
        ready::poller_is_up();
        get_up(fds);
        slept?;
        let answer = answer(fds, scratch);
        habit.had(answer.news);
        if answer.ready > 0 {
            spin.hit();
            count_sleep(fds);
            return Ok(answer.ready);
        }
        // Also if the kernel woke for what turned out to be nothing.
        if end.left() == Some(Duration::ZERO) {
            return Ok(0);
        }
    }
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
    sys::socket::with_borrowed(fd, act).flatten()
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

/// So many descriptors are most calls', and take little of a stack.
const FEW: usize = 16;
/// So many cost no allocation.
const SOME: usize = 256;
/// While polling, memory is looked at so much oftener than TCP, where that has the bytes.
const RINGS_EACH: u32 = 16;

const _: () = assert!(IN == 1 && size_of::<PollFd>() == 8);
