//! What calls teach about the connection: counts, and who waits for whom.

use sys::sync::Ordering;
use sys::sync::mapped::AtomicU64;
use sys::time;

use super::{Conn, Way};

/// What a connection has exchanged before it was noted. By [`Way`].
#[derive(Debug)]
pub(crate) struct Exchanged {
    pub(crate) bytes: [u64; 2],
    pub(crate) calls: [u64; 2],
    pub(crate) turns: u32,
    /// The direction of the last call, plus 1; 0 if there was none.
    pub(crate) last: u32,
}

impl Conn {
    /// Counts a call that moved `bytes`.
    #[inline]
    pub fn count(&self, way: Way, bytes: usize) {
        let index = way as usize;
        let add = |count: &AtomicU64, n: u64| {
            // A lost count of two threads at once is worth less than a locked instruction.
            count.store(
                count.load(Ordering::Relaxed).wrapping_add(n),
                Ordering::Relaxed,
            );
        };
        if let (Some(total), Some(calls)) =
            (self.record.bytes.get(index), self.record.calls.get(index))
        {
            add(total, bytes as u64);
            add(calls, 1);
        }
    }

    /// It has exchanged so much already.
    pub(crate) fn resume_young(&self, before: &Exchanged) {
        let counts = self.record.bytes.iter().chain(&self.record.calls);
        for (count, before) in counts.zip(before.bytes.iter().chain(&before.calls)) {
            count.store(*before, Ordering::Relaxed);
        }
        self.turnarounds.store(before.turns, Ordering::Relaxed);
        self.last.store(before.last, Ordering::Relaxed);
        let [sends, _] = before.calls;
        self.answered.store(sends != 0, Ordering::Relaxed);
    }

    /// Bytes and calls so far.
    pub fn counts(&self, way: Way) -> (u64, u64) {
        let index = way as usize;
        let of =
            |counts: &[AtomicU64; 2]| counts.get(index).map_or(0, |n| n.load(Ordering::Relaxed));
        (of(&self.record.bytes), of(&self.record.calls))
    }

    /// Whether the receiver has caught up with the sender at each of some looks, without waiting and without an answer in between: a stream of
    /// small messages.
    #[inline]
    pub(crate) fn keeps_up(&self) -> bool {
        self.streak.load(Ordering::Relaxed) >= STREAK
    }

    /// Notes whether a receive caught up with the sender, and whether it did not have to wait.
    #[inline]
    pub(crate) fn note_pace(&self, caught_up: bool, at_once: bool) {
        let streak = self.streak.load(Ordering::Relaxed);
        let now = match (at_once, caught_up) {
            (false, _) => 0,
            (true, true) => (streak + 1).min(STREAK),
            (true, false) => streak,
        };
        if now != streak {
            self.streak.store(now, Ordering::Relaxed);
        }
    }

    /// A look that is to be told of, in a turn of [`RECEIVE`](crate::flow::RECEIVE): whether all that is there has been taken [will be said](Conn::is_emptied).
    #[inline]
    pub(crate) fn await_emptying(&self) {
        self.emptied.store(AWAITED, Ordering::Relaxed);
    }

    /// A receive, in such a turn: whether that is to be said.
    #[inline]
    pub(crate) fn awaits_emptying(&self) -> bool {
        self.emptied.load(Ordering::Relaxed) == AWAITED
    }

    /// A receive, in such a turn: there was nothing left.
    #[inline]
    pub(crate) fn note_emptied(&self) {
        self.emptied.store(EMPTIED, Ordering::Relaxed);
    }

    /// Whether a receive has found nothing left since the last [look](Conn::await_emptying).
    #[inline]
    pub(crate) fn is_emptied(&self) -> bool {
        self.emptied.load(Ordering::Relaxed) == EMPTIED
    }

    /// Notes that something was sent.
    #[inline]
    pub(crate) fn note_answer(&self) {
        if self.streak.load(Ordering::Relaxed) != 0 {
            self.streak.store(0, Ordering::Relaxed);
        }
    }

