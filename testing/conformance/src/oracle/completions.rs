//! Completion queues: an entry for each completion, none twice.

use std::collections::{HashMap, VecDeque};

use via::provider::{CqEntry, ViId};
use via::{Cq, Descriptor, Error, Queue, Reliability, Vi, ViState};

use crate::Lab;
use crate::kit::{Must, SOON, Site, await_state, connect};

/// An operation on three pairs, whose queues at one end report to two completion queues.
#[derive(Debug, Clone, Copy)]
pub enum CqOp {
    /// The peer of a pair sends, after a receive was posted for it.
    Receive(u8),
    /// The end that reports sends, after a receive was posted for it.
    Send(u8),
    /// Looks for an entry.
    Look(u8),
    /// Waits for an entry, if one must come.
    Wait(u8),
    /// Changes the capacity.
    Resize(u8, u8),
    /// Disconnects one end of a pair, and connects it again: what is posted is flushed.
    Reconnect(u8),
}

/// Runs `ops` at `level`.
///
/// # Panics
/// When an entry is lost, comes twice, or promises a completion that is not there.
pub fn check_completions(lab: &dyn Lab, level: Reliability, ops: &[CqOp]) {
    let (a, b) = Site::two(lab);
    let cqs = [(); 2].map(|()| b.nic.create_cq(CAPACITY).must());
    let mut model = Model::new(&a, &b, &cqs, level);
    for op in ops {
        model.run(*op);
    }
    model.drain();
}

struct Model<'m, 'l> {
    a: &'m Site<'l>,
    b: &'m Site<'l>,
    cqs: &'m [Cq; 2],
    pairs: Vec<(Vi, Vi)>,
    /// By VI and queue: the tokens of what is posted, oldest first.
    posted: HashMap<(ViId, Queue), VecDeque<u64>>,
    last: u64,
}

impl<'m, 'l> Model<'m, 'l> {
    fn new(a: &'m Site<'l>, b: &'m Site<'l>, cqs: &'m [Cq; 2], level: Reliability) -> Self {
        let pairs = (0..PAIRS).map(|nth| {
            // Both queues to one, to the other, and one each.
            let [send, recv] = [Queue::Send, Queue::Recv].map(|queue| &cqs[reports_to(nth, queue)]);
            let config = b.config(level).send_cq(send).recv_cq(recv);
            let pair = (a.vi(level), b.nic.create_vi(&config).must());
            connect((a, &pair.0), (b, &pair.1));
            pair
        });
        Self {
            a,
            b,
            cqs,
            pairs: pairs.collect(),
            posted: HashMap::new(),
            last: 0,
        }
    }

    fn run(&mut self, op: CqOp) {
        match op {
            CqOp::Receive(pair) => {
                let pair = usize::from(pair) % PAIRS;
                let Some(token) = self.push(pair, Queue::Recv) else {
                    return;
                };
                let (va, vb) = &self.pairs[pair];
                vb.post_recv(&Descriptor::recv(), token).must();
                va.post_send(&Descriptor::send(), token).must();
                crate::kit::sent(va).ok().must();
            }
            CqOp::Send(pair) => {
                let pair = usize::from(pair) % PAIRS;
                let Some(token) = self.push(pair, Queue::Send) else {
                    return;
                };
                let (va, vb) = &self.pairs[pair];
                va.post_recv(&Descriptor::recv(), token).must();
                vb.post_send(&Descriptor::send(), token).must();
            }
            CqOp::Look(cq) => {
                if let Some(entry) = self.cqs[usize::from(cq) % 2].done().must() {
                    self.take(usize::from(cq) % 2, entry);
                }
            }
            CqOp::Wait(cq) => self.wait(usize::from(cq) % 2),
            CqOp::Resize(cq, entries) => self.resize(usize::from(cq) % 2, entries.into()),
            CqOp::Reconnect(pair) => self.reconnect(usize::from(pair) % PAIRS),
        }
    }

