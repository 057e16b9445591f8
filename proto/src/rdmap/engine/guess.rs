//! Several segments of a message with one read: those behind the one that is on its way, where they should belong.
//!
//! Only a header says how long a segment is and where it belongs, and it comes behind the payload of the segment before it. A read for each
//! segment costs a stream of long messages a third of its throughput, and what is read together with a header has to be copied. So the places are
//! guessed: segments of one message have one length, and messages are as long as those before them. A guess is written only to memory that is the message's alone (a receive that is not complete, the
//! sink of a Read, what nobody [sees](crate::ddp::Memory::unseen) yet of a Write's), behind all that has come of it; what a wrong one put there is taken out again, and goes the ordinary way.

use std::time::Duration;

use super::super::inbound::Way;
use super::super::incoming::{Incoming, Kind};
use super::Engine;
use super::usual::SEND_LEAD;
use crate::ddp::{DdpError, Memory, TAGGED_LEN, UNTAGGED_LEN};
use crate::mpa::{Place, fpdu_len};

/// Where octets behind those that [`Engine::ahead`] told of should belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guess {
    /// So many come before them, which are no payload: the end of a segment, and the header of the next.
    pub seam: usize,
    /// The payload's place.
    pub place: Place,
    /// Its octets.
    pub len: u32,
}

/// How long the messages of a stream are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Habit {
    last: u32,
    /// The one before was as long.
    is_steady: bool,
}

impl Habit {
    /// A message of so many octets has come. Short ones among long ones say nothing.
    pub(super) fn learn(&mut self, len: u32) {
        if len >= LONG_MIN {
            self.is_steady = len == self.last;
            self.last = len;
        }
    }

    /// How many octets should follow the first `done` of a message, and whether it should end behind them.
    fn rest(self, done: u32) -> (u32, bool) {
        if self.is_steady && done < self.last {
            (self.last - done, true)
        } else {
            // What has been long for so long goes on for a while.
            (done / 4, false)
        }
    }
}

/// Octets that were read to places where they do not belong, and come next.
#[derive(Debug, Default)]
pub(super) struct Strays {
    octets: Vec<u8>,
    /// So many of them have gone their way.
    done: usize,
}

