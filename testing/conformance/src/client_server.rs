//! E: asking for a connection and answering.

use std::sync::atomic::{AtomicBool, Ordering};

use via::provider::ConnOps;
use via::{Error, NetAddress, Reliability, Vi, ViAttributes, ViState};

use crate::buffer::Buffer;
use crate::kit::{
    Must, Pair, SHORT, SOON, Site, assert_about, assert_prompt, assert_told, await_state, beside,
    connect, each_level, incoming, received, refused, request, sent, timed,
};
use crate::lab::{Host, Lab};

pub(crate) fn s060_request_wait_accept(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let va = a.nic.create_vi(&a.config(level).accept_rdma_write()).must();
        let vb = b.vi(level);
        for discriminator in [&b"x"[..], b"", b"sixteen bytes ok"] {
            let from = a.nic.address(discriminator).must();
            let to = b.fresh_address();
            let (asked, ()) = beside(
                lab,
                || request(lab, &**va.ops(), &from, &to, SOON),
                || {
                    let mut asker = incoming(b.ops(), &to);
                    assert_eq!(asker.remote_address(), from);
                    assert_told(asker.remote_attributes(), &va);
                    asker.accept(&**vb.ops()).must();
                    assert_eq!(vb.state(), Ok(ViState::Connected));
                },
            );
            assert_told(asked.must(), &vb);
            assert_eq!(va.state(), Ok(ViState::Connected));
            va.disconnect().must();
            vb.disconnect().must();
        }
    });
}

pub(crate) fn s061_askers_address_does_not_match(lab: &dyn Lab) {
    let (a, b) = Site::two(lab);
    let to = b.fresh_address();
    let same = NetAddress {
        host: a.nic.attributes().local_address,
        ..to
    };
    for from in [
        same,
        a.nic.address(b"").must(),
        a.nic.address(&[0; 16]).must(),
    ] {
        let (va, vb) = (a.vi(Reliability::Unreliable), b.vi(Reliability::Unreliable));
        let (asked, ()) = beside(
            lab,
            || request(lab, &**va.ops(), &from, &to, SOON),
            || incoming(b.ops(), &to).accept(&**vb.ops()).must(),
        );
        asked.must();
    }
}

/// The waiter is asked rightly and wrongly in turn, so that it is there when it is asked wrongly.
pub(crate) fn s062_only_the_same_discriminator_matches(lab: &dyn Lab) {
    let (a, b) = Site::two(lab);
    let right = b.fresh_address();
    let name = right.discriminator.as_bytes();
    let mut changed = name.to_vec();
    changed[0] ^= 1;
    let mut last = name.to_vec();
    *last.last_mut().must() ^= 0x80;
    let wrong = [
        changed,
        last,
        name[1..].to_vec(),
        [name, b"\0"].concat(),
        Vec::new(),
    ];
    let wrong = wrong.map(|name| b.nic.address(&name).must());

    let stop = AtomicBool::new(false);
    let va = a.vi(Reliability::Unreliable);
    let honest = a.nic.address(b"right").must();
    let ((), ()) = beside(
        lab,
        || {
            while !stop.load(Ordering::Acquire) {
                match b.nic.connect_wait(&right, Some(SHORT)) {
                    Ok(asker) => {
                        assert_eq!(asker.remote_address(), honest);
                        asker.reject().must();
                    }
                    Err(error) => assert_eq!(error, Error::Timeout),
                }
            }
        },
        || {
            let astray = a.nic.address(b"wrong").must();
            for _ in 0..20 {
                refused(
                    request(lab, &**va.ops(), &honest, &right, SOON),
                    Error::Reject,
                );
                for wrong in &wrong {
                    refused(va.connect(&astray, wrong, SOON), Error::NoMatch);
                }
            }
            stop.store(true, Ordering::Release);
        },
    );
}

pub(crate) fn s063_nobody_waiting_is_told_at_once(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let va = a.vi(level);
        let nobody = b.fresh_address();
        for timeout in [None, SOON] {
            let (took, asked) = timed(lab, || va.connect(&nobody, &nobody, timeout));
            refused(asked, Error::NoMatch);
            assert_prompt(took);
            assert_eq!(va.state(), Ok(ViState::Idle));
        }
    });
}

