use crate::{
    mem::{Memory, OutOfRange, Store},
    ring::{Cell, Cells, low, tag},
    segment::Direction,
};

/// The receiving end of a ring.
///
/// A frame is [looked at](Consumer::peek), its data read, then it is [released](Consumer::release).
#[derive(Debug)]
pub struct Consumer<S: Cells = Direction> {
    cells: S,
    /// Frames released, modulo 2³².
    consumed: u32,
    /// The frame at the front, once it was looked at.
    front: Option<Cell>,
}

impl<S: Cells> Consumer<S> {
    pub(crate) fn new(cells: S) -> Self {
        Self {
            cells,
            consumed: 0,
            front: None,
        }
    }

    /// Whether there is a frame. One load, of a line that stays in this core's cache until the producer writes it: made for polling.
    #[inline]
    pub fn ready(&self) -> bool {
        self.front.is_some() || low(self.cells.head(self.index())) == tag(self.consumed, S::COUNT)
    }

    /// The frame at the front, if any. It is copied once: until it is released the answer stays the same, whatever the peer does.
    #[inline]
    pub fn peek(&mut self) -> Option<Cell> {
        self.look().copied()
    }

    /// As [`Consumer::peek`], without a copy of the copy.
    #[inline]
    pub fn look(&mut self) -> Option<&Cell> {
        if self.front.is_none() {
            let head = self.cells.head(self.index());
            if low(head) != tag(self.consumed, S::COUNT) {
                return None;
            }
            self.front = Some(Cell::unpack(head, self.cells.body(self.index())));
        }
        self.front.as_ref()
    }

    /// Gives the frame at the front, and its data, back to the producer.
    ///
    /// Only a frame that was looked at can be released; without one nothing happens.
    #[inline]
    pub fn release(&mut self) {
        if self.front.take().is_none() {
            debug_assert!(false, "released a frame that was not looked at");
            return;
        }
        self.consumed = self.consumed.wrapping_add(1);
        self.cells.set_consumed(self.consumed);
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn starting_at(self, frame: u32) -> Self {
        Self {
            consumed: frame,
            ..self
        }
    }

    #[inline]
    fn index(&self) -> u32 {
        self.consumed % S::COUNT
    }
}

impl Consumer<Direction> {
    /// Copies `len` bytes of the data area at `offset` into `to`.
    ///
    /// # Errors
    /// If either range is outside.
    #[inline]
    pub fn read(
        &self,
        offset: u32,
        len: u32,
        to: &Memory,
        to_offset: usize,
    ) -> Result<(), OutOfRange> {
        let len = usize::try_from(len).map_err(|_| OutOfRange)?;
        let from_offset = self.cells.data_at(offset, len)?;
        // Whoever receives reads the bytes next, so they belong in the caches, unless they are too many for them.
        let store = if len < CACHED_MAX {
            Store::Plain
        } else {
            Store::Streaming
        };
        Memory::copy(to, to_offset, self.cells.memory(), from_offset, len, store)
    }

    /// As [`Consumer::read`], into a slice.
    ///
    /// # Errors
    /// If the range is outside the data area.
    #[inline]
    pub fn read_bytes(&self, offset: u32, into: &mut [u8]) -> Result<(), OutOfRange> {
        let from_offset = self.cells.data_at(offset, into.len())?;
        self.cells.memory().read(from_offset, into)
    }
}

const CACHED_MAX: usize = 1 << 20;
