//! Peers whose long segments are not what one would guess: changed, repeated, left out, in another order. Whoever reads several of them at once, to
//! where they should belong, comes to the same as whoever takes one after the other.

use proto::ddp::Stag;
use proto::mpa::{Role, Terms};
use proto::rdmap::{Action, Config, PlaceAhead, Remote};

use crate::guess::{guessing, read};
use crate::hostile::Dice;
use crate::rig::{Sut, counting, fpdu, terms};

/// One end, before the peer says anything: receives, answers that are waited for, and regions of which one is unseen.
fn end(crc: bool, place_ahead: PlaceAhead) -> Sut {
    let terms = Terms {
        crc,
        ..terms(Role::Initiator)
    };
    let config = Config {
        extensions: true,
        no_buffer: proto::rdmap::NoBuffer::Terminate,
        place_ahead,
        ..guessing()
    };
    let mut sut = Sut::new(terms, config);
    for id in 1..=RECEIVES {
        sut.receive(id, ROOM as u32);
    }
    for id in READS {
        let sink = Remote {
            stag: Stag(id as u32),
            to: 0,
        };
        let source = Remote {
            stag: Stag(1),
            to: 0,
        };
        sut.read(id, READ_LEN as u64, sink, source);
    }
    sut.memory.unseen_region(UNSEEN, 0, vec![FRESH; REGION_LEN]);
    sut.memory.region(SEEN, 0, vec![FRESH; REGION_LEN]);
    sut.memory.region(LOCKED, 0, counting(REGION_LEN));
    sut.memory.regions.get_mut(&LOCKED).unwrap().write = false;
    sut.output();
    sut
}

fn tagged(ulp: u8, last: bool, stag: u32, to: u64) -> Vec<u8> {
    let control = if last { 0xc1 } else { 0x81 };
    let mut ulpdu = vec![control, ulp];
    ulpdu.extend(stag.to_be_bytes());
    ulpdu.extend(to.to_be_bytes());
    ulpdu
}

fn untagged(ulp: u8, last: bool, msn: u32, mo: u32) -> Vec<u8> {
    let control = if last { 0x41 } else { 0x01 };
    let mut ulpdu = vec![control, ulp, 0, 0, 0, 0, 0, 0, 0, 0];
    ulpdu.extend(msn.to_be_bytes());
    ulpdu.extend(mo.to_be_bytes());
    ulpdu
}

/// The segments of honest messages, most of them as long as each other.
fn conversation(dice: &mut Dice) -> Vec<Vec<u8>> {
    let usual = [1100, 4096, 20_000, 64_000, 130_000, 200_000][dice.below(6)];
    let cut = [20_000, 50_000, 64_700][dice.below(3)];
    let (mut msn, mut to, mut reads) = (1, 0, READS);
    let mut ulpdus = Vec::new();
    for _ in 0..4 + dice.below(6) {
        let len = if dice.below(8) == 0 {
            dice.below(ROOM)
        } else {
            usual
        };
        // Where most are messages of one segment, what comes next is known.
        let kinds = if usual < 16_000 { 40 } else { 5 };
        let kind = match dice.below(kinds) {
            kind @ 0..5 => kind,
            _ => 0,
        };
        let read = (kind == 4).then(|| reads.next()).flatten();
        let len = if read.is_some() { READ_LEN } else { len };
        let payload = counting(len + msn as usize).split_off(msn as usize);
        let mut at = 0;
        loop {
            let piece = &payload[at..len.min(at + cut)];
            let last = at + piece.len() == len;
            let mut ulpdu = match (read, kind) {
                (Some(id), _) => tagged(0x42, last, id as u32, at as u64),
                (None, 0..=2) => untagged(0x43, last, msn, at as u32),
                (None, 3) => tagged(0x40, last, UNSEEN, (to + at) as u64),
                (None, _) => tagged(0x40, last, SEEN, (to + at) as u64),
            };
            ulpdu.extend(piece);
            ulpdus.push(ulpdu);
            at += piece.len();
            if last {
                break;
            }
        }
        match (read, kind) {
            (None, 3) => {
                let mut told = untagged(0x48, true, msn, 0);
                told.extend(len.to_be_bytes());
                ulpdus.push(told);
                (msn, to) = (msn + 1, to + len);
            }
            (None, 0..=2) => msn += 1,
            _ => {}
        }
    }
    ulpdus
}

fn change(ulpdus: &mut Vec<Vec<u8>>, dice: &mut Dice) {
    let at = dice.below(ulpdus.len());
    let Some(ulpdu) = ulpdus.get_mut(at) else {
        return;
    };
    match dice.below(8) {
        0 => ulpdu[0] ^= 0x40,
        1 => {
            let octet = dice.below(18.min(ulpdu.len()));
            ulpdu[octet] ^= 1 << dice.below(8);
        }
        // The lower half of MO, or of TO.
        2 => {
            let end = if ulpdu[0] & 0x80 == 0 { 18 } else { 14 };
            let octet = end - 1 - dice.below(3);
            ulpdu[octet] = dice.next() as u8;
        }
        3 => ulpdu.truncate(18 + dice.below(ulpdu.len())),
        4 => {
            let more = dice.below(30_000);
            ulpdu.resize((ulpdu.len() + more).min(65_000), 0x5a);
        }
        5 => {
            let again = ulpdu.clone();
            ulpdus.insert(dice.below(ulpdus.len()), again);
        }
        6 => {
            let other = dice.below(ulpdus.len());
            ulpdus.swap(at, other);
        }
        _ => drop(ulpdus.remove(at)),
    }
}

