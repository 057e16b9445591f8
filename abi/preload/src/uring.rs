//! io_uring: requests that the kernel carries out past the C library.
//!
//! Databases have rings for their files and sockets for their clients. A ring that liburing made is therefore looked at before each of liburing's
//! calls that submit, and all is well while its requests are about files. The first that is not has the connections of this process stay on TCP
//! for good: what waits in the kernel for a socket knows nothing of memory. So it is with a ring that a program looks after itself by way of
//! `syscall()` ([`own`]). One that was made in any other way is not seen at work, so it does that at once.

use std::ffi::{c_int, c_void};

use libc::sigset_t;
use sockets::handover;
use sockets::packet::table::sharing;
use sockets::reason::Reason;

use crate::outcome::{connection, keeping_errno};
use crate::{extended, real, via_socket};

pub(crate) mod own;

/// What liburing's `struct io_uring` begins with, in each of its versions.
#[repr(C)]
pub struct Ring {
    kernel_head: *const u32,
    kernel_tail: *const u32,
    /// One less than the number of entries, a power of two.
    kernel_mask: *const u32,
    kernel_entries: *const u32,
    kernel_flags: *const u32,
    kernel_dropped: *const u32,
    array: *const u32,
    entries: *const Entry,
    /// What the program has asked for and not submitted is between the two.
    head: u32,
    tail: u32,
}

/// The kernel's `struct io_uring_sqe`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    opcode: u8,
    flags: u8,
    priority: u16,
    fd: c_int,
    rest: [u64; 7],
}

/// The beginning of the kernel's `struct io_uring_params`.
#[repr(C)]
pub struct Parameters {
    submissions: u32,
    completions: u32,
    flags: u32,
    _thread: [u32; 2],
    _features: u32,
    _workers: u32,
    _reserved: [u32; 3],
    /// Where the words of the queue are, from its beginning on.
    head: u32,
    tail: u32,
    mask: u32,
    _entries: u32,
    _flags: u32,
    _dropped: u32,
    array: u32,
}

/// The connections of this process are TCP's from now on.
pub(crate) fn leave() {
    keeping_errno(|| {
        handover::leave_all(Reason::IoUring);
        sharing::everything();
    });
}

/// Before the program submits what is in `ring`.
unsafe fn look(ring: *const Ring) {
    // SAFETY: the caller's.
    if !handover::stays_on_tcp() && !unsafe { is_about_files(ring, is_ours) } {
        leave();
    }
}

fn is_ours(fd: c_int) -> bool {
    keeping_errno(|| connection(fd).is_some()) || extended::is(fd) || via_socket::is(fd)
}

/// Whether each request that waits to be submitted is one about a file.
///
/// # Safety
///
/// `ring` is one of liburing's, which no other thread changes.
unsafe fn is_about_files(ring: *const Ring, is_ours: impl Fn(c_int) -> bool) -> bool {
    // SAFETY: the program's ring is mapped until it gives it up, which is not now.
    unsafe {
        let Some(ring) = ring.as_ref() else {
            return true;
        };
        let mask = ring.kernel_mask.read();
        let waiting = ring.tail.wrapping_sub(ring.head);
        (0..waiting.min(mask.saturating_add(1))).all(|at| {
            let place = ring.head.wrapping_add(at) & mask;
            is_about_a_file(&ring.entries.add(place as usize).read(), &is_ours)
        })
    }
}

fn is_about_a_file(entry: &Entry, is_ours: impl Fn(c_int) -> bool) -> bool {
    entry.flags & FIXED_FILE == 0
        && (NO_SOCKET.contains(&entry.opcode)
            || OF_A_FILE.contains(&entry.opcode) && !is_ours(entry.fd))
}

/// Whether a ring with these flags takes requests only where liburing submits them, and they are of the size that is looked at.
fn is_seen(flags: u32) -> bool {
    flags & !SEEN == 0
}

fn made(ring: c_int, flags: Option<u32>) -> c_int {
    if ring >= 0 && !flags.is_some_and(is_seen) {
        leave();
    }
    ring
}

