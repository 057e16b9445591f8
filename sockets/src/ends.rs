//! Duplicates, shutdown and close: how a connection loses its ends.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use sys::errno::Errno;
use sys::hidden;
use sys::stream::closes_on_exec;

use crate::conn::{Conn, Way};
use crate::flow::{RECEIVE, SEND, SPOILT, Stop, Take};
use crate::handover::go_back;
use crate::kernel::Kernel;
use crate::reason::Reason;
use crate::table::newborn;
use crate::{epoll, ready, share, table};

/// The program is about to close `fd`. [`closed`] is to follow.
pub fn before_close(fd: RawFd) {
    if newborn::end(fd) || !is_for_us(fd) {
        return;
    }
    epoll::before_close(fd);
    if let Some(conn) = table::begin_to_close(fd) {
        sys::socket::with_borrowed(fd, |fd| conn.close(fd));
    }
}

/// As [`before_close`], if it is no connection and in no set; `false`, and nothing is done, if it is.
#[inline]
pub fn before_close_other(fd: RawFd) -> bool {
    !epoll::concerns(fd) && table::begin_to_close_other(fd)
}

/// The program has closed `fd`, or tried to.
pub fn closed(fd: RawFd) {
    table::closed(fd);
}

/// The program wants to put a descriptor at a number where one of ours is: ours goes elsewhere. False if that number cannot be had.
pub fn step_aside(number: RawFd) -> bool {
    if hidden::is_hidden(number) && share::is_home() {
        table::for_each(|fd, conn| {
            if !conn.step_aside(number) {
                // A handler that came into what its thread does with it.
                sys::socket::with_borrowed(fd, |fd| go_back(conn, fd, Reason::Descriptors));
                conn.drop_rings();
            }
        });
        sys::board::step_aside(number);
        sys::ledger::step_aside(number);
        return !hidden::is_hidden(number);
    }
    true
}

/// The program has made `new` a duplicate of `old`, if `new` is not an error.
pub fn duplicated(old: RawFd, new: RawFd) -> RawFd {
    if new >= 0 && new != old && is_for_us(old) && is_for_us(new) {
        // What was known by that number was closed by ways that we did not see.
        if epoll::concerns(new) {
            epoll::before_close(new);
        }
        table::duplicate(old, new);
        epoll::duplicated(old, new);
        if table::known(new).is_some_and(Conn::is_mapped) {
            let inherited = sys::socket::with_borrowed(new, |new| !closes_on_exec(new));
            set_inherited(new, inherited == Some(true));
        }
    }
    new
}

/// The kernel has just given the program a new descriptor, `fd`, unless that is an error. What is known by that number was closed by ways that we did
/// not see.
pub fn given_out(fd: RawFd) -> RawFd {
    let known = !newborn::is(fd) && table::known(fd).is_some() || epoll::concerns(fd);
    if !known {
        table::renumber(fd);
    } else if share::is_home() {
        epoll::before_close(fd);
        table::renumber(fd);
    }
    fd
}

/// `socket` has given the program `fd`, unless that is an error.
pub fn made(fd: RawFd, is_tcp: bool) -> RawFd {
    given_out(fd);
    if is_tcp {
        table::made(fd);
    }
    fd
}

/// `accept` has given the program `fd`, unless that is an error, for what came to `listener`. Asks the kernel as little as can be: servers of short
/// connections would notice.
pub fn accepted(listener: RawFd, fd: RawFd, nonblocking: bool) -> RawFd {
    if nonblocking && newborn::begin(listener, fd) {
        return fd;
    }
    given_out(fd);
    sys::socket::with_borrowed(fd, |fd| table::accepted(listener, fd, nonblocking));
    fd
}