/// Lets it read all of these records, in such steps, of which 0 is to the end of a record, and the end behind it; what it says of it.
fn suffer(sut: &mut Sut, records: &[Vec<u8>], steps: &[usize]) -> Vec<Action> {
    let octets = records.concat();
    let ends = records.iter().scan(0, |end, record| {
        *end += record.len();
        Some(*end)
    });
    let ends: Vec<_> = ends.collect();
    let mut at = 0;
    for step in steps.iter().cycle() {
        let step = match step {
            0 => ends.iter().find(|end| **end > at).map_or(0, |end| end - at),
            step => *step,
        };
        let (taken, _) = read(sut, &octets[at..], step);
        at += taken;
        if at == octets.len() || taken == 0 {
            break;
        }
    }
    sut.engine.handle_fin(&mut sut.memory, sut.now);
    sut.actions()
}

/// Whether the stream was whole, and how many messages were taken by themselves.
fn compare(seed: u64) -> (bool, usize) {
    let mut dice = Dice(seed);
    let crc = dice.below(4) > 0;
    let mut ulpdus = conversation(&mut dice);
    let changes = dice.below(4);
    for _ in 0..changes {
        change(&mut ulpdus, &mut dice);
    }
    let mut records: Vec<_> = ulpdus.iter().map(|ulpdu| fpdu(ulpdu)).collect();
    if dice.below(6) == 0 && !records.is_empty() {
        let number = dice.below(records.len());
        let at = dice.below(records[number].len());
        records[number][at] ^= 1 << dice.below(8);
    }
    let steps: Vec<_> = (0..1 + dice.below(6))
        .map(|_| match dice.below(6) {
            0 => 1 + dice.below(200),
            1 => 1 + dice.below(90_000),
            2..5 => 0,
            _ => usize::MAX,
        })
        .collect();
    let mut plain = end(crc, PlaceAhead::Never);
    let mut guesser = end(crc, PlaceAhead::Unseen);
    let expected = suffer(&mut plain, &records, &[usize::MAX]);
    let actions = suffer(&mut guesser, &records, &steps);
    assert_eq!(actions, expected, "seed {seed}");
    assert_eq!(guesser.output(), plain.output(), "seed {seed}");
    let is_same = |handle: u64, len: usize| {
        let [ours, theirs] = [&guesser, &plain].map(|sut| &sut.memory.buffers[&handle][..len]);
        assert!(ours == theirs, "seed {seed}: {handle:#x}");
    };
    let mut is_whole = true;
    for action in &expected {
        match action {
            Action::Received(received) => is_same(received.id.0, received.len as usize),
            Action::Completed(done) if done.outcome.is_ok() => is_same(done.id.0, READ_LEN),
            Action::Failed(_) => is_whole = false,
            _ => {}
        }
    }
    let handle = |stag: u32| 0x1000 + u64::from(stag);
    is_same(handle(LOCKED), REGION_LEN);
    // What may be seen has been verified first, wherever the stream ends.
    if crc || is_whole {
        is_same(handle(SEEN), REGION_LEN);
    }
    if is_whole && changes == 0 {
        // Behind what was written a guess may have left something.
        let [ours, theirs] = [&guesser, &plain].map(|sut| sut.memory.octets_of(UNSEEN));
        let mut written = theirs
            .iter()
            .zip(ours)
            .filter(|(octet, _)| **octet != FRESH);
        assert!(written.all(|(theirs, ours)| theirs == ours), "seed {seed}");
    }
    (is_whole, guesser.lone)
}

#[test]
fn c135_segments_that_are_not_where_they_were_guessed() {
    let wanted = std::env::var("IWARP_CASES").ok();
    let cases = wanted.map_or(400, |cases| cases.parse().expect("a number of cases"));
    let (mut whole, mut lone) = (0, 0);
    for seed in 0..cases {
        let (is_whole, taken) = compare(seed);
        whole += u64::from(is_whole);
        lone += taken as u64;
    }
    assert!(lone > cases / 10, "{lone}");
    // Enough of them end in either way.
    assert!((cases / 10..cases * 9 / 10).contains(&whole), "{whole}");
}

const RECEIVES: u64 = 9;
const ROOM: usize = 250_000;
const READS: std::ops::Range<u64> = 0x51..0x54;
const READ_LEN: usize = 150_000;
const REGION_LEN: usize = 1_000_000;
const FRESH: u8 = 0xa5;
const UNSEEN: u32 = 0x77;
const SEEN: u32 = 0x78;
const LOCKED: u32 = 0x79;
