//! One end of a connection: frames through the segment's rings.

use std::sync::Arc;
use std::time::Instant;

use proto::frame::{HEAD_WORDS, Head, Kind};
use sys::bell::{FUTEX, SOCKET};
use sys::mem::{Memory, OutOfRange};
use sys::net::Conn;
use sys::ring::{Cell, Consumer, Frame, Note, Producer, WORDS};
use sys::segment::{Control, Segment, Side, Wait};
use sys::wait::{Answer, let_answer};
use via::RemoteSegment;
use via::soft::{BRIEF_MAX, Brief, Garbage, Goodbye, Link, Sleeper, Waiter};

use crate::landing::Landing;
use crate::note;
use crate::peer::{Peer, goodbye};
use crate::windows::Windows;

/// Bytes of each direction's data area.
pub(crate) const DATA_LEN: usize = 512 * 1024;
/// Most payload of a frame: small enough that both sides copy at once.
pub(crate) const FRAME_MAX: u32 = 32 * 1024;

/// A frame's cell: the head, where its payload lies in the data area, or the payload itself.
const AT_WORD: usize = HEAD_WORDS;
const INLINE_WORD: usize = HEAD_WORDS + 1;
/// Payload that fits in the cell.
const INLINE_MAX: usize = (WORDS - INLINE_WORD) * 4;
const _: () = assert!(AT_WORD == 10 && INLINE_MAX == 16, "as `commit` packs them");
const _: () = assert!(BRIEF_MAX as usize == INLINE_MAX);

pub(crate) struct ShmLink {
    producer: Producer,
    consumer: Consumer,
    peer: Arc<Peer>,
    /// The reserved frame.
    reserved: Reserved,
    /// The frame at the front.
    front: Option<Front>,
    /// The number of the last message sent.
    last_seq: u32,
    landing: Landing,
    /// A note went out, and nobody has looked for its answer yet.
    asks: bool,
    answer: Answer,
    /// The message that [`Link::brief`] gave lies in a cell.
    brief_in_cell: bool,
    windows: Windows,
}

#[derive(Default)]
struct Reserved {
    len: u32,
    at: u32,
    inline: [u8; INLINE_MAX],
}

/// Where the payload of the frame at the front is.
#[derive(Clone, Copy)]
struct Front {
    len: u32,
    at: u32,
}

impl ShmLink {
    pub(crate) fn new(segment: Arc<Segment>, side: Side, conn: Arc<Conn>) -> Self {
        let (producer, consumer, control) = sys::segment::split(segment, side);
        Self {
            producer,
            consumer,
            peer: Arc::new(Peer::new(conn, control)),
            reserved: Reserved::default(),
            front: None,
            last_seq: 0,
            landing: Landing::default(),
            asks: false,
            answer: Answer::new(),
            brief_in_cell: false,
            windows: Windows::default(),
        }
    }

    pub(crate) fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// The payload that lies in the frame at the front itself.
    #[inline]
    fn inline(&mut self) -> Option<[u8; INLINE_MAX]> {
        let [low, high] = match self.consumer.look()? {
            Frame::Note(Note([_, low, high])) => [*low, *high],
            Frame::Cell(Cell(words)) => {
                let [a, b, c, d] = *words.last_chunk()?;
                [pair(a, b), pair(c, d)]
            }
        };
        let mut inline = [0; INLINE_MAX];
        let (halves, _) = inline.as_chunks_mut::<8>();
        for (bytes, word) in halves.iter_mut().zip([low, high]) {
            *bytes = word.to_ne_bytes();
        }
        Some(inline)
    }

    #[inline]
    fn tell_of_room(&self, is_due: bool) {
        if is_due {
            self.peer.knock(Wait::Room);
        }
    }
}

impl Link for ShmLink {
    type Waiter = ShmWaiter;

    fn frame_max(&self) -> u32 {
        FRAME_MAX
    }

    #[inline]
    fn reserve(&mut self, len: u32) -> bool {
        let outside = if len as usize > INLINE_MAX { len } else { 0 };
        match self.producer.reserve(outside) {
            Some(at) => {
                self.reserved.len = len;
                self.reserved.at = at;
                true
            }
            None => false,
        }
    }

