//! What to do before one sleeps until a connection is ready.

use std::os::fd::{AsRawFd, BorrowedFd};

use sys::sync::Ordering;

use super::bits::{ALWAYS, IN, RDHUP, READ, WRITE};
use super::look::{is_silent, look_at};
use super::{Spot, look};
use crate::conn::{Conn, Way};
use crate::epoll;
use crate::flow::{RECEIVE, SEND};
use crate::host::has_threads;
use crate::{io, leftover};

/// Whether one may sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Something is ready: look again.
    Awake,
    /// Yes, in this way.
    Asleep(Bed),
}

/// What to do with the doorbells on the connection before one sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bells {
    /// Take them away: a system call.
    Take,
    /// Leave them: there are none, or the kernel has yet to tell of them.
    Leave,
}

/// How to sleep until something comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bed {
    /// On these events of the kernel.
    pub(crate) wake: u32,
    /// Not longer than [`NAP`](super::NAP), for nobody rings.
    pub(crate) nap: bool,
    /// There is no room, and nobody rings if another thread ends that direction.
    pub(crate) full: bool,
    /// Whether the kernel's events are the program's, and not doorbells only.
    pub(crate) carried: bool,
    /// A doorbell was taken away, which others may be waiting for: see [`epoll::rang`].
    pub(crate) rang: bool,
    /// Doorbells are left to others, who may sleep on them and would not look.
    pub(crate) spares: bool,
    /// Whether what the kernel had of doorbells was taken away.
    pub(crate) drained: bool,
    /// TCP has ended, so that the kernel would wake at once whoever slept on it, for nothing.
    pub(crate) over: bool,
    /// What comes is noted on a board.
    pub(crate) noted: bool,
    /// What this end sends goes over TCP from now on.
    pub(crate) moved: bool,
}

impl Bed {
    /// There are some that are left to others: they are not slept on, or would wake at once and again.
    pub(crate) fn sleep_beside_bells(&mut self) {
        self.wake &= !IN;
        self.nap = true;
    }
}

/// Gets ready to sleep until one of the events of `interest`, and looks once more.
pub(crate) fn rest(conn: &Conn, fd: BorrowedFd<'_>, interest: u32) -> Rest {
    let mut bed = lie_down(conn, fd, interest, false, Bells::Take, None);
    if bed.spares && !is_silent(fd) {
        bed.sleep_beside_bells();
    }
    if bed.rang {
        epoll::rang(fd.as_raw_fd(), conn);
    }
    if bed.moved {
        epoll::moved(fd.as_raw_fd(), conn);
    }
    match look(conn, fd, interest) {
        Some(look) if look.ready & (interest | ALWAYS) != 0 => Rest::Awake,
        _ => Rest::Asleep(bed),
    }
}

