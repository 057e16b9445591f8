//! The packets that come.

use std::net::Ipv4Addr;

use proto::packet::{Arrival, Packet, WAKEUP_LEN, Wakeup};
use sys::lock::Guard;
use sys::sync::Ordering;
use via::provider::Received;
use via::{Completion, Done};

use super::Stream;
use super::inner::{Inner, Piece, Taken};
use crate::packet::adapter::is_local;
use crate::packet::keeper;

impl Stream {
    /// Takes one packet in, if one has come and it is ours to take.
    #[inline]
    pub(super) fn take_in(&self, inner: &mut Inner) -> bool {
        self.take_into(inner, &mut []) != Taken::Nothing
    }

    /// As [`Stream::take_in`]; DATA may go straight to `into`, which is the program's, and where it continues what the program has read.
    #[inline(always)]
    pub(super) fn take_into(&self, inner: &mut Inner, into: &mut [u8]) -> Taken {
        if inner.is_awaited || inner.is_noticed || self.adapter.variant.handler || inner.lost {
            return Taken::Nothing;
        }
        let received = self.look(inner.peer.is_some(), into, 1);
        self.absorb_received(inner, received)
    }

    /// What has come; DATA goes to `into` where nothing is gained by a buffer of ours in between. The first packet is none.
    #[inline(always)]
    pub(super) fn look(
        &self,
        acquainted: bool,
        into: &mut [u8],
        looks: u32,
    ) -> Result<Received, via::Error> {
        if acquainted && self.adapter.copies {
            return self.vi.look(into, looks);
        }
        self.vi.recv_done().map(Received::Posted)
    }

    #[inline(always)]
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
    #[inline(always)]
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
    #[inline(always)]
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
                inner.peer = Some(Wakeup {
                    address: self.believed(peer.address.into()).octets(),
                    ..peer
                });
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

    /// The address of who asked: the one that it says it has, as far as its host can have that. Who has asked somebody knows whom.
    fn believed(&self, said: Ipv4Addr) -> Ipv4Addr {
        let can_have = |origin: &Ipv4Addr| {
            *origin == said || (!said.is_unspecified() && is_local(*origin) && is_local(said))
        };
        self.origin
            .filter(|origin| !can_have(origin))
            .unwrap_or(said)
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
