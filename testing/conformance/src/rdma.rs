//! J: remote memory.

use via::{
    Access, CompletedOp, Descriptor, Done, ErrorCode, Fault, MemHandle, Queue, Reliability,
    RemoteSegment,
};

use crate::buffer::{Buffer, Kind, pattern};
use crate::kit::{
    Must, Pair, Site, assert_fault, each_level, each_read_level, each_reliable_level, received,
    sent, until,
};
use crate::lab::Lab;
use crate::layout::{Raw, Sheet};
use crate::send_recv::assert_format_error;

mod order;

pub(crate) fn s137_write_lands_where_it_says(lab: &dyn Lab) {
    each_kind_and_level(lab, |kind, level| {
        let pair = Pair::for_rdma(lab, level);
        let most = pair.va.ops().attributes().must().max_transfer_size;
        let source = Buffer::new(&pair.a, most);
        let target = Buffer::with(&pair.b, most + 100, kind, Access::Write);
        let spare = Buffer::new(&pair.b, 64);
        pair.vb.post_recv(&spare.recv(0..64), 9).must();
        for (at, len) in [(0, 1), (3, 64), (17, 4097), (100, most)] {
            source.fill(0..len, u64::from(at));
            target.reset();
            let (i, j) = (len / 3, len / 2);
            let write = Descriptor::rdma_write(target.remote(at))
                .raw_segment(source.segment(0..i))
                .raw_segment(source.segment(i..j))
                .raw_segment(source.segment(j..len));
            pair.va.post_send(&write, 1).must();
            let done = sent(&pair.va).ok().must();
            assert_eq!(
                (done.length, done.status.op()),
                (len, CompletedOp::RdmaWrite)
            );
            await_bytes(lab, &target, at, &pattern(u64::from(at), len as usize));
            target.assert_untouched_but(at..at + len);
            assert_eq!(pair.vb.recv_done(), Ok(Done::NotDone));
        }
        pair.va.post_send(&Descriptor::send(), 2).must();
        let first = received(&pair.vb).ok().must();
        assert_eq!((first.token, first.length, first.immediate), (9, 0, None));
        spare.assert_untouched();
        pair.b.settle();
        assert!(pair.b.errors.of(pair.vb.id()).is_empty());
    });
}

pub(crate) fn s138_write_with_immediate_uses_a_receive(lab: &dyn Lab) {
    each_kind_and_level(lab, |kind, level| {
        let pair = Pair::for_rdma(lab, level);
        let source = Buffer::new(&pair.a, 20_000);
        let target = Buffer::with(&pair.b, 20_000, kind, Access::Write);
        let spare = Buffer::new(&pair.b, 64);
        for (round, len) in [0, 1, 63, 20_000, 5].into_iter().enumerate() {
            source.fill(0..len, round as u64);
            target.reset();
            pair.vb.post_recv(&spare.recv(0..64), round as u64).must();
            let write = write(&source, 0..len, target.remote(0)).immediate(138 + len);
            pair.va.post_send(&write, 1).must();
            let done = received(&pair.vb).ok().must();
            assert_eq!(done.status.op(), CompletedOp::RemoteRdmaWrite);
            assert_eq!((done.token, done.length), (round as u64, len));
            assert_eq!(done.immediate, Some(138 + len));
            target.assert_holds(0..len, round as u64);
            target.assert_untouched_but(0..len);
            sent(&pair.va).ok().must();
        }
        spare.assert_untouched();
        assert_eq!(pair.vb.recv_done(), Ok(Done::Empty));
    });
}

pub(crate) fn s139_write_is_there_before_the_next_send(lab: &dyn Lab) {
    for kind in Kind::BOTH {
        each_reliable_level(lab, |level| {
            let pair = Pair::for_rdma(lab, level);
            let source = Buffer::new(&pair.a, 60_000);
            let target = Buffer::with(&pair.b, 60_000, kind, Access::Write);
            for round in 0..200 {
                let len = 1 + (round * 7919 % 59_999) as u32;
                source.fill(0..len, round);
                pair.vb.post_recv(&Descriptor::recv(), round).must();
                pair.va
                    .post_send(&write(&source, 0..len, target.remote(0)), 1)
                    .must();
                pair.va.post_send(&Descriptor::send(), 2).must();
                received(&pair.vb).ok().must();
                target.assert_holds(0..len, round);
                sent(&pair.va).ok().must();
                sent(&pair.va).ok().must();
            }
            order::later_writes_win(lab, level, kind);
            order::a_region_fills_from_the_front(lab, level, kind);
        });
    }
}

