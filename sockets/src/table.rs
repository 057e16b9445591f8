//! What each descriptor of the program is.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use sys::alone::Exchange;
use sys::lock::{OwnGuard, OwnLock};
use sys::section::{self, Section};
use sys::socket;
use sys::stream::cookie;
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU32;
use sys::turn::Busy;

use crate::conn::{Conn, Origin};
use crate::share;

pub use newcomers::{accepted, connected, listens, made, share_socket, share_sockets};
use places::conn;
pub(crate) use places::{each, each_kept, has_any, have_been};

pub mod newborn;
mod newcomers;
mod places;

/// The connection behind a descriptor; `None` if it is not a connected TCP socket.
///
/// Asks the kernel at the first sight of a descriptor, and remembers.
#[inline]
pub fn connection(fd: BorrowedFd<'_>) -> Option<&'static Conn> {
    match entry(fd.as_raw_fd())?.load(Ordering::Acquire) {
        OTHER | LISTENER => None,
        UNKNOWN | SOCKET | FORKED => classify(fd),
        index => conn(index - FIRST).or_else(|| newborn::grow_up(fd.as_raw_fd(), index)),
    }
}

/// As [`connection`], if it may have rings: whether a socket that was not seen to be connected is so nobody asks.
#[inline]
pub fn seen(fd: BorrowedFd<'_>) -> Option<&'static Conn> {
    match entry(fd.as_raw_fd())?.load(Ordering::Acquire) {
        SOCKET | newborn::FIRST.. => None,
        _ => connection(fd),
    }
}

/// As [`connection`], without asking the kernel.
#[inline]
pub fn known(fd: RawFd) -> Option<&'static Conn> {
    match entry(fd)?.load(Ordering::Acquire) {
        OTHER | UNKNOWN | SOCKET | LISTENER | FORKED => None,
        index => conn(index - FIRST).or_else(|| newborn::grow_up(fd, index)),
    }
}

/// As [`known`], as far as one look tells: [newborns](newborn) are for [`connection`] to find.
#[inline(always)]
pub fn noted(fd: RawFd) -> Option<&'static Conn> {
    conn(entry(fd)?.load(Ordering::Acquire).checked_sub(FIRST)?)
}

/// Whether its bytes are the kernel's by now, newborn or not.
#[inline(always)]
pub fn has_no_rings(fd: RawFd) -> bool {
    let word = entry(fd).map_or(UNKNOWN, |entry| entry.load(Ordering::Acquire));
    word >= newborn::FIRST
        || word >= FIRST && conn(word - FIRST).is_some_and(|conn| !conn.is_mapped())
}

/// Whether it is known to listen for TCP.
#[inline]
pub fn is_listener(fd: RawFd) -> bool {
    entry(fd).is_some_and(|entry| entry.load(Ordering::Relaxed) == LISTENER)
}

/// Notes a connected TCP socket.
pub fn insert(fd: BorrowedFd<'_>, origin: Origin) -> Option<&'static Conn> {
    let nonblocking = socket::is_nonblocking(fd);
    let (own, _section) = change();
    // A handler that came into a change may not know what that is about to note; what it does with its socket is the kernel's.
    own.and_then(|_guard| insert_locked(fd, origin, nonblocking))
}

/// From now on every descriptor is the C library's, and nothing is asked about any.
pub(crate) fn retire() {
    newborn::settle();
    let _guard = change();
    RETIRED.store(1, Ordering::Release);
    for entry in ENTRIES.iter().take(TOP.load(Ordering::Acquire) as usize) {
        entry.store(OTHER, Ordering::Release);
    }
}

/// Whether `retire` was called in this process, or the one that forked it.
#[inline]
pub fn is_retired() -> bool {
    RETIRED.load(Ordering::Relaxed) != 0
}

/// As [`insert`], for a connection that another program began.
pub(crate) fn insert_resumed(fd: BorrowedFd<'_>) -> Option<&'static Conn> {
    insert(fd, Origin::Inherited)
}

/// Notes that `new` is now the same as `old`, of which it is a duplicate. What `new` was before must have been [removed](remove).
pub fn duplicate(old: RawFd, new: RawFd) {
    let _guard = change();
    let (Some(from), Some(to)) = (entry(old), entry(new)) else {
        return;
    };
    let value = from.load(Ordering::Acquire);
    if value >= FIRST
        && let Some(conn) = conn(value - FIRST)
    {
        conn.refer();
        // Where there are several, what happens to one of them tells nothing of the socket.
        socket::with_borrowed(old, |fd| {
            conn.note_socket(fd);
            conn.note_ends(fd);
        });
    } else if matches!(value, SOCKET | FORKED)
        || value == UNKNOWN && socket::with_borrowed(old, socket::is_tcp) == Some(true)
    {
        DUPLICATED.store(1, Ordering::Relaxed);
    }
    abandon(to);
    note_top(new);
    to.store(value, Ordering::Release);
}

/// Whether sockets have been duplicated that were not connected yet.
pub(crate) fn has_duplicates() -> bool {
    DUPLICATED.load(Ordering::Relaxed) != 0
}

/// Forgets a descriptor that is about to be closed, or that is no longer what it was. Returns the connection if this was its last
/// descriptor in this process: it is to be [closed](Conn::close) before the descriptor is.
#[must_use = "the last descriptor of a connection takes the connection with it"]
pub fn remove(fd: RawFd) -> Option<&'static Conn> {
    replace(fd, UNKNOWN)
}

/// As [`remove`]. Until [`closed`] says that the descriptor is, calls of other threads that are late do not find out what it is.
#[must_use = "the last descriptor of a connection takes the connection with it"]
pub fn begin_to_close(fd: RawFd) -> Option<&'static Conn> {
    replace(fd, OTHER)
}

