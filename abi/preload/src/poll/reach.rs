//! How far `select` looks.
//!
//! Linux looks at no more descriptors than the process's table has room for, and programs count on that: they pass `getdtablesize()`, whatever the
//! size of their sets. The table has room for our own descriptors, too, which are at high numbers. So here is found out how much room it would have
//! without them.

use std::ffi::c_int;

use libc::pollfd;
use sockets::table;
use sys::sync::Ordering;
use sys::sync::mapped::{AtomicU32, AtomicU64};
use sys::{hidden, socket, time};

use crate::outcome::keeping_errno;
use crate::real;

/// How many of `count` descriptors `select` looks at.
#[inline]
pub(super) fn within(count: c_int) -> c_int {
    // A program that has forbidden itself system calls is asked for none.
    if count <= ALWAYS.cast_signed() || table::is_retired() {
        return count;
    }
    let count = count.cast_unsigned();
    count.min(room_for(count)).cast_signed()
}

/// The program has put a descriptor at a number of its choice.
#[inline]
pub(crate) fn note(fd: c_int) {
    if fd >= ALWAYS.cast_signed() {
        let room = (fd.cast_unsigned() + 1).next_power_of_two();
        ROOM.fetch_max(room, Ordering::Relaxed);
    }
}

#[cold]
fn room_for(count: u32) -> u32 {
    let known = ROOM.load(Ordering::Relaxed);
    if count <= known {
        return known;
    }
    keeping_errno(|| {
        let last = (count - 1).cast_signed();
        if socket::is_open(last) && !hidden::is_hidden(last) {
            note(last);
        } else {
            look(known, count.min(hidden::end().cast_unsigned()));
        }
    });
    ROOM.load(Ordering::Relaxed)
}

/// Whether the program has descriptors from `known` on. The kernel gives out the lowest number that is free, so that what was not put at its number is seen
/// at the first of them; to look at all would take longer than most calls.
fn look(known: u32, end: u32) {
    let begun = time::monotonic_ns();
    let grows = || highest(known, end.min(known + FIRST)).is_some();
    if begun < LOOKED_UNTIL_NS.load(Ordering::Relaxed) && !grows() {
        return;
    }
    if let Some(fd) = highest(known, end) {
        note(fd);
    }
    let now = time::monotonic_ns();
    let until = now + (now - begun) * SELDOM;
    LOOKED_UNTIL_NS.store(until, Ordering::Relaxed);
}

/// The program's highest descriptor of these.
fn highest(from: u32, end: u32) -> Option<c_int> {
    let mut end = end;
    while from < end {
        let start = end.saturating_sub(AT_ONCE as u32).max(from);
        let mut fds = [CLOSED; AT_ONCE];
        for (entry, fd) in fds.iter_mut().zip(start..end) {
            entry.fd = fd.cast_signed();
        }
        // SAFETY: as many entries, and no waiting.
        unsafe { real::poll(fds.as_mut_ptr(), (end - start).into(), 0) };
        let open = |entry: &&pollfd| entry.fd >= 0 && entry.revents & libc::POLLNVAL == 0;
        let mut open = fds.iter().rev().filter(open);
        if let Some(entry) = open.find(|entry| !hidden::is_hidden(entry.fd)) {
            return Some(entry.fd);
        }
        end = start;
    }
    None
}

const CLOSED: pollfd = pollfd {
    fd: -1,
    events: 0,
    revents: 0,
};
/// As many bits as the C library's type has: so far nobody is asked.
const ALWAYS: u32 = 1024;
/// As many as a question may ask about before it takes as long as a call.
const FIRST: u32 = 16;
const AT_ONCE: usize = 128;
/// So many times as long as it took to look at all, nobody does so again.
const SELDOM: u64 = 256;
/// Of the table, which does not shrink.
static ROOM: AtomicU32 = AtomicU32::new(ALWAYS);
static LOOKED_UNTIL_NS: AtomicU64 = AtomicU64::new(0);
