//! Messages (17.5).

use proto::ddp::Stag;
use proto::mpa::{Depths, Place, Role, Terms};
use proto::rdmap::{Action, Config, Operation, PostError, Received, Remote, Work, WorkId};

use crate::rig::{Plain, Sut, counting, hex, terms};

const SINK: Remote = Remote {
    stag: Stag(0x51),
    to: 0x500,
};
const SOURCE: Remote = Remote {
    stag: Stag(0x77),
    to: 0x1000,
};

/// A region of 64 octets at 0x1000 under STag 0x77, and two receives of 16.
fn sut() -> Sut {
    let mut sut = Sut::open();
    sut.memory.region(0x77, 0x1000, counting(64));
    sut.receive(1, 16);
    sut.receive(2, 16);
    sut
}

fn offends(sut: &mut Sut, ulpdu: &str, terminate: &str) {
    let placed = sut.memory.placed;
    sut.feed_ulpdu(ulpdu);
    assert_eq!(sut.memory.placed, placed);
    sut.expect_terminate(terminate);
}

/// A Read Request for `len` octets of STag `stag` at `to`, number `msn`.
fn read_request(msn: u32, len: u32, stag: u32, to: u64) -> String {
    format!(
        "4141 00000000 00000001 {msn:08x} 00000000 00000051 0000000000000500 {len:08x} {stag:08x} {to:016x}"
    )
}

#[test]
fn c95_another_version_of_rdmap() {
    for control in ["03", "83", "c3"] {
        let header = format!("41{control} 00000000 00000000 00000001 00000000");
        offends(&mut sut(), &header, &format!("02 05 c0 00 0012 {header}"));
        let header = format!("c1{} 00000077 0000000000001000", control.replace('3', "0"));
        offends(&mut sut(), &header, &format!("02 05 c0 00 000e {header}"));
    }
}

#[test]
fn c96_unknown_opcodes() {
    for opcode in ["4c", "4d", "4e", "4f", "48", "49", "4a", "4b"] {
        let header = format!("41{opcode} 00000000 00000000 00000001 00000000");
        let ulpdu = format!("{header} 0102030405060708");
        offends(&mut sut(), &ulpdu, &format!("02 06 c0 00 001a {header}"));
    }
}

#[test]
fn c97_the_wrong_kind_of_segment() {
    for opcode in ["40", "42"] {
        let header = format!("41{opcode} 00000000 00000000 00000001 00000000");
        offends(&mut sut(), &header, &format!("02 06 c0 00 0012 {header}"));
    }
    for opcode in ["41", "43", "44", "45", "46", "47"] {
        let header = format!("c1{opcode} 00000077 0000000000001000");
        offends(&mut sut(), &header, &format!("02 06 c0 00 000e {header}"));
    }
}

#[test]
fn c98_the_wrong_queue() {
    for (opcode, queue) in [
        ("43", 1),
        ("44", 1),
        ("45", 2),
        ("46", 2),
        ("41", 0),
        ("41", 2),
        ("47", 0),
        ("47", 1),
    ] {
        let header = format!("41{opcode} 00000000 {queue:08x} 00000001 00000000");
        offends(&mut sut(), &header, &format!("02 06 c0 00 0012 {header}"));
    }
}

#[test]
fn c99_the_four_sends() {
    for (opcode, solicited, invalidate) in [
        ("43", false, false),
        ("44", false, true),
        ("45", true, false),
        ("46", true, true),
    ] {
        let mut one = sut();
        let word = if invalidate { "00000077" } else { "00000000" };
        let ulpdu = format!("41{opcode} {word} 00000000 00000001 00000000 6869");
        one.feed_ulpdu(&ulpdu);
        let received = Received {
            id: WorkId(1),
            len: 2,
            solicited,
            invalidated: invalidate.then_some(Stag(0x77)),
            immediate: None,
            written: 0,
        };
        assert_eq!(one.actions(), [Action::Received(received)]);
        assert_eq!(one.memory.buffers[&1][..3], *b"hi\xa5");
        let mut other = Sut::open();
        other.memory.buffers.insert(9, b"hi".to_vec());
        let send = Operation::Send {
            from: Place::new(9),
            len: 2,
            solicited,
            invalidate: invalidate.then_some(Stag(0x77)),
        };
        other.post(9, send);
        assert_eq!(other.ulpdus(), [hex(&ulpdu)]);
    }
    // What a plain Send has there is not looked at.
    let mut one = sut();
    one.feed_ulpdu("4143 00000077 00000000 00000001 00000000 6869");
    one.feed_ulpdu("c140 00000077 0000000000001000 6869");
    assert_eq!(one.received(), [(1, 2)]);
    assert_eq!(one.memory.octets_of(0x77)[..2], *b"hi");
}

