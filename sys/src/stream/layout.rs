//! Where everything lies. Both sides are compiled from this file, so a change of it is a change of [`VERSION`].

use std::mem::offset_of;

use super::sleep::Room;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

// Not `mapped`: in a model these are loom's, and `super::modelled` holds them.

/// The words, in the first page; the rings follow that. Indices are sides, or the side that sends in the direction meant.
///
/// Of a pair of lines, which the processor prefetches together, one is idle or seldom written, or both have one writer. What is seldom written lies together,
/// whoever writes it: with thousands of connections each line that a message touches is fetched from afar.
#[cfg_attr(loom, derive(Default))]
#[repr(C)]
pub(super) struct ControlPage {
    pub(super) sides: [SideWords; 2],
    pub(super) both: Line<Both>,
    apart: Line<AtomicU32>,
    pub(super) switches: Line<[SwitchWords; 2]>,
    pub(super) kept: Line<[Kept; 2]>,
}

/// What one side writes for each message: each line is read only by who needs it.
#[cfg_attr(loom, derive(Default))]
#[repr(C)]
pub(super) struct SideWords {
    pub(super) published: Line<Published>,
    /// What the processor prefetches together with what is polled.
    apart: Line<AtomicU32>,
    pub(super) sender: Line<SenderWords>,
    /// Of the direction in which the other side sends.
    pub(super) receiver: Line<ReceiverWords>,
    /// What it prefetches for who goes through these upwards.
    behind: [Line<AtomicU32>; 2],
}

/// The words of one direction.
#[derive(Clone, Copy)]
pub(super) struct Direction<'a> {
    pub(super) receiver: &'a ReceiverWords,
    pub(super) published: &'a Published,
    pub(super) asked: &'a Asked,
    pub(super) moved: &'a AtomicU32,
    pub(super) switch: &'a SwitchWords,
    pub(super) sender: &'a SenderWords,
}

impl ControlPage {
    #[inline]
    pub(super) fn direction(&self, index: usize) -> Direction<'_> {
        let (sender, receiver) = (&self.sides[index & 1], &self.sides[index & 1 ^ 1]);
        Direction {
            receiver: &receiver.receiver.0,
            published: &sender.published.0,
            asked: &self.both.0.asked[index & 1],
            moved: &self.both.0.moved[index & 1],
            switch: &self.switches.0[index & 1],
            sender: &sender.sender.0,
        }
    }
}

impl<'a> Direction<'a> {
    /// The room in the ring, and who sleeps for it.
    #[inline]
    pub(super) fn space(self, size: Size) -> Room<'a, AtomicU64, AtomicU32> {
        Room {
            head: &self.receiver.head,
            looked: &self.receiver.looked,
            armed: &self.asked.armed_room,
            len: size.bytes() as u64,
        }
    }
}

/// What changes seldom, and is read for each message.
#[cfg_attr(loom, derive(Default))]
#[repr(C)]
pub(super) struct Both {
    /// [`super::OFFERED`] and so on.
    pub(super) state: AtomicU32,
    /// Of each direction, by its sender: [`TO_RING`], [`TO_TCP`], after the counts.
    pub(super) moved: [AtomicU32; 2],
    pub(super) asked: [Asked; 2],
    pub(super) ends: [End; 2],
}

/// What the receiver polls, and the bytes that it finds with it.
#[cfg_attr(loom, derive(Default))]
#[repr(C)]
pub(super) struct Published {
    /// Bytes written to the ring in all.
    pub(super) tail: AtomicU64,
    /// What the sender of this direction has taken of the other one: saves its peer a look at `head`. It may be old.
    pub(super) ack: AtomicU64,
    /// The count that lies at the start of the ring: its lower half, which says where all others lie.
    pub(super) base: AtomicU32,
    /// The sender will write no more ([`super::FIN`]), or is gone ([`super::GONE`]).
    pub(super) fin: AtomicU32,
    /// See [`BESIDE`].
    #[cfg(not(loom))]
    beside: [AtomicU64; BESIDE / 8],
}

/// What one end asks of the other.
#[cfg_attr(loom, derive(Default))]
#[repr(C)]
pub(super) struct Asked {
    /// Set by the receiver before it sleeps, cleared by the sender that wakes it.
    pub(super) armed_data: AtomicU32,
    /// Set by the sender before it sleeps, cleared by the receiver that wakes it.
    pub(super) armed_room: AtomicU32,
}

