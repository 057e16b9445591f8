//! Connections that several processes have: turns between them, and `fork`.
//!
//! Everything about a stream lies in memory that a child of `fork` has too, so both may send and receive, byte for byte in turns. A process on
//! its own takes turns among its threads only, which is cheaper; `shared` in the memory says whether that is enough. It is set
//! while nobody acts at the end, before there is a second process, and cleared when the last but one has said that it left, and is gone if it left by ending.
//! One that was killed says nothing: then turns stay the dearer kind, and the end is told to the peer by the kernel when the last descriptor goes.
//!
//! A connection that is young when its process forks is a TCP connection that both have, and if one of them upgraded it the other would not know.
//! So whoever would begin a meeting first asks the kernel who else has the socket (`is_alone`).

use std::os::fd::{BorrowedFd, RawFd};

use sys::fork::{self, Place};
use sys::holders::{self, Fork, Others};
use sys::lock::{Lock, OwnGuard};
use sys::stream::Corrupt;
use sys::sync::mapped::AtomicU32;
use sys::sync::{Ordering, fence};
use sys::turn::Busy;

use crate::conn::{Conn, Path};
use crate::flow::{Flow, SEND};
use crate::kernel::Kernel;
use crate::reason::Reason;
use crate::{epoll, table};

pub use self::turn::Turn;

use self::turn::Around;

#[cfg(all(test, loom))]
mod model;
mod turn;

impl Conn {
    /// Takes a turn at `side`, waiting for it; `None` if there are no rings (any more).
    // As `Turns::take`.
    #[inline(always)]
    pub(crate) fn turn(&self, fd: BorrowedFd<'_>, side: usize) -> Option<Turn<'_>> {
        let turn = self.flow.take(side)?;
        if turn.stream().holders().is_shared() {
            return self.enter(fd, turn, side);
        }
        Some(Turn::of_thread(turn, side))
    }

    /// The program wants its own descriptor at `number`, where one of ours is: this connection's goes elsewhere. False if it is still there.
    pub(crate) fn step_aside(&self, number: RawFd) -> bool {
        if self.is_meeting() {
            self.stay_on_tcp(Reason::GaveUp);
        }
        let is_elsewhere = |flow: sys::turn::Turn<'_, Flow>| flow.stream().step_aside(number);
        self.flow.take(SEND).is_none_or(is_elsewhere)
    }

    #[cold]
    fn enter<'a>(
        &'a self,
        fd: BorrowedFd<'_>,
        turn: sys::turn::Turn<'a, Flow>,
        side: usize,
    ) -> Option<Turn<'a>> {
        if !self.may_be_shared() {
            // The peer says so, who cannot know.
            return Some(Turn::of_thread(turn, side));
        }
        self.heed_nonblocking(fd, turn.stream());
        turn.heed_shut_read();
        match Turn::enter(&self.flow, turn, side, &Socket { conn: self, fd }) {
            Ok(turn) => turn,
            Err(Corrupt) => {
                self.reset_spoilt(fd);
                let turn = self.flow.take(side)?;
                Some(Turn::of_thread(turn, side))
            }
        }
    }

    /// Before a fork: from now on another process may act too. Nobody is in a turn until [`Conn::after_fork`].
    fn before_fork(&self, fork: Fork) {
        let at_fork = self.at_fork.load(Ordering::Relaxed);
        // One fork ends before the next begins, so this is a signal handler that came into its thread's own.
        let within = at_fork >= HELD;
        self.at_fork
            .store(if within { at_fork + 1 } else { 0 }, Ordering::Relaxed);
        self.note_fork(fork);
        if self.path() == Path::Meeting && !self.meets_later() {
            // The child would have the meeting too, and only one of the two may have what comes of it.
            self.stay_on_tcp(Reason::GaveUp);
        }
        if within {
            if self.is_mapped() {
                self.add_holder();
            }
        } else if self.is_mapped() {
            let mut at_fork = COUNTED;
            // A signal handler that forks in the middle of its thread's turn has that turn to itself, in both processes.
            if let Some(both) = self.flow.both() {
                std::mem::forget(both);
                at_fork = HELD;
            } else {
                self.break_off();
            }
            self.at_fork.store(at_fork, Ordering::Relaxed);
            self.add_holder();
        }
    }

    fn after_fork(&self, child: bool) {
        if child {
            self.forget_threads();
            self.forget_lifetime();
            if let Some(flow) = self.flow.take(SEND) {
                flow.is_there();
            }
            if self.is_meeting() {
                self.forget_meeting();
            }
        }
        match self.at_fork.load(Ordering::Relaxed) {
            0 | COUNTED => {}
            HELD => {
                if !child {
                    self.flow.forget_turns();
                }
                self.at_fork.store(COUNTED, Ordering::Relaxed);
            }
            within => self.at_fork.store(within - 1, Ordering::Relaxed),
        }
    }

    /// Another process has this end from now on. For who holds both turns, or the one that its signal came in.
    fn add_holder(&self) {
        if let Some(flow) = self.flow.take(SEND) {
            flow.stream().holders().share();
        }
    }

    /// A process that nobody counted has this end: this one.
    fn join_late(&self) {
        self.kin.add();
        self.set_forked();
        let _both = self.flow.both();
        self.add_holder();
    }

    /// A program is about to have this end, and this one goes on. Counted once, until it is running or has failed to.
    pub fn lend(&self) {
        self.set_forked();
        let both = self.flow.both();
        if both.is_none() {
            self.break_off();
        }
        // Before somebody looks who finds none that is counted.
        self.set_lent();
        self.add_holder();
    }

    /// In a signal handler that came into a turn of its thread: whoever has the end after this may act before the turn goes on, which then writes nothing
    /// more. The handler may wait for them, so that they must not wait for the turn.
    fn break_off(&self) {
        if let Some(flow) = self.flow.take(SEND).filter(sys::turn::Turn::nested) {
            let stream = flow.stream();
            stream.tx().break_off();
            stream.tx().give_up();
        }
    }

    /// Notes that what was done about holders is to be undone if the program goes on.
    pub(crate) fn set_lent(&self) {
        self.lent.store(fork::here(), Ordering::Relaxed);
    }

    /// Whether that is so, by this process: what a child of `vfork` did for the program that it became concerns no other.
    pub(crate) fn is_lent(&self) -> bool {
        self.lent.load(Ordering::Relaxed) == fork::here()
    }

    /// Whether that was so.
    pub(crate) fn unlend(&self) -> bool {
        let here = fork::here();
        self.lent
            .compare_exchange(here, 0, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// This process is a holder again. Another one may have found itself alone meanwhile.
    pub(crate) fn rejoin(&self) {
        let both = self.flow.both();
        if let Some(flow) = self.flow.take(SEND) {
            let holders = flow.stream().holders();
            // A signal handler in the middle of a turn has only its own.
            if both.is_some() {
                holders.share();
            } else {
                holders.join();
            }
        }
    }

    /// Who was counted did not come to be.
    pub(crate) fn take_back_holder(&self) {
        if let Some(flow) = self.flow.take(SEND) {
            flow.stream().holders().take_back();
        }
    }

    /// This process is about to have the end no more without closing it.
    pub fn drop_holder(&self) {
        if let Some(flow) = self.flow.take(SEND) {
            flow.stream().holders().leave();
        }
    }
}

/// A connection's descriptor, of which the kernel knows who has it.
struct Socket<'a> {
    conn: &'a Conn,
    fd: BorrowedFd<'a>,
}

