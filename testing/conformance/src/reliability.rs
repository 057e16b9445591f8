//! K: what happens when something goes wrong, by level.

use proto::frame::{Head, Kind as FrameKind};
use via::{
    Access, Completion, Descriptor, Error, ErrorCode, Fault, MemHandle, Nic, Queue, Reliability,
    RemoteSegment, ViState,
};

use crate::buffer::{Buffer, Kind};
use crate::kit::{
    Must, Pair, SHORT, Site, assert_fault, await_state, each_level, each_reliable_level, received,
    refused, sent, until,
};
use crate::lab::{Faults, Host, Lab};
use crate::layout::{
    CONTROL_IMMEDIATE, CONTROL_OP_RESERVED, Raw, STATUS_DONE, STATUS_ERROR_MASK, STATUS_RESERVED,
    Sheet,
};
use crate::send_recv::{WRONG_SEGMENTS, wrong_segment};
use crate::stream::{stream, stream_unreliably};

pub(crate) fn s153_ud_without_a_receive(lab: &dyn Lab) {
    let pair = Pair::new(lab, Reliability::Unreliable);
    let (source, target) = (Buffer::new(&pair.a, 64), Buffer::new(&pair.b, 64));
    for round in 0..3 {
        source.fill(0..64, 0xdead);
        pair.va.post_send(&source.send(0..64), 1).must();
        sent(&pair.va).ok().must();
        until(lab, "the message to be dropped", || {
            pair.b.errors.count(ErrorCode::RecvqEmpty, pair.vb.id()) > round
        });
        pair.assert_connected();
        source.fill(0..64, round as u64);
        pair.vb.post_recv(&target.recv(0..64), 2).must();
        pair.va.post_send(&source.send(0..64), 3).must();
        assert_eq!(received(&pair.vb).ok().must().token, 2);
        target.assert_holds(0..64, round as u64);
        sent(&pair.va).ok().must();
    }
}

pub(crate) fn s154_rd_without_a_receive(lab: &dyn Lab) {
    let pair = Pair::new(lab, Reliability::ReliableDelivery);
    pair.va.post_send(&Descriptor::send(), 1).must();
    pair.assert_broken();
    for (site, vi) in [(&pair.a, &pair.va), (&pair.b, &pair.vb)] {
        site.errors.wait_for(lab, ErrorCode::ConnLost, vi.id());
    }
    pair.b
        .errors
        .wait_for(lab, ErrorCode::RecvqEmpty, pair.vb.id());
}

pub(crate) fn s155_rr_without_a_receive(lab: &dyn Lab) {
    let pair = Pair::new(lab, Reliability::ReliableReception);
    pair.va.post_send(&Descriptor::send(), 1).must();
    pair.va.post_send(&Descriptor::send(), 2).must();
    assert_fault(sent(&pair.va), 1, Fault::RemoteDescriptor);
    assert_fault(sent(&pair.va), 2, Fault::Flushed);
    pair.assert_broken();
    pair.b
        .errors
        .wait_for(lab, ErrorCode::RecvqEmpty, pair.vb.id());
    long_message_is_refused(lab, |_| {});
}

/// The peer of an arranged VI refuses a message while a part of it has yet to leave: its sender learns why all the same.
fn long_message_is_refused<T>(lab: &dyn Lab, arrange: impl FnOnce(&Pair<'_>) -> T) {
    let pair = Pair::with(lab, Reliability::ReliableReception, |config| {
        config.max_transfer_size(LONG)
    });
    let source = Buffer::new(&pair.a, LONG);
    let _arranged = arrange(&pair);
    pair.va.post_send(&source.send(0..LONG), 1).must();
    pair.va.post_send(&Descriptor::send(), 2).must();
    assert_fault(sent(&pair.va), 1, Fault::RemoteDescriptor);
    assert_fault(sent(&pair.va), 2, Fault::Flushed);
    pair.assert_broken();
}

pub(crate) fn s156_ud_receive_too_small(lab: &dyn Lab) {
    let pair = Pair::new(lab, Reliability::Unreliable);
    let (source, target) = (Buffer::new(&pair.a, 64), Buffer::new(&pair.b, 64));
    pair.vb.post_recv(&target.recv(0..63), 1).must();
    pair.vb.post_recv(&target.recv(0..63), 2).must();
    pair.va.post_send(&source.send(0..64), 3).must();
    sent(&pair.va).ok().must();
    assert_fault(received(&pair.vb), 1, Fault::Length);
    pair.assert_connected();
    pair.va.post_send(&source.send(0..63), 4).must();
    assert_eq!(received(&pair.vb).ok().must().length, 63);
    sent(&pair.va).ok().must();
}

pub(crate) fn s157_reliable_receive_too_small(lab: &dyn Lab) {
    each_reliable_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let (source, target) = (Buffer::new(&pair.a, 64), Buffer::new(&pair.b, 64));
        pair.vb.post_recv(&target.recv(0..63), 1).must();
        pair.vb.post_recv(&target.recv(0..63), 2).must();
        pair.va.post_send(&source.send(0..64), 3).must();
        assert_fault(received(&pair.vb), 1, Fault::Length);
        assert_fault(received(&pair.vb), 2, Fault::Flushed);
        if level == Reliability::ReliableReception {
            assert_fault(sent(&pair.va), 3, Fault::RemoteDescriptor);
            long_message_is_refused(lab, |pair| {
                let target = Buffer::new(&pair.b, 64);
                pair.vb.post_recv(&target.recv(0..64), 1).must();
                target
            });
        }
        pair.assert_broken();
    });
}

