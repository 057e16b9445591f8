//! epoll.

use std::ffi::c_int;
use std::ptr;
use std::time::Duration;

use libc::{epoll_event, sigset_t, timespec};
use sockets::epoll::{self, Change, Event, Waiter};
use sockets::packet;
use sys::double::{full_ends_begun, full_ends_done};
use sys::epoll::{Entry, entries};
use sys::errno::Errno;

use crate::buffers::is_memory;
use crate::outcome::{Outcome, checked, keeping_errno, with_a_number};
use crate::poll::timespec_of;
use crate::{cancel, extended, real, via_socket};

/// The kernel, with what the program said for the time that it waits.
struct Kernel {
    set: c_int,
    mask: *const sigset_t,
    /// Whether the program counts in nanoseconds.
    fine: bool,
}

impl Waiter for Kernel {
    fn wait(&self, events: &mut [Event], timeout: Option<Duration>) -> Result<usize, Errno> {
        let count = c_int::try_from(events.len()).unwrap_or(c_int::MAX);
        let events: *mut epoll_event = events.as_mut_ptr().cast();
        if self.fine {
            let timeout = timeout.map(timespec_of);
            let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
            // SAFETY: events of the same layout (see below), as many as there are; the mask is the program's. The C library's call, so that
            // a thread asleep here can be cancelled. Here and below.
            return checked(unsafe {
                real::epoll_pwait2(self.set, events, count, timeout, self.mask) as isize
            });
        }
        // Not a moment less than is left.
        let timeout = timeout.map_or(-1, |timeout| {
            let rest = timeout.subsec_nanos().div_ceil(1_000_000);
            let all = timeout
                .as_secs()
                .saturating_mul(1000)
                .saturating_add(u64::from(rest));
            c_int::try_from(all).unwrap_or(c_int::MAX)
        });
        // SAFETY: as above.
        checked(unsafe { real::epoll_pwait(self.set, events, count, timeout, self.mask) as isize })
    }
}

/// Linux.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn epoll_create(size: c_int) -> c_int {
    // SAFETY: the program's own call, here and below.
    let set = with_a_number(|| unsafe { real::epoll_create(size) });
    keeping_errno(|| epoll::created(set))
}

/// Linux.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn epoll_create1(flags: c_int) -> c_int {
    // SAFETY: as above.
    let set = with_a_number(|| unsafe { real::epoll_create1(flags) });
    keeping_errno(|| epoll::created(set))
}

/// Linux.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn epoll_ctl(
    set: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    if operation == libc::EPOLL_CTL_MOD
        && is_memory(event)
        // SAFETY: the program's, which need not be aligned.
        && let event = unsafe { event.cast::<Event>().read_unaligned() }
        && let Some(modified) = epoll::modify_without_rings(set, fd, event)
    {
        return told(modified);
    }
    // SAFETY: as this one.
    unsafe { epoll_ctl_any(set, operation, fd, event) }
}

/// # Safety
/// As `epoll_ctl`.
#[inline(never)]
unsafe fn epoll_ctl_any(set: c_int, operation: c_int, fd: c_int, event: *mut epoll_event) -> c_int {
    // SAFETY: as above.
    let given = is_memory(event).then(|| unsafe { event.cast::<Event>().read_unaligned() });
    let change = match (operation, given) {
        (libc::EPOLL_CTL_ADD, Some(event)) => Change::Add(event),
        (libc::EPOLL_CTL_MOD, Some(event)) => Change::Modify(event),
        (libc::EPOLL_CTL_DEL, _) => Change::Delete,
        // SAFETY: the program's own call, which the kernel refuses.
        _ => return unsafe { real::epoll_ctl(set, operation, fd, event) },
    };
    extended::watch(fd);
    via_socket::watch(fd);
    told(epoll::control(set, fd, change))
}

fn told(changed: Result<(), Errno>) -> c_int {
    let result: Outcome<c_int> = changed.map(|()| 0).into();
    result.or(|| 0)
}

/// Linux.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn epoll_wait(
    set: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: the program's array, here and below.
    unsafe { epoll_pwait(set, events, count, timeout, ptr::null()) }
}

/// Linux.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn epoll_pwait(
    set: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout: c_int,
    mask: *const sigset_t,
) -> c_int {
    let kernel = Kernel {
        set,
        mask,
        fine: false,
    };
    let wanted = u64::try_from(timeout).ok().map(Duration::from_millis);
    // SAFETY: as above.
    unsafe { wait(&kernel, events, count, wanted) }
        // SAFETY: the program's own call, which the kernel refuses.
        .or(|| unsafe { real::epoll_pwait(set, events, count, timeout, mask) })
}

/// Linux.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn epoll_pwait2(
    set: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let kernel = Kernel {
        set,
        mask,
        fine: true,
    };
    // SAFETY: null or the program's.
    let native = || unsafe { real::epoll_pwait2(set, events, count, timeout, mask) };
    // SAFETY: as above.
    match unsafe { crate::poll::duration(timeout) } {
        // SAFETY: as above.
        Ok(wanted) => unsafe { wait(&kernel, events, count, wanted) }.or(native),
        Err(_) => native(),
    }
}

/// # Safety
/// As `epoll_wait`.
#[inline]
unsafe fn wait(
    kernel: &Kernel,
    events: *mut epoll_event,
    count: c_int,
    timeout: Option<Duration>,
) -> Outcome<c_int> {
    let len = match usize::try_from(count) {
        Ok(len @ 1..EVENTS_MAX) if is_memory(events) => len,
        _ => return Outcome::NotOurs,
    };
    let _deferred = cancel::point();
    // SAFETY: the program's array, of the same layout. Nobody else looks at it during the call.
    let events = unsafe { std::slice::from_raw_parts_mut(events.cast::<Event>(), len) };
    let ends = full_ends_done();
    let found = epoll::wait(kernel.set, events, timeout, kernel);
    if full_ends_begun() != ends {
        let found = events.get_mut(..found.unwrap_or(0));
        keeping_errno(|| show_room(kernel.set, found.unwrap_or_default()));
    }
    found.map(|found| found as c_int).into()
}

/// A stand-in shows an end a moment before the room that TCP shows with it: which member it is the kernel knows.
#[cold]
fn show_room(set: c_int, events: &mut [Event]) {
    let (end, room) = (libc::EPOLLHUP as u32, libc::EPOLLOUT as u32);
    let lacks = |event: &Event| event.events & (end | room) == end;
    if !packet::table::any() || !events.iter().any(lacks) {
        return;
    }
    let members = entries(set);
    for event in events.iter_mut().filter(|event| lacks(event)) {
        let is_it = |member: &Entry| member.data == event.data && via_socket::is_any(member.fd);
        let asks = |member: &Entry| member.events & room != 0;
        if members.iter().filter(|member| is_it(member)).any(asks) {
            event.events |= room;
        }
    }
}

/// More the kernel refuses.
const EVENTS_MAX: usize = c_int::MAX as usize / size_of::<epoll_event>();

const _: () = assert!(
    size_of::<Event>() == size_of::<epoll_event>()
        && align_of::<Event>() == align_of::<epoll_event>()
);