#[test]
fn c100_an_invalidated_stag_is_gone() {
    let mut sut = sut();
    sut.feed_ulpdu("4144 00000077 00000000 00000001 00000000 6869");
    assert_eq!(sut.received(), [(1, 2)]);
    let header = "c140 00000077 0000000000001000";
    offends(
        &mut sut,
        &format!("{header} 00"),
        &format!("11 00 c0 00 000f {header}"),
    );
}

#[test]
fn c101_what_cannot_be_invalidated() {
    let header = "4144 000000bb 00000000 00000001 00000000";
    offends(&mut sut(), header, &format!("02 09 c0 00 0012 {header}"));
    let mut one = sut();
    one.memory.regions.get_mut(&0x77).unwrap().associated = false;
    let header = "4146 00000077 00000000 00000001 00000000";
    one.feed_ulpdu(header);
    one.expect_terminate(&format!("01 09 c0 00 0012 {header}"));
}

#[test]
fn c101_the_receive_of_a_bad_invalidation_is_flushed() {
    let mut sut = sut();
    sut.feed_ulpdu("4144 000000bb 00000000 00000001 00000000 6869");
    let actions = sut.actions();
    let flushed = [1, 2].map(|id| Action::ReceiveFlushed(WorkId(id)));
    assert!(
        flushed.iter().all(|flush| actions.contains(flush)),
        "{actions:?}"
    );
    assert!(
        !actions
            .iter()
            .any(|action| matches!(action, Action::Received(_)))
    );
}

#[test]
fn c102_sends_in_order_one_receive_each() {
    let mut sut = sut();
    for (msn, len) in [(1, 3), (2, 16)] {
        let payload = "ab".repeat(len);
        sut.feed_ulpdu(&format!(
            "4143 00000000 00000000 {msn:08x} 00000000 {payload}"
        ));
    }
    assert_eq!(sut.received(), [(1, 3), (2, 16)]);
    assert_eq!(sut.memory.placed, 19);
}

#[test]
fn c103_the_read_request() {
    let mut sut = sut();
    for id in 5..8 {
        sut.read(id, 7, SINK, SOURCE);
    }
    let expected: Vec<_> = (1..4)
        .map(|msn| hex(&read_request(msn, 7, 0x77, 0x1000)))
        .collect();
    assert_eq!(expected[0].len(), 46);
    assert_eq!(sut.ulpdus(), expected);
}

/// Two engines that hear each other.
pub(crate) fn pair(config: Config) -> (Sut, Sut) {
    let mut one = Sut::new(terms(Role::Initiator), config);
    let mut other = Sut::new(terms(Role::Responder), config);
    // The first FPDU, which lets the responder speak.
    one.write(u64::MAX, vec![], SOURCE);
    exchange(&mut one, &mut other);
    one.actions();
    (one, other)
}

/// Until both have said what they have to say.
pub(crate) fn exchange(one: &mut Sut, other: &mut Sut) {
    loop {
        let there = one.output_some(100_000);
        other.feed(&there);
        let back = other.output_some(100_000);
        one.feed(&back);
        if there.is_empty() && back.is_empty() {
            break;
        }
    }
}

