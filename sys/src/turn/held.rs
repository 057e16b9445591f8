//! Which turns a thread has, and in which stack frames: for one whose signal handler leaves them by a jump.
//!
//! A list in memory of the thread, which it and its handlers write. A turn is on it from before it is taken until after it has ended, so that a jump
//! at any instant finds it; whether the thread has it, the turn's own word says.

use crate::stack;
use crate::sync::{AtomicUsize, Ordering, compiler_fence};
#[cfg(target_arch = "x86_64")]
use crate::thread_words::thread_words;

/// All zero at first. What is on the list comes before the first place that is free.
#[derive(Debug)]
#[repr(C, align(64))]
struct List {
    /// The outermost first. What there is no place for is not found after a jump.
    places: [Place; MOST],
    /// The same of what a thread has [alone](super::Sole), in which it takes turns.
    soles: [Place; SOLES],
}

#[derive(Debug)]
#[repr(C)]
struct Place {
    /// The address of the word that is taken; 0 if the place is free, [`ENDED`] while one that began later has not.
    taker: AtomicUsize,
    frame: AtomicUsize,
}

/// A turn that was left in its middle by a jump.
#[derive(Debug)]
pub struct Left(usize);

impl Left {
    /// Whether it is the turn of that word.
    pub(super) fn is(&self, taker: &AtomicUsize) -> bool {
        std::ptr::from_ref(taker).addr() == self.0
    }
}

/// The thread `me` is about to take `taker`.
///
/// Three stores for a turn, of which the lock that follows waits for two: with six, a `send` or `recv` of 8 B took 47 ns instead of 45.
#[inline]
pub(super) fn announce(me: usize, taker: &AtomicUsize) {
    begin(&list(me).places, taker);
}

/// The same of what it is to have alone.
#[inline]
pub(super) fn announce_sole(me: usize, taker: &AtomicUsize) {
    begin(&list(me).soles, taker);
}

#[inline(always)]
fn begin(places: &[Place], taker: &AtomicUsize) {
    let Some((first, rest)) = places.split_first() else {
        return;
    };
    if first.taker.load(Ordering::Relaxed) == 0 {
        first.begin(taker);
    } else if let Some(place) = free(rest) {
        place.begin(taker);
    }
    compiler_fence(Ordering::SeqCst);
}

/// It has ended, or was not taken.
#[inline]
pub(super) fn withdraw(me: usize, taker: &AtomicUsize) {
    end(&list(me).places, taker);
}

/// The same of what it had alone.
#[inline]
pub(super) fn withdraw_sole(me: usize, taker: &AtomicUsize) {
    end(&list(me).soles, taker);
}

#[inline(always)]
fn end(places: &[Place], taker: &AtomicUsize) {
    compiler_fence(Ordering::SeqCst);
    let [first, second, ..] = places else {
        return;
    };
    if first.taker.load(Ordering::Relaxed) == address(taker)
        && second.taker.load(Ordering::Relaxed) == 0
    {
        first.taker.store(0, Ordering::Relaxed);
    } else {
        end_among(places, taker);
    }
}

#[inline]
fn address(taker: &AtomicUsize) -> usize {
    std::ptr::from_ref(taker).expose_provenance()
}

#[cold]
fn free(places: &[Place]) -> Option<&Place> {
    places
        .iter()
        .find(|place| place.taker.load(Ordering::Relaxed) == 0)
}

fn count(places: &[Place]) -> usize {
    let mut all = places.iter();
    let free = all.position(|place| place.taker.load(Ordering::Relaxed) == 0);
    free.unwrap_or(places.len())
}

/// One among others ends; there may be no place for it.
#[cold]
fn end_among(places: &[Place], taker: &AtomicUsize) {
    let mut inner = places.iter().rev();
    if let Some(place) = inner.find(|place| place.taker.load(Ordering::Relaxed) == address(taker)) {
        place.taker.store(ENDED, Ordering::Relaxed);
    }
    compiler_fence(Ordering::SeqCst);
    // Those before the last may have ended before it.
    while let Some(last) = count(places).checked_sub(1)
        && let Some(place) = places.get(last)
        && place.taker.load(Ordering::Relaxed) == ENDED
    {
        place.taker.store(0, Ordering::Relaxed);
    }
}

