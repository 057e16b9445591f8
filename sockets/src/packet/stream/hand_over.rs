//! A connection whose owner leaves it to its peer's process: from then on nothing goes in packets ([`crate::packet::relay`]).

use std::sync::Arc;

use proto::packet::{Kind, PLACE_LEN, State};

use super::Stream;
use super::inner::Inner;
use crate::packet::relay;

impl Stream {
    /// The peer has said that nothing more comes in packets.
    #[cold]
    pub(super) fn note_move(&self, inner: &mut Inner, kind: Kind) {
        self.transmit(inner);
        let both_leave = kind == Kind::Move && !inner.talk.is_asked_to_move();
        // There is nobody to go on with it; and no honest peer of another host asks us to.
        if both_leave || self.adapter.reaches_others() {
            self.lose(inner);
        } else if kind == Kind::Move
            && !inner.is_closing
            && let Some(me) = inner.me.upgrade()
        {
            relay::asked(&me);
        }
    }

    /// The program has closed it, so that nobody follows: says that all has been said.
    pub(super) fn answer_move(&self, inner: &mut Inner) {
        if inner.is_closing
            && inner.talk.is_asked_to_move()
            && inner.combiner.held() == 0
            && inner.talk.hand_over(Kind::Moved)
        {
            self.transmit(inner);
        }
    }

    /// Says MOVE or MOVED behind all that has been sent. Whether it has been said by now; if not, it may be when more packets have come.
    pub(in crate::packet) fn say_move(&self, kind: Kind) -> bool {
        let mut inner = self.lock();
        self.flush_now(&mut inner);
        if inner.lost || inner.combiner.held() > 0 || !inner.talk.hand_over(kind) {
            return false;
        }
        self.transmit(&mut inner);
        true
    }

    /// Whether its peer wants this process to go on with its end.
    pub(in crate::packet) fn is_asked_to_move(&self) -> bool {
        self.lock().talk.is_asked_to_move()
    }

    /// Whether nothing more goes, or comes, in either direction.
    pub(in crate::packet) fn has_closed(&self) -> bool {
        self.lock().talk.state() == State::Closed
    }

    /// Where this end is handed over.
    pub(in crate::packet) fn place(&self) -> [u8; PLACE_LEN] {
        self.lock().wakeup.place
    }

    /// Where the peer's is, if its process may be asked: it is of this host.
    pub(in crate::packet) fn place_of_peer(&self) -> Option<[u8; PLACE_LEN]> {
        let inner = self.lock();
        let is_here = !self.adapter.reaches_others();
        inner.peer.filter(|_| is_here).map(|peer| peer.place)
    }

    pub(in crate::packet) fn is(&self, other: &Arc<Self>) -> bool {
        std::ptr::eq(self, Arc::as_ptr(other))
    }
}
