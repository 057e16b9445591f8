//! H: posting, Done and Wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use via::{
    Access, CompletedOp, Descriptor, DescriptorAt, Done, Error, ErrorCode, Fault, MemHandle, Queue,
    Reliability,
};

use crate::buffer::{Buffer, Kind};
use crate::kit::{
    Must, Pair, SHORT, Site, assert_about, assert_fault, assert_prompt, beside, each_level, next,
    received, refused, sent, timed, until,
};
use crate::lab::{Host, Lab};
use crate::layout::{
    CONTROL_LEN, Raw, SEGMENT_LEN, STATUS_DONE, STATUS_ERROR_MASK, STATUS_RESERVED, Sheet,
};

pub(crate) fn s105_done_on_an_empty_queue(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let idle = pair.a.vi(level);
        for vi in [&pair.va, &pair.vb, &idle] {
            assert_eq!(vi.send_done(), Ok(Done::Empty));
            assert_eq!(vi.recv_done(), Ok(Done::Empty));
        }
    });
}

pub(crate) fn s106_done_on_an_incomplete_head(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        pair.vb.post_recv(&Descriptor::recv(), 0).must();
        for _ in 0..100 {
            assert_eq!(pair.vb.recv_done(), Ok(Done::NotDone));
        }
        pair.va.post_send(&Descriptor::send(), 0).must();
        received(&pair.vb).ok().must();
        assert_eq!(pair.vb.recv_done(), Ok(Done::Empty));
    });
}

pub(crate) fn s107_done_in_posting_order(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        // Any order of names: they are not what orders.
        let names: Vec<u64> = (0..40).map(|i| i * 23 % 40).collect();
        for &token in &names {
            pair.vb.post_recv(&Descriptor::recv(), token).must();
        }
        for &token in &names {
            pair.va.post_send(&Descriptor::send(), token).must();
        }
        for &token in &names {
            for (vi, queue) in [(&pair.va, Queue::Send), (&pair.vb, Queue::Recv)] {
                let done = crate::kit::poll(lab, vi, queue).ok().must();
                assert_eq!(done.token, token);
            }
        }
    });
}

/// If Done blocked behind the waiter, nobody would send, and the waiter would time out.
pub(crate) fn s108_done_passes_a_waiter(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        pair.vb.post_recv(&Descriptor::recv(), 0).must();
        let waiting = AtomicBool::new(false);
        let (woken, ()) = beside(
            lab,
            || {
                waiting.store(true, Ordering::Release);
                received(&pair.vb)
            },
            || {
                until(lab, "the waiter", || waiting.load(Ordering::Acquire));
                for _ in 0..1000 {
                    assert_eq!(pair.vb.recv_done(), Ok(Done::NotDone));
                    lab.pass();
                }
                pair.va.post_send(&Descriptor::send(), 0).must();
            },
        );
        woken.ok().must();
    });
}

pub(crate) fn s109_wait_on_a_completed_head(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let idle = pair.a.vi(level);
        idle.post_send(&Descriptor::send(), 1).must();
        let flushed = idle.send_wait(Some(Duration::ZERO)).must();
        assert_fault(flushed, 1, Fault::Flushed);

        pair.vb.post_recv(&Descriptor::recv(), 2).must();
        pair.va.post_send(&Descriptor::send(), 3).must();
        for (vi, queue, token) in [(&pair.vb, Queue::Recv, 2), (&pair.va, Queue::Send, 3)] {
            let mut done = Err(Error::Timeout);
            until(lab, "a wait that does not wait", || {
                done = vi.ops().wait(queue, Some(Duration::ZERO));
                done != Err(Error::Timeout)
            });
            assert_eq!(done.must().completion().must().ok().must().token, token);
        }
    });
}

pub(crate) fn s110_wait_times_out(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        pair.vb.post_recv(&Descriptor::recv(), 0).must();
        for timeout in [SHORT, SHORT / 10, Duration::ZERO] {
            let (took, waited) = timed(lab, || pair.vb.recv_wait(Some(timeout)));
            refused(waited, Error::Timeout);
            assert_about(took, timeout);
        }
        pair.va.post_send(&Descriptor::send(), 0).must();
        received(&pair.vb).ok().must();
    });
}

