//! Terminates and teardown (17.6).

use proto::ddp::Stag;
use proto::mpa::Place;
use proto::rdmap::{
    Action, Code, Config, Failure, Operation, PostError, Remote, State, Terminate, Work, WorkId,
};

use crate::rdmap::{exchange, pair};
use crate::rig::{Sut, counting, fpdu, hex, ulpdus};

const TERMINATE: &str = "4147 00000000 00000002 00000001 00000000";

#[test]
fn c118_c119_a_terminate_is_well_formed_and_of_four_lengths() {
    let read = "4141 00000000 00000001 00000001 00000000 00000051 0000000000000500 00000004 00000077 0000000000001000";
    for (ulpdu, len) in [
        ("41", 22),
        ("c140 00000077 0000000000000000 00", 38),
        ("4143 00000000 00000000 00000001 00000000", 42),
        (read, 70),
    ] {
        let mut sut = Sut::open();
        sut.feed_ulpdu(ulpdu);
        let ulpdus = sut.ulpdus();
        assert_eq!(ulpdus.len(), 1);
        assert_eq!(ulpdus[0].len(), len);
        assert_eq!(ulpdus[0][..18], hex(TERMINATE));
        assert_eq!(ulpdus[0][20] & 0x1f, 0);
        assert_eq!(ulpdus[0][21], 0);
    }
}

#[test]
fn c120_the_first_of_two_errors_is_reported() {
    let mut sut = Sut::open();
    let octets = [
        fpdu(&hex("c140 00000077 0000000000000000 00")),
        fpdu(&hex("4143 00000000 00000009 00000001 00000000")),
    ]
    .concat();
    sut.feed(&octets);
    sut.expect_terminate("11 00 c0 00 000f c140 00000077 0000000000000000");
}

#[test]
fn c121_all_work_is_flushed() {
    let mut sut = Sut::open();
    sut.receive(1, 8);
    sut.send(2, b"unsent".to_vec());
    sut.feed_ulpdu("41");
    let actions = format!("{:?}", sut.actions());
    assert_eq!(
        actions,
        "[Failed(Violation { code: Code { layer: 1, etype: 0, code: 0 }, opcode: None }), \
         Completed(Completion { id: WorkId(2), outcome: Err(Flushed) }), ReceiveFlushed(WorkId(1))]"
    );
    let work = Work {
        id: WorkId(3),
        operation: Operation::Immediate {
            data: [0; 8],
            solicited: false,
        },
        fence: false,
    };
    assert_eq!(sut.engine.post(work), Err(PostError::NotConnected));
    // The Send had not begun to be written.
    assert_eq!(sut.lines().len(), 1);
}

#[test]
fn c122_a_terminate_is_not_answered() {
    let mut sut = Sut::open();
    sut.receive(1, 8);
    sut.send(2, b"unsent".to_vec());
    sut.feed_ulpdu(&format!(
        "{TERMINATE} 12 05 c0 00 0020 4143 00000000 00000000 00000001 00000000"
    ));
    let actions = sut.actions();
    let Some(Action::Failed(Failure::Terminated(terminate))) = actions.first() else {
        panic!("{actions:?}");
    };
    assert_eq!(terminate.code, Code::new(1, 2, 5));
    assert_eq!(
        terminate.to_string(),
        "1/2/05 message too long segment 32 [qn 0 msn 1 mo 0 last]"
    );
    assert_eq!(actions.last(), Some(&Action::ShutdownWrite));
    assert_eq!(sut.output(), b"");
    // The end is bounded.
    let due = sut.engine.poll_timeout().unwrap();
    assert_eq!(due, sut.now + Config::default().drain_limit);
    sut.engine.handle_timeout(due);
    assert_eq!(sut.actions(), [Action::Close]);
    assert_eq!(sut.engine.poll_timeout(), None);
}

