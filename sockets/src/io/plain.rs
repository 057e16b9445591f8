//! Calls on a connection that has no rings.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;

use sys::errno::Errno;
use sys::wait::{Spin, note_sent};

use super::duty::pay_late;
use super::footing;
use super::{DONT_WAIT, Receive, receive_on_rings, send_on_rings};
use crate::conn::{Awaited, Conn, Rest, Way};
use crate::odds::Odds;

pub(super) fn receive_plain(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    into: &mut [IoSliceMut<'_>],
    how: Receive,
    mut native: impl FnMut(i32) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let Some(under_way) = conn.native(Way::In) else {
        return receive_on_rings(conn, fd, into, how);
    };
    let patient = !(how.dont_wait || conn.is_nonblocking());
    let may_poll = patient && !how.wait_all;
    // Whether polling pays others have learned, and this wait may teach.
    let (worth_it, odds) = match may_poll.then(|| conn.awaits()) {
        Some(Awaited::Answer) if conn.begins() => (true, Some(&FIRST)),
        Some(Awaited::Answer) => (true, None),
        Some(Awaited::Rest) => (true, Some(&REST)),
        Some(Awaited::Anything) | None => (false, None),
    };
    let polls = worth_it && odds.is_none_or(Odds::pays);
    let result = if polls && conn.takes_any(fd) {
        let is_there = || under_way.is_same() && footing::is_there(conn, fd);
        let (result, met) = poll_then_wait(conn.socket.begin(), is_there, &mut native);
        if let (Some(odds), Some(met)) = (odds, met) {
            odds.note(met);
        }
        result
    } else if may_poll && conn.trickles() && conn.takes_any(fd) {
        conn.gather(|| native(0))
    } else {
        native(0)
    };
    let is_same = under_way.is_same();
    drop(under_way);
    if let Ok(bytes) = result
        && is_same
        && !how.peek
    {
        let wanted: usize = into.iter().map(|buffer| buffer.len()).sum();
        conn.note_trickle(bytes, wanted);
        conn.advance(fd, Way::In);
    }
    result
}

pub(super) fn send_plain(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    buffers: &[IoSlice<'_>],
    dont_wait: bool,
    mut native: impl FnMut(i32) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let Some(under_way) = conn.native(Way::Out) else {
        return send_on_rings(conn, fd, buffers, dont_wait);
    };
    conn.note_answer_on_tcp();
    // Who sends into a full connection waits for a receiver that has much to do: no use in polling.
    let result = native(0);
    let is_same = under_way.is_same();
    drop(under_way);
    // Another connection may have the place by now.
    if !is_same {
        return result;
    }
    pay_late(conn, fd);
    if result.is_ok() {
        note_sent();
        conn.advance(fd, Way::Out);
    }
    result
}

/// Has the kernel do a call that does not wait, where there is nothing for us to do but to count: the connection stays on TCP, or its meeting rests.
/// `None`, and nothing is done, if there is more.
#[inline]
pub fn pass(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    way: Way,
    native: impl FnOnce() -> Result<usize, Errno>,
) -> Option<Result<usize, Errno>> {
    let rest = conn.rest(way)?;
    let result = native();
    if let Rest::InMeeting(under_way) = rest {
        drop(under_way);
        pay_late(conn, fd);
    }
    if let Ok(bytes) = result {
        conn.count(way, bytes);
        if matches!(way, Way::Out) {
            note_sent();
        }
    }
    Some(result)
}

/// As [`pass`], of a connection that is [settled](Conn::is_settled): the kernel has done the call with this result.
#[inline]
pub fn passed(conn: &Conn, way: Way, result: isize) -> isize {
    if let Ok(bytes) = usize::try_from(result) {
        conn.count(way, bytes);
        if matches!(way, Way::Out) {
            note_sent();
        }
    }
    result
}

/// Polls the kernel for a while before a call that sleeps in it; and whether that met the result, if it polled. The number may be another connection's
/// meanwhile, whose bytes these would be.
fn poll_then_wait(
    mut spin: Spin<'_>,
    is_there: impl Fn() -> bool,
    native: &mut impl FnMut(i32) -> Result<usize, Errno>,
) -> (Result<usize, Errno>, Option<bool>) {
    let met = spin.poll_kernel(|| match native(DONT_WAIT) {
        Err(Errno::AGAIN) if is_there() => None,
        Err(Errno::AGAIN) => Some(Err(Errno::BADF)),
        result => Some(result),
    });
    let polled = !spin.is_told();
    let is_met = polled.then_some(met.is_some());
    let result = met.unwrap_or_else(|| native(0));
    spin.hit();
    (result, is_met)
}

/// Of the first waits for answers of this process's connections.
static FIRST: Odds = Odds::good();
/// Of waits for what belongs to something that has begun to come.
static REST: Odds = Odds::good();