pub(crate) fn s111_wait_on_an_empty_queue(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let idle = pair.a.vi(level);
        for vi in [&pair.va, &idle] {
            for queue in [Queue::Send, Queue::Recv] {
                let (took, waited) = timed(lab, || vi.ops().wait(queue, None));
                assert_eq!(waited, Ok(Done::Empty));
                assert_prompt(took);
            }
        }
    });
}

pub(crate) fn s112_bound_queues_are_not_waited_on(lab: &dyn Lab) {
    each_level(lab, |level| {
        let site = Site::open(lab, Host::A);
        let cq = site.nic.create_cq(8).must();
        let config = site.config(level).recv_cq(&cq);
        let vi = site.nic.create_vi(&config).must();
        vi.post_recv(&Descriptor::recv(), 0).must();
        refused(
            vi.ops().wait(Queue::Recv, Some(SHORT)),
            Error::InvalidParameter,
        );
        let notified = vi.ops().notify(Queue::Recv, Box::new(|_| {}));
        refused(notified, Error::InvalidParameter);
        assert_eq!(vi.ops().wait(Queue::Send, Some(SHORT)), Ok(Done::Empty));
    });
}

pub(crate) fn s113_misaligned_descriptor(lab: &dyn Lab) {
    each_level(lab, |level| {
        for off in [1, 4, 32, 63] {
            let pair = Pair::new(lab, level);
            let sheet = Sheet::new(&pair.b, 256);
            pair.vb.post_recv(&Descriptor::recv(), 1).must();
            let at = sheet.lay(off, &Raw::recv(&[]));
            assert_not_queued(&pair, at, level);
            // What was posted rightly is still there, alone.
            if level.is_reliable() {
                assert_fault(received(&pair.vb), 1, Fault::Flushed);
            } else {
                pair.va.post_send(&Descriptor::send(), 2).must();
                assert_eq!(received(&pair.vb).ok().must().token, 1);
            }
            assert_eq!(pair.vb.recv_done(), Ok(Done::Empty));
        }
    });
}

pub(crate) fn s114_descriptor_outside_its_region(lab: &dyn Lab) {
    each_level(lab, |level| {
        let cases: [fn(&Pair<'_>, &Sheet, &Sheet) -> DescriptorAt; 6] = [
            // The control segment ends behind the region, which is 256 + 16 bytes long.
            |_, sheet, _| sheet.at(256),
            // The segments do.
            |_, sheet, _| sheet.at(192),
            |_, sheet, _| DescriptorAt {
                addr: sheet.at(0).addr - 64,
                ..sheet.at(0)
            },
            |_, sheet, _| DescriptorAt {
                handle: MemHandle(0),
                ..sheet.at(0)
            },
            |_, sheet, _| DescriptorAt {
                handle: MemHandle(!sheet.at(0).handle.0),
                ..sheet.at(0)
            },
            |_, _, foreign| foreign.at(0),
        ];
        for case in cases {
            let pair = Pair::new(lab, level);
            let sheet = Sheet::new(&pair.b, 256 + 16);
            let other = pair.b.nic.create_ptag().must();
            let foreign = Sheet::of(&pair.b, &other, 256);
            let buffer = Buffer::new(&pair.b, 8);
            sheet.lay(0, &Raw::recv(&[]));
            let three = Raw::recv(&[buffer.segment(0..1); 3]);
            sheet.lay(
                192,
                &Raw {
                    seg_count: 4,
                    ..three
                },
            );
            foreign.lay(0, &Raw::recv(&[]));
            assert_not_queued(&pair, case(&pair, &sheet, &foreign), level);
            assert_eq!(pair.vb.recv_done(), Ok(Done::Empty));
        }
    });
}

#[track_caller]
fn assert_not_queued(pair: &Pair<'_>, at: DescriptorAt, level: Reliability) {
    pair.vb.ops().post_at(Queue::Recv, at).must();
    let error = pair
        .b
        .errors
        .wait_for(pair.lab(), ErrorCode::PostDesc, pair.vb.id());
    assert_eq!(error.descriptor, Some(at.addr));
    pair.assert_survives_only(level);
}

pub(crate) fn s115_queues_have_a_limit(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    let most = u64::from(site.nic.attributes().max_descriptors_per_queue);
    for queue in [Queue::Recv, Queue::Send] {
        let vi = site.vi(Reliability::ReliableDelivery);
        let post = |token| vi.ops().post(queue, &Descriptor::recv(), token);
        (0..most).for_each(|token| post(token).must());
        refused(post(most), Error::Resource);
        site.errors.wait_for(lab, ErrorCode::ViOverrun, vi.id());
        vi.disconnect().must();
        for token in 0..most {
            assert_fault(next(&vi, queue), token, Fault::Flushed);
        }
        assert_eq!(vi.ops().done(queue), Ok(Done::Empty));
    }
    // What is not queued is nobody's successor.
    let (vi, sheet) = (site.vi(Reliability::Unreliable), Sheet::new(&site, 128));
    let [last, over] = [0, 64].map(|at| sheet.lay(at, &Raw::recv(&[])));
    (1..most).for_each(|token| vi.post_recv(&Descriptor::recv(), token).must());
    vi.ops().post_at(Queue::Recv, last).must();
    refused(vi.ops().post_at(Queue::Recv, over), Error::Resource);
    assert_eq!(sheet.bytes(0..12), [0; 12]);
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let post = |token| pair.vb.post_recv(&Descriptor::recv(), token);
        (0..most).for_each(|token| post(token).must());
        pair.assert_connected();
        refused(post(most), Error::Resource);
        pair.b
            .errors
            .wait_for(lab, ErrorCode::ViOverrun, pair.vb.id());
        pair.assert_survives_only(level);
    });
}

