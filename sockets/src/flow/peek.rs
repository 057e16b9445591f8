//! Looks that take nothing (`MSG_PEEK`): who waits until he sees enough is to see it, also where it lies partly on TCP and partly on the ring.

use std::io::IoSliceMut;

use super::back::back_at;
use super::tcp::TOGETHER;
use super::{BEFORE, Flow, ON_RING, Stop, Take};
use crate::kernel::Kernel;

impl Flow {
    /// As [`Flow::receive`], for what [leaves](Take::leaves) the bytes where they are.
    #[cold]
    pub(super) fn look(
        &self,
        kernel: &impl Kernel,
        into: &mut [IoSliceMut<'_>],
        take: Take,
    ) -> Result<usize, Stop> {
        let shown = self.receive_here(kernel, into, take)?;
        let room = match take {
            Take::Count(most) => most,
            _ => into.iter().map(|buffer| buffer.len()).sum(),
        };
        if shown == 0 || shown >= room {
            return Ok(shown);
        }
        // What is wrong the call finds that takes the bytes.
        Ok(shown + self.look_on(kernel, into, take, shown).unwrap_or(0))
    }

    /// Goes on behind the `shown` bytes where those were all of TCP's before the ring, or all of the ring's before TCP.
    fn look_on(
        &self,
        kernel: &impl Kernel,
        into: &mut [IoSliceMut<'_>],
        take: Take,
        shown: usize,
    ) -> Result<usize, Stop> {
        let rx = self.stream.rx();
        match (rx.phase(), rx.to_ring(), back_at(rx)) {
            (BEFORE, Some(end), _) if self.taken_in_all(kernel)? + shown as u64 == end => {
                if let Take::Count(most) = take {
                    return Ok(rx.available()?.min(most - shown));
                }
                let head = rx.head();
                let mut at = head;
                let mut rest = pieces(into, shown, usize::MAX);
                for room in used(&mut rest) {
                    let n = rx.peek(at, room)?;
                    at = at.wrapping_add(n as u64);
                    if n < room.len() {
                        break;
                    }
                }
                // A handler may have taken meanwhile what was looked at.
                let (is_there, _) = rx.take(head, head);
                let still = is_there && rx.phase() == BEFORE;
                Ok(if still {
                    at.wrapping_sub(head) as usize
                } else {
                    0
                })
            }
            (ON_RING, _, Some(end)) if rx.available()? == shown => {
                self.drain(kernel)?;
                let bells_are_off = self.taken_in_all(kernel)? == end && rx.available()? == shown;
                if !bells_are_off || kernel.is_at_mark() {
                    return Ok(0);
                }
                if let Take::Count(most) = take {
                    return Ok(kernel.queued()?.min(most - shown));
                }
                let mut rest = pieces(into, shown, usize::MAX);
                Ok(self.hear(kernel.peek_pieces(used(&mut rest)))?)
            }
            _ => Ok(0),
        }
    }

    /// What TCP shows, `limit` bytes at most: one call, for a second would see the same bytes again.
    pub(super) fn peek_on_tcp(
        &self,
        kernel: &impl Kernel,
        into: &mut [IoSliceMut<'_>],
        limit: usize,
    ) -> Result<usize, Stop> {
        let mut rooms = pieces(into, 0, limit);
        match used(&mut rooms) {
            [] => Ok(0),
            rooms => Ok(self.hear(kernel.peek_pieces(rooms))?),
        }
    }
}

/// The buffers from byte `skip` on, for `limit` bytes at most; what needs more pieces is looked at in part.
fn pieces<'a>(
    into: &'a mut [IoSliceMut<'_>],
    mut skip: usize,
    mut limit: usize,
) -> [IoSliceMut<'a>; TOGETHER] {
    let mut rest = into.iter_mut().filter_map(|buffer| {
        let from = skip.min(buffer.len());
        skip -= from;
        let to = from + limit.min(buffer.len() - from);
        limit -= to - from;
        buffer.get_mut(from..to).filter(|room| !room.is_empty())
    });
    std::array::from_fn(|_| IoSliceMut::new(rest.next().unwrap_or_default()))
}

/// Those of them that have room.
fn used<'a, 'b>(pieces: &'a mut [IoSliceMut<'b>]) -> &'a mut [IoSliceMut<'b>] {
    let end = pieces.iter().position(|room| room.is_empty());
    let end = end.unwrap_or(pieces.len());
    pieces.get_mut(..end).unwrap_or_default()
}