/// Whether what happens to a descriptor is to be noted. In the child of `vfork`, which has its parent's memory and not its descriptors, it
/// is not; a descriptor of which nothing is known is not worth the question. Nor is a connection that has no rings, where no such child was seen to be made: a
/// short one would notice, and a mistake costs its being known.
fn is_for_us(fd: RawFd) -> bool {
    match table::known(fd) {
        None if !epoll::concerns(fd) => true,
        Some(conn) if conn.is_plain() && share::seems_home() => true,
        _ => share::is_home(),
    }
}

/// Closes all from `first` to `last` but ours, with `close` for each piece of the range. Where it only sets flags the table stays.
pub fn close_range(
    first: u32,
    last: u32,
    mut close: impl FnMut(u32, u32) -> i32,
    closes: bool,
) -> i32 {
    let home = share::is_home();
    if closes && home && first <= last {
        newborn::settle();
        epoll::before_close_range(first, last);
        table::for_each(|fd, conn| {
            if (first..=last).contains(&fd.cast_unsigned()) {
                // The kernel may refuse, and where only this thread has these descriptors from now on the others keep theirs.
                conn.kin.forget();
                before_close(fd);
            }
        });
    }
    let result = close_pieces(first, last, &mut close);
    if closes && home {
        table::forget(first, last);
    }
    if !closes && home && result == 0 {
        table::for_each(|fd, conn| {
            if (first..=last).contains(&fd.cast_unsigned()) && conn.is_mapped() {
                set_inherited(fd, false);
            }
        });
    }
    result
}

fn close_pieces(first: u32, last: u32, close: &mut impl FnMut(u32, u32) -> i32) -> i32 {
    let mut from = first;
    for ours in hidden::list().filter(|ours| (first..=last).contains(ours)) {
        if ours > from {
            let result = close(from, ours - 1);
            if result != 0 {
                return result;
            }
        }
        from = ours + 1;
    }
    if from <= last || first > last {
        close(from, last)
    } else {
        0
    }
}

pub use crate::handover::set_inherited;

/// `shutdown` on a connection with rings. False if the kernel is to do it.
///
/// # Errors
/// As `shutdown`.
pub fn shutdown(conn: &Conn, fd: BorrowedFd<'_>, how: i32) -> Result<bool, Errno> {
    let tcp = conn.tcp(fd);
    let Some(send) = conn.turn(fd, SEND) else {
        return Ok(false);
    };
    let Ok((reading, writing)) = sys::argument::directions(how) else {
        return Ok(false);
    };
    if reading {
        send.shut_read();
    }
    // The switch makes the end of the stream something that memory can say.
    let finished = if writing {
        send.finish(&tcp, conn.is_quiet(Way::Out))
    } else {
        Ok(send.finished())
    };
    let in_memory = finished.map_err(|stop| match stop {
        Stop::Failed(SPOILT) => Errno::CONNRESET,
        Stop::Failed(errno) => errno,
        Stop::Again | Stop::End => Errno::NOTCONN,
    })?;
    let [reading, writing] = send.end_of_tcp(&tcp, [reading, writing], in_memory);
    // In the same turn, or another thread could move to the ring, where the receiver would wait for doorbells that cannot come.
    sys::socket::shut(fd, reading, writing)?;
    drop(send);
    if in_memory {
        // Who waits for room waits no more, and the kernel does not know.
        epoll::moved(fd.as_raw_fd(), conn);
    }
    Ok(true)
}

/// What `FIONREAD` says of a connection with rings, where the kernel says `kernels`; `None` where that is right.
pub fn readable_bytes(conn: &Conn, fd: BorrowedFd<'_>, kernels: i32) -> Option<i32> {
    let turn = conn.turn(fd, RECEIVE)?;
    if !turn.receives_on_ring() {
        // What follows on the ring counts too: who has read as much as there was waits for an edge, and has been told of this one.
        turn.stream().rx().to_ring()?;
        let there = turn.waiting(&conn.tcp(fd)).ok()?;
        return Some(i32::try_from(there).unwrap_or(i32::MAX));
    }
    let on_tcp = match turn.doorbells(&conn.tcp(fd)) {
        Ok(Some(doorbells)) => u64::try_from(kernels).ok()?.saturating_sub(doorbells),
        Ok(None) | Err(_) => 0,
    };
    let there = turn.available().ok()? as u64 + on_tcp;
    Some(i32::try_from(there).unwrap_or(i32::MAX))
}

