//! G: the end of a connection.

use std::ffi::OsStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use via::{Descriptor, Done, Error, ErrorCode, Fault, Queue, Reliability, Vi, ViState};

use crate::buffer::Buffer;
use crate::kit::{
    Must, Pair, SOON, Site, assert_fault, assert_prompt, await_state, beside, connect, each_level,
    incoming, poll, received, refused, request, sent, three_sleepers,
};
use crate::lab::{Host, Lab};
use crate::process::Process;

pub(crate) fn s092_local_disconnect_flushes(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        post_five(&pair.va);
        pair.va.disconnect().must();
        assert_eq!(pair.va.state(), Ok(ViState::Idle));
        for token in 0..5 {
            assert_fault(received(&pair.va), token, Fault::Flushed);
        }
    });
}

pub(crate) fn s093_drains_to_empty(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        post_five(&pair.va);
        pair.va.disconnect().must();
        for token in 0..5 {
            let done = pair.va.recv_done().must().completion().must();
            assert_fault(done, token, Fault::Flushed);
            assert_eq!(done.length, 0);
        }
        for queue in [Queue::Recv, Queue::Send] {
            assert_eq!(pair.va.ops().done(queue), Ok(Done::Empty));
        }
    });
}

pub(crate) fn s094_completed_receive_stays_successful(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let cq = b.nic.create_cq(8).must();
        let vb = b.nic.create_vi(&b.config(level).recv_cq(&cq)).must();
        let va = a.vi(level);
        connect((&a, &va), (&b, &vb));
        let target = Buffer::new(&b, 64);
        vb.post_recv(&target.recv(0..64), 0).must();
        vb.post_recv(&Descriptor::recv(), 1).must();
        let source = Buffer::new(&a, 64);
        source.fill(0..64, 94);
        va.post_send(&source.send(0..64), 0).must();
        cq.wait(SOON).must();
        vb.disconnect().must();
        let first = poll(lab, &vb, Queue::Recv).ok().must();
        assert_eq!((first.token, first.length), (0, 64));
        assert_fault(poll(lab, &vb, Queue::Recv), 1, Fault::Flushed);
        target.assert_holds(0..64, 94);
    });
}

pub(crate) fn s095_remote_disconnect_is_an_error(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        post_five(&pair.vb);
        pair.va.disconnect().must();
        await_state(lab, &pair.vb, ViState::Error);
        for token in 0..5 {
            assert_fault(received(&pair.vb), token, Fault::Flushed);
        }
        pair.b
            .errors
            .wait_for(lab, ErrorCode::ConnLost, pair.vb.id());
        pair.b.settle();
        assert_eq!(pair.b.errors.of(pair.vb.id()).len(), 1);
    });
}

pub(crate) fn s096_posts_in_error_are_flushed(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        pair.va.disconnect().must();
        await_state(lab, &pair.vb, ViState::Error);
        let source = Buffer::new(&pair.b, 8);
        pair.vb.post_recv(&source.recv(0..8), 1).must();
        pair.vb.post_send(&source.send(0..8), 2).must();
        let done = |queue| pair.vb.ops().done(queue).must().completion().must();
        assert_fault(done(Queue::Recv), 1, Fault::Flushed);
        assert_fault(done(Queue::Send), 2, Fault::Flushed);
        assert_eq!(pair.vb.state(), Ok(ViState::Error));
    });
}

pub(crate) fn s097_connects_again_after_an_error(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        for round in 0..3 {
            pair.va.disconnect().must();
            await_state(lab, &pair.vb, ViState::Error);
            pair.vb.disconnect().must();
            assert_eq!(pair.vb.state(), Ok(ViState::Idle));
            connect((&pair.a, &pair.va), (&pair.b, &pair.vb));
            let (source, target) = (Buffer::new(&pair.a, 4000), Buffer::new(&pair.b, 4000));
            source.fill(0..4000, round);
            pair.vb.post_recv(&target.recv(0..4000), round).must();
            pair.va.post_send(&source.send(0..4000), round).must();
            assert_eq!(received(&pair.vb).ok().must().token, round);
            sent(&pair.va).ok().must();
            target.assert_holds(0..4000, round);
        }
    });
}