/// Gets ready to sleep: takes doorbells away, arms. Look once more afterwards. An `edge` observer sleeps while there is room, too, and is
/// told when there was none in between. One who looks at a board has what comes noted at his `spot` there, if the sender can.
pub(crate) fn lie_down(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    interest: u32,
    edge: bool,
    bells: Bells,
    spot: Option<Spot>,
) -> Bed {
    let moved = interest & WRITE != 0 && conn.may_stand_still() && io::end_standstill(conn, fd);
    let Some(turn) = conn.turn(fd, RECEIVE) else {
        return Bed {
            wake: interest,
            nap: false,
            full: false,
            carried: true,
            rang: false,
            spares: false,
            drained: false,
            over: false,
            noted: false,
            moved: false,
        };
    };
    let tcp = conn.tcp(fd);
    // In the turn: who is about to receive, or to poll, is counted before his own, in which he looks for the last time.
    let others_receive = conn.others_receive();
    let for_bytes = interest & READ != 0;
    let for_room = interest & WRITE != 0;
    // One who sends, and waits for room, may be the only one who ever takes doorbells.
    let is_shared = turn.stream().holders().is_shared();
    let may_be_others = || has_threads() || is_shared;
    let spares = !for_bytes && (others_receive || !for_room && may_be_others());
    if !turn.stream().rx().consented() && conn.counts(Way::In).1 > 0 && conn.is_quiet(Way::In) {
        // So that the peer can ring: its doorbells need the ring's direction.
        turn.consent(&tcp);
    }
    let takes = bells == Bells::Take && !spares;
    // What is noted on a board is not rung for.
    let spot = spot.filter(|_| !(spares || others_receive));
    let place = spot.and_then(|spot| spot.of(conn, &turn));
    let emptied = match takes {
        true if others_receive || is_shared => turn.drain_beside_others(&tcp),
        true => turn.drain(&tcp).map(|()| false),
        false => Ok(false),
    };
    let left = emptied == Ok(true);
    let drained = takes && !left && turn.receives_on_ring();
    let armed = emptied.and_then(|_| turn.arm_unheard(&tcp, place));
    let mut quiet = armed.is_ok();
    if turn.stream().tx().back_wanted()
        && let Some(send) = conn.turn(fd, SEND)
    {
        // The peer waits for bytes that we sent, and the program may be waiting for room.
        let _ = send.serve_back(&tcp);
        conn.heed_call_back(&send);
    }
    let wants_room = for_room && turn.sends_on_ring();
    let full = wants_room && !turn.writable();
    let mut still = false;
    if full || (wants_room && edge) {
        let armed = conn.turn(fd, SEND).map(|send| {
            if full {
                conn.note_standstill(&send, &tcp);
                still = conn.waits_for_one_that_waits();
            }
            send.arm_send()
        });
        quiet &= !full || armed == Some(Ok(true));
    }
    let look = look_at(conn, &turn, fd, interest);
    let over = turn.kernel_end().is_some() || turn.read_is_shut();
    let on_ring = turn.receives_on_ring() && !over;
    let mut wake = look.ask & interest;
    let carried = wake != 0;
    if on_ring {
        wake |= IN | RDHUP;
    }
    // An end that comes by the ring rings with a byte. Who waits for ends and not for bytes sleeps on that, unless there are bytes, which would wake him at once
    // and again; but for an edge each byte is news.
    let for_ends = !for_bytes && (interest & RDHUP != 0 || turn.finished());
    let has_left = on_ring && turn.stream().rx().to_tcp().is_some();
    let may_ring = for_ends && !over && (turn.is_before_ring() || has_left);
    let beside_bytes = !edge && !for_bytes && (may_ring || has_left) && !is_silent(fd);
    let behind = may_ring && beside_bytes;
    if beside_bytes {
        wake &= !IN;
        if interest & RDHUP == 0 && !turn.finished() {
            // It may be behind them, and nobody asks for it.
            wake &= !RDHUP;
        }
    } else if may_ring {
        wake |= IN;
    }
    let counted = for_bytes && conn.low_water.load(Ordering::Relaxed) > 1;
    // For room one is rung for by a byte on TCP. Where that is one of many, only an edge shows it; where there is nothing now, any look.
    let rung = turn.can_be_rung();
    let alone = || full && !on_ring && is_silent(fd);
    let heard = rung && !over && (edge || alone());
    if wants_room && heard {
        wake |= IN;
    }
    if !on_ring && turn.finished() {
        // Then both ends have finished.
        wake |= RDHUP;
    }
    let mourns = full && !on_ring;
    leftover::note(conn, &turn);
    let bed = Bed {
        wake,
        nap: !quiet
            || still
            || (full && !(on_ring && rung) && !heard)
            || (counted && !on_ring)
            || behind,
        full,
        carried,
        rang: turn.took_bell(),
        spares: spares || left,
        drained,
        over: turn.kernel_end().is_some(),
        noted: place.is_some(),
        moved,
    };
    drop(turn);
    if mourns {
        // TCP, which is over, says no more: a peer that was killed is found out by sending to it.
        io::look_at_peer(conn, fd);
    }
    bed
}

/// As [`lie_down`], for who looks at a board, and where nothing is to be done but to say so again: true if there is nothing after that.
pub(crate) fn lie_down_again(conn: &Conn, fd: BorrowedFd<'_>, spot: Spot) -> bool {
    let Some(turn) = conn.turn(fd, RECEIVE) else {
        return false;
    };
    if conn.others_receive() {
        return false;
    }
    let (rx, tx) = (turn.stream().rx(), turn.stream().tx());
    let stays = rx.to_tcp().is_none() && !tx.back_wanted() && !turn.stream().peer_deaf();
    let goes_on = turn.kernel_end().is_none() && !turn.read_is_shut();
    // For `leftover`.
    let has_left = tx.has_grown();
    match spot.of(conn, &turn) {
        Some(place) if stays && goes_on && !has_left => {
            if spot.stands {
                rx.stand_at(place);
            } else {
                rx.arm_at(place);
            }
            rx.settled()
        }
        _ => false,
    }
}