pub(crate) fn s116_reposts_with_a_stale_status(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let (sheet, target) = (Sheet::new(&pair.b, 64), Buffer::new(&pair.b, 100));
        let source = Buffer::new(&pair.a, 100);
        let mut laid = Raw::recv(&[target.segment(0..100)]);
        laid.status = STATUS_DONE | STATUS_ERROR_MASK;
        let at = sheet.lay(0, &laid);
        for round in 0..10 {
            pair.vb.ops().post_at(Queue::Recv, at).must();
            assert_eq!(sheet.status(0) & STATUS_DONE, 0);
            assert_eq!(pair.vb.recv_done(), Ok(Done::NotDone));
            source.fill(0..100, round);
            pair.va.post_send(&source.send(0..100), 0).must();
            assert_eq!(received(&pair.vb).ok().must().token, at.addr);
            assert_eq!(
                sheet.status(0) & (STATUS_DONE | STATUS_ERROR_MASK),
                STATUS_DONE
            );
            target.assert_holds(0..100, round);
            sent(&pair.va).ok().must();
        }
    });
}

pub(crate) fn s117_status_tells_the_operation(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::for_rdma(lab, level);
        let source = Buffer::new(&pair.a, 64);
        let target = Buffer::with(&pair.b, 64, Kind::Shared, Access::ReadWrite);
        let (ours, theirs) = (Sheet::new(&pair.a, 256), Sheet::new(&pair.b, 256));
        let from = [source.segment(0..64)];
        let mut steps = vec![
            (
                Raw::send(&from),
                Some(CompletedOp::Receive),
                CompletedOp::Send,
            ),
            (
                Raw::rdma_write(target.remote(0), &from).control(crate::layout::CONTROL_IMMEDIATE),
                Some(CompletedOp::RemoteRdmaWrite),
                CompletedOp::RdmaWrite,
            ),
        ];
        if pair.a.reads_at(level) {
            steps.push((
                Raw::rdma_read(target.remote(0), &from),
                None,
                CompletedOp::RdmaRead,
            ));
        }
        for (descriptor, remote_op, op) in steps {
            if remote_op.is_some() {
                let at = theirs.lay(0, &Raw::recv(&[target.segment(0..64)]));
                pair.vb.ops().post_at(Queue::Recv, at).must();
            }
            let at = ours.lay(64, &descriptor);
            pair.va.ops().post_at(Queue::Send, at).must();
            let local = sent(&pair.va).ok().must();
            assert_eq!((local.token, local.status.op()), (at.addr, op));
            assert_eq!(ours.status(64), local.status.bits());
            assert_eq!(ours.length(64), 64);
            assert_eq!(
                ours.status(64) & (STATUS_DONE | STATUS_RESERVED),
                STATUS_DONE
            );
            if let Some(remote_op) = remote_op {
                let remote = received(&pair.vb).ok().must();
                assert_eq!(remote.status.op(), remote_op);
                assert_eq!(theirs.status(0), remote.status.bits());
                assert_eq!(
                    theirs.status(0) & (STATUS_DONE | STATUS_RESERVED),
                    STATUS_DONE
                );
            }
        }
    });
}

