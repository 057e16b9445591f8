//! Whether a connection with rings is ready, and what to do before one sleeps until it is.
//!
//! `poll`, `select` and `epoll` are built on two questions. `look`: which events does memory show, and which does only the kernel know?
//! `rest`: may one sleep until some event comes, and on which events of the kernel? A doorbell is a byte on TCP, so it wakes whoever
//! sleeps on the descriptor with [`IN`].

use std::os::fd::{AsRawFd, BorrowedFd};

use sys::board::{Id, Place};
use sys::stream::Watch;
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU32;

use crate::conn::{Conn, Way};
use crate::epoll;
use crate::flow::{Flow, RECEIVE, SEND};
use crate::share::Turn;
use crate::{io, leftover};

pub(crate) use time::{Deadline, LOOK, NAP, Naps, nap_within, worth_polling};

mod time;

/// What a connection shows. The bits are those of `poll` and `epoll`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// Events that memory shows.
    pub(crate) ready: u32,
    /// Events for which the kernel's answer counts.
    pub(crate) ask: u32,
    /// Events that the kernel may show and the program is not to be told: those of a reset by a doorbell.
    pub(crate) hush: u32,
    /// Nothing but the sender's next bytes, or its end, will change what there is to receive, unless this process does.
    pub(crate) settled: bool,
}

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
    /// Not longer than [`NAP`], for nobody rings.
    pub(crate) nap: bool,
    /// There is no room, and nobody rings if another thread ends that direction.
    pub(crate) full: bool,
    /// Whether the kernel's events are the program's, and not doorbells only.
    pub(crate) carried: bool,
    /// A doorbell was taken away, which others may be waiting for: see [`epoll::rang`].
    pub(crate) rang: bool,
    /// Whether what the kernel had of doorbells was taken away.
    pub(crate) drained: bool,
    /// TCP has ended, so that the kernel would wake at once whoever slept on it, for nothing.
    pub(crate) over: bool,
    /// What comes is noted on a board.
    pub(crate) noted: bool,
}

/// Where on a board a connection is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub(crate) board: Id,
    pub(crate) place: Place,
}

impl Spot {
    /// The place, if the sender has the board, and nobody but the set whose board it is looks after the connection.
    fn of(self, conn: &Conn, turn: &Turn<'_>) -> Option<Place> {
        let alone = !turn.stream().holders().is_shared() && !conn.signals();
        let noted = turn.receives_on_ring() && alone && turn.stream().notes_on(self.board);
        noted.then_some(self.place)
    }
}

/// A connection has got rings. Who sleeps in the kernel does not know that, and must be woken by the first bytes there.
pub(crate) fn upgraded(fd: BorrowedFd<'_>, conn: &Conn) {
    // After `Unaware::new`, or that one sees the rings.
    if UNAWARE.load(Ordering::SeqCst) != 0 {
        arm(conn);
    }
    epoll::upgraded(fd.as_raw_fd(), conn);
}

/// Has the next bytes ring.
pub(crate) fn arm(conn: &Conn) {
    if let Some(turn) = conn.flow.take(RECEIVE) {
        turn.stream().rx().arm();
    }
}

/// Notes that a thread goes to sleep in the kernel on connections that had no rings when it last looked. It looks once more afterwards, and
/// says when it sleeps no more; one that is cancelled does not, which costs a doorbell a connection.
pub(crate) fn unaware() {
    UNAWARE.fetch_add(1, Ordering::SeqCst);
}

/// After [`unaware`].
pub(crate) fn aware() {
    let _ = UNAWARE.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
}

static UNAWARE: AtomicU32 = AtomicU32::new(0);

/// What the connection shows of the events of `interest`; `None` if it has no rings (any more).
#[inline]
pub(crate) fn look(conn: &Conn, fd: BorrowedFd<'_>, interest: u32) -> Option<Look> {
    let turn = conn.turn(fd, RECEIVE)?;
    Some(look_at(conn, &turn, fd, interest))
}

