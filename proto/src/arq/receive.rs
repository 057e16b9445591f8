//! The receiving half: puts bodies in order and says what has come.

use std::collections::VecDeque;

use super::{Ack, Seq};

#[derive(Debug)]
pub(super) struct Receiver<T> {
    window: u32,
    /// The number wanted next.
    next: Seq,
    /// What came of `next` and its successors; the first is always missing.
    ahead: VecDeque<Option<T>>,
    ready: VecDeque<T>,
    ack_due: bool,
}

impl<T> Receiver<T> {
    pub(super) fn new(first: Seq, window: u32) -> Self {
        Self {
            window,
            next: first,
            ahead: VecDeque::new(),
            ready: VecDeque::new(),
            ack_due: false,
        }
    }

    pub(super) fn handle_data(&mut self, seq: Seq, body: T) {
        // A copy of what has been delivered is acknowledged too: the first acknowledgement may
        // have been lost.
        self.ack_due = true;
        let ahead = seq.since(self.next);
        if ahead >= self.window {
            return;
        }
        let index = ahead as usize;
        if self.ahead.len() <= index {
            self.ahead.resize_with(index + 1, || None);
        }
        self.ahead[index].get_or_insert(body);
        while let Some(Some(_)) = self.ahead.front() {
            self.ready.extend(self.ahead.pop_front().flatten());
            self.next = self.next.plus(1);
        }
    }

    pub(super) fn poll_delivery(&mut self) -> Option<T> {
        self.ready.pop_front()
    }

    pub(super) fn poll_ack(&mut self) -> Option<Ack> {
        self.ack_due.then(|| self.take_ack())
    }

    pub(super) fn take_ack(&mut self) -> Ack {
        self.ack_due = false;
        let seen = self.ahead.iter().skip(1).take(64).enumerate();
        Ack {
            next: self.next,
            seen: seen.fold(0, |map, (n, body)| map | u64::from(body.is_some()) << n),
        }
    }
}
