//! Several segments with one read: guesses right and wrong, and that nobody sees which.

use proptest::prelude::*;
use proto::ddp::Stag;
use proto::mpa::{Place, Role, Terms};
use proto::rdmap::{Config, GUESSES_MAX, NoBuffer, Operation, PlaceAhead, Remote, SEAM_MAX};

use crate::lone::read_lone;
use crate::rig::{Sut, counting, fpdu, terms};

pub(crate) fn guessing() -> Config {
    Config {
        even_segments: true,
        send_window: 4 << 20,
        no_buffer: NoBuffer::Wait,
        place_ahead: PlaceAhead::Unseen,
        guess_max: 1 << 20,
        ..Config::default()
    }
}

/// One read of the first octets, `most` at most, as a driver makes it; how many it took, and whether it guessed.
pub(crate) fn read(sut: &mut Sut, octets: &[u8], most: usize) -> (usize, bool) {
    let octets = &octets[..octets.len().min(most)];
    if let Some(taken) = read_lone(sut, octets) {
        return (taken, false);
    }
    let is_inside = sut.engine.is_inside_segment();
    let ahead = sut.engine.ahead(&mut sut.memory, sut.now);
    let guesses = match ahead.is_some() || !is_inside {
        true => sut.engine.guess(&sut.memory).to_vec(),
        false => Vec::new(),
    };
    if ahead.is_none() && guesses.is_empty() {
        let mut taken = 0;
        for space in sut.engine.space() {
            let n = space.len().min(octets.len() - taken);
            space[..n].copy_from_slice(&octets[taken..taken + n]);
            taken += n;
        }
        sut.engine.handle_filled(taken);
        sut.engine.handle_arrivals(&mut sut.memory, sut.now);
        return (taken, false);
    }
    assert!(guesses.len() <= GUESSES_MAX);
    let mut rest = octets;
    let mut next = |len: usize| {
        let (now, later) = rest.split_at(len.min(rest.len()));
        rest = later;
        now
    };
    let buffers = &mut sut.memory.buffers;
    let mut put = |place: Place, octets: &[u8]| {
        let buffer = buffers.get_mut(&place.handle).unwrap();
        buffer[place.offset as usize..][..octets.len()].copy_from_slice(octets);
    };
    if let Some(ahead) = ahead {
        put(ahead.place, next(ahead.len as usize));
    }
    let mut seams = vec![0; SEAM_MAX * (guesses.len() + 1)];
    let mut slots = seams.chunks_mut(SEAM_MAX);
    for guess in &guesses {
        let seam = next(guess.seam);
        slots.next().unwrap()[..seam.len()].copy_from_slice(seam);
        put(guess.place, next(guess.len as usize));
    }
    let behind = next(SEAM_MAX);
    slots.next().unwrap()[..behind.len()].copy_from_slice(behind);
    let taken = octets.len() - rest.len();
    sut.engine
        .handle_guessed(taken, &seams, &mut sut.memory, sut.now);
    sut.engine.handle_arrivals(&mut sut.memory, sut.now);
    (taken, !guesses.is_empty())
}

/// Two ends of which one sends; the other has a receive of `room` octets for each message.
fn ends(crc: bool, lens: &[usize], room: usize) -> (Sut, Sut) {
    let terms = |role| Terms { crc, ..terms(role) };
    let mut sender = Sut::new(terms(Role::Initiator), guessing());
    let mut receiver = Sut::new(terms(Role::Responder), guessing());
    for (id, len) in (1..).zip(lens) {
        sender.send(id, counting(len + id as usize).split_off(id as usize));
        receiver.receive(id, room as u32);
    }
    (sender, receiver)
}

/// How many reads the octets took, with how many guesses.
fn read_all(sut: &mut Sut, octets: &[u8]) -> (usize, usize) {
    let (mut at, mut reads, mut guessed) = (0, 0, 0);
    while at < octets.len() {
        let (taken, has_guessed) = read(sut, &octets[at..], usize::MAX);
        assert!(taken > 0, "at {at} of {}", octets.len());
        (at, reads, guessed) = (at + taken, reads + 1, guessed + usize::from(has_guessed));
    }
    (reads, guessed)
}

fn expect_messages(sut: &mut Sut, lens: &[usize]) {
    let expected: Vec<_> = (1..).zip(lens.iter().map(|len| *len as u32)).collect();
    assert_eq!(sut.received(), expected);
    for (id, len) in (1..).zip(lens) {
        let sent = counting(len + id as usize).split_off(id as usize);
        assert!(sut.memory.buffers[&id][..*len] == sent, "message {id}");
    }
}

