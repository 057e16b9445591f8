//! I: sends and receives.

use via::{Access, Descriptor, Done, Fault, MemHandle, Queue, Reliability, Segment, Vi};

use crate::buffer::{Buffer, Kind, mix, pattern};
use crate::kit::{
    Must, Pair, Site, TRANSFER, assert_fault, beside, each_level, each_reliable_level, next,
    received, sent,
};
use crate::lab::Lab;
use crate::layout::{CONTROL_IMMEDIATE, CONTROL_OP_RESERVED, CONTROL_RESERVED, Raw, Sheet};
use crate::stream::{stream, stream_unreliably};

pub(crate) fn s121_every_size(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::with(lab, level, |config| config);
        let attributes = pair.a.nic.attributes();
        let (mtu, most) = (attributes.native_mtu, attributes.max_transfer_size);
        let pair = Pair::with(lab, level, |config| config.max_transfer_size(most));
        let (source, target) = (Buffer::new(&pair.a, most), Buffer::new(&pair.b, most));
        let sizes = [
            0,
            1,
            63,
            64,
            65,
            mtu.saturating_sub(1),
            mtu,
            mtu.saturating_add(1),
            32768,
            most,
        ];
        for size in sizes.into_iter().filter(|&size| size <= most) {
            source.fill(0..size, u64::from(size));
            target.reset();
            pair.vb.post_recv(&target.recv(0..size), 1).must();
            pair.va.post_send(&source.send(0..size), 2).must();
            let (there, here) = (received(&pair.vb).ok().must(), sent(&pair.va).ok().must());
            assert_eq!((there.token, there.length), (1, size));
            assert_eq!((here.token, here.length), (2, size));
            target.assert_holds(0..size, u64::from(size));
            target.assert_untouched_but(0..size);
        }
    });
}

pub(crate) fn s122_no_segments_is_an_empty_message(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let sheet = Sheet::new(&pair.a, 64);
        let target = Buffer::new(&pair.b, 64);
        for token in 0..2 {
            pair.vb.post_recv(&target.recv(0..64), token).must();
        }
        pair.va
            .ops()
            .post_at(Queue::Send, sheet.lay(0, &Raw::send(&[])))
            .must();
        sent(&pair.va).ok().must();
        let empty = received(&pair.vb).ok().must();
        assert_eq!((empty.token, empty.length, empty.immediate), (0, 0, None));
        assert_eq!(pair.vb.recv_done(), Ok(Done::NotDone));
        target.assert_untouched();
    });
}

pub(crate) fn s123_receive_without_segments(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let sheet = Sheet::new(&pair.b, 64);
        let source = Buffer::new(&pair.a, 1);
        for zero in [Descriptor::send(), source.send(0..0)] {
            let at = sheet.lay(0, &Raw::recv(&[]));
            pair.vb.ops().post_at(Queue::Recv, at).must();
            pair.va.post_send(&zero, 0).must();
            assert_eq!(received(&pair.vb).ok().must().length, 0);
            sent(&pair.va).ok().must();
        }
    });
}

pub(crate) fn s124_empty_message_with_immediate(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        for value in [0, 1, 0x0102_0304, u32::MAX] {
            pair.vb.post_recv(&Descriptor::recv(), 0).must();
            pair.va
                .post_send(&Descriptor::send().immediate(value), 0)
                .must();
            let arrived = received(&pair.vb).ok().must();
            assert_eq!((arrived.length, arrived.immediate), (0, Some(value)));
            sent(&pair.va).ok().must();
        }
    });
}

pub(crate) fn s125_immediate_is_flagged(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let (source, target) = (Buffer::new(&pair.a, 64), Buffer::new(&pair.b, 64));
        let sheet = Sheet::new(&pair.b, 64);
        for immediate in [Some(0xfeed_beef), None, Some(7), None] {
            let mut laid = Raw::recv(&[target.segment(0..64)]);
            laid.immediate = 0x5151_5151;
            pair.vb
                .ops()
                .post_at(Queue::Recv, sheet.lay(0, &laid))
                .must();
            let mut send = source.send(0..64);
            if let Some(value) = immediate {
                send = send.immediate(value);
            }
            pair.va.post_send(&send, 0).must();
            let arrived = received(&pair.vb).ok().must();
            assert_eq!(arrived.immediate, immediate);
            assert_eq!(arrived.status.has_immediate(), immediate.is_some());
            // Without the bit the field is left alone.
            assert_eq!(sheet.immediate(0), immediate.unwrap_or(0x5151_5151));
            sent(&pair.va).ok().must();
        }
    });
}