unsafe fn flags_of(parameters: *const Parameters) -> Option<u32> {
    // SAFETY: the program's, or null.
    unsafe { parameters.as_ref() }.map(|parameters| parameters.flags)
}

/// liburing.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn io_uring_queue_init(
    entries: u32,
    ring: *mut Ring,
    flags: u32,
) -> c_int {
    // SAFETY: the program's own call, here and below.
    made(
        unsafe { real::io_uring_queue_init(entries, ring.cast(), flags) },
        Some(flags),
    )
}

/// liburing.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn io_uring_queue_init_params(
    entries: u32,
    ring: *mut Ring,
    parameters: *mut Parameters,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let flags = flags_of(parameters);
        made(
            real::io_uring_queue_init_params(entries, ring.cast(), parameters.cast()),
            flags,
        )
    }
}

/// liburing.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn io_uring_queue_init_mem(
    entries: u32,
    ring: *mut Ring,
    parameters: *mut Parameters,
    buffer: *mut c_void,
    len: usize,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let flags = flags_of(parameters);
        let memory =
            real::io_uring_queue_init_mem(entries, ring.cast(), parameters.cast(), buffer, len);
        made(memory, flags)
    }
}

/// liburing, for programs that look after the ring themselves.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn io_uring_setup(entries: u32, parameters: *mut Parameters) -> c_int {
    // SAFETY: as above.
    made(
        unsafe { real::io_uring_setup(entries, parameters.cast()) },
        None,
    )
}

macro_rules! submitting {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {$(
        /// liburing.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(ring: *mut Ring $(, $argument: $type)*) -> c_int {
            // SAFETY: the program's ring, and its own call.
            unsafe {
                look(ring);
                real::$name(ring.cast() $(, $argument)*)
            }
        }
    )*};
}

// Those that wait may submit beforehand.
submitting! {
    io_uring_submit();
    io_uring_submit_and_get_events();
    io_uring_submit_and_wait(count: u32);
    io_uring_submit_and_wait_timeout(completion: *mut c_void, count: u32, time: *mut c_void, mask: *mut sigset_t);
    io_uring_submit_and_wait_min_timeout(completion: *mut c_void, count: u32, time: *mut c_void, least_us: u32, mask: *mut sigset_t);
    io_uring_submit_and_wait_reg(completion: *mut c_void, count: u32, index: c_int);
    io_uring_wait_cqes(completion: *mut c_void, count: u32, time: *mut c_void, mask: *mut sigset_t);
    io_uring_wait_cqes_min_timeout(completion: *mut c_void, count: u32, time: *mut c_void, least_us: u32, mask: *mut sigset_t);
    io_uring_wait_cqe_timeout(completion: *mut c_void, time: *mut c_void);
}

/// liburing, for programs that fill the ring themselves.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn io_uring_enter(
    fd: u32,
    submit: u32,
    count: u32,
    flags: u32,
    mask: *mut sigset_t,
) -> c_int {
    leave();
    // SAFETY: as above.
    unsafe { real::io_uring_enter(fd, submit, count, flags, mask) }
}

/// liburing, as `io_uring_enter`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn io_uring_enter2(
    fd: u32,
    submit: u32,
    count: u32,
    flags: u32,
    argument: *mut c_void,
    len: usize,
) -> c_int {
    leave();
    // SAFETY: as above.
    unsafe { real::io_uring_enter2(fd, submit, count, flags, argument, len) }
}

/// `IOSQE_FIXED_FILE`: the number is that of a registered file, which may be a socket.
const FIXED_FILE: u8 = 1;

/// Requests that move bytes of the file whose descriptor they name, or settle them: `IORING_OP_READV`, `_WRITEV`, `_FSYNC`, `_READ_FIXED`,
/// `_WRITE_FIXED`, `_SYNC_FILE_RANGE`, `_FALLOCATE`, `_READ`, `_WRITE`, `_FADVISE`, `_FTRUNCATE`.
const OF_A_FILE: [u8; 11] = [1, 2, 3, 4, 5, 8, 17, 22, 23, 24, 55];