#[test]
fn messages_as_long_as_those_before_take_one_read() {
    const LENS: [usize; 6] = [200_000; 6];
    let (mut sender, mut receiver) = ends(true, &LENS, 200_000);
    let octets = sender.output();
    // Two messages say how long they are.
    let (known, rest) = octets.split_at(2 * octets.len() / LENS.len());
    assert_eq!(read_all(&mut receiver, known).1, 0);
    assert_eq!(
        read_all(&mut receiver, rest),
        (4, 4),
        "each with the next one's header"
    );
    expect_messages(&mut receiver, &LENS);
    // Nothing is moved but what came before anything was verified.
    assert!(
        receiver.memory.placed < 140 << 10,
        "{}",
        receiver.memory.placed
    );
}

#[test]
fn wrong_guesses_are_taken_back() {
    const LENS: [usize; 9] = [
        200_000, 200_000, 150_001, 200_000, 40, 200_000, 200_000, 400_000, 20_000,
    ];
    for crc in [false, true] {
        let (mut sender, mut receiver) = ends(crc, &LENS, 500_000);
        let octets = sender.output();
        let (_, guessed) = read_all(&mut receiver, &octets);
        assert!(guessed >= 2, "{guessed}");
        expect_messages(&mut receiver, &LENS);
    }
}

#[test]
fn no_guess_leaves_the_receive() {
    let (mut sender, mut receiver) = ends(true, &[200_000, 200_000], 200_000);
    read_all(&mut receiver, &sender.output());
    receiver.receive(3, 130_000);
    sender.send(3, counting(130_000));
    let octets = sender.output();
    read(&mut receiver, &octets, 100);
    receiver
        .engine
        .ahead(&mut receiver.memory, receiver.now)
        .unwrap();
    let guesses = receiver.engine.guess(&receiver.memory);
    let end = guesses
        .iter()
        .map(|guess| guess.place.offset + u64::from(guess.len));
    assert_eq!(end.max(), Some(130_000));
}

/// RFC 5041 lets the segments of a message come in any order: what has come is not written over.
#[test]
fn no_guess_where_segments_come_in_another_order() {
    let mut sut = Sut::with(guessing());
    for id in 1..=3 {
        sut.receive(id, 150_000);
    }
    let message = counting(150_000);
    let segment = |msn: u32, n: usize, last: bool| {
        let mo = n * 50_000;
        let control = if last { 0x41 } else { 0x01 };
        let mut ulpdu = vec![control, 0x43, 0, 0, 0, 0, 0, 0, 0, 0];
        ulpdu.extend(msn.to_be_bytes());
        ulpdu.extend((mo as u32).to_be_bytes());
        ulpdu.extend(&message[mo..mo + 50_000]);
        fpdu(&ulpdu)
    };
    let mut octets = Vec::new();
    for msn in 1..=2 {
        octets.extend(
            [
                segment(msn, 0, false),
                segment(msn, 1, false),
                segment(msn, 2, true),
            ]
            .concat(),
        );
    }
    octets.extend(
        [
            segment(3, 1, false),
            segment(3, 0, false),
            segment(3, 2, true),
        ]
        .concat(),
    );
    let (_, guessed) = read_all(&mut sut, &octets);
    assert_eq!(
        guessed, 1,
        "behind the second segment of the third message, but not over it"
    );
    assert_eq!(sut.received(), [(1, 150_000), (2, 150_000), (3, 150_000)]);
    for id in 1..=3 {
        assert!(sut.memory.buffers[&id] == message, "message {id}");
    }
}

#[test]
fn a_checksum_that_is_wrong_ends_it_behind_a_guess_too() {
    const LENS: [usize; 4] = [200_000; 4];
    let (mut sender, mut receiver) = ends(true, &LENS, 200_000);
    let mut octets = sender.output();
    let at = octets.len() - 60_000;
    octets[at] ^= 1;
    let mut rest = octets.as_slice();
    while !rest.is_empty() {
        let (taken, _) = read(&mut receiver, rest, usize::MAX);
        if taken == 0 {
            break;
        }
        rest = &rest[taken..];
    }
    receiver.expect_terminate("20 02 00 00");
}

/// Two ends of which one writes messages one behind the other, and tells of each.
fn writers(crc: bool, lens: &[usize], unseen: bool) -> (Sut, Sut) {
    let terms = |role| Terms { crc, ..terms(role) };
    let config = || Config {
        extensions: true,
        ..guessing()
    };
    let mut sender = Sut::new(terms(Role::Initiator), config());
    let mut receiver = Sut::new(terms(Role::Responder), config());
    let target = vec![0xa5; lens.iter().sum::<usize>() + 100];
    if unseen {
        receiver.memory.unseen_region(STAG, BASE, target);
    } else {
        receiver.memory.region(STAG, BASE, target);
    }
    let mut at = BASE;
    for (id, len) in (1..).zip(lens) {
        let to = Remote {
            stag: Stag(STAG),
            to: at,
        };
        sender.write(id, counting(len + id as usize).split_off(id as usize), to);
        let data = (*len as u64).to_be_bytes();
        let told = Operation::Immediate {
            data,
            solicited: false,
        };
        sender.post(100 + id, told);
        receiver.receive(id, 0);
        at += *len as u64;
    }
    (sender, receiver)
}