#[test]
fn c123_terminates_of_any_shape() {
    let body = hex(
        "01 02 ff ff 002e 4141 00000000 00000001 00000001 00000000 00000051 0000000000000500 00000004 00000077 0000000000001000 aabbccdd",
    );
    for hdrct in 0..=255 {
        for len in 0..=body.len() {
            let mut body = body[..len].to_vec();
            if let Some(octet) = body.get_mut(2) {
                *octet = hdrct;
            }
            let ulpdu = [hex(TERMINATE), body.clone()].concat();
            let mut sut = Sut::open();
            sut.feed(&fpdu(&ulpdu));
            let actions = sut.actions();
            let Some(Action::Failed(Failure::Terminated(terminate))) = actions.first() else {
                panic!("{hdrct:02x} {len}: {actions:?}");
            };
            let expected = if len < 2 {
                Code::new(0, 2, 0xff)
            } else {
                Code::new(0, 1, 2)
            };
            assert_eq!(terminate.code, expected);
            if hdrct & 0xe0 == 0xe0 && len >= 52 {
                assert_eq!(terminate.request.unwrap().len, 4);
            }
        }
    }
    // A tagged header echoed by an error of RDMAP, which Wireshark mis-slices.
    let echoed = Terminate::decode(&hex("01 00 c0 00 0013 c140 00000077 0000000000000010"));
    assert_eq!(
        echoed.to_string(),
        "0/1/00 invalid STag segment 19 [stag 0x77 to 0x10 last]"
    );
}

/// As lab.md has seen them on the wire, and one read that it refuses.
#[test]
fn siws_terminates_are_understood() {
    for (body, line) in [
        ("0202 0000", "2/0/02 MPA CRC"),
        (
            "2103 0300 0014 4143 00000000 00000000 00000002 00000000",
            "1/2/03 invalid MSN, out of range segment 20 [qn 0 msn 2 mo 0 last]",
        ),
        (
            "2101 0300 0014 4143 00000000 00000003 00000001 00000000",
            "1/2/01 invalid QN segment 20 [qn 3 msn 1 mo 0 last]",
        ),
        (
            "1100 0300 0013 c140 00000077 0000000000000010",
            "1/1/00 invalid STag segment 19 [stag 0x77 to 0x10 last]",
        ),
        (
            "1000 0700 002e 4141 00000000 00000001 00000001 00000000 00000051 0000000000000500 00000004 00000077 0000000000001000",
            "0/1/00 invalid STag segment 46 [qn 1 msn 1 mo 0 last] [4 from 0x77@0x1000 to 0x51@0x500]",
        ),
        // Of this one the RFC's reading has a name too.
        ("2006 0000", "2/0/06 insufficient IRD"),
        // And what the RFC's order says stays as it is, also with bits set that mean nothing.
        ("2002 0000", "2/0/02 MPA CRC"),
        ("0102 0300", "0/1/02 access rights"),
    ] {
        assert_eq!(Terminate::decode(&hex(body)).to_string(), line);
    }
}

#[test]
fn c124_what_only_looks_like_a_terminate() {
    for (header, code) in [
        ("4147 00000000 00000000 00000001 00000000", "02 06"),
        ("4147 00000000 00000004 00000001 00000000", "12 01"),
        ("4147 00000000 00000002 00000002 00000000", "12 03"),
        ("4147 00000000 00000002 00000000 00000000", "12 03"),
        ("4147 00000000 00000002 00000001 00000001", "12 04"),
        ("0147 00000000 00000002 00000001 00000000", "02 ff"),
    ] {
        let mut sut = Sut::open();
        sut.feed_ulpdu(&format!("{header} 2002 0000"));
        sut.expect_terminate(&format!("{code} c0 00 0016 {header}"));
    }
    let mut sut = Sut::open();
    sut.feed_ulpdu("c147 00000000 0000000000000000 2002 0000");
    sut.expect_terminate("02 06 c0 00 0012 c147 00000000 0000000000000000");
}

#[test]
fn c125_whoever_terminates_drains() {
    let mut sut = Sut::open();
    sut.feed_ulpdu("41");
    // The socket takes a little of the Terminate, and then no more.
    assert_eq!(sut.output_some(5).len(), 5);
    sut.feed(&[0; 200_000]);
    assert_eq!(sut.engine.state(), State::Terminating);
    sut.actions();
    assert_eq!(sut.output().len(), fpdu(&[0; 22]).len() - 5);
    assert_eq!(sut.actions(), [Action::ShutdownWrite]);
    assert_eq!(sut.engine.state(), State::Draining);
    sut.feed(&[0; 200_000]);
    assert_eq!(sut.actions(), []);
    sut.engine.handle_fin(&mut sut.memory, sut.now);
    assert_eq!(sut.actions(), [Action::Close]);
}

