//! Sending and receiving, for as long as the program would wait.

use std::cell::OnceCell;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd};

use sys::errno::Errno;
use sys::sync::Ordering;
use sys::time;
use sys::wait;

pub(crate) use self::duty::look_at_peer;
use self::duty::{pay_bell, serve_back};
use self::plain::{receive_plain, send_plain};
use self::rest::{
    Stay, doze, has_moved_away, heard, nap, wait_for_kernel, wait_for_more, wait_for_room,
};
use crate::conn::{Ask, Conn, Way};
use crate::epoll;
use crate::flow::{Pieces, RECEIVE, SEND, SPOILT, Stop, Take};
use crate::host::host;
use crate::kernel::Tcp;
use crate::ready::Naps;

mod duty;
mod plain;
mod rest;

/// How a call receives: the flags of `recv` that matter here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Receive {
    /// `MSG_DONTWAIT`; `O_NONBLOCK` counts as well.
    pub dont_wait: bool,
    /// `MSG_PEEK`.
    pub peek: bool,
    /// `MSG_WAITALL`.
    pub wait_all: bool,
    /// `MSG_TRUNC`: so many bytes are taken and not copied; with `peek` counted.
    pub skip: Option<usize>,
}

/// Receives on a connection. `native` does so on the kernel's, with flags added to the program's: [`DONT_WAIT`] or none.
///
/// # Errors
/// As `recv`.
#[inline]
pub fn receive(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    into: &mut [IoSliceMut<'_>],
    how: Receive,
    native: impl FnMut(i32) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let moved = if conn.is_mapped() {
        let moved = receive_mapped(conn, fd, into, how);
        if conn.is_closing() {
            conn.end_if_closed();
        }
        moved.map_err(|errno| spoilt_is_reset(conn, fd, errno))
    } else {
        receive_plain(conn, fd, into, how, native)
    };
    if let Ok(bytes) = moved
        && !how.peek
    {
        conn.count(Way::In, bytes);
    }
    moved
}

/// Sends on a connection. `native` does so on the kernel's, with flags added to the program's.
///
/// # Errors
/// As `send`; the caller raises SIGPIPE.
#[inline]
pub fn send(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    buffers: &[IoSlice<'_>],
    dont_wait: bool,
    native: impl FnMut(i32) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let moved = if conn.is_mapped() {
        let moved = send_mapped(conn, fd, buffers, dont_wait);
        if conn.is_closing() {
            conn.end_if_closed();
        }
        moved.map_err(|errno| spoilt_is_reset(conn, fd, errno))
    } else {
        send_plain(conn, fd, buffers, dont_wait, native)
    };
    if let Ok(bytes) = moved {
        conn.count(Way::Out, bytes);
    }
    moved
}

#[inline]
fn receive_mapped(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    into: &mut [IoSliceMut<'_>],
    how: Receive,
) -> Result<usize, Errno> {
    let elsewhere = OnceCell::new();
    let mut fd = fd;
    let mut tcp = conn.tcp(fd);
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
        let fits = conn
            .turn(fd, RECEIVE)
            .map(|turn| turn.stream().size().bytes() / 2);
        wanted.min(fits.unwrap_or(wanted))
    } else {
        (conn.low_water.load(Ordering::Relaxed) as usize).min(wanted)
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
    let mut patience = None;
    let mut low_passed = false;
    // From the first sleep to the end of the call: between two sleeps, too, a close by another thread is to leave the connection to this one.
    let mut asleep = None;
    let mut spin = conn.memory.begin();
    loop {
        let Some(turn) = conn.turn(fd, RECEIVE) else {
            // Closed by another thread meanwhile.
            return if got > 0 { Ok(got) } else { Err(Errno::BADF) };
        };
        if !turn.stream().rx().consented() && conn.is_quiet(Way::In) {
            turn.consent(&tcp);
        }
        let short = patient && low > 1 && !low_passed && got == 0 && !ends_soon(&turn, low);
        if got == 0 && conn.keeps_up() && !turn.stream().rx().has_seen_bytes() {
            wait::let_gather();
        }
        let result = if short && turn.receives_on_ring() {
            Err(Stop::Again)
        } else if got == 0 {
            turn.receive(&tcp, into, take)
        } else {
            receive_more(&turn, &tcp, into, got, take)
        };
        match result {
            Ok(n) => {
                let owes = turn.owes_bell();
                let caught_up = spin.is_fresh() && !turn.stream().rx().has_seen_bytes();
                drop(turn);
                conn.note_pace(caught_up, spin.is_fresh());
                if owes {
                    pay_bell(conn, fd);
                }
                got += n;
                if got >= enough || take.leaves() || !patient {
                    spin.hit();
                    return Ok(got);
                }
                continue;
            }
            Err(Stop::End) => return Ok(got),
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
            match nap(fd) {
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
                turn.arm_receive(&tcp).map_err(errno_of)?;
                let rang = turn.took_bell();
                if rang && ask == Ask::ToTheEnd {
                    // A read stops at a doorbell, and the end may lie behind it.
                    turn.drain(&tcp).map_err(errno_of)?;
                }
                let ended = turn.kernel_end().is_some();
                drop(turn);
                if rang {
                    epoll::rang(fd.as_raw_fd(), conn);
                }
                if ended {
                    continue;
                }
            }
            return Err(Errno::AGAIN);
        }
        if spin.again() {
            continue;
        }
        if short && turn.receives_on_ring() && turn.available().is_ok_and(|n| n > 0) {
            drop(turn);
            let limit_ms = u64::try_from(sys::socket::receive_timeout_ms(fd)).ok();
            let until = *patience.get_or_insert_with(|| time::deadline(limit_ms));
            if time::expired(until) {
                // What is there is better than nothing, as the kernel has it.
                low_passed = true;
                continue;
            }
            look_at_peer(conn, fd);
            match nap(fd) {
                // Also for a signal: what was seen so far is told.
                Err(_) if take.leaves() => low_passed = true,
                napped => napped?,
            }
            continue;
        }
        if elsewhere.get().is_none() {
            asleep.get_or_insert_with(|| conn.sleepers.enter());
        }
        if conn.room_sleepers.others() {
            // The doorbell that we would take off may be for a sender of this process, which sleeps on it.
            drop(turn);
            let own = elsewhere.get().is_some();
            let napped = doze(conn, &conn.sleepers, fd, own, || nap(fd));
            if !own && has_moved_away(conn, fd) {
                fd = elsewhere.get_or_init(|| Stay::new(conn)).fd(fd);
                tcp = conn.tcp(fd);
                asleep = None;
            }
            match napped {
                Err(_) if got > 0 => return Ok(got),
                napped => napped?,
            }
            continue;
        }
        // In this order: who calls back rings afterwards.
        let rest = turn.arm_receive(&tcp).map_err(errno_of)? && !turn.owes_back();
        let rang = turn.took_bell();
        drop(turn);
        if rang {
            epoll::rang(fd.as_raw_fd(), conn);
        }
        if !rest {
            continue;
        }
        let Some(host) = host() else {
            return Err(Errno::AGAIN);
        };
        conn.count_sleep();
        let more_until = (got > 0).then(|| {
            let limit_ms = || u64::try_from(sys::socket::receive_timeout_ms(fd)).ok();
            *patience.get_or_insert_with(|| time::deadline(limit_ms()))
        });
        let own = elsewhere.get().is_some();
        let slept = doze(conn, &conn.sleepers, fd, own, || match more_until {
            Some(until) => wait_for_more(fd, until),
            None => host.wait_to_receive(fd),
        });
        if has_moved_away(conn, fd) {
            fd = elsewhere.get_or_init(|| Stay::new(conn)).fd(fd);
            tcp = conn.tcp(fd);
            // That counts it.
            asleep = None;
        }
        let slept = heard(conn, fd, slept);
        match slept {
            Err(_) if got > 0 => return Ok(got),
            slept => slept?,
        }
    }
}

/// Whether `enough` bytes are there, or no more will come.
fn ends_soon(flow: &crate::flow::Flow, enough: usize) -> bool {
    flow.available().map_or(true, |n| n >= enough)
        || flow.peer_finished()
        || flow.stream().rx().to_tcp().is_some()
}

/// Goes on after the first `got` bytes of the buffers.
fn receive_more(
    flow: &crate::flow::Flow,
    tcp: &Tcp<'_>,
    into: &mut [IoSliceMut<'_>],
    got: usize,
    take: Take,
) -> Result<usize, Stop> {
    if let Take::Skip(most) = take {
        return flow.receive(tcp, into, Take::Skip(most.saturating_sub(got)));
    }
    let mut skip = got;
    for buffer in into.iter_mut() {
        if skip >= buffer.len() {
            skip -= buffer.len();
            continue;
        }
        let Some(rest) = buffer.get_mut(skip..) else {
            break;
        };
        return flow.receive(tcp, &mut [IoSliceMut::new(rest)], take);
    }
    Ok(0)
}

#[inline]
fn send_mapped(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    buffers: &[IoSlice<'_>],
    dont_wait: bool,
) -> Result<usize, Errno> {
    let elsewhere = OnceCell::new();
    let mut fd = fd;
    let mut tcp = conn.tcp(fd);
    conn.note_answer();
    let wanted: usize = buffers.iter().map(|buffer| buffer.len()).sum();
    let mut patient = !(dont_wait || conn.is_nonblocking());
    let mut is_sure = false;
    let mut sent = 0;
    let mut patience = None;
    let mut naps = Naps::default();
    // As in `receive_mapped`.
    let mut asleep = None;
    let mut spin = conn.memory.begin();
    loop {
        let Some(mut turn) = conn.turn(fd, SEND) else {
            return if sent > 0 { Ok(sent) } else { Err(Errno::BADF) };
        };
        if turn.is_time_to_look() {
            drop(turn);
            look_at_peer(conn, fd);
            continue;
        }
        let pieces = Pieces {
            buffers,
            skip: sent,
        };
        let on_ring = turn.sends_on_ring();
        let quiet = on_ring || conn.is_quiet(Way::Out);
        match turn.send(&tcp, &pieces, turn.nested(), quiet) {
            Ok(n) => {
                sent += n;
                naps = Naps::default();
                let moved = !on_ring && turn.sends_on_ring();
                drop(turn);
                if moved {
                    // What an edge-triggered observer armed was TCP's.
                    epoll::rang(fd.as_raw_fd(), conn);
                }
                if sent >= wanted || !patient {
                    spin.hit();
                    return Ok(sent);
                }
                continue;
            }
            Err(stop @ (Stop::Failed(_) | Stop::End)) if sent > 0 => {
                turn.tell_later(stop);
                return Ok(sent);
            }
            Err(Stop::Failed(errno)) => return Err(errno),
            Err(Stop::End) => return Err(Errno::PIPE),
            Err(Stop::Again) => {}
        }
        if turn.owes_back() {
            // A full ring asks nothing of who would write to it.
            drop(turn);
            if serve_back(conn, fd) {
                continue;
            }
            let Some(again) = conn.turn(fd, SEND) else {
                continue;
            };
            turn = again;
        }
        if !is_sure {
            is_sure = true;
            patient = !(dont_wait || conn.is_nonblocking());
        }
        if !patient {
            return if sent > 0 {
                Ok(sent)
            } else {
                Err(Errno::AGAIN)
            };
        }
        if spin.again() {
            continue;
        }
        // To one who reads no more, and has not closed, it goes as the kernel has it.
        let on_ring = turn.sends_on_ring() && !turn.stream().peer_deaf();
        if on_ring && !turn.arm_send().map_err(errno_of)? {
            continue;
        }
        drop(turn);
        // Of many naps none takes as long as the program would wait.
        let limit_ms = || u64::try_from(sys::socket::send_timeout_ms(fd)).ok();
        if time::expired(*patience.get_or_insert_with(|| time::deadline(limit_ms()))) {
            return if sent > 0 {
                Ok(sent)
            } else {
                Err(Errno::AGAIN)
            };
        }
        conn.count_sleep();
        let own = elsewhere.get().is_some();
        if on_ring && !own {
            asleep.get_or_insert_with(|| conn.room_sleepers.enter());
        }
        let slept = if on_ring {
            wait_for_room(conn, fd, &mut naps, sent > 0, own)
        } else {
            wait_for_kernel(fd, sent > 0)
        };
        if has_moved_away(conn, fd) {
            fd = elsewhere.get_or_init(|| Stay::new(conn)).fd(fd);
            tcp = conn.tcp(fd);
            asleep = None;
        }
        match slept {
            Err(_) if sent > 0 => return Ok(sent),
            slept => slept?,
        }
        // The time that others take to make room says nothing about ours.
        spin = conn.memory.begin();
    }
}

/// Has `act` send on TCP, which does not wait, if the bytes go there on a connection with rings; `None` if they go to the ring.
///
/// # Errors
/// What `act` says; [`Errno::AGAIN`] while bytes of the ring have to go before.
pub fn send_on_tcp(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    act: impl FnOnce() -> Result<usize, Errno>,
) -> Option<Result<usize, Errno>> {
    // The direction moves in a turn only, so not while it acts.
    let turn = conn.turn(fd, SEND)?;
    if turn.sends_on_ring() {
        return None;
    }
    if turn.owes_back() && turn.serve_back(&conn.tcp(fd)) != Ok(true) {
        return Some(Err(Errno::AGAIN));
    }
    let sent = act();
    if let Ok(bytes) = sent {
        conn.count(Way::Out, bytes);
    }
    Some(sent)
}

/// A peer that spoilt the shared memory is told as one that reset the connection, which it then is. To be called outside turns.
#[inline]
fn spoilt_is_reset(conn: &Conn, fd: BorrowedFd<'_>, errno: Errno) -> Errno {
    if errno != SPOILT {
        return errno;
    }
    conn.reset_spoilt(fd);
    sys::socket::forget_error(fd);
    Errno::CONNRESET
}

fn errno_of(stop: Stop) -> Errno {
    match stop {
        Stop::Failed(errno) => errno,
        Stop::Again => Errno::AGAIN,
        Stop::End => Errno::PIPE,
    }
}

/// `MSG_DONTWAIT`.
pub const DONT_WAIT: i32 = 0x40;
