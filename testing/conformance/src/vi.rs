//! D: creating VIs and asking about them.

use std::sync::Arc;

use via::provider::{MemHandle, ViOps};
use via::{
    Cq, Descriptor, DescriptorAt, Done, Error, Fault, MemAttributes, Memory, Queue, Reliability,
    Segment, ViAttributes, ViState,
};

use crate::kit::{
    Must, Pair, SHORT, SOON, Site, assert_fault, await_state, beside, connect, connect_raw,
    each_level, incoming, next, open_compat, poll, received, refused, request, sent,
};
use crate::lab::{Host, Lab};
use crate::memory::NO_TAG;

pub(crate) fn s045_starts_idle_and_empty(lab: &dyn Lab) {
    each_level(lab, |level| {
        let vi = Site::open(lab, Host::A).vi(level);
        assert_eq!(vi.state(), Ok(ViState::Idle));
        for queue in [Queue::Send, Queue::Recv] {
            assert_eq!(vi.ops().is_empty(queue), Ok(true));
            assert_eq!(vi.ops().done(queue), Ok(Done::Empty));
        }
    });
}

pub(crate) fn s046_only_offered_levels(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    for level in Reliability::ALL {
        let made = site.nic.create_vi(&site.config(level));
        if site.nic.attributes().reliability.contains(level) {
            made.must();
        } else {
            refused(made, Error::InvalidReliabilityLevel);
        }
    }
}

pub(crate) fn s047_transfer_size_has_a_limit(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    let most = site.nic.attributes().max_transfer_size;
    let make = |bytes| {
        let config = site
            .config(Reliability::Unreliable)
            .max_transfer_size(bytes);
        site.nic.create_vi(&config)
    };
    make(most).must();
    make(1).must();
    refused(make(0), Error::InvalidMtu);
    if let Some(more) = most.checked_add(1) {
        refused(make(more), Error::InvalidMtu);
        refused(make(u32::MAX), Error::InvalidMtu);
    }
}

pub(crate) fn s048_only_qos_zero(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    for qos in [1, 1 << 32, u64::MAX] {
        let wanted = ViAttributes {
            qos,
            ..plain(&site)
        };
        refused(create(&site, wanted), Error::InvalidQos);
    }
    create(&site, plain(&site)).must().destroy().must();
}

pub(crate) fn s049_unknown_tag_makes_no_vi(lab: &dyn Lab) {
    let (site, other) = Site::two(lab);
    let of = |ptag| ViAttributes {
        ptag: Some(ptag),
        ..plain(&site)
    };
    refused(create(&site, of(NO_TAG)), Error::InvalidPtag);
    let gone = site.ops().create_ptag().must();
    site.ops().destroy_ptag(gone).must();
    refused(create(&site, of(gone)), Error::InvalidPtag);
    refused(
        site.nic.create_vi(&other.config(Reliability::Unreliable)),
        Error::InvalidPtag,
    );
}

pub(crate) fn s050_vi_without_tag_is_for_old_programs(lab: &dyn Lab) {
    let strict = Site::open(lab, Host::A);
    let untagged = ViAttributes {
        ptag: None,
        ..plain(&strict)
    };
    refused(create(&strict, untagged), Error::InvalidPtag);

    let compat = open_compat(lab);
    let (a, b) = (
        compat.create_vi(untagged, None, None).must(),
        compat.create_vi(untagged, None, None).must(),
    );
    connect_raw(lab, &*compat, &*a, &*b);
    for ptag in [Some(compat.create_ptag().must()), None] {
        let tagged = MemAttributes {
            ptag,
            ..MemAttributes::default()
        };
        let memory = Arc::new(Memory::private(64).must());
        let handle = compat.register_mem(Arc::clone(&memory), tagged).must();
        memory.write(0, b"question").must();
        let piece = |at, len| Segment {
            addr: memory.addr() + at,
            handle,
            len,
        };
        b.post(
            Queue::Recv,
            &Descriptor::recv().raw_segment(piece(32, 8)),
            0,
        )
        .must();
        a.post(Queue::Send, &Descriptor::send().raw_segment(piece(0, 8)), 0)
            .must();
        let arrived = b.wait(Queue::Recv, SOON).must().completion().must();
        assert_eq!(arrived.ok().must().length, 8);
        let mut copy = [0; 8];
        memory.read(32, &mut copy).must();
        assert_eq!(&copy, b"question");
        a.wait(Queue::Send, SOON)
            .must()
            .completion()
            .must()
            .ok()
            .must();
    }
    compat.close();
}

