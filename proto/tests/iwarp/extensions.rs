//! RFC 7306 (17.7).

use proto::ddp::Stag;
use proto::mpa::{Depths, Role, Terms};
use proto::rdmap::{Action, AtomicOperation, Config, Operation, Received, Remote, WorkId};

use crate::rdmap::{exchange, pair};
use crate::rig::{Sut, hex, terms};

fn config() -> Config {
    Config {
        extensions: true,
        ..Config::default()
    }
}

fn sut() -> Sut {
    let mut sut = Sut::with(config());
    sut.memory
        .region(0x77, 0x1000, 5u64.to_ne_bytes().repeat(2));
    sut.receive(1, 0);
    sut.receive(2, 8);
    sut
}

fn number(sut: &Sut) -> u64 {
    let octets = sut.memory.octets_of(0x77);
    u64::from_ne_bytes(octets[..8].try_into().unwrap())
}

/// An Atomic Request number `msn`, of this operation, at `to`.
fn atomic(msn: u32, operation: u8, to: u64) -> String {
    format!(
        "414a 00000000 00000001 {msn:08x} 00000000 000000{operation:02x} 00000042 00000077 {to:016x} \
         0000000000000003 0000000000000000 0000000000000005 ffffffffffffffff"
    )
}

#[test]
fn c129_immediate_data() {
    for (opcode, solicited) in [("48", false), ("49", true)] {
        let mut sut = sut();
        sut.feed_ulpdu(&format!(
            "41{opcode} 00000000 00000000 00000001 00000000 0102030405060708"
        ));
        sut.feed_ulpdu("4143 00000000 00000000 00000002 00000000 6869");
        let received = Received {
            id: WorkId(1),
            len: 0,
            solicited,
            invalidated: None,
            immediate: Some([1, 2, 3, 4, 5, 6, 7, 8]),
            written: 0,
        };
        assert_eq!(sut.actions()[0], Action::Received(received));
        assert_eq!(sut.memory.placed, 2);
    }
    for (len, header) in [
        (7, "4148 00000000 00000000 00000001 00000000"),
        (9, "4148 00000000 00000000 00000001 00000000"),
        (0, "4149 00000000 00000000 00000001 00000000"),
        (8, "0148 00000000 00000000 00000001 00000000"),
        (8, "4148 00000000 00000000 00000001 00000008"),
    ] {
        let mut sut = sut();
        sut.feed_ulpdu(&format!("{header} {}", "01".repeat(len)));
        sut.expect_terminate(&format!("02 ff c0 00 {:04x} {header}", 18 + len));
    }
}

#[test]
fn c130_atomics_on_the_wire() {
    let mut sut = sut();
    sut.feed_ulpdu(&atomic(1, 0, 0x1000));
    sut.feed_ulpdu("4141 00000000 00000001 00000002 00000000 00000051 0000000000000500 00000000 00000000 0000000000000000");
    sut.feed_ulpdu(&atomic(3, 0, 0x1000));
    assert_eq!(
        sut.ulpdus(),
        [
            hex("414b 00000000 00000003 00000001 00000000 00000042 0000000000000005"),
            hex("c142 00000051 0000000000000500"),
            hex("414b 00000000 00000003 00000002 00000000 00000042 0000000000000008"),
        ]
    );
    assert_eq!(number(&sut), 11);
    assert_eq!(sut.actions(), []);
    // And they take places of the IRD.
    for msn in 4..8 {
        sut.feed_ulpdu(&atomic(msn, 0, 0x1000));
    }
    let ninth = atomic(8, 0, 0x1000);
    sut.feed_ulpdu(&ninth);
    sut.expect_terminate("12 02 c0 00 0046 414a 00000000 00000001 00000008 00000000");
}

