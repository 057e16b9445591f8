//! When what is posted is written.

use std::time::{Duration, Instant};

/// Whether a post is written at once, or with what comes next; and how much of a message goes with its first system call.
///
/// TCP carries a byte in less time the more a call brings, and most of that time is the sender's: four messages of 64 kB with one call
/// leave a fifth sooner than with four. So a stream of long messages is gathered, up to [`GATHERED_MAX`], until its owner
/// looks at the VI, which is when a write can no longer be put off: it waits for something. An owner that does not look is
/// overtaken by the agent, within its tick.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The peer answers, or is answered: between the last two arrivals no more than one long work was posted, and none since.
    is_dialogue: bool,
    /// Long works that have been posted since something came.
    unanswered: u32,
    /// Payload is copied between markers.
    is_copied: bool,
    /// Works, and their octets, that have been posted since the last write.
    works: u32,
    octets: u64,
    /// The last of them is short: whoever posts it is done, and may wait for the answer.
    is_short: bool,
    /// When the last long one was posted, and whether the one before it was posted just then.
    posted: Option<Instant>,
    is_burst: bool,
}

impl Pace {
    pub(crate) fn new(is_copied: bool) -> Self {
        Self {
            is_dialogue: true,
            unanswered: 0,
            is_copied,
            works: 0,
            octets: 0,
            is_short: true,
            posted: None,
            is_burst: false,
        }
    }

    /// A work with so many octets of payload was posted; `now` is asked for if it is long.
    pub(crate) fn handle_posted(&mut self, octets: u64, now: impl FnOnce() -> Instant) {
        self.works += 1;
        self.octets += octets;
        self.is_short = octets < LONG_MIN.into();
        if !self.is_short {
            let now = now();
            let last = self.posted.replace(now);
            self.is_burst = last.is_some_and(|last| now.saturating_duration_since(last) < BURST);
            self.unanswered = self.unanswered.saturating_add(1);
        }
    }

    /// Something has come.
    pub(crate) fn handle_arrival(&mut self) {
        self.is_dialogue = self.unanswered <= 1;
        self.unanswered = 0;
    }

    /// A write took so many octets: what follows something long is no part of a dialogue.
    pub(crate) fn handle_written(&mut self, octets: usize) {
        self.is_dialogue &= octets < LONG_MIN as usize;
    }

    /// All that has been posted is being written.
    pub(crate) fn handle_gathered(&mut self) {
        (self.works, self.octets) = (0, 0);
    }

    /// Whether something has been posted since.
    pub(crate) fn has_posted(&self) -> bool {
        self.works > 0
    }

    /// Whether what has been posted had better wait for more.
    pub(crate) fn gathers(&self) -> bool {
        !self.is_dialogue && self.is_burst && !self.is_short && self.octets < GATHERED_MAX
    }

    /// [`Engine::set_alone_min`](proto::rdmap::Engine::set_alone_min): who waits for the whole of a message gets it sooner if it takes the
    /// first part while the rest is on its way; a stream does better with fewer calls, unless it is copied between markers: then each
    /// segment is to be in the cache yet.
    pub(crate) fn alone_min(&self) -> u32 {
        if self.is_copied || (self.is_dialogue && self.works <= 1) {
            LONG_MIN
        } else {
            u32::MAX
        }
    }
}

/// Octets of a message that is long.
pub(crate) const LONG_MIN: u32 = 24 << 10;
/// One who posts again so soon will do so once more; 64 kB take TCP 12 µs.
const BURST: Duration = Duration::from_micros(200);
/// Octets that are written without waiting for more.
const GATHERED_MAX: u64 = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: u64 = 64 << 10;

    fn post(pace: &mut Pace, octets: u64) -> bool {
        let last = pace.posted.unwrap_or_else(Instant::now);
        post_at(pace, octets, last + BURST / 10)
    }

    fn post_at(pace: &mut Pace, octets: u64, now: Instant) -> bool {
        pace.handle_posted(octets, || now);
        let gathers = pace.gathers();
        if !gathers {
            pace.handle_written(pace.octets as usize);
            pace.handle_gathered();
        }
        gathers
    }

    #[test]
    fn a_stream_of_long_messages_is_gathered() {
        let mut pace = Pace::new(false);
        assert!(!post(&mut pace, LONG), "nobody knows yet");
        let gathered: Vec<_> = (0..8).map(|_| post(&mut pace, LONG)).collect();
        assert_eq!(gathered, [true, true, true, false, true, true, true, false]);
        assert!(post(&mut pace, LONG) && pace.has_posted());
        assert!(!post(&mut pace, 64), "and it takes with it what waits");
        assert!(!pace.has_posted());
        // What says that there is room is no answer.
        pace.handle_arrival();
        assert!(post(&mut pace, LONG));
    }

    #[test]
    fn what_comes_now_and_then_leaves_at_once() {
        let mut pace = Pace::new(false);
        let mut now = Instant::now();
        for _ in 0..5 {
            assert!(!post_at(&mut pace, LONG, now));
            now += BURST;
        }
        assert!(post(&mut pace, LONG));
    }

    #[test]
    fn answers_leave_at_once_and_in_parts() {
        let mut pace = Pace::new(false);
        for _ in 0..3 {
            pace.handle_arrival();
            assert_eq!(pace.alone_min(), LONG_MIN);
            assert!(!post(&mut pace, LONG));
        }
        assert!(!post(&mut pace, 64), "what is short never waits");
        assert_eq!(pace.alone_min(), u32::MAX);
    }
}
