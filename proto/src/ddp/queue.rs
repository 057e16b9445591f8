//! A queue for untagged messages: buffers in, messages out.

use std::collections::VecDeque;

use super::error::DdpError;
use super::extents::Extents;
use super::header::{Msn, Untagged};

/// What order segments come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Over MPA on an ordered stream: a message begins only when the one before is complete, and
    /// none comes again. Segments of one message may still be in any order.
    Ordered,
    /// Any, and repeatedly.
    Any,
}

/// The buffers of one queue, and what has come into them.
///
/// Each message takes the buffer that was posted for its number. [`spot`](Self::spot) says where a
/// segment belongs, [`handle_placed`](Self::handle_placed) that it is there, and
/// [`deliver`](Self::deliver) hands out complete messages in their order, each once.
#[derive(Debug)]
pub struct Queue<B> {
    arrival: Arrival,
    first: Msn,
    slots: VecDeque<Slot<B>>,
}

#[derive(Debug)]
struct Slot<B> {
    buffer: B,
    capacity: u32,
    come: Extents,
    /// Octets of the message, once its last segment has come.
    total: Option<u32>,
}

impl<B> Slot<B> {
    fn is_complete(&self) -> bool {
        self.total
            .is_some_and(|total| self.come.covers(total.into()))
    }
}

/// Where a segment belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spot<B> {
    /// In this buffer, at the segment's message offset.
    In(B),
    /// Nowhere: its message has been delivered already.
    Delivered,
}

/// A message that is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivered<B> {
    /// Where it is.
    pub buffer: B,
    /// Its octets.
    pub len: u32,
}

impl<B: Copy> Queue<B> {
    /// Without a buffer; the next message is number `first`.
    #[must_use]
    pub fn new(arrival: Arrival, first: Msn) -> Self {
        Self {
            arrival,
            first,
            slots: VecDeque::new(),
        }
    }

    /// A buffer of `capacity` octets for the next message that has none.
    pub fn post(&mut self, buffer: B, capacity: u32) {
        self.slots.push_back(Slot {
            buffer,
            capacity,
            come: Extents::default(),
            total: None,
        });
    }

    /// How many buffers have no message yet, or not all of it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is no buffer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The number of the message that will be delivered next.
    #[must_use]
    pub fn next_msn(&self) -> Msn {
        self.first
    }

    /// The next message takes no buffer: it has come, and was for nobody.
    pub fn skip(&mut self) {
        self.first = self.first.plus(1);
    }

    /// Takes the buffers back that are left.
    pub fn drain(&mut self) -> impl Iterator<Item = B> + '_ {
        self.slots.drain(..).map(|slot| slot.buffer)
    }

    fn index(&self, msn: Msn) -> Result<Option<usize>, DdpError> {
        let ahead = msn.since(self.first);
        match self.arrival {
            Arrival::Any if ahead >= 1 << 31 => Ok(None),
            Arrival::Ordered if ahead != 0 => {
                let current = self.slots.front();
                let missing = current.is_some_and(|slot| slot.total.is_some());
                // The last segment came, others did not, and the next message is here.
                Err(if missing && ahead == 1 {
                    DdpError::InvalidOffset
                } else {
                    DdpError::MsnRange
                })
            }
            Arrival::Ordered | Arrival::Any => Ok(Some(ahead as usize)),
        }
    }

    /// Where a segment with `len` octets of payload belongs. Changes nothing.
    ///
    /// # Errors
    /// The [`DdpError`] of the peer's if nowhere.
    pub fn spot(&self, header: &Untagged, len: u32) -> Result<Spot<B>, DdpError> {
        let Some(index) = self.index(header.msn)? else {
            return Ok(Spot::Delivered);
        };
        let slot = self.slots.get(index).ok_or(DdpError::NoBuffer)?;
        let end = u64::from(header.mo) + u64::from(len);
        if header.mo > slot.capacity {
            return Err(DdpError::InvalidOffset);
        }
        if end > slot.capacity.into() {
            return Err(DdpError::TooLong);
        }
        let contradicts = match slot.total {
            Some(total) => end > total.into() || (header.last && end != total.into()),
            None => header.last && end < slot.come.end(),
        };
        if contradicts {
            return Err(DdpError::InvalidOffset);
        }
        Ok(Spot::In(slot.buffer))
    }

    /// How many octets of the buffer are left behind a segment that has a [spot](Self::spot) there, as long as its message comes in order: 0
    /// when something has come that belongs behind it.
    #[must_use]
    pub fn free_behind(&self, header: &Untagged, len: u32) -> u32 {
        let Ok(Some(index)) = self.index(header.msn) else {
            return 0;
        };
        let slot = self.slots.get(index);
        let in_order =
            slot.filter(|slot| slot.total.is_none() && slot.come.end() <= header.mo.into());
        let free = |slot: &Slot<B>| slot.capacity.checked_sub(header.mo)?.checked_sub(len);
        in_order.and_then(free).unwrap_or(0)
    }

    /// A segment is in the place that [`spot`](Self::spot) said.
    ///
    /// # Errors
    /// [`DdpError::Local`] when a message has more holes than are kept account of.
    pub fn handle_placed(&mut self, header: &Untagged, len: u32) -> Result<(), DdpError> {
        let Some(index) = self.index(header.msn)? else {
            return Ok(());
        };
        let slot = self.slots.get_mut(index).ok_or(DdpError::NoBuffer)?;
        slot.come
            .insert(header.mo.into(), len.into())
            .map_err(|_| DdpError::Local)?;
        if header.last {
            slot.total = header.mo.checked_add(len);
        }
        Ok(())
    }

    /// The buffer of the next message, and its octets, if nothing has come of that message.
    #[must_use]
    #[inline]
    pub fn untouched(&self) -> Option<(B, u32)> {
        let slot = self.slots.front()?;
        let is_untouched = slot.total.is_none() && slot.come.end() == 0;
        is_untouched.then_some((slot.buffer, slot.capacity))
    }

    /// The buffer of the `n`th message from now, how many octets it takes, and how many of its first have come: `None` if its last segment has come already, or
    /// some behind others that have not.
    #[must_use]
    pub fn vacancy(&self, n: usize) -> Option<(B, u32, u32)> {
        let slot = self.slots.get(n).filter(|slot| slot.total.is_none())?;
        let come = slot.come.end();
        let done = u32::try_from(come)
            .ok()
            .filter(|_| slot.come.covers(come))?;
        Some((slot.buffer, slot.capacity, done))
    }

    /// The next message has come whole, into the buffer that [`untouched`](Self::untouched) told of.
    #[inline]
    pub fn deliver_whole(&mut self) {
        self.slots.pop_front();
        self.first = self.first.plus(1);
    }

    /// The next message, if it is complete and all before it have been delivered.
    pub fn deliver(&mut self) -> Option<Delivered<B>> {
        let slot = self.slots.pop_front_if(|slot| slot.is_complete())?;
        self.first = self.first.plus(1);
        Some(Delivered {
            buffer: slot.buffer,
            len: slot.total.unwrap_or(0),
        })
    }
}