pub(crate) fn s158_ud_bad_send(lab: &dyn Lab) {
    let pair = Pair::new(lab, Reliability::Unreliable);
    let (source, target) = (Buffer::new(&pair.a, 64), Buffer::new(&pair.b, 64));
    let sheet = Sheet::new(&pair.a, 64);
    for which in 0..WRONG_SEGMENTS {
        let (segment, _keep) = wrong_segment(&pair.a, which);
        pair.vb.post_recv(&target.recv(0..64), 1).must();
        pair.va
            .post_send(&Descriptor::send().raw_segment(segment), 2)
            .must();
        source.fill(0..64, which as u64);
        pair.va.post_send(&source.send(0..64), 3).must();
        assert_fault(sent(&pair.va), 2, Fault::Protection);
        assert_eq!(sent(&pair.va).ok().must().token, 3);
        assert_eq!(received(&pair.vb).ok().must().token, 1);
        target.assert_holds(0..64, which as u64);
    }
    let malformed = sheet.lay(0, &Raw::send(&[]).control(CONTROL_OP_RESERVED));
    pair.vb.post_recv(&Descriptor::recv(), 1).must();
    pair.va.ops().post_at(Queue::Send, malformed).must();
    pair.va.post_send(&Descriptor::send(), 3).must();
    assert_fault(sent(&pair.va), malformed.addr, Fault::Format);
    assert_eq!(sent(&pair.va).ok().must().token, 3);
    received(&pair.vb).ok().must();
    pair.assert_connected();
}

pub(crate) fn s159_reliable_bad_send(lab: &dyn Lab) {
    each_reliable_level(lab, |level| {
        for which in 0..WRONG_SEGMENTS {
            let pair = Pair::new(lab, level);
            let (source, target) = (Buffer::new(&pair.a, 64), Buffer::new(&pair.b, 64));
            let (segment, _keep) = wrong_segment(&pair.a, which);
            for token in 0..3 {
                pair.vb.post_recv(&target.recv(0..64), token).must();
            }
            source.fill(0..64, which as u64);
            pair.va.post_send(&source.send(0..64), 0).must();
            pair.va
                .post_send(&Descriptor::send().raw_segment(segment), 1)
                .must();
            pair.va.post_send(&source.send(0..64), 2).must();
            assert_eq!(sent(&pair.va).ok().must().token, 0);
            assert_fault(sent(&pair.va), 1, Fault::Protection);
            assert_fault(sent(&pair.va), 2, Fault::Flushed);
            assert_eq!(received(&pair.vb).ok().must().token, 0);
            target.assert_holds(0..64, which as u64);
            assert_fault(received(&pair.vb), 1, Fault::Flushed);
            pair.assert_broken();
        }
    });
}

pub(crate) fn s160_rr_done_means_arrived(lab: &dyn Lab) {
    let pair = Pair::for_rdma(lab, Reliability::ReliableReception);
    let source = Buffer::new(&pair.a, 60_000);
    for kind in Kind::BOTH {
        let target = Buffer::with(&pair.b, 60_000, kind, Access::Write);
        for round in 0..100 {
            let len = 1 + (round * 7919 % 59_999) as u32;
            source.fill(0..len, round);
            target.reset();
            if round % 2 == 0 {
                pair.vb.post_recv(&target.recv(0..60_000), round).must();
                pair.va.post_send(&source.send(0..len), round).must();
            } else {
                let write = Descriptor::rdma_write(target.remote(0));
                pair.va
                    .post_send(&write.raw_segment(source.segment(0..len)), round)
                    .must();
            }
            sent(&pair.va).ok().must();
            target.assert_holds(0..len, round);
            if round % 2 == 0 {
                received(&pair.vb).ok().must();
            }
        }
    }
}