impl Around for Socket<'_> {
    fn finds_nobody(&self) -> bool {
        let entered = self.conn.entered.fetch_add(1, Ordering::Relaxed) + 1;
        entered >= TURNS_PER_LOOK
            && entered.is_power_of_two()
            && !self.conn.is_lent()
            && holders::others(self.fd, self.conn.fork()) == Others::None
    }

    fn finds_ended(&self, pid: u32) -> bool {
        let entered = self.conn.entered.load(Ordering::Relaxed);
        entered.is_multiple_of(TURNS_PER_QUESTION) && holders::has_ended(pid)
    }

    fn shares(&self, thread: u32) -> Option<bool> {
        holders::is_other(self.fd, thread)
    }

    fn tcp(&self) -> impl Kernel {
        self.conn.tcp(self.fd)
    }
}

/// Before this process forks, in whatever way.
pub fn before_fork() {
    if table::is_retired() {
        return;
    }
    begin_child();
    // While nothing is held that an upgrade needs.
    table::each(|conn| {
        if conn.is_meeting() {
            conn.meet_later(false);
        }
    });
    epoll::before_fork();
    let frozen = freeze();
    let fork = Fork::imminent();
    table::share_sockets(Some(fork));
    table::each(|conn| conn.before_fork(fork));
    if let Ok(Some(table)) = frozen
        && let Some(mut held) = FROZEN.try_lock()
    {
        *held = Some(Frozen {
            _table: table,
            depth: epoll::fork_depth(),
        });
    }
}

/// Before there is a child with descriptors of its own, or with this process's, that is not counted.
pub fn before_uncounted() {
    if !table::is_retired() {
        CHILDREN.fetch_add(1, Ordering::SeqCst);
        table::share_sockets(None);
        table::each(|conn| {
            if !conn.is_mapped() {
                conn.set_forked();
            }
        });
    }
}

/// Another process is about to come to be that has what this one has. To be called before that is noted of anything.
pub(crate) fn begin_child() {
    UNDER_WAY.fetch_add(1, Ordering::SeqCst);
    CHILDREN.fetch_add(1, Ordering::SeqCst);
}

/// It is there to be seen, or did not come to be.
pub(crate) fn end_child() {
    // A child begins with none, where a fork may go on that a handler came into.
    let _ = UNDER_WAY.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |under_way| {
        under_way.checked_sub(1)
    });
}

/// After it, in the process that forked.
pub fn after_fork() {
    if table::is_retired() {
        return;
    }
    table::each(|conn| conn.after_fork(false));
    end_child();
    thaw(false);
    epoll::after_fork(false);
}