fn expect_written(sut: &mut Sut, lens: &[usize]) {
    let told: Vec<_> = (1..=lens.len() as u64).map(|id| (id, 0)).collect();
    assert_eq!(sut.received(), told);
    let mut rest = sut.memory.octets_of(STAG);
    for (id, len) in (1..).zip(lens) {
        let sent = counting(len + id).split_off(id);
        let (message, behind) = rest.split_at(*len);
        assert!(message == sent, "message {id}");
        rest = behind;
    }
    assert!(rest.iter().all(|octet| *octet == 0xa5));
}

#[test]
fn writes_that_nobody_sees_take_one_read_each() {
    const LENS: [usize; 6] = [200_000; 6];
    let (mut sender, mut receiver) = writers(true, &LENS, true);
    let octets = sender.output();
    let (known, rest) = octets.split_at(2 * octets.len() / LENS.len());
    assert_eq!(read_all(&mut receiver, known).1, 0);
    assert_eq!(
        read_all(&mut receiver, rest),
        (1 + 4, 4),
        "what tells of one, and the header of the next, come along with it"
    );
    expect_written(&mut receiver, &LENS);
    assert!(
        receiver.memory.placed < 140 << 10,
        "{}",
        receiver.memory.placed
    );
}

#[test]
fn writes_of_all_lengths_are_what_was_written() {
    const LENS: [usize; 9] = [
        200_000, 200_000, 150_001, 200_000, 40, 200_000, 200_000, 400_000, 20_000,
    ];
    for crc in [false, true] {
        let (mut sender, mut receiver) = writers(crc, &LENS, true);
        let (_, guessed) = read_all(&mut receiver, &sender.output());
        assert!(guessed >= 2, "{guessed}");
        expect_written(&mut receiver, &LENS);
    }
}

/// RFC 5044 section 6: what somebody may read is not written over before it is verified.
#[test]
fn a_write_that_may_be_seen_is_verified_first() {
    const LENS: [usize; 4] = [200_000; 4];
    let (mut sender, mut receiver) = writers(true, &LENS, false);
    let mut octets = sender.output();
    let at = octets.len() - 60_000;
    octets[at] ^= 1;
    let mut rest = octets.as_slice();
    while !rest.is_empty() {
        let (taken, has_guessed) = read(&mut receiver, rest, usize::MAX);
        assert!(!has_guessed);
        if taken == 0 {
            break;
        }
        rest = &rest[taken..];
    }
    let target = receiver.memory.octets_of(STAG);
    // The last message is of four segments, of which the third is wrong.
    let verified = 3 * LENS[0] + 2 * LENS[0] / 4;
    assert!(target[verified..].iter().all(|octet| *octet == 0xa5));
    receiver.expect_terminate("20 02 00 00");
}

#[test]
fn no_guess_leaves_what_may_be_written_unseen() {
    let (mut sender, mut receiver) = writers(true, &[200_000, 200_000], true);
    read_all(&mut receiver, &sender.output());
    let to = Remote {
        stag: Stag(STAG + 1),
        to: BASE,
    };
    receiver
        .memory
        .unseen_region(STAG + 1, BASE, vec![0xa5; 130_000]);
    sender.write(3, counting(130_000), to);
    let octets = sender.output();
    read(&mut receiver, &octets, 100);
    receiver
        .engine
        .ahead(&mut receiver.memory, receiver.now)
        .unwrap();
    let guesses = receiver.engine.guess(&receiver.memory);
    let end = guesses
        .iter()
        .map(|guess| guess.place.offset + u64::from(guess.len));
    assert_eq!(end.max(), Some(130_000));
}

#[test]
fn the_answer_to_a_read_is_where_it_was_guessed_to_be() {
    let mut asker = Sut::new(terms(Role::Initiator), guessing());
    let mut owner = Sut::new(terms(Role::Responder), guessing());
    owner.memory.region(STAG, BASE, counting(400_000));
    let remote = |stag, to| Remote {
        stag: Stag(stag),
        to,
    };
    asker.read(1, 400_000, remote(9, 0), remote(STAG, BASE));
    owner.feed(&asker.output());
    let (_, guessed) = read_all(&mut asker, &owner.output());
    assert_eq!(guessed, 1);
    assert!(asker.memory.buffers[&1] == counting(400_000));
    // What came along with the first header, and nothing that had strayed.
    assert!(asker.memory.placed < 16 << 10, "{}", asker.memory.placed);
}