pub(crate) fn s161_reliable_over_a_bad_medium(lab: &dyn Lab) {
    each_reliable_level(lab, |level| {
        for faults in mixes() {
            println!("{faults:?}");
            let pair = Pair::new(lab, level);
            assert!(lab.inject(faults), "no faults can be injected");
            stream(&pair, MESSAGES);
            assert!(lab.inject(Faults::default()));
        }
    });
}

pub(crate) fn s162_unreliable_over_a_bad_medium(lab: &dyn Lab) {
    for faults in mixes() {
        println!("{faults:?}");
        let pair = Pair::new(lab, Reliability::Unreliable);
        assert!(lab.inject(faults), "no faults can be injected");
        let arrived = stream_unreliably(&pair, MESSAGES);
        println!("{arrived} of {MESSAGES} arrived");
        assert!(lab.inject(Faults::default()));
        pair.assert_connected();
    }
}

pub(crate) fn s163_permanent_loss_ends(lab: &dyn Lab) {
    each_reliable_level(lab, |level| {
        let pair = Pair::new(lab, level);
        for token in 0..3 {
            pair.vb.post_recv(&Descriptor::recv(), token).must();
        }
        let lost = Faults {
            drop: 1000,
            ..Faults::default()
        };
        assert!(lab.inject(lost), "no faults can be injected");
        for token in 0..3 {
            pair.va.post_send(&Descriptor::send(), token).must();
        }
        let outcomes = [0; 3].map(|_| sent(&pair.va).status.fault());
        if level == Reliability::ReliableReception {
            let flushed = Some(Fault::Flushed);
            assert_eq!(outcomes, [Some(Fault::Transport), flushed, flushed]);
        }
        await_state(lab, &pair.va, ViState::Error);
        pair.a
            .errors
            .wait_for(lab, ErrorCode::ConnLost, pair.va.id());
        assert!(lab.inject(Faults::default()));
    });
}

