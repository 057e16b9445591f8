//! The places of connections.
//!
//! They never move and are never freed, so that who has one need not own it: it is used again for another. Which is taken next is a matter of caches: see
//! `docs/decisions/0057-few-places.md`.

use std::sync::OnceLock;

use sys::quiet::once;
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU32;

use crate::conn::Conn;

/// The connection in a place.
#[inline]
pub(super) fn conn(index: u32) -> Option<&'static Conn> {
    let index = index as usize;
    CONNS.get(index / CHUNK)?.get()?.get(index % CHUNK)
}

/// Whether there has been a connection.
#[inline]
pub(crate) fn has_any() -> bool {
    NEXT.load(Ordering::Relaxed) != 0
}

/// Whether there have been so many connections at a time, as far as their places tell.
#[inline]
pub(crate) fn have_been(many: usize) -> bool {
    let last = CONNS.get(many / CHUNK);
    last.is_some_and(|places| places.get().is_some())
}

/// Calls `visit` with each connection of this process.
pub(crate) fn each(visit: impl FnMut(&'static Conn)) {
    super::newborn::settle();
    all().filter(|conn| conn.is_open()).for_each(visit);
}

/// Calls `visit` with each connection whose last descriptor is closed, and which lives on for those that sleep in calls on it.
pub(crate) fn each_kept(visit: impl FnMut(&'static Conn)) {
    all().filter(|conn| conn.is_closing()).for_each(visit);
}

/// The places that there are.
fn all() -> impl Iterator<Item = &'static Conn> {
    let chunks = CONNS.iter().map_while(OnceLock::get);
    chunks.flat_map(|chunk| chunk.iter())
}

/// Takes a place, of the first few if one is free: in turns, so that who looks at one that was just left does not see the next, and yet soon again, while it
/// is in the cache.
pub(super) fn claim() -> Option<u32> {
    let window = WINDOW.load(Ordering::Relaxed);
    let start = NEXT.load(Ordering::Relaxed);
    let is_free = |index: &u32| made(*index).is_some_and(Conn::claim);
    let skipped = (0..window).find(|n| is_free(&((start + n) % window)));
    let index = match skipped {
        Some(skipped) => {
            let index = (start + skipped) % window;
            note_turn(window, skipped, index < start);
            index
        }
        None => {
            // Those beyond may be taken, too: the window was wider before.
            let index = (window..PLACES).find(is_free)?;
            WINDOW.store(wider(index), Ordering::Relaxed);
            index
        }
    };
    NEXT.store(index + 1, Ordering::Relaxed);
    Some(index)
}

/// After each round, the window is to have as many free places as taken ones, at least, and not many more.
fn note_turn(window: u32, skipped: u32, ends_round: bool) {
    let taken = SKIPPED.load(Ordering::Relaxed) + skipped;
    SKIPPED.store(if ends_round { 0 } else { taken }, Ordering::Relaxed);
    if ends_round && taken > window / 2 {
        WINDOW.store(wider(window), Ordering::Relaxed);
    } else if ends_round && taken < window / 8 && window > WINDOW_MIN {
        // Those that this round gave out may last.
        let is_taken = |index: &u32| conn(*index).is_some_and(Conn::is_open);
        if (0..window).filter(is_taken).count() < window as usize / 8 {
            WINDOW.store(window / 2, Ordering::Relaxed);
        }
    }
}

fn wider(window: u32) -> u32 {
    (window + 1).next_power_of_two().min(PLACES)
}

/// As [`conn`], of a place that may not have been there: it is made, with those beside it.
fn made(index: u32) -> Option<&'static Conn> {
    let chunk = index as usize / CHUNK;
    let first = chunk * CHUNK;
    once(CONNS.get(chunk)?, || {
        (first..first + CHUNK).map(Conn::new).collect()
    })
    .get(index as usize % CHUNK)
}

const CHUNK: usize = 64;
const PLACES: u32 = 65_536;
/// So many places are taken in turns at least: some are free, and all fit into the cache.
pub(super) const WINDOW_MIN: u32 = 32;

static CONNS: [OnceLock<Box<[Conn]>>; PLACES as usize / CHUNK] =
    [const { OnceLock::new() }; PLACES as usize / CHUNK];
static NEXT: AtomicU32 = AtomicU32::new(0);
/// So many places are taken in turns.
static WINDOW: AtomicU32 = AtomicU32::new(WINDOW_MIN);
/// How many were found taken in this round.
static SKIPPED: AtomicU32 = AtomicU32::new(0);
