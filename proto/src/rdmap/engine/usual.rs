//! Messages of which nothing has come yet, straight to the receives that wait for them: as long as those before.

use super::super::incoming::{Incoming, Kind};
use super::guess::{GUESSES_MAX, Guess, LONG_MIN, SEAM_MAX, seam};
use super::{Engine, State};
use crate::ddp::UNTAGGED_LEN;

/// What the last messages had in common.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usual {
    /// Octets of the last one.
    len: u32,
    /// Octets of the first of its segments.
    cut: u32,
    /// So many behind it were like it.
    times: u32,
    /// So many have to be, twice as many behind each guess that was wrong.
    doubts: u32,
    /// Octets of the first segment of the message that is coming.
    begun: u32,
    /// Messages behind the next one that are worth a guess, as they come faster than they are read.
    more: usize,
}

impl Usual {
    /// A segment is in its place.
    pub(super) fn handle_placed(&mut self, incoming: &Incoming) {
        match incoming.kind {
            Kind::Send(_, header) if header.mo == 0 => self.begun = incoming.payload_len,
            Kind::Send(..) => {}
            _ => self.interrupt(),
        }
    }

    /// A message has come.
    #[inline]
    pub(super) fn learn(&mut self, len: u32) {
        if (len, self.begun) == (self.len, self.cut) {
            self.times = self.times.saturating_add(1);
            if self.times > DOUBTS_MAX {
                self.doubts = 0;
            }
        } else {
            (self.len, self.cut, self.times) = (len, self.begun, 0);
        }
    }

    /// A message of one segment has come.
    #[inline]
    pub(super) fn learn_whole(&mut self, len: u32) {
        self.begun = len;
        self.learn(len);
    }

    /// Something else has come, so that nobody knows what is next.
    pub(super) fn interrupt(&mut self) {
        self.times = 0;
    }

    /// A guess was wrong.
    pub(super) fn doubt(&mut self) {
        self.times = 0;
        self.more = 0;
        self.doubts = (2 * self.doubts + 1).min(DOUBTS_MAX);
    }

    #[inline]
    fn is_steady(&self) -> bool {
        self.times > self.doubts
    }

    /// Whether messages come faster than they are read.
    pub(super) fn is_flowing(&self) -> bool {
        self.more > 0 && self.is_steady()
    }

    /// The octets of the next message, if it comes in one segment and hardly together with others.
    #[inline]
    fn lone(&self) -> Option<u32> {
        (self.is_steady() && self.more == 0 && self.cut == self.len).then_some(self.len)
    }

    /// A read found so many octets, for which there was room behind the `ahead` of a segment.
    pub(super) fn handle_read(&mut self, n: usize, ahead: u32, guesses: &[Guess]) {
        if guesses.is_empty() {
            return;
        }
        let guessed: usize = guesses.iter().map(|g| g.seam + g.len as usize).sum();
        let room = ahead as usize + guessed + SEAM_MAX;
        if n >= room {
            self.more = (2 * self.more + 1).min(GUESSES_MAX);
        } else if n < room / 2 {
            self.more /= 2;
        }
    }
}

impl Engine {
    /// Whether nothing is under way, and what comes next may go to its place.
    pub(super) fn may_guess_next(&self) -> bool {
        self.usual.is_steady()
            && self.config.guess_max > 0
            && self.deframer.is_between()
            && self.strays.is_empty()
            && !self.blocked
            && !self.fin
            && self.may_place_ahead()
    }

    /// Guesses where messages go, from the `first` on, of which `before` octets precede the next segment.
    pub(super) fn guess_messages(&mut self, first: usize, before: usize) {
        let usual = self.usual;
        // One that is long takes a read of its own anyway.
        let last = match usual.len {
            len if len < LONG_MIN => usual.more,
            _ => 0,
        };
        let mut before = before;
        let mut total = 0;
        for n in first..=last {
            let Some((into, capacity, done)) = self.inbound.vacancy(n) else {
                return;
            };
            if usual.len > capacity || done % usual.cut.max(1) != 0 {
                return;
            }
            let mut at = done;
            while at < usual.len {
                let len = usual.cut.min(usual.len - at);
                total += len;
                let is_short = len < self.config.ahead_min.into();
                if is_short || total > self.config.guess_max || self.guesses.len() >= GUESSES_MAX {
                    return;
                }
                self.guesses.push(Guess {
                    seam: before,
                    place: into.advanced(at.into()),
                    len,
                });
                before = seam(UNTAGGED_LEN, len);
                at += len;
            }
        }
    }

    /// The octets of the next message, if it should be one segment, and nothing is under way: it [may](Self::take_lone) be read by itself.
    #[inline]
    pub fn expects_lone(&self) -> Option<u32> {
        let len = self.usual.lone()?;
        let is_plain = self.state == State::Open
            && len >= self.config.ahead_min.into()
            && self.diversion.is_none()
            && self.actions.is_empty();
        (is_plain && self.may_guess_next()).then_some(len)
    }
}

/// Octets before the payload of a Send, where no markers are: its length and its header.
pub const SEND_LEAD: usize = 2 + UNTAGGED_LEN;
const DOUBTS_MAX: u32 = 63;