pub(crate) fn s064_request_needs_time(lab: &dyn Lab) {
    let (a, b) = Site::two(lab);
    let va = a.vi(Reliability::Unreliable);
    let to = b.fresh_address();
    let asked = va.connect(&to, &to, Some(std::time::Duration::ZERO));
    refused(asked, Error::InvalidParameter);
    assert_eq!(va.state(), Ok(ViState::Idle));
}

pub(crate) fn s065_reject(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let (va, vb) = (a.vi(level), b.vi(level));
        let asked = ask(&va, (&a, &b), |incoming| incoming.reject().must());
        refused(asked, Error::Reject);
        assert_eq!(va.state(), Ok(ViState::Idle));
        connect((&a, &va), (&b, &vb));
    });
}

pub(crate) fn s066_unanswered_request_times_out(lab: &dyn Lab) {
    let (a, b) = Site::two(lab);
    let va = a.vi(Reliability::Unreliable);
    let to = b.fresh_address();
    let answered = AtomicBool::new(false);
    let (asked, ()) = beside(
        lab,
        || {
            let outcome = loop {
                let (took, asked) = timed(lab, || va.connect(&to, &to, Some(SHORT)));
                if asked != Err(Error::NoMatch) {
                    break (took, asked);
                }
                lab.pass();
            };
            answered.store(true, Ordering::Release);
            outcome
        },
        || {
            let unanswered = incoming(b.ops(), &to);
            crate::kit::until(lab, "the asker to give up", || {
                answered.load(Ordering::Acquire)
            });
            drop(unanswered);
        },
    );
    let (took, asked) = asked;
    refused(asked, Error::Timeout);
    assert_about(took, SHORT);
    assert_eq!(va.state(), Ok(ViState::Idle));
}

pub(crate) fn s067_wait_times_out(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    let at = site.fresh_address();
    let (took, waited) = timed(lab, || site.nic.connect_wait(&at, Some(SHORT)));
    refused(waited, Error::Timeout);
    assert_about(took, SHORT);
    let poll = site.nic.connect_wait(&at, Some(std::time::Duration::ZERO));
    refused(poll, Error::Timeout);
    let elsewhere = NetAddress {
        host: lab.nowhere(),
        ..at
    };
    refused(
        site.nic.connect_wait(&elsewhere, Some(SHORT)),
        Error::InvalidParameter,
    );
}

pub(crate) fn s068_pending_while_asking(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let (va, vb) = (a.vi(level), b.vi(level));
        let asked = ask(&va, (&a, &b), |mut incoming| {
            assert_eq!(va.state(), Ok(ViState::ConnectPending));
            incoming.accept(&**vb.ops()).must();
        });
        asked.must();
        assert_eq!(va.state(), Ok(ViState::Connected));
    });
}

pub(crate) fn s077_request_needs_an_idle_vi(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let to = pair.b.fresh_address();
        let from = pair.a.fresh_address();
        refused(pair.va.connect(&from, &to, SOON), Error::InvalidState);
        refused(
            pair.va.ops().peer_request(&from, &to, SOON),
            Error::InvalidState,
        );
        pair.assert_connected();
        pair.vb.disconnect().must();
        await_state(lab, &pair.va, ViState::Error);
        refused(pair.va.connect(&to, &to, SOON), Error::InvalidState);

        let pending = pair.a.vi(level);
        let asked = ask(&pending, (&pair.a, &pair.b), |incoming| {
            refused(pending.connect(&to, &to, SOON), Error::InvalidState);
            incoming.reject().must();
        });
        refused(asked, Error::Reject);
    });
}

pub(crate) fn s078_receives_survive_failed_requests(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let (va, vb) = (a.vi(level), b.vi(level));
        let target = Buffer::new(&a, 300);
        for token in 0..3 {
            let at = u32::try_from(token).must() * 100;
            va.post_recv(&target.recv(at..at + 100), token).must();
        }
        let nobody = b.fresh_address();
        refused(va.connect(&nobody, &nobody, SOON), Error::NoMatch);
        let asked = ask(&va, (&a, &b), |incoming| incoming.reject().must());
        refused(asked, Error::Reject);
        assert_eq!(va.recv_done(), Ok(via::Done::NotDone));

        connect((&a, &va), (&b, &vb));
        let source = Buffer::new(&b, 100);
        for token in 0..3 {
            source.fill(0..100, token);
            vb.post_send(&source.send(0..100), token).must();
            sent(&vb).ok().must();
            let arrived = received(&va).ok().must();
            assert_eq!((arrived.token, arrived.length), (token, 100));
            let at = u32::try_from(token).must() * 100;
            target.assert_holds(at..at + 100, token);
        }
        target.assert_untouched_but(0..300);
    });
}