#[test]
fn c131_c132_atomics_between_two_ends() {
    let (mut one, mut other) = pair(config());
    other
        .memory
        .region(0x77, 0x1000, 0xffff_ffff_u64.to_ne_bytes().to_vec());
    let (stag, to) = (Stag(0x77), 0x1000);
    let target = Remote { stag, to };
    let halves = AtomicOperation::FetchAdd {
        add: 1,
        mask: 0x8000_0000_8000_0000,
    };
    let swap = |compare| AtomicOperation::CompareSwap {
        swap: 77,
        swap_mask: u64::MAX,
        compare,
        compare_mask: u64::MAX,
    };
    for (id, operation) in [(1, halves), (2, swap(3)), (3, swap(0)), (4, halves)] {
        one.post(id, Operation::Atomic { operation, target });
    }
    exchange(&mut one, &mut other);
    assert_eq!(one.completed(), [(1, 0xffff_ffff), (2, 0), (3, 0), (4, 77)]);
    assert_eq!(number(&other), 78);
}

#[test]
fn c40_atomics_take_places_among_the_reads() {
    let terms = Terms {
        depths: Depths { ird: 4, ord: 2 },
        ..terms(Role::Initiator)
    };
    let mut sut = Sut::new(terms, config());
    let (stag, to) = (Stag(9), 0);
    let remote = Remote { stag, to };
    let operation = AtomicOperation::FetchAdd { add: 1, mask: 0 };
    sut.read(1, 4, remote, remote);
    sut.post(
        2,
        Operation::Atomic {
            operation,
            target: remote,
        },
    );
    sut.post(
        3,
        Operation::Atomic {
            operation,
            target: remote,
        },
    );
    sut.read(4, 4, remote, remote);
    assert_eq!(sut.lines().len(), 2);
    for (answer, next) in [
        ("c142 00000009 0000000000000000 01020304", "Atomic"),
        (
            "414b 00000000 00000003 00000001 00000000 00000001 0000000000000005",
            "Read Request",
        ),
    ] {
        sut.feed_ulpdu(answer);
        let lines = sut.lines();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with(next), "{lines:?}");
    }
}

#[test]
fn c133_atomics_that_are_not_allowed() {
    let header = "414a 00000000 00000001 00000001 00000000";
    for (request, code) in [
        (atomic(1, 0, 0x1004), "02 07"),
        (atomic(1, 2, 0x1001), "02 07"),
        (atomic(1, 1, 0x1000), "02 ff"),
        (atomic(1, 15, 0x1000), "02 ff"),
        (atomic(1, 0, 0x1010), "01 01"),
        (atomic(1, 0, 0xff8), "01 01"),
        (
            atomic(1, 0, 0x1000).replace("00000077", "00000078"),
            "01 00",
        ),
        (format!("{}00", atomic(1, 0, 0x1000)), "02 ff"),
    ] {
        let mut sut = sut();
        let len = hex(&request).len();
        sut.feed_ulpdu(&request);
        sut.expect_terminate(&format!("{code} c0 00 {len:04x} {header}"));
        assert_eq!(number(&sut), 5);
    }
}

#[test]
fn c133_an_atomic_needs_both_rights() {
    let mut sut = sut();
    sut.memory.regions.get_mut(&0x77).unwrap().read = false;
    sut.feed_ulpdu(&atomic(1, 0, 0x1000));
    sut.expect_terminate("01 02 c0 00 0046 414a 00000000 00000001 00000001 00000000");
}

#[test]
fn c111_atomic_responses_that_nobody_asked_for() {
    let header = "414b 00000000 00000003 00000001 00000000";
    let mut one = sut();
    one.feed_ulpdu(&format!("{header} 00000000 0000000000000005"));
    one.expect_terminate(&format!("02 06 c0 00 001e {header}"));
    let mut other = sut();
    let operation = AtomicOperation::FetchAdd { add: 1, mask: 0 };
    let (stag, to) = (Stag(0x77), 0x1000);
    other.post(
        9,
        Operation::Atomic {
            operation,
            target: Remote { stag, to },
        },
    );
    other.output();
    other.feed_ulpdu(&format!("{header} 00000001 0000000000000005"));
    other.expect_terminate(&format!("02 ff c0 00 001e {header}"));
}
