//! For a program that polls: packets are taken in when they come, and not when it calls.

use std::sync::Arc;

use sys::sync::Ordering;

use super::Stream;
use super::inner::Inner;
use crate::packet::show::Show;

impl Stream {
    /// Somebody polls. From now on the NIC's notify function takes packets in, as a handler thread does, and `show` says what there is.
    pub(in crate::packet) fn watch(self: &Arc<Self>, show: &Show) {
        let mut inner = self.lock();
        if inner.shown.is_some() || inner.is_closing {
            return;
        }
        while self.take_in(&mut inner) {}
        self.show_by(&mut inner, show);
        if inner.free.is_empty() {
            self.watch_room(&mut inner);
        }
        self.stash_for_poller(&mut inner);
        self.show(&inner, true);
    }

    /// Nobody is told any more: the program's calls take packets in, but for the next.
    pub(in crate::packet) fn unwatch(&self) {
        let mut inner = self.lock();
        inner.shown = None;
        self.watched.store(false, Ordering::Relaxed);
        inner.combiner.set_delay(self.adapter.variant.combine);
    }

    /// Whether there is something to read, or nothing will be.
    pub(in crate::packet) fn has_news(&self) -> bool {
        let mut inner = self.lock();
        while self.take_in(&mut inner) {}
        !inner.arrived.is_empty() || inner.ended || inner.is_over()
    }

    /// From now on packets are taken in when they come, nothing is held back, and `show` hears what there is.
    pub(super) fn show_by(self: &Arc<Self>, inner: &mut Inner, show: &Show) {
        inner.shown = Some(show.clone());
        // Who polls may do so next, which no stream hears of, where it would receive and so have what is held back sent.
        inner.combiner.set_delay(None);
        self.flush_now(inner);
        self.watched.store(true, Ordering::Relaxed);
        self.attend(inner);
        self.settle(inner);
        self.reap(inner);
    }

    /// There is no room in the NIC: a program that polls is to see when there is.
    pub(super) fn watch_room(&self, inner: &mut Inner) {
        let polls = inner.shown.is_some() && !inner.is_crowded && !inner.is_draining;
        let (true, Some(me)) = (polls, inner.me.upgrade()) else {
            return;
        };
        let handler = Box::new(move |completion| {
            let Some(mut inner) = me.lock_unless_losing() else {
                return;
            };
            inner.is_crowded = false;
            Self::note_sent(&mut inner, completion);
            me.show(&inner, false);
        });
        inner.is_crowded = self.vi.ops().notify(via::Queue::Send, handler).is_ok();
    }

    /// Has the NIC call for the next packet, unless a thread takes them in.
    pub(super) fn attend(self: &Arc<Self>, inner: &mut Inner) {
        // A thread that waits in the NIC begins with it when it is back.
        let idle = inner.shown.is_some() && !inner.is_awaited && !inner.is_noticed;
        if idle && !inner.lost && !self.adapter.variant.handler {
            inner.is_noticed = true;
            if !self.linger() {
                self.lose(inner);
            }
        }
    }

    /// The program has done something that may have changed what there is.
    #[inline]
    pub(super) fn refresh(&self) {
        if self.watched.load(Ordering::Relaxed) {
            self.show(&self.lock(), false);
        }
    }

    /// Says what there is; `fresh` if more has come.
    pub(super) fn show(&self, inner: &Inner, fresh: bool) {
        let Some(show) = &inner.shown else {
            return;
        };
        let sends = inner.is_left || inner.sends();
        let there = !inner.arrived.is_empty() && self.is_enough(inner, usize::MAX);
        show.input(there, fresh);
        let ended = inner.ended || inner.is_shut;
        if inner.error.is_some() {
            return show.reset();
        }
        if (inner.lost && !inner.is_left) || (ended && !sends) {
            return show.gone();
        }
        // Who may not send any more is told so at once.
        let room = inner.talk.window() > 0 && !inner.is_crowded;
        show.room(!sends || inner.is_left || (inner.peer.is_some() && room));
        if ended {
            show.end();
        }
    }
}
