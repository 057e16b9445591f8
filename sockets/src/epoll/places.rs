//! Which descriptor is which set, and which descriptors are members of any.

use std::os::fd::RawFd;
use std::sync::OnceLock;

use sys::lock::{OwnGuard, OwnLock};
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU32;
use sys::turn::{Busy, Left};

use super::{Event, Set};
use crate::conn::Conn;
use crate::reason::Reason;
use crate::table::newborn;
use crate::{handover, share, table};

/// The mirror of the instance behind a descriptor, if there is one.
#[inline]
pub fn known(fd: RawFd) -> Option<&'static Set> {
    let index = SETS.get(usize::try_from(fd).ok()?)?.load(Ordering::Acquire);
    set(index.checked_sub(1)?)
}

/// The program has made an instance, `fd`, unless that is an error.
pub fn created(fd: RawFd) -> RawFd {
    if fd >= 0 {
        // Whatever was here was closed behind our back.
        if concerns(fd) && share::is_home() {
            before_close(fd);
        }
        first_seen(fd);
    }
    fd
}

/// The mirror of an instance that was made just now, or where we did not see it. `None` if there are too many.
pub(super) fn first_seen(fd: RawFd) -> Option<&'static Set> {
    let _guard = CHANGES.enter();
    if let Some(set) = known(fd) {
        return Some(set);
    }
    let place = SETS.get(usize::try_from(fd).ok()?)?;
    let (index, set) = (0..PLACES).find_map(|index| {
        let set = PLACE
            .get(index as usize / CHUNK)?
            .get_or_init(|| (0..CHUNK).map(|_| Set::new()).collect())
            .get(index as usize % CHUNK)?;
        let free = set
            .refs
            .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed);
        free.is_ok().then_some((index, set))
    })?;
    set.open(fd);
    USED.fetch_max(index + 1, Ordering::AcqRel);
    TOP.fetch_max(fd.cast_unsigned() + 1, Ordering::AcqRel);
    place.store(index + 1, Ordering::Release);
    Some(set)
}

/// What only the kernel's instance has as a member is to stay what the kernel knows. A socket that becomes a connection later keeps the process's new
/// connections there.
#[cold]
pub(super) fn keep_to_kernel(fd: RawFd) {
    sys::socket::with_borrowed(fd, |fd| match table::connection(fd) {
        Some(conn) => {
            handover::go_back(conn, fd, Reason::Sets);
        }
        None if sys::socket::is_tcp(fd) => handover::stay_all(Reason::Sets),
        None => {}
    });
}

/// The program has made `new` a duplicate of `old`.
pub fn duplicated(old: RawFd, new: RawFd) {
    if known(old).is_none() || !share::is_home() {
        return;
    }
    newborn::settle();
    let _guard = CHANGES.enter();
    let (Ok(from), Ok(to)) = (usize::try_from(old), usize::try_from(new)) else {
        return;
    };
    if let (Some(set), Some(from), Some(to)) = (known(old), SETS.get(from), SETS.get(to)) {
        set.refs.fetch_add(1, Ordering::AcqRel);
        TOP.fetch_max(new.cast_unsigned() + 1, Ordering::AcqRel);
        to.store(from.load(Ordering::Acquire), Ordering::Release);
    }
}

/// Whether a descriptor is a set or a member of one.
#[inline]
pub fn concerns(fd: RawFd) -> bool {
    usize::try_from(fd).is_ok_and(|at| {
        SETS.get(at)
            .is_some_and(|set| set.load(Ordering::Relaxed) != 0)
            || MEMBERSHIPS
                .get(at)
                .is_some_and(|count| count.load(Ordering::Relaxed) != 0)
    })
}

/// The program is about to close a descriptor. To be called [at home](share::is_home), before the table forgets it.
#[inline]
pub fn before_close(fd: RawFd) {
    let Ok(at) = usize::try_from(fd) else {
        return;
    };
    if SETS
        .get(at)
        .is_some_and(|set| set.load(Ordering::Relaxed) != 0)
    {
        release(fd);
    }
    if memberships(fd) != 0 {
        leave_all(fd);
    }
}