    #[inline]
    fn fill(
        &mut self,
        at: u32,
        from: &Memory,
        offset: usize,
        len: usize,
    ) -> Result<(), OutOfRange> {
        if self.reserved.len as usize > INLINE_MAX {
            return self.producer.write(self.reserved.at, at, from, offset, len);
        }
        let start = at as usize;
        let into = self.reserved.inline.get_mut(start..start + len);
        from.read(offset, into.ok_or(OutOfRange)?)
    }

    #[inline]
    fn fill_bytes(&mut self, from: &[u8]) -> Result<(), OutOfRange> {
        if self.reserved.len as usize > INLINE_MAX {
            return self.producer.write_bytes(self.reserved.at, 0, from);
        }
        let into = self.reserved.inline.get_mut(..from.len());
        into.ok_or(OutOfRange)?.copy_from_slice(from);
        Ok(())
    }

    // The head is made where it is sent: passed in memory it would be read back before its parts have been written.
    #[inline(always)]
    fn commit(&mut self, head: &Head) {
        let (inline, _) = self.reserved.inline.as_chunks::<8>();
        let payload = |n: usize| inline.get(n).map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        let payload = [payload(0), payload(1)];
        if head.seq != 0 && !matches!(head.kind, Kind::Ack | Kind::ReadResponse) {
            self.last_seq = head.seq;
        }
        let [first, a, b, c, d, e, f, g, h, i] = head.encode();
        let [low, high] = payload;
        let body = [
            pair(a, b),
            pair(c, d),
            pair(e, f),
            pair(g, h),
            pair(i, self.reserved.at),
            low,
            high,
        ];
        self.producer.publish_pairs(first, body);
        if head.kind == Kind::RdmaWrite && !head.placed {
            self.landing.note(&self.producer);
        }
    }

    #[inline]
    fn flush(&mut self) {
        self.peer.knock(Wait::Frames);
    }

    #[inline]
    fn has_brief_room(&mut self) -> bool {
        self.producer.has_note_room(self.consumer.notes())
    }

    #[inline]
    fn send_brief(&mut self, message: Brief) -> bool {
        let note = note::encode(message);
        let sent = self.producer.note(note, self.consumer.notes());
        if sent {
            self.last_seq = message.seq;
            self.asks = true;
            #[cfg(test)]
            tests::NOTES.with(|notes| notes.set(notes.get() + 1));
        }
        sent
    }

    // Returned in memory it would be read back before its parts have been written.
    #[inline(always)]
    fn brief(&mut self, looks: u32) -> Option<Brief> {
        let vain = (0..looks).take_while(|_| !self.consumer.ready()).count() as u32;
        let found = vain < looks;
        self.answer.looked(vain, found);
        if !found {
            return None;
        }
        if let Some(note) = self.consumer.note() {
            self.brief_in_cell = false;
            return note::decode(note);
        }
        // What `commit` makes of the same message.
        let (first, [lens, place, .., low, high]) = self.consumer.cell()?;
        let len = lens as u32;
        let is_brief = first == Kind::Send as u32
            && lens == pair(len, len)
            && len <= BRIEF_MAX
            && place as u32 == 0;
        self.brief_in_cell = true;
        is_brief.then_some(Brief {
            seq: (place >> 32) as u32,
            len,
            words: [low, high],
            immediate: None,
        })
    }

    #[inline]
    fn take_brief(&mut self) {
        if self.brief_in_cell {
            let is_due = self.consumer.take_cell();
            self.tell_of_room(is_due);
        } else {
            self.consumer.take_note();
        }
    }

    #[inline]
    fn before_look(&mut self, steadily: bool) {
        if !std::mem::take(&mut self.asks) || self.consumer.has_cell() {
            return;
        }
        if steadily {
            self.answer.let_come();
        } else {
            let_answer();
        }
    }

    #[inline]
    fn ready(&self) -> bool {
        self.consumer.ready()
    }