pub(crate) fn s118_completion_changes_nothing_else(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::for_rdma(lab, level);
        let source = Buffer::new(&pair.a, 64);
        let target = Buffer::with(&pair.b, 64, Kind::Shared, Access::Write);
        let (ours, theirs) = (Sheet::new(&pair.a, 256), Sheet::new(&pair.b, 256));
        let from = [source.segment(0..20), source.segment(20..64)];
        for descriptor in [Raw::send(&from), Raw::rdma_write(target.remote(0), &from)] {
            let mut descriptor = descriptor.control(crate::layout::CONTROL_IMMEDIATE);
            descriptor.reserved = 0xabcd_ef01;
            let at = ours.lay(0, &descriptor);
            let to = theirs.lay(0, &Raw::recv(&[target.segment(0..64)]));
            let (before, beyond) = (kept(&ours), kept(&theirs));
            pair.vb.ops().post_at(Queue::Recv, to).must();
            pair.va.ops().post_at(Queue::Send, at).must();
            sent(&pair.va).ok().must();
            received(&pair.vb).ok().must();
            assert_eq!(kept(&ours), before);
            assert_eq!(kept(&theirs), beyond);
        }
    });
}

/// Segment count, control, reserved word and segments.
fn kept(sheet: &Sheet) -> [Vec<u8>; 2] {
    [sheet.bytes(12..20), sheet.bytes(CONTROL_LEN..256)]
}

pub(crate) fn s119_nothing_behind_the_last_segment(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let (source, target) = (Buffer::new(&pair.a, 64), Buffer::new(&pair.b, 64));
        for segments in 0..4 {
            let (ours, theirs) = (Sheet::new(&pair.a, 256), Sheet::new(&pair.b, 256));
            let from = vec![source.segment(0..8); segments];
            let to = vec![target.segment(0..8); segments];
            let end = 64 + CONTROL_LEN + segments * SEGMENT_LEN;
            pair.vb
                .ops()
                .post_at(Queue::Recv, theirs.lay(64, &Raw::recv(&to)))
                .must();
            pair.va
                .ops()
                .post_at(Queue::Send, ours.lay(64, &Raw::send(&from)))
                .must();
            sent(&pair.va).ok().must();
            received(&pair.vb).ok().must();
            for sheet in [&ours, &theirs] {
                sheet.assert_unused(0..64);
                sheet.assert_unused(end..256);
            }
        }
    });
}

pub(crate) fn s120_done_bit_is_last(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let (sheet, target) = (Sheet::new(&pair.b, 64), Buffer::new(&pair.b, 3000));
        let (ours, source) = (Sheet::new(&pair.a, 64), Buffer::new(&pair.a, 3000));
        for round in 0..100 {
            let len = 1 + u32::try_from(round).must() * 29;
            source.fill(0..len, round);
            let to = sheet.lay(0, &Raw::recv(&[target.segment(0..3000)]));
            pair.vb.ops().post_at(Queue::Recv, to).must();
            let mut from = Raw::send(&[source.segment(0..len)]);
            from.immediate = len;
            let from = ours.lay(0, &from.control(crate::layout::CONTROL_IMMEDIATE));
            pair.va.ops().post_at(Queue::Send, from).must();
            until(lab, "the bit", || sheet.status(0) & STATUS_DONE != 0);
            assert_eq!((sheet.length(0), sheet.immediate(0)), (len, len));
            target.assert_holds(0..len, round);
            let done = pair.vb.recv_done().must().completion().must();
            assert_eq!(done.ok().must().length, len);
            until(lab, "the bit", || ours.status(0) & STATUS_DONE != 0);
            let done = pair.va.send_done().must().completion().must();
            assert_eq!(done.ok().must().length, len);
        }
    });
}
