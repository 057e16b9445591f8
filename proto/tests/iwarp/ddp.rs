//! Segments and where they belong (17.4).

use proptest::prelude::*;
use proto::ddp::{
    Arrival, Cut, DdpError, Header, Msn, QN_SEND, Queue, Spot, UNTAGGED_LEN, Untagged,
};
use proto::rdmap::{Config, NoBuffer};

use crate::rig::{Sut, counting, hex};

/// An initiator with a region of 16 octets at offset 0x1000 under STag 0x77, and two receives of 8.
fn sut() -> Sut {
    let mut sut = Sut::open();
    sut.memory.region(0x77, 0x1000, vec![0; 16]);
    sut.receive(1, 8);
    sut.receive(2, 8);
    sut
}

/// That these ULPDUs lead to this Terminate, and nothing is placed by the last.
fn offends(ulpdus: &[&str], terminate: &str) {
    let mut sut = sut();
    let (last, before) = ulpdus.split_last().unwrap();
    for ulpdu in before {
        sut.feed_ulpdu(ulpdu);
    }
    sut.actions();
    let placed = sut.memory.placed;
    sut.feed_ulpdu(last);
    assert_eq!(sut.memory.placed, placed);
    sut.expect_terminate(terminate);
}

#[test]
fn c72_control_octets() {
    let config = Config {
        mulpdu: 128,
        ..Config::default()
    };
    let mut sut = Sut::with(config);
    sut.send(1, counting(111));
    let stag = proto::ddp::Stag(5);
    sut.write(2, counting(115), proto::rdmap::Remote { stag, to: 0 });
    let controls: Vec<_> = sut.ulpdus().iter().map(|ulpdu| ulpdu[0]).collect();
    assert_eq!(controls, [0x01, 0x41, 0x81, 0xc1]);
}

#[test]
fn c73_reserved_bits_are_ignored() {
    let mut sut = sut();
    sut.feed_ulpdu("7d73 00000000 00000000 00000001 00000000 6869");
    sut.feed_ulpdu("fd70 00000077 0000000000001000 6869");
    assert_eq!(sut.received(), [(1, 2)]);
    assert_eq!(sut.memory.octets_of(0x77)[..2], *b"hi");
}