#[test]
fn c104_a_read_of_any_length() {
    let config = Config {
        mulpdu: 1442,
        ..Config::default()
    };
    for len in [0usize, 1, 3, 1442 - 14, 1442 - 13, 1 << 20] {
        let (mut one, mut other) = pair(config);
        other.memory.region(0x77, 0x1000, counting(len));
        one.read(3, len as u64, SINK, SOURCE);
        let request = one.output();
        other.feed(&request);
        let mut expected_to = SINK.to;
        loop {
            let ulpdus = other.ulpdus();
            let Some(last) = ulpdus.last() else { break };
            assert_eq!(last[0], 0xc1);
            for ulpdu in &ulpdus {
                assert_eq!(ulpdu[6..14], expected_to.to_be_bytes());
                expected_to += ulpdu.len() as u64 - 14;
                one.feed(&crate::rig::fpdu(ulpdu));
            }
        }
        assert_eq!(one.completed(), [(3, len as u64)]);
        assert_eq!(one.memory.buffers[&3], counting(len));
        assert_eq!(one.memory.placed, len as u64);
    }
}

#[test]
fn c105_a_read_of_nothing_from_nowhere() {
    let mut sut = sut();
    sut.feed_ulpdu(&read_request(1, 0, 0x0bad_bad0, u64::MAX));
    assert_eq!(sut.ulpdus(), [hex("c142 00000051 0000000000000500")]);
}

#[test]
fn c106_c107_reads_that_are_not_allowed() {
    type Change = fn(&mut Plain);
    let none: Change = |_| {};
    let unassociated: Change = |memory| memory.regions.get_mut(&0x77).unwrap().associated = false;
    let unreadable: Change = |memory| memory.regions.get_mut(&0x77).unwrap().read = false;
    for (change, len, stag, to, code) in [
        (none, 4, 0x78, 0x1000, "00"),
        (none, 65, 0x77, 0x1000, "01"),
        (none, 1, 0x77, 0xfff, "01"),
        (none, 1, 0x77, 0x1040, "01"),
        (unreadable, 4, 0x77, 0x1000, "02"),
        (unassociated, 4, 0x77, 0x1000, "03"),
        (none, 8, 0x77, u64::MAX - 3, "04"),
    ] {
        let mut sut = sut();
        change(&mut sut.memory);
        let request = read_request(1, len, stag, to);
        // 18 octets of header and 28 of request, as they came.
        offends(
            &mut sut,
            &request,
            &format!("01 {code} e0 00 002e {request}"),
        );
    }
}

#[test]
fn c108_a_source_that_goes_while_it_is_read() {
    let config = Config {
        mulpdu: 128,
        send_window: 1,
        ..Config::default()
    };
    let mut sut = Sut::with(config);
    sut.memory.region(0x77, 0x1000, counting(500));
    sut.feed_ulpdu(&read_request(1, 400, 0x77, 0x1000));
    let first = sut.output_some(usize::MAX);
    assert_eq!(crate::rig::ulpdus(&first, false, true)[0].len(), 128);
    sut.memory.regions.clear();
    let sent = 128 - 14;
    let header = "4141 00000000 00000001 00000001 00000000";
    let rest = format!(
        "00000051 {:016x} {:08x} 00000077 {:016x}",
        0x500 + sent,
        400 - sent,
        0x1000 + sent
    );
    sut.expect_terminate(&format!("01 00 e0 00 002e {header} {rest}"));
}

#[test]
fn c109_a_malformed_read_request() {
    let good = read_request(1, 4, 0x77, 0x1000);
    let header = "4141 00000000 00000001 00000001 00000000";
    for (ulpdu, header, len) in [
        (format!("{good} 00"), header, 47),
        (good[..good.len() - 2].to_owned(), header, 45),
        (
            good.replacen("4141", "0141", 1),
            "0141 00000000 00000001 00000001 00000000",
            46,
        ),
        (
            good.replacen("00000001 00000000 ", "00000001 00000004 ", 1),
            "4141 00000000 00000001 00000001 00000004",
            46,
        ),
    ] {
        offends(
            &mut sut(),
            &ulpdu,
            &format!("02 ff c0 00 {len:04x} {header}"),
        );
    }
}

#[test]
fn c110_more_reads_than_the_ird() {
    let mut sut = sut();
    for msn in 1..=4 {
        sut.feed_ulpdu(&read_request(msn, 4, 0x77, 0x1000));
    }
    let request = read_request(5, 4, 0x77, 0x1000);
    offends(
        &mut sut,
        &request,
        &format!("12 02 c0 00 002e {}", &request[..40]),
    );
    // A peer that waits for answers may go on for ever.
    let mut one = self::sut();
    for msn in 1..=50 {
        one.feed_ulpdu(&read_request(msn, 4, 0x77, 0x1000));
        assert_eq!(one.ulpdus().len(), 1);
    }
}