pub(crate) fn s126_immediate_bit_of_a_receive_means_nothing(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let (source, target) = (Buffer::new(&pair.a, 64), Buffer::new(&pair.b, 64));
        let sheet = Sheet::new(&pair.b, 64);
        for (round, immediate) in [None, Some(126)].into_iter().enumerate() {
            let laid = Raw::recv(&[target.segment(0..64)]).control(CONTROL_IMMEDIATE);
            pair.vb
                .ops()
                .post_at(Queue::Recv, sheet.lay(0, &laid))
                .must();
            source.fill(0..64, round as u64);
            let mut send = source.send(0..64);
            if let Some(value) = immediate {
                send = send.immediate(value);
            }
            pair.va.post_send(&send, 0).must();
            let arrived = received(&pair.vb).ok().must();
            assert_eq!((arrived.length, arrived.immediate), (64, immediate));
            target.assert_holds(0..64, round as u64);
            sent(&pair.va).ok().must();
        }
    });
}

pub(crate) fn s127_gather_and_scatter(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let size = pair.va.ops().attributes().must().max_transfer_size;
        let most = pair.a.nic.attributes().max_segments_per_desc;
        let (source, target) = (
            Buffer::new(&pair.a, 2 * size),
            Buffer::new(&pair.b, 2 * size),
        );
        for round in 0..60 {
            let pick = |what, below: u32| (mix(round, what) % u64::from(below)) as u32;
            let [n, m] = match round {
                0 => [most, most],
                1 => [1, most],
                2 => [most, 1],
                _ => [1 + pick(1, most), 1 + pick(2, most)],
            };
            let len = if round == 0 { size } else { pick(3, size) };
            let message = pattern(round, len as usize);
            let from = scattered(&source, len, n, 100 + round);
            let to = scattered(&target, len, m, 200 + round);
            put(&source, &from, &message);
            let send = from
                .iter()
                .fold(Descriptor::send(), |d, &piece| d.raw_segment(piece));
            let recv = to
                .iter()
                .fold(Descriptor::recv(), |d, &piece| d.raw_segment(piece));
            pair.vb.post_recv(&recv, round).must();
            pair.va.post_send(&send, round).must();
            assert_eq!(received(&pair.vb).ok().must().length, len);
            sent(&pair.va).ok().must();
            assert!(
                get(&target, &to) == message,
                "round {round}: {n} to {m} segments"
            );
        }
    });
}

/// `len` bytes of `buffer`, in `count` pieces of any size with gaps between them, in no order.
fn scattered(buffer: &Buffer, len: u32, count: u32, seed: u64) -> Vec<Segment> {
    let mut cuts: Vec<u32> = (1..u64::from(count))
        .map(|i| (mix(seed, i) % u64::from(len + 1)) as u32)
        .collect();
    cuts.sort_unstable();
    cuts.push(len);
    let spare = (buffer.len() - len) / count;
    let mut from = 0;
    let mut pieces: Vec<_> = (0..count)
        .zip(cuts)
        .map(|(i, to)| {
            let at = from + i * spare;
            let piece = buffer.segment(at..at + (to - from));
            from = to;
            piece
        })
        .collect();
    pieces.sort_by_key(|piece| mix(seed, piece.addr));
    pieces
}

fn put(buffer: &Buffer, pieces: &[Segment], mut bytes: &[u8]) {
    for piece in pieces {
        let (now, later) = bytes.split_at(piece.len as usize);
        buffer.write((piece.addr - buffer.addr(0)) as u32, now);
        bytes = later;
    }
}

fn get(buffer: &Buffer, pieces: &[Segment]) -> Vec<u8> {
    let piece = |piece: &Segment| {
        let at = (piece.addr - buffer.addr(0)) as u32;
        buffer.read(at..at + piece.len)
    };
    pieces.iter().flat_map(piece).collect()
}

pub(crate) fn s128_too_many_segments(lab: &dyn Lab) {
    each_level(lab, |level| {
        for queue in [Queue::Send, Queue::Recv] {
            let pair = Pair::new(lab, level);
            let most = pair.a.nic.attributes().max_segments_per_desc as usize;
            let site = if queue == Queue::Send {
                &pair.a
            } else {
                &pair.b
            };
            let buffer = Buffer::new(site, 8);
            let many = vec![buffer.segment(0..0); most + 1];
            let sheet = Sheet::new(site, 8192);
            assert_format_error(&pair, queue, &sheet, &Raw::send(&many));
            buffer.assert_untouched();
        }
    });
}

