//! Messages of one segment, neither short nor long, past the queues and without a copy: the same octets leave, and the same comes of those that come.

use proptest::prelude::*;
use proto::ddp::Stag;
use proto::mpa::{Place, Role, Source, Terms};
use proto::rdmap::{Action, Config, Operation, Received, SEAM_MAX, SEND_LEAD, Work, WorkId};

use crate::guess::{guessing, read};
use crate::rig::{Sut, counting, fpdu, hex, terms};

/// One read of a message that should be what comes next, as a driver makes it who looks for such a one: how many octets it took, if there was any to look for and
/// it came. What is said of it, and was said before, is [kept](Sut::told).
pub(crate) fn read_lone(sut: &mut Sut, octets: &[u8]) -> Option<usize> {
    while let Some(action) = sut.engine.poll_action() {
        sut.told.push(action);
    }
    let len = sut.engine.expects_lone()?;
    let ids = 1..=9;
    let id = ids
        .into_iter()
        .find(|id| sut.engine.awaits_lone(WorkId(*id), len))?;
    let mut seams = [0; 2 * SEAM_MAX];
    let mut rest = octets;
    let mut next = |len: usize| {
        let (now, later) = rest.split_at(len.min(rest.len()));
        rest = later;
        now
    };
    let before = next(SEND_LEAD);
    seams[..before.len()].copy_from_slice(before);
    let payload = next(len as usize);
    sut.memory.buffers.get_mut(&id).unwrap()[..payload.len()].copy_from_slice(payload);
    let behind = next(SEAM_MAX);
    seams[SEAM_MAX..][..behind.len()].copy_from_slice(behind);
    let n = octets.len() - rest.len();
    let memory = &sut.memory;
    let digest = |crc: &mut _| memory.digest(Place::new(id), len, crc).is_ok();
    if sut.engine.take_lone(WorkId(id), len, n, &seams, digest) {
        sut.lone += 1;
        sut.told.push(Action::Received(Received {
            id: WorkId(id),
            len,
            solicited: false,
            invalidated: None,
            immediate: None,
            written: 0,
        }));
        assert_eq!(sut.engine.poll_action(), None);
    } else {
        sut.engine
            .handle_guessed(n, &seams, &mut sut.memory, sut.now);
        sut.engine.handle_arrivals(&mut sut.memory, sut.now);
    }
    Some(n)
}

fn send_of(id: u64, len: usize) -> Work {
    Work {
        id: WorkId(id),
        operation: Operation::Send {
            from: Place::new(id),
            len: len as u64,
            solicited: false,
            invalidate: None,
        },
        fence: false,
    }
}

/// Sends the octets by themselves, of which the socket takes no more than `most` with the rest of the record; what left, if they were taken, and whether that is all.
fn send_lone(sut: &mut Sut, id: u64, octets: Vec<u8>, most: usize) -> Option<(Vec<u8>, bool)> {
    let len = octets.len();
    sut.memory.buffers.insert(id, octets);
    let memory = &sut.memory;
    let digest = |crc: &mut _| memory.digest(Place::new(id), len as u32, crc).is_ok();
    let [before, behind] = sut.engine.frame_lone(len as u32, None, digest)?;
    let mut left = [before, &memory.buffers[&id], behind].concat();
    left.truncate(most);
    let is_whole = sut
        .engine
        .handle_lone_written(left.len(), &send_of(id, len));
    Some((left, is_whole))
}