#[test]
fn c86_read_requests_are_numbered() {
    let request = read_request(2, 4, 0x77, 0x1000);
    offends(
        &mut sut(),
        &request,
        &format!("12 03 c0 00 002e {}", &request[..40]),
    );
}

#[test]
fn c88_c111_responses_that_nobody_asked_for() {
    let header = "c142 00000051 0000000000000500";
    offends(&mut sut(), header, &format!("02 06 c0 00 000e {header}"));
    for (header, payload, code) in [
        ("c142 00000052 0000000000000500", "01020304", "11 00"),
        ("c142 00000051 0000000000000501", "01020304", "11 01"),
        ("c142 00000051 0000000000000500", "010203", "02 ff"),
        ("c142 00000051 0000000000000500", "", "02 ff"),
        ("8142 00000051 0000000000000500", "0102030405", "11 01"),
    ] {
        let mut sut = sut();
        sut.read(9, 4, SINK, SOURCE);
        sut.output();
        let len = 14 + payload.len() / 2;
        offends(
            &mut sut,
            &format!("{header} {payload}"),
            &format!("{code} c0 00 {len:04x} {header}"),
        );
    }
    // The running total, over segments.
    let mut sut = sut();
    sut.read(9, 4, SINK, SOURCE);
    sut.output();
    sut.feed_ulpdu("8142 00000051 0000000000000500 010203");
    let header = "8142 00000051 0000000000000503";
    offends(
        &mut sut,
        &format!("{header} 0405"),
        &format!("11 01 c0 00 0010 {header}"),
    );
    assert_eq!(sut.memory.buffers[&9], [1, 2, 3, 0xa5]);
}

#[test]
fn c112_responses_in_the_order_of_requests() {
    let mut sut = sut();
    for (msn, len) in [(1, 3), (2, 0), (3, 64)] {
        sut.feed_ulpdu(&read_request(msn, len, 0x77, 0x1000));
    }
    let lens: Vec<_> = sut.ulpdus().iter().map(|ulpdu| ulpdu.len() - 14).collect();
    assert_eq!(lens, [3, 0, 64]);
}

#[test]
fn c113_a_write_is_seen_by_what_follows() {
    let (mut one, mut other) = pair(Config::default());
    other.memory.region(0x77, 0x1000, vec![0; 8]);
    other.receive(1, 4);
    one.write(1, b"written!".to_vec(), SOURCE);
    one.send(2, b"look".to_vec());
    one.read(3, 8, SINK, SOURCE);
    exchange(&mut one, &mut other);
    assert_eq!(other.received(), [(1, 4)]);
    assert_eq!(other.memory.octets_of(0x77), b"written!");
    assert_eq!(one.memory.buffers[&3], b"written!");
}

#[test]
fn c113_a_region_may_change_while_it_is_read() {
    for crc in [true, false] {
        let [here, there] =
            [Role::Initiator, Role::Responder].map(|role| Terms { crc, ..terms(role) });
        let mut one = Sut::new(here, Config::default());
        let mut other = Sut::new(there, Config::default());
        other.memory.region(0x77, 0x1000, counting(5000));
        one.read(3, 5000, SINK, SOURCE);
        other.feed(&one.output());
        // Half of the response is out, and its owner writes.
        let half = other.output_some(2500);
        other.memory.region(0x77, 0x1000, vec![9; 5000]);
        let rest = other.output();
        one.feed(&[half, rest].concat());
        assert_eq!(one.completed(), [(3, 5000)]);
        // With checksums it is what it was; without, what it is when it is written.
        assert_eq!(one.memory.buffers[&3] == counting(5000), crc);
    }
}

#[test]
fn c114_completions_in_the_order_of_posting() {
    let (mut one, mut other) = pair(Config::default());
    other.memory.region(0x77, 0x1000, counting(64));
    other.receive(1, 4);
    one.read(3, 64, SINK, SOURCE);
    one.send(4, b"soon".to_vec());
    other.feed(&one.output());
    // The Send has left, the Read is not answered.
    assert_eq!(one.completed(), []);
    assert_eq!(other.received(), [(1, 4)]);
    exchange(&mut one, &mut other);
    assert_eq!(one.completed(), [(3, 64), (4, 4)]);
}

