use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;

use super::{generation, watch};
use crate::hidden::{self, Hidden};
use crate::sync::{AtomicPtr, Ordering, mapped::AtomicU32};

/// A static of this process: a forked child has a new one, made when it first asks. Its parent's may be locked there, or count on threads that the
/// child does not have; it stays where it is and is not used again.
///
/// Forks count from [`watch`] on.
#[derive(Debug)]
pub struct Own<T>(AtomicPtr<Made<T>>);

#[derive(Debug)]
struct Made<T> {
    generation: u32,
    value: T,
}

impl<T> Own<T> {
    /// None yet.
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }
}

impl<T: Default + Send + Sync + 'static> Own<T> {
    /// This process's.
    pub fn get(&self) -> &'static T {
        let generation = generation();
        loop {
            // Acquire pairs with the exchange of whoever made it.
            let seen = self.0.load(Ordering::Acquire);
            // SAFETY: it is null, or of the box below, which is never freed and not changed any more; and any thread may refer to a `T`.
            if let Some(made) = unsafe { seen.as_ref() }
                && made.generation == generation
            {
                return &made.value;
            }
            let value = T::default();
            let new = Box::into_raw(Box::new(Made { generation, value }));
            let put = (self.0).compare_exchange(seen, new, Ordering::AcqRel, Ordering::Relaxed);
            if put.is_err() {
                // SAFETY: from `into_raw` above, and nobody else has seen it.
                drop(unsafe { Box::from_raw(new) });
            }
        }
    }
}

impl<T> Default for Own<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// A descriptor that a forked child does not have, as a listening socket, to which nobody would listen there. Of the first [`OWN_FDS`] in a process;
/// others are inherited as usual.
#[derive(Debug)]
pub struct OwnFd {
    fd: ManuallyDrop<Hidden>,
    slot: Option<usize>,
    generation: u32,
}

impl OwnFd {
    /// Before it is of use to anybody: a child may be forked until this returns.
    pub fn new(fd: OwnedFd) -> Self {
        let fd = Hidden::of_a_nic(fd);
        let slot = watch().ok().and_then(|()| take(fd.as_raw_fd()));
        Self {
            fd: ManuallyDrop::new(fd),
            slot,
            generation: generation(),
        }
    }

    /// Whether this is the process that it was made in.
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.generation == generation()
    }

    /// A duplicate, at a high number. Past the C library: a library that stands in front of `fcntl` would count it among the program's.
    ///
    /// # Errors
    /// The kernel's.
    pub fn duplicate_of(fd: impl AsFd) -> io::Result<Self> {
        Ok(Self::new(hidden::duplicate_high(fd.as_fd())?))
    }
}

impl AsFd for OwnFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for OwnFd {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            if !self.is_of_this_process() {
                // Closed already, and its number may be another's.
                return;
            }
            SLOTS[slot].store(0, Ordering::Relaxed);
        }
        // SAFETY: this is the one place where it is dropped, and it is not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.fd) };
    }
}

/// Closes them, in a child that has just been forked: its only thread is in the handler.
pub(super) fn close_inherited() {
    for slot in &SLOTS {
        let held = slot.swap(0, Ordering::Relaxed);
        if let Some(fd) = held.checked_sub(1) {
            // SAFETY: an `OwnFd` owns it that was made in the parent, and leaves it alone here.
            unsafe { rustix::io::close(fd.cast_signed()) };
            hidden::forget(fd.cast_signed());
        }
    }
}

fn take(fd: RawFd) -> Option<usize> {
    let held = fd.cast_unsigned() + 1;
    SLOTS.iter().position(|slot| {
        slot.compare_exchange(0, held, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    })
}

/// So many descriptors of a process are its own.
pub const OWN_FDS: usize = 128;

/// One more than the descriptor, or 0.
static SLOTS: [AtomicU32; OWN_FDS] = [const { AtomicU32::new(0) }; OWN_FDS];
