//! Sleeping in a call that sends or receives.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use sys::errno::Errno;
use sys::time::{self, now};

use super::duty::look_at_peer;
use super::errno_of;
use super::footing::Footing;
use crate::conn::Way;
use crate::epoll;
use crate::flow::{RECEIVE, SEND, is_refusal};
use crate::host::{Host, goes_on, host};
use crate::ready::{LOOK, LOOK_SELDOM, NAP, Naps, is_silent};

/// Sleeps until the receiver rings because there is room. Its doorbell comes on the other direction of the TCP connection; where that is not
/// to be told from data that is there, or somebody else sleeps there, naps instead.
#[cold]
pub(super) fn wait_for_room(
    footing: &Footing<'_>,
    naps: &mut Naps,
    until: Option<Instant>,
    begun: bool,
) -> Result<(), Errno> {
    let (conn, fd) = (footing.conn(), footing.fd());
    let tcp = conn.tcp(fd);
    // Whose bytes a doorbell is for only the kernel tells them, once.
    let is_watched = epoll::is_reported_by_kernel(fd.as_raw_fd(), conn);
    {
        let Some(turn) = footing.turn(RECEIVE) else {
            return Ok(());
        };
        let others = is_watched || conn.others_receive() || turn.stream().holders().is_shared();
        if !turn.stream().rx().consented()
            && conn.counts(Way::In).1 > 0
            && conn.is_quiet(Way::In)
            && !others
        {
            turn.consent(&tcp);
        }
        // What is wrong with the connection the next attempt tells.
        let _ = turn.follow(&tcp);
        // Where data may come instead, it is no doorbell; while there is none, the next byte is worth a look.
        let told_apart = turn.receives_on_ring() || is_silent(fd);
        if !told_apart || !turn.can_be_rung() || others {
            drop(turn);
            // Nobody reads the end of a killed peer there, so it must be asked for.
            look_at_peer(conn, fd);
            return footing.doze(|| nap_for(fd, naps.next_within(None), until, begun));
        }
        turn.drain(&tcp).map_err(errno_of)?;
        turn.stream().rx().arm();
        if turn.kernel_end().is_some() || turn.read_is_shut() {
            // The kernel would wake it at once, for nothing.
            drop(turn);
            return footing.doze(|| nap_for(fd, NAP, until, begun));
        }
        let rang = turn.took_bell();
        drop(turn);
        if rang {
            epoll::rang(fd.as_raw_fd(), conn);
        }
    }
    {
        let Some(turn) = footing.turn(SEND) else {
            return Ok(());
        };
        if !turn.arm_send().map_err(errno_of)? {
            return Ok(());
        }
        if !turn.can_be_rung() {
            // The receiver has gone to TCP with what it sends, and did not see that somebody was armed.
            drop(turn);
            return footing.doze(|| nap_for(fd, NAP, until, begun));
        }
    }
    let Some(host) = host() else {
        return footing.doze(|| nap_for(fd, NAP, until, begun));
    };
    let look = if host.has_threads() || conn.waits_for_one_that_waits() {
        LOOK
    } else {
        LOOK_SELDOM
    };
    let left = until.map_or(look, |until| {
        until.saturating_duration_since(now()).min(look)
    });
    footing.doze(|| wait_and_look(host, fd, left, until, begun))
}

/// Sleeps in `poll`, which no signal restarts: who has moved something already returns with that.
fn wait_with(fd: BorrowedFd<'_>, events: i16, timeout_ms: i32, begun: bool) -> Result<(), Errno> {
    match host().map(|host| host.poll(fd, events, timeout_ms)) {
        None => Ok(()),
        Some(Ok(0)) => Err(Errno::AGAIN),
        Some(Ok(_)) => Ok(()),
        Some(Err(errno)) if begun => Err(errno),
        Some(Err(errno)) => goes_on(errno, timeout_ms >= 0),
    }
}

