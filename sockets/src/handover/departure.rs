//! Before a process becomes another program, or starts one.

use std::os::fd::{BorrowedFd, RawFd};

use sys::bequest::Bequest;
use sys::fds;
use sys::stream::{closes_on_exec, cookie};

use super::{back, is_inherited, pass_on};
use crate::conn::Conn;
use crate::epoll::departure::{self as sets, Heir};
use crate::flow::{RECEIVE, SEND};
use crate::reason::Reason;
use crate::{epoll, share, table};

/// What was done before an `exec`, to be undone if it fails.
#[derive(Debug)]
#[must_use = "an exec that returns has failed"]
pub struct Departure {
    /// It was this process that was to become the program, and not a child with its memory.
    own: bool,
    /// It goes with the process that the program becomes, or when this is dropped.
    _sets: Option<Bequest>,
}

/// Before this process becomes another program; `followed` says that that will have this library and take over what it inherits.
///
/// In the child of `vfork` it is the child's descriptors that count, and the parent goes on.
pub fn before_exec(followed: bool) -> Departure {
    if !table::has_any() && !epoll::has_any() {
        // There may be some by the time that it fails, of other threads.
        return Departure {
            own: false,
            _sets: None,
        };
    }
    let guest = !share::is_home() || share::is_sharer();
    if guest {
        guest_leaves(followed);
    } else {
        table::each(|conn| {
            conn.set_forked();
            end_meeting(conn);
            if conn.is_mapped() && !back::is_back(conn) {
                owner_leaves(conn, followed);
            }
        });
    }
    let heir = if guest { Heir::Guest } else { Heir::Itself };
    Departure {
        own: !guest,
        _sets: sets::before_exec(heir, followed),
    }
}

impl Departure {
    /// The program could not be run: this one goes on.
    pub fn failed(self) {
        table::each(|conn| {
            if !conn.is_mapped() {
                return;
            }
            if self.own {
                if conn.unlend() {
                    conn.rejoin();
                }
                pass_on(conn, is_inherited(conn));
            } else if conn.unlend() {
                conn.take_back_holder();
            }
        });
    }
}

/// The next program knows nothing of a meeting. What was offered there may have been taken already: then the connection has rings now.
fn end_meeting(conn: &Conn) {
    if conn.is_meeting() {
        conn.stay_on_tcp(Reason::GaveUp);
    }
}

/// As [`end_meeting`], where this program goes on.
fn postpone_meeting(conn: &Conn, guest: bool) {
    if conn.is_meeting() {
        conn.meet_later(guest);
    }
}

fn owner_leaves(conn: &Conn, followed: bool) {
    if !is_inherited(conn) {
        pass_on(conn, false);
        settle(conn);
        conn.drop_holder();
        conn.set_lent();
        with_a_descriptor(conn, |fd| tidy(conn, fd));
        return;
    }
    if !(followed && pass_on(conn, true)) {
        with_a_descriptor(conn, |fd| {
            back::go_back(conn, fd, Reason::HandedOver);
        });
        pass_on(conn, false);
    }
}

/// The child of `vfork` has descriptors of its own by now.
fn guest_leaves(followed: bool) {
    let mut any_mapped = false;
    table::each(|conn| {
        if !conn.is_mapped() {
            conn.set_forked();
            postpone_meeting(conn, true);
        }
        if conn.is_mapped() && !back::is_back(conn) {
            pass_on(conn, false);
        }
        any_mapped |= conn.is_mapped();
    });
    if !any_mapped {
        return;
    }
    let _ = fds::each(|fd| {
        let Some(cookie) = sys::socket::with_borrowed(fd, inherited_cookie).flatten() else {
            return;
        };
        table::each(|conn| {
            if conn.is_mapped() && conn.cookie() == cookie {
                sys::socket::with_borrowed(fd, |fd| guest_takes(conn, fd, followed));
            }
        });
    });
}

fn guest_takes(conn: &Conn, fd: BorrowedFd<'_>, followed: bool) {
    if back::is_back(conn) || conn.is_lent() {
        return;
    }
    if followed && pass_on(conn, true) {
        conn.lend();
    } else {
        back::go_back(conn, fd, Reason::HandedOver);
    }
}