    #[inline]
    fn peek(&mut self) -> Result<Option<Head>, Garbage> {
        let Some(frame) = self.consumer.look() else {
            if self.producer.is_broken() {
                return Err(Garbage);
            }
            return Ok(None);
        };
        let (head, at) = match frame {
            Frame::Note(note) => {
                let brief = note::decode(*note).ok_or(Garbage)?;
                let head = Head {
                    len: brief.len,
                    msg_len: brief.len,
                    immediate: brief.immediate,
                    ..Head::bare(Kind::Send, brief.seq)
                };
                (head, 0)
            }
            Frame::Cell(Cell(words)) => {
                let head_words = words.first_chunk().ok_or(Garbage)?;
                let head = Head::decode(head_words).map_err(|_| Garbage)?;
                (head, words[AT_WORD])
            }
        };
        if head.len > FRAME_MAX {
            return Err(Garbage);
        }
        self.front = Some(Front { len: head.len, at });
        Ok(Some(head))
    }

    #[inline]
    fn read(&mut self, at: u32, to: &Memory, offset: usize, len: usize) -> Result<(), OutOfRange> {
        let front = self.front.ok_or(OutOfRange)?;
        let end = (at as usize).checked_add(len).ok_or(OutOfRange)?;
        if end > front.len as usize {
            return Err(OutOfRange);
        }
        if front.len as usize <= INLINE_MAX {
            let inline = self.inline().ok_or(OutOfRange)?;
            return to.write(offset, &inline[at as usize..end]);
        }
        let from = front.at.checked_add(at).ok_or(OutOfRange)?;
        self.consumer.read(from, len as u32, to, offset)
    }

    #[inline]
    fn read_bytes(&mut self, into: &mut [u8]) -> Result<(), OutOfRange> {
        let front = self.front.filter(|front| into.len() <= front.len as usize);
        let front = front.ok_or(OutOfRange)?;
        if front.len as usize > INLINE_MAX {
            return self.consumer.read_bytes(front.at, into);
        }
        let inline = self.inline().ok_or(OutOfRange)?;
        let from = inline.get(..into.len()).ok_or(OutOfRange)?;
        into.copy_from_slice(from);
        Ok(())
    }

    #[inline]
    fn release(&mut self) {
        let Some(front) = self.front.take() else {
            return;
        };
        let is_due = self.consumer.release_frame(front.len);
        self.tell_of_room(is_due);
    }

    #[inline]
    fn ended(&mut self) -> Option<Goodbye> {
        match self.peer.control.peer_state() {
            0 => None,
            code => goodbye(code, self.last_seq),
        }
    }

    fn close(&mut self, why: Goodbye) {
        self.peer.close(why);
    }

    fn enter(&mut self, remote: RemoteSegment, len: u32) -> bool {
        if !self.windows.enter(&self.peer, remote, len) {
            return false;
        }
        if self.landing.is_due() {
            // Whoever is to copy it may sleep.
            self.flush();
            if !self.landing.is_done(&mut self.producer) {
                self.leave();
                return false;
            }
        }
        true
    }

    fn put(&mut self, at: u32, from: &Memory, offset: usize, len: usize) -> Result<(), OutOfRange> {
        self.windows.put(&self.peer, at, from, offset, len)
    }

    fn leave(&mut self) {
        self.windows.leave(&self.peer);
    }

    fn arm(&mut self, who: Sleeper) -> u32 {
        let bits = match who {
            Sleeper::Caller => FUTEX,
            Sleeper::Agent => SOCKET,
        };
        let control = &self.peer.control;
        // Both bells: a sender waits for room, and a receiver may have answers to send.
        let room = control.bell(Wait::Room);
        let _word = room.arm(bits);
        control.bell(Wait::Frames).arm(bits)
    }

    fn disarm(&mut self) {
        for wait in [Wait::Frames, Wait::Room] {
            let _taken = self.peer.control.bell(wait).disarm();
        }
    }

    fn waiter(&self) -> ShmWaiter {
        ShmWaiter(self.peer.control.clone())
    }
}

/// Sleeps on the futex word of one end.
#[derive(Clone)]
pub(crate) struct ShmWaiter(Control);

impl Waiter for ShmWaiter {
    fn sleep(&self, ticket: u32, deadline: Option<Instant>) {
        let timeout = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // Woken, timed out or interrupted: the caller looks again.
        let _wake = self.0.bell(Wait::Frames).sleep(ticket, timeout);
    }

    fn wake(&self) {
        self.0.bell(Wait::Frames).wake();
    }
}

#[inline]
fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

#[cfg(test)]
mod tests;