#[test]
fn c74_message_numbers_begin_at_one_and_wrap_through_zero() {
    let mut sut = Sut::open();
    let stag = proto::ddp::Stag(5);
    let remote = proto::rdmap::Remote { stag, to: 0 };
    sut.send(1, counting(1));
    sut.read(2, 1, remote, remote);
    sut.send(3, counting(1));
    sut.read(4, 1, remote, remote);
    let numbers: Vec<_> = sut
        .ulpdus()
        .iter()
        .map(|ulpdu| match Header::decode(ulpdu) {
            Ok(Header::Untagged(header)) => (header.queue, header.msn.0),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(numbers, [(0, 1), (1, 1), (0, 2), (1, 2)]);
    assert_eq!(Msn(u32::MAX).plus(1), Msn(0));
    let mut queue = Queue::new(Arrival::Ordered, Msn(u32::MAX));
    for buffer in 0..3 {
        queue.post(buffer, 1);
    }
    for (buffer, msn) in [u32::MAX, 0, 1].into_iter().enumerate() {
        let header = untagged(Msn(msn), 0, true);
        assert_eq!(queue.spot(&header, 1), Ok(Spot::In(buffer)));
        queue.handle_placed(&header, 1).unwrap();
        assert_eq!(
            queue.deliver().map(|delivered| delivered.buffer),
            Some(buffer)
        );
    }
}

fn untagged(msn: Msn, mo: u32, last: bool) -> Untagged {
    Untagged {
        last,
        ulp: 0x43,
        ulp_word: 0,
        queue: QN_SEND,
        msn,
        mo,
    }
}

#[test]
fn c76_a_zero_length_send() {
    let mut sut = sut();
    sut.feed_ulpdu("4143 00000000 00000000 00000001 00000000");
    assert_eq!(sut.received(), [(1, 0)]);
    sut.send(9, vec![]);
    assert_eq!(
        sut.ulpdus(),
        [hex("4143 00000000 00000000 00000001 00000000")]
    );
    assert_eq!(sut.completed(), [(9, 0)]);
}

#[test]
fn c77_a_zero_length_write_is_not_checked() {
    let mut sut = sut();
    sut.feed_ulpdu("c140 0badbad0 ffffffffffffffff");
    assert_eq!(sut.output(), b"");
    assert_eq!(sut.actions(), []);
}

#[test]
fn c78_another_version_of_ddp() {
    for control in ["c0", "c2", "c3"] {
        let header = format!("{control}40 00000077 0000000000001000");
        offends(
            &[&format!("{header} 6869")],
            &format!("11 04 c0 00 0010 {header}"),
        );
    }
    for control in ["40", "42", "43"] {
        let header = format!("{control}43 00000000 00000000 00000001 00000000");
        offends(
            &[&format!("{header} 6869")],
            &format!("12 06 c0 00 0014 {header}"),
        );
    }
}

#[test]
fn c79_an_unknown_stag() {
    // The vector of section 6.1, with its checksum.
    let mut sut = Sut::open();
    sut.feed_ulpdu("c140 00000077 0000000000000010 0102030405");
    assert_eq!(
        sut.output(),
        hex(
            "0026 4147 00000000 00000002 00000001 00000000 11 00 c0 00 0013 c140000000770000000000000010 5b9db2bc"
        )
    );
}

#[test]
fn c80_out_of_bounds() {
    for (to, len) in [
        ("0000000000000fff", 4),
        ("000000000000100d", 4),
        ("0000000000001010", 1),
        ("0000000000001000", 17),
    ] {
        let header = format!("c140 00000077 {to}");
        offends(
            &[&format!("{header} {}", "aa".repeat(len))],
            &format!("11 01 c0 00 {:04x} {header}", 14 + len),
        );
    }
}

#[test]
fn c81_another_streams_stag() {
    let mut sut = sut();
    sut.memory.regions.get_mut(&0x77).unwrap().associated = false;
    sut.feed_ulpdu("c140 00000077 0000000000001000 6869");
    sut.expect_terminate("11 02 c0 00 0010 c140 00000077 0000000000001000");
    assert_eq!(sut.memory.placed, 0);
}

#[test]
fn c82_the_offset_wraps() {
    let header = "c140 00000077 fffffffffffffffc";
    offends(
        &[&format!("{header} 0102030405060708")],
        &format!("11 03 c0 00 0016 {header}"),
    );
}

#[test]
fn c83_no_right_to_write() {
    let mut sut = sut();
    sut.memory.regions.get_mut(&0x77).unwrap().write = false;
    sut.feed_ulpdu("c140 00000077 0000000000001000 6869");
    sut.expect_terminate("11 00 c0 00 0010 c140 00000077 0000000000001000");
    assert_eq!(sut.memory.placed, 0);
}

#[test]
fn c84_no_such_queue() {
    for queue in ["00000003", "00000004", "ffffffff"] {
        let header = format!("4143 00000000 {queue} 00000001 00000000");
        offends(&[&header], &format!("12 01 c0 00 0012 {header}"));
    }
}

#[test]
fn c85_no_receive() {
    let header = "4143 00000000 00000000 00000001 00000000";
    let mut sut = Sut::open();
    sut.feed_ulpdu(&format!("{header} 6869"));
    sut.expect_terminate(&format!("12 02 c0 00 0014 {header}"));
}

#[test]
fn c85_no_receive_yet() {
    let config = Config {
        no_buffer: NoBuffer::Wait,
        ..Config::default()
    };
    let mut sut = Sut::with(config);
    sut.memory.region(0x77, 0x1000, vec![0; 16]);
    sut.feed_ulpdu("4143 00000000 00000000 00000001 00000000 6869");
    sut.feed_ulpdu("c140 00000077 0000000000001000 6869");
    assert!(sut.engine.is_blocked());
    assert_eq!(sut.memory.placed, 0);
    // FIN does not overtake what waits.
    sut.engine.handle_fin(&mut sut.memory, sut.now);
    assert_eq!(sut.actions(), []);
    sut.receive(1, 8);
    sut.feed(b"");
    let actions = format!("{:?}", sut.actions());
    assert!(actions.starts_with("[Received("), "{actions}");
    assert!(actions.ends_with("Close]"), "{actions}");
    assert_eq!(sut.memory.placed, 4);
}

#[test]
fn c85_no_receive_ever() {
    let config = Config {
        no_buffer: NoBuffer::Wait,
        ..Config::default()
    };
    let header = "4143 00000000 00000000 00000001 00000000";
    let mut sut = Sut::with(config);
    sut.feed_ulpdu(&format!("{header} 6869"));
    assert!(sut.engine.is_blocked());
    sut.engine.refuse_blocked(&sut.memory, sut.now);
    sut.expect_terminate(&format!("12 02 c0 00 0014 {header}"));
}

#[test]
fn c86_message_numbers_out_of_range() {
    for (before, msn) in [
        (None, "00000000"),
        (Some("4143 00000000 00000000 00000001 00000000"), "00000001"),
        (None, "00000002"),
        (
            Some("0143 00000000 00000000 00000001 00000000 6869"),
            "00000002",
        ),
        (None, "80000001"),
    ] {
        let header = format!("4143 00000000 00000000 {msn} 00000000");
        let ulpdu = format!("{header} 6869");
        let ulpdus: Vec<_> = before.into_iter().chain([&*ulpdu]).collect();
        offends(&ulpdus, &format!("12 03 c0 00 0014 {header}"));
    }
}

#[test]
fn c87_message_offsets() {
    let header = "4143 00000000 00000000 00000001 00000009";
    offends(&[header], &format!("12 04 c0 00 0012 {header}"));
    let header = "4143 00000000 00000000 00000001 00000007";
    offends(
        &[&format!("{header} 6869")],
        &format!("12 05 c0 00 0014 {header}"),
    );
    let header = "4143 00000000 00000000 00000001 ffffffff";
    offends(
        &[&format!("{header} 6869")],
        &format!("12 04 c0 00 0014 {header}"),
    );
    // The last segment came, the first did not, and here is the next message.
    let next = "4143 00000000 00000000 00000002 00000000";
    offends(
        &["4143 00000000 00000000 00000001 00000002 6869", next],
        &format!("12 04 c0 00 0012 {next}"),
    );
}

#[test]
fn c87_segments_from_the_back() {
    let mut sut = sut();
    sut.feed_ulpdu("4143 00000000 00000000 00000001 00000006 6768");
    sut.feed_ulpdu("0143 00000000 00000000 00000001 00000003 646566");
    assert_eq!(sut.received(), []);
    sut.feed_ulpdu("0143 00000000 00000000 00000001 00000000 616263");
    assert_eq!(sut.received(), [(1, 8)]);
    assert_eq!(sut.memory.buffers[&1], b"abcdefgh");
}

#[test]
fn c88_c89_a_message_cannot_contradict_its_end() {
    let end = "4143 00000000 00000000 00000001 00000002 6869";
    let beyond = "0143 00000000 00000000 00000001 00000004 6869";
    offends(
        &[end, beyond],
        "12 04 c0 00 0014 0143 00000000 00000000 00000001 00000004",
    );
}

#[test]
fn c90_after_an_error_everything_is_dropped() {
    let mut sut = sut();
    sut.send(9, counting(100_000));
    sut.output_some(10);
    sut.feed_ulpdu("c140 0badbad0 0000000000000000 00");
    // More comes, good and bad.
    sut.feed_ulpdu("4143 00000000 00000000 00000001 00000000 6869");
    sut.feed(&[0xff; 100_000]);
    assert_eq!(sut.memory.placed, 0);
    // The FPDU that had begun, and one more.
    let mut stream = hex("fd00 0143 00000000 00000000");
    stream.truncate(10);
    stream.extend(sut.output());
    let lines: Vec<_> = crate::rig::ulpdus(&stream, false, true)
        .iter()
        .map(|ulpdu| proto::rdmap::Line(ulpdu).to_string())
        .collect();
    assert_eq!(
        lines,
        [
            "Send qn 0 msn 1 mo 0 len 64750",
            "Terminate qn 2 msn 1 mo 0 last 1/1/00 invalid STag segment 15 [stag 0xbadbad0 to 0x0 last]"
        ]
    );
}

#[test]
fn c93_tagged_and_untagged_segments_interleaved() {
    let mut sut = sut();
    sut.feed_ulpdu("0143 00000000 00000000 00000001 00000000 616263");
    sut.feed_ulpdu("8140 00000077 0000000000001000 313233");
    sut.feed_ulpdu("4143 00000000 00000000 00000001 00000003 646566");
    sut.feed_ulpdu("c140 00000077 0000000000001003 343536");
    assert_eq!(sut.received(), [(1, 6)]);
    assert_eq!(sut.memory.buffers[&1][..6], *b"abcdef");
    assert_eq!(sut.memory.octets_of(0x77)[..6], *b"123456");
}

#[test]
fn c89_holes_without_end_are_an_error_of_ours() {
    let mut sut = Sut::open();
    sut.receive(1, 100_000);
    for hole in 1.. {
        sut.feed_ulpdu(&format!(
            "0143 00000000 00000000 00000001 {:08x} 61",
            2 * hole
        ));
        if sut.engine.state() != proto::rdmap::State::Open {
            break;
        }
        assert!(hole < 1000, "no end to it");
    }
    let lines = sut.lines();
    assert!(
        lines[0].contains("1/0/00 DDP local catastrophic"),
        "{lines:?}"
    );
}

/// Messages of these lengths, cut for `mulpdu`.
fn segments(lens: &[u32], mulpdu: u16) -> Vec<(Untagged, u32)> {
    let mut segments = Vec::new();
    for (msn, &len) in (1..).zip(lens) {
        for segment in Cut::new(len, mulpdu, UNTAGGED_LEN) {
            let header = untagged(Msn(msn), segment.offset, segment.last);
            segments.push((header, segment.len));
        }
    }
    segments
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn c91_c92_any_order_and_doubles_give_the_same(
        lens in proptest::collection::vec(0u32..120, 1..8),
        mulpdu in 19u16..80,
        order in proptest::collection::vec(any::<prop::sample::Index>(), 0..400),
    ) {
        let mut queue = Queue::new(Arrival::Any, Msn::FIRST);
        for (buffer, len) in lens.iter().enumerate() {
            queue.post(buffer, *len);
        }
        let segments = segments(&lens, mulpdu);
        let mut waiting = segments.clone();
        let mut memory: Vec<Vec<bool>> = lens.iter().map(|len| vec![false; *len as usize]).collect();
        let mut delivered = Vec::new();
        let mut order = order.into_iter();
        while !waiting.is_empty() {
            // Some that are still to come, and some that may have come before.
            let (header, len) = match order.next() {
                Some(index) if index.index(3) == 0 => segments[index.index(segments.len())],
                Some(index) => waiting.swap_remove(index.index(waiting.len())),
                None => waiting.remove(0),
            };
            waiting.retain(|(other, _)| *other != header);
            if let Spot::In(buffer) = queue.spot(&header, len).unwrap() {
                let from = header.mo as usize;
                memory[buffer][from..from + len as usize].fill(true);
                // A message with more holes than are counted would be refused; these have fewer.
                queue.handle_placed(&header, len).unwrap();
            }
            while let Some(message) = queue.deliver() {
                prop_assert_eq!(message.len, lens[message.buffer]);
                prop_assert!(memory[message.buffer].iter().all(|placed| *placed));
                delivered.push(message.buffer);
            }
        }
        prop_assert_eq!(delivered, (0..lens.len()).collect::<Vec<_>>());
        prop_assert_eq!(queue.spot(&segments[0].0, segments[0].1), Ok(Spot::Delivered));
    }
}

#[test]
fn c92_beyond_the_buffers_there_is_none() {
    let mut queue = Queue::new(Arrival::Any, Msn::FIRST);
    queue.post('a', 4);
    let ahead = untagged(Msn(2), 0, true);
    assert_eq!(queue.spot(&ahead, 1), Err(DdpError::NoBuffer));
    queue.post('b', 4);
    assert_eq!(queue.spot(&ahead, 1), Ok(Spot::In('b')));
    queue.handle_placed(&ahead, 1).unwrap();
    assert_eq!(queue.deliver(), None);
    let first = untagged(Msn(1), 0, true);
    queue.handle_placed(&first, 1).unwrap();
    assert_eq!(queue.deliver().map(|message| message.buffer), Some('a'));
    assert_eq!(queue.deliver().map(|message| message.buffer), Some('b'));
}
