//! How a stream ends.

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use proto::packet::State;
use sys::errno::Errno;
use sys::lock::Guard;
use sys::sync::Ordering;
use via::provider::Received;
use via::{Done, Queue};

use super::Stream;
use super::inner::Inner;
use super::relay::BY_KERNEL;
use crate::packet::keeper;
use crate::packet::variant::Waiting;
use crate::stat::Tally;

impl Stream {
    /// Shuts directions down for the program.
    ///
    /// # Errors
    /// `ENOTCONN`, and [`BY_KERNEL`] where another thread has it relayed meanwhile.
    pub(in crate::packet) fn shutdown(
        self: &Arc<Self>,
        input: bool,
        output: bool,
    ) -> Result<(), Errno> {
        let inner = self.lock();
        if !inner.is_relayed && inner.talk.state() == State::Closed && !inner.is_left {
            return Err(Errno::NOTCONN);
        }
        drop(inner);
        if input {
            self.shut();
        }
        let inner = self.lock();
        if inner.is_relayed {
            return Err(BY_KERNEL);
        }
        if output { self.end_now(inner) } else { Ok(()) }
    }

    /// The program sends nothing more: a FIN follows what it has sent, and what the peer has no room for yet goes without it.
    ///
    /// # Errors
    /// `ENOTCONN` when the connection is broken.
    pub fn end(self: &Arc<Self>) -> Result<(), Errno> {
        self.end_now(self.lock())
    }

    fn end_now(self: &Arc<Self>, mut inner: Guard<'_, Inner>) -> Result<(), Errno> {
        if std::mem::take(&mut inner.is_left) {
            self.show(&inner, false);
            return Ok(());
        }
        if inner.lost {
            return Err(Errno::NOTCONN);
        }
        if !std::mem::replace(&mut inner.is_ending, true) {
            self.flush_now(&mut inner);
            if inner.combiner.held() > 0 {
                inner.is_timed = true;
                keeper::flush_at(Instant::now(), self);
            }
        }
        self.show(&inner, false);
        self.ring(inner);
        Ok(())
    }

    /// The program receives nothing more, but for what comes all the same, as TCP has it.
    pub fn shut(&self) {
        let mut inner = self.lock();
        inner.is_shut = true;
        self.show(&inner, true);
        self.ring(inner);
    }

    /// Has all threads that wait look again, in the NIC or for who does: no packet tells them what has changed.
    pub(super) fn ring(&self, inner: Guard<'_, Inner>) {
        for (queue, waits) in [
            (Queue::Recv, inner.is_awaited),
            (Queue::Send, inner.is_draining),
        ] {
            if waits {
                self.rung[queue as usize].store(true, Ordering::Relaxed);
                self.vi.ops().interrupt(queue);
            }
        }
        drop(inner);
        self.moved.notify_all();
    }

    /// Whether that ended a wait in the NIC, and no signal did. With the lock held. A wait that ended by itself leaves it for the next, as
    /// the NIC does with the interruption: neither is without the other, so no signal is taken for it.
    pub(super) fn was_rung(&self, queue: Queue) -> bool {
        self.rung[queue as usize].swap(false, Ordering::Relaxed)
    }

    /// The error that broke the connection, if the program has not been told (`SO_ERROR`).
    pub fn take_error(&self) -> Option<Errno> {
        let mut inner = self.lock();
        while self.take_in(&mut inner) {}
        inner.take_error()
    }

    /// A call has failed with `errno`: if that is what broke the connection, no other is told.
    #[cold]
    pub(super) fn told(&self, errno: Errno) {
        let mut inner = self.lock();
        if inner.error == Some(errno) {
            inner.take_error();
        }
    }

