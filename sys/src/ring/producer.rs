use std::ops::Range;

use crate::{
    mem::{Memory, OutOfRange, StoreChoice},
    ring::{
        CELLS_MAX, Cell, Cells, Note, join,
        note::{Head, is_cells_turn},
        tag,
    },
    segment::Direction,
};

/// The sending end of a ring.
///
/// A frame is [reserved](Producer::reserve), its data written, then it is [published](Producer::publish).
///
/// A hand-off is two transfers of a line, for the consumer who polls a cell takes it from the producer. What helps is to ask for the line
/// before the first store (15 ns off a frame, between frames of uneven work) and a consumer who [pauses](crate::wait::pause) (40 ns off).
/// Tried, and no better: the cell in 16-, 32- or 64-byte stores; asking for the next cell after publishing, at either side; `consumed`
/// stored less often; copies of up to 64 bytes in line. Worse: CLDEMOTE of the cell (a stream of frames at 100 ns each, not 10)
/// and publishing by an exchange (60 ns).
#[derive(Debug)]
pub struct Producer<S: Cells = Direction> {
    cells: S,
    /// Frames published, modulo 2³².
    produced: u32,
    /// Frames that the consumer was last seen to have released; at most `CELLS_MAX` behind `produced`.
    consumed: u32,
    /// Where in the endless row of laps through the data area the next piece may begin, and where the oldest one in use begins.
    head: u32,
    tail: u32,
    /// Where the piece of each frame in flight ends.
    ends: [u32; CELLS_MAX],
    /// Notes published, modulo 2¹⁶, and the frame that comes after the last of them.
    notes: u16,
    after_note: u32,
    /// What the last of them told the other side.
    told: u16,
    reserved: Option<Piece>,
    stores: StoreChoice,
    broken: bool,
}

impl<S: Cells> Producer<S> {
    pub(crate) fn new(cells: S) -> Self {
        const { assert!(S::COUNT.is_power_of_two() && S::COUNT as usize <= CELLS_MAX) }
        debug_assert!(
            cells.data_len().is_power_of_two(),
            "offsets are taken modulo the length"
        );
        Self {
            cells,
            produced: 0,
            consumed: 0,
            head: 0,
            tail: 0,
            ends: [0; CELLS_MAX],
            notes: 0,
            after_note: 0,
            told: 0,
            reserved: None,
            stores: StoreChoice::default(),
            broken: false,
        }
    }

    /// Sets a cell aside, and `data_len` contiguous bytes of the data area. Returns the offset of those (a multiple of 64; 0 if
    /// there are none), or `None` if there is no room or the ring is [broken](Producer::is_broken).
    ///
    /// A piece that was reserved and not published is given back.
    #[inline]
    pub fn reserve(&mut self, data_len: u32) -> Option<u32> {
        self.reserved = None;
        if self.broken || data_len > self.cells.data_len() {
            return None;
        }
        let mut piece = self.place(data_len);
        // What the consumer last said is good enough; but once per stride look whether the ring is
        // empty, and can start again at its first pages.
        let restart = self.head / RESTART_STRIDE != piece.end / RESTART_STRIDE;
        if restart || !self.fits(piece) {
            self.refresh();
            piece = self.place(data_len);
        }
        if self.broken || !self.fits(piece) {
            return None;
        }
        self.reserved = Some(piece);
        Some(piece.offset)
    }

    /// Makes the reserved frame visible to the consumer, who frees the data with it.
    ///
    /// Without a reservation there is nothing to publish, and nothing happens.
    #[inline]
    pub fn publish(&mut self, cell: Cell) {
        let (first, body) = cell.pairs();
        self.publish_pairs(first, body);
    }

    /// As [`Producer::publish`], with the cell's other 14 words in pairs, the first in the low half: who has them in registers
    /// need not store words that are then loaded in pairs, for which the load would wait.
    #[inline]
    pub fn publish_pairs(&mut self, first: u32, body: [u64; 7]) {
        let Some(piece) = self.reserved.take() else {
            debug_assert!(false, "published without a reservation");
            return;
        };
        let index = self.produced % S::COUNT;
        self.head = piece.end;
        self.ends[index as usize] = piece.end;
        let head = join(tag(self.produced, S::COUNT), first);
        self.cells.publish(index, head, body);
        self.produced = self.produced.wrapping_add(1);
    }

