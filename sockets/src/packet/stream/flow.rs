//! What a stream's lock guards, and the packets that come and go.

use std::collections::VecDeque;
use std::sync::Weak;
use std::time::Duration;

use proto::packet::{Arrival, Combiner, Conversation, Kind, Packet, State, WAKEUP_LEN, Wakeup};
use sys::errno::Errno;
use sys::lock::Guard;
use sys::sync::Ordering;
use via::provider::Received;
use via::{Completion, Descriptor, Done};

use super::Stream;
use super::stash::Stash;
use crate::packet::keeper;
use crate::packet::show::Show;
use crate::stat::Tally;

pub(super) struct Inner {
    pub(super) talk: Conversation,
    pub(super) combiner: Combiner,
    /// DATA that has come, oldest first: the paper's `recvq`.
    pub(super) arrived: VecDeque<Piece>,
    /// What was taken out of its buffers because nobody read it: the bytes of the first of `arrived`, which have [`STASHED`] for a buffer.
    pub(super) stash: Stash,
    /// Where the next look begins (`SO_PEEK_OFF`).
    pub(super) peek_offset: Option<usize>,
    /// Buffers to send from, the last used on top.
    pub(super) free: Vec<u32>,
    /// The buffer in which small messages gather.
    pub(super) held_in: Option<u32>,
    /// Posted sends that have not been seen to be done.
    pub(super) unsent: u32,
    pub(super) wakeup: Wakeup,
    pub(super) peer: Option<Wakeup>,
    /// The peer's FIN has come.
    pub(super) ended: bool,
    /// The program has shut its receiving direction down.
    pub(super) is_shut: bool,
    /// The VI is no longer connected.
    pub(super) lost: bool,
    /// The program has sent something since the peer's end.
    pub(super) sends_on: bool,
    /// The peer is gone, after its end: what is sent to it is lost.
    pub(super) is_left: bool,
    /// The error that broke the connection, until the program has been told.
    pub(super) error: Option<Errno>,
    /// A packet could not be delivered, and no other will be.
    pub(super) is_refused: bool,
    /// A thread waits for the NIC to let go of a buffer.
    pub(super) is_draining: bool,
    /// The program was told that there is no room in the NIC, and polls: it is to be told when there is.
    pub(super) is_crowded: bool,
    /// A thread waits in the NIC.
    pub(super) is_awaited: bool,
    /// The program has closed it.
    pub(super) is_closing: bool,
    /// The program sends nothing more: a FIN follows what is held.
    pub(super) is_ending: bool,
    /// The timer knows of it.
    pub(super) is_timed: bool,
    /// Its bytes go through the stand-in, which others may have: no call of the program's moves any.
    pub(super) is_relayed: bool,
    /// Acknowledgements are due, and wait for the program's next call: its DATA takes them along.
    pub(super) is_deferring: bool,
    /// And since the timer last looked.
    pub(super) has_deferred: bool,
    /// The timer looks after them.
    pub(super) is_tended: bool,
    /// Threads that wait for another to take packets in.
    pub(super) waiters: u32,
    /// Where a program that polls is told what there is.
    pub(super) shown: Option<Show>,
    /// The NIC's notify function takes packets in.
    pub(super) is_noticed: bool,
    /// The stream itself.
    pub(super) me: Weak<Stream>,
    /// What others see of it.
    pub(super) tally: Tally,
}

/// What taking a packet in came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// There is none.
    Nothing,
    /// There is none, and a signal was handled.
    Interrupted,
    /// One came.
    Packet,
    /// DATA came, and so many bytes of it are where the program wants them.
    Bytes(usize),
}

/// Bytes in a receive buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) slot: u32,
    pub(super) at: u32,
    pub(super) len: u32,
}

impl Inner {
    pub(super) fn new(talk: Conversation, combiner: Combiner, wakeup: Wakeup, slots: u32) -> Self {
        Self {
            arrived: VecDeque::with_capacity(talk.settings().slots() as usize),
            stash: Stash::default(),
            peek_offset: None,
            talk,
            combiner,
            free: (0..slots).rev().collect(),
            held_in: None,
            unsent: 0,
            wakeup,
            peer: None,
            ended: false,
            is_shut: false,
            lost: false,
            sends_on: false,
            is_left: false,
            error: None,
            is_refused: false,
            is_draining: false,
            is_crowded: false,
            is_awaited: false,
            is_closing: false,
            is_ending: false,
            is_timed: false,
            is_relayed: false,
            is_deferring: false,
            has_deferred: false,
            is_tended: false,
            waiters: 0,
            shown: None,
            is_noticed: false,
            me: Weak::new(),
            tally: Tally::default(),
        }
    }