proptest! {
    #[test]
    fn the_same_octets_leave_whatever_the_socket_takes(
        messages in proptest::collection::vec((0usize..9000, prop_oneof![Just(usize::MAX), 1usize..9000]), 1..6),
        crc: bool,
    ) {
        let terms = Terms { crc, ..terms(Role::Initiator) };
        let mut lone = Sut::new(terms, Config::default());
        let mut general = Sut::new(terms, Config::default());
        for (id, (len, most)) in (1..).zip(messages) {
            general.send(id, counting(len));
            let expected = general.output();
            prop_assert_eq!(general.completed(), [(id, len as u64)]);
            let (mut left, is_whole) = send_lone(&mut lone, id, counting(len), most).expect("nothing waits");
            prop_assert_eq!(is_whole, left.len() == expected.len());
            prop_assert_eq!(lone.actions(), [], "not yet, or nobody hears of it");
            if !is_whole {
                prop_assert!(send_lone(&mut lone, 99, counting(600), most).is_none());
                left.extend(lone.output());
                prop_assert_eq!(lone.completed(), [(id, len as u64)]);
            }
            prop_assert!(left == expected);
        }
    }

    /// Whatever the messages are, and however they are cut on their way.
    #[test]
    fn what_was_sent_is_what_is_read(
        lens in proptest::collection::vec(prop_oneof![
            8 => Just(4096usize), 1 => Just(4095usize), 1 => 0usize..100, 2 => 1000usize..9000,
        ], 3..10),
        crc: bool,
        steps in proptest::collection::vec(prop_oneof![1 => 1usize..100, 1 => 1000usize..9000, 3 => Just(usize::MAX)], 1..9),
        together in 1usize..4,
    ) {
        let terms = |role| Terms { crc, ..terms(role) };
        let mut sender = Sut::new(terms(Role::Initiator), guessing());
        let mut receiver = Sut::new(terms(Role::Responder), guessing());
        let (mut waiting, mut steps) = (Vec::new(), steps.iter().cycle());
        for (id, len) in (1..).zip(&lens) {
            receiver.receive(id, 9000);
            sender.send(id, counting(len + id as usize).split_off(id as usize));
            waiting.extend(sender.output());
            if !(id as usize).is_multiple_of(together) && id as usize != lens.len() {
                continue;
            }
            while !waiting.is_empty() {
                let (taken, _) = read(&mut receiver, &waiting, *steps.next().unwrap());
                prop_assert!(taken > 0);
                waiting.drain(..taken);
            }
        }
        let expected: Vec<_> = (1..).zip(lens.iter().map(|len| *len as u32)).collect();
        prop_assert_eq!(receiver.received(), expected);
        for (id, len) in (1..).zip(&lens) {
            let sent = counting(len + id as usize).split_off(id as usize);
            prop_assert!(receiver.memory.buffers[&id][..*len] == sent, "message {id}");
        }
    }
}

#[test]
fn messages_like_those_before_are_not_copied() {
    for crc in [false, true] {
        let terms = |role| Terms { crc, ..terms(role) };
        let mut sender = Sut::new(terms(Role::Initiator), guessing());
        let mut receiver = Sut::new(terms(Role::Responder), guessing());
        let mut copied = 0;
        for id in 1..=9 {
            receiver.receive(id, 9000);
            sender.send(id, counting(4096));
            let octets = sender.output();
            let mut at = 0;
            while at < octets.len() {
                at += read(&mut receiver, &octets[at..], usize::MAX).0;
            }
            if id == 2 {
                copied = receiver.memory.placed;
            }
        }
        assert_eq!(receiver.received().len(), 9);
        assert_eq!(receiver.lone, 7);
        assert_eq!(receiver.memory.placed, copied);
    }
}

/// As many as have come with one read, each to its receive.
#[test]
fn a_stream_of_them_is_not_copied_either() {
    let mut sender = Sut::new(terms(Role::Initiator), guessing());
    let mut receiver = Sut::new(terms(Role::Responder), guessing());
    for id in 1..=40 {
        receiver.receive(id, 9000);
        sender.send(id, counting(4096));
    }
    let octets = sender.output();
    let one = octets.len() / 40;
    let (known, rest) = octets.split_at(2 * one);
    let mut at = 0;
    while at < known.len() {
        at += read(&mut receiver, &known[at..], usize::MAX).0;
    }
    let copied = receiver.memory.placed;
    let (mut at, mut reads) = (0, 0);
    while at < rest.len() {
        at += read(&mut receiver, &rest[at..], usize::MAX).0;
        reads += 1;
    }
    assert_eq!(receiver.received().len(), 40);
    assert!(reads <= 8, "{reads}");
    let little = receiver.memory.placed - copied;
    assert!(
        little <= reads * SEAM_MAX as u64,
        "what came with a header: {little}"
    );
}

