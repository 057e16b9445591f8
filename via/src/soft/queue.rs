//! Work queues: descriptors from posting to dequeuing.

use std::collections::VecDeque;

use crate::descriptor::Segments;
use crate::{CompletedOp, Completion, DescriptorAt, Fault, Op, RemoteSegment, Segment, Status};

/// How the consumer knows a posted descriptor.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ticket {
    /// By a name it gave.
    Named(u64),
    /// By where it lies; its outcome is written there.
    At(DescriptorAt),
}

impl Ticket {
    pub(super) fn token(self) -> u64 {
        match self {
            Self::Named(token) => token,
            Self::At(at) => at.addr,
        }
    }
}

/// A descriptor as it was posted, checked for form only.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) ticket: Ticket,
    pub(super) op: Op,
    pub(super) fence: bool,
    pub(super) immediate: Option<u32>,
    pub(super) remote: Option<RemoteSegment>,
    /// Sum of the segments, bytes; saturates.
    pub(super) len: u32,
    /// What is wrong with its form.
    pub(super) fault: Option<Fault>,
}

/// What there is to say of a send that is nothing but a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plain {
    pub(super) ticket: Ticket,
    pub(super) immediate: Option<u32>,
    /// Sum of the segments, bytes.
    pub(super) len: u32,
}

impl Plain {
    /// What its queue has to know of it once it has begun to leave, with its immediate data.
    #[inline]
    pub(super) fn begun(self) -> Request {
        Request {
            ticket: self.ticket,
            op: Op::SendRecv,
            fence: false,
            immediate: None,
            remote: None,
            len: self.len,
            fault: None,
        }
    }
}

/// A posted descriptor and what has become of it.
#[derive(Debug)]
pub(super) struct Posted {
    pub(super) request: Request,
    /// Number of its message, once that has begun to leave.
    pub(super) seq: u32,
    pub(super) outcome: Option<Outcome>,
    first_segment: u64,
    segments: u32,
}

/// How a descriptor ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome {
    pub(super) status: Status,
    pub(super) length: u32,
    pub(super) immediate: Option<u32>,
}

impl Outcome {
    pub(super) fn done(op: CompletedOp, length: u32, immediate: Option<u32>) -> Self {
        Self {
            status: Status::new(op, None, immediate.is_some()),
            length,
            immediate,
        }
    }

    pub(super) fn failed(op: CompletedOp, fault: Fault, length: u32) -> Self {
        Self {
            status: Status::new(op, Some(fault), false),
            length,
            immediate: None,
        }
    }
}

/// Where in a descriptor's segments a transfer has got to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cursor {
    pub(super) segment: u32,
    pub(super) offset: u32,
}

/// A send or receive queue.
///
/// Descriptors leave it in posting order. `next` of them, from the front, have been begun; `ready`
/// of them, from the front, have ended and may be taken.
#[derive(Default)]
pub(super) struct WorkQueue {
    posted: VecDeque<Posted>,
    segments: VecDeque<Segment>,
    /// Segments taken off the front since the beginning.
    segments_taken: u64,
    /// Descriptors taken off the front since the beginning.
    taken: u64,
    next: usize,
    ready: usize,
}

impl WorkQueue {
    pub(super) fn len(&self) -> usize {
        self.posted.len()
    }

    /// How many descriptors were posted before the one at `index`, ever: its name while it is queued.
    pub(super) fn number(&self, index: usize) -> u64 {
        self.taken + index as u64
    }

    /// Where the descriptor of that number is, if it is still queued.
    pub(super) fn index_of(&self, number: u64) -> Option<usize> {
        let index = usize::try_from(number.checked_sub(self.taken)?).ok()?;
        (index < self.posted.len()).then_some(index)
    }

    pub(super) fn push(&mut self, request: Request, segments: &Segments) {
        self.posted.push_back(Posted {
            request,
            seq: 0,
            outcome: None,
            first_segment: self.segments_taken + self.segments.len() as u64,
            segments: segments.len() as u32,
        });
        match segments.only() {
            Some(segment) => self.segments.push_back(segment),
            None => self.segments.extend(segments.iter()),
        }
    }