/// Sleeps for a while, or until the receiver rings: another thread may end the direction, which nothing on TCP tells, or nobody may ever ring.
fn wait_and_look(
    host: &dyn Host,
    fd: BorrowedFd<'_>,
    look: Duration,
    until: Option<Instant>,
    begun: bool,
) -> Result<(), Errno> {
    // Upwards, or the last of it would be spent awake.
    match host.poll(fd, POLL_IN, look.as_micros().div_ceil(1000) as i32) {
        // Whether the program's time is over the sender knows.
        Ok(_) => Ok(()),
        Err(errno) if begun => Err(errno),
        Err(errno) => goes_on(errno, until.is_some()),
    }
}

/// Sleeps until there is more of what was received in part, or an urgent byte: for as long as the program would wait in all, or until a signal comes.
/// `again`: nothing has been received since the last such sleep.
#[cold]
pub(super) fn wait_for_more(
    fd: BorrowedFd<'_>,
    until: Option<Instant>,
    again: bool,
) -> Result<(), Errno> {
    // An urgent byte goes on showing until it is received: where it is not what the call ends at, all that comes is looked for.
    if again && sys::epoll::shows(fd.as_raw_fd(), POLL_PRI as u16) != 0 {
        return match time::expired(until) {
            true => Err(Errno::AGAIN),
            false => nap_for(fd, NAP, until, true),
        };
    }
    wait_with(fd, POLL_IN | POLL_PRI, left_ms(until), true)
}

/// Sleeps until something can be received, for what is left of the time that the program would wait.
#[cold]
pub(super) fn wait_for_first(fd: BorrowedFd<'_>, until: Option<Instant>) -> Result<(), Errno> {
    wait_with(fd, POLL_IN, left_ms(until), false)
}

/// What is left until then, for `poll`.
fn left_ms(until: Option<Instant>) -> i32 {
    until.map_or(-1, |until| {
        // Upwards, or the last of it would be spent awake.
        let left = until.saturating_duration_since(now()).as_millis() + 1;
        i32::try_from(left).unwrap_or(i32::MAX)
    })
}

#[cold]
pub(super) fn wait_for_kernel(
    fd: BorrowedFd<'_>,
    until: Option<Instant>,
    begun: bool,
) -> Result<(), Errno> {
    wait_with(fd, POLL_OUT, left_ms(until), begun)
}

/// A millisecond, or until the connection is reset, in a receive that waits until then at most. One that has `begun` to receive is not restarted.
///
/// # Errors
/// `EAGAIN` if that has passed; `EINTR`.
#[cold]
pub(super) fn nap_until(
    fd: BorrowedFd<'_>,
    until: Option<Instant>,
    begun: bool,
) -> Result<(), Errno> {
    if time::expired(until) {
        return Err(Errno::AGAIN);
    }
    nap_for(fd, NAP, until, begun)
}

/// As long, or until the connection is reset. `until` is for how long the program would wait.
fn nap_for(
    fd: BorrowedFd<'_>,
    time: Duration,
    until: Option<Instant>,
    begun: bool,
) -> Result<(), Errno> {
    match host().map(|host| host.nap(fd, time)) {
        Some(Err(errno)) if begun => Err(errno),
        Some(Err(errno)) => goes_on(errno, until.is_some()),
        _ => Ok(()),
    }
}

/// What a sleep in the kernel heard. An error of the connection is told once there, so it is noted for the next attempt.
pub(super) fn heard(footing: &Footing<'_>, slept: Result<(), Errno>) -> Result<(), Errno> {
    match slept {
        Ok(()) | Err(Errno::INTR | Errno::AGAIN) => slept,
        Err(errno) if is_refusal(errno) => slept,
        Err(errno) => {
            if let Some(turn) = footing.turn(RECEIVE) {
                turn.note_error(errno);
            }
            Ok(())
        }
    }
}

const POLL_IN: i16 = 0x1;

const POLL_PRI: i16 = 0x2;

const POLL_OUT: i16 = 0x4;
