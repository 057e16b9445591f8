//! poll and select.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::time::Duration;

use libc::{fd_set, nfds_t, pollfd, sigset_t, size_t, timespec, timeval};
use sockets::packet;
use sockets::poll::select::{self, Sets};
use sockets::poll::{self, PollFd, Poller};
use sockets::table;
use sys::errno::Errno;

use crate::buffers::is_memory;
use crate::outcome::{Outcome, checked};
use crate::{cancel, extended, real, via_socket};
use apart::Apart;

mod apart;
pub(crate) mod reach;

/// The kernel, with the signal mask that the program wants while it waits.
struct Kernel {
    mask: *const sigset_t,
}

impl Poller for Kernel {
    fn poll(&self, fds: &mut [PollFd], timeout: Option<Duration>) -> Result<usize, Errno> {
        let timeout = timeout.map(timespec_of);
        let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the same layout (see below) and the slice's own length; the mask is the program's. The C library's call, so that a
        // thread asleep here can be cancelled.
        checked(unsafe {
            real::ppoll(
                fds.as_mut_ptr().cast(),
                fds.len() as nfds_t,
                timeout,
                self.mask,
            ) as isize
        })
    }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    if table::is_retired() {
        // SAFETY: the program's own call, here and below.
        return unsafe { real::poll(fds, count, timeout) };
    }
    let timeout = u64::try_from(timeout).ok().map(Duration::from_millis);
    // SAFETY: the program's array, here and below.
    unsafe { wait(fds, count, timeout, ptr::null()) }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        match duration(timeout) {
            Ok(timeout) if !table::is_retired() => wait(fds, count, timeout, mask),
            _ => real::ppoll(fds, count, timeout, mask),
        }
    }
}

/// glibc, for `_FORTIFY_SOURCE`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __poll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: c_int,
    room: size_t,
) -> c_int {
    check(count, room);
    // SAFETY: as above.
    unsafe { poll(fds, count, timeout) }
}

/// glibc, for `_FORTIFY_SOURCE`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __ppoll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
    room: size_t,
) -> c_int {
    check(count, room);
    // SAFETY: as above.
    unsafe { ppoll(fds, count, timeout, mask) }
}

/// POSIX. Linux has it write back what is left of the time.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        extended::watch_all();
        via_socket::watch_all();
        let count = reach::within(count);
        let mut apart = Apart::of(count, [read, write, except]);
        let [read, write, except] = apart.pointers();
        let native = || apart.end(real::select(count, read, write, except, timeout));
        let may_look = !table::is_retired() && (timeout.is_null() || is_memory(timeout));
        let Some(sets) = sets(count, read, write, except).filter(|_| may_look) else {
            return native();
        };
        let wanted = match timeout.as_ref() {
            None => None,
            Some(time) => match duration_of(time.tv_sec, time.tv_usec.saturating_mul(1000)) {
                Some(wanted) => Some(wanted),
                None => return native(),
            },
        };
        let begun = wanted
            .filter(|wanted| !wanted.is_zero())
            .map(|_| sys::time::now());
        let outcome = choose(sets, count, wanted, ptr::null());
        if let (Some(wanted), Some(begun), Some(time)) = (wanted, begun, timeout.as_mut()) {
            let left = wanted.saturating_sub(begun.elapsed());
            time.tv_sec = left.as_secs().cast_signed();
            time.tv_usec = i64::from(left.subsec_micros());
        }
        apart.end(outcome)
    }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        extended::watch_all();
        via_socket::watch_all();
        let count = reach::within(count);
        let mut apart = Apart::of(count, [read, write, except]);
        let [read, write, except] = apart.pointers();
        let outcome = match (sets(count, read, write, except), duration(timeout)) {
            (Some(sets), Ok(wanted)) if !table::is_retired() => choose(sets, count, wanted, mask),
            _ => real::pselect(count, read, write, except, timeout, mask),
        };
        apart.end(outcome)
    }
}