/// Requests that name no descriptor of a connection: `IORING_OP_NOP`, `_TIMEOUT`, `_TIMEOUT_REMOVE`, `_ASYNC_CANCEL`, `_LINK_TIMEOUT`, `_OPENAT`,
/// `_STATX`, `_MADVISE`, `_OPENAT2`, `_RENAMEAT`, `_UNLINKAT`, `_MKDIRAT`, `_SYMLINKAT`, `_LINKAT`.
const NO_SOCKET: [u8; 14] = [0, 11, 12, 14, 15, 18, 21, 25, 28, 35, 36, 37, 38, 39];

/// `IORING_SETUP_IOPOLL`, `_CQSIZE`, `_CLAMP`, `_ATTACH_WQ`, `_R_DISABLED`, `_SUBMIT_ALL`, `_COOP_TASKRUN`, `_TASKRUN_FLAG`, `_CQE32`,
/// `_SINGLE_ISSUER`, `_DEFER_TASKRUN`, `_NO_SQARRAY`. With `_SQPOLL` a thread of the kernel submits.
const SEEN: u32 =
    0x1 | 0x8 | 0x10 | 0x20 | 0x40 | 0x80 | 0x100 | 0x200 | 0x800 | 0x1000 | 0x2000 | 0x1_0000;

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    const SOCKET: c_int = 7;
    const FILE: c_int = 8;
    const READ: u8 = 22;
    const POLL_ADD: u8 = 6;
    const ACCEPT: u8 = 13;
    const CLOSE: u8 = 19;
    const OPENAT: u8 = 18;

    /// Whether requests, of which the first is at `head` of a ring of four, are about files.
    fn verdict(head: u32, requests: &[(u8, u8, c_int)]) -> bool {
        let mask = 3;
        let stale = Entry {
            opcode: ACCEPT,
            flags: 0,
            priority: 0,
            fd: SOCKET,
            rest: [0; 7],
        };
        let mut entries = [stale; 4];
        let mut tail = head;
        for &(opcode, flags, fd) in requests {
            entries[(tail & mask) as usize] = Entry {
                opcode,
                flags,
                fd,
                ..stale
            };
            tail = tail.wrapping_add(1);
        }
        let ring = Ring {
            kernel_head: ptr::null(),
            kernel_tail: ptr::null(),
            kernel_mask: &raw const mask,
            kernel_entries: ptr::null(),
            kernel_flags: ptr::null(),
            kernel_dropped: ptr::null(),
            array: ptr::null(),
            entries: entries.as_ptr(),
            head,
            tail,
        };
        // SAFETY: the ring's entries and mask are above.
        unsafe { is_about_files(&raw const ring, |fd| fd == SOCKET) }
    }

    #[test]
    fn only_what_waits_is_looked_at() {
        assert!(verdict(0, &[]));
        assert!(verdict(3, &[(READ, 0, FILE), (READ, 0, FILE)]));
        assert!(verdict(u32::MAX, &[(READ, 0, FILE), (0, 0, -1)]));
        assert!(!verdict(
            u32::MAX,
            &[(READ, 0, FILE), (READ, 0, FILE), (READ, 0, SOCKET)]
        ));
    }

    #[test]
    fn files_are_told_from_sockets() {
        assert!(verdict(0, &[(OPENAT, 0, SOCKET)]));
        assert!(!verdict(0, &[(READ, FIXED_FILE, FILE)]));
        for opcode in [ACCEPT, POLL_ADD, CLOSE, 26, 27, 29, 45, u8::MAX] {
            assert!(!verdict(0, &[(opcode, 0, FILE)]), "{opcode}");
        }
    }

    #[test]
    fn a_ring_that_the_kernel_empties_by_itself_is_not_seen() {
        assert!(is_seen(0));
        assert!(is_seen(0x1000 | 0x2000));
        assert!(!is_seen(0x2));
        assert!(!is_seen(0x400));
    }
}