#[test]
fn c115_a_fence_waits_for_reads() {
    for fence in [false, true] {
        let mut sut = sut();
        sut.read(3, 4, SINK, SOURCE);
        sut.memory.buffers.insert(4, vec![1]);
        let work = Work {
            id: WorkId(4),
            operation: Operation::Send {
                from: Place::new(4),
                len: 1,
                solicited: false,
                invalidate: None,
            },
            fence,
        };
        sut.engine.post(work).unwrap();
        assert_eq!(sut.ulpdus().len(), if fence { 1 } else { 2 });
        sut.feed_ulpdu("c142 00000051 0000000000000500 01020304");
        assert_eq!(sut.ulpdus().len(), usize::from(fence));
    }
}

#[test]
fn c116_many_large_reads_at_once() {
    let (mut one, mut other) = pair(Config::default());
    for sut in [&mut one, &mut other] {
        sut.memory.region(0x77, 0x1000, counting(1 << 20));
        for id in 0..20 {
            sut.read(100 + id, 1 << 20, SINK, SOURCE);
        }
    }
    // A socket that takes little at a time, each way.
    loop {
        let there = one.output_some(3_000);
        let back = other.output_some(5_000);
        if there.is_empty() && back.is_empty() {
            break;
        }
        other.feed(&there);
        one.feed(&back);
    }
    for sut in [&mut one, &mut other] {
        let expected: Vec<_> = (0..20).map(|id| (100 + id, 1 << 20)).collect();
        assert_eq!(sut.completed(), expected);
        assert_eq!(sut.memory.buffers[&119], counting(1 << 20));
        assert_eq!(sut.memory.placed, 20 << 20);
    }
}

#[test]
fn c117_a_write_is_not_reported() {
    let mut sut = sut();
    sut.feed_ulpdu("c140 00000077 0000000000001000 6869");
    assert_eq!(sut.actions(), []);
    assert_eq!(sut.output(), b"");
}

#[test]
fn c94_longer_than_a_message_can_be() {
    let mut sut = Sut::open();
    let work = |len| Work {
        id: WorkId(1),
        operation: Operation::Write {
            from: Place::new(1),
            len,
            to: SOURCE,
        },
        fence: false,
    };
    assert_eq!(sut.engine.post(work(1 << 32)), Err(PostError::TooLong));
    assert_eq!(sut.engine.post(work((1 << 32) - 1)), Ok(()));
}

#[test]
fn what_an_end_cannot_do_is_refused_at_once() {
    let terms = Terms {
        depths: Depths { ird: 0, ord: 0 },
        ..terms(Role::Initiator)
    };
    let mut sut = Sut::new(terms, Config::default());
    let read = Operation::Read {
        into: Place::new(1),
        len: 1,
        sink: SINK,
        source: SOURCE,
    };
    let immediate = Operation::Immediate {
        data: [0; 8],
        solicited: false,
    };
    for operation in [read, immediate] {
        let work = Work {
            id: WorkId(1),
            operation,
            fence: false,
        };
        assert_eq!(sut.engine.post(work), Err(PostError::NotEnabled));
    }
}

#[test]
fn memory_that_goes_while_it_is_sent_is_a_failure_of_ours() {
    let config = Config {
        mulpdu: 128,
        send_window: 1,
        ..Config::default()
    };
    let mut sut = Sut::with(config);
    sut.send(1, counting(500));
    assert!(!sut.output_some(usize::MAX).is_empty());
    sut.memory.buffers.clear();
    sut.expect_terminate("00 00 00 00");
}

#[test]
fn c137_a_region_that_goes_in_the_middle_of_a_message() {
    let mut sut = sut();
    sut.feed_ulpdu("8140 00000077 0000000000001000 6869");
    sut.memory.regions.clear();
    let header = "c140 00000077 0000000000001002";
    offends(
        &mut sut,
        &format!("{header} 6869"),
        &format!("11 00 c0 00 0010 {header}"),
    );
}
