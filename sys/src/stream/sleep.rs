//! What passes between one who goes to sleep and one who has something for him, in both directions of a direction.
//!
//! Written for any words, so that loom checks what runs on mapped ones.

use super::{BACK, LEFT, SLEEPER};
use crate::sync::{Count, Ordering, Word, fence};

/// Bytes: the sender publishes them, the receiver sleeps.
pub(super) struct Bytes<'a, C, W> {
    pub(super) tail: &'a C,
    pub(super) fin: &'a W,
    pub(super) armed: &'a W,
}

impl<C: Count, W: Word> Bytes<'_, C, W> {
    /// Sender: moves the tail, which is `tail` but for what comes in between, on to `at`. Ask [`Bytes::armed`] afterwards.
    #[inline]
    pub(super) fn publish(&self, tail: u64, at: u64) {
        // Sequentially consistent with the look in `settled`; release for the bytes and what is said beside the tail.
        if !self.tail.exchange(tail, at, Ordering::SeqCst) {
            self.publish_beside(at);
        }
    }

    /// A signal handler has published more, or came in before what it interrupted was published, or somebody was killed then.
    #[cold]
    fn publish_beside(&self, at: u64) {
        for _ in 0..TRIES {
            let tail = self.tail.load(Ordering::SeqCst);
            let is_behind = at.wrapping_sub(tail).cast_signed() > 0;
            if !is_behind || self.tail.exchange(tail, at, Ordering::SeqCst) {
                return;
            }
        }
        // The peer writes here all the time, and finds what it wrote.
    }

    /// Sender: adds to what it said of its end. Ask [`Bytes::armed`] afterwards.
    #[inline]
    pub(super) fn finish(&self, how: u32) {
        self.fin.fetch_or(how, Ordering::SeqCst);
    }

    /// Sender: who wants to be told of what was just published.
    #[inline]
    pub(super) fn armed(&self) -> u32 {
        // After the tail, in the one order of all sequentially consistent accesses; `arm` comes before the look at the tail.
        self.armed.load(Ordering::SeqCst)
    }

    /// Sender: takes the requests to be told, and returns them.
    #[inline]
    pub(super) fn knock(&self) -> u32 {
        self.armed.fetch_and(STAYS, Ordering::SeqCst) & !STAYS
    }

    /// Receiver: asks to be woken. Ask [`Bytes::settled`] afterwards.
    #[inline]
    pub(super) fn arm(&self, bits: u32) {
        self.armed.fetch_or(bits, Ordering::SeqCst);
    }

    /// Receiver: asks to be told of on a board, as `request` says, in place of what was asked of that kind before. Ask [`Bytes::settled`] afterwards.
    #[inline]
    pub(super) fn arm_at(&self, request: u32) {
        let mut now = self.armed.load(Ordering::Relaxed);
        for _ in 0..TRIES {
            // Also where it says so already: as `arm`, it comes before the look.
            let armed = now & (SLEEPER | STAYS) | request;
            match self.armed.exchange(now, armed, Ordering::SeqCst) {
                Ok(_) => return,
                Err(found) => now = found,
            }
        }
        // A sender takes a request once. The peer writes here all the time.
        self.arm(SLEEPER);
    }

    /// Receiver: whether what it asked to be told of on a board is still asked, whatever comes. Then what is published after [`Bytes::settled`] has looked
    /// is told of, without arming: the sender looks at a request that was there before.
    #[inline]
    pub(super) fn stands(&self, request: u32) -> bool {
        self.armed.load(Ordering::SeqCst) & !(SLEEPER | STAYS) == request
    }

    /// Receiver: asks no more. Who has seen the request already rings for nothing.
    #[inline]
    pub(super) fn disarm(&self) {
        self.armed.fetch_and(!SLEEPER, Ordering::Relaxed);
    }

    /// Receiver: needs no board any more.
    #[inline]
    pub(super) fn disarm_board(&self) {
        self.armed.fetch_and(SLEEPER | STAYS, Ordering::Relaxed);
    }

    /// Receiver: whether there still is nothing after `head`, and no end.
    #[inline]
    pub(super) fn settled(&self, head: u64) -> bool {
        self.tail.load(Ordering::SeqCst) == head && self.fin.load(Ordering::SeqCst) == 0
    }
}

/// Room: the receiver frees it, the sender sleeps, when more than three quarters of the ring are full.
///
/// A fence each time that room is freed would cost more than all the rest. The receiver does without where it knows that nobody can be
/// asleep, for which it must know how far the sender sees. So it also fences once per quarter that it takes, and
/// remembers where (`looked`). One who sleeps then and is not seen armed has looked later than that fence, and has seen at least `looked`: more
/// than three quarters lie between that and the tail. As at most a quarter was taken without a fence, more than half the ring is
/// full. So it is woken when half the ring is free, at the latest, and mostly at a quarter.
pub(super) struct Room<'a, C, W> {
    pub(super) head: &'a C,
    pub(super) looked: &'a C,
    pub(super) armed: &'a W,
    /// How long the ring is.
    pub(super) len: u64,
}

impl<C: Count, W: Word> Room<'_, C, W> {
    /// Receiver: moves the head on, and says whether a sender wants to be woken; `None` if a signal handler moved it from `head`. `tail` is one that it
    /// has seen.
    #[inline]
    pub(super) fn free(&self, head: u64, at: u64, tail: u64) -> Option<bool> {
        // Release, so that the sender overwrites only what has been read.
        if !self.head.exchange_here(head, at) {
            return None;
        }
        // An older tail makes `full` and `left` too small. Then the look is not needed, or `looked` sees to it. One from before `at`, where bytes were
        // taken without being looked for (`MSG_TRUNC`), says that nothing is left.
        let ahead = tail.wrapping_sub(at);
        let left = if ahead <= self.len { ahead } else { 0 };
        let full = left.wrapping_add(at.wrapping_sub(head));
        let unseen = at.wrapping_sub(self.looked.load(Ordering::Relaxed));
        let quarter = self.len / 4;
        if left > 3 * quarter || (full <= quarter && unseen <= quarter) {
            return Some(false);
        }
        self.looked.store(at, Ordering::Relaxed);
        // Pairs with `arm` and `seen`: the sender's look sees the head, or this one sees it armed.
        fence(Ordering::SeqCst);
        Some(self.armed.load(Ordering::Relaxed) != 0)
    }

    /// Receiver: takes the request; whether there was one.
    #[inline]
    pub(super) fn knock(&self) -> bool {
        self.armed.swap(0, Ordering::SeqCst) != 0
    }

    /// Sender: asks to be woken. Ask [`Room::seen`] afterwards.
    #[inline]
    pub(super) fn arm(&self) {
        self.armed.store(SLEEPER, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Sender: how far the receiver has come. Acquire, for it has read the bytes before.
    #[inline]
    pub(super) fn seen(&self) -> u64 {
        self.head.load(Ordering::SeqCst)
    }
}

/// What a receiver says once for all.
const STAYS: u32 = BACK | LEFT;
/// Changes of a request that may come in between.
const TRIES: u32 = 64;