impl Strays {
    pub(super) fn is_empty(&self) -> bool {
        self.done == self.octets.len()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Engine {
    /// Where what follows the octets of [`ahead`](Self::ahead), which has just been asked, should belong; or, where it is not asked as
    /// [nothing](Self::is_inside_segment) is under way, what comes next. To be read with the same call, each guess behind a slot of [`SEAM_MAX`] octets of
    /// which [`Guess::seam`] are filled, and one more slot, filled entirely, behind the last. Then say [how much](Self::handle_guessed) came. Without a
    /// guess there is only the [`space`](Self::space).
    pub fn guess(&mut self, memory: &impl Memory) -> &[Guess] {
        self.guesses.clear();
        match self.diversion {
            Some(diversion) => self.guess_behind(&diversion.incoming, memory),
            None if self.may_guess_next() => self.guess_messages(0, SEND_LEAD),
            None => {}
        }
        &self.guesses
    }

    fn guess_behind(&mut self, incoming: &Incoming, memory: &impl Memory) {
        let len = incoming.payload_len;
        let (header_len, rest, is_end) = match incoming.kind {
            Kind::Send(_, header) if !header.last => {
                let free = self.inbound.free_behind(&header, len);
                let (rest, is_end) = self.habit.rest(header.mo.saturating_add(len));
                (UNTAGGED_LEN, rest.min(free), is_end)
            }
            Kind::Send(..) if self.usual.is_flowing() => {
                return self.guess_messages(1, seam(UNTAGGED_LEN, len));
            }
            Kind::ReadResponse(header) if !header.last => {
                let left = self.outbound.outstanding().left();
                (TAGGED_LEN, left.saturating_sub(len), true)
            }
            Kind::Write(header) if !header.last => {
                let behind = header.to.saturating_add(len.into());
                let free = u32::try_from(memory.unseen(header.stag, behind)).unwrap_or(u32::MAX);
                let (rest, is_end) = self.habit.rest(self.written.saturating_add(len));
                (TAGGED_LEN, rest.min(free), is_end)
            }
            _ => return,
        };
        if len < LONG_MIN {
            return;
        }
        let way = self.inbound.way(incoming, &self.outbound, memory);
        let Ok(Way::To(place)) = way else {
            return;
        };
        // The next is taken to be as long.
        let seam = seam(header_len, len);
        let most = self.config.guess_max.min(rest);
        let mut at = 0;
        while at < most && self.guesses.len() < GUESSES_MAX {
            let next = len.min(rest - at);
            if next < len && !is_end {
                break;
            }
            self.guesses.push(Guess {
                seam,
                place: place.advanced(u64::from(len) + u64::from(at)),
                len: next,
            });
            at += next;
        }
    }

    /// `n` octets have been read to where [`ahead`](Self::ahead) said, to the slots of `seams` and to where the guesses said.
    pub fn handle_guessed(
        &mut self,
        n: usize,
        seams: &[u8],
        memory: &mut impl Memory,
        now: Duration,
    ) {
        let guesses = std::mem::take(&mut self.guesses);
        let ahead = self.diversion.map_or(0, |diversion| diversion.left());
        self.usual.handle_read(n, ahead, &guesses);
        let first = n.min(ahead as usize);
        self.handle_ahead(first as u32, memory, now);
        let mut left = n - first;
        let mut behind = guesses.iter();
        let mut is_right = true;
        for slot in seams.chunks(SEAM_MAX) {
            let guess = behind.next();
            let seam = guess.map_or(slot.len(), |guess| guess.seam).min(left);
            let seam = slot.get(..seam).unwrap_or(slot);
            left -= seam.len();
            // Else the segment before it is longer than was thought.
            is_right &= self.deframer.diverted_left() == 0;
            if is_right {
                self.handle_octets(seam);
                self.handle_arrivals(memory, now);
            } else if !seam.is_empty() {
                self.usual.doubt();
                self.strays.octets.extend_from_slice(seam);
            }
            let Some(guess) = guess.filter(|_| left > 0) else {
                break;
            };
            let come = left.min(guess.len as usize) as u32;
            left -= come as usize;
            let right = match self.ahead(memory, now).filter(|_| is_right) {
                Some(ahead) if ahead.place == guess.place => come.min(ahead.len),
                _ => 0,
            };
            if right > 0 {
                self.handle_ahead(right, memory, now);
            }
            if right < come {
                is_right = false;
                self.usual.doubt();
                self.stray(
                    guess.place.advanced(right.into()),
                    come - right,
                    memory,
                    now,
                );
            }
        }
        self.guesses = guesses;
        self.handle_strays(memory, now);
    }

    /// A segment of an RDMA Write, perhaps, is in its place.
    pub(super) fn learn_write(&mut self, incoming: &Incoming) {
        if let Kind::Write(header) = incoming.kind {
            self.written = self.written.saturating_add(incoming.payload_len);
            if header.last {
                self.habit.learn(std::mem::take(&mut self.written));
            }
        }
    }

    /// Takes octets out of a place where they do not belong.
    fn stray(&mut self, place: Place, len: u32, memory: &impl Memory, now: Duration) {
        let at = self.strays.octets.len();
        self.strays.octets.resize(at + len as usize, 0);
        let room = self.strays.octets.get_mut(at..).unwrap_or_default();
        if memory.copy(place, room).is_err() {
            self.violate(DdpError::Local.into(), now);
        }
    }

    /// What strayed goes the ordinary way, as far as it can now.
    pub(super) fn handle_strays(&mut self, memory: &mut impl Memory, now: Duration) {
        let mut strays = std::mem::take(&mut self.strays);
        while self.state.receives() && !self.blocked {
            let octets = strays.octets.get(strays.done..).unwrap_or_default();
            if octets.is_empty() {
                break;
            }
            let taken = match self.ahead(memory, now) {
                Some(ahead) => {
                    let octets = octets.get(..ahead.len as usize).unwrap_or(octets);
                    self.handle_ahead_octets(octets, memory, now);
                    octets.len()
                }
                None => self.handle_octets(octets),
            };
            strays.done += taken;
            self.carry_out(memory, now);
            if taken == 0 {
                break;
            }
        }
        if strays.is_empty() || !self.state.receives() {
            strays.clear();
        }
        self.strays = strays;
    }
}

/// Octets between the payloads of two segments: pad, checksum, and the length and header of the next.
pub(super) fn seam(header_len: usize, payload_len: u32) -> usize {
    let ulpdu_len = header_len + payload_len as usize;
    fpdu_len(ulpdu_len) - ulpdu_len + header_len
}

/// Octets of a slot between two guesses: no seam is longer, and behind the last one the header of the next message fits.
pub const SEAM_MAX: usize = 64;
/// Guesses of one read.
pub const GUESSES_MAX: usize = 15;
/// A message, or a segment, of so many octets is long: shorter ones are copied from the space in less time.
pub(super) const LONG_MIN: u32 = 16 << 10;