pub(crate) fn s079_receives_posted_before_connecting_are_used(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let (va, vb) = (a.vi(level), b.vi(level));
        let buffers = [Buffer::new(&a, 100), Buffer::new(&b, 100)];
        let sources = [Buffer::new(&a, 100), Buffer::new(&b, 100)];
        va.post_recv(&buffers[0].recv(0..100), 1).must();
        vb.post_recv(&buffers[1].recv(0..100), 2).must();
        sources[0].fill(0..100, 790);
        sources[1].fill(0..100, 791);
        let to = b.fresh_address();
        let ((), ()) = beside(
            lab,
            || {
                request(lab, &**va.ops(), &to, &to, SOON).must();
                va.post_send(&sources[0].send(0..100), 3).must();
            },
            || {
                incoming(b.ops(), &to).accept(&**vb.ops()).must();
                vb.post_send(&sources[1].send(0..100), 4).must();
            },
        );
        assert_eq!(received(&va).ok().must().token, 1);
        assert_eq!(received(&vb).ok().must().token, 2);
        buffers[0].assert_holds(0..100, 791);
        buffers[1].assert_holds(0..100, 790);
    });
}

pub(crate) fn s080_two_waiters_serve_two_clients(lab: &dyn Lab) {
    let (a, b) = Site::two(lab);
    let level = Reliability::Unreliable;
    let clients = [a.vi(level), a.vi(level)];
    let servers = [b.vi(level), b.vi(level)];
    let to = b.fresh_address();
    let serve = |vi: &Vi| incoming(b.ops(), &to).accept(&**vi.ops()).must();
    let ask = |vi: &Vi| request(lab, &**vi.ops(), &to, &to, SOON).must();
    beside(
        lab,
        || beside(lab, || serve(&servers[0]), || serve(&servers[1])),
        || beside(lab, || ask(&clients[0]), || ask(&clients[1])),
    );
    for vi in clients.iter().chain(&servers) {
        assert_eq!(vi.state(), Ok(ViState::Connected));
    }
}

pub(crate) fn s081_unreachable_host(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    let va = site.vi(Reliability::Unreliable);
    let from = site.fresh_address();
    let to = NetAddress {
        host: lab.nowhere(),
        ..from
    };
    let (took, asked) = timed(lab, || va.connect(&from, &to, Some(SHORT)));
    assert!(
        matches!(asked, Err(Error::NotReachable | Error::Timeout)),
        "{asked:?}"
    );
    assert_prompt(took);
    assert_eq!(va.state(), Ok(ViState::Idle));
}

pub(crate) fn s083_loopback(lab: &dyn Lab) {
    each_level(lab, |level| {
        let site = Site::open(lab, Host::A);
        let (va, vb) = (site.vi(level), site.vi(level));
        connect((&site, &va), (&site, &vb));
        let source = Buffer::new(&site, 5000);
        let target = Buffer::new(&site, 5000);
        for (from, to, seed) in [(&va, &vb, 1), (&vb, &va, 2)] {
            source.fill(0..5000, seed);
            to.post_recv(&target.recv(0..5000), seed).must();
            from.post_send(&source.send(0..5000), seed).must();
            assert_eq!(received(to).ok().must().length, 5000);
            sent(from).ok().must();
            target.assert_holds(0..5000, seed);
        }
    });
}

/// Asks for a connection from `sites.0` to `sites.1`, where `answer` answers.
pub(crate) fn ask(
    vi: &Vi,
    sites: (&Site<'_>, &Site<'_>),
    answer: impl FnOnce(Box<dyn ConnOps>),
) -> Result<ViAttributes, Error> {
    let to = sites.1.fresh_address();
    let from = sites.0.fresh_address();
    let lab = sites.0.lab;
    let (asked, ()) = beside(
        lab,
        || request(lab, &**vi.ops(), &from, &to, SOON),
        || answer(incoming(sites.1.ops(), &to)),
    );
    asked
}
