//! The shared memory of a byte stream: two rings in one sealed memfd, and the words beside them.
//!
//! The receiver owns a ring and the sender's CPU writes into it, as a NIC would. All state is in the memory, cursors too, so that after a
//! `fork` both processes have the same stream. Whoever acts at an end does so in a turn ([`crate::turn`]), and what is done in a turn
//! ends in one atomic instruction on a cursor: who is killed before it has done nothing.
//!
//! Everything in the memory can be written by the peer. A cursor that can not be ends the stream with [`Corrupt`]; positions are
//! masked, so the worst that a peer does is to spoil the bytes it sends.
//!
//! # Sleeping
//!
//! A receiver that finds nothing arms, looks once more, and sleeps on the TCP connection; a sender that has published looks whether the receiver is
//! armed, and if so writes a byte there. Publishing, arming and both looks are sequentially consistent, so one of the two sees
//! the other. A sender that finds no room does the same, with a saving: it sleeps only when the ring is more than three quarters full, so
//! a receiver need not look each time it frees room.
//!
//! # Signal handlers
//!
//! A handler may send and receive on the stream that its own thread is in the middle of using. A receiver that was overtaken finds it when it moves
//! the head, and copies again. A sender's bytes are published by the handler, before those of the handler.

use std::fmt;
use std::io::{self, ErrorKind};
use std::mem::offset_of;
use std::os::fd::OwnedFd;

use crate::board::{self, Place, Post};
use crate::hidden::Hidden;
use crate::lock::Lock;
use crate::mem::{self, Lease, Parted, Store, StoreChoice, copy, memfd};
use crate::sync::{AtomicU32, Ordering, mapped::AtomicBool};

pub use crate::segment::Side;
pub use layout::{LEN, RING, Size, VERSION};

use layout::{BEHIND, BEHINDS, BESIDE, BESIDES, ControlPage, Direction, PAGE, in_page};
#[cfg(loom)]
use modelled as life;
use own::Descriptor;
use unfinished::Unfinished;

mod ahead;
mod base;
mod grow;
mod held;
mod holders;
mod layout;
#[cfg(not(loom))]
mod life;
#[cfg(all(test, loom))]
mod model;
#[cfg(loom)]
mod modelled;
mod own;
mod release;
mod room;
mod rx;
mod short;
mod sleep;
#[cfg(all(test, not(loom)))]
mod tests;
mod tx;
mod unfinished;
mod watch;
mod write;

pub use ahead::fetch;
pub use held::{Held, Kept};
pub use holders::{Holders, Leaving};
pub use own::{NAME, Tag, closes_on_exec, cookie, is_stream};
pub use room::{PART, fits_in_the_next, leaves_room};
pub use rx::Rx;
pub use short::SHORT_MAX;
pub use tx::Tx;
pub use watch::{Shown, Watch};

/// One end of a stream.
// What moves bytes reads comes first.
#[repr(C)]
pub struct Stream {
    /// Where in the first page of `mapping` the words are, and the rings, which every access would have to ask it.
    words: *mut u8,
    rings: *mut u8,
    /// As the memory itself says, which is sealed.
    size: Size,
    side: Side,
    /// A signal handler has [broken off](Tx::break_off) what its thread was about to write, if anything.
    broken_off: AtomicBool,
    /// How often in a row a receiver was overtaken by a signal handler.
    overtaken: AtomicU32,
    /// See [`Stream::heard`].
    heard: AtomicU32,
    /// The peer's board, on which to note what it asks to be told so.
    post: Option<Post>,
    // From here on what each send writes: who receives meanwhile reads none of it.
    unfinished: Unfinished,
    /// See [`Stream::sends`].
    sends: AtomicU32,
    /// Which file the memory is: device and number.
    file: (u64, u64),
    fd: Lock<Descriptor>,
    /// The board of this process's that the peer was lent.
    lent: Option<board::Id>,
    mapping: Lease,
    /// Takes the place of what is mapped there, of which loom knows nothing.
    #[cfg(loom)]
    page: modelled::Page,
    /// How the sender of this process best writes to the ring.
    choice: Lock<StoreChoice>,
}

