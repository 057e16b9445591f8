use crate::{
    mem::{Memory, OutOfRange, Store},
    ring::{Cell, Cells, Frame, Note, high, low, note::Head, tag},
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
    /// How many of them were notes, modulo 2¹⁶.
    notes: u16,
    /// The frame at the front, once it was looked at.
    front: Option<Frame>,
    /// Cells and bytes released since the producer was last to be told that there is room.
    untold: (u32, u32),
}

impl<S: Cells> Consumer<S> {
    pub(crate) fn new(cells: S) -> Self {
        Self {
            cells,
            consumed: 0,
            notes: 0,
            front: None,
            untold: (0, 0),
        }
    }

    /// Whether there is a frame. Two loads, of lines that stay in this core's cache until the producer writes them: made for polling.
    #[inline]
    pub fn ready(&self) -> bool {
        self.has_cell() || self.has_note()
    }

    /// As [`Consumer::ready`], but for notes: nothing is taken away from a producer who is about to write one.
    #[inline]
    pub fn has_cell(&self) -> bool {
        self.front.is_some() || low(self.cells.head(self.index())) == tag(self.consumed, S::COUNT)
    }

    /// The frame at the front, if any. It is copied once: until it is released the answer stays the same, whatever the peer does.
    #[inline]
    pub fn peek(&mut self) -> Option<Frame> {
        self.look().copied()
    }

    /// As [`Consumer::peek`], without a copy of the copy.
    #[inline]
    pub fn look(&mut self) -> Option<&Frame> {
        if self.front.is_none() {
            let head = self.cells.head(self.index());
            self.front = if low(head) == tag(self.consumed, S::COUNT) {
                let cell = Cell::unpack(head, self.cells.body(self.index()));
                Some(Frame::Cell(cell))
            } else if self.has_note() {
                Some(Frame::Note(Note(self.cells.note_body())))
            } else {
                None
            };
        }
        self.front.as_ref()
    }

    /// Gives the frame at the front, and its data, back to the producer.
    ///
    /// Only a frame that was looked at can be released; without one nothing happens.
    #[inline]
    pub fn release(&mut self) {
        match self.front.take() {
            Some(Frame::Cell(_)) => {}
            Some(Frame::Note(_)) => self.notes = self.notes.wrapping_add(1),
            None => {
                debug_assert!(false, "released a frame that was not looked at");
                return;
            }
        }
        self.advance();
    }

    /// As [`Consumer::release`], of a frame with `data_len` bytes of data; whether a producer that waits for room is to be told by now.
    ///
    /// Once per half of the cells, and per quarter of the data area: so a producer that waits is so far ahead that draining the ring passes one of
    /// these marks at least once, and one that does not is seldom disturbed. Notes do not count: there is one under way at most.
    #[inline]
    #[must_use = "a producer may wait for room, and nobody else tells him"]
    pub fn release_frame(&mut self, data_len: u32) -> bool {
        let is_cell = matches!(self.front, Some(Frame::Cell(_)));
        self.release();
        is_cell && self.count(data_len)
    }

    #[inline]
    fn count(&mut self, data_len: u32) -> bool {
        let (cells, bytes) = self.untold;
        let (cells, bytes) = (cells + 1, bytes.saturating_add(data_len));
        let is_due = cells >= S::COUNT / 2 || bytes >= self.cells.data_len() / 4;
        self.untold = if is_due { (0, 0) } else { (cells, bytes) };
        is_due
    }

    /// The note at the front, if there is one and it was not looked at: a copy, to be [taken](Consumer::take_note) or looked at.
    #[inline]
    pub fn note(&self) -> Option<Note> {
        (self.front.is_none() && self.has_note()).then(|| Note(self.cells.note_body()))
    }

    /// Releases the note at the front, of which [`Consumer::note`] gave a copy.
    #[inline]
    pub fn take_note(&mut self) {
        self.notes = self.notes.wrapping_add(1);
        self.advance();
    }

    /// The cell at the front, if there is one and it was not looked at: its first word, and the others in pairs. A copy, to be
    /// [taken](Consumer::take_cell) or looked at.
    #[inline]
    pub fn cell(&self) -> Option<(u32, [u64; 7])> {
        if self.front.is_some() {
            return None;
        }
        let head = self.cells.head(self.index());
        let is_next = low(head) == tag(self.consumed, S::COUNT);
        is_next.then(|| (high(head), self.cells.body(self.index())))
    }

    /// Releases the cell at the front, of which [`Consumer::cell`] gave a copy; as [`Consumer::release_frame`] of one without data.
    #[inline]
    #[must_use = "as for `release_frame`"]
    pub fn take_cell(&mut self) -> bool {
        self.advance();
        self.count(0)
    }

    #[inline]
    fn advance(&mut self) {
        debug_assert!(self.front.is_none(), "it is the one that was looked at");
        self.consumed = self.consumed.wrapping_add(1);
        self.cells.set_consumed(self.consumed);
    }

    /// The number of the last note released: what [`Producer::note`](crate::ring::Producer::note) tells the other side.
    #[inline]
    pub fn notes(&self) -> u16 {
        self.notes
    }

    #[inline]
    fn has_note(&self) -> bool {
        let head = Head::unpack(self.cells.note_head());
        // Both are compared: the number tells a note from one that was released, the frame tells whether cells come before it.
        head.number == self.notes.wrapping_add(1) && head.frame == self.consumed
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
            Store::Own
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