/// As [`before_close`] for each descriptor of a range.
pub fn before_close_range(first: u32, last: u32) {
    let end = TOP.load(Ordering::Acquire).min(last.saturating_add(1));
    for fd in first..end {
        before_close(fd.cast_signed());
    }
}

/// Notes what the set at `instance` watches already.
pub(crate) fn adopts(instance: RawFd, fd: RawFd, event: Event) -> bool {
    known(instance).is_some_and(|set| set.adopt(fd, event))
}

/// What is behind a descriptor is about to be another thing while something else keeps the old one open, so that the kernel would not drop it
/// from the program's sets. [`before_close`] is next.
pub fn before_exchange(fd: RawFd) {
    if memberships(fd) != 0 && share::is_home() {
        for set in all() {
            set.expel(fd);
        }
    }
}

#[inline(never)]
fn leave_all(fd: RawFd) {
    let others = table::known(fd).filter(|conn| conn.descriptors() > 1);
    for set in all() {
        if set.before_close(fd, others.is_none())
            && let Some(conn) = others.filter(|conn| conn.may_meet())
        {
            // It lives on there by a number that the kernel knows nothing by: nothing could be changed when it gets rings.
            conn.stay_on_tcp(Reason::Sets);
        }
    }
}

fn release(fd: RawFd) {
    // Those that it watches are noted as its members, and leave it as such.
    newborn::settle();
    let Some(set) = take_number(fd) else {
        return;
    };
    // As long as it has its place: who finds it in another set must not take the next one there for it. One with duplicates may be in some by this number since.
    if (memberships(fd) != 0 || set.has_duplicates()) && leaves_to_kernel(fd) {
        set.keep_to_kernel();
    }
    let _guard = CHANGES.enter();
    // In one step, for a handler may close another number of it meanwhile.
    let fewer = set
        .refs
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, |refs| {
            (refs > 1).then(|| refs - 1)
        });
    if fewer.is_ok() {
        set.moved(fd, other_number(set));
    } else {
        // Its members go now, while nobody can take the place.
        set.open(-1);
        set.refs.store(0, Ordering::Release);
    }
}

/// The set behind a descriptor, which is behind it no more.
fn take_number(fd: RawFd) -> Option<&'static Set> {
    let _guard = CHANGES.enter();
    let set = known(fd)?;
    let number = SETS.get(fd.cast_unsigned() as usize)?;
    number.store(0, Ordering::Release);
    Some(set)
}

/// A number of a set goes: those that it is in have the set by another, or no more. Whether one goes on having it as the kernel does.
#[cold]
fn leaves_to_kernel(fd: RawFd) -> bool {
    // All of them.
    all().fold(false, |any, set| set.before_close(fd, false) | any)
}

/// Another descriptor of the same instance.
fn other_number(set: &Set) -> Option<RawFd> {
    numbers(set).next()
}

/// A connection has got rings: the sets that it is a member of capture it.
pub fn upgraded(fd: RawFd, conn: &Conn) {
    let duplicates = conn.descriptors() > 1;
    if memberships(fd) != 0 || duplicates {
        for set in all() {
            set.upgraded(fd, conn, duplicates);
        }
    }
}

/// A doorbell was taken off a connection by somebody who is not a set, or another set: those whose doorbell it was too are told otherwise. To
/// be called outside turns. Whether there may be any: on their behalf this thread may have taken a doorbell that has come since, so that it must arm anew if it
/// sleeps on one itself.
pub fn rang(fd: RawFd, conn: &Conn) -> bool {
    let duplicates = conn.descriptors() > 1;
    let any = memberships(fd) != 0 || duplicates;
    if any {
        for set in all() {
            set.rang(fd, conn, duplicates);
        }
    }
    any
}

/// Whether there is a set that has it as the program registered it, though there are rings: one that reports it once, until it is modified.
pub fn is_reported_by_kernel(fd: RawFd, conn: &Conn) -> bool {
    let duplicates = conn.descriptors() > 1;
    (memberships(fd) != 0 || duplicates)
        && all().any(|set| set.leaves_to_kernel(fd, conn, duplicates))
}