pub(crate) fn s140_vi_must_accept_writes(lab: &dyn Lab) {
    each_kind_and_level(lab, |kind, level| {
        let pair = Pair::new(lab, level);
        let source = Buffer::new(&pair.a, 64);
        let target = Buffer::with(&pair.b, 64, kind, Access::ReadWrite);
        pair.va
            .post_send(&write(&source, 0..64, target.remote(0)), 1)
            .must();
        pair.b
            .errors
            .wait_for(lab, ErrorCode::RdmawProt, pair.vb.id());
        pair.assert_survives_only(level);
        target.assert_untouched();
    });
}

pub(crate) fn s141_region_must_accept_the_write(lab: &dyn Lab) {
    each_kind_and_level(lab, |kind, level| {
        for wrong in 0..WRONG_TARGETS {
            let pair = Pair::for_rdma(lab, level);
            let source = Buffer::new(&pair.a, 64);
            let (remote, keep) = wrong_target(&pair.b, kind, wrong);
            pair.va.post_send(&write(&source, 0..64, remote), 1).must();
            pair.b
                .errors
                .wait_for(lab, ErrorCode::RdmawProt, pair.vb.id());
            pair.assert_survives_only(level);
            keep.assert_untouched();
        }
    });
}

/// Where 64 bytes may not be written, and the buffer that is in or near it.
fn wrong_target(site: &Site<'_>, kind: Kind, which: usize) -> (RemoteSegment, Buffer) {
    let foreign = site.nic.create_ptag().must();
    let (tag, access) = match which {
        0 => (&site.tag, Access::Read),
        1 => (&foreign, Access::ReadWrite),
        _ => (&site.tag, Access::ReadWrite),
    };
    let buffer = Buffer::under(site, tag, 64, kind, access);
    let right = buffer.remote(0);
    let region = buffer.region();
    let end = region.addr() + region.len() as u64;
    let wrong = match which {
        0 | 1 => right,
        2 => RemoteSegment {
            addr: end - 63,
            ..right
        },
        3 => RemoteSegment {
            addr: region.addr() - 1,
            ..right
        },
        4 => RemoteSegment {
            addr: u64::MAX - 31,
            ..right
        },
        5 => RemoteSegment {
            handle: MemHandle(0),
            ..right
        },
        6 => RemoteSegment {
            handle: MemHandle(!right.handle.0),
            ..right
        },
        _ => Buffer::with(site, 64, kind, access).remote(0), // deregistered when this returns
    };
    (wrong, buffer)
}

const WRONG_TARGETS: usize = 8;

pub(crate) fn s142_refused_write_is_reported_at_the_target(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::for_rdma(lab, level);
        let source = Buffer::new(&pair.a, 64);
        let target = Buffer::new(&pair.b, 64);
        pair.vb.post_recv(&target.recv(0..64), 5).must();
        pair.va
            .post_send(&write(&source, 0..64, target.remote(0)), 1)
            .must();
        let error = pair
            .b
            .errors
            .wait_for(lab, ErrorCode::RdmawProt, pair.vb.id());
        assert_eq!((error.vi, error.descriptor), (Some(pair.vb.id()), None));
        pair.assert_survives_only(level);
        pair.b.settle();
        assert_eq!(pair.b.errors.count(ErrorCode::RdmawProt, pair.vb.id()), 1);
        if level.is_reliable() {
            assert_fault(received(&pair.vb), 5, Fault::Flushed);
        } else {
            assert_eq!(pair.vb.recv_done(), Ok(Done::NotDone));
        }
    });
}

pub(crate) fn s143_refused_write_with_immediate(lab: &dyn Lab) {
    each_kind_and_level(lab, |kind, level| {
        for wrong in 0..WRONG_TARGETS {
            let pair = Pair::for_rdma(lab, level);
            let source = Buffer::new(&pair.a, 64);
            let (remote, keep) = wrong_target(&pair.b, kind, wrong);
            pair.vb.post_recv(&Descriptor::recv(), 5).must();
            let write = write(&source, 0..64, remote).immediate(143);
            pair.va.post_send(&write, 1).must();
            let told = received(&pair.vb);
            assert_fault(told, 5, Fault::RdmaProtection);
            assert_eq!(told.status.op(), CompletedOp::RemoteRdmaWrite);
            pair.assert_survives_only(level);
            keep.assert_untouched();
            pair.b.settle();
            assert_eq!(pair.b.errors.count(ErrorCode::RdmawProt, pair.vb.id()), 0);
        }
    });
}