impl Stream {
    /// So long is what comes first, which each call touches.
    pub const TOUCHED: usize = offset_of!(Self, sends) + size_of::<AtomicU32>();

    /// From here on it is what each send writes.
    pub const WRITTEN: usize = offset_of!(Self, unfinished);

    /// For who owns the stream to count sends in, as it likes: it lies with what each send writes.
    #[inline]
    pub fn sends(&self) -> &AtomicU32 {
        &self.sends
    }

    /// For who owns the stream to note how much its peer said last that it [had taken](Tx::acknowledged): the lower half of that count.
    #[inline]
    pub fn heard(&self) -> &AtomicU32 {
        &self.heard
    }

    /// The memory of a new stream: a sealed memfd.
    ///
    /// # Errors
    /// The kernel's.
    pub fn memory(size: Size) -> io::Result<OwnedFd> {
        memfd::create_as(NAME, size.memory_len())
    }

    /// Maps one side of a stream.
    ///
    /// # Errors
    /// `InvalidData` if `fd` is not a sealed memfd of a [`Size`] that there is, else the kernel's.
    pub fn map(fd: OwnedFd, side: Side) -> io::Result<Self> {
        Self::map_hidden(Hidden::new(fd)?, side)
    }

    fn map_hidden(fd: Hidden, side: Side) -> io::Result<Self> {
        let file = memfd::sealed(fd.as_fd())?;
        let size = u64::try_from(file.st_size).ok().and_then(Size::of_memory);
        let size = size.ok_or(ErrorKind::InvalidData)?;
        let mapping = Parted::shared(fd.as_fd(), size.memory_len())?;
        Ok(Self {
            words: mapping.first().wrapping_add(layout::words_at(file.st_ino)),
            rings: mapping.rest(),
            size,
            mapping: Lease::new(mapping),
            #[cfg(loom)]
            page: modelled::Page::default(),
            file: (file.st_dev, file.st_ino),
            fd: Lock::new(Descriptor::new(fd)),
            side,
            broken_off: AtomicBool::new(false),
            post: None,
            lent: None,
            unfinished: Unfinished::default(),
            choice: Lock::new(StoreChoice::default()),
            overtaken: AtomicU32::new(0),
            sends: AtomicU32::new(0),
            heard: AtomicU32::new(0),
        })
    }

    /// How long its rings are.
    #[inline]
    pub fn size(&self) -> Size {
        self.size
    }

    /// Which end this is.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Where in the memory lies what this end shows of what it sends: first the count of bytes.
    pub fn shown_at(&self) -> u64 {
        (in_page(self.words.addr()) + layout::SHOWN[self.side.index()]) as u64
    }

