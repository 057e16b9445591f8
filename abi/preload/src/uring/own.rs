//! Rings that a program looks after itself, by way of `syscall()`.
//!
//! libuv has one for its set of epoll: each turn of the loop makes all its changes by one system call. The requests of such a ring are mapped here as
//! well, and looked at before the kernel takes them. A change of a set is made here, as `epoll_ctl` makes it, and the kernel is left with
//! a request for nothing, or with one that fails alike.

use std::ffi::{c_int, c_void};
use std::ptr;

use libc::epoll_event;
use sockets::handover;
use sys::errno::Errno;
use sys::sync::Ordering;
use sys::sync::mapped::{AtomicU32, AtomicU64};

use super::{Entry, FIXED_FILE, Parameters, is_about_a_file, is_ours, is_seen, leave};
use crate::epoll::epoll_ctl;
use crate::outcome::{errno, keeping_errno};

/// A ring that is followed. Places are used again.
struct Own {
    /// Plus 1; 0 if the place is free.
    fd: AtomicU32,
    /// Where the words of the queue are mapped, and the requests; addresses.
    queue: AtomicU64,
    entries: AtomicU64,
    queue_len: AtomicU32,
    entries_len: AtomicU32,
    head: AtomicU32,
    tail: AtomicU32,
    /// 0 if requests have no order but their own.
    array: AtomicU32,
    mask: AtomicU32,
}

/// `io_uring_setup` has made `ring`, unless that is an error, of what the program asked for with `flags`.
///
/// # Safety
/// `parameters` are what the kernel has filled in.
pub(crate) unsafe fn made(ring: c_int, flags: Option<u32>, parameters: *const Parameters) {
    if ring < 0 || handover::stays_on_tcp() {
        return;
    }
    closed(ring);
    // SAFETY: by the contract.
    let followed = flags.is_some_and(is_seen) && unsafe { follow(ring, &*parameters) }.is_some();
    if !followed {
        leave();
    }
}

/// The flags that the program asks for.
///
/// # Safety
/// The program's, or null.
pub(crate) unsafe fn flags_of(parameters: *const Parameters) -> Option<u32> {
    // SAFETY: by the contract.
    unsafe { super::flags_of(parameters) }
}

unsafe fn follow(ring: c_int, made: &Parameters) -> Option<()> {
    let place = OWN.iter().find(|own| {
        own.fd
            .compare_exchange(0, TAKEN, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    })?;
    let has_array = made.flags & NO_SQARRAY == 0;
    let ends = [made.head, made.tail, made.mask].map(|at| at.saturating_add(4));
    let array_end = made
        .array
        .saturating_add(made.submissions.saturating_mul(4));
    let queue_len = ends
        .into_iter()
        .max()?
        .max(array_end * u32::from(has_array));
    let entries_len = made.submissions.saturating_mul(size_of::<Entry>() as u32);
    let queue = keeping_errno(|| map(ring, queue_len, OFFSET_OF_QUEUE));
    let entries = keeping_errno(|| map(ring, entries_len, OFFSET_OF_ENTRIES));
    for (word, value) in [
        (&place.queue_len, queue_len),
        (&place.entries_len, entries_len),
        (&place.head, made.head),
        (&place.tail, made.tail),
        (&place.array, if has_array { made.array } else { 0 }),
    ] {
        word.store(value, Ordering::Relaxed);
    }
    place.queue.store(address(queue), Ordering::Relaxed);
    place.entries.store(address(entries), Ordering::Relaxed);
    if queue.is_none() || entries.is_none() {
        place.forget();
        return None;
    }
    // SAFETY: the word is in what was mapped.
    let mask = unsafe { place.word(made.mask) }.load(Ordering::Relaxed);
    // The kernel's, and within what was mapped whatever it says.
    let mask = mask.min(made.submissions.saturating_sub(1));
    place.mask.store(mask, Ordering::Relaxed);
    ANY.store(1, Ordering::Relaxed);
    place.fd.store(ring.cast_unsigned() + 1, Ordering::Release);
    Some(())
}

fn map(ring: c_int, len: u32, offset: i64) -> Option<*mut c_void> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, wherever there is room.
    let start = unsafe {
        let len = len as usize;
        libc::mmap(ptr::null_mut(), len, access, libc::MAP_SHARED, ring, offset)
    };
    (start != libc::MAP_FAILED).then_some(start)
}

fn address(start: Option<*mut c_void>) -> u64 {
    start.map_or(0, |start| start.expose_provenance() as u64)
}

/// Whether the program has had such a ring.
#[inline]
pub(crate) fn any() -> bool {
    ANY.load(Ordering::Relaxed) != 0
}

/// The program closes a descriptor: what is mapped would keep the ring.
#[inline]
pub(crate) fn closed(fd: c_int) {
    if any() && sockets::share::is_home() {
        OWN.iter()
            .filter(|own| own.is(fd))
            .for_each(|own| keeping_errno(|| own.forget()));
    }
}

/// As [`closed`], of a range.
pub(crate) fn closed_range(first: u32, last: u32) {
    if any() {
        for own in &OWN {
            let fd = own.fd.load(Ordering::Relaxed);
            if fd != 0 && fd != TAKEN && (first..=last).contains(&(fd - 1)) {
                closed((fd - 1).cast_signed());
            }
        }
    }
}