pub(crate) fn s098_disconnect_in_idle_flushes(lab: &dyn Lab) {
    each_level(lab, |level| {
        let vi = Site::open(lab, Host::A).vi(level);
        post_five(&vi);
        assert_eq!(vi.recv_done(), Ok(Done::NotDone));
        vi.disconnect().must();
        assert_eq!(vi.state(), Ok(ViState::Idle));
        for token in 0..5 {
            assert_fault(
                vi.recv_done().must().completion().must(),
                token,
                Fault::Flushed,
            );
        }
    });
}

pub(crate) fn s099_disconnect_twice(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        for vi in [&pair.va, &pair.vb] {
            vi.disconnect().must();
            vi.disconnect().must();
            assert_eq!(vi.state(), Ok(ViState::Idle));
        }
    });
}

pub(crate) fn s100_disconnect_ends_a_pending_call(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let va = a.vi(level);
        post_five(&va);
        let to = b.fresh_address();
        let (asked, ()) = beside(
            lab,
            || request(lab, &**va.ops(), &to, &to, None),
            || {
                let unanswered = incoming(b.ops(), &to);
                va.disconnect().must();
                assert_eq!(va.state(), Ok(ViState::Idle));
                drop(unanswered);
            },
        );
        refused(asked, Error::InvalidState);
        for token in 0..5 {
            assert_fault(
                va.recv_done().must().completion().must(),
                token,
                Fault::Flushed,
            );
        }

        let from = a.fresh_address();
        va.ops().peer_request(&from, &to, None).must();
        let (waited, ()) = beside(
            lab,
            || va.ops().peer_wait(),
            || {
                let_block(lab);
                va.disconnect().must();
            },
        );
        refused(waited, Error::InvalidState);
        assert_eq!(va.state(), Ok(ViState::Idle));
    });
}

pub(crate) fn s101_sends_before_connecting_are_flushed(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let va = a.vi(level);
        let send = |token| {
            va.post_send(&Descriptor::send(), token).must();
            let done = va.send_done().must().completion().must();
            assert_fault(done, token, Fault::Flushed);
        };
        send(1);
        let to = b.fresh_address();
        va.ops().peer_request(&a.fresh_address(), &to, SOON).must();
        assert_eq!(va.state(), Ok(ViState::ConnectPending));
        send(2);
        assert_eq!(va.state(), Ok(ViState::ConnectPending));
    });
}

pub(crate) fn s102_disconnect_wakes_waiters(lab: &dyn Lab) {
    each_level(lab, |level| {
        for end in [true, false] {
            let pair = Pair::new(lab, level);
            pair.vb.post_recv(&Descriptor::recv(), 1).must();
            let waiting = AtomicBool::new(false);
            let (woken, ()) = beside(
                lab,
                || {
                    waiting.store(true, Ordering::Release);
                    received(&pair.vb)
                },
                || {
                    crate::kit::until(lab, "the waiter", || waiting.load(Ordering::Acquire));
                    let_block(lab);
                    let vi = if end { &pair.va } else { &pair.vb };
                    vi.disconnect().must();
                },
            );
            assert_fault(woken, 1, Fault::Flushed);
        }
        all_waiters_wake(lab, level);
    });
}

