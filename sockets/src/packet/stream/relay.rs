//! A stream whose bytes go through the pair of Unix sockets at the program's number: `packet::relay` moves them.

use std::sync::Arc;

use sys::errno::Errno;

use super::Stream;
use crate::packet::show::Show;
use crate::packet::wait::Wait;

/// What the program gets that has a call under way when the relay begins: by the kernel now. The kernel gives it to nobody.
pub const BY_KERNEL: Errno = Errno::RESTART;

/// Directions that the program has shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::packet) struct Shut {
    pub(in crate::packet) input: bool,
    pub(in crate::packet) output: bool,
}

/// What has become of what came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::packet) enum Poured {
    /// All has been taken.
    All,
    /// Some is left.
    Part,
    /// All, and no more will come.
    End,
    /// All that comes in packets; `end` where nothing comes by another way either, `lost` where whom one might ask for that way is gone.
    Moved { end: bool, lost: bool },
    /// The connection broke.
    Broken(Option<Errno>),
}

impl Stream {
    /// From now on no call of the program's moves a byte, and whoever waits in one gets [`BY_KERNEL`]. `open` makes of the stand-in what will carry them; it is
    /// called once, before anything is shown there. Which directions the program has shut down; `None` if it is relayed already, or the program has closed it.
    ///
    /// # Errors
    /// Those of `open`.
    pub(in crate::packet) fn begin_relay<E>(
        self: &Arc<Self>,
        show: &Show,
        open: impl FnOnce() -> Result<(), E>,
    ) -> Result<Option<Shut>, E> {
        let mut inner = self.lock();
        if inner.is_relayed || inner.is_closing {
            return Ok(None);
        }
        while self.take_in(&mut inner) {}
        open()?;
        inner.is_relayed = true;
        inner.peek_offset = None;
        self.show_by(&mut inner, show);
        let shut = Shut {
            input: inner.is_shut,
            output: inner.is_ending,
        };
        self.ring(inner);
        Ok(Some(shut))
    }

    /// Gives what has come to `sink`, which says how much it took, and whether a byte is urgent. `room` is scratch.
    pub(in crate::packet) fn pour(
        &self,
        room: &mut [u8],
        mut sink: impl FnMut(&[u8], bool) -> usize,
    ) -> Poured {
        let mut inner = self.lock();
        while self.take_in(&mut inner) {}
        while !inner.arrived.is_empty() {
            if let Some(byte) = inner.urgent() {
                if sink(&[byte], true) == 0 {
                    return Poured::Part;
                }
                self.pass_urgent(&mut inner);
                continue;
            }
            let Ok(seen) = self.see(&inner, room) else {
                self.lose(&mut inner);
                break;
            };
            let bytes = room.get(..seen).unwrap_or_default();
            let taken = sink(bytes, false).min(seen);
            let given = room.get_mut(..taken).unwrap_or_default();
            self.read(&mut inner, given);
            let more = !inner.arrived.is_empty();
            inner.tally.took(taken, true, more);
            if taken < seen {
                return Poured::Part;
            }
        }
        if inner.talk.is_moved() {
            Poured::Moved {
                end: inner.ended,
                lost: inner.lost,
            }
        } else if inner.ended {
            Poured::End
        } else if inner.lost {
            Poured::Broken(inner.error)
        } else {
            Poured::All
        }
    }

    /// Sends as many bytes as there is room for.
    ///
    /// # Errors
    /// As [`Stream::send`].
    pub(in crate::packet) fn push(self: &Arc<Self>, bytes: &[u8]) -> Result<usize, Errno> {
        self.give(bytes, false, true, &|| Wait::Not)
    }

    /// As [`Stream::push`], of an urgent byte.
    pub(in crate::packet) fn push_urgent(self: &Arc<Self>, byte: u8) -> Result<(), Errno> {
        self.urge(byte, true, &|| Wait::Not)
    }
}