    /// Whether nothing more can come before the program has read something.
    pub(super) fn is_full(&self) -> bool {
        let posted = self.talk.settings().pre_posted();
        self.talk.is_full() || self.arrived.len() - self.stash.len() >= posted as usize
    }

    /// Bytes that have come and have not been read.
    pub(super) fn readable(&self) -> usize {
        self.arrived.iter().map(|piece| piece.len as usize).sum()
    }

    /// The program has read so much: a look that follows begins so much earlier.
    #[inline]
    pub(super) fn has_read(&mut self, bytes: usize) {
        if let Some(offset) = &mut self.peek_offset {
            *offset = offset.saturating_sub(bytes);
        }
    }

    /// The program has looked at so much.
    pub(super) fn has_seen(&mut self, bytes: usize) {
        if let Some(offset) = &mut self.peek_offset {
            *offset += bytes;
        }
    }

    /// Whether the program may send.
    pub(super) fn sends(&self) -> bool {
        !self.is_ending && self.talk.sends()
    }

    /// Whether everything has been said on both sides, or nothing more can be.
    pub(super) fn is_over(&self) -> bool {
        self.lost || self.talk.state() == State::Closed
    }

    /// The connection breaks: what the program is to be told, if it has not been yet.
    fn note_break(&mut self) {
        if self.is_over() || self.is_refused {
            return;
        }
        // Whoever has said that it ends may be gone: over TCP that shows when one sends to it.
        self.is_left = self.ended && !self.sends_on;
        self.error = match (self.ended, self.sends_on) {
            (false, _) => Some(Errno::CONNRESET),
            (true, true) => Some(Errno::PIPE),
            (true, false) => None,
        };
    }

    /// The error that broke the connection, once.
    pub(super) fn take_error(&mut self) -> Option<Errno> {
        let error = self.error.take();
        if let (Some(_), Some(show)) = (error, &self.shown) {
            show.told();
        }
        error
    }
}

impl Stream {
    /// Takes one packet in, if one has come and it is ours to take.
    #[inline]
    pub(super) fn take_in(&self, inner: &mut Inner) -> bool {
        self.take_into(inner, &mut []) != Taken::Nothing
    }

    /// As [`Stream::take_in`]; DATA may go straight to `into`, which is the program's, and where it continues what the program has read.
    #[inline]
    pub(super) fn take_into(&self, inner: &mut Inner, into: &mut [u8]) -> Taken {
        if inner.is_awaited || inner.is_noticed || self.adapter.variant.handler || inner.lost {
            return Taken::Nothing;
        }
        let received = self.look(inner.peer.is_some(), into);
        self.absorb_received(inner, received)
    }

    /// What has come; DATA goes to `into` where nothing is gained by a buffer of ours in between. The first packet is none.
    #[inline]
    pub(super) fn look(&self, acquainted: bool, into: &mut [u8]) -> Result<Received, via::Error> {
        if acquainted && self.adapter.copies {
            return self.vi.receive(into, Some(Duration::ZERO));
        }
        self.vi.recv_done().map(Received::Posted)
    }

    #[inline]
    pub(super) fn absorb_received(
        &self,
        inner: &mut Inner,
        received: Result<Received, via::Error>,
    ) -> Taken {
        match received {
            Ok(Received::Copied { length, immediate }) => {
                return self.absorb_copied(inner, length, immediate);
            }
            Ok(Received::Posted(Done::Completed(completion))) => self.absorb(inner, completion),
            Ok(Received::Posted(Done::NotDone)) => return Taken::Nothing,
            // Every descriptor has something that the program has not read: the NIC, which holds the peer back, keeps the rest.
            Ok(Received::Posted(Done::Empty)) if !inner.arrived.is_empty() => {
                return Taken::Nothing;
            }
            Ok(Received::Posted(Done::Empty)) | Err(_) => self.lose(inner),
        }
        Taken::Packet
    }