    /// Whether a note could be written now, as far as other notes are concerned. `heard` is what
    /// [`Consumer::notes`](crate::ring::Consumer::notes) says of the other direction.
    #[inline]
    pub fn has_note_room(&mut self, heard: u16) -> bool {
        // Acquire pairs with the release of the head that says so: what was in the half before has been read.
        let was_heard = Head::unpack(self.cells.other_note_head()).heard == self.notes;
        (was_heard || self.was_released(heard)) && !is_cells_turn(self.produced, S::COUNT)
    }

    /// Whether the last note has been released, though no note says so: it crossed with one, and each side waits for the other's next.
    fn was_released(&mut self, heard: u16) -> bool {
        let crossed = heard != self.told;
        // A look takes the line away from the consumer, who writes it with each frame.
        if crossed && self.produced.is_multiple_of(S::COUNT) {
            self.refresh();
        }
        crossed && self.after_note == self.consumed
    }

    /// Publishes a frame without data as a note, if one can be written now. `heard` as for [`Producer::has_note_room`]. What was
    /// reserved is given back.
    #[inline]
    #[must_use = "else the frame is still to be sent"]
    pub fn note(&mut self, Note(body): Note, heard: u16) -> bool {
        if !self.has_note_room(heard) {
            return false;
        }
        // Who has released the last note has released all before it: no need to fetch the line that counts.
        self.released(self.after_note);
        if !self.room() {
            return false;
        }
        self.reserved = None;
        self.notes = self.notes.wrapping_add(1);
        let head = Head {
            frame: self.produced,
            number: self.notes,
            heard,
        };
        self.ends[(self.produced % S::COUNT) as usize] = self.head;
        self.produced = self.produced.wrapping_add(1);
        self.after_note = self.produced;
        self.told = heard;
        self.cells.publish_note(head.pack(), body);
        true
    }

    /// Whether the consumer has released every frame; false for ever once the ring is broken.
    #[inline]
    pub fn is_empty(&mut self) -> bool {
        if self.in_flight() > 0 {
            self.refresh();
        }
        !self.broken && self.in_flight() == 0
    }

    /// How many frames have been published, modulo 2³².
    #[inline]
    pub fn published(&self) -> u32 {
        self.produced
    }

    /// Whether what had been published when [`Producer::published`] said `frames` has been released; false for ever once the ring is broken.
    /// Asked 2³² frames later it may say no once more.
    #[inline]
    pub fn has_released(&mut self, frames: u32) -> bool {
        let later = self.produced.wrapping_sub(frames);
        if later < self.in_flight() {
            self.refresh();
        }
        !self.broken && later >= self.in_flight()
    }

    /// Whether a frame without data can be reserved; false for ever once the ring is broken.
    #[inline]
    pub fn room(&mut self) -> bool {
        if self.in_flight() == S::COUNT {
            self.refresh();
        }
        !self.broken && self.in_flight() < S::COUNT
    }

    /// Whether the consumer has claimed to have released what was never published. Nothing can be sent any more.
    #[inline]
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn starting_at(self, frame: u32) -> Self {
        self.cells.set_consumed(frame);
        Self {
            produced: frame,
            consumed: frame,
            after_note: frame,
            ..self
        }
    }

    /// Frames published and not yet seen to be released.
    #[inline]
    fn in_flight(&self) -> u32 {
        self.produced.wrapping_sub(self.consumed)
    }

    #[inline]
    fn place(&self, data_len: u32) -> Piece {
        if data_len == 0 {
            return Piece {
                offset: 0,
                len: 0,
                end: self.head,
            };
        }
        let offset = self.head & self.mask();
        let len = data_len.next_multiple_of(ALIGN);
        // Not enough left of this lap: the piece goes to the start of the next, and the rest is freed with it.
        let skip = if len > self.cells.data_len() - offset {
            self.cells.data_len() - offset
        } else {
            0
        };
        Piece {
            offset: (offset + skip) & self.mask(),
            len: data_len,
            end: self.head.wrapping_add(skip + len),
        }
    }

