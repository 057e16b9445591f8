//! F: connections between equals.

use std::time::Duration;

use via::{Error, NetAddress, Reliability, Vi, ViAttributes, ViState};

use crate::kit::{
    Log, Must, Pair, SHORT, SOON, Site, assert_about, assert_prompt, assert_told, beside, crowd,
    each_level, received, refused, sent, timed, until,
};
use crate::lab::{Host, Lab};

pub(crate) fn s084_mirror_images_connect(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        for a_first in [true, false] {
            let (va, vb) = (a.vi(level), b.vi(level));
            let (at_a, at_b) = (a.fresh_address(), b.fresh_address());
            let ask_a = || va.ops().peer_request(&at_a, &at_b, SOON).must();
            let ask_b = || vb.ops().peer_request(&at_b, &at_a, SOON).must();
            if a_first {
                ask_a();
                ask_b();
            } else {
                ask_b();
                ask_a();
            }
            let (told_a, told_b) = beside(lab, || va.ops().peer_wait(), || vb.ops().peer_wait());
            assert_eq!(told_a.must().reliability, level);
            assert_eq!(told_b.must().reliability, level);
            assert_eq!(va.state(), Ok(ViState::Connected));
            assert_eq!(vb.state(), Ok(ViState::Connected));
            vb.post_recv(&via::Descriptor::recv(), 0).must();
            va.post_send(&via::Descriptor::send().immediate(84), 0)
                .must();
            assert_eq!(received(&vb).ok().must().immediate, Some(84));
            sent(&va).ok().must();
        }
        a_pair_may_be_its_own_mirror_image(&a, level);
    });
}

/// Two requests of one NIC handle or of two, one after the other and both at once.
fn a_pair_may_be_its_own_mirror_image(a: &Site<'_>, level: Reliability) {
    let other = Site::open(a.lab, Host::A);
    for b in [a, &other] {
        for round in 0..ROUNDS {
            let (va, vb) = (a.vi(level), b.vi(level));
            let at = a.fresh_address();
            let ask = |vi: &Vi| vi.ops().peer_request(&at, &at, SOON).must();
            if round == 0 {
                ask(&va);
                ask(&vb);
            } else {
                beside(a.lab, || ask(&va), || ask(&vb));
            }
            let (told_a, told_b) = beside(a.lab, || va.ops().peer_wait(), || vb.ops().peer_wait());
            assert_told(told_a.must(), &vb);
            assert_told(told_b.must(), &va);
            vb.post_recv(&via::Descriptor::recv(), 0).must();
            va.post_send(&via::Descriptor::send(), 0).must();
            received(&vb).ok().must();
        }
    }
}

pub(crate) fn s085_request_does_not_wait(lab: &dyn Lab) {
    let (a, b) = Site::two(lab);
    let va = a.vi(Reliability::Unreliable);
    let (at_a, at_b) = (a.fresh_address(), b.fresh_address());
    let (took, asked) = timed(lab, || va.ops().peer_request(&at_a, &at_b, SOON));
    asked.must();
    assert_prompt(took);
    assert_eq!(va.state(), Ok(ViState::ConnectPending));
    let zero = a.vi(Reliability::Unreliable);
    let asked = zero.ops().peer_request(&at_b, &at_a, Some(Duration::ZERO));
    refused(asked, Error::InvalidParameter);
}

pub(crate) fn s086_done_polls(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let va = a.nic.create_vi(&a.config(level).accept_rdma_write()).must();
        let vb = b.vi(level);
        let (at_a, at_b) = (a.fresh_address(), b.fresh_address());
        va.ops().peer_request(&at_a, &at_b, SOON).must();
        assert_eq!(va.ops().peer_done(), Ok(None));
        vb.ops().peer_request(&at_b, &at_a, SOON).must();
        assert_told(poll(lab, &va), &vb);
        assert_told(poll(lab, &vb), &va);
        // The outcome is told once.
        refused(va.ops().peer_done(), Error::InvalidState);
    });
}