    /// Notes that something was sent on TCP.
    #[inline]
    pub(crate) fn note_answer_on_tcp(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    /// Notes that a receive on TCP, which had room for `wanted` bytes, brought `bytes`.
    #[inline]
    pub(crate) fn note_trickle(&self, bytes: usize, wanted: usize) {
        let trickle = self.trickle.load(Ordering::Relaxed);
        let small = bytes < wanted.min(TRICKLE_MAX);
        let now = if small {
            (self.since_answer(trickle) + 1).min(TRICKLE) | self.answers()
        } else {
            0
        };
        if now != trickle {
            self.trickle.store(now, Ordering::Relaxed);
        }
    }

    /// Whether little comes at a time on TCP, again and again, without an answer: a stream of small messages, whose sender pays for each that finds the receiver
    /// asleep.
    #[inline]
    pub(crate) fn trickles(&self) -> bool {
        self.since_answer(self.trickle.load(Ordering::Relaxed)) >= TRICKLE
    }

    /// How many receives in a row brought little, of what was [noted](Conn::note_trickle): none if something was sent since. Whoever sends only counts.
    #[inline]
    fn since_answer(&self, trickle: u32) -> u32 {
        let little = trickle & LITTLE;
        if little != 0 && trickle - little == self.answers() {
            little
        } else {
            0
        }
    }

    /// How often something was sent, as `trickle` has it.
    #[inline]
    fn answers(&self) -> u32 {
        let [sends, _] = &self.record.calls;
        (sends.load(Ordering::Relaxed) as u32) << LITTLE.count_ones()
    }

    /// Lets more come before a call that may sleep in the kernel. To ask meanwhile would be in the way of the sender, who needs the socket too. It goes on
    /// for as long as there is something each time.
    pub(crate) fn gather<R>(&self, call: impl FnOnce() -> R) -> R {
        let mut spin = self.gather.begin();
        while spin.again() {}
        let before_ns = time::monotonic_ns();
        let result = call();
        if time::monotonic_ns().saturating_sub(before_ns) < SLEPT_NS {
            spin.paid();
        }
        result
    }

    /// What a wait on TCP that begins is for: an answer, if something was sent since this was last asked.
    #[inline]
    pub(crate) fn awaits(&self) -> Awaited {
        if self.answered.load(Ordering::Relaxed) && self.answered.swap(false, Ordering::Relaxed) {
            return Awaited::Answer;
        }
        let ((received, _), (_, sends)) = (self.counts(Way::In), self.counts(Way::Out));
        let belongs = sends != 0 || received < UNASKED;
        if belongs && !self.trickles() {
            Awaited::Rest
        } else {
            Awaited::Anything
        }
    }

    /// Whether a wait on TCP that begins is one of the first: no more than one call has received.
    #[inline]
    pub(crate) fn begins(&self) -> bool {
        self.counts(Way::In).1 <= 1
    }

    /// Counts a sleep in the kernel: in a call on the connection, or one among others that it has ended.
    pub(crate) fn count_sleep(&self) {
        self.record.sleeps.fetch_add(1, Ordering::Relaxed);
    }

    /// How often a call slept in the kernel.
    pub fn sleeps(&self) -> u64 {
        self.record.sleeps.load(Ordering::Relaxed)
    }

    /// Whether receiving looks worth a question to the kernel now and then though memory says there is nothing: one of a few times, and whenever the last
    /// question is some milliseconds old. Who asks once before he uses a connection again is to hear of its end.
    pub(crate) fn is_time_to_ask(&self) -> Option<Ask> {
        let fruitless = self.fruitless.load(Ordering::Relaxed).wrapping_add(1);
        self.fruitless.store(fruitless, Ordering::Relaxed);
        let now_ms = time::coarse_ms();
        let is_late = self.asked_ms.load(Ordering::Relaxed) != now_ms;
        if is_late {
            self.asked_ms.store(now_ms, Ordering::Relaxed);
        }
        match is_late {
            true => Some(Ask::ToTheEnd),
            false => fruitless.is_multiple_of(ASK_EACH).then_some(Ask::Once),
        }
    }
}

/// What a wait on TCP is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// An answer, which may be near.
    Answer,
    /// What belongs to an answer, or the end behind it; or a request, or the rest of a short one.
    Rest,
    /// Data that comes as it comes: who polls for it only takes it in smaller pieces, in the way of the sender.
    Anything,
}

/// Of a connection on which nothing was sent, what comes up to here, in bytes, is a request and no stream.
pub(super) const UNASKED: u64 = 128 << 10;

const AWAITED: u32 = 1;
const EMPTIED: u32 = 2;

/// What a question to the kernel is to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// What a read says: an end may lie behind a doorbell.
    Once,
    /// Whether the connection has ended.
    ToTheEnd,
}

const ASK_EACH: u32 = 32;
const STREAK: u32 = 4;
const TRICKLE: u32 = 16;
/// Where `trickle` has a count up to [`TRICKLE`]; the rest is how often something had been sent.
const LITTLE: u32 = 31;
const TRICKLE_MAX: usize = 16 << 10;
/// A call that took so long slept.
const SLEPT_NS: u64 = 4_000;