pub(crate) fn s144_initiator_learns_of_the_refusal(lab: &dyn Lab) {
    let level = Reliability::ReliableReception;
    for kind in Kind::BOTH {
        for wrong in 0..WRONG_TARGETS {
            for immediate in [false, true] {
                let pair = Pair::for_rdma(lab, level);
                let source = Buffer::new(&pair.a, 64);
                let (remote, keep) = wrong_target(&pair.b, kind, wrong);
                let mut write = write(&source, 0..64, remote);
                if immediate {
                    pair.vb.post_recv(&Descriptor::recv(), 5).must();
                    write = write.immediate(144);
                }
                pair.va.post_send(&write, 1).must();
                pair.va.post_send(&Descriptor::send(), 2).must();
                assert_fault(sent(&pair.va), 1, Fault::RdmaProtection);
                assert_fault(sent(&pair.va), 2, Fault::Flushed);
                pair.assert_broken();
                keep.assert_untouched();
            }
        }
        long_write_is_refused(lab, kind);
    }
}

/// The refusal comes while a part of the write has yet to leave.
fn long_write_is_refused(lab: &dyn Lab, kind: Kind) {
    let pair = Pair::with(lab, Reliability::ReliableReception, |config| {
        config.max_transfer_size(LONG).accept_rdma_write()
    });
    let source = Buffer::new(&pair.a, LONG);
    let target = Buffer::with(&pair.b, LONG, kind, Access::Local);
    let write = write(&source, 0..LONG, target.remote(0));
    pair.va.post_send(&write, 1).must();
    pair.va.post_send(&Descriptor::send(), 2).must();
    assert_fault(sent(&pair.va), 1, Fault::RdmaProtection);
    assert_fault(sent(&pair.va), 2, Fault::Flushed);
    pair.assert_broken();
    target.assert_untouched();
}

/// More than any link holds.
const LONG: u32 = 1 << 20;

pub(crate) fn s145_empty_write(lab: &dyn Lab) {
    each_kind_and_level(lab, |kind, level| {
        let pair = Pair::for_rdma(lab, level);
        let source = Buffer::new(&pair.a, 64);
        let target = Buffer::with(&pair.b, 64, kind, Access::Write);
        pair.va
            .post_send(&write(&source, 5..5, target.remote(7)), 1)
            .must();
        let done = sent(&pair.va).ok().must();
        assert_eq!((done.length, done.status.op()), (0, CompletedOp::RdmaWrite));
        pair.exchange_empty();
        target.assert_untouched();
    });
}

pub(crate) fn s146_write_needs_an_address_segment(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::for_rdma(lab, level);
        let target = Buffer::with(&pair.b, 64, Kind::Shared, Access::Write);
        let sheet = Sheet::new(&pair.a, 128);
        let alone = Raw::rdma_write(target.remote(0), &[]);
        pair.va
            .ops()
            .post_at(Queue::Send, sheet.lay(0, &alone))
            .must();
        assert_eq!(sent(&pair.va).ok().must().length, 0);
        pair.exchange_empty();
        target.assert_untouched();
        let none = Raw {
            seg_count: 0,
            ..alone
        };
        assert_format_error(&pair, Queue::Send, &sheet, &none);
    });
}

pub(crate) fn s147_receives_are_no_rdma(lab: &dyn Lab) {
    each_level(lab, |level| {
        for read in [false, true] {
            let pair = Pair::for_rdma(lab, level);
            let target = Buffer::new(&pair.b, 64);
            let sheet = Sheet::new(&pair.b, 128);
            let make = if read {
                Raw::rdma_read
            } else {
                Raw::rdma_write
            };
            let wrong = make(target.remote(0), &[target.segment(0..64)]);
            assert_format_error(&pair, Queue::Recv, &sheet, &wrong);
            target.assert_untouched();
        }
    });
}

pub(crate) fn s148_read_scatters(lab: &dyn Lab) {
    for kind in Kind::BOTH {
        each_read_level(lab, |level| {
            let pair = Pair::for_rdma(lab, level);
            let most = pair.va.ops().attributes().must().max_transfer_size;
            let target = Buffer::new(&pair.a, most);
            let source = Buffer::with(&pair.b, most + 100, kind, Access::Read);
            for (at, len) in [(0, 1), (0, 0), (17, 4097), (100, most)] {
                source.fill(at..at + len, u64::from(len));
                target.reset();
                let (i, j) = (len / 3, len / 2);
                let read = Descriptor::rdma_read(source.remote(at))
                    .raw_segment(target.segment(j..len))
                    .raw_segment(target.segment(i..j))
                    .raw_segment(target.segment(0..i));
                pair.va.post_send(&read, 1).must();
                let done = sent(&pair.va).ok().must();
                assert_eq!(
                    (done.length, done.status.op()),
                    (len, CompletedOp::RdmaRead)
                );
                let mut found = target.read(j..len);
                found.extend(target.read(i..j));
                found.extend(target.read(0..i));
                assert!(found == pattern(u64::from(len), len as usize));
                target.assert_untouched_but(0..len);
                assert_eq!(pair.vb.recv_done(), Ok(Done::Empty));
            }
        });
    }
}

