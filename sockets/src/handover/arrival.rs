//! After `exec`: what the program before this one, in the same process or its parent, has left.

use std::os::fd::{BorrowedFd, RawFd};

use sys::hidden::Hidden;
use sys::stream::{self, Stream, Tag};
use sys::{bequest, fds};

use crate::{epoll, table};

/// Takes over the streams that are among the descriptors, each with its socket, and sets of epoll. To be called once, before the program begins.
///
/// A stream whose socket is not here has been left behind, and is closed. A socket whose stream cannot be taken over is reset: what goes over TCP on
/// it is not what the program would mean.
///
/// Whether one of the standard descriptors is a socket, or may be.
pub fn take_over() -> bool {
    let (mut streams, mut sets, mut bequests) = (Vec::new(), Vec::new(), Vec::new());
    let mut standard = false;
    // Once for all: each program begins with this. Without /proc there is nothing that we know of.
    let seen = fds::each_unlinked(|fd, target| {
        let kind = match target {
            _ if sys::hidden::is_hidden(fd) => return,
            _ if target.starts_with(fds::SOCKET) => {
                standard |= fd < STANDARD;
                return;
            }
            _ if stream::is_stream(target) => &mut streams,
            _ if sys::epoll::names_set(target) => &mut sets,
            _ if bequest::is_bequest(target) => &mut bequests,
            _ => return,
        };
        kind.push(fd);
    });
    streams.into_iter().for_each(adopt);
    if !sets.is_empty() || !bequests.is_empty() {
        epoll::arrival::take_over(&sets, &bequests);
    }
    standard || seen.is_err()
}

fn adopt(fd: RawFd) {
    // From now on it is no number of the program's.
    let Some(hidden) = Hidden::adopt_number(fd) else {
        return;
    };
    let Some(tag) = Tag::of(hidden.as_fd()) else {
        return;
    };
    let mut sockets = [None; DUPLICATES];
    let mut count = 0;
    let _ = fds::each(|fd| {
        let same = sys::socket::with_borrowed(fd, |fd| stream::cookie(fd).ok()).flatten();
        if same == Some(tag.cookie)
            && let Some(place) = sockets.get_mut(count)
        {
            *place = Some(fd);
            count += 1;
        }
    });
    match Stream::resume(hidden, tag.side) {
        // Whoever started this program counted it as a holder.
        Ok(stream) if count == 0 => {
            stream.holders().leave();
        }
        Ok(stream) => {
            let mut stream = Some(stream);
            let mut first = None;
            for fd in sockets.iter().flatten() {
                match first {
                    None => {
                        let conn = sys::socket::with_borrowed(*fd, table::insert_resumed).flatten();
                        if let (Some(conn), Some(stream)) = (conn, stream.take()) {
                            conn.resume(tag.opener, stream);
                            first = Some(*fd);
                        }
                    }
                    Some(first) => table::duplicate(first, *fd),
                }
            }
            if first.is_none() {
                reset(&sockets);
            }
        }
        Err(_) => reset(&sockets),
    }
}

fn reset(sockets: &[Option<RawFd>]) {
    for fd in sockets.iter().flatten() {
        sys::socket::with_borrowed(*fd, |fd: BorrowedFd<'_>| sys::socket::reset_now(fd));
    }
}

/// Standard descriptors are below this.
const STANDARD: RawFd = 3;

/// As many descriptors of one connection are found.
const DUPLICATES: usize = 16;