/// For looks without a turn at what the peer shows.
pub(crate) fn watch(conn: &Conn, fd: BorrowedFd<'_>) -> Option<Watch> {
    let turn = conn.turn(fd, RECEIVE)?;
    turn.stream().rx().watch()
}

/// As [`look`], and what an edge-triggered observer compares.
#[inline]
pub(crate) fn look_closely(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    interest: u32,
) -> Option<(Look, Marks)> {
    let turn = conn.turn(fd, RECEIVE)?;
    // First: what comes in between must be new at the next look.
    let arrived = arrived(&turn);
    let look = look_at(conn, &turn, fd, interest);
    Some((look, Marks::of(&turn, arrived, look)))
}

/// One who slept on the connection among others is awake and looks at it: what comes need not ring, unless somebody else sleeps on it.
pub(crate) fn awake(conn: &Conn, fd: BorrowedFd<'_>) {
    // Whoever sleeps says so before he arms, and arms in a turn.
    if let Some(turn) = conn.turn(fd, RECEIVE)
        && turn.stream().rx().is_armed()
        && conn.nobody_sleeps()
        && UNAWARE.load(Ordering::SeqCst) == 0
        && POLLERS.load(Ordering::SeqCst) == 0
        && !turn.stream().holders().is_shared()
        && !turn.nested()
        && !conn.signals()
    {
        turn.stream().rx().disarm();
    }
}

/// Notes that a thread goes to sleep in `poll`, before it arms.
pub(crate) fn poller_rests() {
    POLLERS.fetch_add(1, Ordering::SeqCst);
}

/// After [`poller_rests`]. One that is cancelled does not come here, which costs doorbells.
pub(crate) fn poller_is_up() {
    let _ = POLLERS.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
}

static POLLERS: AtomicU32 = AtomicU32::new(0);

/// What one who sleeps on TCP's own events is told that the end of TCP has come: reads it, so that memory shows it.
#[cold]
pub(crate) fn note_end(conn: &Conn, fd: BorrowedFd<'_>) {
    if let Some(turn) = conn.turn(fd, RECEIVE) {
        // What is wrong shows at the next look.
        let _ = turn.drain_to_end(&conn.tcp(fd));
        turn.stream().rx().arm();
    }
}

/// Gets ready to sleep until one of the events of `interest`, and looks once more.
pub(crate) fn rest(conn: &Conn, fd: BorrowedFd<'_>, interest: u32) -> Rest {
    let bed = lie_down(conn, fd, interest, false, Bells::Take, None);
    if bed.rang {
        epoll::rang(fd.as_raw_fd(), conn);
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
    let Some(turn) = conn.turn(fd, RECEIVE) else {
        return Bed {
            wake: interest,
            nap: false,
            full: false,
            carried: true,
            rang: false,
            drained: false,
            over: false,
            noted: false,
        };
    };
    let tcp = conn.tcp(fd);
    if !turn.stream().rx().consented() && conn.counts(Way::In).1 > 0 && conn.is_quiet(Way::In) {
        // So that the peer can ring: its doorbells need the ring's direction.
        turn.consent(&tcp);
    }
    let drained = bells == Bells::Take && turn.receives_on_ring();
    let place = spot.and_then(|spot| spot.of(conn, &turn));
    let emptied = match bells {
        Bells::Take => turn.drain(&tcp),
        Bells::Leave => Ok(()),
    };
    let armed = emptied.and_then(|()| turn.arm_unheard(&tcp, place));
    let mut quiet = armed.is_ok();
    if turn.stream().tx().back_wanted()
        && let Some(send) = conn.turn(fd, SEND)
    {
        // The peer waits for bytes that we sent, and the program may be waiting for room.
        let _ = send.serve_back(&tcp);
        conn.heed_call_back(&send);
    }
    let wants_room = interest & WRITE != 0 && turn.sends_on_ring();
    let full = wants_room && !turn.writable();
    if full || (wants_room && edge) {
        let armed = conn.turn(fd, SEND).map(|send| send.arm_send());
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
    let counted = interest & READ != 0 && conn.low_water.load(Ordering::Relaxed) > 1;
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
        nap: !quiet || (full && !(on_ring && rung) && !heard) || (counted && !on_ring),
        full,
        carried,
        rang: turn.took_bell(),
        drained,
        over: turn.kernel_end().is_some(),
        noted: place.is_some(),
    };
    drop(turn);
    if mourns {
        // TCP, which is over, says no more: a peer that was killed is found out by sending to it.
        io::look_at_peer(conn, fd);
    }
    bed
}

/// What an edge-triggered observer compares with what he was last told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    /// Changes with each byte that arrives, and with the end.
    pub(crate) input: u64,
    /// Bytes sent to the ring in all.
    pub(crate) sent: u64,
    /// When so many have been sent, the ring may have been full.
    pub(crate) full_at: u64,
}