pub(crate) fn s149_refused_read(lab: &dyn Lab) {
    for kind in Kind::BOTH {
        each_read_level(lab, |level| {
            for wrong in 0..=WRONG_TARGETS {
                // The last case: the VI does not accept reads, the memory does.
                let pair = if wrong == WRONG_TARGETS {
                    Pair::new(lab, level)
                } else {
                    Pair::for_rdma(lab, level)
                };
                let target = Buffer::new(&pair.a, 64);
                let (remote, _keep) = match wrong {
                    0 => {
                        let unread = Buffer::with(&pair.b, 64, kind, Access::Write);
                        (unread.remote(0), unread)
                    }
                    WRONG_TARGETS => {
                        let readable = Buffer::with(&pair.b, 64, kind, Access::ReadWrite);
                        (readable.remote(0), readable)
                    }
                    _ => wrong_target(&pair.b, kind, wrong),
                };
                let read = Descriptor::rdma_read(remote).raw_segment(target.segment(0..64));
                pair.va.post_send(&read, 1).must();
                assert_fault(sent(&pair.va), 1, Fault::RdmaProtection);
                pair.b
                    .errors
                    .wait_for(lab, ErrorCode::RdmarProt, pair.vb.id());
                pair.assert_broken();
                target.assert_untouched();
            }
        });
    }
}

pub(crate) fn s150_no_read_where_there_is_none(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        if pair.a.reads_at(level) {
            assert!(level.is_reliable());
            return;
        }
        let (target, source) = (Buffer::new(&pair.a, 64), Buffer::new(&pair.b, 64));
        let read = Descriptor::rdma_read(source.remote(0)).raw_segment(target.segment(0..64));
        pair.va.post_send(&read, 1).must();
        assert_fault(sent(&pair.va), 1, Fault::Format);
        pair.assert_survives_only(level);
        target.assert_untouched();
    });
}

pub(crate) fn s151_sends_stay_behind_reads(lab: &dyn Lab) {
    each_read_level(lab, |level| {
        let pair = Pair::for_rdma(lab, level);
        let target = Buffer::new(&pair.a, 60_000);
        let source = Buffer::with(&pair.b, 60_000, Kind::Private, Access::Read);
        for round in 0..50 {
            source.fill(0..60_000, round);
            pair.vb.post_recv(&Descriptor::recv(), 0).must();
            let read = Descriptor::rdma_read(source.remote(0));
            pair.va
                .post_send(&read.raw_segment(target.segment(0..60_000)), 1)
                .must();
            pair.va.post_send(&Descriptor::send(), 2).must();
            let first = crate::kit::poll(lab, &pair.va, Queue::Send).ok().must();
            assert_eq!(first.token, 1);
            target.assert_holds(0..60_000, round);
            assert_eq!(sent(&pair.va).ok().must().token, 2);
            received(&pair.vb).ok().must();
        }
    });
}

pub(crate) fn s152_fence_waits_for_reads(lab: &dyn Lab) {
    each_read_level(lab, |level| {
        let pair = Pair::for_rdma(lab, level);
        let source = Buffer::with(&pair.b, 60_000, Kind::Shared, Access::Read);
        let target = Buffer::with(&pair.b, 60_000, Kind::Shared, Access::Write);
        let between = Buffer::new(&pair.a, 60_000);
        for round in 0..50 {
            source.fill(0..60_000, round);
            target.reset();
            between.reset();
            pair.vb.post_recv(&target.recv(0..30_000), 0).must();
            let read = Descriptor::rdma_read(source.remote(0));
            pair.va
                .post_send(&read.raw_segment(between.segment(0..60_000)), 1)
                .must();
            // What is read is sent on and written on.
            pair.va
                .post_send(&between.send(0..30_000).fence(), 2)
                .must();
            let rest = write(&between, 30_000..60_000, target.remote(30_000));
            pair.va.post_send(&rest.fence(), 3).must();
            for token in 1..=3 {
                assert_eq!(sent(&pair.va).ok().must().token, token);
            }
            received(&pair.vb).ok().must();
            pair.exchange_empty();
            target.assert_holds(0..60_000, round);
        }
    });
}

fn write(source: &Buffer, range: std::ops::Range<u32>, to: RemoteSegment) -> Descriptor<'_> {
    Descriptor::rdma_write(to).raw_segment(source.segment(range))
}

/// At RD done means only that the data has left.
#[track_caller]
fn await_bytes(lab: &dyn Lab, target: &Buffer, at: u32, bytes: &[u8]) {
    let end = at + u32::try_from(bytes.len()).must();
    until(lab, "the written bytes", || target.read(at..end) == bytes);
}

fn each_kind_and_level(lab: &dyn Lab, mut body: impl FnMut(Kind, Reliability)) {
    for kind in Kind::BOTH {
        println!("into {kind:?} memory");
        each_level(lab, |level| body(kind, level));
    }
}
