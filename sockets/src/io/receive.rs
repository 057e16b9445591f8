//! Receiving on a connection with rings.

use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, BorrowedFd};

use sys::alone;
use sys::errno::Errno;
use sys::sync::Ordering;
use sys::{time, wait};

use super::duty::{look_at_peer, pay_bell, serve_back};
use super::enough::{ends_soon, follow, is_at_mark, shows_some};
use super::footing::Footing;
use super::more::{receive_behind, receive_more};
use super::patience::Patience;
use super::rest::{heard, nap_until, wait_for_first, wait_for_more};
use super::{Receive, errno_of};
use crate::conn::{Ask, Conn, Way};
use crate::epoll;
use crate::flow::{RECEIVE, Stop, Take};
use crate::host::host;
use crate::share::Turn;

// As `send_mapped`.
#[inline(never)]
pub(super) fn receive_mapped(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    into: &mut [IoSliceMut<'_>],
    how: Receive,
) -> Result<usize, Errno> {
    let low = conn.low_water.load(Ordering::Relaxed);
    let [room] = into else {
        return receive_all(conn, fd, into, how, None);
    };
    if how.peek || how.wait_all || how.skip.is_some() || low > 1 || room.is_empty() {
        return receive_all(conn, fd, into, how, None);
    }
    let Some(turn) = conn.turn(fd, RECEIVE) else {
        return receive_all(conn, fd, into, how, None);
    };
    if conn.keeps_up() && !turn.stream().rx().has_seen_bytes() {
        return receive_all(conn, fd, into, how, Some(turn));
    }
    match turn.receive_short(room) {
        Some(n) => {
            conclude(conn, fd, turn, true);
            Ok(n)
        }
        None => receive_all(conn, fd, into, how, Some(turn)),
    }
}

/// Ends the turn in which something was received.
#[inline(always)]
fn conclude(conn: &Conn, fd: BorrowedFd<'_>, turn: Turn<'_>, at_once: bool) {
    let owes = turn.owes_bell();
    if conn.awaits_emptying() && turn.leaves_nothing() {
        conn.note_emptied();
    }
    let caught_up = at_once && !turn.stream().rx().has_seen_bytes();
    drop(turn);
    conn.note_pace(caught_up, at_once);
    if owes {
        pay_bell(conn, fd);
    }
}

/// Before sleeping until something can be received; whether one may.
fn arm(conn: &Conn, turn: &Turn<'_>, fd: BorrowedFd<'_>) -> Result<bool, Errno> {
    let tcp = conn.tcp(fd);
    let others = conn.others_receive() || turn.stream().holders().is_shared();
    let armed = match others {
        true => turn.arm_beside_others(&tcp),
        false => turn.arm_receive(&tcp),
    };
    armed.map_err(errno_of)
}

/// Goes on with the turn that has `begun`, in which nothing was taken.
#[inline(never)]
fn receive_all<'a>(
    conn: &'a Conn,
    fd: BorrowedFd<'_>,
    into: &mut [IoSliceMut<'_>],
    how: Receive,
    begun: Option<Turn<'a>>,
) -> Result<usize, Errno> {
    let mut begun = begun;
    let wanted: usize = how
        .skip
        .unwrap_or_else(|| into.iter().map(|buffer| buffer.len()).sum());
    if wanted == 0 {
        return Ok(0);
    }
    let mut patient = !(how.dont_wait || conn.is_nonblocking());
    let mut is_sure = false;
    // What must be there before a call that waits returns; and before it takes anything. A look takes nothing, so what it waits for must fit: a ring holds
    // half of its length, however it is filled.
    let low = if how.peek && how.wait_all {
        wanted
    } else {
        (conn.low_water.load(Ordering::Relaxed) as usize).min(wanted)
    };
    let low = if low > 1 {
        let fits = |turn: &Turn<'_>| turn.stream().size().bytes() / 2;
        let turn = begun.take().or_else(|| conn.turn(fd, RECEIVE));
        turn.as_ref().map_or(low, |turn| low.min(fits(turn)))
    } else {
        low
    };
    let enough = if how.wait_all { wanted } else { low };
    let take = match how {
        Receive {
            skip: Some(most),
            peek: true,
            ..
        } => Take::Count(most),
        Receive { peek: true, .. } => Take::Peek,
        Receive {
            skip: Some(most), ..
        } => Take::Skip(most),
        _ => Take::Read,
    };
    let mut got = 0;
    let mut patience = Patience::default();
    let mut low_passed = false;
    let mut slept_in_vain = false;
    let mut footing = Footing::new(conn, &conn.sleepers, fd);
    let mut spin = conn.memory.begin();
    loop {
        let turn = begun.take().or_else(|| {
            footing.follow();
            footing.turn(RECEIVE)
        });
        let Some(turn) = turn else {
            // Closed by another thread meanwhile.
            return if got > 0 { Ok(got) } else { Err(Errno::BADF) };
        };
        let fd = footing.fd();
        let tcp = conn.tcp(fd);
        if !turn.receives_on_ring() && !turn.stream().rx().consented() && conn.is_quiet(Way::In) {
            turn.consent(&tcp);
        }
        if low > 1 {
            // For who receives nothing yet does not.
            follow(&turn, &tcp);
        }
        let short = patient && low > 1 && !low_passed && got == 0 && !ends_soon(&turn, &tcp, low);
        if got == 0 && conn.keeps_up() && !turn.stream().rx().has_seen_bytes() {
            wait::let_gather();
        }
        if got > 0 && is_at_mark(conn, &turn, &tcp, fd) {
            return Ok(got);
        }
        let result = if short {
            Err(Stop::Again)
        } else if got == 0 {
            turn.receive(&tcp, into, take)
        } else {
            receive_more(&turn, &tcp, into, got, take)
        };
        match result {
            Ok(n) => {
                got += n;
                if !take.leaves() {
                    got = receive_behind(conn, &turn, &tcp, fd, into, got..wanted, take);
                }
                // Who takes what is on the ring comes to where there is no more. Another may make no call but this one.
                let owed = (take.leaves() || !turn.receives_on_ring()) && turn.owes_back();
                let rang = take.leaves() && turn.took_bell();
                conclude(conn, fd, turn, spin.is_fresh());
                if rang {
                    epoll::rang(fd.as_raw_fd(), conn);
                }
                if owed {
                    serve_back(conn, fd);
                }
                slept_in_vain = false;
                if got >= enough || take.leaves() || !patient {
                    spin.hit();
                    return Ok(got);
                }
                continue;
            }
            Err(Stop::End) => {
                if turn.owes_back() {
                    drop(turn);
                    serve_back(conn, fd);
                }
                return Ok(got);
            }
            Err(stop @ Stop::Failed(_)) if got > 0 => {
                turn.tell_later(stop);
                return Ok(got);
            }
            Err(Stop::Failed(errno)) => return Err(errno),
            Err(Stop::Again) => {}
        }
        if got > 0 && !(how.wait_all && patient) {
            return Ok(got);
        }
        if turn.owes_back() {
            drop(turn);
            if serve_back(conn, fd) {
                continue;
            }
            if !patient {
                return Err(Errno::AGAIN);
            }
            if !footing.enter() {
                continue;
            }
            let until = patience.until(fd);
            match footing.doze(|| nap_until(fd, until, got > 0)) {
                Err(_) if got > 0 => return Ok(got),
                napped => napped?,
            }
            continue;
        }
        if !is_sure {
            // Another process may have said otherwise, as is known after a turn.
            is_sure = true;
            patient = !(how.dont_wait || conn.is_nonblocking());
        }
        if !patient {
            if let Some(ask) = conn.is_time_to_ask() {
                // A peer that was killed said nothing in memory.
                let mut quiet = arm(conn, &turn, fd)?;
                let rang = turn.took_bell();
                if rang && ask == Ask::ToTheEnd {
                    // A read stops at a doorbell, and the end may lie behind it, or another one.
                    quiet = arm(conn, &turn, fd)?;
                }
                // What came before the last was taken rings no more for others who sleep.
                let came = rang && !quiet;
                let ended = turn.kernel_end().is_some() || turn.read_is_shut();
                drop(turn);
                if rang {
                    epoll::rang(fd.as_raw_fd(), conn);
                }
                if ended || came {
                    continue;
                }
            }
            return Err(Errno::AGAIN);
        }
        if spin.again() {
            drop(turn);
            alone::slow_down();
            continue;
        }
        if !footing.enter() {
            continue;
        }
        if short && shows_some(&turn, &tcp) {
            drop(turn);
            let until = patience.until(fd);
            if time::expired(until) {
                // What is there is better than nothing, as the kernel has it.
                low_passed = true;
                continue;
            }
            look_at_peer(conn, fd);
            // At the end of the time, and for a signal, what has come is told.
            low_passed = footing.doze(|| nap_until(fd, until, true)).is_err();
            continue;
        }
        if conn.room_sleepers.others() && turn.sends_on_ring() {
            // The doorbell that we would take off may be for a sender of this process, which sleeps on it.
            drop(turn);
            let until = patience.until(fd);
            match footing.doze(|| nap_until(fd, until, got > 0)) {
                Err(_) if got > 0 => return Ok(got),
                napped => napped?,
            }
            continue;
        }
        // In this order: who calls back rings afterwards.
        let rest = arm(conn, &turn, fd)? && !turn.owes_back();
        let rang = turn.took_bell();
        drop(turn);
        let may_have_taken = rang && epoll::rang(fd.as_raw_fd(), conn);
        if !rest || may_have_taken {
            continue;
        }
        let Some(host) = host() else {
            return Err(Errno::AGAIN);
        };
        conn.count_sleep();
        let until = (got > 0 || !patience.begins()).then(|| patience.until(fd));
        let slept = footing.doze(|| match until {
            Some(until) if got > 0 => wait_for_more(fd, until, slept_in_vain),
            Some(until @ Some(_)) => wait_for_first(fd, until),
            Some(None) | None => host.wait_to_receive(fd),
        });
        slept_in_vain = got > 0;
        footing.follow();
        match heard(&footing, slept) {
            Err(_) if got > 0 => return Ok(got),
            slept => slept?,
        }
    }
}
