//! What becomes of a connection when its process becomes another program, or gives the socket away.
//!
//! The stream's hidden descriptor is inherited by the next program exactly if a descriptor of the connection is. The next program finds it among its
//! descriptors, with a [tag](sys::stream::Tag) that says to which socket it belongs, if it has this library ([`arrival`]). If it has not, the connection
//! goes back to TCP first ([`go_back`]).

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use sys::quiet;
use sys::stream::{Stream, Tag, closes_on_exec};
use sys::sync::{Ordering, mapped::AtomicU32};

use crate::conn::Conn;
use crate::flow::SEND;
use crate::reason::Reason;
use crate::table;

pub use back::go_back;
pub(crate) use back::{finish_serving, is_back};

pub mod arrival;
mod back;
pub mod departure;
pub mod numbers;

/// Notes in a new stream whose it is, and has it inherited if the connection is.
pub(crate) fn label(conn: &Conn, fd: BorrowedFd<'_>, stream: &mut Stream) {
    if !numbers::may_keep(fd.as_raw_fd()) {
        stream.give_up_fd();
        return;
    }
    let tag = Tag::for_socket(fd, stream.side(), conn.is_opener());
    if tag.and_then(|tag| stream.set_tag(tag)).is_ok() {
        // Not inherited is what it is; then the connection goes back to TCP when it comes to that.
        stream.inherit(!closes_on_exec(fd));
    } else {
        // It would serve nobody.
        stream.give_up_fd();
    }
}

/// The program has said whether `fd` is inherited over exec, or there is a new descriptor that is or is not.
pub fn set_inherited(fd: RawFd, inherited: bool) {
    if let Some(conn) = table::known(fd).filter(|conn| conn.is_mapped()) {
        pass_on(conn, inherited || is_inherited(conn));
    }
}

/// Has every connection of this process that is not upgraded yet, now and from now on, stay on TCP.
pub(crate) fn stay_all(reason: Reason) {
    ALL_ON_TCP.store(u32::from(reason.number()), Ordering::Relaxed);
}

/// Has every connection of this process, now and from now on, stay on TCP.
pub fn leave_all(reason: Reason) {
    stay_all(reason);
    table::for_each(|fd, conn| {
        sys::socket::with_borrowed(fd, |fd| go_back(conn, fd, reason));
    });
}

/// The program is about to do what lets nothing be done beside its own calls: all connections go back to TCP, and from now on
/// its calls are carried out as they are.
pub fn retire(reason: Reason) {
    leave_all(reason);
    table::retire();
    quiet::forgo();
}

/// Whether every connection of this process stays on TCP.
pub fn stays_on_tcp() -> bool {
    all_on_tcp().is_some()
}

/// Why no connection of this process is to leave TCP, if that is so.
pub(crate) fn all_on_tcp() -> Option<Reason> {
    match ALL_ON_TCP.load(Ordering::Relaxed) {
        0 => None,
        number => Some(Reason::from_number(number as u16)),
    }
}

static ALL_ON_TCP: AtomicU32 = AtomicU32::new(0);

/// Has the stream inherited or not; whether it now is.
fn pass_on(conn: &Conn, inherited: bool) -> bool {
    (conn.flow.take(SEND)).is_some_and(|flow| flow.stream().inherit(inherited))
}

/// Whether any descriptor of a connection is inherited over exec.
fn is_inherited(conn: &Conn) -> bool {
    let mut any = false;
    table::for_each(|fd, of| {
        if std::ptr::eq(of, conn) {
            any |= sys::socket::with_borrowed(fd, |fd| !closes_on_exec(fd)) == Some(true);
        }
    });
    any
}
