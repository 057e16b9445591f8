//! Connections that are not there to be accepted before their peer has said something (`TCP_DEFER_ACCEPT`), or has been silent for so long.

use std::sync::Arc;
use std::time::Instant;

use super::{Inner, Listener, Place};
use crate::packet::show::Show;
use crate::packet::stream::Stream;

impl Listener {
    /// Until when a connection that has just been made is to wait for its first bytes, of which the threads are told that wait here.
    pub(super) fn defer(&self, stream: &Arc<Stream>) -> Option<Instant> {
        let deferral = self.lock().deferral?;
        stream.watch(&Show::telling(&self.changed));
        Some(Instant::now() + deferral)
    }
}

impl Inner {
    /// Those of which something has come, or whose time is over, are there from now on. Whether there are any.
    pub(super) fn admit(&mut self) -> bool {
        if self.deferred == 0 {
            return false;
        }
        let now = Instant::now();
        let mut any = false;
        for place in &mut self.queue {
            let is_over = |until| now >= until || place.stream.has_news();
            if place.deferred_until.is_some_and(is_over) {
                place.deferred_until = None;
                place.stream.unwatch();
                any = true;
            }
        }
        self.count_deferred();
        any
    }

    pub(super) fn count_deferred(&mut self) {
        let is_deferred = |place: &&Place| place.deferred_until.is_some();
        self.deferred = self.queue.iter().filter(is_deferred).count();
    }

    /// When the next of them is there in any case.
    pub(super) fn next_deferred(&self) -> Option<Instant> {
        let places = self.queue.iter().filter(|_| self.deferred > 0);
        places.filter_map(|place| place.deferred_until).min()
    }

    /// Whether another connection may be made. Those that wait for their first bytes have room of their own, as in the kernel, and so have those whose peer is silent.
    pub(super) fn has_room(&self) -> bool {
        let met = || self.queue.iter().filter(|place| !place.is_silent);
        let deferred = met().filter(|place| place.deferred_until.is_some()).count();
        met().count() - deferred < self.backlog && deferred < DEFERRED_MAX
    }

    /// Where too many have a silent peer, the one that has had it for longest gives way to the next: anybody can make such, of which the program never hears.
    pub(super) fn give_way(&mut self) -> Option<Arc<Stream>> {
        if self.silent <= SILENT_MAX {
            return None;
        }
        let is_silent = |place: &Place| place.is_silent && !place.stream.is_met();
        let place = self.queue.iter().position(is_silent)?;
        self.silent -= 1;
        let place = self.queue.remove(place)?;
        self.count_deferred();
        Some(place.stream)
    }
}

/// As many as may wait for an answer.
const DEFERRED_MAX: usize = 128;
const SILENT_MAX: usize = 128;