#[test]
fn nothing_is_overtaken() {
    let mut sut = Sut::open();
    let is_taken = |sut: &mut Sut| send_lone(sut, 50, counting(2000), usize::MAX).is_some();
    sut.send(1, counting(4));
    assert!(!is_taken(&mut sut), "a work that was posted before");
    sut.output();
    assert!(is_taken(&mut sut));
    let mut silent = Sut::new(terms(Role::Responder), Config::default());
    assert!(!is_taken(&mut silent), "before the first FPDU has come");
    silent.feed(&fpdu(&hex("c140 00000001 0000000000000000")));
    assert!(is_taken(&mut silent));
    let marked = Terms {
        send_markers: true,
        ..terms(Role::Initiator)
    };
    assert!(!is_taken(&mut Sut::new(marked, Config::default())));
    let narrow = Config {
        mulpdu: 1500,
        ..Config::default()
    };
    assert!(!is_taken(&mut Sut::with(narrow)), "more than one segment");
    let none = sut.engine.frame_lone(2000, None, |_| false);
    assert_eq!(none, None, "no memory");
    assert_eq!(sut.engine.waiting(), 0);
}

/// A connection that ends in the middle of a message that was expected loses it, and its receive is flushed.
#[test]
fn c68_the_end_within_an_expected_message() {
    for (cut, is_reset) in [
        (10, false),
        (20, false),
        (2000, false),
        (4118, false),
        (2000, true),
    ] {
        let mut sender = Sut::open();
        let mut receiver = Sut::with(guessing());
        for id in 1..=4 {
            receiver.receive(id, 9000);
            sender.send(id, counting(4096));
        }
        let octets = sender.output();
        let whole = 3 * octets.len() / 4;
        let mut at = 0;
        while at < whole + cut {
            let end = (at / 4120 + 1) * 4120;
            at += read(&mut receiver, &octets[at..end.min(whole + cut)], usize::MAX).0;
        }
        assert_eq!(receiver.lone, 1);
        match is_reset {
            true => receiver.engine.handle_reset(receiver.now),
            false => receiver
                .engine
                .handle_fin(&mut receiver.memory, receiver.now),
        }
        let actions = receiver.actions();
        let received = |action: &&Action| matches!(action, Action::Received(_));
        assert_eq!(actions.iter().filter(received).count(), 3);
        assert!(
            actions.contains(&Action::ReceiveFlushed(WorkId(4))),
            "{actions:?}"
        );
    }
}

/// A message that takes a right back is as long as those before it, and more than they are.
#[test]
fn another_kind_of_message_goes_the_general_way() {
    let mut sender = Sut::open();
    let mut receiver = Sut::with(guessing());
    receiver.memory.region(7, 0, vec![0; 8]);
    for id in 1..=4 {
        receiver.receive(id, 9000);
        sender.memory.buffers.insert(id, counting(4096));
        let mut work = send_of(id, 4096);
        if let Operation::Send { invalidate, .. } = &mut work.operation {
            *invalidate = (id == 4).then_some(Stag(7));
        }
        sender.post(id, work.operation);
        let octets = sender.output();
        let mut at = 0;
        while at < octets.len() {
            at += read(&mut receiver, &octets[at..], usize::MAX).0;
        }
    }
    assert_eq!(receiver.lone, 1);
    let Some(Action::Received(received)) = receiver.actions().pop() else {
        panic!("it has come");
    };
    assert_eq!(
        (received.id, received.invalidated),
        (WorkId(4), Some(Stag(7)))
    );
    assert!(receiver.memory.buffers[&4][..4096] == counting(4096));
}
