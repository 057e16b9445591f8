//! Between files, pipes and sockets: splice, and what sendfile shares with it. Correct, and slower than plain sends: the bytes pass through a buffer here.

use std::ffi::{c_int, c_uint};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::ptr::null_mut;
use std::slice;
use std::time::Duration;

use libc::{loff_t, off_t, size_t, ssize_t};
use sockets::conn::{Conn, Native, Way};
use sockets::haste;
use sockets::host::host;
use sockets::io::{self, Receive};
use sys::errno::Errno;

use crate::outcome::{Outcome, checked, connection, errno, keeping_errno};
use crate::poll::poll;
use crate::send::raise_pipe;
use crate::{extended, real, via_socket};

pub(crate) use sendfile::sendfile;

mod sendfile;

/// Linux. One of the two is a pipe.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn splice(
    input: c_int,
    input_offset: *mut loff_t,
    out: c_int,
    out_offset: *mut loff_t,
    len: size_t,
    flags: c_uint,
) -> ssize_t {
    if len == 0 || len.cast_signed() < 0 || flags & !SPLICE_KNOWN != 0 {
        // SAFETY: the program's own call, which moves nothing.
        return unsafe { real::splice(input, input_offset, out, out_offset, len, flags) };
    }
    let mut flags = flags;
    let from_via = via_socket::is_any(input) && is_pipe(out, libc::O_WRONLY);
    if from_via || (via_socket::is(out) && is_pipe(input, libc::O_RDONLY)) {
        via_socket::share(input);
        via_socket::share(out);
    }
    if from_via && flags & libc::SPLICE_F_NONBLOCK != 0 && is_writable(out) {
        // Of a TCP socket it says nothing; a stand-in would not wait.
        flags &= !libc::SPLICE_F_NONBLOCK;
    }
    let patient = flags & libc::SPLICE_F_NONBLOCK == 0;
    let outcome = if !input_offset.is_null() || !out_offset.is_null() {
        Outcome::NotOurs
    } else if is_mapped(input) && is_pipe(out, libc::O_WRONLY) {
        by_hand(input, |conn| {
            let from_socket = if len <= SMALL {
                from_socket::<SMALL>
            } else {
                from_socket::<CHUNK>
            };
            from_socket(conn, input, out, len, patient)
        })
    } else if is_mapped(out) && is_pipe(input, libc::O_RDONLY) {
        by_hand(out, |conn| {
            let to_socket = if len <= SMALL {
                to_socket::<SMALL>
            } else {
                to_socket::<CHUNK>
            };
            to_socket(conn, input, out, len, patient)
        })
    } else {
        // Among others what the kernel refuses, for neither is a pipe.
        Outcome::NotOurs
    };
    outcome.or(|| {
        native_in(input, || {
            // SAFETY: the program's own call.
            native_out(out, || unsafe {
                real::splice(input, input_offset, out, out_offset, len, flags)
            })
        })
    })
}

fn is_mapped(fd: c_int) -> bool {
    connection(fd).is_some_and(|(conn, _)| conn.is_mapped())
        || extended::is(fd)
        || via_socket::is(fd)
}

/// Whether it is a pipe that was opened for `access`, or for both.
fn is_pipe(fd: c_int, access: c_int) -> bool {
    keeping_errno(|| {
        // SAFETY: zeros are a valid stat.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: room for one.
        let known = unsafe { libc::fstat(fd, &raw mut stat) } == 0;
        if !known || stat.st_mode & libc::S_IFMT != libc::S_IFIFO {
            return false;
        }
        // SAFETY: asks how it was opened.
        let opened = unsafe { real::fcntl(fd, libc::F_GETFL, null_mut()) } & libc::O_ACCMODE;
        opened == access || opened == libc::O_RDWR
    })
}

fn by_hand(fd: c_int, act: impl FnOnce(&Conn) -> Result<usize, Errno>) -> Outcome<usize> {
    match connection(fd) {
        Some((conn, _)) if conn.is_mapped() => act(conn).into(),
        // What the kernel says where it cannot: programs then copy.
        _ if extended::is(fd) || via_socket::is(fd) => Outcome::Failed(Errno::INVAL),
        _ => Outcome::NotOurs,
    }
}

/// The kernel receives by itself.
fn native_in(input: c_int, act: impl FnOnce() -> ssize_t) -> ssize_t {
    match connection(input) {
        Some((conn, fd)) => counted(conn, fd, Way::In, conn.native(Way::In), act),
        None => act(),
    }
}