const STAG: u32 = 7;
const BASE: u64 = 0x1000;

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_several_segments_at_a_time_is_what_was_sent(
        lens in proptest::collection::vec(prop_oneof![
            6 => Just(200_000usize), 1 => Just(199_999usize), 1 => 0usize..100, 2 => 16_000usize..400_000,
        ], 1..9),
        crc: bool,
        is_late: bool,
        steps in proptest::collection::vec(prop_oneof![1usize..100, 10_000usize..90_000, Just(usize::MAX)], 1..9),
    ) {
        let terms = |role| Terms { crc, ..terms(role) };
        let mut sender = Sut::new(terms(Role::Initiator), guessing());
        let mut receiver = Sut::new(terms(Role::Responder), guessing());
        for (id, len) in (1..).zip(&lens) {
            sender.send(id, counting(len + id as usize).split_off(id as usize));
            if !is_late {
                receiver.receive(id, 400_000);
            }
        }
        let octets = sender.output();
        let (mut at, mut posted) = (0, 0);
        let mut steps = steps.iter().cycle();
        let mut idle = 0;
        while idle < 3 {
            let (taken, _) = read(&mut receiver, &octets[at..], *steps.next().unwrap());
            at += taken;
            idle = if taken == 0 { idle + 1 } else { 0 };
            if is_late && receiver.engine.is_blocked() {
                posted += 1;
                receiver.receive(posted, 400_000);
                receiver.engine.handle_arrivals(&mut receiver.memory, receiver.now);
                idle = 0;
            }
        }
        prop_assert_eq!(at, octets.len());
        expect_messages(&mut receiver, &lens);
    }

    /// Under checksums one wrong octet, wherever it is, ends the stream, and whatever was delivered is whole. Nothing else is written to.
    #[test]
    fn no_wrong_octet_is_delivered_behind_a_guess(
        lens in proptest::collection::vec(prop_oneof![4 => Just(200_000usize), 1 => 16_000usize..400_000], 3..7),
        wrong: proptest::sample::Index,
        flip in 1u8..=255,
        step in prop_oneof![30_000usize..90_000, Just(usize::MAX)],
    ) {
        let (mut sender, mut receiver) = ends(true, &lens, 400_000);
        receiver.memory.buffers.insert(0xdead, counting(400_000));
        let mut octets = sender.output();
        let at = wrong.index(octets.len());
        octets[at] ^= flip;
        let mut rest = octets.as_slice();
        while !rest.is_empty() {
            let (taken, _) = read(&mut receiver, rest, step);
            if taken == 0 {
                break;
            }
            rest = &rest[taken..];
        }
        let received = receiver.received();
        prop_assert!(received.len() < lens.len());
        for ((id, len), (expected, sent_len)) in received.iter().zip((1..).zip(&lens)) {
            prop_assert_eq!((*id, *len as usize), (expected, *sent_len));
            let sent = counting(*len as usize + *id as usize).split_off(*id as usize);
            prop_assert!(receiver.memory.buffers[id][..sent.len()] == sent, "message {}", id);
        }
        prop_assert!(receiver.memory.buffers[&0xdead] == counting(400_000));
    }

    #[test]
    fn so_is_what_is_asked_for(
        lens in proptest::collection::vec(1u64..400_000, 1..5),
        crc: bool,
        step in prop_oneof![1000usize..90_000, Just(usize::MAX)],
    ) {
        let terms = |role| Terms { crc, ..terms(role) };
        let mut one = Sut::new(terms(Role::Initiator), guessing());
        let mut other = Sut::new(terms(Role::Responder), guessing());
        let source = Remote { stag: Stag(0x77), to: 0x1000 };
        other.memory.region(0x77, 0x1000, counting(400_000));
        for (id, len) in (1..).zip(&lens) {
            one.read(id, *len, Remote { stag: Stag(id as u32), to: 9 }, source);
        }
        loop {
            let there = one.output();
            other.feed(&there);
            let mut back = other.output();
            if there.is_empty() && back.is_empty() {
                break;
            }
            while !back.is_empty() {
                let (taken, _) = read(&mut one, &back, step);
                prop_assert!(taken > 0);
                back.drain(..taken);
            }
        }
        let done: Vec<_> = (1..).zip(lens.iter().copied()).collect();
        prop_assert_eq!(one.completed(), done);
        for (id, len) in (1..).zip(&lens) {
            prop_assert!(one.memory.buffers[&id] == counting(*len as usize));
        }
    }
}