    /// Adds a descriptor that has left as message `seq` while it was posted, and with the outcome, if
    /// that is known. Everything before it has been begun.
    /// Returns whether it has ended and its turn has come.
    #[inline(always)]
    pub(super) fn push_begun(&mut self, plain: Plain, seq: u32, outcome: Option<Outcome>) -> bool {
        debug_assert_eq!(self.next, self.posted.len());
        let turn = self.ready == self.posted.len();
        self.posted.push_back(Posted {
            request: plain.begun(),
            seq,
            outcome,
            first_segment: self.segments_taken + self.segments.len() as u64,
            segments: 0,
        });
        self.next += 1;
        turn && outcome.is_some()
    }

    /// Counts the next ended descriptor as ready: nobody is to be told of it.
    #[inline]
    pub(super) fn skip_ready(&mut self) {
        self.ready += 1;
    }

    pub(super) fn last(&self) -> Option<&Posted> {
        self.posted.back()
    }

    pub(super) fn get(&self, index: usize) -> Option<&Posted> {
        self.posted.get(index)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Posted> {
        self.posted.get_mut(index)
    }

    /// The segment number `n` of the descriptor at `index`.
    pub(super) fn segment(&self, index: usize, n: u32) -> Option<Segment> {
        let posted = self.posted.get(index)?;
        if n >= posted.segments {
            return None;
        }
        let at = posted.first_segment - self.segments_taken + u64::from(n);
        self.segments.get(at as usize).copied()
    }

    /// The first descriptor not begun.
    pub(super) fn next(&self) -> usize {
        self.next
    }

    pub(super) fn begin_next(&mut self) {
        self.next += 1;
    }

    /// The first descriptor that has not ended.
    pub(super) fn first_open(&self) -> Option<usize> {
        (self.ready..self.posted.len()).find(|&i| self.posted[i].outcome.is_none())
    }

    pub(super) fn end(&mut self, index: usize, outcome: Outcome) {
        if let Some(posted) = self.posted.get_mut(index) {
            debug_assert!(posted.outcome.is_none());
            posted.outcome = Some(outcome);
        }
    }

    /// The next descriptor that has ended behind others that have, if its turn has come.
    pub(super) fn next_ready(&mut self) -> Option<(Ticket, Outcome)> {
        let posted = self.posted.get(self.ready)?;
        let outcome = posted.outcome?;
        self.ready += 1;
        Some((posted.request.ticket, outcome))
    }

    /// Whether something has ended and was not taken yet.
    pub(super) fn has_ready(&self) -> bool {
        self.ready > 0
    }

    pub(super) fn has_open(&self) -> bool {
        self.ready < self.posted.len()
    }

    /// Takes the head if it has ended.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Option<Completion> {
        if self.ready == 0 {
            return None;
        }
        let posted = self.posted.pop_front()?;
        let outcome = posted.outcome?;
        self.ready -= 1;
        self.taken += 1;
        self.next = self.next.saturating_sub(1);
        for _ in 0..posted.segments {
            self.segments.pop_front();
        }
        self.segments_taken += u64::from(posted.segments);
        Some(Completion {
            token: posted.request.ticket.token(),
            status: outcome.status,
            length: outcome.length,
            immediate: outcome.immediate,
        })
    }

    /// The descriptor at the front and its segment: if it has not ended, nothing is wrong with its form, and it has one segment.
    #[inline(always)]
    pub(super) fn plain_front(&self) -> Option<(Ticket, Segment)> {
        let posted = self.posted.front()?;
        let plain = self.ready == 0
            && posted.outcome.is_none()
            && posted.request.fault.is_none()
            && posted.segments == 1;
        let segment = self.segments.front().filter(|_| plain)?;
        Some((posted.request.ticket, *segment))
    }

    /// Takes the descriptor off the front, which [`WorkQueue::plain_front`] told of.
    #[inline]
    pub(super) fn drop_front(&mut self) {
        self.posted.pop_front();
        self.segments.pop_front();
        self.taken += 1;
        self.segments_taken += 1;
        self.next = self.next.saturating_sub(1);
    }

    /// Ends every open descriptor with what `outcome` says.
    pub(super) fn end_all(&mut self, mut outcome: impl FnMut(&Posted) -> Outcome) {
        for posted in self.posted.iter_mut().skip(self.ready) {
            if posted.outcome.is_none() {
                posted.outcome = Some(outcome(posted));
            }
        }
        self.next = self.posted.len();
    }
}
