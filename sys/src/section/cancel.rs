//! Threads that are cancelled while they sleep in a section: no signal tells them.

use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

use rustix::event::{EventfdFlags, eventfd};

use crate::hidden::Hidden;
use crate::quiet::once;
use crate::sync::{AtomicU32, AtomicUsize, Ordering};
use crate::turn::thread_id;

use super::signal::call;

/// How often a thread of this process has been cancelled. Who reads it before it asks whether it is to end itself learns by it, before it sleeps, that it is to ask again.
#[inline]
pub fn cancellations() -> u32 {
    CANCELLATIONS.load(Ordering::SeqCst)
}

/// `thread`, as [`thread_id`] names it, has been cancelled: a sleep of its in a section ends, and any that others begin that have not asked since.
pub fn wake_cancelled(thread: usize) {
    // Either the thread sees this before it sleeps, or it is found here.
    CANCELLATIONS.fetch_add(1, Ordering::SeqCst);
    for place in &PLACES {
        if place.thread.load(Ordering::SeqCst) != thread {
            continue;
        }
        let turn = place.turn.load(Ordering::SeqCst);
        place.asked.store(turn.wrapping_add(1), Ordering::SeqCst);
        // It may be about to sleep, so that one call would come too early.
        while place.thread.load(Ordering::SeqCst) == thread
            && place.turn.load(Ordering::SeqCst) == turn
        {
            match place.word.load(Ordering::SeqCst) {
                0 => ring(),
                word => {
                    // What has been unmapped meanwhile the kernel refuses.
                    let _ = call(libc::SYS_futex, [word, FUTEX_WAKE, i32::MAX as usize, 0]);
                }
            }
            std::thread::yield_now();
        }
        hush();
    }
}

/// What those who sleep on descriptors sleep on as well; `None` where there is none to be had.
pub(super) fn bell() -> Option<BorrowedFd<'static>> {
    let bell = once(&BELL, || {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?;
        Some(Hidden::if_possible(bell))
    });
    bell.as_ref().map(Hidden::as_fd)
}

fn ring() {
    if let Some(Some(bell)) = BELL.get() {
        // Full means that it rings.
        let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
    }
}

/// Whoever else rings goes on doing so.
fn hush() {
    if let Some(Some(bell)) = BELL.get() {
        let _silent = rustix::io::read(bell, &mut [0; 8]);
    }
}

/// This thread is about to sleep, or does.
pub(super) struct Asleep(Option<&'static Place>);

impl Asleep {
    /// On the word at that address, or at the [`bell`] if it is 0. Where all places are taken it cannot be found.
    pub(super) fn enter_at(word: usize) -> Self {
        let me = thread_id();
        let start = (me >> 12).wrapping_mul(SPREAD) % PLACES.len();
        let (before, after) = PLACES.split_at(start);
        let mut places = after.iter().chain(before);
        let place = places.find(|place| {
            place.thread.load(Ordering::Relaxed) == 0
                && place
                    .thread
                    .compare_exchange(0, me, Ordering::SeqCst, Ordering::Relaxed)
                    .is_ok()
        });
        if let Some(place) = place {
            place.word.store(word, Ordering::SeqCst);
        }
        Self(place)
    }

    /// It does not. Whether it was to look whether it is cancelled.
    pub(super) fn leave(self) -> bool {
        let Some(place) = self.0 else {
            return false;
        };
        let turn = place.turn.fetch_add(1, Ordering::SeqCst);
        place.thread.store(0, Ordering::SeqCst);
        place.asked.load(Ordering::SeqCst) == turn.wrapping_add(1)
    }
}

#[derive(Debug)]
struct Place {
    /// Who sleeps; 0 for nobody.
    thread: AtomicUsize,
    /// The address of the word that it sleeps on; 0 for the [`bell`].
    word: AtomicUsize,
    /// Sleeps that have ended here.
    turn: AtomicU32,
    /// One more than the turn of the last whose end was asked for.
    asked: AtomicU32,
}

static CANCELLATIONS: AtomicU32 = AtomicU32::new(0);
static PLACES: [Place; 1024] = [const {
    Place {
        thread: AtomicUsize::new(0),
        word: AtomicUsize::new(0),
        turn: AtomicU32::new(0),
        asked: AtomicU32::new(0),
    }
}; 1024];
static BELL: OnceLock<Option<Hidden>> = OnceLock::new();
/// Control blocks lie at regular distances.
const SPREAD: usize = 0x9e37_79b9;
const FUTEX_WAKE: usize = 1;