    /// The direction in which this end sends.
    #[inline]
    pub fn tx(&self) -> Tx<'_> {
        Tx {
            stream: self,
            index: self.side.index(),
        }
    }

    /// The direction in which this end receives.
    #[inline]
    pub fn rx(&self) -> Rx<'_> {
        Rx {
            stream: self,
            index: self.side.peer().index(),
        }
    }

    /// How far the two ends have come in agreeing to use the stream: [`OFFERED`], [`READY`], [`WITHDRAWN`].
    pub fn state(&self) -> u32 {
        self.control().both.0.state.load(Ordering::Acquire)
    }

    /// Moves on from [`OFFERED`]; false if the peer has decided otherwise meanwhile.
    pub fn decide(&self, state: u32) -> bool {
        // One instruction, so that one of the two decides. Nothing else in the memory depends on it: who maps it was sent it.
        let decided = self.control().both.0.state.compare_exchange(
            OFFERED,
            state,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        decided.is_ok()
    }

    /// Takes the offer back; false if the peer was quicker and will use the stream.
    pub fn withdraw(&self) -> bool {
        self.decide(WITHDRAWN) || self.state() != READY
    }

    /// Who has this end.
    #[inline]
    pub fn holders(&self) -> Holders<'_> {
        let end = &self.control().both.0.ends[self.side.index()];
        Holders {
            count: &end.holders,
            shared: &end.shared,
        }
    }

    /// What a process that has this end was told of an error of the TCP connection, which the kernel tells once: for the others, and for those after it.
    pub fn tcp_error(&self) -> &AtomicU32 {
        &self.control().kept.0[self.side.index()].tcp_error
    }

    /// Flags of the program's that the processes of this end, and those after it, have in common.
    pub fn options(&self) -> &AtomicU32 {
        &self.control().kept.0[self.side.index()].options
    }

    /// `SO_RCVLOWAT` as the program set it; 0 if nobody has said.
    pub fn low_water(&self) -> &AtomicU32 {
        &self.control().kept.0[self.side.index()].low_water
    }

    /// Has this end note on the peer's board from now on, where the peer asks for it. It is told so: to be called before it is [decided](Stream::decide)
    /// that the stream is used.
    pub fn set_post(&mut self, post: Option<Post>) {
        let notes = u32::from(post.is_some());
        self.post = post;
        self.control().both.0.ends[self.side.index()]
            .notes
            .store(notes, Ordering::Release);
    }

    /// Notes that the peer was lent this process's board, as far as it takes that.
    pub fn set_lent(&mut self, board: Option<board::Id>) {
        self.lent = board;
    }

    /// Whether the peer has that board, and says so.
    #[inline]
    pub fn notes_on(&self, board: board::Id) -> bool {
        let peer = &self.control().both.0.ends[self.side.peer().index()];
        self.lent == Some(board) && peer.notes.load(Ordering::Relaxed) != 0
    }

    /// Says that this end takes nothing any more that is sent from now on: nobody reads there, or it is shut both ways.
    pub fn set_deaf(&self) {
        self.control().both.0.ends[self.side.index()]
            .deaf
            .store(1, Ordering::SeqCst);
    }

    /// Whether [`Stream::set_deaf`] was called at this end, by whatever process.
    pub fn is_deaf(&self) -> bool {
        let deaf = &self.control().both.0.ends[self.side.index()].deaf;
        deaf.load(Ordering::Relaxed) != 0
    }

    /// Whether [`Stream::set_deaf`] was called at the other end.
    #[inline]
    pub fn peer_deaf(&self) -> bool {
        self.control().both.0.ends[self.side.peer().index()]
            .deaf
            .load(Ordering::Acquire)
            != 0
    }

    #[cfg(loom)]
    fn control(&self) -> &ControlPage {
        self.page.words()
    }

    #[cfg(not(loom))]
    #[inline]
    fn control(&self) -> &ControlPage {
        // SAFETY: the words begin at a multiple of 128 bytes of the mapping's first page and end within it (`words_at`), and the mapping outlives `self`; they are
        // atomics and padding, for which all bit patterns are valid and which others may change.
        unsafe { &*self.words.cast() }
    }

    #[inline]
    fn direction(&self, index: usize) -> Direction<'_> {
        self.control().direction(index)
    }

    /// Copies into the ring at byte count `at`, around its end if need be.
    #[inline]
    fn copy_in(&self, index: usize, at: u64, from: &[u8], store: Store) {
        let (to, room) = self.piece(index, at);
        #[cfg(loom)]
        self.page
            .note_write(index, self.place(at), from.len().min(room));
        if from.len() <= room {
            // SAFETY: `piece` says how much lies there in one piece.
            return unsafe { copy(to, from.as_ptr(), from.len(), store) };
        }
        let (part, later) = from.split_at(room);
        // SAFETY: as above.
        unsafe { copy(to, part.as_ptr(), part.len(), store) };
        self.copy_in_pieces(index, at.wrapping_add(room as u64), later, store);
    }

    #[inline(never)]
    fn copy_in_pieces(&self, index: usize, at: u64, from: &[u8], store: Store) {
        self.copy_in(index, at, from, store);
    }

    /// Copies out of the ring.
    #[inline]
    fn copy_out(&self, index: usize, at: u64, into: &mut [u8]) {
        let (from, room) = self.piece(index, at);
        #[cfg(loom)]
        self.page
            .note_read(index, self.place(at), into.len().min(room));
        if into.len() <= room {
            // SAFETY: as in `copy_in`.
            return unsafe { copy(into.as_mut_ptr(), from, into.len(), Store::Own) };
        }
        let (part, later) = into.split_at_mut(room);
        // SAFETY: as in `copy_in`.
        unsafe { copy(part.as_mut_ptr(), from, part.len(), Store::Own) };
        self.copy_out_pieces(index, at.wrapping_add(room as u64), later);
    }

    #[inline(never)]
    fn copy_out_pieces(&self, index: usize, at: u64, into: &mut [u8]) {
        self.copy_out(index, at, into);
    }

    /// Where the byte lies that is `at` bytes after the start of a ring, and how many, at least one, lie behind each other from there.
    #[inline]
    fn piece(&self, index: usize, at: u64) -> (*mut u8, usize) {
        let place = self.place(at);
        let in_ring = self.size.bytes() - BESIDE - BEHIND;
        if place < in_ring {
            return (self.ring(index).wrapping_add(place), in_ring - place);
        }
        // Below the length of both, for a place is below that of the ring.
        let place = place - in_ring;
        match place.checked_sub(BESIDE) {
            None => {
                let from = BESIDES[index & 1] + place;
                (self.words.wrapping_add(from), BESIDE - place)
            }
            Some(place) => {
                let at = in_page(self.words.addr() + BEHINDS[index & 1] + place);
                let page = self.words.wrapping_sub(in_page(self.words.addr()));
                let page_end = PAGE as usize - at;
                (page.wrapping_add(at), page_end.min(BEHIND - place))
            }
        }
    }

    #[inline]
    fn ring(&self, index: usize) -> *mut u8 {
        // SAFETY: both rings lie in the mapping, which is as long as the size says.
        unsafe { self.rings.add((index & 1) * self.size.bytes()) }
    }

    /// Where in its ring a byte lies that is `at` bytes after the start.
    #[inline]
    fn place(&self, at: u64) -> usize {
        // The length is a power of two, so the mask makes whatever a peer says harmless.
        (at & (self.size.bytes() as u64 - 1)) as usize
    }
}