/// # Safety
/// As `ppoll`.
#[inline]
unsafe fn wait(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: Option<Duration>,
    mask: *const sigset_t,
) -> c_int {
    extended::watch_all();
    via_socket::watch_all();
    let kernel = Kernel { mask };
    let len = count as usize;
    if !is_memory(fds) || len > FDS_MAX {
        let timeout = timeout.map(timespec_of);
        let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the program's own call, which is nothing but a sleep, or an error.
        return unsafe { real::ppoll(fds, count, timeout, mask) };
    }
    let _deferred = cancel::point();
    // SAFETY: the program's array, of the same layout.
    let fds = unsafe { std::slice::from_raw_parts_mut(fds.cast::<PollFd>(), len) };
    let result = poll::poll(fds, timeout, &kernel);
    let result: Outcome<usize> = result.map(|count| count - as_of_tcp(fds)).into();
    result.or(|| 0) as c_int
}

/// Takes out what a stand-in shows and TCP does not, room for priority data, and puts in what it shows a moment later: to what hangs up one can write. How many of `fds` show nothing then.
#[inline]
fn as_of_tcp(fds: &mut [PollFd]) -> usize {
    if !packet::table::any() {
        return 0;
    }
    let others = fds.iter_mut().filter(|one| {
        one.revents & (libc::POLLWRBAND | libc::POLLHUP) != 0 && via_socket::is_any(one.fd)
    });
    others
        .map(|one| {
            one.revents &= !libc::POLLWRBAND;
            if one.revents & libc::POLLHUP != 0 {
                one.revents |= one.events & libc::POLLOUT;
            }
            usize::from(one.revents == 0)
        })
        .sum()
}

fn choose(
    mut sets: Sets<'_>,
    count: c_int,
    timeout: Option<Duration>,
    mask: *const sigset_t,
) -> c_int {
    let _deferred = cancel::point();
    let result: Outcome<usize> = select::select(&mut sets, count, timeout, &Kernel { mask }).into();
    result.or(|| 0) as c_int
}

/// The program's sets, as long as it says that they are, if there is a connection in them.
///
/// # Safety
/// As `select`.
unsafe fn sets<'a>(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
) -> Option<Sets<'a>> {
    let words = usize::try_from(count).ok()?.div_ceil(64);
    let set = |set: *mut fd_set| -> &'a mut [u64] {
        if set.is_null() || words == 0 {
            return &mut [];
        }
        // SAFETY: the program's set has a bit for each descriptor up to `count`, in whole words, whatever the size of its type.
        unsafe { std::slice::from_raw_parts_mut(set.cast(), words) }
    };
    if [read, write, except]
        .iter()
        .any(|set| !set.is_null() && !is_memory(*set))
    {
        return None;
    }
    if apart::any_twice([read, write, except]) {
        return None;
    }
    let sets = Sets {
        read: set(read),
        write: set(write),
        except: set(except),
    };
    sets.concern_us(count).then_some(sets)
}

/// `None` for ever; an error for what the kernel refuses.
///
/// # Safety
/// Null or valid.
pub(crate) unsafe fn duration(time: *const timespec) -> Result<Option<Duration>, Errno> {
    if !time.is_null() && !is_memory(time) {
        return Err(Errno::FAULT);
    }
    // SAFETY: as this function says.
    match unsafe { time.as_ref() } {
        None => Ok(None),
        Some(time) if !(0..1_000_000_000).contains(&time.tv_nsec) => Err(Errno::INVAL),
        Some(time) => duration_of(time.tv_sec, time.tv_nsec)
            .map(Some)
            .ok_or(Errno::INVAL),
    }
}

fn duration_of(seconds: i64, nanos: i64) -> Option<Duration> {
    let nanos = Duration::from_nanos(u64::try_from(nanos).ok()?);
    Duration::from_secs(u64::try_from(seconds).ok()?).checked_add(nanos)
}

pub(crate) fn timespec_of(time: Duration) -> timespec {
    // SAFETY: two numbers, and padding on some machines.
    let mut spec: timespec = unsafe { MaybeUninit::zeroed().assume_init() };
    spec.tv_sec = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    spec.tv_nsec = i64::from(time.subsec_nanos());
    spec
}

/// What the C library does when a program that was built with checks is about to overrun a buffer.
fn check(count: nfds_t, room: size_t) {
    if room / size_of::<pollfd>() < count as usize {
        std::process::abort();
    }
}

/// More the kernel refuses in any case (`fs.nr_open`).
const FDS_MAX: usize = 1 << 20;

const _: () = assert!(size_of::<PollFd>() == size_of::<pollfd>() && size_of::<*mut c_void>() == 8);