/// Before a program is told of that will have the connection at another number, whenever it is started.
pub fn before_move(conn: &Conn, fd: BorrowedFd<'_>) {
    postpone_meeting(conn, false);
    if conn.is_mapped() {
        back::go_back(conn, fd, Reason::HandedOver);
    } else {
        // Nobody looks again which of those that inherit it have it there.
        conn.stay_on_tcp(Reason::HandedOver);
    }
}

/// What was done before a program is started beside this one.
#[derive(Debug)]
#[must_use = "it was started, or not"]
pub struct Spawning {
    _sets: Option<Bequest>,
}

/// Before this process starts another program by `posix_spawn`, which inherits what is not closed on exec.
pub fn before_spawn(followed: bool) -> Spawning {
    share::begin_child();
    table::share_sockets(None);
    table::each(|conn| {
        if !conn.is_mapped() {
            conn.set_forked();
            postpone_meeting(conn, false);
        }
        if conn.is_mapped() && is_inherited(conn) && !back::is_back(conn) {
            if followed && pass_on(conn, true) {
                conn.lend();
            } else {
                with_a_descriptor(conn, |fd| {
                    back::go_back(conn, fd, Reason::HandedOver);
                });
            }
        }
    });
    Spawning {
        _sets: sets::before_exec(Heir::Child, followed),
    }
}

impl Spawning {
    /// It was started, or not.
    pub fn over(self, started: bool) {
        share::end_child();
        table::each(|conn| {
            if conn.unlend() && !started {
                conn.take_back_holder();
            }
        });
    }
}

/// This process ends now, and its descriptors with it.
///
/// What it sent is in memory that its peer has. What is left is that a connection with a doorbell on it would be reset by the kernel, and one with bytes
/// unread in memory would not, and that other processes may have the connection.
#[inline]
pub fn before_exit() {
    // Most programs have none, and what is not looked at need not be in memory.
    if table::has_any() {
        leave_all();
    }
}

fn leave_all() {
    if table::is_retired() || !share::is_home() || share::is_sharer() {
        return;
    }
    table::each(|conn| {
        conn.note_lifetime();
        if conn.is_mapped() && !conn.is_lent() {
            settle(conn);
            conn.set_lent();
            if with_a_descriptor(conn, |fd| leave(conn, fd)).is_none() {
                conn.drop_holder();
            }
        }
    });
}

fn leave(conn: &Conn, fd: BorrowedFd<'_>) {
    if let Some(flow) = conn.flow.take(RECEIVE) {
        flow.leave_at_exit(&conn.tcp(fd));
    }
}

/// Puts on TCP what a peer that has gone back there has not taken. What does not fit is cut off, and a reset says so.
fn settle(conn: &Conn) {
    if (conn.flow.take(SEND)).is_some_and(|flow| flow.owes_back()) {
        with_a_descriptor(conn, |fd| {
            if !back::finish_serving(conn, fd) {
                sys::socket::reset_on_close(fd);
            }
        });
    }
}

/// Takes doorbells off a connection that the kernel is about to close. If bytes were not read, it is to be reset as TCP would.
fn tidy(conn: &Conn, fd: BorrowedFd<'_>) {
    let Some(flow) = conn.flow.take(RECEIVE) else {
        return;
    };
    if flow.stream().holders().count() == 0 {
        let tcp = conn.tcp(fd);
        let _ = flow.drain(&tcp);
    }
}

fn inherited_cookie(fd: BorrowedFd<'_>) -> Option<u64> {
    if closes_on_exec(fd) {
        return None;
    }
    cookie(fd).ok()
}

fn with_a_descriptor<T>(conn: &Conn, act: impl FnOnce(BorrowedFd<'_>) -> T) -> Option<T> {
    let mut found: Option<RawFd> = None;
    table::for_each(|fd, of| {
        if std::ptr::eq(of, conn) {
            found = found.or(Some(fd));
        }
    });
    sys::socket::with_borrowed(found?, act)
}