impl Place {
    /// A handler that comes after the first store leaves the place alone; one that leaves by a jump before the second may take the frame for what an earlier
    /// turn had there. Then the turn, which has not been taken yet, is not found after a jump, or is looked for in vain.
    #[inline]
    fn begin(&self, taker: &AtomicUsize) {
        self.taker.store(address(taker), Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.frame.store(stack::frame(), Ordering::Relaxed);
    }

    fn is_held(&self) -> bool {
        !matches!(self.taker.load(Ordering::Relaxed), 0 | ENDED)
    }
}

/// Whether this thread is in a turn, or has left one by a jump that nobody told of.
#[inline]
pub fn is_in_turn() -> bool {
    let [first, ..] = &list(super::thread_id()).places;
    first.taker.load(Ordering::Relaxed) != 0
}

/// Whether this thread has something [alone](super::Sole), or has left it by a jump that nobody told of.
#[inline]
pub fn is_in_sole() -> bool {
    let [first, ..] = &list(super::thread_id()).soles;
    first.taker.load(Ordering::Relaxed) != 0
}

/// Ends the turns of this thread, the innermost first, that a jump to a frame at `target` leaves, and then gives up what it had alone there. Before each
/// does `undo` what is to be done about its value, of which it may take turns.
///
/// Those stay that are not known to be left: in a frame on another stack, where a jump may go back to.
#[cold]
pub fn end_left(target: usize, mut undo: impl FnMut(&Left)) {
    let list = list(super::thread_id());
    end_left_of(&list.places, target, &mut undo);
    end_left_of(&list.soles, target, &mut undo);
}

fn end_left_of(places: &[Place], target: usize, undo: &mut impl FnMut(&Left)) {
    let me = super::thread_id();
    let len = count(places);
    let is_left = |place: &Place| stack::is_left(place.frame.load(Ordering::Relaxed), target);
    // What is within one that is left is left too.
    let Some(first) = places.iter().take(len).position(is_left) else {
        return;
    };
    let (stay, leave) = places.split_at(first);
    for place in leave.iter().take(len - first).rev() {
        let taker = place.taker.load(Ordering::Relaxed);
        let is_had_outside = stay
            .iter()
            .any(|place| place.taker.load(Ordering::Relaxed) == taker);
        if place.is_held() && !is_had_outside {
            // SAFETY: what is on the list is borrowed by the frame that the jump leaves, which is still there.
            let word = unsafe { &*std::ptr::with_exposed_provenance::<AtomicUsize>(taker) };
            if word.load(Ordering::Relaxed) == me {
                undo(&Left(taker));
                // Release pairs with the acquire in `take`.
                word.store(0, Ordering::Release);
            }
        }
        place.taker.store(0, Ordering::Relaxed);
    }
}

#[cfg(target_arch = "x86_64")]
thread_words!(fn list(me) -> List as "sovia_turns_held");

/// The list of the thread `me`, which calls.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn list(_me: usize) -> &'static List {
    std::thread_local!(static HERE: List = const {
        List {
            places: [const { Place { taker: AtomicUsize::new(0), frame: AtomicUsize::new(0) } }; MOST],
            soles: [const { Place { taker: AtomicUsize::new(0), frame: AtomicUsize::new(0) } }; SOLES],
        }
    });
    // SAFETY: it has no destructor, and is there as long as the thread is. Nobody keeps the reference for longer.
    HERE.with(|list| unsafe { &*std::ptr::from_ref(list) })
}

/// Nothing has this address.
const ENDED: usize = 1;
/// A call has one turn as a rule, sometimes both, and each handler within as many.
const MOST: usize = 8;
/// A wait on a set of `epoll` has that, and those in it one after the other.
const SOLES: usize = 4;
