//! Octets from the socket: payload to its place, the rest to the engine.

use std::io::{self, ErrorKind, IoSliceMut};
use std::os::fd::OwnedFd;

use proto::mpa::Crc;
use proto::rdmap::{Ahead, GUESSES_MAX, Guess, SEAM_MAX, SEND_LEAD, WorkId};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use sys::mem::Memory;
use sys::vectored::{self, Run};
use via::soft::{Ground, Look};

use super::{IwarpLink, now};
use crate::runs::{Leg, Scatter};

impl IwarpLink {
    /// Reads the socket once: the payload of a long message to its place, what else comes into the engine's space.
    /// How many octets came.
    pub(super) fn read(&mut self, ground: &mut Ground<'_>) -> usize {
        // Once only: whoever polls comes again, and whoever sleeps is woken by what came meanwhile.
        if self.is_ended {
            return 0;
        }
        let read = if let Some(read) = self.looked.take() {
            read
        } else if let Some(n) = self.guessed.take() {
            let seams = self.seams.as_deref().map_or(&[][..], |seams| seams);
            self.engine.handle_guessed(n, seams, ground, now());
            Ok(Some(n))
        } else if std::mem::take(&mut self.is_drained) {
            Ok(None)
        } else if self.engine.is_inside_segment() {
            match self.engine.ahead(ground, now()) {
                Some(ahead) => self.read_ahead(Some(ahead), ground),
                None => self.read_space(),
            }
        } else {
            self.read_ahead(None, ground)
        };
        match read {
            Ok(None) => 0,
            Ok(Some(0)) => {
                self.is_ended = true;
                self.engine.handle_fin(ground, now());
                0
            }
            Ok(Some(n)) => n,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                0
            }
            Err(_) => {
                self.is_ended = true;
                self.engine.handle_reset(now());
                0
            }
        }
    }

    /// Reads where nothing has begun, for a short message. What came, or the end, is the next read's answer.
    #[inline(always)]
    pub(super) fn read_short(&mut self) -> Look {
        if self.has_looked() {
            return Look::Unclear;
        }
        let Some(space) = self.engine.space_short() else {
            return Look::Unclear;
        };
        let room = space.len();
        match rustix::net::recv(self.wire.tcp(), space, RecvFlags::DONTWAIT) {
            Ok((_, n)) => {
                self.is_drained = n < room;
                self.engine.handle_filled(n);
                self.looked = Some(Ok(Some(n)));
                if n > 0 { Look::Came } else { Look::Unclear }
            }
            Err(Errno::AGAIN | Errno::INTR) => Look::Nothing,
            Err(error) => {
                self.looked = Some(Err(error.into()));
                Look::Unclear
            }
        }
    }

    /// Reads the message that is expected next to where it belongs. What came, if that is not the message, or the end, is the next read's answer.
    #[inline]
    pub(super) fn read_lone(&mut self, id: WorkId, len: u32, into: (&Memory, usize)) -> Look {
        if self.has_looked() || !self.engine.awaits_lone(id, len) {
            return Look::Unclear;
        }
        let (memory, offset) = into;
        let len_here = len as usize;
        let run = Run {
            memory,
            offset,
            len: len_here,
        };
        let seams = self.seams.get_or_insert_with(|| Box::new([0; SEAMS]));
        let (first, rest) = seams.split_at_mut(SEAM_MAX);
        let before = first.get_mut(..SEND_LEAD).unwrap_or_default();
        let behind = rest.get_mut(..SEAM_MAX).unwrap_or_default();
        match vectored::receive_around(self.wire.tcp(), before, run, behind) {
            Ok(0) => {
                self.looked = Some(Ok(Some(0)));
                Look::Unclear
            }
            Ok(n) => {
                let digest = |crc: &mut Crc| memory.digest(offset, len_here, crc.as_mut()).is_ok();
                if self.engine.take_lone(id, len, n, &seams[..], digest) {
                    self.pace.handle_arrival();
                    return Look::Came;
                }
                self.is_drained = n < SEND_LEAD + len_here + SEAM_MAX;
                self.guessed = Some(n);
                Look::Unclear
            }
            Err(Errno::AGAIN | Errno::INTR) => Look::Nothing,
            // The general way knows what follows from that.
            Err(Errno::INVAL) => Look::Unclear,
            Err(error) => {
                self.looked = Some(Err(error.into()));
                Look::Unclear
            }
        }
    }

    /// Whether there is nothing to be read, or something to be handled first.
    #[inline(always)]
    fn has_looked(&self) -> bool {
        self.is_ended || self.is_drained || self.looked.is_some() || self.guessed.is_some()
    }

    /// `None` when there is no room.
    fn read_space(&mut self) -> io::Result<Option<usize>> {
        let [first, second] = self.engine.space();
        let room = first.len() + second.len();
        let read = match (first.is_empty(), second.is_empty()) {
            (true, true) => return Ok(None),
            (false, true) => {
                let (read, _) = rustix::net::recv(self.wire.tcp(), first, RecvFlags::DONTWAIT)?;
                read
            }
            _ => {
                let mut space = [IoSliceMut::new(first), IoSliceMut::new(second)];
                rustix::io::readv(self.wire.tcp(), &mut space)?
            }
        };
        self.is_drained = read < room;
        self.engine.handle_filled(read);
        Ok(Some(read))
    }

    /// Reads to where the next octets belong, or, where nothing is under way, should belong.
    fn read_ahead(
        &mut self,
        ahead: Option<Ahead>,
        ground: &mut Ground<'_>,
    ) -> io::Result<Option<usize>> {
        let guesses = self.engine.guess(ground);
        let has_guessed = !guesses.is_empty();
        if ahead.is_none() && !has_guessed {
            return self.read_space();
        }
        let payload = ahead.into_iter().map(Leg::Payload);
        let seams = match has_guessed {
            true => &mut **self.seams.get_or_insert_with(|| Box::new([0; SEAMS])),
            false => &mut [][..],
        };
        let (read, room) = if has_guessed {
            let (slots, last) = seams.split_at_mut(SEAM_MAX * guesses.len());
            let slots = slots.chunks_mut(SEAM_MAX).zip(guesses);
            let guessed = slots.flat_map(|(slot, &Guess { seam, place, len })| {
                let seam = slot.get_mut(..seam).unwrap_or_default();
                [Leg::Own(seam), Leg::Payload(Ahead { place, len })]
            });
            let behind = last.chunks_mut(SEAM_MAX).take(1).map(Leg::Own);
            scatter(
                self.wire.tcp(),
                payload.chain(guessed).chain(behind),
                ground,
            )
        } else {
            let space = self.engine.space().into_iter().map(Leg::Own);
            scatter(self.wire.tcp(), payload.chain(space), ground)
        };
        let read = match read {
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                return match ahead {
                    Some(ahead) => self.read_aside(ahead, ground),
                    None => self.read_space(),
                };
            }
            read => read?,
        };
        self.is_drained = read < room;
        let Some(ahead) = ahead.filter(|_| !has_guessed) else {
            self.engine.handle_guessed(read, seams, ground, now());
            return Ok(Some(read));
        };
        let placed = read.min(ahead.len as usize);
        self.engine.handle_ahead(placed as u32, ground, now());
        self.engine.handle_filled(read - placed);
        Ok(Some(read))
    }

    /// Reads payload whose place is no memory, or none any more: the engine knows what follows from that.
    fn read_aside(&mut self, ahead: Ahead, ground: &mut Ground<'_>) -> io::Result<Option<usize>> {
        let mut aside = [0; ASIDE];
        let aside = aside
            .get_mut(..ASIDE.min(ahead.len as usize))
            .unwrap_or_default();
        let (read, _) = rustix::net::recv(self.wire.tcp(), &mut *aside, RecvFlags::DONTWAIT)?;
        let octets = aside.get(..read).unwrap_or_default();
        self.engine.handle_ahead_octets(octets, ground, now());
        Ok(Some(read))
    }
}

/// Receives once: what came, and how much there was room for.
fn scatter<'s>(
    tcp: &OwnedFd,
    legs: impl Iterator<Item = Leg<'s>>,
    ground: &Ground<'_>,
) -> (io::Result<usize>, usize) {
    let mut scatter = Scatter::new(legs, ground);
    let read = vectored::receive(tcp, &mut scatter);
    (read, scatter.room())
}

/// Octets of a slot before each guess, and of one behind the last.
pub(super) const SEAMS: usize = SEAM_MAX * (GUESSES_MAX + 1);
/// Octets that are read at once where they belong nowhere.
const ASIDE: usize = 4 << 10;
