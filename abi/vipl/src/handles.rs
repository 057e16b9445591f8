//! Handles: numbers that look like pointers, and the tables behind them.
//!
//! A handle holds the kind of object, the place in that kind's table, a serial number that no other object of the kind has, and
//! the generation of the process ([`sys::fork::generation`]). A wrong handle of any sort is told from a right one without following it.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use sys::sync::{AtomicUsize, Ordering};
use via::Error;

mod recent;
#[cfg(test)]
mod tests;

pub(crate) use self::recent::{Recent, RecentCell, Remembered};

/// What handles name.
pub(crate) trait Object: Send + Sync + Sized + 'static {
    /// From 1 to 15, another for each.
    const KIND: u8;

    /// Where all of the kind are. A forked child has tables of its own: those of its parent may be locked there.
    fn table() -> &'static Table<Self>;

    /// Whether its NIC has failed, so that it must not be used.
    fn has_failed(&self) -> bool;

    /// A call about it panicked.
    fn fail(&self);
}

/// A number that C has, or gets, for an object of type `T`. Only looking it up tells whether there is one.
#[repr(transparent)]
pub(crate) struct Handle<T> {
    bits: usize,
    kind: PhantomData<fn() -> T>,
}

impl<T> Handle<T> {
    pub(crate) const NULL: Self = Self::of_bits(0);

    pub(crate) const fn of_bits(bits: usize) -> Self {
        Self {
            bits,
            kind: PhantomData,
        }
    }

    pub(crate) fn to_bits(self) -> usize {
        self.bits
    }

    /// What no other handle of its kind has, until there have been 2^32.
    pub(crate) fn serial(self) -> u32 {
        (self.bits >> SERIAL_SHIFT) as u32
    }

    fn index(self) -> usize {
        self.bits & (SLOTS_MAX - 1)
    }

    /// Whether it is of this process, and not of one that this is a fork of.
    #[inline]
    fn is_ours(self) -> bool {
        self.bits >> FORK_SHIFT & FORK_MASK == fork_bits()
    }
}

impl<T: Object> Handle<T> {
    fn new(serial: u32, index: u32) -> Self {
        let kind = usize::from(T::KIND) << KIND_SHIFT;
        let serial = (serial as usize) << SERIAL_SHIFT;
        Self::of_bits(kind | fork_bits() << FORK_SHIFT | serial | index as usize)
    }

    /// The object.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if there is none, [`Error::Resource`] if its NIC has failed.
    pub(crate) fn get(self) -> Result<Arc<T>, Error> {
        let slot = T::table().slot(self).ok_or(Error::InvalidParameter)?;
        let object = slot.get(self).ok_or(Error::InvalidParameter)?;
        if object.has_failed() {
            return Err(Error::Resource);
        }
        Ok(object)
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> PartialEq for Handle<T> {
    fn eq(&self, other: &Self) -> bool {
        self.bits == other.bits
    }
}

impl<T> Eq for Handle<T> {}

impl<T> Hash for Handle<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bits.hash(state);
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.bits)
    }
}

/// All objects of a kind.
///
/// Slots stay where they are and are used again, the one that has been free for longest first; serial numbers are not, until
/// 2^32 objects later. Looking up a handle takes the lock of its own slot only.
pub(crate) struct Table<T> {
    /// Each twice as large as the one before.
    chunks: [OnceLock<Box<[Slot<T>]>>; CHUNKS],
    places: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    free: VecDeque<u32>,
    /// Slots that were used at least once.
    used: u32,
    last_serial: u32,
}

/// Where an object is.
struct Slot<T> {
    /// The object's handle, 0 for none. Written under the lock.
    bits: AtomicUsize,
    object: Mutex<Option<Arc<T>>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            chunks: [const { OnceLock::new() }; CHUNKS],
            places: Mutex::default(),
        }
    }
}

impl<T> Table<T> {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slot that `handle` points to, if any.
    fn slot(&'static self, handle: Handle<T>) -> Option<&'static Slot<T>> {
        if !handle.is_ours() {
            return None;
        }
        let (chunk, offset) = place_of(handle.index());
        self.chunks.get(chunk)?.get()?.get(offset)
    }
}

impl<T: Object> Table<T> {
    /// Puts in what `make` makes of its handle-to-be.
    ///
    /// # Errors
    /// [`Error::Resource`] when there is no room.
    pub(crate) fn insert(
        &'static self,
        make: impl FnOnce(Handle<T>) -> Arc<T>,
    ) -> Result<(Handle<T>, Arc<T>), Error> {
        let (index, serial) = {
            let mut places = self.places();
            let index = match places.free.pop_front() {
                Some(index) => index,
                None if (places.used as usize) < SLOTS_MAX => {
                    places.used += 1;
                    places.used - 1
                }
                None => return Err(Error::Resource),
            };
            places.last_serial = places.last_serial.wrapping_add(1);
            (index, places.last_serial)
        };
        let handle = Handle::new(serial, index);
        let (chunk, offset) = place_of(handle.index());
        let slots = self.chunks[chunk]
            .get_or_init(|| (0..FIRST_CHUNK << chunk).map(|_| Slot::new()).collect());
        let object = make(handle);
        slots[offset].put(handle, Arc::clone(&object));
        Ok((handle, object))
    }

    /// Takes the object out: the handle names nothing from now on. `None` if it did not before.
    pub(crate) fn remove(&'static self, handle: Handle<T>) -> Option<Arc<T>> {
        let object = self.slot(handle)?.take(handle)?;
        self.places().free.push_back(handle.index() as u32);
        Some(object)
    }
}

impl<T> Slot<T> {
    fn new() -> Self {
        Self {
            bits: AtomicUsize::new(0),
            object: Mutex::new(None),
        }
    }

    /// Whether `handle` names the object that is here. Without the lock it may be about to change; what was found before is
    /// an object in its own right, which knows best whether it has been destroyed.
    #[inline]
    fn holds(&self, handle: Handle<T>) -> bool {
        self.bits.load(Ordering::Relaxed) == handle.bits
    }

    fn get(&self, handle: Handle<T>) -> Option<Arc<T>> {
        let object = self.lock();
        object.as_ref().filter(|_| self.holds(handle)).cloned()
    }

    fn put(&self, handle: Handle<T>, object: Arc<T>) {
        let mut place = self.lock();
        *place = Some(object);
        self.bits.store(handle.bits, Ordering::Relaxed);
    }

    fn take(&self, handle: Handle<T>) -> Option<Arc<T>> {
        let mut place = self.lock();
        if !self.holds(handle) {
            return None;
        }
        self.bits.store(0, Ordering::Relaxed);
        place.take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<T>>> {
        self.object.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Chunk, and offset in it, of the slot number `index`.
fn place_of(index: usize) -> (usize, usize) {
    let beyond = index + FIRST_CHUNK;
    let chunk = (beyond / FIRST_CHUNK).ilog2() as usize;
    (chunk, beyond - (FIRST_CHUNK << chunk))
}

#[inline]
fn fork_bits() -> usize {
    sys::fork::generation() as usize & FORK_MASK
}

// From the top: kind, process, serial number, place. With its top bits set no handle is an address that could be followed.
const KIND_SHIFT: u32 = 60;
const FORK_SHIFT: u32 = 56;
const FORK_MASK: usize = 0xf;
const SERIAL_SHIFT: u32 = 24;
const SLOTS_MAX: usize = 1 << SERIAL_SHIFT;
const FIRST_CHUNK: usize = 64;
/// So many that they hold more than `SLOTS_MAX`.
const CHUNKS: usize = 19;