    /// The entry promises a completion: the oldest of its queue.
    fn take(&mut self, cq: usize, entry: CqEntry) {
        let pair = self.pairs.iter().position(|(_, vb)| vb.id() == entry.vi);
        let pair = pair.expect("a VI that reports here");
        assert_eq!(reports_to(pair, entry.queue), cq, "{entry:?}");
        let vb = &self.pairs[pair].1;
        let completion = vb.ops().done(entry.queue).must().completion();
        let completion = completion.expect("an entry without a completion");
        let posted = self.posted.entry((entry.vi, entry.queue)).or_default();
        assert_eq!(posted.pop_front(), Some(completion.token), "{entry:?}");
    }

    fn wait(&mut self, cq: usize) {
        if self.outstanding(cq) > 0 {
            let entry = self.cqs[cq].wait(SOON).must();
            self.take(cq, entry);
        }
    }

    fn resize(&mut self, cq: usize, entries: u32) {
        let outstanding = self.outstanding(cq);
        match self.cqs[cq].ops().resize(entries) {
            Ok(()) => assert!(entries > 0),
            Err(Error::Resource) => assert!((entries as usize) < outstanding),
            Err(error) => assert_eq!((error, entries), (Error::InvalidParameter, 0)),
        }
    }

    /// The entries of what is flushed come as well, and none of the old connection's is lost.
    fn reconnect(&mut self, pair: usize) {
        if let Some(token) = self.push(pair, Queue::Recv) {
            let vb = &self.pairs[pair].1;
            vb.post_recv(&Descriptor::recv(), token).must();
        }
        let (va, vb) = &self.pairs[pair];
        vb.disconnect().must();
        await_state(self.a.lab, va, ViState::Error);
        va.disconnect().must();
        while va.recv_done().must().completion().is_some() {}
        for cq in 0..2 {
            while self.waits_for(pair, cq) {
                self.wait(cq);
            }
        }
        let (va, vb) = &self.pairs[pair];
        connect((self.a, va), (self.b, vb));
    }

    /// Every completion has had its entry, and there are no others.
    fn drain(&mut self) {
        for cq in 0..2 {
            while self.outstanding(cq) > 0 {
                self.wait(cq);
            }
        }
        for (cq, queue) in [(0, Queue::Send), (1, Queue::Recv)] {
            assert_eq!(self.cqs[cq].done(), Ok(None), "an entry too many");
            for (_, vb) in &self.pairs {
                assert_eq!(vb.ops().done(queue), Ok(via::Done::Empty));
            }
        }
    }

    /// Entries that have come to a completion queue, or must.
    fn outstanding(&self, cq: usize) -> usize {
        let queues = (0..PAIRS).flat_map(|pair| [(pair, Queue::Send), (pair, Queue::Recv)]);
        queues
            .filter(|&(pair, queue)| reports_to(pair, queue) == cq)
            .map(|(pair, queue)| self.len(pair, queue))
            .sum()
    }

    fn waits_for(&self, pair: usize, cq: usize) -> bool {
        [Queue::Send, Queue::Recv]
            .into_iter()
            .any(|queue| reports_to(pair, queue) == cq && self.len(pair, queue) > 0)
    }

    fn len(&self, pair: usize, queue: Queue) -> usize {
        let key = (self.pairs[pair].1.id(), queue);
        self.posted.get(&key).map_or(0, VecDeque::len)
    }

    /// Notes one more descriptor, if there is room for it.
    fn push(&mut self, pair: usize, queue: Queue) -> Option<u64> {
        let posted = self.posted.entry((self.pairs[pair].1.id(), queue));
        let posted = posted.or_default();
        if posted.len() == DEPTH {
            return None;
        }
        self.last += 1;
        posted.push_back(self.last);
        Some(self.last)
    }
}

/// Which completion queue.
fn reports_to(pair: usize, queue: Queue) -> usize {
    match queue {
        Queue::Send => pair.min(1),
        Queue::Recv => pair % 2,
    }
}

const PAIRS: usize = 3;
const DEPTH: usize = 16;
/// Fewer than may be outstanding.
const CAPACITY: u32 = 8;
