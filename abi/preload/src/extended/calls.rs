//! What `sovia.h` declares: the calls that sockets do not have.

use std::ffi::{c_int, c_void};
use std::os::fd::IntoRawFd;
use std::sync::Arc;

use sockets::extended::{Completion, Op};
use sys::errno::Errno;

use super::{Extended, find, is};
use crate::buffers::is_memory;
use crate::outcome::{Outcome, fail};

/// `struct sovia_segment`: a piece of registered memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Segment {
    pub address: *mut c_void,
    /// Bytes.
    pub length: u32,
    /// The region that it lies in.
    pub region: u32,
}

/// `struct sovia_remote`: a region of the peer's, of which it has told.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Remote {
    pub tag: u64,
    /// Bytes.
    pub length: u64,
    /// This process's number of it, which no other socket has.
    pub region: u32,
    /// `SOVIA_READ`, `SOVIA_WRITE`.
    pub access: u32,
}

/// `struct sovia_completion`: an operation that has ended.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Ended {
    pub id: u64,
    /// `SOVIA_OP_…`.
    pub op: u32,
    /// 0, or why not all was moved.
    pub error: c_int,
    /// Bytes moved.
    pub length: u32,
    pub reserved: u32,
}

/// `sovia_callback`.
pub type Callback = unsafe extern "C" fn(fd: c_int, events: u32, argument: *mut c_void);

/// `sovia.h`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sovia_register(
    fd: c_int,
    address: *mut c_void,
    length: usize,
    access: c_int,
    region: *mut u32,
) -> c_int {
    with(fd, |extended| {
        check(region)?;
        // SAFETY: the program's promise, by `sovia.h`.
        let id = unsafe { extended.register(address, length, access) }?;
        // SAFETY: the program's pointer, here and below.
        unsafe { region.write_unaligned(id) };
        Ok(0)
    })
}

/// `sovia.h`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sovia_deregister(fd: c_int, region: u32) -> c_int {
    with(fd, |extended| extended.deregister(region).map(|()| 0))
}

/// `sovia.h`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sovia_advertise(fd: c_int, region: u32, tag: u64) -> c_int {
    with(fd, |extended| {
        let region = extended.region(region)?;
        extended.socket.advertise(&region, tag).map(|()| 0)
    })
}

/// `sovia.h`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sovia_find_remote(
    fd: c_int,
    tag: u64,
    timeout_ms: c_int,
    remote: *mut Remote,
) -> c_int {
    with(fd, |extended| {
        check(remote)?;
        let found = extended.socket.remote(tag, deadline(timeout_ms))?;
        // SAFETY: as above.
        unsafe { remote.write_unaligned(told(&found)) };
        Ok(0)
    })
}

/// `sovia.h`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sovia_post_send(
    fd: c_int,
    segments: *const Segment,
    count: c_int,
    id: u64,
) -> c_int {
    with(fd, |extended| {
        // SAFETY: the program's array, here and below.
        let slices = unsafe { extended.slices(segments, count) }?;
        extended.socket.post_send(&slices, id).map(|()| 0)
    })
}

/// `sovia.h`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sovia_post_recv(
    fd: c_int,
    segments: *const Segment,
    count: c_int,
    id: u64,
) -> c_int {
    with(fd, |extended| {
        // SAFETY: as above.
        let slices = unsafe { extended.slices(segments, count) }?;
        extended.socket.post_recv(&slices, id).map(|()| 0)
    })
}

/// `sovia.h`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sovia_post_write(
    fd: c_int,
    segments: *const Segment,
    count: c_int,
    remote: *const Remote,
    offset: u64,
    id: u64,
) -> c_int {
    with(fd, |extended| {
        check(remote)?;
        // SAFETY: as above.
        let (slices, named) = unsafe {
            let slices = extended.slices(segments, count)?;
            (slices, remote.read_unaligned())
        };
        let remote = known(extended, named)?;
        extended.socket.post_write(&slices, &remote, offset, id)?;
        Ok(0)
    })
}

/// `sovia.h`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sovia_post_read(
    fd: c_int,
    segments: *const Segment,
    count: c_int,
    remote: *const Remote,
    offset: u64,
    id: u64,
) -> c_int {
    with(fd, |extended| {
        check(remote)?;
        // SAFETY: as above.
        let (slices, named) = unsafe {
            let slices = extended.slices(segments, count)?;
            (slices, remote.read_unaligned())
        };
        let remote = known(extended, named)?;
        extended.socket.post_read(&slices, &remote, offset, id)?;
        Ok(0)
    })
}

/// `sovia.h`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sovia_poll(
    fd: c_int,
    completions: *mut Ended,
    count: c_int,
) -> c_int {
    with(fd, |extended| {
        check_array(completions, count)?;
        // SAFETY: as above.
        unsafe { take(extended, completions, 0, count) }
    })
}