/// Three threads sleep for a receive each: a disconnect gives each its own, and closing the NIC ends the wait of all.
fn all_waiters_wake(lab: &dyn Lab, level: Reliability) {
    for connected in [false, true] {
        for closes in [false, true] {
            println!("three waiters, connected: {connected}, the NIC is closed: {closes}");
            let (a, b) = Site::two(lab);
            let (va, vb) = (a.vi(level), b.vi(level));
            if connected {
                connect((&a, &va), (&b, &vb));
            }
            (0..3).for_each(|token| vb.post_recv(&Descriptor::recv(), token).must());
            let waits = three_sleepers(
                lab,
                || vb.ops().wait(Queue::Recv, None),
                || {
                    if closes {
                        b.ops().close();
                    } else {
                        vb.disconnect().must();
                    }
                },
            );
            if closes {
                assert_eq!(waits, [Err(Error::InvalidParameter); 3]);
                continue;
            }
            let waits = waits
                .into_iter()
                .map(|done| done.must().completion().must());
            let mut waits: Vec<_> = waits.collect();
            waits.sort_by_key(|done| done.token);
            for (token, done) in (0..).zip(waits) {
                assert_fault(done, token, Fault::Flushed);
            }
        }
    }
    // More of them than receives: who gets none is told that there is none.
    let vi = Site::open(lab, Host::A).vi(level);
    vi.post_recv(&Descriptor::recv(), 5).must();
    let waits = three_sleepers(
        lab,
        || vi.ops().wait(Queue::Recv, None).must(),
        || vi.disconnect().must(),
    );
    let none = waits.iter().filter(|done| **done == Done::Empty).count();
    assert_eq!(none, 2, "{waits:?}");
}

pub(crate) fn s103_killed_peer_is_noticed(lab: &dyn Lab) {
    each_level(lab, |level| {
        let b = Site::open(lab, Host::B);
        let vb = b.vi(level);
        let mut process = with_process(lab, &b, &vb);
        post_five(&vb);
        let (took, ()) = crate::kit::timed(lab, || {
            process.kill();
            assert_fault(received(&vb), 0, Fault::Flushed);
        });
        println!("killed, reaped and noticed in {took:?}");
        assert_prompt(took);
        assert_eq!(vb.state(), Ok(ViState::Error));
        for token in 1..5 {
            assert_fault(received(&vb), token, Fault::Flushed);
        }
        b.errors.wait_for(lab, ErrorCode::ConnLost, vb.id());
        vb.disconnect().must();

        // The VI is as good as new.
        let process = with_process(lab, &b, &vb);
        process.end();
        await_state(lab, &vb, ViState::Error);
    });
}

pub(crate) fn s104_other_connections_go_on(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let (other_a, other_b) = (pair.a.vi(level), pair.b.vi(level));
        connect((&pair.a, &other_a), (&pair.b, &other_b));
        other_b.post_recv(&Descriptor::recv(), 1).must();
        other_a.disconnect().must();
        await_state(lab, &other_b, ViState::Error);
        pair.exchange_empty();
        other_b.disconnect().must();
        pair.exchange_empty();
        pair.assert_connected();
        pair.b.settle();
        assert!(pair.b.errors.of(pair.vb.id()).is_empty());
    });
}

/// A process whose VI is connected to `vi`.
fn with_process(lab: &dyn Lab, site: &Site<'_>, vi: &Vi) -> Process {
    let to = site.fresh_address();
    let level = vi.ops().attributes().must().reliability.bits().to_string();
    let name = String::from_utf8(to.discriminator.as_bytes().to_vec()).must();
    let (process, ()) = beside(
        lab,
        || {
            let arguments = [OsStr::new(&name), OsStr::new(&level)];
            let mut process = Process::of(lab, "connect", &arguments);
            assert_eq!(process.line(), "connected");
            process
        },
        || incoming(site.ops(), &to).accept(&**vi.ops()).must(),
    );
    process
}

#[track_caller]
fn post_five(vi: &Vi) {
    for token in 0..5 {
        vi.post_recv(&Descriptor::recv(), token).must();
    }
}

/// Gives another thread a chance to block; nothing depends on it. Beside busy processes each pass may be a slice of theirs.
fn let_block(lab: &dyn Lab) {
    let end = Instant::now() + BLOCKS;
    let passes = (0..PASSES).take_while(|_| Instant::now() < end);
    passes.for_each(|_| lab.pass());
}

const PASSES: u32 = 2000;
const BLOCKS: Duration = Duration::from_millis(100);