/// As [`begin_to_close`], if it is no connection; `false`, and nothing is done, if it is one.
#[inline]
pub(crate) fn begin_to_close_other(fd: RawFd) -> bool {
    entry(fd).is_some_and(|entry| {
        let before = entry.load(Ordering::Acquire);
        before < FIRST && take_place(entry, before, OTHER)
    })
}

/// A descriptor has been closed, or could not be.
pub fn closed(fd: RawFd) {
    if let Some(entry) = entry(fd) {
        let _ = entry.exchange(OTHER, UNKNOWN);
    }
}

fn replace(fd: RawFd, value: u32) -> Option<&'static Conn> {
    let entry = entry(fd)?;
    let before = entry.load(Ordering::Acquire);
    // What is no connection is forgotten without the lock: our own files are closed by threads that have turns, for which one that forks waits, and that has
    // the lock.
    if before < FIRST && take_place(entry, before, value) {
        return None;
    }
    let _guard = change();
    let before = entry.swap(value, Ordering::AcqRel);
    if before < FIRST {
        return None;
    }
    newborn::forget(before);
    conn(before - FIRST).filter(|conn| conn.release())
}

/// Whether the entry was `before` still, and is `value` now.
fn take_place(entry: &AtomicU32, before: u32, value: u32) -> bool {
    entry.exchange(before, value).is_ok()
}

/// The kernel has just given out this number. If there is something here by that number it was closed by ways that we did not see.
pub fn renumber(fd: RawFd) {
    let Some(entry) = entry(fd) else {
        return;
    };
    let before = entry.load(Ordering::Acquire);
    if before == UNKNOWN || before < FIRST && take_place(entry, before, UNKNOWN) {
        return;
    }
    let _guard = change();
    abandon(entry);
}

fn abandon(entry: &AtomicU32) {
    let value = entry.swap(UNKNOWN, Ordering::AcqRel);
    newborn::forget(value);
    if value >= FIRST
        && let Some(conn) = conn(value - FIRST)
        && conn.release()
    {
        conn.abandon();
    }
}

/// Forgets everything from `first` to `last` but connections, which [`remove`] takes.
pub fn forget(first: u32, last: u32) {
    let _guard = change();
    let top = TOP.load(Ordering::Acquire).min(last.saturating_add(1));
    for entry in (first..top).filter_map(|fd| entry(fd.cast_signed())) {
        let before = entry.load(Ordering::Acquire);
        if before < FIRST {
            take_place(entry, before, UNKNOWN);
        }
    }
}

/// Notes that a descriptor is nothing of ours, so that nobody asks again.
fn set_other(fd: RawFd) {
    if let Some(entry) = entry(fd) {
        let before = entry.load(Ordering::Acquire);
        if before < FIRST {
            take_place(entry, before, OTHER);
        }
    }
}

