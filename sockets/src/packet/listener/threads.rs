//! The threads of a listener.

use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use proto::packet::State;
use sys::argument::LOOPBACK_OF_V6;
use via::Incoming;

use super::super::adapter::is_local;
use super::knock::OURSELVES;
use super::{Inner, Listener, Place};
use crate::packet::stream::{Identity, Stream};

impl Listener {
    /// Takes requests in. A NIC knows of a place only while somebody waits there: so two threads do this, and nothing else.
    pub(super) fn receive(&self) {
        // Before the look whether it is closed: who closes waits for all who are counted.
        self.lock().receiving += 1;
        self.receive_all();
        self.lock().receiving -= 1;
        self.changed.notify_all();
    }

    fn receive_all(&self) {
        loop {
            let inner = self.lock();
            if inner.closed {
                return;
            }
            if inner.requests.len() >= REQUESTS_MAX {
                self.nap(inner, None);
                continue;
            }
            drop(inner);
            match self.adapter.nic.connect_wait(&self.at, None) {
                Ok(request) => self.keep(request),
                Err(_) if self.adapter.is_closed() => return,
                // Descriptors may have run out, and come back.
                Err(_) => {
                    let mut inner = self.lock();
                    inner.failed = true;
                    self.nap(inner, Some(LOOK_TIME));
                }
            }
        }
    }

    fn keep(&self, request: Incoming) {
        let from = request.remote_address();
        let is_ours = from.discriminator.as_bytes() == OURSELVES;
        // What is bound there is for this host alone.
        let bound = self.local.ip();
        let is_inward = bound.is_loopback() || *bound == LOOPBACK_OF_V6;
        let is_astray = is_inward && !is_local(self.adapter.origin(&from));
        let mut inner = self.lock();
        if is_ours || is_astray || inner.closed {
            drop(inner);
            // Told already that nobody listens, or about to be.
            let _ = request.reject();
            return;
        }
        inner.requests.push_back(request);
        drop(inner);
        self.changed.notify_all();
    }

    /// Makes connections of requests.
    pub(super) fn make_all(&self) {
        let identity = Identity {
            descriptor: 0,
            address: self.local.ip().octets(),
            port: self.local.port(),
        };
        while let Some(request) = self.next() {
            let Ok(stream) = Stream::accept(&self.adapter, request, identity) else {
                continue;
            };
            stream.meet(MEETING_TIME);
            let deferred_until = self.defer(&stream);
            let mut inner = self.lock();
            if inner.closed {
                drop(inner);
                stream.abort();
                return;
            }
            let is_silent = !stream.is_met();
            inner.silent += usize::from(is_silent);
            inner.deferred += usize::from(deferred_until.is_some());
            inner.queue.push_back(Place {
                stream,
                since: Instant::now(),
                is_silent,
                deferred_until,
            });
            let given_way = inner.give_way();
            inner.show(true);
            drop(inner);
            if let Some(stream) = given_way {
                stream.abort();
            }
            self.changed.notify_all();
        }
    }

    /// The next request, when there is room for its connection; `None` when there are no more to be.
    fn next(&self) -> Option<Incoming> {
        loop {
            // Before the look: a stream that hears from its peer tells without the lock.
            let ticket = self.changed.ticket();
            let mut inner = self.look_at_silent(self.lock());
            if inner.admit() {
                inner.show(true);
                self.changed.notify_all();
            }
            if inner.closed || self.adapter.is_closed() {
                return None;
            }
            if inner.has_room()
                && let Some(request) = inner.requests.pop_front()
            {
                let was_full = inner.requests.len() + 1 == REQUESTS_MAX;
                drop(inner);
                if was_full {
                    self.changed.notify_all();
                }
                return Some(request);
            }
            let silent = (inner.silent > 0).then(|| Instant::now() + LOOK_TIME);
            let limit = silent.into_iter().chain(inner.next_deferred()).min();
            drop(inner);
            self.changed.wait(ticket, limit);
        }
    }

    /// Until something has changed, or so long.
    fn nap(&self, inner: MutexGuard<'_, Inner>, time: Option<Duration>) {
        let ticket = self.changed.ticket();
        drop(inner);
        self.changed
            .wait(ticket, time.map(|time| Instant::now() + time));
    }

    /// Looks at connections whose peer had not said who it is: it may have by now. Some have been silent for long, or are gone.
    pub(super) fn look_at_silent<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
    ) -> MutexGuard<'a, Inner> {
        if inner.silent == 0 {
            return inner;
        }
        let mut silent_now = 0;
        let mut given_up = Vec::new();
        inner.queue.retain_mut(|place| {
            let stream = &place.stream;
            place.is_silent = !stream.is_met();
            if !place.is_silent {
                return true;
            }
            let over = place.since.elapsed() >= SILENCE_TIME || stream.state() == State::Closed;
            if over {
                given_up.push(Arc::clone(stream));
            } else {
                silent_now += 1;
            }
            !over
        });
        inner.count_deferred();
        if std::mem::replace(&mut inner.silent, silent_now) == silent_now {
            return inner;
        }
        inner.show(true);
        drop(inner);
        given_up.iter().for_each(|stream| stream.abort());
        self.changed.notify_all();
        self.lock()
    }
}

/// Askers beyond the backlog that wait for an answer. Each has a descriptor of ours.
const REQUESTS_MAX: usize = 128;
/// A peer's first packet follows its request at once. Who takes longer is looked at now and then, and others come first meanwhile.
const MEETING_TIME: Duration = Duration::from_millis(2);
const LOOK_TIME: Duration = Duration::from_millis(10);
const SILENCE_TIME: Duration = Duration::from_secs(10);
