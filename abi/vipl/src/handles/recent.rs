//! The objects that a thread used last: found again without a lock and without touching a count.

use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::thread::LocalKey;

use via::Error;

use super::{Handle, Object, Slot};

/// Objects that every call on the data path looks up.
pub(crate) trait Remembered: Object {
    /// The calling thread's.
    fn recent() -> &'static LocalKey<RecentCell<Self>>;
}

/// What [`Remembered::recent`] holds.
pub(crate) type RecentCell<T> = RefCell<Recent<T>>;

/// A few objects, each where its handle's index says.
///
/// They are kept alive until another takes their place, the thread has to look for any other after they were removed, or it ends.
pub(crate) struct Recent<T: 'static> {
    entries: [Option<Entry<T>>; ENTRIES],
}

struct Entry<T: 'static> {
    handle: Handle<T>,
    slot: &'static Slot<T>,
    object: Arc<T>,
}

impl<T: Object> Recent<T> {
    pub(crate) const fn new() -> Self {
        Self {
            entries: [const { None }; ENTRIES],
        }
    }

    /// The object, if it is remembered and nothing has happened to it.
    #[inline(always)]
    fn find(&self, handle: Handle<T>) -> Option<&T> {
        let entry = self.entries[handle.index() % ENTRIES].as_ref()?;
        let current = entry.handle == handle
            && entry.slot.holds(handle)
            && handle.is_ours()
            && !entry.object.has_failed();
        current.then_some(&entry.object)
    }

    #[cold]
    #[inline(never)]
    fn learn(&mut self, handle: Handle<T>) -> Result<&T, Error> {
        for entry in &mut self.entries {
            if entry.as_ref().is_some_and(|it| !it.slot.holds(it.handle)) {
                *entry = None;
            }
        }
        let slot = T::table().slot(handle).ok_or(Error::InvalidParameter)?;
        let object = handle.get()?;
        let entry = Entry {
            handle,
            slot,
            object,
        };
        let place = &mut self.entries[handle.index() % ENTRIES];
        Ok(&place.insert(entry).object)
    }
}

impl<T: Remembered> Handle<T> {
    /// Calls `call` with the object.
    ///
    /// # Errors
    /// As [`Handle::get`], and those of `call`.
    #[inline(always)]
    pub(crate) fn with<R>(self, call: impl FnOnce(&T) -> Result<R, Error>) -> Result<R, Error> {
        // By a pointer, because a closure around `call` is too large to be kept inline.
        let recent = T::recent().try_with(|recent| NonNull::from(recent));
        let recent = recent.as_ref().ok().and_then(|recent| {
            // SAFETY: it is this thread's own, and stays until the thread's destructors run, which is after this call.
            unsafe { recent.as_ref() }.try_borrow_mut().ok()
        });
        let Some(mut recent) = recent else {
            // The thread is ending, or a handler of signals came between.
            return call(&*self.get()?);
        };
        let object = match recent.find(self) {
            Some(object) => object,
            None => recent.learn(self)?,
        };
        call(object)
    }

    /// Takes the object out of its table, and out of what this thread remembers.
    pub(crate) fn remove(self) -> Option<Arc<T>> {
        let object = T::table().remove(self);
        // A thread that is ending remembers nothing.
        let _ = T::recent().try_with(|recent| {
            if let Ok(mut recent) = recent.try_borrow_mut() {
                let place = &mut recent.entries[self.index() % ENTRIES];
                if place.as_ref().is_some_and(|entry| entry.handle == self) {
                    *place = None;
                }
            }
        });
        object
    }
}

const ENTRIES: usize = 8;