pub(crate) fn s129_reserved_control_bits(lab: &dyn Lab) {
    each_level(lab, |level| {
        let reserved = (0..16)
            .map(|bit| 1 << bit)
            .filter(|bit| CONTROL_RESERVED & bit != 0);
        for bits in reserved.chain([CONTROL_OP_RESERVED]) {
            for queue in [Queue::Send, Queue::Recv] {
                let pair = Pair::new(lab, level);
                let site = if queue == Queue::Send {
                    &pair.a
                } else {
                    &pair.b
                };
                let sheet = Sheet::new(site, 64);
                assert_format_error(&pair, queue, &sheet, &Raw::send(&[]).control(bits));
            }
        }
    });
}

/// Posted on A's send or B's receive queue, the descriptor fails by its form.
#[track_caller]
pub(crate) fn assert_format_error(pair: &Pair<'_>, queue: Queue, sheet: &Sheet, wrong: &Raw) {
    let at = sheet.lay(0, wrong);
    let vi = if queue == Queue::Send {
        &pair.va
    } else {
        &pair.vb
    };
    vi.ops().post_at(queue, at).must();
    if queue == Queue::Recv {
        pair.va.post_send(&Descriptor::send(), 0).must();
    }
    assert_fault(next(vi, queue), at.addr, Fault::Format);
    let level = vi.ops().attributes().must().reliability;
    pair.assert_survives_only(level);
}

pub(crate) fn s130_longer_than_the_transfer_size(lab: &dyn Lab) {
    each_level(lab, |level| {
        let cases: [fn(&Buffer) -> Raw; 4] = [
            |source| Raw::send(&[source.segment(0..1001)]),
            |source| Raw::send(&[source.segment(0..1000), source.segment(0..1)]),
            // The length field must tell the same as the segments.
            |source| Raw {
                length: 999,
                ..Raw::send(&[source.segment(0..1000)])
            },
            |_| Raw {
                length: 1,
                ..Raw::send(&[])
            },
        ];
        for case in cases {
            let pair = Pair::with(lab, level, |config| config.max_transfer_size(1000));
            let (source, target) = (Buffer::new(&pair.a, 2000), Buffer::new(&pair.b, 2000));
            source.fill(0..2000, 130);
            let sheet = Sheet::new(&pair.a, 128);
            pair.vb.post_recv(&target.recv(0..2000), 1).must();
            let at = sheet.lay(0, &case(&source));
            pair.va.ops().post_at(Queue::Send, at).must();
            assert_fault(sent(&pair.va), at.addr, Fault::Length);
            pair.assert_survives_only(level);
            if level.is_reliable() {
                assert_fault(received(&pair.vb), 1, Fault::Flushed);
                target.assert_untouched();
            } else {
                pair.va.post_send(&source.send(0..10), 2).must();
                assert_eq!(received(&pair.vb).ok().must().length, 10);
                target.assert_untouched_but(0..10);
            }
        }
    });
}

pub(crate) fn s131_segments_must_lie_in_their_region(lab: &dyn Lab) {
    each_level(lab, |level| {
        for queue in [Queue::Send, Queue::Recv] {
            for wrong in 0..WRONG_SEGMENTS {
                let pair = Pair::new(lab, level);
                let (source, target) = (Buffer::new(&pair.a, 64), Buffer::new(&pair.b, 64));
                let (site, vi) = match queue {
                    Queue::Send => (&pair.a, &pair.va),
                    Queue::Recv => (&pair.b, &pair.vb),
                };
                let (segment, keep) = wrong_segment(site, wrong);
                match queue {
                    Queue::Send => {
                        pair.vb.post_recv(&target.recv(0..64), 1).must();
                        let bad = source.send(0..4).raw_segment(segment);
                        pair.va.post_send(&bad, 131).must();
                    }
                    Queue::Recv => {
                        let bad = Descriptor::recv().raw_segment(segment);
                        pair.vb.post_recv(&bad, 131).must();
                        pair.va.post_send(&source.send(0..8), 1).must();
                    }
                }
                assert_fault(next(vi, queue), 131, Fault::Protection);
                pair.assert_survives_only(level);
                target.assert_untouched();
                keep.assert_untouched();
            }
        }
    });
}