/// The kernel sends by itself: an upgrade must not come in between.
fn native_out(out: c_int, act: impl FnOnce() -> ssize_t) -> ssize_t {
    match connection(out) {
        Some((conn, fd)) => counted(conn, fd, Way::Out, conn.native(Way::Out), act),
        None => act(),
    }
}

/// Has the kernel move bytes of a connection, and counts them.
#[inline]
fn counted(
    conn: &Conn,
    fd: BorrowedFd<'_>,
    way: Way,
    under_way: Option<Native<'_>>,
    act: impl FnOnce() -> ssize_t,
) -> ssize_t {
    let result = act();
    let is_same = under_way.as_ref().is_none_or(Native::is_same);
    drop(under_way);
    if let Ok(bytes) = usize::try_from(result)
        && is_same
    {
        conn.count(way, bytes);
        conn.advance(fd, way);
    }
    result
}

/// Not in its caller, where the kernel's calls would have its frame as well; so is [`to_socket`].
#[inline(never)]
fn from_socket<const ROOM: usize>(
    conn: &Conn,
    input: c_int,
    pipe: c_int,
    len: usize,
    patient: bool,
) -> Result<usize, Errno> {
    // Whether to wait for the socket is for its own flag to say.
    if !patient && !is_writable(pipe) {
        return Err(Errno::AGAIN);
    }
    let mut chunk = [0u8; ROOM];
    let (Some((_, fd)), most) = (connection(input), len.min(ROOM)) else {
        return Err(Errno::BADF);
    };
    let Some(room) = chunk.get_mut(..most) else {
        return Ok(0);
    };
    // What the pipe does not take stays where it is.
    let how = Receive {
        peek: true,
        ..Receive::default()
    };
    let seen = io::receive(conn, fd, &mut [IoSliceMut::new(room)], how, |_| {
        Err(Errno::AGAIN)
    })?;
    if seen == 0 {
        return Ok(0);
    }
    let mut moved = 0;
    while let Some(rest) = chunk
        .get(moved..seen)
        .filter(|rest| !rest.is_empty() && ((moved == 0 && patient) || is_writable(pipe)))
    {
        // A pipe that shows room takes so much without waiting, whether it is set to wait or not.
        let piece = rest.len().min(libc::PIPE_BUF);
        // SAFETY: `piece` bytes are there.
        match checked(unsafe { real::write(pipe, rest.as_ptr().cast(), piece) }) {
            Ok(n) => moved += n,
            Err(_) if moved > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    if moved == 0 {
        return Err(Errno::AGAIN);
    }
    // In more than one piece, perhaps; they are there.
    let mut taken = 0;
    while taken < moved {
        let how = Receive {
            skip: Some(moved - taken),
            ..Receive::default()
        };
        match io::receive(conn, fd, &mut [], how, |_| Err(Errno::AGAIN)) {
            Ok(n) if n > 0 => taken += n,
            // Of what is in the pipe by now nothing is to be said but how much that is.
            Ok(_) | Err(_) => break,
        }
    }
    Ok(moved)
}

#[inline(never)]
fn to_socket<const ROOM: usize>(
    conn: &Conn,
    pipe: c_int,
    out: c_int,
    len: usize,
    patient: bool,
) -> Result<usize, Errno> {
    let mut chunk = [0u8; ROOM];
    let Some((_, fd)) = connection(out) else {
        return Err(Errno::BADF);
    };
    let waits = !conn.is_nonblocking();
    // What has been read from a pipe cannot be put back, so there must be room first.
    let room = loop {
        if patient {
            wait_until(pipe, libc::POLLIN, None)?;
        } else if !is_readable(pipe) {
            return Err(Errno::AGAIN);
        }
        // Goes to the ring if it may; else it is the kernel that knows how much there is room for.
        put(conn, out, &[], true)?;
        let flags = libc::SPLICE_F_NONBLOCK | libc::SPLICE_F_MOVE;
        let mut asked = false;
        let by_kernel = io::send_on_tcp(conn, fd, || {
            asked = true;
            // SAFETY: the program's own call.
            checked(unsafe { real::splice(pipe, null_mut(), out, null_mut(), len, flags) })
        });
        match by_kernel {
            Some(Err(Errno::AGAIN)) if waits => {}
            Some(sent) => {
                if sent == Err(Errno::PIPE) && !asked {
                    raise_pipe();
                }
                return sent;
            }
            None => match sockets::ends::room(conn, fd) {
                Some(0) if waits => {}
                Some(0) => return Err(Errno::AGAIN),
                // What is wrong with it the send tells.
                room => break room.unwrap_or(ROOM),
            },
        }
        wait_until(out, libc::POLLOUT, send_timeout(fd))?;
    };
    // SAFETY: `chunk` has room.
    let read =
        checked(unsafe { real::read(pipe, chunk.as_mut_ptr().cast(), len.min(ROOM).min(room)) })?;
    let mut sent = 0;
    while let Some(bytes) = chunk.get(sent..read).filter(|bytes| !bytes.is_empty()) {
        sent += match put(conn, out, bytes, false) {
            // Another sender has taken the room; the bytes are nowhere else.
            Err(Errno::AGAIN | Errno::INTR) => {
                let _ = wait_until(out, libc::POLLOUT, None);
                0
            }
            put => put?,
        };
    }
    Ok(sent)
}

/// What passes through on its way. To clear it first would take longer than a short file.
struct Chunk<const ROOM: usize>([MaybeUninit<u8>; ROOM]);

impl<const ROOM: usize> Chunk<ROOM> {
    #[inline]
    fn new() -> Self {
        Self([const { MaybeUninit::uninit() }; ROOM])
    }

    /// What is in a file from there on, `most` bytes at most.
    #[inline]
    fn read_at(&mut self, input: c_int, from: off_t, most: usize) -> Result<&[u8], Errno> {
        let start = self.0.as_mut_ptr().cast::<u8>();
        let most = most.min(ROOM);
        // SAFETY: there is room for `most` bytes.
        let read = checked(unsafe { libc::pread(input, start.cast(), most, from) })?;
        // SAFETY: the kernel has written so many, and never more than it was asked for.
        Ok(unsafe { slice::from_raw_parts(start, read.min(most)) })
    }
}

/// Waits as a call on `fd` would that the kernel restarts where the program's handlers ask for it.
fn wait_until(fd: c_int, events: i16, limit: Option<Duration>) -> Result<(), Errno> {
    let timeout = limit.map_or(-1, |limit| {
        c_int::try_from(limit.as_millis()).unwrap_or(c_int::MAX)
    });
    let restarts = || limit.is_none() && host().is_some_and(|host| host.restarts());
    loop {
        let mut entry = libc::pollfd {
            fd,
            events,
            revents: 0,
        };
        // The call that waits may succeed, and then says nothing by `errno`.
        // SAFETY: one entry.
        match keeping_errno(|| checked(unsafe { poll(&raw mut entry, 1, timeout) } as ssize_t)) {
            Ok(0) => return Err(Errno::AGAIN),
            Err(Errno::INTR) if restarts() => {}
            ready => return ready.map(drop),
        }
    }
}

/// `SO_SNDTIMEO`.
fn send_timeout(fd: BorrowedFd<'_>) -> Option<Duration> {
    haste::limit_ms(fd, Way::Out).map(Duration::from_millis)
}

fn put(conn: &Conn, out: c_int, bytes: &[u8], dont_wait: bool) -> Result<usize, Errno> {
    let Some((_, fd)) = connection(out) else {
        return Err(Errno::BADF);
    };
    let mut by_kernel = false;
    let sent = io::send(conn, fd, &[IoSlice::new(bytes)], dont_wait, |flags| {
        by_kernel = true;
        // SAFETY: the bytes are there.
        checked(unsafe { real::send(out, bytes.as_ptr().cast(), bytes.len(), flags) })
    });
    if sent == Err(Errno::PIPE) && !by_kernel {
        raise_pipe();
    }
    sent
}

fn is_readable(fd: c_int) -> bool {
    has(fd, libc::POLLIN)
}

fn is_writable(fd: c_int) -> bool {
    has(fd, libc::POLLOUT)
}

fn has(fd: c_int, events: i16) -> bool {
    let mut entry = libc::pollfd {
        fd,
        events,
        revents: 0,
    };
    // SAFETY: one entry, and no waiting.
    let ready = unsafe { real::poll(&raw mut entry, 1, 0) };
    if ready < 0 {
        errno() != Errno::INTR
    } else {
        ready > 0
    }
}

/// Others Linux refuses before it looks at anything.
const SPLICE_KNOWN: c_uint =
    libc::SPLICE_F_MOVE | libc::SPLICE_F_NONBLOCK | libc::SPLICE_F_MORE | libc::SPLICE_F_GIFT;
const CHUNK: usize = 16 << 10;
/// What is no longer than this passes through so much: the smallest stack that a thread may have is a [`CHUNK`].
const SMALL: usize = 2 << 10;