/// The fork that has just ended made no child after all.
pub fn take_back_fork() {
    if table::is_retired() {
        return;
    }
    table::each(|conn| {
        // That one more was counted of those that are young stays: then the kernel is asked.
        let relaxed = Ordering::Relaxed;
        let counted = conn.at_fork.compare_exchange(COUNTED, 0, relaxed, relaxed);
        // Another thread that forks by now may hold its turns.
        if counted.is_ok() {
            conn.take_back_holder();
        }
    });
}

/// After it, in the child.
pub fn in_child() {
    if table::is_retired() {
        return;
    }
    fork::settle();
    UNDER_WAY.store(0, Ordering::SeqCst);
    // Without one of its own the child would count in its parent's.
    let _ = sys::ledger::part_from_parent();
    table::each(|conn| {
        conn.after_fork(true);
        conn.at_fork.store(0, Ordering::Relaxed);
    });
    table::each_kept(Conn::forget_kept);
    thaw(true);
    epoll::after_fork(true);
}

/// Whether the descriptors of this process are those that the table describes. They are not in the child of `vfork`, which has its parent's
/// memory: what it does to descriptors concerns nobody but itself.
pub fn is_home() -> bool {
    if table::is_retired() {
        return true;
    }
    match fork::place() {
        Place::Home | Place::Sharer => true,
        Place::Guest => false,
        Place::Child => {
            // Too late for the quiet that `before_fork` makes; the other process does not know that it is not alone.
            table::each(Conn::join_late);
            in_child();
            true
        }
    }
}

/// As [`is_home`], where a mistake about children that were [not seen](fork::seems_home) does little.
#[inline]
pub(crate) fn seems_home() -> bool {
    fork::seems_home() || table::is_retired()
}

/// Whether this is a process that shares all that the one at home has: when it ends, or becomes another program, nothing ends there.
pub(crate) fn is_sharer() -> bool {
    fork::place() == Place::Sharer
}

/// Whether no other process has the socket of a connection, so that it may be upgraded. Asks the kernel where there may be one.
///
/// It is asked a few times at most, after ever more has been exchanged: a server that forks for each connection closes its own
/// descriptor soon, and one that does not will never. Where all but this one have said that they have it no more, the
/// kernel is asked about the one that forked, and not about all; who was killed has said nothing.
pub(crate) fn is_alone(conn: &Conn, fd: BorrowedFd<'_>) -> Option<bool> {
    if !conn.may_be_shared() {
        return Some(true);
    }
    let children = CHILDREN.load(Ordering::SeqCst);
    if UNDER_WAY.load(Ordering::SeqCst) != 0 {
        // Who is about to be there is not seen.
        return Some(false);
    }
    let has_been_left = conn.kin.is_alone() == Some(true)
        && (conn.fork()).is_some_and(|fork| holders::is_held_by(fd, fork.pid) == Some(false));
    let others = if has_been_left {
        Others::None
    } else {
        holders::others(fd, conn.fork())
    };
    match others {
        Others::None => {
            conn.set_alone();
            // Whoever begins a child after this notes it after this.
            fence(Ordering::SeqCst);
            if CHILDREN.load(Ordering::SeqCst) == children {
                return Some(true);
            }
            conn.set_forked();
            Some(false)
        }
        Others::Some | Others::Unknown if conn.looks.fetch_add(1, Ordering::Relaxed) < LOOKS => {
            Some(false)
        }
        Others::Some | Others::Unknown => None,
    }
}

/// Bounded: another thread may be stopped in the middle of a change.
fn freeze() -> Result<Option<OwnGuard<'static>>, Busy> {
    (0..TRIES)
        .find_map(|_| {
            let frozen = table::try_freeze();
            if frozen.is_err() {
                std::thread::yield_now();
            }
            frozen.ok()
        })
        .ok_or(Busy)
}

/// The table may be changed again, if it was this fork that kept it still, and not the one that a handler came into with it. A child has no other.
fn thaw(in_child: bool) {
    let depth = epoll::fork_depth();
    let frozen = FROZEN
        .try_lock()
        .and_then(|mut held| held.take_if(|frozen| in_child || frozen.depth == depth));
    drop(frozen);
}

/// The table does not change between [`before_fork`] and what comes after it, but by handlers of the thread that forks.
struct Frozen {
    _table: OwnGuard<'static>,
    depth: u32,
}

static FROZEN: Lock<Option<Frozen>> = Lock::new(None);

/// How many children were begun, and how many are not there yet: while the kernel is asked who has a socket, another thread may fork.
static CHILDREN: AtomicU32 = AtomicU32::new(0);
static UNDER_WAY: AtomicU32 = AtomicU32::new(0);

/// Values of `Conn::at_fork`: there is a holder more, and this thread has both turns. Above that, so many forks of handlers have come into this one.
const HELD: u32 = 2;
const COUNTED: u32 = 1;

pub(crate) const LOOKS: u32 = 3;
const TRIES: u32 = 100_000;
/// After so many turns among processes it is asked whether there still are several, and after twice as many again.
const TURNS_PER_LOOK: u32 = 1 << 16;
/// And after so many whether one that has left is still there, which is one system call.
const TURNS_PER_QUESTION: u32 = 64;