impl Marks {
    #[inline]
    fn of(flow: &Flow, arrived: u64, look: Look) -> Self {
        let tx = flow.stream().tx();
        // As `look` has it: what it does not tell is to be told.
        let ended = if flow.receives_on_ring() {
            look.ready & RDHUP != 0
        } else {
            flow.kernel_end().is_some()
        };
        let ended = u64::from(ended);
        let sent = tx.tail();
        let room = tx.room(1).unwrap_or(0) as u64;
        Self {
            input: arrived ^ ended << 63 ^ u64::from(flow.read_is_shut()) << 62,
            sent,
            full_at: sent.wrapping_add(room),
        }
    }
}

/// Bytes that have come by the ring. While what came over TCP before them has not all been taken they have not come: who has got less than it asked for
/// at the end of that waits for an edge.
#[inline]
fn arrived(flow: &Flow) -> u64 {
    let rx = flow.stream().rx();
    if !flow.receives_on_ring() {
        return rx.head();
    }
    rx.head().wrapping_add(rx.available().unwrap_or(0) as u64)
}

#[inline]
fn look_at(conn: &Conn, flow: &Flow, fd: BorrowedFd<'_>, interest: u32) -> Look {
    let mut look = Look {
        ready: 0,
        ask: PRI,
        hush: 0,
        settled: false,
    };
    let mut awaits_tcp = false;
    if !flow.receives_on_ring() || flow.stream().rx().to_tcp().is_some() {
        awaits_tcp = follow(conn, flow, fd);
    }
    if flow.stream().peer_deaf() && flow.kernel_end().is_none() {
        // It is closing or closed. How, TCP tells: with bytes unread it is reset.
        last_words(conn, flow, fd);
    }
    if awaits_tcp {
        look.ask |= READ | RDHUP;
    } else if flow.receives_on_ring() {
        if flow.readable() && enough(conn, flow) {
            look.ready |= READ;
        }
        if flow.peer_finished() || flow.read_is_shut() {
            look.ready |= READ | RDHUP;
            look.ready |= if flow.finished() { HUP } else { 0 };
        }
    } else if flow.finished() && has_ended(fd) {
        // The kernel does not know that we have, too.
        look.ready |= READ | RDHUP | HUP;
    } else if conn.low_water.load(Ordering::Relaxed) <= 1 {
        look.ask |= READ | RDHUP;
    } else {
        look.ask |= RDHUP;
        look.ready |= if enough_in_all(conn, flow, fd) {
            READ
        } else {
            0
        };
    }
    let deaf = flow.stream().peer_deaf();
    look.settled = flow.receives_on_ring() && !awaits_tcp && !deaf;
    if interest & WRITE == 0 {
        // The lines of the other direction are as far away as those of this one.
    } else if flow.sends_on_ring() && !deaf {
        look.ready |= if flow.writable() { WRITE } else { 0 };
    } else {
        look.ask |= WRITE;
    }
    if let Some(end) = flow.kernel_end() {
        look.ready |= if end.is_some() { ERR } else { 0 };
        look.ready |= if end.is_some() || flow.error_is_told() {
            HUP
        } else {
            0
        };
        look.ask |= ALWAYS;
        look.settled = false;
    }
    if flow.is_reset_by_bell(&conn.tcp(fd)) {
        look.hush = if flow.finished() { ERR } else { ALWAYS };
    }
    look
}