    #[inline]
    fn fits(&self, piece: Piece) -> bool {
        self.in_flight() < S::COUNT && piece.end.wrapping_sub(self.tail) <= self.cells.data_len()
    }

    fn refresh(&mut self) {
        let consumed = self.cells.consumed();
        if consumed.wrapping_sub(self.consumed) > self.in_flight() {
            self.broken = true;
            return;
        }
        self.released(consumed);
        // Kept within the frames in flight, or it would mean others of them once frame numbers have come round.
        if self.after_note.wrapping_sub(self.consumed) > self.in_flight() {
            self.after_note = self.consumed;
        }
        // Not behind a piece that is set aside: it begins where `head` is.
        if self.in_flight() == 0 && self.reserved.is_none() {
            self.head = self.head.wrapping_add(self.mask()) & !self.mask();
            self.tail = self.head;
        }
    }

    /// Frames before `frame` have been released; if that is already known, and of more, nothing happens.
    #[inline]
    fn released(&mut self, frame: u32) {
        let released = frame.wrapping_sub(self.consumed);
        if released > 0 && released <= self.in_flight() {
            self.tail = self.ends[(frame.wrapping_sub(1) % S::COUNT) as usize];
            self.consumed = frame;
        }
    }

    #[inline]
    fn mask(&self) -> u32 {
        self.cells.data_len() - 1
    }
}

impl Producer<Direction> {
    /// Copies `len` bytes into the piece reserved at `offset`, `at` bytes after its start.
    ///
    /// # Errors
    /// If no piece is reserved there, or a range is outside the piece or `from`.
    #[inline]
    pub fn write(
        &mut self,
        offset: u32,
        at: u32,
        from: &Memory,
        from_offset: usize,
        len: usize,
    ) -> Result<(), OutOfRange> {
        let to_offset = self.target(offset, at, len)?;
        let to = self.cells.memory();
        if PREFETCHED.contains(&len) {
            to.prefetch_to_write(to_offset, len);
        }
        self.stores.copy(len, |store| {
            Memory::copy(to, to_offset, from, from_offset, len, store)
        })
    }

    /// As [`Producer::write`], from a slice.
    ///
    /// # Errors
    /// As [`Producer::write`].
    #[inline]
    pub fn write_bytes(&mut self, offset: u32, at: u32, from: &[u8]) -> Result<(), OutOfRange> {
        let to_offset = self.target(offset, at, from.len())?;
        let to = self.cells.memory();
        if PREFETCHED.contains(&from.len()) {
            to.prefetch_to_write(to_offset, from.len());
        }
        self.stores
            .copy(from.len(), |store| to.write_with(to_offset, from, store))
    }

    #[inline]
    fn target(&self, offset: u32, at: u32, len: usize) -> Result<usize, OutOfRange> {
        let piece = self
            .reserved
            .filter(|piece| piece.offset == offset)
            .ok_or(OutOfRange)?;
        let end = usize::try_from(at)
            .ok()
            .and_then(|at| at.checked_add(len))
            .ok_or(OutOfRange)?;
        if end > piece.len as usize {
            return Err(OutOfRange);
        }
        self.cells.data_at(offset + at, len)
    }
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    offset: u32,
    len: u32,
    /// Where the next piece may begin, in the endless row of laps.
    end: u32,
}

/// Pieces begin on cache lines: two never share one, and streaming stores fill whole lines.
const ALIGN: u32 = 64;
/// Lengths whose lines are asked for before they are written: the consumer still has those of the lap before, and fetching them
/// one after the other takes 455 ns for 1 KiB one way, and 333 so. Fewer lines gain nothing, and more slow a stream down.
const PREFETCHED: Range<usize> = 512..2048;
/// How much of the data area an idle ring touches at most, give or take a piece.
const RESTART_STRIDE: u32 = 16 << 10;