    /// A packet came that used no descriptor, and its bytes are the program's already.
    #[inline]
    fn absorb_copied(&self, inner: &mut Inner, length: u32, immediate: Option<u32>) -> Taken {
        let Some(Ok(packet)) = immediate.map(Packet::decode) else {
            self.lose(inner);
            return Taken::Packet;
        };
        match inner.talk.handle(packet, length, Vec::new) {
            Ok(Arrival::Data) => {
                inner.talk.reposted();
                self.acknowledge(inner);
                return Taken::Bytes(length as usize);
            }
            Ok(Arrival::Control) => self.transmit(inner),
            Ok(Arrival::End) => {
                inner.ended = true;
                self.transmit(inner);
            }
            Ok(Arrival::Moved(kind)) => self.note_move(inner, kind),
            Ok(Arrival::Urgent(byte)) => self.note_urgent(inner, byte),
            Ok(Arrival::Wakeup(_) | Arrival::Unwanted) | Err(_) => self.lose(inner),
        }
        Taken::Packet
    }

    /// Acknowledges what the program has read, if it is time; but not before the program's next call if that may be a send. A timer bounds this.
    #[inline]
    fn acknowledge(&self, inner: &mut Inner) {
        let elsewhere = inner.is_noticed || self.adapter.variant.handler || inner.is_closing;
        if elsewhere || !inner.talk.may_defer() {
            return self.transmit(inner);
        }
        inner.is_deferring = true;
        inner.has_deferred = true;
        if !inner.is_tended {
            self.tend(inner);
        }
    }

    #[cold]
    fn tend(&self, inner: &mut Inner) {
        if let Some(me) = inner.me.upgrade() {
            inner.is_tended = true;
            keeper::tend_later(&me);
        }
    }

    /// The timer of deferred acknowledgements; whether it is to look again.
    pub(in crate::packet) fn tick(&self) -> bool {
        let mut inner = self.lock();
        self.settle(&mut inner);
        inner.is_tended = std::mem::take(&mut inner.has_deferred) && !inner.lost;
        inner.is_tended
    }

    /// Sends the acknowledgements that were to wait for the program's next call, which is this one, or which wait long enough.
    #[inline]
    pub(super) fn settle(&self, inner: &mut Inner) {
        if std::mem::take(&mut inner.is_deferring) {
            self.transmit(inner);
        }
    }

    /// A receive has completed.
    #[inline]
    pub(super) fn absorb(&self, inner: &mut Inner, completion: Completion) {
        let Ok(completion) = completion.ok() else {
            return self.lose(inner);
        };
        let slot = completion.token as u32;
        let packet = completion.immediate.map(Packet::decode);
        let Some(Ok(packet)) = packet else {
            return self.lose(inner);
        };
        let payload = || {
            let mut bytes = vec![0; (completion.length as usize).min(WAKEUP_LEN + 1)];
            let start = slot as usize * self.stride as usize;
            match self.incoming.memory().read(start, &mut bytes) {
                Ok(()) => bytes,
                Err(_) => Vec::new(),
            }
        };
        match inner.talk.handle(packet, completion.length, payload) {
            Ok(Arrival::Data) => {
                inner.arrived.push_back(Piece {
                    slot,
                    at: 0,
                    len: completion.length,
                });
                return;
            }
            Ok(Arrival::Control) => {}
            Ok(Arrival::Wakeup(peer)) => {
                inner.peer = Some(peer);
                inner.combiner.limit(peer.settings.mtu);
                inner.talk.reposted();
            }
            Ok(Arrival::End) => inner.ended = true,
            Ok(Arrival::Moved(kind)) => self.note_move(inner, kind),
            Ok(Arrival::Urgent(byte)) => self.note_urgent(inner, byte),
            Ok(Arrival::Unwanted) | Err(_) => return self.lose(inner),
        }
        if self.post_recv(slot).is_err() {
            return self.lose(inner);
        }
        self.transmit(inner);
    }

    /// The program has read a buffer: it is there for the peer again.
    #[inline]
    pub(super) fn give_back(&self, inner: &mut Inner, slot: u32) {
        if self.post_recv(slot).is_err() {
            return self.lose(inner);
        }
        inner.talk.reposted();
        self.acknowledge(inner);
    }