/// When a direction moves from TCP to the ring, and back. Counts are bytes written to TCP in all, plus 1, and say nothing until it [has moved](Both::moved).
#[cfg_attr(loom, derive(Default))]
#[repr(C)]
pub(super) struct SwitchWords {
    /// By the receiver.
    pub(super) consent: AtomicU32,
    /// By the sender.
    pub(super) to_ring: AtomicU64,
    /// By the sender.
    pub(super) to_tcp: AtomicU64,
    /// By the sender: doorbells that it wrote to TCP, and those that it is about to write.
    pub(super) bells: AtomicU64,
}

/// What the processes that share the sending end keep between them.
#[cfg_attr(loom, derive(Default))]
#[repr(C)]
pub(super) struct SenderWords {
    pub(super) turn: AtomicU32,
    pub(super) head_seen: AtomicU64,
    /// How much of the ring, from its start, may have been written since its pages were last given back, or [may be](super::Tx::grow) without more ado.
    pub(super) used: AtomicU64,
    /// What [`Published`] says, for those who say it: who reads a line that another CPU polls takes it from there, and once more to write it.
    pub(super) tail: AtomicU64,
    pub(super) base: AtomicU64,
    pub(super) fin: AtomicU32,
    /// What this end had taken of the other direction when it last published.
    pub(super) answered: AtomicU64,
}

impl SenderWords {
    /// How far from the start of the ring it will write next. A hint: nothing depends on it.
    #[inline]
    pub(super) fn since_base(&self) -> usize {
        let tail = self.tail.load(Ordering::Relaxed);
        tail.wrapping_sub(self.base.load(Ordering::Relaxed)) as usize
    }
}

/// What the processes that share the receiving end keep between them.
#[cfg_attr(loom, derive(Default))]
#[repr(C)]
pub(super) struct ReceiverWords {
    pub(super) turn: AtomicU32,
    /// Bytes of the TCP connection still to be dropped or taken: see `sockets::stream`.
    pub(super) phase: AtomicU32,
    /// Bytes that the receiver has taken in all.
    pub(super) head: AtomicU64,
    /// Bytes taken from TCP before the ring, as far as these processes count them, plus 1: a connection that is over has no counts.
    pub(super) taken: AtomicU64,
    /// The count in the ring before which out-of-band data was sent, plus 1.
    pub(super) mark: AtomicU64,
    /// The head at which the receiver last looked whether a sender sleeps.
    pub(super) looked: AtomicU64,
    /// A tail that the receiver has seen, and the base that goes with it: it need not look at the sender's line while there is more before that.
    pub(super) tail_seen: AtomicU64,
    pub(super) base_seen: AtomicU64,
}

/// One end, shared by the processes that have it.
#[cfg_attr(loom, derive(Default))]
#[repr(C)]
pub(super) struct End {
    /// How many processes have it.
    pub(super) holders: AtomicU32,
    /// Nobody reads here any more, or nothing but what is in the ring: what is sent to this end from now on is for TCP to answer.
    pub(super) deaf: AtomicU32,
    /// More than one process may act at this end, so turns are taken between processes too.
    pub(super) shared: AtomicU32,
    /// Its processes have the other end's board, or rather the one that came to the meeting has.
    pub(super) notes: AtomicU32,
}

/// What the processes of one end keep between them, and look at seldom.
#[cfg_attr(loom, derive(Default))]
#[repr(C)]
pub(super) struct Kept {
    /// An error of the TCP connection that the kernel has told one of them, once for all: a number that `sockets` gives a meaning.
    pub(super) tcp_error: AtomicU32,
    /// Options of the program's that the socket has otherwise: numbers that `sockets` gives a meaning.
    pub(super) options: AtomicU32,
    pub(super) low_water: AtomicU32,
}

/// A line of the processor's.
#[cfg_attr(loom, derive(Default))]
#[repr(C, align(64))]
pub(super) struct Line<T>(pub(super) T);

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<ReceiverWords>() <= 64 && size_of::<Both>() <= 64);
    assert!(size_of::<ControlPage>() == 16 * 64 && size_of::<ControlPage>() <= RINGS);
    assert!(Size::new(RING).is_some());
    // Pairs begin with what is published, and with what the processes of a side keep.
    assert!(SHOWN[0] == 0 && SHOWN[1] == 6 * 64 && size_of::<Published>() == 64);
    assert!(SHOWN[0] + offset_of!(Published, beside) == BESIDES[0]);
    assert!(SHOWN[1] + offset_of!(Published, beside) == BESIDES[1]);
    assert!(size_of::<ControlPage>() <= BEHINDS[1]);
};

