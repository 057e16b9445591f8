//! E: answering who asks for a connection.

use std::sync::atomic::{AtomicBool, Ordering};

use via::{Descriptor, Error, Reliability, ViAttributes, ViState};

use crate::client_server::ask;
use crate::kit::{
    Must, Pair, SHORT, Site, assert_told, await_state, beside, connect, each_level, incoming,
    received, refused, request, sent,
};
use crate::lab::Lab;

pub(crate) fn s069_accept_needs_the_same_level(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let (va, vb) = (a.vi(level), b.vi(level));
        let asked = ask(&va, (&a, &b), |mut incoming| {
            for other in others(&b, level) {
                let wrong = b.vi(other);
                let accepted = incoming.accept(&**wrong.ops());
                refused(accepted, Error::InvalidReliabilityLevel);
                assert_eq!(wrong.state(), Ok(ViState::Idle));
                assert_eq!(va.state(), Ok(ViState::ConnectPending));
            }
            incoming.accept(&**vb.ops()).must();
        });
        assert_told(asked.must(), &vb);
    });
}

/// Only QoS 0 exists, so no two VIs differ in it.
pub(crate) fn s070_accept_needs_the_same_transfer_size(lab: &dyn Lab) {
    println!("QoS: no NIC has another than 0, so that two VIs cannot differ in it");
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let va = a.vi(level);
        let asked = ask(&va, (&a, &b), |mut incoming| {
            let size = va.ops().attributes().must().max_transfer_size;
            for other in [1, size - 1] {
                let wrong = b
                    .nic
                    .create_vi(&b.config(level).max_transfer_size(other))
                    .must();
                refused(incoming.accept(&**wrong.ops()), Error::InvalidMtu);
                assert_eq!(wrong.state(), Ok(ViState::Idle));
                assert_eq!(va.state(), Ok(ViState::ConnectPending));
            }
            incoming.reject().must();
        });
        refused(asked, Error::Reject);
    });
}

pub(crate) fn s071_server_adapts_and_accepts_again(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let va = a.vi(level);
        for other in others(&b, level) {
            let vb = b
                .nic
                .create_vi(&b.config(other).max_transfer_size(9))
                .must();
            let asked = ask(&va, (&a, &b), |mut incoming| {
                let wanted = incoming.remote_attributes();
                refused(incoming.accept(&**vb.ops()), Error::InvalidReliabilityLevel);
                let half = ViAttributes {
                    reliability: wanted.reliability,
                    ..vb.ops().attributes().must()
                };
                vb.ops().set_attributes(half).must();
                refused(incoming.accept(&**vb.ops()), Error::InvalidMtu);
                let whole = ViAttributes {
                    max_transfer_size: wanted.max_transfer_size,
                    ..half
                };
                vb.ops().set_attributes(whole).must();
                incoming.accept(&**vb.ops()).must();
            });
            assert_told(asked.must(), &vb);
            vb.post_recv(&Descriptor::recv(), 0).must();
            va.post_send(&Descriptor::send(), 0).must();
            received(&vb).ok().must();
            sent(&va).ok().must();
            va.disconnect().must();
        }
    });
}

pub(crate) fn s072_reject_after_a_failed_accept(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let va = a.vi(level);
        for other in others(&b, level) {
            let asked = ask(&va, (&a, &b), |mut incoming| {
                refused(
                    incoming.accept(&**b.vi(other).ops()),
                    Error::InvalidReliabilityLevel,
                );
                incoming.reject().must();
            });
            refused(asked, Error::Reject);
        }
        assert_eq!(va.state(), Ok(ViState::Idle));
    });
}

pub(crate) fn s073_rdma_flags_may_differ(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let va = a.vi(level);
        let mut config = b.config(level).accept_rdma_write();
        if b.reads_at(level) {
            config = config.accept_rdma_read();
        }
        let vb = b.nic.create_vi(&config).must();
        let asked = ask(&va, (&a, &b), |mut incoming| {
            assert_told(incoming.remote_attributes(), &va);
            incoming.accept(&**vb.ops()).must();
        });
        assert_told(asked.must(), &vb);
    });
}

pub(crate) fn s074_accept_needs_an_idle_vi(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let (asker, fresh) = (pair.a.vi(level), pair.b.vi(level));
        let asked = ask(&asker, (&pair.a, &pair.b), |mut incoming| {
            refused(incoming.accept(&**pair.vb.ops()), Error::InvalidState);
            pair.assert_connected();
            pair.va.disconnect().must();
            await_state(lab, &pair.vb, ViState::Error);
            refused(incoming.accept(&**pair.vb.ops()), Error::InvalidState);
            assert_eq!(asker.state(), Ok(ViState::ConnectPending));
            incoming.accept(&**fresh.ops()).must();
        });
        asked.must();
    });
}

pub(crate) fn s075_answered_request_is_used_up(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let (va, vb, other) = (a.vi(level), b.vi(level), b.vi(level));
        let asked = ask(&va, (&a, &b), |mut incoming| {
            incoming.accept(&**vb.ops()).must();
            refused(incoming.accept(&**other.ops()), Error::InvalidParameter);
            refused(incoming.accept(&**vb.ops()), Error::InvalidParameter);
            refused(incoming.reject(), Error::InvalidParameter);
        });
        asked.must();
        assert_eq!(va.state(), Ok(ViState::Connected));
        assert_eq!(other.state(), Ok(ViState::Idle));
    });
}

pub(crate) fn s076_accept_comes_too_late(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let (va, vb) = (a.vi(level), b.vi(level));
        let to = b.fresh_address();
        let gave_up = AtomicBool::new(false);
        let (asked, ()) = beside(
            lab,
            || {
                let asked = request(lab, &**va.ops(), &to, &to, Some(SHORT));
                gave_up.store(true, Ordering::Release);
                asked
            },
            || {
                let mut incoming = incoming(b.ops(), &to);
                crate::kit::until(lab, "the asker to give up", || {
                    gave_up.load(Ordering::Acquire)
                });
                refused(incoming.accept(&**vb.ops()), Error::Timeout);
                assert_eq!(vb.state(), Ok(ViState::Idle));
            },
        );
        refused(asked, Error::Timeout);
        assert_eq!(va.state(), Ok(ViState::Idle));
        connect((&a, &va), (&b, &vb));
    });
}

fn others(site: &Site<'_>, level: Reliability) -> impl Iterator<Item = Reliability> {
    let offered = site.nic.attributes().reliability;
    let all = Reliability::ALL.into_iter();
    all.filter(move |&other| other != level && offered.contains(other))
}