/// Calls `visit` with each connection of this process and one of its descriptors, but [newborns](newborn).
pub fn for_each(mut visit: impl FnMut(RawFd, &'static Conn)) {
    each_entry(|fd, _, conn| visit(fd, conn));
}

fn each_entry(mut visit: impl FnMut(RawFd, u32, &'static Conn)) {
    for (fd, entry) in ENTRIES
        .iter()
        .enumerate()
        .take(TOP.load(Ordering::Acquire) as usize)
    {
        let value = entry.load(Ordering::Acquire);
        if value >= FIRST
            && let (Some(conn), Ok(fd)) = (conn(value - FIRST), RawFd::try_from(fd))
        {
            visit(fd, value - FIRST, conn);
        }
    }
}

/// Keeps other threads from changing the table. In a program that has sockets of type `SOCK_VIA` no signal handler comes in between, who would leave the lock by
/// a jump. In others a handler may find its own thread in the middle of a change, or of a fork, and makes its own: each entry is one at any instant.
// In the frame of who changes: that of a call of this one would look left as soon as it returned.
#[inline(always)]
fn change() -> (Option<OwnGuard<'static>>, Section) {
    let section = Section::begin(section::cancellations());
    // Given back in this order.
    (CHANGES.enter(), section)
}

/// Whether this thread is in the middle of a change.
#[inline]
pub(crate) fn is_changing() -> bool {
    CHANGES.is_mine()
}

/// A jump to a frame at `target` leaves it in its middle, perhaps: others may make theirs.
#[cold]
pub(crate) fn end_left(target: usize) {
    CHANGES.end_left(target);
}

/// Holds the table still, as around `fork`; nothing is to be given back if this thread is in the middle of a change, and forks in a handler.
///
/// # Errors
/// Another thread is changing it.
pub(crate) fn try_freeze() -> Result<Option<OwnGuard<'static>>, Busy> {
    CHANGES.try_enter()
}

#[cold]
fn classify(fd: BorrowedFd<'_>) -> Option<&'static Conn> {
    if is_retired() {
        set_other(fd.as_raw_fd());
        return None;
    }
    if !share::is_home() {
        // The number means something else to the process whose table this is.
        return None;
    }
    if newborn::any() && socket::is_tcp(fd) {
        // It may be a duplicate of one of them, by ways that we did not see.
        newborn::settle();
    }
    let (own, _section) = change();
    let entry = entry(fd.as_raw_fd())?;
    let value = entry.load(Ordering::Acquire);
    match value {
        OTHER | LISTENER => return None,
        UNKNOWN | SOCKET | FORKED => {}
        index => return conn(index - FIRST),
    }
    if !socket::is_tcp(fd) {
        note_top(fd.as_raw_fd());
        take_place(entry, value, OTHER);
        return None;
    }
    // One that is not connected yet may become so by ways that we do not see: it is looked at again.
    if !socket::is_connected(fd) {
        return None;
    }
    // As in `insert`.
    own.and_then(|_guard| insert_locked(fd, Origin::Inherited, socket::is_nonblocking(fd)))
}

fn insert_locked(fd: BorrowedFd<'_>, origin: Origin, nonblocking: bool) -> Option<&'static Conn> {
    let entry = entry(fd.as_raw_fd())?;
    let value = entry.load(Ordering::Acquire);
    if value >= FIRST {
        return conn(value - FIRST);
    }
    if is_retired() {
        return None;
    }
    // A socket that the program has just accepted, or connected, has no other descriptor, unless it was given one before; one that turns up
    // otherwise may be a duplicate of what is known.
    let is_new = origin == Origin::Accepted || (origin == Origin::Connected && !has_duplicates());
    let cookie = if is_new { 0 } else { cookie(fd).unwrap_or(0) };
    if !is_new && let Some((index, conn)) = with_cookie(cookie) {
        conn.refer();
        note_top(fd.as_raw_fd());
        if take_place(entry, value, index + FIRST) {
            return Some(conn);
        }
        // Closed meanwhile by another thread, which is not the last descriptor's.
        let last = conn.release();
        debug_assert!(!last, "it was open");
        return None;
    }
    place(fd, entry, value, |conn| {
        conn.open(fd, origin, nonblocking);
        conn.set_cookie(cookie);
    })
}

/// A new connection, that `open` makes of its place, where the entry of its descriptor was `before`.
fn place(
    fd: BorrowedFd<'_>,
    entry: &AtomicU32,
    before: u32,
    open: impl FnOnce(&Conn),
) -> Option<&'static Conn> {
    let index = places::claim()?;
    let conn = conn(index)?;
    open(conn);
    note_top(fd.as_raw_fd());
    if !take_place(entry, before, index + FIRST) {
        // Closed meanwhile by another thread.
        conn.release();
        conn.abandon();
        return None;
    }
    Some(conn)
}

/// The connection of the socket with that cookie.
fn with_cookie(cookie: u64) -> Option<(u32, &'static Conn)> {
    if cookie == 0 {
        return None;
    }
    let mut found = None;
    each_entry(|fd, index, conn| {
        if found.is_none() && conn.is_open() {
            socket::with_borrowed(fd, |fd| conn.note_socket(fd));
            found = (conn.cookie() == cookie).then_some((index, conn));
        }
    });
    found
}

fn note_top(fd: RawFd) {
    let above = u32::try_from(fd).unwrap_or(0).saturating_add(1);
    if TOP.load(Ordering::Acquire) < above {
        TOP.fetch_max(above, Ordering::AcqRel);
    }
}

#[inline]
fn entry(fd: RawFd) -> Option<&'static AtomicU32> {
    ENTRIES.get(usize::try_from(fd).ok()?)
}

const UNKNOWN: u32 = 0;
const OTHER: u32 = 1;
/// A TCP socket that the program has made, and not connected by ways that we see.
const SOCKET: u32 = 2;
/// One that listens.
const LISTENER: u32 = 3;
/// What was a [`SOCKET`] when this process forked: another may have it, too.
const FORKED: u32 = 4;
/// The value of the connection with index 0.
const FIRST: u32 = 5;

/// Whoever changes what descriptors are has this.
static CHANGES: OwnLock = OwnLock::new();
/// As many as the kernel allows by default (`fs.nr_open`); what lies above is not ours. Untouched pages cost nothing.
static ENTRIES: [AtomicU32; 1 << 20] = [const { AtomicU32::new(UNKNOWN) }; 1 << 20];
/// Above the highest that was ever something.
static TOP: AtomicU32 = AtomicU32::new(0);
/// A TCP socket that was nothing to us yet got another descriptor.
static DUPLICATED: AtomicU32 = AtomicU32::new(0);
static RETIRED: AtomicU32 = AtomicU32::new(0);

#[cfg(all(test, not(loom)))]
mod tests;