/// Its memory is the user's again when the connection has ended, and what is half written comes before the Terminate.
#[test]
fn c125_what_is_half_written_outlives_its_memory() {
    let mut sut = Sut::open();
    let sent = counting(30_000);
    sut.send(1, sent.clone());
    sut.send(2, sent.clone());
    let begun = sut.output_some(1000);
    sut.feed_ulpdu("41");
    sut.memory.buffers.clear();
    let octets = [begun, sut.output()].concat();
    let ulpdus = ulpdus(&octets, false, true);
    assert_eq!(ulpdus.len(), 2);
    assert_eq!(ulpdus[0][18..], sent);
    assert_eq!(ulpdus[1][..18], hex(TERMINATE));
}

#[test]
fn c125_a_fin_before_the_terminate_is_out() {
    let mut sut = Sut::open();
    sut.feed_ulpdu("41");
    sut.engine.handle_fin(&mut sut.memory, sut.now);
    sut.actions();
    assert_eq!(sut.ulpdus().len(), 1);
    assert_eq!(sut.actions(), [Action::ShutdownWrite, Action::Close]);
}

#[test]
fn c126_a_graceful_close() {
    let (mut one, mut other) = pair(Config::default());
    other.memory.region(0x77, 0, counting(100));
    other.receive(1, 100_000);
    one.receive(8, 1);
    one.send(2, counting(100_000));
    let (stag, to) = (Stag(0x77), 0);
    let remote = Remote { stag, to };
    one.read(3, 100, remote, remote);
    one.engine.close(one.now);
    assert_eq!(one.actions(), []);
    exchange(&mut one, &mut other);
    assert_eq!(other.received(), [(1, 100_000)]);
    let actions = format!("{:?}", one.actions());
    assert!(
        actions.contains("id: WorkId(2), outcome: Ok(100000)"),
        "{actions}"
    );
    assert!(
        actions.ends_with("id: WorkId(3), outcome: Ok(100) }), ShutdownWrite]"),
        "{actions}"
    );
    other.engine.handle_fin(&mut other.memory, other.now);
    assert_eq!(other.actions(), [Action::Close]);
    one.engine.handle_fin(&mut one.memory, one.now);
    assert_eq!(
        one.actions(),
        [Action::ReceiveFlushed(WorkId(8)), Action::Close]
    );
}

#[test]
fn c126_an_idle_end_closes_at_once() {
    for role in [proto::mpa::Role::Initiator, proto::mpa::Role::Responder] {
        let mut sut = Sut::new(crate::rig::terms(role), Config::default());
        sut.engine.close(sut.now);
        assert_eq!(sut.actions(), [Action::ShutdownWrite]);
        let due = sut.engine.poll_timeout().unwrap();
        sut.engine.handle_timeout(due);
        assert_eq!(
            sut.actions(),
            [Action::Failed(Failure::Timeout), Action::Close]
        );
    }
}

#[test]
fn c127_what_came_before_fin_is_delivered() {
    let mut sut = Sut::open();
    sut.receive(1, 8);
    sut.receive(2, 8);
    let octets = [
        fpdu(&hex("4143 00000000 00000000 00000001 00000000 6869")),
        fpdu(&hex("4143 00000000 00000000 00000002 00000000 6869")),
    ]
    .concat();
    // In the buffer, and not looked at yet.
    sut.engine.handle_octets(&octets);
    sut.engine.handle_fin(&mut sut.memory, sut.now);
    let actions = format!("{:?}", sut.actions());
    let (first, second) = (actions.find("WorkId(1)"), actions.find("WorkId(2)"));
    assert!(first < second, "{actions}");
    assert!(
        actions.ends_with("Close]") && !actions.contains("Lost"),
        "{actions}"
    );
}

#[test]
fn c128_nothing_is_sent_after_close() {
    let mut sut = Sut::open();
    sut.engine.close(sut.now);
    let work = Work {
        id: WorkId(3),
        operation: Operation::Send {
            from: Place::new(1),
            len: 0,
            solicited: false,
            invalidate: None,
        },
        fence: false,
    };
    assert_eq!(sut.engine.post(work), Err(PostError::NotConnected));
}
