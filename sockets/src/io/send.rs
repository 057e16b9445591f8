//! Sending on a connection with rings.

use std::io::IoSlice;
use std::os::fd::{AsRawFd, BorrowedFd};

use sys::errno::Errno;
use sys::stream::SHORT_MAX;
use sys::time;

use super::duty::{end_standstill, look_at_peer, serve_back};
use super::errno_of;
use super::footing::Footing;
use super::rest::{wait_for_kernel, wait_for_room};
use super::rounds::send_in_rounds;
use crate::conn::{Conn, Way};
use crate::epoll;
use crate::flow::{Flow, SEND, SPOILT, Stop};
use crate::haste;
use crate::ready::Naps;

// With a frame of its own, for a turn that is left in it to be found by whoever looks from its caller.
#[inline(never)]
pub(super) fn send_mapped(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    buffers: &[IoSlice<'_>],
    dont_wait: bool,
) -> Result<usize, Errno> {
    conn.foresee_call();
    match send_at_once(conn, fd, buffers) {
        Some(sent) => Ok(sent),
        None => send_all(conn, fd, buffers, dont_wait),
    }
}

/// A short message, if there is room for it and nothing about the connection that is to be looked at; `None`, and nothing was sent, if there is.
#[inline]
fn send_at_once(conn: &Conn, fd: BorrowedFd<'_>, buffers: &[IoSlice<'_>]) -> Option<usize> {
    let [piece] = buffers else {
        return None;
    };
    if piece.len() >= SHORT_MAX {
        return None;
    }
    conn.note_answer();
    let turn = conn.turn(fd, SEND)?;
    if turn.nested() {
        return None;
    }
    if turn.is_time_to_look() {
        drop(turn);
        look_at_peer(conn, fd);
        return None;
    }
    let sent = turn.send_short(&conn.tcp(fd), piece);
    match sent {
        Some(_) => note_grown(conn, &turn),
        // It will be, by the long way.
        None => turn.was_not_sent(),
    }
    sent
}

/// `leftover` is to be told before the connection rests.
#[inline]
fn note_grown(conn: &Conn, flow: &Flow) {
    if conn.is_emptied() && flow.stream().tx().has_grown() {
        conn.await_emptying();
    }
}

#[inline(never)]
fn send_all(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    buffers: &[IoSlice<'_>],
    dont_wait: bool,
) -> Result<usize, Errno> {
    conn.note_answer();
    let wanted: usize = buffers.iter().map(|buffer| buffer.len()).sum();
    let mut patient = !(dont_wait || conn.is_nonblocking());
    let mut is_sure = false;
    let mut sent = 0;
    let mut patience = None;
    let mut naps = Naps::default();
    let mut footing = Footing::new(conn, &conn.room_sleepers, fd);
    let mut spin = conn.memory.begin();
    loop {
        footing.follow();
        let Some(mut turn) = footing.turn(SEND) else {
            // Closed by another thread meanwhile.
            return if sent > 0 { Ok(sent) } else { Err(Errno::BADF) };
        };
        let fd = footing.fd();
        let tcp = conn.tcp(fd);
        if turn.is_time_to_look() {
            drop(turn);
            look_at_peer(conn, fd);
            continue;
        }
        let on_ring = turn.sends_on_ring();
        let quiet = on_ring || {
            conn.heed_call_back(&turn);
            conn.is_quiet(Way::Out)
        };
        let here = (sent, wanted);
        match send_in_rounds(conn, &turn, &tcp, buffers, here, turn.nested(), quiet) {
            Ok(n) => {
                sent += n;
                naps = Naps::default();
                let moved = !on_ring && turn.sends_on_ring();
                note_grown(conn, &turn);
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
            Err(Stop::Again) if turn.stream().tx().take_broken_off() => continue,
            // It went back while this was waiting.
            Err(Stop::Again) if on_ring && !turn.sends_on_ring() => continue,
            Err(Stop::Again) => {}
        }
        if turn.owes_back() {
            // A full ring asks nothing of who would write to it.
            drop(turn);
            if serve_back(conn, fd) {
                continue;
            }
            let Some(again) = footing.turn(SEND) else {
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
        let stands_still = on_ring && conn.has_stood_still(&turn, &tcp);
        drop(turn);
        if stands_still && end_standstill(conn, fd) {
            epoll::moved(fd.as_raw_fd(), conn);
            continue;
        }
        // Of many naps none takes as long as the program would wait.
        let limit_ms = || haste::limit_ms(fd, Way::Out);
        let until = *patience.get_or_insert_with(|| time::deadline(limit_ms()));
        if time::expired(until) {
            return if sent > 0 {
                Ok(sent)
            } else {
                Err(Errno::AGAIN)
            };
        }
        conn.count_sleep();
        if !footing.enter() {
            continue;
        }
        let slept = if on_ring {
            wait_for_room(&footing, &mut naps, until, sent > 0)
        } else {
            footing.doze(|| wait_for_kernel(fd, until, sent > 0))
        };
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
/// What `act` says; without it, [`Errno::AGAIN`] while bytes of the ring have to go before, [`Errno::PIPE`] behind the end, and what is wrong with the
/// connection.
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
    if turn.owes_back() {
        match turn.serve_back(&conn.tcp(fd)) {
            Ok(true) => {}
            Ok(false) if turn.finished() => return Some(Err(Errno::PIPE)),
            Ok(false) => return Some(Err(Errno::AGAIN)),
            // Who spoilt the stream is found by the call that moves bytes.
            Err(Stop::Failed(SPOILT)) => return Some(Err(Errno::CONNRESET)),
            Err(stop) => return Some(Err(errno_of(stop))),
        }
    }
    let sent = act();
    if let Ok(bytes) = sent {
        conn.count(Way::Out, bytes);
    }
    Some(sent)
}