pub(crate) fn s051_rdma_read_only_where_it_exists(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    each_level(lab, |level| {
        let made = site.nic.create_vi(&site.config(level).accept_rdma_read());
        if site.reads_at(level) {
            made.must();
        } else {
            refused(made, Error::InvalidRdmaRead);
        }
    });
}

pub(crate) fn s052_queues_choose_their_completion_queues(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        for bound in [[false, false], [true, false], [false, true], [true, true]] {
            let cqs: [Cq; 2] = [a.nic.create_cq(16).must(), b.nic.create_cq(16).must()];
            let make = |site: &Site<'_>, cq: &Cq| {
                let mut config = site.config(level);
                if bound[0] {
                    config = config.send_cq(cq);
                }
                if bound[1] {
                    config = config.recv_cq(cq);
                }
                site.nic.create_vi(&config).must()
            };
            let (va, vb) = (make(&a, &cqs[0]), make(&b, &cqs[1]));
            connect((&a, &va), (&b, &vb));
            vb.post_recv(&Descriptor::recv(), 1).must();
            va.post_send(&Descriptor::send(), 2).must();
            for (vi, queue, cq) in [(&vb, Queue::Recv, &cqs[1]), (&va, Queue::Send, &cqs[0])] {
                if bound[usize::from(queue == Queue::Recv)] {
                    let entry = cq.wait(SOON).must();
                    assert_eq!((entry.vi, entry.queue), (vi.id(), queue));
                    poll(lab, vi, queue).ok().must();
                } else {
                    next(vi, queue).ok().must();
                }
                assert_eq!(cq.done(), Ok(None));
            }
        }
    });
}

pub(crate) fn s053_vis_run_out_and_come_back(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    let most = site.nic.attributes().max_vi;
    let mut held: Vec<_> = (0..most)
        .map(|_| site.vi(Reliability::Unreliable))
        .collect();
    let make = || site.nic.create_vi(&site.config(Reliability::Unreliable));
    refused(make(), Error::Resource);
    held.pop();
    held.push(make().must());
    refused(make(), Error::Resource);
}

pub(crate) fn s054_query_tells_what_was_given(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    each_level(lab, |level| {
        for (write, read) in [(false, false), (true, false), (false, true), (true, true)] {
            let wanted = ViAttributes {
                reliability: level,
                max_transfer_size: 4000 + u32::from(level.bits()),
                enable_rdma_write: write,
                enable_rdma_read: read && site.reads_at(level),
                ..plain(&site)
            };
            let vi = create(&site, wanted).must();
            assert_eq!(vi.attributes(), Ok(wanted));
            vi.destroy().must();
        }
    });
}

pub(crate) fn s055_empty_means_nothing_to_dequeue(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let (a, b) = (pair.va.ops(), pair.vb.ops());
        pair.vb.post_recv(&Descriptor::recv(), 0).must();
        assert_eq!(b.is_empty(Queue::Recv), Ok(false));
        pair.va.post_send(&Descriptor::send(), 0).must();
        assert_eq!(a.is_empty(Queue::Send), Ok(false));
        // The receive is known to be complete once the one behind it is.
        pair.vb.post_recv(&Descriptor::recv(), 1).must();
        pair.va.post_send(&Descriptor::send(), 1).must();
        assert_eq!(received(&pair.vb).ok().must().token, 0);
        assert_eq!(b.is_empty(Queue::Recv), Ok(false));
        assert_eq!(received(&pair.vb).ok().must().token, 1);
        assert_eq!(b.is_empty(Queue::Recv), Ok(true));
        sent(&pair.va).ok().must();
        sent(&pair.va).ok().must();
        assert_eq!(a.is_empty(Queue::Send), Ok(true));
    });
}

pub(crate) fn s056_attributes_change_only_in_idle(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let vi = pair.va.ops();
        let before = vi.attributes().must();
        let changed = ViAttributes {
            max_transfer_size: 5000,
            enable_rdma_write: true,
            ..before
        };
        refused(vi.set_attributes(changed), Error::InvalidState);
        assert_eq!(vi.attributes(), Ok(before));
        pair.vb.disconnect().must();
        await_state(lab, &pair.va, ViState::Error);
        refused(vi.set_attributes(changed), Error::InvalidState);

        pair.va.disconnect().must();
        vi.set_attributes(changed).must();
        assert_eq!(vi.attributes(), Ok(changed));
        let wrong = [
            (
                ViAttributes {
                    max_transfer_size: 0,
                    ..changed
                },
                Error::InvalidMtu,
            ),
            (ViAttributes { qos: 9, ..changed }, Error::InvalidQos),
            (
                ViAttributes {
                    ptag: Some(NO_TAG),
                    ..changed
                },
                Error::InvalidPtag,
            ),
        ];
        for (wrong, error) in wrong {
            refused(vi.set_attributes(wrong), error);
            assert_eq!(vi.attributes(), Ok(changed));
        }
    });
}

