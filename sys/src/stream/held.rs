//! Turns between processes.

#[cfg(not(loom))]
use std::{hint::spin_loop, thread, time::Duration};

use super::life::{is_dead, me};
use super::{Corrupt, Rx, Stream, Tx};
use crate::sync::{AtomicU32, Ordering, Word};

/// The turn of one thread of one of the processes that share an end. It ends when this is dropped.
#[derive(Debug)]
pub struct Held<'a, W: Word = AtomicU32> {
    /// What to give back, nothing if the thread had the turn already.
    word: Option<&'a W>,
    me: u32,
    orphaned: bool,
}

/// A turn without its borrow, for who keeps it beside the stream: it goes on until it is [given](Tx::leave) back.
#[derive(Debug)]
#[must_use = "others wait for it"]
pub struct Kept(Option<u32>);

impl Held<'_> {
    /// Goes on without this guard.
    pub fn keep(mut self) -> Kept {
        Kept(self.word.take().map(|_| self.me))
    }
}

impl<'a> Tx<'a> {
    /// Ends a turn that was [kept](Held::keep).
    pub fn leave(&self, kept: Kept) {
        kept.end(&self.stream.direction(self.index).sender.turn);
    }

    /// Ends the turn of this thread, which has one among the threads of its process too and was left in its middle by a jump. What it
    /// [published and did not ring for](Held::orphaned) is the caller's business.
    pub fn end_left(&self) {
        self.stream.unfinished.forget();
        self.publish_left();
        // SAFETY: a copy that is timed is made in a turn of this thread's, and that one was left; it notes
        // numbers, each in one store.
        unsafe { self.stream.choice.free_left() };
        self.give_up();
    }

    /// In a signal handler that came into a turn of its thread's, which has [broken off](Tx::break_off) what was being written: others may send before the
    /// interrupted call goes on.
    pub fn give_up(&self) {
        Kept(Some(me())).end(&self.stream.direction(self.index).sender.turn);
    }

    /// Waits for this process's turn to send, and takes it. Who has one already, as a signal handler may find, gets it again.
    ///
    /// A holder that was killed is found out and replaced. What it was at is then done or not done, but it may have
    /// [published and not rung](Held::orphaned).
    ///
    /// # Errors
    /// [`Corrupt`] if somebody who lives has it for some seconds: turns last microseconds, so this is the peer's lie, or a process that was stopped.
    #[inline]
    pub fn enter(&self) -> Result<Held<'a>, Corrupt> {
        self.enter_among(|_| None)
    }

    /// As [`Tx::enter`], where `shares` says whether the process of a thread has this end too, as far as it is known. The peer can write the name of
    /// any thread, and is found out by it within some milliseconds.
    ///
    /// # Errors
    /// As [`Tx::enter`], and if who lives and has the turn does not share the end.
    #[inline]
    pub fn enter_among(&self, shares: impl Fn(u32) -> Option<bool>) -> Result<Held<'a>, Corrupt> {
        enter(
            &self.stream.direction(self.index).sender.turn,
            self.stream,
            shares,
        )
    }
}

impl<'a> Rx<'a> {
    /// As [`Tx::leave`].
    pub fn leave(&self, kept: Kept) {
        kept.end(&self.stream.direction(self.index).receiver.turn);
    }

    /// As [`Tx::end_left`].
    pub fn end_left(&self) {
        Kept(Some(me())).end(&self.stream.direction(self.index).receiver.turn);
    }

    /// As [`Tx::enter`], for receiving. An orphan's duty is to [`Rx::knock`].
    ///
    /// # Errors
    /// As [`Tx::enter`].
    #[inline]
    pub fn enter(&self) -> Result<Held<'a>, Corrupt> {
        self.enter_among(|_| None)
    }

    /// As [`Tx::enter_among`].
    ///
    /// # Errors
    /// As [`Tx::enter_among`].
    #[inline]
    pub fn enter_among(&self, shares: impl Fn(u32) -> Option<bool>) -> Result<Held<'a>, Corrupt> {
        enter(
            &self.stream.direction(self.index).receiver.turn,
            self.stream,
            shares,
        )
    }
}