/// Before `io_uring_enter` has the kernel take `count` requests of `ring`.
pub(crate) fn before_enter(ring: c_int, count: u32, flags: u32) {
    if count == 0 || handover::stays_on_tcp() {
        return;
    }
    let own = OWN.iter().find(|own| own.is(ring));
    match own.filter(|_| flags & REGISTERED_RING == 0) {
        // SAFETY: the program's ring, as it is mapped, which no other thread submits.
        Some(own) if keeping_errno(|| unsafe { own.look(count) }) => {}
        _ => leave(),
    }
}

/// Before `io_uring_register`: with `operation` the ring may get other memory.
pub(crate) fn before_register(operation: u32) {
    if operation & !USE_REGISTERED_RING == RESIZE_RINGS {
        leave();
    }
}

impl Own {
    const fn new() -> Self {
        Self {
            fd: AtomicU32::new(0),
            queue: AtomicU64::new(0),
            entries: AtomicU64::new(0),
            queue_len: AtomicU32::new(0),
            entries_len: AtomicU32::new(0),
            head: AtomicU32::new(0),
            tail: AtomicU32::new(0),
            array: AtomicU32::new(0),
            mask: AtomicU32::new(0),
        }
    }

    fn is(&self, fd: c_int) -> bool {
        self.fd.load(Ordering::Acquire) == fd.cast_unsigned().wrapping_add(1) && fd >= 0
    }

    /// Gives up what is mapped, and the place.
    fn forget(&self) {
        for (start, len) in [
            (&self.queue, &self.queue_len),
            (&self.entries, &self.entries_len),
        ] {
            let start = start.swap(0, Ordering::AcqRel) as usize;
            if start != 0 {
                // SAFETY: mapped by `follow`, and given up once.
                unsafe {
                    let start = ptr::with_exposed_provenance_mut(start);
                    libc::munmap(start, len.load(Ordering::Relaxed) as usize);
                }
            }
        }
        self.fd.store(0, Ordering::Release);
    }

    /// A word of the queue.
    unsafe fn word(&self, at: u32) -> &AtomicU32 {
        let start: *const u8 =
            ptr::with_exposed_provenance(self.queue.load(Ordering::Relaxed) as usize);
        // SAFETY: the caller's word is in what was mapped, which the kernel keeps aligned.
        unsafe { &*start.add(at as usize).cast() }
    }

    /// Looks at the first `count` of the requests that wait: false if one concerns connections in ways that cannot be followed.
    unsafe fn look(&self, count: u32) -> bool {
        // SAFETY: these words were mapped, here and below.
        let (head, tail) = unsafe {
            let [head, tail] = [&self.head, &self.tail].map(|at| at.load(Ordering::Relaxed));
            (
                self.word(head).load(Ordering::Acquire),
                self.word(tail).load(Ordering::Acquire),
            )
        };
        let (mask, array) = (
            self.mask.load(Ordering::Relaxed),
            self.array.load(Ordering::Relaxed),
        );
        let waiting = tail.wrapping_sub(head).min(mask.saturating_add(1));
        (0..waiting.min(count)).all(|at| {
            let place = head.wrapping_add(at) & mask;
            let place = match array {
                0 => place,
                // SAFETY: as above.
                array => unsafe { self.word(array + place * 4) }.load(Ordering::Relaxed) & mask,
            };
            let entries: *mut Entry =
                ptr::with_exposed_provenance_mut(self.entries.load(Ordering::Relaxed) as usize);
            // SAFETY: as many as there are places were mapped; the kernel takes it only after this.
            let entry = unsafe { &mut *entries.add(place as usize) };
            if entry.opcode == EPOLL_CTL && entry.flags & FIXED_FILE == 0 {
                return change(entry);
            }
            is_about_a_file(entry, is_ours)
        })
    }
}

/// Makes the change of a set that is asked for. False if others depend on it, or it depends on others.
fn change(entry: &mut Entry) -> bool {
    if entry.flags != 0 {
        return false;
    }
    let [fd, event, operation, ..] = entry.rest;
    let event = ptr::with_exposed_provenance_mut::<epoll_event>(event as usize);
    // SAFETY: the program's event, as the kernel would read it.
    let result = unsafe { epoll_ctl(entry.fd, operation as c_int, fd as c_int, event) };
    if result == 0 {
        let user = entry.rest[3];
        *entry = Entry {
            opcode: NOP,
            fd: -1,
            rest: [0, 0, 0, user, 0, 0, 0],
            ..*entry
        };
    } else if errno() == Errno::NOENT {
        // What the program has deleted the kernel may still have, and would delete: so no descriptor. Of all else that fails it says the same.
        entry.rest[0] = u64::from(u32::MAX);
    }
    true
}

/// So many rings are followed at a time.
static OWN: [Own; 64] = [const { Own::new() }; 64];
/// Whether there was ever one.
static ANY: AtomicU32 = AtomicU32::new(0);
/// The place of one whose memory is being mapped.
const TAKEN: u32 = u32::MAX;

// `linux/io_uring.h`.
const NOP: u8 = 0;
const EPOLL_CTL: u8 = 29;
const NO_SQARRAY: u32 = 1 << 16;
const REGISTERED_RING: u32 = 1 << 4;
const USE_REGISTERED_RING: u32 = 1 << 31;
const RESIZE_RINGS: u32 = 33;
const OFFSET_OF_QUEUE: i64 = 0;
const OFFSET_OF_ENTRIES: i64 = 0x1000_0000;

const _: () = assert!(size_of::<Entry>() == 64);