pub(crate) fn s087_wait_ends_with_the_request(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let (va, vb) = (a.vi(level), b.vi(level));
        let (at_a, at_b) = (a.fresh_address(), b.fresh_address());
        let (took, waited) = timed(lab, || {
            va.ops().peer_request(&at_a, &at_b, Some(SHORT)).must();
            va.ops().peer_wait()
        });
        refused(waited, Error::Timeout);
        assert_about(took, SHORT);
        assert_eq!(va.state(), Ok(ViState::Idle));

        va.ops().peer_request(&at_a, &at_b, SOON).must();
        let (told, ()) = beside(
            lab,
            || va.ops().peer_wait(),
            || vb.ops().peer_request(&at_b, &at_a, SOON).must(),
        );
        assert_told(told.must(), &vb);
        vb.ops().peer_wait().must();
        for _ in 0..ROUNDS {
            one_of_several_waits_has_it(&a, &b, level);
        }
    });
}

/// The outcome is told once; the others leave the connection alone.
fn one_of_several_waits_has_it(a: &Site<'_>, b: &Site<'_>, level: Reliability) {
    let (va, vb) = (a.vi(level), b.vi(level));
    let (at_a, at_b) = (a.fresh_address(), b.fresh_address());
    va.ops().peer_request(&at_a, &at_b, SOON).must();
    let told = Log::default();
    let waits = || told.note(va.ops().peer_wait().map(drop));
    let polls = || {
        let mut outcome = Ok(None);
        while outcome == Ok(None) {
            a.lab.pass();
            outcome = va.ops().peer_done();
        }
        told.note(outcome.map(drop));
    };
    let asks = || vb.ops().peer_request(&at_b, &at_a, SOON).must();
    let jobs: [Box<dyn FnOnce() + Send>; 5] = [
        Box::new(waits),
        Box::new(polls),
        Box::new(asks),
        Box::new(waits),
        Box::new(polls),
    ];
    crowd(a.lab, jobs);
    let told = told.all();
    let had = told.iter().filter(|outcome| outcome.is_ok()).count();
    let others = told
        .iter()
        .filter(|&&outcome| outcome == Err(Error::InvalidState));
    assert_eq!((had, others.count()), (1, 3));
    assert_eq!(va.state(), Ok(ViState::Connected));
    vb.ops().peer_wait().must();
}

pub(crate) fn s088_mismatch_fails_both(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let smaller = b
            .nic
            .create_vi(&b.config(level).max_transfer_size(77))
            .must();
        mismatch((&a, &a.vi(level)), (&b, &smaller), Error::InvalidMtu);
        let offered = b.nic.attributes().reliability;
        for other in Reliability::ALL {
            if other != level && offered.contains(other) {
                let expected = Error::InvalidReliabilityLevel;
                mismatch((&a, &a.vi(level)), (&b, &b.vi(other)), expected);
            }
        }
    });
}

fn mismatch(a: (&Site<'_>, &Vi), b: (&Site<'_>, &Vi), expected: Error) {
    let (at_a, at_b) = (a.0.fresh_address(), b.0.fresh_address());
    a.1.ops().peer_request(&at_a, &at_b, SOON).must();
    // The second may learn it at once.
    match b.1.ops().peer_request(&at_b, &at_a, SOON) {
        Ok(()) => refused(b.1.ops().peer_wait(), expected),
        Err(error) => assert_eq!(error, expected),
    }
    refused(a.1.ops().peer_wait(), expected);
    assert_eq!(a.1.state(), Ok(ViState::Idle));
    assert_eq!(b.1.state(), Ok(ViState::Idle));
}