impl Kept {
    fn end(self, word: &AtomicU32) {
        if let Some(me) = self.0 {
            // As in `Held::drop`.
            let _ = word.exchange(me, 0, Ordering::Release);
        }
    }
}

impl<W: Word> Held<'_, W> {
    /// Whether the holder before was killed in its turn: it may have owed the peer a wake-up, so [`Tx::knock`] or [`Rx::knock`] for it.
    pub fn orphaned(&self) -> bool {
        self.orphaned
    }
}

impl<W: Word> Drop for Held<'_, W> {
    #[inline]
    fn drop(&mut self) {
        if let Some(word) = self.word {
            // Release pairs with the acquire in `try_take`. If it is not ours any more the peer did that, and need not be put right.
            let _ = word.exchange(self.me, 0, Ordering::Release);
        }
    }
}

#[inline]
fn enter<'a>(
    word: &'a AtomicU32,
    stream: &Stream,
    shares: impl Fn(u32) -> Option<bool>,
) -> Result<Held<'a>, Corrupt> {
    let me = me();
    match try_take(word, me, 0) {
        Ok(held) => Ok(held),
        Err(_) => wait_for(word, me, stream, &shares),
    }
}

/// Takes the turn if `from` has it: 0 for nobody, or one who is dead. Else says who has it.
#[inline]
pub(super) fn try_take<W: Word>(word: &W, me: u32, from: u32) -> Result<Held<'_, W>, u32> {
    // Acquire pairs with the release of the holder before; one who is dead wrote its last before it was seen to be.
    match word.exchange(from, me, Ordering::Acquire) {
        Ok(_) => Ok(Held {
            word: Some(word),
            me,
            orphaned: from != 0,
        }),
        Err(holder) if holder == me => Ok(Held {
            word: None,
            me,
            orphaned: false,
        }),
        Err(holder) => Err(holder),
    }
}

#[cold]
fn wait_for<'a>(
    word: &'a AtomicU32,
    me: u32,
    stream: &Stream,
    shares: &dyn Fn(u32) -> Option<bool>,
) -> Result<Held<'a>, Corrupt> {
    let mut suspect = 0;
    let mut tries = 0;
    let mut strange = 0;
    // Of all suspects, for a peer may write one name after the other.
    let mut naps = 0;
    loop {
        // Looking does not take the line away from the holder.
        let holder = word.load(Ordering::Relaxed);
        if holder == 0
            && let Ok(held) = try_take(word, me, 0)
        {
            return Ok(held);
        }
        if holder != suspect {
            (suspect, tries, strange) = (holder, tries.min(YIELDS), 0);
        }
        tries += 1;
        if tries >= YIELDS {
            naps += 1;
            if naps > GIVE_UP {
                return Err(Corrupt);
            }
            if tries.abs_diff(YIELDS).is_multiple_of(NAPS_PER_LOOK) && holder != 0 {
                if is_dead(holder, stream) {
                    if let Ok(held) = try_take(word, me, holder) {
                        return Ok(held);
                    }
                } else if shares(holder) == Some(false) {
                    strange += 1;
                }
                // Once may be one who is just ending.
                if strange > 1 {
                    return Err(Corrupt);
                }
            }
        }
        pass_time(tries);
    }
}

#[cfg(not(loom))]
fn pass_time(tries: u32) {
    match tries {
        ..PAUSES => spin_loop(),
        PAUSES..YIELDS => thread::yield_now(),
        _ => thread::sleep(NAP),
    }
}

#[cfg(loom)]
fn pass_time(_: u32) {
    loom::thread::yield_now();
}

#[cfg(not(loom))]
const PAUSES: u32 = 64;
/// Few, for beside a busy process each may last milliseconds.
const YIELDS: u32 = if cfg!(loom) { 1 } else { 64 + 32 };
#[cfg(not(loom))]
const NAP: Duration = Duration::from_micros(100);
/// A look at whether the holder lives every few milliseconds.
const NAPS_PER_LOOK: u32 = if cfg!(loom) { 1 } else { 16 };
/// Some seconds of naps, which last somewhat longer than they are meant to.
const GIVE_UP: u32 = 40_000;