/// How long each of the two rings is: a power of two from [`Size::LEAST`] to [`Size::MOST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(u32);

impl Size {
    /// A page of the largest size that a processor has, and two pieces of a long message, so that both ends copy at once.
    pub const LEAST: Self = Self(64 << 10);
    /// Where nobody wants another.
    pub const DEFAULT: Self = Self(RING as u32);
    /// What a peer can have us keep twice for each connection, if we allow it.
    pub const MOST: Self = Self(16 << 20);

    /// Rings of so many bytes.
    pub const fn new(bytes: usize) -> Option<Self> {
        let legal = bytes >= Self::LEAST.bytes() && bytes <= Self::MOST.bytes();
        if legal && bytes.is_power_of_two() {
            // The most fits.
            Some(Self(bytes as u32))
        } else {
            None
        }
    }

    /// The rings that a segment of `len` bytes holds.
    pub fn of_memory(len: u64) -> Option<Self> {
        let rings = usize::try_from(len).ok()?.checked_sub(RINGS)?;
        Self::new(rings / 2).filter(|size| size.memory_len() as u64 == len)
    }

    /// Bytes of each ring.
    #[inline]
    pub const fn bytes(self) -> usize {
        self.0 as usize
    }

    /// Bytes of a segment with such rings.
    pub const fn memory_len(self) -> usize {
        RINGS + 2 * self.bytes()
    }
}

/// Of this layout and of what the words mean.
pub const VERSION: u32 = 11;
/// The direction has moved to the ring.
pub(super) const TO_RING: u32 = 1;
/// It has moved back.
pub(super) const TO_TCP: u32 = 2;
/// Where the ring of direction 0 begins; that of direction 1 follows.
pub(super) const RINGS: usize = 4096;
/// Where the words that the sender of a direction publishes are, of each side: first the tail. As all places here, from the beginning of the words on.
pub(super) const SHOWN: [usize; 2] = {
    let first = offset_of!(ControlPage, sides) + offset_of!(SideWords, published);
    [first, first + size_of::<SideWords>()]
};
/// The last bytes of each ring lie in this page: so many in the line of the words that tell of them, and the rest behind all words, where the processor does not
/// prefetch them with what is polled. See [decision 30](../../../docs/decisions/0030-short-messages-in-the-first-page.md).
pub(super) const BESIDE: usize = 64 - 24;
/// See [`BESIDE`].
pub(super) const BEHIND: usize = 1536;
/// Where each ring's are.
pub(super) const BESIDES: [usize; 2] = [24, 6 * 64 + 24];
/// See [`BESIDES`]. In this order: who goes through the words upwards has the processor fetch lines behind them, and with 100 connections in turn a message there and
/// back took 445 ns in the other.
pub(super) const BEHINDS: [usize; 2] = [RINGS - BEHIND, RINGS - 2 * BEHIND];
/// The unit of the layout, on machines with larger pages too.
pub(super) const PAGE: u64 = 4096;
/// Where in the first page the words of a stream lie; `number` is that of its file. Lines at the same place of their pages share a 64th of a nearest cache, which has room
/// for a dozen: of more connections that are used in turn, none would find its words there. See [decision 44](../../../docs/decisions/0044-changes-at-once.md).
pub(super) const fn words_at(number: u64) -> usize {
    (number % BEGINNINGS) as usize * PAIR
}

/// The page's end is followed by its beginning.
#[inline]
pub(super) const fn in_page(at: usize) -> usize {
    at & (PAGE as usize - 1)
}

/// Two lines, which the processor prefetches together.
const PAIR: usize = 128;
/// Words lie in one piece.
const BEGINNINGS: u64 = (RINGS - size_of::<ControlPage>()) as u64 / PAIR as u64 + 1;
/// Bytes of each ring by default: as much as programs may count on that write before they read. TCP takes 4 MB and more over loopback, but what is left here when a
/// connection goes back must fit there.
pub const RING: usize = 2 << 20;
/// Bytes of a segment with such rings.
pub const LEN: usize = Size::DEFAULT.memory_len();