// SAFETY: the pointers are to the value's own mapping, and is not tied to a thread.
unsafe impl Send for Stream {}
// SAFETY: what is reached through `&self` is atomics, and bytes by raw copies, for which racing is the documented use.
unsafe impl Sync for Stream {}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("side", &self.side)
            .field("tx", &self.tx())
            .field("rx", &self.rx())
            .finish_non_exhaustive()
    }
}

/// The peer wrote what it can not mean. The stream is of no more use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// The memory has been given to the peer.
pub const OFFERED: u32 = 0;
/// The peer has mapped it and will use it.
pub const READY: u32 = 1;
/// The end that gave it has given up.
pub const WITHDRAWN: u32 = 2;

/// The sender has shut its direction down.
pub const FIN: u32 = 1;
/// The sender's end is closed.
pub const GONE: u32 = 2;

/// In an `armed` word: somebody sleeps on the TCP connection.
pub const SLEEPER: u32 = 1;
/// In the sender's `armed` word for data: the receiver wants the direction back on TCP.
pub const BACK: u32 = 2;
/// In the sender's `armed` word for data, with [`BACK`]: the receiver waits for that no longer, and others read TCP: no doorbell may go there.
pub const LEFT: u32 = 8;
/// In the sender's `armed` word for data: the receiver looks at a [`board`], at the place ([`Place`]) whose number is in the upper bits.
pub const BOARD: u32 = 4;
/// With [`BOARD`]: the receiver is told of all that comes, until it or the sender takes the request away.
pub const STANDS: u32 = 16;
/// See [`BOARD`].
const PLACE_SHIFT: u32 = 8;
const _: () = assert!(PLACE_SHIFT + Place::BITS <= u32::BITS);
const _: () = assert!(layout::RINGS == mem::FIRST, "the rings are what follows");