pub(crate) fn s164_one_error_bit(lab: &dyn Lab) {
    let mut seen = Vec::new();
    each_level(lab, |level| {
        let failures: [fn(&Pair<'_>, &Buffer, &Sheet); 6] = [
            |pair, _, sheet| {
                let wrong = sheet.lay(0, &Raw::send(&[]).control(CONTROL_OP_RESERVED));
                pair.va.ops().post_at(Queue::Send, wrong).must();
            },
            |pair, source, sheet| {
                let mut wrong = source.segment(0..8);
                wrong.handle.0 = 0;
                pair.va
                    .ops()
                    .post_at(Queue::Send, sheet.lay(0, &Raw::send(&[wrong])))
                    .must();
            },
            |pair, source, sheet| {
                let wrong = Raw {
                    length: 9,
                    ..Raw::send(&[source.segment(0..8)])
                };
                pair.va
                    .ops()
                    .post_at(Queue::Send, sheet.lay(0, &wrong))
                    .must();
            },
            |pair, source, sheet| {
                let long = Raw::send(&[source.segment(0..64)]);
                pair.va
                    .ops()
                    .post_at(Queue::Send, sheet.lay(0, &long))
                    .must();
            },
            |pair, source, sheet| {
                pair.vb.disconnect().must();
                await_state(pair.lab(), &pair.va, ViState::Error);
                let late = Raw::send(&[source.segment(0..64)]);
                pair.va
                    .ops()
                    .post_at(Queue::Send, sheet.lay(0, &late))
                    .must();
            },
            |pair, source, sheet| {
                let nowhere = RemoteSegment {
                    addr: 0,
                    handle: MemHandle(0),
                };
                let write = Raw::rdma_write(nowhere, &[source.segment(0..8)]);
                let told = sheet.lay(0, &write.control(CONTROL_IMMEDIATE));
                pair.va.ops().post_at(Queue::Send, told).must();
            },
        ];
        for fail in failures {
            let pair = Pair::new(lab, level);
            let (ours, theirs) = (Sheet::new(&pair.a, 64), Sheet::new(&pair.b, 64));
            let (source, target) = (Buffer::new(&pair.a, 64), Buffer::new(&pair.b, 8));
            let small = theirs.lay(0, &Raw::recv(&[target.segment(0..8)]));
            pair.vb.ops().post_at(Queue::Recv, small).must();
            fail(&pair, &source, &ours);
            let mut ends = vec![(sent(&pair.va), &ours)];
            if level.is_reliable() {
                ends.push((received(&pair.vb), &theirs));
            }
            seen.extend(ends.iter().filter_map(|(end, sheet)| error_bit(end, sheet)));
        }
        if let Some(fault) = cut_short(lab, level) {
            assert_eq!(fault, Fault::Partial);
            seen.push(fault);
        }
    });
    seen.extend(lost(lab));
    let offered = Nic::open(lab.driver(Host::A))
        .must()
        .attributes()
        .reliability;
    let mut wanted = vec![
        Fault::Format,
        Fault::Protection,
        Fault::Length,
        Fault::Flushed,
        Fault::RdmaProtection,
    ];
    if offered.contains(Reliability::ReliableReception) {
        wanted.push(Fault::RemoteDescriptor);
    }
    if lab.excused(209).is_none() {
        wanted.push(Fault::Partial);
    } else {
        println!("not provoked here: a partial transfer, for which there is nobody to forge one");
    }
    if lab.excused(163).is_none() {
        wanted.push(Fault::Transport);
    } else {
        println!("not provoked here: a transport that fails, as in 163");
    }
    for fault in wanted {
        assert!(
            seen.contains(&fault),
            "{fault:?} was not among the failures"
        );
    }
}

/// The fault of the descriptor at the beginning of `sheet`, whose status must have one error bit for it.
#[track_caller]
fn error_bit(completion: &Completion, sheet: &Sheet) -> Option<Fault> {
    let status = completion.status.bits();
    assert_eq!(sheet.status(0), status);
    assert_eq!(status & (STATUS_DONE | STATUS_RESERVED), STATUS_DONE);
    let fault = completion.status.fault();
    let bits = (status & STATUS_ERROR_MASK).count_ones();
    assert_eq!(bits, u32::from(fault.is_some()), "{status:#x}");
    fault
}

/// How the receive ends of whose message half has come when the connection ends.
fn cut_short(lab: &dyn Lab, level: Reliability) -> Option<Fault> {
    let site = Site::open(lab, Host::B);
    let victim = site.vi(level);
    let (sheet, target) = (Sheet::new(&site, 64), Buffer::new(&site, 128));
    let recv = sheet.lay(0, &Raw::recv(&[target.segment(0..128)]));
    victim.ops().post_at(Queue::Recv, recv).must();
    let mut forger = lab.forge(&victim)?;
    let half = Head {
        len: 64,
        msg_len: 128,
        ..Head::bare(FrameKind::Send, 0)
    };
    forger.send(&half.encode(), &[7; 64]);
    forger.ring();
    refused(victim.recv_wait(Some(SHORT)), Error::Timeout);
    victim.disconnect().must();
    error_bit(&received(&victim), &sheet)
}

/// How a send ends that is lost every time, where the medium can be made to lose it.
fn lost(lab: &dyn Lab) -> Option<Fault> {
    let offered = Nic::open(lab.driver(Host::A))
        .must()
        .attributes()
        .reliability;
    if lab.excused(163).is_some() || !offered.contains(Reliability::ReliableReception) {
        return None;
    }
    let pair = Pair::new(lab, Reliability::ReliableReception);
    let sheet = Sheet::new(&pair.a, 64);
    let all = Faults {
        drop: 1000,
        ..Faults::default()
    };
    assert!(lab.inject(all), "no faults can be injected");
    let send = sheet.lay(0, &Raw::send(&[]));
    pair.va.ops().post_at(Queue::Send, send).must();
    let fault = error_bit(&sent(&pair.va), &sheet);
    assert!(lab.inject(Faults::default()));
    fault
}

fn mixes() -> impl Iterator<Item = Faults> {
    let bad = 50; // thousandths
    (0..5).map(move |kind: u32| Faults {
        drop: if matches!(kind, 0 | 4) { bad } else { 0 },
        duplicate: if matches!(kind, 1 | 4) { bad } else { 0 },
        reorder: if matches!(kind, 2 | 4) { bad } else { 0 },
        corrupt: if matches!(kind, 3 | 4) { bad } else { 0 },
    })
}

/// More than any link holds.
const LONG: u32 = 1 << 20;
/// Fewer than over a good medium: a lost frame costs a timeout.
const MESSAGES: u64 = 5000;