/// What a connection sends goes elsewhere from now on, and the program did not do it: who waits for room is told. To be called outside turns.
pub fn moved(fd: RawFd, conn: &Conn) {
    let duplicates = conn.descriptors() > 1;
    if memberships(fd) != 0 || duplicates {
        for set in all() {
            set.sends_elsewhere(fd, conn, duplicates);
        }
    }
}

/// In how many sets a descriptor is a member.
#[inline]
pub(super) fn memberships(fd: RawFd) -> u32 {
    MEMBERSHIPS
        .get(fd.cast_unsigned() as usize)
        .map_or(0, |count| count.load(Ordering::SeqCst))
}

/// A jump leaves a call in its middle: if it had a set, that is another thread's now.
pub fn end_left(left: &Left) {
    // Those without a descriptor, too: one may have been closed meanwhile.
    (0..USED.load(Ordering::Acquire))
        .filter_map(set)
        .any(|set| set.end_left(left));
}

/// Whether this thread is in the middle of a change.
#[inline]
pub fn is_changing() -> bool {
    CHANGES.is_mine()
}

/// A jump to a frame at `target` leaves it in its middle, perhaps: others may make theirs.
#[cold]
pub fn end_left_change(target: usize) {
    CHANGES.end_left(target);
}

/// Keeps what is which set as it is, as around `fork`; nothing is to be given back if this thread is in the middle of a change, or of a fork.
///
/// # Errors
/// Another thread is changing it.
pub(super) fn try_freeze() -> Result<Option<OwnGuard<'static>>, Busy> {
    CHANGES.try_enter()
}

pub(super) fn note_member(fd: RawFd) {
    if let Some(count) = MEMBERSHIPS.get(fd.cast_unsigned() as usize) {
        // Sequentially consistent with the path of a connection: see `Conn::is_mapped`.
        count.fetch_add(1, Ordering::SeqCst);
        TOP.fetch_max(fd.cast_unsigned() + 1, Ordering::AcqRel);
    }
}

pub(super) fn forget_member(fd: RawFd) {
    if let Some(count) = MEMBERSHIPS.get(fd.cast_unsigned() as usize) {
        count.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Whether there has been a set.
#[inline]
pub fn has_any() -> bool {
    TOP.load(Ordering::Acquire) != 0
}

/// Each descriptor that is a set.
pub(super) fn all_numbers() -> impl Iterator<Item = (RawFd, &'static Set)> {
    (0..TOP.load(Ordering::Acquire).cast_signed()).filter_map(|fd| Some((fd, known(fd)?)))
}

/// The descriptors of a set.
pub(super) fn numbers(set: &Set) -> impl Iterator<Item = RawFd> {
    (0..TOP.load(Ordering::Acquire).cast_signed())
        .filter(move |fd| known(*fd).is_some_and(|other| std::ptr::eq(other, set)))
}

/// All sets in use.
pub(super) fn all() -> impl Iterator<Item = &'static Set> {
    (0..USED.load(Ordering::Acquire))
        .filter_map(set)
        .filter(|set| set.refs.load(Ordering::Acquire) != 0)
}

#[inline]
fn set(index: u32) -> Option<&'static Set> {
    PLACE
        .get(index as usize / CHUNK)?
        .get()?
        .get(index as usize % CHUNK)
}

const CHUNK: usize = 16;
const PLACES: u32 = 4096;

/// Whoever changes which descriptor is which set has this. A handler that finds its own thread in the middle of a change, or of a fork, makes its own: each word is
/// one at any instant.
static CHANGES: OwnLock = OwnLock::new();
/// By descriptor: the place of the set plus 1. As many as the kernel allows by default (`fs.nr_open`); untouched pages cost nothing.
static SETS: [AtomicU32; 1 << 20] = [const { AtomicU32::new(0) }; 1 << 20];
/// By descriptor: in how many sets it is a member.
static MEMBERSHIPS: [AtomicU32; 1 << 20] = [const { AtomicU32::new(0) }; 1 << 20];
static PLACE: [OnceLock<Box<[Set]>>; PLACES as usize / CHUNK] =
    [const { OnceLock::new() }; PLACES as usize / CHUNK];
/// Above the highest place that was ever used, and the highest descriptor that was ever noted.
static USED: AtomicU32 = AtomicU32::new(0);
static TOP: AtomicU32 = AtomicU32::new(0);