    /// The program has closed it. The call returns at once; what is left to be said is said while the peer listens, as the paper's close thread does:
    /// by the NIC's notify function, or by the handler thread.
    pub fn close(self: &Arc<Self>) {
        let mut inner = self.lock();
        if std::mem::replace(&mut inner.is_closing, true) {
            return;
        }
        inner.is_ending = true;
        while self.take_in(&mut inner) {}
        inner.shown = None;
        if !inner.arrived.is_empty() && !inner.is_over() {
            // What came and was not read is lost, and the peer is to know, as over TCP.
            self.lose(&mut inner);
        }
        inner.talk.deafen();
        let noticed = inner.is_noticed;
        self.advance_end(&mut inner);
        let held = inner.combiner.held() as usize;
        inner.tally.released(held);
        inner.tally.took(0, false, false);
        // What a peer goes on to say is nothing to the program.
        inner.tally = Tally::default();
        // A thread that waits in the NIC takes the packets in, and finds that it is over.
        let over = inner.is_over();
        drop(inner);
        self.moved.notify_all();
        if over {
            return;
        }
        keeper::abort_later(self);
        if !self.adapter.variant.handler && !noticed && !self.linger() {
            self.abort();
        }
    }

    /// Breaks the connection.
    pub fn abort(&self) {
        let mut inner = self.lock();
        if !inner.is_over() {
            self.lose(&mut inner);
        }
    }

    /// Whether the NIC has all that was sent, or nothing more can be.
    pub(in crate::packet) fn is_drained(&self) -> bool {
        let mut inner = self.lock();
        self.reap(&mut inner);
        while self.take_in(&mut inner) {}
        self.advance_end(&mut inner);
        inner.lost || (inner.unsent == 0 && inner.combiner.held() == 0)
    }

    /// Where the connection is.
    #[must_use]
    pub fn state(&self) -> State {
        self.lock().talk.state()
    }

    /// As [`Stream::state`], with what has come taken in.
    pub(in crate::packet) fn state_now(&self) -> State {
        let mut inner = self.lock();
        while self.take_in(&mut inner) {}
        inner.talk.state()
    }

    /// Whether nothing more will come.
    pub(in crate::packet) fn has_ended(&self) -> bool {
        let inner = self.lock();
        inner.ended || inner.lost
    }

    /// What remains to be done of an end, as far as the window allows. Whether nothing does.
    fn advance_end(&self, inner: &mut Inner) -> bool {
        if inner.is_ending {
            self.flush_now(inner);
        }
        self.answer_move(inner);
        inner.is_over()
    }

    /// After all that was held.
    pub(super) fn say_fin(&self, inner: &mut Inner) {
        // The FINACK may come while all the other descriptors are used.
        let last = inner.talk.settings().pre_posted();
        if self.post_recv(last).is_err() {
            return self.lose(inner);
        }
        inner.talk.close();
        self.transmit(inner);
    }

    /// Has the NIC call for each packet from now on, until the end, or while somebody is told of them. `false` if it does not: then the connection is to be broken, which is left to
    /// the caller, for he may have the lock.
    #[must_use]
    pub(super) fn linger(self: &Arc<Self>) -> bool {
        let stream = Arc::clone(self);
        let handler = Box::new(move |completion| {
            let Some(mut inner) = stream.lock_unless_losing().filter(|inner| !inner.lost) else {
                return;
            };
            stream.absorb(&mut inner, completion);
            let over = stream.advance_end(&mut inner);
            stream.stash_for_poller(&mut inner);
            stream.show(&inner, true);
            // Else the program's calls take in what follows.
            let goes_on = inner.is_closing || inner.shown.is_some();
            inner.is_noticed &= goes_on;
            stream.wake_waiters(inner);
            if !over && goes_on && !stream.linger() {
                stream.abort();
            }
        });
        self.vi.ops().notify(Queue::Recv, handler).is_ok()
    }

    /// One packet, for the handler thread, which waits for it as the version says. Whether there may be more.
    pub(in crate::packet) fn handle_one(&self) -> bool {
        let received = match self.adapter.variant.waiting {
            Waiting::Polling => self.poll(false, &mut [], POLLS_OF_A_HANDLER, None),
            Waiting::Blocking => {
                let waited = self.vi.recv_wait(None);
                waited.map(|completion| Received::Posted(Done::Completed(completion)))
            }
        };
        let mut inner = self.lock();
        self.absorb_received(&mut inner, received);
        let over = self.advance_end(&mut inner);
        self.stash_for_poller(&mut inner);
        self.show(&inner, true);
        if self.wake_waiters(inner) {
            // They may need this CPU, on which this thread would go on looking for the next packet.
            thread::yield_now();
        }
        !over
    }
}

/// The program's thread may be on the same CPU.
const POLLS_OF_A_HANDLER: u32 = 4;
