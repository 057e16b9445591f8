//! M: handlers of completions.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Weak};
use std::thread;

use via::provider::{CqEntry, ViOps};
use via::{Completion, Descriptor, Done, Error, Fault, Queue, Reliability, Vi};

use crate::kit::{
    Log, Must, Pair, SOON, Site, assert_fault, connect, each_level, poll, received, sent, until,
};
use crate::lab::{Host, Lab};

pub(crate) fn s180_completed_head(lab: &dyn Lab) {
    each_level(lab, |level| {
        let vi = Site::open(lab, Host::A).vi(level);
        vi.post_send(&Descriptor::send(), 180).must();
        let (calls, here) = (Log::default(), thread::current().id());
        let log = calls.clone();
        vi.ops()
            .notify(
                Queue::Send,
                Box::new(move |done| log.note((done, thread::current().id()))),
            )
            .must();
        let (done, there) = calls.first(lab);
        assert_fault(done, 180, Fault::Flushed);
        assert_ne!(here, there, "called within the caller's frame");
        assert_eq!(vi.send_done(), Ok(Done::Empty));
        assert_eq!(calls.len(), 1);
    });
}

pub(crate) fn s181_incomplete_head(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        for token in 0..20 {
            let calls = Log::default();
            pair.vb.post_recv(&Descriptor::recv(), token).must();
            notify(&pair.vb, &calls);
            assert_eq!(calls.len(), 0);
            pair.va
                .post_send(&Descriptor::send().immediate(181), 0)
                .must();
            let done = calls.first(lab).ok().must();
            assert_eq!((done.token, done.immediate), (token, Some(181)));
            assert_eq!(pair.vb.recv_done(), Ok(Done::Empty));
            sent(&pair.va).ok().must();
        }
    });
}

pub(crate) fn s182_one_registration_one_call(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let calls = Log::default();
        for token in 0..2 {
            pair.vb.post_recv(&Descriptor::recv(), token).must();
        }
        notify(&pair.vb, &calls);
        for _ in 0..2 {
            pair.va.post_send(&Descriptor::send(), 0).must();
        }
        assert_eq!(calls.first(lab).ok().must().token, 0);
        assert_eq!(received(&pair.vb).ok().must().token, 1);
        pair.b.settle();
        assert_eq!(calls.len(), 1);
    });
}

pub(crate) fn s183_registrations_are_served_in_order(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let calls = Log::default();
        for token in 0..3 {
            pair.vb.post_recv(&Descriptor::recv(), token).must();
        }
        for registration in 0..3 {
            let log = calls.clone();
            let handler = move |done: Completion| log.note((registration, done.token));
            pair.vb.ops().notify(Queue::Recv, Box::new(handler)).must();
        }
        for _ in 0..3 {
            pair.va.post_send(&Descriptor::send(), 0).must();
        }
        until(lab, "three calls", || calls.len() >= 3);
        assert_eq!(calls.all(), [(0, 0), (1, 1), (2, 2)]);
    });
}

pub(crate) fn s184_completion_queue(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let cq = b.nic.create_cq(8).must();
        let vb = b
            .nic
            .create_vi(&b.config(level).send_cq(&cq).recv_cq(&cq))
            .must();
        let va = a.vi(level);
        connect((&a, &va), (&b, &vb));
        for queue in [Queue::Recv, Queue::Send] {
            let calls = Log::default();
            let log = calls.clone();
            cq.ops()
                .notify(Box::new(move |entry| log.note(entry)))
                .must();
            assert_eq!(calls.len(), 0);
            let (from, to) = match queue {
                Queue::Recv => (&va, &vb),
                Queue::Send => (&vb, &va),
            };
            to.post_recv(&Descriptor::recv(), 5).must();
            from.post_send(&Descriptor::send(), 5).must();
            assert_eq!(calls.first(lab), CqEntry { vi: vb.id(), queue });
            assert_eq!(cq.done(), Ok(None));
            // The entry is gone, the descriptor is not.
            let done = vb.ops().done(queue).must().completion().must();
            assert_eq!(done.ok().must().token, 5);
        }
        // An entry that is there already.
        vb.disconnect().must();
        vb.post_send(&Descriptor::send(), 6).must();
        let calls = Log::default();
        let log = calls.clone();
        cq.ops()
            .notify(Box::new(move |entry| log.note(entry)))
            .must();
        assert_eq!(
            calls.first(lab),
            CqEntry {
                vi: vb.id(),
                queue: Queue::Send
            }
        );
    });
}

pub(crate) fn s185_destruction_cancels(lab: &dyn Lab) {
    each_level(lab, |level| {
        let site = Site::open(lab, Host::A);
        let (vi, cq) = (site.vi(level), site.nic.create_cq(8).must());
        let calls = Log::default();
        let (of_vi, of_cq) = (notify(&vi, &calls), Arc::new(()));
        let kept = Arc::downgrade(&of_cq);
        let handler = move |_| drop(of_cq);
        cq.ops().notify(Box::new(handler)).must();
        vi.ops().destroy().must();
        cq.ops().destroy().must();
        let gone = |handler: &Weak<()>| handler.strong_count() == 0;
        until(lab, "the handlers to be dropped", || {
            gone(&of_vi) && gone(&kept)
        });
        site.settle();
        assert_eq!(calls.len(), 0);
        handlers_may_own_what_calls(lab, level);
        no_call_is_left_behind(lab, level);
        disconnecting_cancels(lab, level);
    });
}