/// What a message of a connection with rings says is left (`TCP_INQ`): the end counts as a byte, as in the kernel.
pub fn left(conn: &Conn, fd: BorrowedFd<'_>) -> i32 {
    let Some(turn) = conn.turn(fd, RECEIVE) else {
        return 0;
    };
    let (bytes, ended) = if turn.receives_on_ring() && turn.stream().rx().to_tcp().is_none() {
        (turn.available().ok(), turn.peer_finished())
    } else {
        let ended = turn.peer_finished() || ready::has_ended(fd);
        (turn.waiting(&conn.tcp(fd)).ok(), ended)
    };
    i32::try_from(bytes.unwrap_or(0) + usize::from(ended)).unwrap_or(i32::MAX)
}

/// What `SIOCATMARK` says; `None` if the kernel's answer is right.
pub fn at_mark(conn: &Conn, fd: BorrowedFd<'_>) -> Option<bool> {
    let turn = conn.turn(fd, RECEIVE)?;
    // What is wrong the next call that moves bytes finds.
    let _ = turn.follow(&conn.tcp(fd));
    if !turn.receives_on_ring() || turn.stream().rx().to_tcp().is_none() {
        return None;
    }
    if turn.available() != Ok(0) {
        return Some(false);
    }
    // To the kernel doorbells lie before the mark.
    if let Err(stop) = turn.receive(&conn.tcp(fd), &mut [], Take::Skip(0)) {
        turn.tell_later(stop);
    }
    None
}

/// What `SIOCOUTQ` says of a connection with rings, where the kernel says `kernels`: to it doorbells count. What is in a ring with room the peer has, as
/// its kernel acknowledges what its program has not read.
pub fn unread_bytes(conn: &Conn, fd: BorrowedFd<'_>, kernels: i32) -> i32 {
    let Some(turn) = conn.turn(fd, SEND) else {
        return kernels;
    };
    let unread = match turn.stream().tx().writable() {
        Ok(true) => 0,
        _ => i32::try_from(turn.unread()).unwrap_or(i32::MAX),
    };
    if turn.sends_on_ring() {
        unread
    } else {
        kernels.saturating_add(unread)
    }
}

/// Goes over to TCP for good with what this end sends, so that the kernel can be given what only TCP can carry.
///
/// # Errors
/// As `send`.
pub fn leave_ring(conn: &Conn, fd: BorrowedFd<'_>, reason: Reason) -> Result<(), Errno> {
    conn.stay_on_tcp(reason);
    if !conn.is_mapped() {
        return Ok(());
    }
    let tcp = conn.tcp(fd);
    let errno_of = |stop| match stop {
        // The next call that moves bytes finds it too, and resets the connection.
        Stop::Failed(SPOILT) => Errno::CONNRESET,
        Stop::Failed(errno) => errno,
        Stop::Again => Errno::AGAIN,
        Stop::End => Errno::PIPE,
    };
    let Some(turn) = conn.turn(fd, SEND) else {
        return Err(Errno::BADF);
    };
    if turn.finished() {
        // The kernel does not know.
        return Err(Errno::PIPE);
    }
    if turn.nested() {
        // What a handler has come into publishes its bytes on the ring.
        return Err(Errno::AGAIN);
    }
    if reason == Reason::Urgent {
        // Before any urgent byte: from now on the receiver counts otherwise.
        turn.stream().tx().mark();
    }
    if turn.sends_on_ring() || conn.is_quiet(Way::Out) {
        turn.renounce_ring(&tcp).map_err(errno_of)?;
    }
    while turn.owes_back() {
        if !turn.serve_back(&tcp).map_err(errno_of)? {
            return Err(Errno::AGAIN);
        }
    }
    Ok(())
}

