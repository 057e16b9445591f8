//! From files to sockets: sendfile.

use std::ffi::c_int;
use std::ptr::null_mut;

use libc::{off_t, size_t, ssize_t};
use sockets::conn::Way;
use sockets::table::{self, newborn};
use sys::errno::Errno;

use super::{CHUNK, Chunk, SMALL, by_hand, counted, is_mapped, is_pipe, native_out, put, splice};
use crate::buffers::is_memory;
use crate::outcome::{Outcome, borrow, checked, connection};
use crate::{real, settled, via_socket};

/// Linux. To a connection with rings by hand, else by the kernel; and from one to the other within a call, for it may be of gigabytes.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sendfile(
    out: c_int,
    input: c_int,
    offset: *mut off_t,
    count: size_t,
) -> ssize_t {
    // SAFETY: the program's own call.
    unsafe {
        match table::noted(out) {
            Some(conn) if conn.is_settled() => settled::sendfile(out, input, offset, count, conn),
            _ => sendfile_any(out, input, offset, count),
        }
    }
}

/// As [`sendfile`], of any descriptor.
#[inline(never)]
unsafe extern "C-unwind" fn sendfile_any(
    out: c_int,
    input: c_int,
    offset: *mut off_t,
    count: size_t,
) -> ssize_t {
    if count.cast_signed() <= 0 || !(offset.is_null() || is_memory(offset)) {
        // SAFETY: the program's own call, which moves nothing: the kernel says what is wrong with it.
        return unsafe { real::sendfile(out, input, offset, count) };
    }
    if newborn::is_little(count)
        // SAFETY: the program's own call.
        && let Some(result) = newborn::pass(out, Way::Out, || checked(unsafe { real::sendfile(out, input, offset, count) }))
    {
        return Outcome::from(result).or(|| -1);
    }
    if offset.is_null() && table::known(out).is_none() && is_mapped(input) {
        // SAFETY: as below.
        return unsafe { sendfile_from_connection(out, input, count) };
    }
    let mut sent = 0;
    loop {
        let known = connection(out).filter(|_| !via_socket::is(out));
        // Before the kernel is asked: one that gets rings in between has sent no more than a piece by it.
        let most = match known {
            Some((conn, _)) if conn.may_meet() => (count - sent).min(PIECE),
            _ => count - sent,
        };
        let natively = known.and_then(|(conn, fd)| {
            let under_way = conn.native(Way::Out)?;
            // SAFETY: the program's own call, or a part of it.
            let send = || unsafe { real::sendfile(out, input, offset, most) };
            Some(counted(conn, fd, Way::Out, Some(under_way), send))
        });
        let moved = match natively {
            Some(moved) => moved,
            // SAFETY: as above.
            None => unsafe { sendfile_by_hand(out, input, offset, most) },
        };
        match usize::try_from(moved) {
            Err(_) if sent == 0 => return moved,
            Err(_) => return sent.cast_signed(),
            Ok(n) => sent += n,
        }
        if sent == count || moved.cast_unsigned() < most {
            return sent.cast_signed();
        }
    }
}

/// Linux from 5.12 on has it be [`splice`], to a pipe.
///
/// # Safety
/// As [`sendfile`].
#[cold]
unsafe fn sendfile_from_connection(out: c_int, input: c_int, count: usize) -> ssize_t {
    if count == 0 || !is_pipe(out, libc::O_WRONLY) {
        // SAFETY: the program's own call.
        return unsafe { real::sendfile(out, input, null_mut(), count) };
    }
    // SAFETY: as above, of nothing. What this kernel says of the two.
    let refused = unsafe { real::sendfile(out, input, null_mut(), 0) };
    if refused < 0 {
        return refused;
    }
    let waits = borrow(out).is_none_or(|out| !sys::socket::is_nonblocking(out));
    let flags = if waits { 0 } else { libc::SPLICE_F_NONBLOCK };
    // SAFETY: as above.
    unsafe { splice(input, null_mut(), out, null_mut(), count, flags) }
}

/// Not in its caller, most of whose calls are the kernel's.
///
/// # Safety
/// As [`sendfile`].
#[inline(never)]
unsafe fn sendfile_by_hand(out: c_int, input: c_int, offset: *mut off_t, most: usize) -> ssize_t {
    // SAFETY: the program's pointer, or null.
    let at = || unsafe { offset.as_mut() };
    let by_packets = |bytes: &[u8]| via_socket::put(out, bytes);
    let outcome = if via_socket::is(out) {
        send_file(by_packets, input, at(), most).into()
    } else {
        by_hand(out, |conn| {
            send_file(|bytes| put(conn, out, bytes, false), input, at(), most)
        })
    };
    // SAFETY: the program's own call, or a part of it.
    outcome.or(|| native_out(out, || unsafe { real::sendfile(out, input, offset, most) }))
}

/// glibc, for large files; the same on 64 bits.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sendfile64(
    out: c_int,
    input: c_int,
    offset: *mut off_t,
    count: size_t,
) -> ssize_t {
    // SAFETY: as above.
    unsafe { sendfile(out, input, offset, count) }
}

/// From the file's own place, which then moves, unless `offset` gives one.
fn send_file(
    put: impl FnMut(&[u8]) -> Result<usize, Errno>,
    input: c_int,
    offset: Option<&mut off_t>,
    count: usize,
) -> Result<usize, Errno> {
    let from = match &offset {
        Some(offset) => **offset,
        // SAFETY: asks where the file is.
        None => match checked(unsafe { libc::lseek(input, 0, libc::SEEK_CUR) } as ssize_t) {
            Err(Errno::SPIPE) => return Err(Errno::INVAL),
            at => at? as off_t,
        },
    };
    let sent = if count <= SMALL {
        send_from::<SMALL>(put, input, from, count)?
    } else {
        send_from::<CHUNK>(put, input, from, count)?
    };
    match offset {
        Some(offset) => *offset = from + sent as off_t,
        None => {
            // SAFETY: moves the file to after what was sent.
            unsafe { libc::lseek(input, from + sent as off_t, libc::SEEK_SET) };
        }
    }
    Ok(sent)
}

/// Not in its caller, which is on the way of what is not ours, too: a thread's stack may be as long as this.
#[inline(never)]
fn send_from<const ROOM: usize>(
    mut put: impl FnMut(&[u8]) -> Result<usize, Errno>,
    input: c_int,
    from: off_t,
    count: usize,
) -> Result<usize, Errno> {
    let mut chunk = Chunk::<ROOM>::new();
    let mut sent = 0;
    while sent < count {
        let bytes = match chunk.read_at(input, from + sent as off_t, count - sent) {
            Ok(bytes) => bytes,
            Err(_) if sent > 0 => break,
            // The kernel's names nothing that cannot be sent but so.
            Err(Errno::ISDIR) => return Err(Errno::INVAL),
            Err(errno) => return Err(errno),
        };
        if bytes.is_empty() {
            break;
        }
        match put(bytes) {
            Ok(n) => {
                sent += n;
                if n < bytes.len() {
                    break;
                }
            }
            Err(_) if sent > 0 => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(sent)
}

/// What the kernel sends in one go while the ends may yet meet.
const PIECE: usize = 256 << 10;
