//! Threads asleep in calls on a connection.

use sys::sync::{AtomicU32, AtomicUsize, Ordering};
use sys::turn::thread_id;

use super::Conn;

/// How many there are, and who.
#[derive(Debug, Default)]
pub(crate) struct Sleepers {
    count: AtomicU32,
    /// Those of them that are in the kernel, or have a descriptor of their own: they do not use the program's now.
    dozing: AtomicU32,
    /// The sum of what [`mixed`] makes of their numbers: whether they are all one thread's.
    ids: AtomicUsize,
    /// Of the connections that have had this place: one that ends takes its sleepers with it.
    epoch: AtomicU32,
}

impl Sleepers {
    /// Whether any other thread than this one sleeps. One that is here does not: a signal handler jumped out of its call, perhaps of several, or is closing what it
    /// reads.
    pub(crate) fn others(&self) -> bool {
        let count = self.count.load(Ordering::SeqCst) as usize;
        count != 0 && self.ids.load(Ordering::SeqCst) != mixed(thread_id()).wrapping_mul(count)
    }

    /// Whether any other thread than this one is in its call and awake, so that it may be using the program's descriptor.
    pub(crate) fn others_stir(&self) -> bool {
        self.others() && self.count.load(Ordering::SeqCst) > self.dozing.load(Ordering::SeqCst)
    }

    /// This thread sleeps, as long as what it gets lives.
    pub(crate) fn enter(&self) -> Counted<'_> {
        let id = mixed(thread_id());
        self.ids.fetch_add(id, Ordering::SeqCst);
        self.count_one(&self.count, id)
    }

    /// This thread, which has [entered](Sleepers::enter), does nothing with the program's descriptor, as long as what it gets lives.
    pub(crate) fn doze(&self) -> Counted<'_> {
        self.count_one(&self.dozing, 0)
    }

    fn count_one<'a>(&'a self, count: &'a AtomicU32, id: usize) -> Counted<'a> {
        count.fetch_add(1, Ordering::SeqCst);
        Counted {
            sleepers: self,
            count,
            id,
            epoch: self.epoch.load(Ordering::Relaxed),
        }
    }

    /// Nobody sleeps here any more, and whoever thinks he does is not to be counted off.
    pub(crate) fn forget(&self) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
        for count in [&self.count, &self.dozing] {
            // Of most connections nobody ever sleeps in a call on rings, and a store that all agree on is dear.
            if count.load(Ordering::Relaxed) != 0 {
                count.store(0, Ordering::SeqCst);
            }
        }
        if self.ids.load(Ordering::Relaxed) != 0 {
            self.ids.store(0, Ordering::SeqCst);
        }
    }
}

impl Conn {
    /// Whether any other thread than this one sleeps until something can be received.
    pub(crate) fn others_receive(&self) -> bool {
        self.sleepers.others() || self.pollers.others()
    }
}

/// As good as random: those of threads are evenly spaced, so that one may be half of the sum of two others. Never 0 of what is not.
fn mixed(id: usize) -> usize {
    let id = (id ^ (id >> 7)).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as usize);
    id ^ (id >> (usize::BITS / 2))
}

/// One thread in a count, unless the connection has ended meanwhile.
pub(crate) struct Counted<'a> {
    sleepers: &'a Sleepers,
    count: &'a AtomicU32,
    /// Its part of `ids`, if any.
    id: usize,
    epoch: u32,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        if self.sleepers.epoch.load(Ordering::Relaxed) == self.epoch {
            self.count.fetch_sub(1, Ordering::SeqCst);
            if self.id != 0 {
                self.sleepers.ids.fetch_sub(self.id, Ordering::SeqCst);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_here_does_not_sleep() {
        let sleepers = Sleepers::default();
        for _ in 0..3 {
            std::mem::forget(sleepers.enter());
            assert!(!sleepers.others());
        }
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(sleepers.others()));
        });
        let other = std::thread::scope(|scope| {
            let asleep = scope.spawn(|| sleepers.enter());
            asleep.join().expect("no panic")
        });
        assert!(sleepers.others());
        drop(other);
    }

    #[test]
    fn who_has_slept_is_told_of_those_who_still_do() {
        let sleepers = Sleepers::default();
        let other = std::thread::scope(|scope| {
            let asleep = scope.spawn(|| sleepers.enter());
            asleep.join().expect("no panic")
        });
        drop(sleepers.enter());
        assert!(sleepers.others());
        drop(other);
        assert!(!sleepers.others());
    }

    #[test]
    fn who_dozes_does_not_stir() {
        let sleepers = Sleepers::default();
        let _asleep = sleepers.enter();
        let others_stir = || {
            std::thread::scope(|scope| {
                scope
                    .spawn(|| sleepers.others_stir())
                    .join()
                    .expect("no panic")
            })
        };
        assert!(others_stir());
        assert!(!sleepers.others_stir());
        let dozing = sleepers.doze();
        assert!(!others_stir());
        drop(dozing);
        assert!(others_stir());
    }

    #[test]
    fn who_slept_on_an_earlier_connection_is_not_counted_off() {
        let sleepers = Sleepers::default();
        let asleep = sleepers.enter();
        sleepers.forget();
        drop(asleep);
        assert_eq!(sleepers.count.load(Ordering::SeqCst), 0);
        drop(sleepers.enter());
        assert_eq!(sleepers.count.load(Ordering::SeqCst), 0);
    }
}
