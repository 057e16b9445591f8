//! From the id that a provider gives a VI to the handle that C has for it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use sys::sync::{AtomicU32, AtomicUsize, Ordering};
use via::ViId;

use super::Vi;
use crate::handles::Handle;

/// The VIs of a NIC handle.
///
/// Each is in the map; the one that came last, of all that share a place there, is in `places` too, which are read without a lock.
#[derive(Default)]
pub(super) struct Directory {
    all: Mutex<HashMap<ViId, Handle<Vi>>>,
    places: OnceLock<Box<[Place]>>,
}

/// Written under the lock of the map.
#[derive(Default)]
struct Place {
    /// 0 while there is no handle, or it changes. Ids are never used twice, so one that is read before and after the handle
    /// was there all the while.
    id: AtomicU32,
    bits: AtomicUsize,
}

impl Directory {
    pub(super) fn insert(&self, id: ViId, handle: Handle<Vi>) {
        let mut all = self.all();
        all.insert(id, handle);
        let places = self
            .places
            .get_or_init(|| (0..PLACES).map(|_| Place::default()).collect());
        let place = &places[id.0 as usize % PLACES];
        place.id.store(0, Ordering::Relaxed);
        // Pairs with the load of `bits` in `find`: who sees these bits sees that the old id has gone.
        place.bits.store(handle.to_bits(), Ordering::Release);
        // Pairs with the first load of `id` in `find`: who sees the id sees its bits.
        place.id.store(id.0, Ordering::Release);
    }

    pub(super) fn remove(&self, id: ViId) {
        let mut all = self.all();
        all.remove(&id);
        if let Some(place) = self.place(id)
            && place.id.load(Ordering::Relaxed) == id.0
        {
            place.id.store(0, Ordering::Relaxed);
        }
    }

    /// Takes out all.
    pub(super) fn drain(&self) -> Vec<Handle<Vi>> {
        let mut all = self.all();
        for place in self.places.get().into_iter().flatten() {
            place.id.store(0, Ordering::Relaxed);
        }
        all.drain().map(|(_, handle)| handle).collect()
    }

    #[inline]
    pub(super) fn find(&self, id: ViId) -> Option<Handle<Vi>> {
        let place = self.place(id)?;
        if place.id.load(Ordering::Acquire) == id.0 && id.0 != 0 {
            let bits = place.bits.load(Ordering::Acquire);
            if place.id.load(Ordering::Relaxed) == id.0 {
                return Some(Handle::of_bits(bits));
            }
        }
        self.find_in_all(id)
    }

    #[cold]
    fn find_in_all(&self, id: ViId) -> Option<Handle<Vi>> {
        self.all().get(&id).copied()
    }

    fn place(&self, id: ViId) -> Option<&Place> {
        self.places.get()?.get(id.0 as usize % PLACES)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<ViId, Handle<Vi>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const PLACES: usize = 1024;

#[cfg(test)]
mod tests {
    use sys::sync::AtomicBool;

    use super::*;

    fn handle(id: u32) -> Handle<Vi> {
        Handle::of_bits(id as usize * 7 + 1)
    }

    #[test]
    fn many_share_a_place() {
        let directory = Directory::default();
        let ids = [1, 2, 1 + PLACES as u32, 1 + 2 * PLACES as u32];
        assert_eq!(directory.find(ViId(1)), None);
        for id in ids {
            directory.insert(ViId(id), handle(id));
        }
        for id in ids {
            assert_eq!(directory.find(ViId(id)), Some(handle(id)));
        }
        directory.remove(ViId(ids[3]));
        directory.remove(ViId(ids[2]));
        assert_eq!(
            ids.map(|id| directory.find(ViId(id)).is_some()),
            [true, true, false, false]
        );
        assert_eq!(directory.drain().len(), 2);
        assert_eq!(ids.map(|id| directory.find(ViId(id)).is_some()), [false; 4]);
    }

    #[test]
    fn readers_beside_writers() {
        let directory = Directory::default();
        let rounds = 20_000;
        let written = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..rounds {
                    // All in one place, so that each takes the place of the last.
                    let id = round * PLACES as u32;
                    directory.insert(ViId(id), handle(id));
                    if round > 4 {
                        directory.remove(ViId((round - 4) * PLACES as u32));
                    }
                }
                written.store(true, Ordering::Relaxed);
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    while !written.load(Ordering::Relaxed) {
                        for round in (1..rounds).step_by(97) {
                            let id = round * PLACES as u32;
                            let found = directory.find(ViId(id));
                            assert!(found.is_none_or(|found| found == handle(id)));
                        }
                    }
                });
            }
        });
    }
}