/// Eight bytes that a VI of `site` may not use, and the buffer that they are in or near.
pub(crate) fn wrong_segment(site: &Site<'_>, which: usize) -> (Segment, Buffer) {
    let foreign = site.nic.create_ptag().must();
    let tag = if which == 0 { &foreign } else { &site.tag };
    let buffer = Buffer::under(site, tag, 64, Kind::Shared, Access::ReadWrite);
    let right = buffer.segment(0..8);
    let region = buffer.region();
    let end = region.addr() + region.len() as u64;
    let wrong = match which {
        0 => right,
        1 => Segment {
            handle: MemHandle(0),
            ..right
        },
        2 => Segment {
            handle: MemHandle(!right.handle.0),
            ..right
        },
        3 => Segment {
            addr: end - 7,
            ..right
        },
        4 => Segment {
            addr: region.addr() - 1,
            ..right
        },
        _ => Segment {
            addr: u64::MAX - 3,
            ..right
        },
    };
    (wrong, buffer)
}

pub(crate) const WRONG_SEGMENTS: usize = 6;

pub(crate) fn s132_longer_than_the_receive(lab: &dyn Lab) {
    each_level(lab, |level| {
        for (posted, len) in [(0, 1), (10, 11), (100, 5000), (3000, 60000)] {
            let pair = Pair::new(lab, level);
            let most = pair.va.ops().attributes().must().max_transfer_size;
            let len = most.min(len);
            let (source, target) = (Buffer::new(&pair.a, len), Buffer::new(&pair.b, TRANSFER));
            pair.vb.post_recv(&target.recv(50..50 + posted), 1).must();
            pair.va.post_send(&source.send(0..len), 2).must();
            let short = received(&pair.vb);
            assert_fault(short, 1, Fault::Length);
            assert!(short.length <= posted);
            pair.assert_survives_only(level);
            target.assert_untouched_but(50..50 + posted);
        }
    });
}

pub(crate) fn s133_shorter_than_the_receive(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let (source, target) = (Buffer::new(&pair.a, 900), Buffer::new(&pair.b, 1000));
        for len in [0, 1, 77, 900] {
            source.fill(0..len, u64::from(len));
            target.reset();
            let recv = target.recv(500..900).raw_segment(target.segment(900..1000));
            let recv = recv.raw_segment(target.segment(0..500));
            pair.vb.post_recv(&recv, 1).must();
            pair.va.post_send(&source.send(0..len), 2).must();
            assert_eq!(received(&pair.vb).ok().must().length, len);
            sent(&pair.va).ok().must();
            let mut found = target.read(500..1000);
            found.extend(target.read(0..500));
            assert!(found[..len as usize] == pattern(u64::from(len), len as usize));
            if len <= 500 {
                target.assert_untouched_but(500..500 + len);
            } else {
                target.assert_untouched_but(0..1000);
            }
        }
    });
}

pub(crate) fn s134_all_messages_once_in_order(lab: &dyn Lab) {
    each_reliable_level(lab, |level| stream(&Pair::new(lab, level), 100_000));
}

pub(crate) fn s135_unreliable_messages_intact_at_most_once(lab: &dyn Lab) {
    let arrived = stream_unreliably(&Pair::new(lab, Reliability::Unreliable), 20_000);
    println!("{arrived} of 20000 arrived");
    assert!(arrived > 0);
}

pub(crate) fn s136_both_directions_at_full_load(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let most = pair.a.nic.attributes().max_descriptors_per_queue;
        let sides = [(&pair.a, &pair.va), (&pair.b, &pair.vb)];
        let buffers = sides.map(|(site, _)| [Buffer::new(site, 700), Buffer::new(site, 700)]);
        for round in 0..3 {
            for ((_, vi), [source, target]) in sides.iter().zip(&buffers) {
                source.fill(0..700, round);
                for token in 0..u64::from(most) {
                    vi.post_recv(&target.recv(0..700), token).must();
                }
            }
            let drive = |vi: &Vi, [source, target]: &[Buffer; 2]| {
                for token in 0..u64::from(most) {
                    vi.post_send(&source.send(0..700), token).must();
                }
                for token in 0..u64::from(most) {
                    assert_eq!(sent(vi).ok().must().token, token);
                }
                // At UD some may be lost.
                if level.is_reliable() {
                    for token in 0..u64::from(most) {
                        assert_eq!(received(vi).ok().must().token, token);
                    }
                    target.assert_holds(0..700, round);
                }
            };
            let [ours, theirs] = &buffers;
            beside(lab, || drive(&pair.va, ours), || drive(&pair.vb, theirs));
            if !level.is_reliable() {
                break;
            }
        }
        pair.assert_connected();
    });
}
