//! Sleeping in a call that sends or receives.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use sys::errno::Errno;
use sys::sync::{AtomicU32, Ordering};

use super::duty::look_at_peer;
use super::errno_of;
use crate::conn::{Conn, Way};
use crate::epoll;
use crate::flow::{RECEIVE, SEND};
use crate::host::host;
use crate::ready::{NAP, Naps, is_silent};

/// Sleeps until the receiver rings because there is room. Its doorbell comes on the other direction of the TCP connection; where that is not
/// to be told from data that is there, or somebody else sleeps there, naps instead.
#[cold]
pub(super) fn wait_for_room(conn: &Conn, fd: BorrowedFd<'_>, naps: &mut Naps) -> Result<(), Errno> {
    let tcp = conn.tcp(fd);
    let timeout_ms = sys::socket::send_timeout_ms(fd);
    conn.room_sleepers.fetch_add(1, Ordering::SeqCst);
    let _asleep = Asleep(&conn.room_sleepers);
    {
        let Some(turn) = conn.turn(fd, RECEIVE) else {
            return Ok(());
        };
        let others = conn.sleepers.load(Ordering::SeqCst) != 0
            || turn.stream().shared().load(Ordering::Relaxed) != 0;
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
            return nap_for(fd, naps.next_within(None));
        }
        turn.drain(&tcp).map_err(errno_of)?;
        turn.stream().rx().arm();
        if turn.kernel_end().is_some() {
            drop(turn);
            return nap(fd);
        }
        let rang = turn.took_bell();
        drop(turn);
        if rang {
            epoll::rang(fd.as_raw_fd(), conn);
        }
    }
    {
        let Some(turn) = conn.turn(fd, SEND) else {
            return Ok(());
        };
        if !turn.arm_send().map_err(errno_of)? {
            return Ok(());
        }
    }
    let Some(host) = host() else {
        return nap(fd);
    };
    if timeout_ms < 0 && sys::socket::receive_timeout_ms(fd) < 0 {
        return heard(conn, fd, host.wait_to_receive(fd));
    }
    match host.poll(fd, POLL_IN, timeout_ms)? {
        0 => Err(Errno::AGAIN),
        _ => Ok(()),
    }
}

#[cold]
pub(super) fn wait_for_kernel(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    let Some(host) = host() else {
        return nap(fd);
    };
    let timeout_ms = sys::socket::send_timeout_ms(fd);
    match host.poll(fd, POLL_OUT, timeout_ms) {
        Ok(0) => Err(Errno::AGAIN),
        Ok(_) => Ok(()),
        Err(errno) => goes_on(errno, timeout_ms),
    }
}

/// A millisecond, or until the connection is reset.
pub(super) fn nap(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    nap_for(fd, NAP)
}

fn nap_for(fd: BorrowedFd<'_>, time: Duration) -> Result<(), Errno> {
    match host().map(|host| host.nap(fd, time)) {
        Some(Err(errno)) => goes_on(errno, -1),
        _ => Ok(()),
    }
}

/// Whether a call that was interrupted in `poll`, which is never restarted, goes on as `send` and `recv` would: if they wait without limit,
/// and the signal's handler asks for it.
fn goes_on(errno: Errno, timeout_ms: i32) -> Result<(), Errno> {
    let restarted =
        errno == Errno::INTR && timeout_ms < 0 && host().is_some_and(|host| host.restarts());
    if restarted { Ok(()) } else { Err(errno) }
}

/// What a sleep in the kernel heard. An error of the connection is told once there, so it is noted for the next attempt.
pub(super) fn heard(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    slept: Result<(), Errno>,
) -> Result<(), Errno> {
    match slept {
        Ok(()) | Err(Errno::INTR | Errno::AGAIN) => slept,
        Err(errno) => {
            if let Some(turn) = conn.turn(fd, RECEIVE) {
                turn.note_error(errno);
            }
            Ok(())
        }
    }
}

/// Counts a thread among those asleep, as long as it lives.
pub(super) struct Asleep<'a>(pub(super) &'a AtomicU32);

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

const POLL_IN: i16 = 0x1;

const POLL_OUT: i16 = 0x4;