/// `sovia.h`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sovia_wait(
    fd: c_int,
    completions: *mut Ended,
    count: c_int,
    timeout_ms: c_int,
) -> c_int {
    with(fd, |extended| {
        check_array(completions, count)?;
        match extended.socket.wait(deadline(timeout_ms)) {
            // SAFETY: as above.
            Ok(first) => unsafe {
                completions.write_unaligned(ended(first));
                take(extended, completions, 1, count)
            },
            Err(Errno::AGAIN) => Ok(0),
            Err(errno) => Err(errno),
        }
    })
}

/// `sovia.h`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sovia_completion_fd(fd: c_int) -> c_int {
    with(fd, |extended| {
        extended.socket.completion_fd().map(IntoRawFd::into_raw_fd)
    })
}

/// `sovia.h`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sovia_set_watermarks(
    fd: c_int,
    receive: usize,
    send: usize,
) -> c_int {
    with(fd, |extended| {
        extended.socket.set_watermarks(receive, send).map(|()| 0)
    })
}

/// `sovia.h`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sovia_set_callback(
    fd: c_int,
    callback: Option<Callback>,
    argument: *mut c_void,
) -> c_int {
    with(fd, |extended| {
        let Some(callback) = callback else {
            extended.socket.off_events();
            return Ok(0);
        };
        let argument = Argument(argument);
        let call = move |events| {
            let Argument(argument) = argument.whole();
            // SAFETY: the program's function and argument, which `sovia.h` has it keep until the callback is taken back.
            unsafe { callback(fd, events, argument) };
        };
        extended.socket.on_events(call).map(|()| 0)
    })
}

/// What the program has its callback given.
#[derive(Clone, Copy)]
struct Argument(*mut c_void);

impl Argument {
    /// All of it, so that a closure takes this type and not the pointer.
    fn whole(&self) -> Self {
        *self
    }
}

// SAFETY: the program says what it may be used for on the thread of its callback; here it is only passed on.
unsafe impl Send for Argument {}

fn with(fd: c_int, act: impl FnOnce(&Arc<Extended>) -> Result<c_int, Errno>) -> c_int {
    let result = if is(fd) {
        find(fd).and_then(|extended| act(&extended))
    } else if sys::socket::is_open(fd) {
        Err(Errno::OPNOTSUPP)
    } else {
        Err(Errno::BADF)
    };
    Outcome::from(result).or(|| fail(Errno::BADF) as c_int)
}

/// Takes completions into the array, from the index `at` on; how many there are in it then.
///
/// # Safety
/// The array has `count` elements.
unsafe fn take(
    extended: &Extended,
    completions: *mut Ended,
    at: c_int,
    count: c_int,
) -> Result<c_int, Errno> {
    let mut at = at;
    while at < count {
        let Some(completion) = extended.socket.completion()? else {
            break;
        };
        // SAFETY: by the contract.
        unsafe {
            completions
                .add(at.cast_unsigned() as usize)
                .write_unaligned(ended(completion));
        }
        at += 1;
    }
    Ok(at)
}

fn ended(completion: Completion) -> Ended {
    Ended {
        id: completion.id,
        op: match completion.op {
            Op::Send => 1,
            Op::Recv => 2,
            Op::Write => 3,
            Op::Read => 4,
        },
        error: completion.result.map_or_else(Errno::raw_os_error, |_| 0),
        length: completion.result.unwrap_or(0),
        reserved: 0,
    }
}

fn told(remote: &sockets::extended::Remote) -> Remote {
    let bit = |on, bit| if on { bit } else { 0 };
    Remote {
        tag: remote.tag(),
        length: remote.len(),
        region: remote.id(),
        access: bit(remote.is_readable(), READ) | bit(remote.is_writable(), WRITE),
    }
}

/// The region of this socket's peer that the program names, whole as it was told of.
fn known(extended: &Extended, named: Remote) -> Result<sockets::extended::Remote, Errno> {
    let remote = extended.socket.remote_by_id(named.region)?;
    if told(&remote) == named {
        Ok(remote)
    } else {
        Err(Errno::STALE)
    }
}

fn check<T>(pointer: *const T) -> Result<(), Errno> {
    if is_memory(pointer) {
        Ok(())
    } else {
        Err(Errno::FAULT)
    }
}

fn check_array<T>(pointer: *const T, count: c_int) -> Result<(), Errno> {
    if count < 1 {
        return Err(Errno::INVAL);
    }
    check(pointer)
}

fn deadline(timeout_ms: c_int) -> Option<std::time::Instant> {
    sys::time::deadline(u64::try_from(timeout_ms).ok())
}

const READ: u32 = 0x1;
const WRITE: u32 = 0x2;

// As `sovia.h` asserts them.
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<Segment>() == 16 && offset_of!(Segment, length) == 8);
    assert!(offset_of!(Segment, region) == 12);
    assert!(size_of::<Remote>() == 24 && offset_of!(Remote, length) == 8);
    assert!(offset_of!(Remote, region) == 16 && offset_of!(Remote, access) == 20);
    assert!(size_of::<Ended>() == 24 && offset_of!(Ended, op) == 8);
    assert!(offset_of!(Ended, error) == 12 && offset_of!(Ended, length) == 16);
};