/// A handler that is cancelled calls the object as it goes.
fn handlers_may_own_what_calls(lab: &dyn Lab, level: Reliability) {
    struct Last(Box<dyn FnMut() + Send>);

    impl Drop for Last {
        fn drop(&mut self) {
            (self.0)();
        }
    }

    let site = Site::open(lab, Host::A);
    let (vi, cq) = (site.vi(level), site.nic.create_cq(8).must());
    let calls = Log::default();
    let (log, ops) = (calls.clone(), Arc::clone(vi.ops()));
    let last = Last(Box::new(move || log.note(ops.state().map(drop))));
    let handler = move |_| drop(last);
    vi.ops().notify(Queue::Recv, Box::new(handler)).must();
    let (log, ops) = (calls.clone(), Arc::clone(cq.ops()));
    let last = Last(Box::new(move || log.note(ops.done().map(drop))));
    let handler = move |_| drop(last);
    cq.ops().notify(Box::new(handler)).must();
    vi.ops().destroy().must();
    cq.ops().destroy().must();
    until(lab, "the handlers to be dropped", || calls.len() == 2);
    assert_eq!(calls.all(), [Err(Error::InvalidParameter); 2]);
}

/// A VI is destroyed while the call for what it completed waits behind another VI's handler.
fn no_call_is_left_behind(lab: &dyn Lab, level: Reliability) {
    let site = Site::open(lab, Host::A);
    let (busy, dying) = (site.vi(level), site.vi(level));
    let (release, held) = channel::<()>();
    busy.post_send(&Descriptor::send(), 1).must();
    let handler = move |_| held.recv_timeout(SOON.must()).must();
    busy.ops().notify(Queue::Send, Box::new(handler)).must();
    dying.post_send(&Descriptor::send(), 2).must();
    let calls: Log<Completion> = Log::default();
    let log = calls.clone();
    dying
        .ops()
        .notify(Queue::Send, Box::new(move |done| log.note(done)))
        .must();
    dying.ops().destroy().must();
    assert_eq!(calls.len(), 0);
    release.send(()).must();
    site.settle();
    assert_eq!(calls.len(), 0, "called for a VI that is no more");
}

/// A handler of one connection does not get a message of the next.
fn disconnecting_cancels(lab: &dyn Lab, level: Reliability) {
    let pair = Pair::new(lab, level);
    let calls = Log::default();
    pair.vb.post_recv(&Descriptor::recv(), 1).must();
    let handlers = [notify(&pair.vb, &calls), notify(&pair.vb, &calls)];
    pair.vb.disconnect().must();
    pair.va.disconnect().must();
    connect((&pair.a, &pair.va), (&pair.b, &pair.vb));
    pair.vb.post_recv(&Descriptor::recv(), 2).must();
    pair.va.post_send(&Descriptor::send(), 0).must();
    assert_eq!(poll(lab, &pair.vb, Queue::Recv).ok().must().token, 2);
    // The flushed receive went to the first; the second is cancelled.
    assert_fault(calls.first(lab), 1, Fault::Flushed);
    until(lab, "the handlers to be dropped", || {
        handlers.iter().all(|handler| handler.strong_count() == 0)
    });
    pair.b.settle();
    assert_eq!(calls.len(), 1);
    sent(&pair.va).ok().must();
}

pub(crate) fn s186_handlers_may_call(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let echo = Arc::new(Echo {
            vi: Arc::clone(pair.vb.ops()),
            count: AtomicUsize::new(0),
        });
        for token in 0..4 {
            pair.vb.post_recv(&Descriptor::recv(), token).must();
        }
        Arc::clone(&echo).register();
        for round in 0..50 {
            pair.va.post_recv(&Descriptor::recv(), 0).must();
            pair.va
                .post_send(&Descriptor::send().immediate(round), 0)
                .must();
            // Not a wait: virtual time would run out while the handler computes.
            let answer = poll(lab, &pair.va, Queue::Recv).ok().must();
            assert_eq!(answer.immediate, Some(round + 1));
            sent(&pair.va).ok().must();
        }
        assert!(echo.count.load(Ordering::Acquire) >= 50);
    });
}

/// Answers messages from within its handler.
struct Echo {
    vi: Arc<dyn ViOps>,
    count: AtomicUsize,
}

impl Echo {
    fn register(self: Arc<Self>) {
        let vi = Arc::clone(&self.vi);
        vi.notify(Queue::Recv, Box::new(move |done| self.answer(done)))
            .must();
    }

    fn answer(self: Arc<Self>, done: Completion) {
        // The last call is for the flushed receives at the end.
        let Some(value) = done.ok().ok().and_then(|done| done.immediate) else {
            return;
        };
        self.count.fetch_add(1, Ordering::AcqRel);
        self.vi
            .post(Queue::Recv, &Descriptor::recv(), done.token)
            .must();
        self.vi
            .post(Queue::Send, &Descriptor::send().immediate(value + 1), 0)
            .must();
        while let Ok(Done::Completed(_)) = self.vi.done(Queue::Send) {}
        self.register();
    }
}

/// Has the next receive noted; the handler is there as long as what this returns can be upgraded.
fn notify(vi: &Vi, calls: &Log<Completion>) -> Weak<()> {
    let (log, held) = (calls.clone(), Arc::new(()));
    let kept = Arc::downgrade(&held);
    let handler = move |done| {
        log.note(done);
        drop(held);
    };
    vi.ops().notify(Queue::Recv, Box::new(handler)).must();
    kept
}