    /// Sends what the protocol has to say.
    #[inline]
    pub(super) fn transmit(&self, inner: &mut Inner) {
        while let Some(packet) = inner.talk.poll_transmit() {
            if inner.lost {
                return;
            }
            if packet.kind == Kind::Wakeup {
                self.send_wakeup(inner, packet);
            } else if !self.post_at_once(&[], packet) {
                self.post(inner, packet, Descriptor::send(), NO_SLOT);
            }
        }
    }

    fn send_wakeup(&self, inner: &mut Inner, packet: Packet) {
        let Some(slot) = inner.free.pop() else {
            return self.lose(inner);
        };
        let start = slot * self.stride;
        let bytes = inner.wakeup.encode();
        if self
            .outgoing
            .memory()
            .write(start as usize, &bytes)
            .is_err()
        {
            return self.lose(inner);
        }
        let range = start..start + WAKEUP_LEN as u32;
        let descriptor = Descriptor::send().segment(&self.outgoing, range);
        self.post(inner, packet, descriptor, slot);
    }

    /// Posts a packet; `slot` is free again when the NIC has it.
    #[inline]
    pub(super) fn post(
        &self,
        inner: &mut Inner,
        packet: Packet,
        descriptor: Descriptor<'_>,
        slot: u32,
    ) {
        if inner.unsent >= UNSENT_MAX {
            self.reap(inner);
        }
        let descriptor = descriptor.immediate(packet.encode());
        match self.vi.post_send(&descriptor, slot.into()) {
            Ok(()) => inner.unsent += 1,
            Err(_) => self.lose(inner),
        }
    }

    /// Hands a packet to a NIC that copies, from wherever its bytes are; `false` if it has to be posted.
    #[inline]
    pub(super) fn post_at_once(&self, bytes: &[u8], packet: Packet) -> bool {
        self.adapter.copies && matches!(self.vi.send_copied(bytes, Some(packet.encode())), Ok(true))
    }

    /// Notices sends that are done.
    #[inline]
    pub(super) fn reap(&self, inner: &mut Inner) {
        while inner.unsent > 0 {
            let completion = match self.vi.send_done() {
                Ok(Done::Completed(completion)) => completion,
                Ok(Done::NotDone) => return,
                Ok(Done::Empty) | Err(_) => {
                    inner.unsent = 0;
                    return;
                }
            };
            Self::note_sent(inner, completion);
        }
    }

    /// A posted send has left, or will not.
    #[inline]
    pub(super) fn note_sent(inner: &mut Inner, completion: Completion) {
        inner.unsent = inner.unsent.saturating_sub(1);
        if completion.token != u64::from(NO_SLOT) {
            inner.free.push(completion.token as u32);
        }
        if completion.ok().is_err() {
            // It also shows on the other queue; but behind what came before, which the program may never read.
            inner.note_break();
            inner.is_refused = true;
        }
    }

    /// The connection is broken, or has been by the peer.
    #[cold]
    pub(super) fn lose(&self, inner: &mut Inner) {
        inner.note_break();
        inner.lost = true;
        inner.talk.lose();
        // What is held goes nowhere.
        inner.combiner.flushed();
        let slot = inner.held_in.take();
        inner.free.extend(slot);
        self.losing.store(true, Ordering::Release);
        // It may have ended already; and a NIC that is closed has ended it.
        let _ = self.vi.ops().disconnect();
        self.show(inner, false);
        self.moved.notify_all();
    }

    /// Lets go of the lock; those who wait for another to take packets in look again. Whether there are any.
    pub(super) fn wake_waiters(&self, inner: Guard<'_, Inner>) -> bool {
        let any = inner.waiters > 0;
        drop(inner);
        if any {
            self.moved.notify_all();
        }
        any
    }
}

/// The buffer of a piece that is in none: an urgent byte, which is where the piece begins.
pub(super) const URGENT: u32 = u32::MAX - 1;
/// The buffer of a piece that is in none any more.
pub(super) const STASHED: u32 = u32::MAX;
/// Of packets that need no buffer.
pub(super) const NO_SLOT: u32 = u32::MAX;
/// Sends in a row before those that are done are looked for.
const UNSENT_MAX: u32 = 16;