pub(crate) fn s089_peers_and_waiters_do_not_match(lab: &dyn Lab) {
    let (a, b) = Site::two(lab);
    let va = a.vi(Reliability::Unreliable);
    let (at_a, at_b) = (a.fresh_address(), b.fresh_address());
    let (waited, asked) = beside(
        lab,
        || b.nic.connect_wait(&at_b, Some(2 * SHORT)),
        || {
            va.ops().peer_request(&at_a, &at_b, Some(SHORT)).must();
            va.ops().peer_wait()
        },
    );
    refused(waited, Error::Timeout);
    refused(asked, Error::Timeout);

    // Nor does a client's request find a peer's.
    let (vb, vc) = (b.vi(Reliability::Unreliable), a.vi(Reliability::Unreliable));
    vb.ops().peer_request(&at_b, &at_a, SOON).must();
    refused(vc.connect(&at_a, &at_b, SOON), Error::NoMatch);
    assert_eq!(vb.ops().peer_done(), Ok(None));
}

pub(crate) fn s090_no_request_no_outcome(lab: &dyn Lab) {
    each_level(lab, |level| {
        let idle = Site::open(lab, Host::A).vi(level);
        refused(idle.ops().peer_done(), Error::InvalidState);
        refused(idle.ops().peer_wait(), Error::InvalidState);
        let pair = Pair::new(lab, level);
        refused(pair.va.ops().peer_done(), Error::InvalidState);
        refused(pair.vb.ops().peer_wait(), Error::InvalidState);
    });
}

/// Each of four NICs with each other, all requests under way at once, half of them issued from either end first.
pub(crate) fn s091_many_at_once(lab: &dyn Lab) {
    many_of_one_pair(lab);
    let sites = [Host::A, Host::B, Host::A, Host::B].map(|host| Site::open(lab, host));
    let pairs = (0..sites.len()).flat_map(|i| (i + 1..sites.len()).map(move |j| (i, j)));
    let mut ends = Vec::new();
    for (i, j) in pairs {
        for _ in 0..8 {
            let (at_i, at_j) = (sites[i].fresh_address(), sites[j].fresh_address());
            ends.push((i, at_i, at_j));
            ends.push((j, at_j, at_i));
        }
    }
    // Neither in the order of making nor all of one site first.
    ends.sort_by_key(|(_, at, _): &(usize, NetAddress, NetAddress)| {
        at.discriminator
            .as_bytes()
            .iter()
            .rev()
            .copied()
            .collect::<Vec<_>>()
    });
    let vis: Vec<(Vi, NetAddress, NetAddress)> = ends
        .into_iter()
        .map(|(i, here, there)| (sites[i].vi(Reliability::Unreliable), here, there))
        .collect();
    let (first, second) = vis.split_at(vis.len() / 2);
    let ask = |vis: &[(Vi, NetAddress, NetAddress)]| {
        for (vi, here, there) in vis {
            vi.ops().peer_request(here, there, SOON).must();
        }
    };
    beside(lab, || ask(first), || ask(second));
    for (vi, ..) in &vis {
        poll(lab, vi);
        assert_eq!(vi.state(), Ok(ViState::Connected));
    }
}

/// Any of these may be connected to any other.
fn many_of_one_pair(lab: &dyn Lab) {
    let sites = [(); 4].map(|()| Site::open(lab, Host::A));
    let at = sites[0].fresh_address();
    let vis: Vec<Vec<Vi>> = sites
        .iter()
        .map(|site| (0..8).map(|_| site.vi(Reliability::Unreliable)).collect())
        .collect();
    let ask = |vis: &[Vi]| {
        for vi in vis {
            vi.ops().peer_request(&at, &at, SOON).must();
        }
    };
    let jobs = vis
        .iter()
        .map(|vis| -> Box<dyn FnOnce() + Send> { Box::new(|| ask(vis)) });
    crowd(lab, jobs);
    for vi in vis.iter().flatten() {
        poll(lab, vi);
        assert_eq!(vi.state(), Ok(ViState::Connected));
    }
}

#[track_caller]
fn poll(lab: &dyn Lab, vi: &Vi) -> ViAttributes {
    let mut told = None;
    until(lab, "the peer", || {
        told = vi.ops().peer_done().must();
        told.is_some()
    });
    told.must()
}

/// How often two requests race.
const ROUNDS: usize = 50;