/// The program is about to dissolve the connection of a socket that it keeps (`connect` to `AF_UNSPEC`), which the kernel tells as a reset.
pub fn before_disconnect(fd: BorrowedFd<'_>) {
    let Some(conn) = table::known(fd.as_raw_fd()).filter(|_| share::is_home()) else {
        return;
    };
    let linger = sys::socket::linger(fd);
    let (nodelay, cork) = (conn.nodelay(), conn.cork());
    let mut last = false;
    table::for_each(|other, of| {
        if std::ptr::eq(of, conn) {
            last |= table::remove(other).is_some();
        }
    });
    if last {
        sys::socket::reset_on_close(fd);
        conn.close(fd);
        sys::socket::set_linger(fd, linger);
    }
    if let Some(on) = nodelay {
        sys::socket::set_nodelay(fd, on);
    }
    if let Some(on) = cork {
        sys::socket::set_cork(fd, on);
    }
}

/// What `SO_ERROR` says where the kernel says `kernels`: an error that we have heard of and the program has not, and none that only a doorbell made. From
/// now on the program has heard it.
pub fn told_error(conn: &Conn, fd: BorrowedFd<'_>, kernels: i32) -> i32 {
    let Some(turn) = conn.turn(fd, RECEIVE) else {
        return kernels;
    };
    let tcp = conn.tcp(fd);
    let errno = (kernels != 0).then(|| Errno::from_raw_os_error(kernels));
    let may_be_of_bell = errno == Some(Errno::PIPE);
    if (errno.is_none() || may_be_of_bell) && tcp.has_ended() {
        // That of a peer that was killed with bytes unread the kernel does not know.
        let _ = turn.drain_to_end(&tcp);
    }
    let errno = errno.filter(|_| !(may_be_of_bell && turn.is_reset_by_bell(&tcp)));
    turn.tell(errno).map_or(0, Errno::raw_os_error)
}

/// Has the peer ring for what it sends next, because the program waits for a signal (`O_ASYNC`).
#[cold]
pub fn ask_for_signal(conn: &Conn, fd: BorrowedFd<'_>) {
    if conn.is_mapped()
        && let Some(turn) = conn.turn(fd, RECEIVE)
    {
        // What is wrong with the connection the next call tells.
        let _ = turn.arm_receive(&conn.tcp(fd));
    }
}

/// The state that TCP would have without rings, where it is told otherwise: an end that was said in memory.
pub fn told_state(conn: &Conn, fd: BorrowedFd<'_>, kernels: u8) -> u8 {
    if !conn.is_mapped() || kernels != ESTABLISHED {
        return kernels;
    }
    let ours = conn.turn(fd, SEND).is_some_and(|turn| turn.finished());
    let theirs = (conn.turn(fd, RECEIVE)).is_some_and(|turn| turn.peer_finished());
    match (ours, theirs) {
        (false, false) => kernels,
        (true, false) => FIN_WAIT2,
        (false, true) => CLOSE_WAIT,
        (true, true) => CLOSE,
    }
}

/// How many bytes a send would take now without waiting, at least; `None` if they would not go to the ring.
pub fn room(conn: &Conn, fd: BorrowedFd<'_>) -> Option<usize> {
    let turn = conn.turn(fd, SEND)?;
    if !turn.sends_on_ring() {
        return None;
    }
    // To one who reads no more it goes over TCP, which answers.
    if turn.stream().peer_deaf() {
        return None;
    }
    turn.stream().tx().room(1).ok()
}

// The kernel's numbers of TCP's states.
const ESTABLISHED: u8 = 1;
const FIN_WAIT2: u8 = 5;
const CLOSE: u8 = 7;
const CLOSE_WAIT: u8 = 8;