/// Follows a sender that has moved to the ring, or back; whether what comes before the way back has still to come over TCP.
#[cold]
fn follow(conn: &Conn, flow: &Flow, fd: BorrowedFd<'_>) -> bool {
    let tcp = conn.tcp(fd);
    // The same turn again, and against other processes.
    let Some(_turn) = conn.turn(fd, RECEIVE) else {
        return false;
    };
    // What is wrong with the connection is for the call that moves bytes to find.
    if flow.receives_on_ring() {
        if flow.available() == Ok(0) {
            let _ = flow.came_back(&tcp);
        }
        flow.receives_on_ring() && flow.awaits_tcp(&tcp)
    } else {
        let _ = flow.follow(&tcp);
        false
    }
}

/// Reads TCP's end, if it has come.
#[cold]
fn last_words(conn: &Conn, flow: &Flow, fd: BorrowedFd<'_>) {
    // As in `follow`, for both.
    if let Some(_turn) = conn.turn(fd, RECEIVE) {
        let _ = flow.drain_to_end(&conn.tcp(fd));
    }
}

/// Whether nothing waits on TCP, and no end.
#[cold]
pub(crate) fn is_silent(fd: BorrowedFd<'_>) -> bool {
    sys::epoll::shows(fd.as_raw_fd(), (IN | RDHUP) as u16) == 0
}

/// Whether the peer has ended, as TCP has it.
#[cold]
pub(crate) fn has_ended(fd: BorrowedFd<'_>) -> bool {
    sys::epoll::shows(fd.as_raw_fd(), RDHUP as u16) != 0
}

/// `SO_RCVLOWAT`: less than that is nothing yet.
#[inline]
fn enough(conn: &Conn, flow: &Flow) -> bool {
    let least = conn.low_water.load(Ordering::Relaxed) as usize;
    least <= 1
        || flow
            .available()
            .map_or(true, |n| n >= least.min(low_water_max(flow)) || n == 0)
}

/// As [`enough`], where bytes are on TCP, and perhaps on the ring after them; the kernel knows nothing of `SO_RCVLOWAT` then.
#[cold]
fn enough_in_all(conn: &Conn, flow: &Flow, fd: BorrowedFd<'_>) -> bool {
    let least = (conn.low_water.load(Ordering::Relaxed) as usize).min(low_water_max(flow));
    flow.waiting(&conn.tcp(fd)).map_or(true, |n| n >= least) || has_ended(fd)
}

/// More than this never lies in a ring that a sender waits to fill.
fn low_water_max(flow: &Flow) -> usize {
    flow.stream().size().bytes() / 4
}

/// There is something to receive.
pub const IN: u32 = 0x1;
/// There is out-of-band data.
pub const PRI: u32 = 0x2;
/// There is room to send.
pub const OUT: u32 = 0x4;
/// There is an error.
pub const ERR: u32 = 0x8;
/// Both directions have ended.
pub const HUP: u32 = 0x10;
/// There is no such descriptor.
pub const NVAL: u32 = 0x20;
/// As [`IN`].
pub const RDNORM: u32 = 0x40;
/// As [`PRI`], to some.
pub const RDBAND: u32 = 0x80;
/// As [`OUT`].
pub const WRNORM: u32 = 0x100;
/// Room for out-of-band data.
pub const WRBAND: u32 = 0x200;
/// The peer sends no more.
pub const RDHUP: u32 = 0x2000;

pub(crate) const READ: u32 = IN | RDNORM;
pub(crate) const WRITE: u32 = OUT | WRNORM;
/// Told without being asked for.
pub(crate) const ALWAYS: u32 = ERR | HUP;
