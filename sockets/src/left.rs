//! Calls that a signal handler leaves by a jump.
//!
//! One that was asleep had no turn. One that was at work had, and what comes after it never comes: the turn is ended in its place, and done
//! what is done for a process that was killed in its turn. What the call had published counts, and of the rest nothing was sent or taken, as if the signal
//! had come a moment before.

use std::os::fd::{BorrowedFd, RawFd};

use sys::{stack, turn};

use crate::conn::Conn;
use crate::flow::{RECEIVE, SEND};
use crate::{epoll, io, table};

/// The program is about to jump to a frame whose stack pointer is `target`, in a signal handler perhaps.
#[inline]
pub fn before_jump(target: usize) {
    if turn::is_in_turn() || turn::is_in_sole() {
        end_left(target);
    }
    if table::is_changing() {
        table::end_left(target);
    }
    if epoll::is_changing() {
        epoll::end_left_change(target);
    }
}

/// Whether a jump of this thread's may leave something in its middle.
#[inline]
pub fn may_leave() -> bool {
    turn::is_in_turn() || turn::is_in_sole() || table::is_changing() || epoll::is_changing()
}

/// A wait on a set begins, or a change of one: as [`find`].
#[inline]
pub(crate) fn find_sets() {
    if turn::is_in_sole() {
        end_left(stack::frame());
    }
}

/// A call begins: what was left in a way that nobody told of, as by `setcontext`, is below it.
#[inline]
pub(crate) fn find() {
    if turn::is_in_turn() {
        end_left(stack::frame());
    }
}

#[cold]
fn end_left(target: usize) {
    let mut received: [Option<(RawFd, &'static Conn)>; MOST] = [None; MOST];
    let mut receivers = received.iter_mut();
    turn::end_left(target, |left| {
        let mut found = None;
        table::for_each(|fd, conn| {
            if let Some(side) = conn.flow.side_of(left) {
                found = found.or(Some((fd, conn, side)));
            }
        });
        let Some((fd, conn, side)) = found else {
            return epoll::end_left(left);
        };
        sys::socket::with_borrowed(fd, |fd| conn.end_turn_of_call(fd, side));
        if side == RECEIVE
            && let Some(place) = receivers.next()
        {
            *place = Some((fd, conn));
        }
    });
    // Outside turns, for it takes others.
    for (fd, conn) in received.into_iter().flatten() {
        sys::socket::with_borrowed(fd, |fd| io::pay_for_left(conn, fd));
    }
}

impl Conn {
    /// In such a turn, before it ends.
    fn end_turn_of_call(&self, fd: BorrowedFd<'_>, side: usize) {
        let Some(flow) = self.flow.take(side) else {
            return;
        };
        // What is wrong with the connection the next call tells.
        let _ = flow.ring_for_another(&self.tcp(fd), side);
        match side {
            SEND => flow.stream().tx().end_left(),
            _ => flow.stream().rx().end_left(),
        }
    }
}

/// As many turns of receivers are ended at a time.
const MOST: usize = 4;