pub(crate) fn s057_only_idle_vis_are_destroyed(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        refused(pair.va.ops().destroy(), Error::InvalidState);
        pair.vb.disconnect().must();
        await_state(lab, &pair.va, ViState::Error);
        refused(pair.va.ops().destroy(), Error::InvalidState);
        pair.va.disconnect().must();

        let to = pair.b.fresh_address();
        let (asked, ()) = beside(
            lab,
            || request(lab, &**pair.va.ops(), &to, &to, SOON),
            || {
                let incoming = incoming(pair.b.ops(), &to);
                assert_eq!(pair.va.state(), Ok(ViState::ConnectPending));
                refused(pair.va.ops().destroy(), Error::InvalidState);
                incoming.reject().must();
            },
        );
        refused(asked, Error::Reject);
        pair.va.ops().destroy().must();
    });
}

pub(crate) fn s058_undrained_vi_is_destroyed_for_old_programs_only(lab: &dyn Lab) {
    each_level(lab, |level| {
        let site = Site::open(lab, Host::A);
        let vi = site.vi(level);
        vi.post_recv(&Descriptor::recv(), 1).must();
        refused(vi.ops().destroy(), Error::Resource);
        vi.disconnect().must();
        refused(vi.ops().destroy(), Error::Resource);
        assert_fault(received(&vi), 1, Fault::Flushed);
        vi.post_send(&Descriptor::send(), 2).must();
        refused(vi.ops().destroy(), Error::Resource);
        assert_fault(sent(&vi), 2, Fault::Flushed);
        vi.ops().destroy().must();

        let compat = open_compat(lab);
        let wanted = ViAttributes {
            reliability: level,
            ptag: None,
            ..ViAttributes::default()
        };
        let vi = compat.create_vi(wanted, None, None).must();
        vi.post(Queue::Recv, &Descriptor::recv(), 1).must();
        refused(vi.destroy(), Error::Resource);
        vi.disconnect().must();
        vi.destroy().must();
        refused(vi.state(), Error::InvalidParameter);
        compat.close();
    });
}

pub(crate) fn s059_destroyed_vi_is_refused(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    let to = site.fresh_address();
    let dead = site.vi(Reliability::Unreliable);
    dead.ops().destroy().must();
    let alive = site.vi(Reliability::Unreliable);
    let (asked, ()) = beside(
        lab,
        || request(lab, &**alive.ops(), &to, &to, SOON),
        || {
            let mut incoming = incoming(site.ops(), &to);
            refused(incoming.accept(&**dead.ops()), Error::InvalidParameter);
            incoming.reject().must();
        },
    );
    refused(asked, Error::Reject);
    every_call_is_refused(&site, &**dead.ops());
}

/// Calls whatever takes a VI, on one that is no more.
pub(crate) fn every_call_is_refused(site: &Site<'_>, vi: &dyn ViOps) {
    let to = site.fresh_address();
    let invalid = Error::InvalidParameter;
    let short = Some(SHORT);
    refused(vi.state(), invalid);
    refused(vi.attributes(), invalid);
    refused(vi.set_attributes(plain(site)), invalid);
    refused(vi.connect_request(&to, &to, short), invalid);
    refused(vi.peer_request(&to, &to, short), invalid);
    refused(vi.peer_done(), invalid);
    refused(vi.peer_wait(), invalid);
    refused(vi.export(), invalid);
    refused(site.ops().import(vi, &[], Vec::new()), invalid);
    refused(vi.disconnect(), invalid);
    for queue in [Queue::Send, Queue::Recv] {
        refused(vi.is_empty(queue), invalid);
        refused(vi.post(queue, &Descriptor::send(), 0), invalid);
        let at = DescriptorAt {
            addr: 64,
            handle: MemHandle(1),
        };
        refused(vi.post_at(queue, at), invalid);
        refused(vi.done(queue), invalid);
        refused(vi.wait(queue, short), invalid);
        refused(vi.notify(queue, Box::new(|_| {})), invalid);
    }
    refused(vi.destroy(), invalid);
}

/// A VI that can be connected, for statements about attributes.
pub(crate) fn plain(site: &Site<'_>) -> ViAttributes {
    ViAttributes {
        reliability: Reliability::Unreliable,
        max_transfer_size: 4096,
        ptag: Some(site.tag.id()),
        ..ViAttributes::default()
    }
}

fn create(site: &Site<'_>, wanted: ViAttributes) -> Result<Arc<dyn ViOps>, Error> {
    site.ops().create_vi(wanted, None, None)
}
