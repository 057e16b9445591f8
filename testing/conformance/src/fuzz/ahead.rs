//! What an iWARP peer can send to one who reads long segments to where they should belong.

use proto::mpa::{Depths, Framer, Place, Role, RtrSet, Source, Terms};
use proto::rdmap::{
    Action, Config, Engine, Operation, PlaceAhead, Receive, Received, Remote, SEAM_MAX, SEND_LEAD,
    Work, WorkId,
};

use super::iwarp::{GUARD, NOW, READ, RECEIVED, REGION, framed};
use crate::plain::Plain;

/// Well framed segments, each behind a length in an octet and before many octets of payload: the first octet says how many, and how they are read.
///
/// # Panics
/// When whoever guesses where they belong comes to anything else than whoever takes one after the other.
pub fn fuzz_rdmap_ahead(bytes: &[u8]) {
    let Some((&how, mut rest)) = bytes.split_first() else {
        return;
    };
    let crc = how & 1 == 0;
    let is_middle = how & MIDDLE > 0;
    let step = [usize::MAX, 40_000, 1000][usize::from((how & !MIDDLE) >> 1) % 3];
    let payload_len = if is_middle { PAYLOAD_MIDDLE } else { PAYLOAD };
    let mut framer = Framer::new(false, crc);
    // What has come when the socket is read: all, or one after the other.
    let mut records = Vec::new();
    let mut segments = 0;
    while let Some((&len, after)) = rest.split_first()
        && segments < SEGMENTS_MAX
    {
        let (begin, after) = after.split_at(after.len().min(len.into()));
        rest = after;
        segments += 1;
        let payload = (0..payload_len).map(|at| (at + segments) as u8);
        let ulpdu: Vec<u8> = begin.iter().copied().chain(payload).collect();
        records.push(framed(&mut framer, &ulpdu, &Plain::default()));
    }
    if !is_middle {
        records = vec![records.concat()];
    }
    let mut plain = End::new(crc, PlaceAhead::Never);
    let mut guesser = End::new(crc, PlaceAhead::Unseen);
    let expected = plain.read_all(&records, usize::MAX);
    assert_eq!(guesser.read_all(&records, step), expected);
    let mut is_whole = true;
    for action in &expected {
        match action {
            Action::Received(received) => guesser.agrees(&plain, received.id.0, received.len),
            Action::Completed(done) if done.outcome.is_ok() => {
                guesser.agrees(&plain, done.id.0, READ_LEN as u32);
            }
            Action::Failed(_) => is_whole = false,
            _ => {}
        }
    }
    guesser.agrees(&plain, GUARD, ROOM as u32);
    if crc || is_whole {
        guesser.agrees(&plain, REGION, ROOM as u32);
    }
}

struct End {
    engine: Engine,
    memory: Plain,
}

impl End {
    fn new(crc: bool, place_ahead: PlaceAhead) -> Self {
        let terms = Terms {
            role: Role::Initiator,
            crc,
            send_markers: false,
            receive_markers: false,
            depths: Depths { ird: 2, ord: 2 },
            rtr: RtrSet::EMPTY,
        };
        let config = Config {
            extensions: true,
            place_ahead,
            guess_max: 448 << 10,
            ..Config::default()
        };
        let mut engine = Engine::new(&terms, config);
        let mut memory = Plain::default();
        for number in [REGION, GUARD, READ].into_iter().chain(receives()) {
            memory.0.insert(number, vec![0x5a; ROOM]);
        }
        for id in receives() {
            let receive = Receive {
                id: WorkId(id),
                into: Place::new(id),
                capacity: ROOM as u32,
            };
            engine.post_receive(receive).expect("it receives");
        }
        let sink = Remote {
            stag: proto::ddp::Stag(0x51),
            to: 0,
        };
        let read = Work {
            id: WorkId(READ),
            operation: Operation::Read {
                into: Place::new(READ),
                len: READ_LEN as u64,
                sink,
                source: sink,
            },
            fence: false,
        };
        engine.post(read).expect("it may read");
        let _asked = memory.said(&mut engine);
        Self { engine, memory }
    }

    /// What it says of all that, and of the end behind it.
    fn read_all(&mut self, records: &[Vec<u8>], step: usize) -> Vec<Action> {
        let mut actions = Vec::new();
        for record in records {
            let mut rest = record.as_slice();
            while !rest.is_empty() {
                let octets = &rest[..rest.len().min(step)];
                let taken = match self.read_lone(octets, &mut actions) {
                    Some(taken) => taken,
                    None => self.read(octets),
                };
                self.engine.handle_arrivals(&mut self.memory, NOW);
                actions.extend(std::iter::from_fn(|| self.engine.poll_action()));
                if taken == 0 {
                    break;
                }
                rest = &rest[taken..];
            }
        }
        self.engine.handle_fin(&mut self.memory, NOW);
        actions.extend(std::iter::from_fn(|| self.engine.poll_action()));
        actions
    }

    /// One read of the message that should be next, if there is one.
    fn read_lone(&mut self, octets: &[u8], actions: &mut Vec<Action>) -> Option<usize> {
        let len = self.engine.expects_lone()?;
        let awaits = |id: &u64| self.engine.awaits_lone(WorkId(*id), len);
        let id = receives().find(awaits)?;
        let mut left = octets;
        let mut next = |len: usize| {
            let (now, later) = left.split_at(len.min(left.len()));
            left = later;
            now
        };
        let mut seams = [0; 2 * SEAM_MAX];
        let before = next(SEND_LEAD);
        seams[..before.len()].copy_from_slice(before);
        self.memory.put(Place::new(id), next(len as usize));
        let behind = next(SEAM_MAX);
        seams[SEAM_MAX..][..behind.len()].copy_from_slice(behind);
        let taken = octets.len() - left.len();
        let memory = &self.memory;
        let digest = |crc: &mut _| memory.digest(Place::new(id), len, crc).is_ok();
        let is_taken = self
            .engine
            .take_lone(WorkId(id), len, taken, &seams, digest);
        if is_taken {
            actions.push(Action::Received(Received {
                id: WorkId(id),
                len,
                solicited: false,
                invalidated: None,
                immediate: None,
                written: 0,
            }));
        } else {
            self.engine
                .handle_guessed(taken, &seams, &mut self.memory, NOW);
        }
        Some(taken)
    }

    /// One read of a socket that has these octets; how many it took.
    fn read(&mut self, octets: &[u8]) -> usize {
        let is_inside = self.engine.is_inside_segment();
        let ahead = self.engine.ahead(&mut self.memory, NOW);
        let guesses = match ahead.is_some() || !is_inside {
            true => self.engine.guess(&self.memory).to_vec(),
            false => Vec::new(),
        };
        if ahead.is_none() && guesses.is_empty() {
            return self.engine.handle_octets(octets);
        }
        let mut left = octets;
        let mut next = |len: usize| {
            let (now, later) = left.split_at(len.min(left.len()));
            left = later;
            now
        };
        let mut seams = vec![0; SEAM_MAX * (guesses.len() + 1)];
        let mut slots = seams.chunks_mut(SEAM_MAX);
        if let Some(ahead) = ahead {
            self.memory.put(ahead.place, next(ahead.len as usize));
        }
        for guess in &guesses {
            let seam = next(guess.seam);
            slots.next().expect("one each")[..seam.len()].copy_from_slice(seam);
            self.memory.put(guess.place, next(guess.len as usize));
        }
        let behind = next(SEAM_MAX);
        slots.next().expect("and one")[..behind.len()].copy_from_slice(behind);
        let taken = octets.len() - left.len();
        self.engine
            .handle_guessed(taken, &seams, &mut self.memory, NOW);
        taken
    }

    fn agrees(&self, other: &Self, number: u64, len: u32) {
        let [ours, theirs] = [self, other].map(|end| end.memory.0.get(&number));
        let [ours, theirs] =
            [ours, theirs].map(|octets| octets.and_then(|octets| octets.get(..len as usize)));
        assert!(ours == theirs, "{number:#x}");
    }
}

fn receives() -> std::ops::Range<u64> {
    RECEIVED..RECEIVED + 4
}

/// Two messages of three segments, an answer of two, and one message more; and what may go wrong with them.
pub(super) fn seeds() -> Vec<(String, Vec<u8>)> {
    let send = |msn: u32, n: u32, last: bool| {
        let mut head = vec![if last { 0x41 } else { 0x01 }, 0x43, 0, 0, 0, 0, 0, 0, 0, 0];
        head.extend(msn.to_be_bytes());
        head.extend((n * PAYLOAD as u32).to_be_bytes());
        head
    };
    let answer = |n: u64, last: bool| {
        let mut head = vec![if last { 0xc1 } else { 0x81 }, 0x42, 0, 0, 0, 0x51];
        head.extend((n * PAYLOAD as u64).to_be_bytes());
        head
    };
    let write = |last: bool| {
        let mut head = vec![if last { 0xc1 } else { 0x81 }, 0x40];
        head.extend((REGION as u32).to_be_bytes());
        head.extend(0u64.to_be_bytes());
        head
    };
    let message = |msn| [0, 1, 2].map(|n| send(msn, n, n == 2)).to_vec();
    let honest = [
        message(1),
        message(2),
        vec![answer(0, false), answer(1, true)],
        vec![write(false), write(true)],
        message(3),
    ]
    .concat();
    let without = |at: usize| {
        let mut all = honest.clone();
        all.remove(at);
        all
    };
    let mut swapped = honest.clone();
    swapped.swap(11, 12);
    let mut interleaved = honest.clone();
    interleaved.swap(5, 6);
    let conversations = [
        ("honest", honest.clone()),
        ("one_left_out", without(11)),
        ("swapped", swapped),
        ("an_answer_within_a_message", interleaved),
        (
            "messages_only",
            [message(1), message(2), message(3)].concat(),
        ),
    ];
    let mut seeds = Vec::new();
    for (name, heads) in conversations {
        for (how, way) in [(0u8, "crc"), (1, "plain"), (2, "crc_in_pieces")] {
            let entries = heads
                .iter()
                .flat_map(|head| std::iter::once(head.len() as u8).chain(head.iter().copied()));
            let bytes = std::iter::once(how).chain(entries).collect();
            seeds.push((format!("{name}_{way}"), bytes));
        }
    }
    // Messages of one segment each.
    let entry = |head: &[u8]| [&[head.len() as u8], head].concat();
    let lone = |changed: usize, octet: usize| {
        let mut heads = [1, 2, 3, 4].map(|msn| send(msn, 0, true));
        heads[changed][octet] ^= 1;
        heads
            .iter()
            .flat_map(|head| entry(head))
            .collect::<Vec<_>>()
    };
    let told = [1, 2, 3].map(|msn| send(msn, 0, true)).to_vec();
    let interrupted = [told, vec![write(true), send(4, 0, true)]].concat();
    let interrupted = interrupted.iter().flat_map(|head| entry(head)).collect();
    let middle = [
        ("lone", lone(0, 5)),
        ("lone_of_another_number", lone(2, 13)),
        ("lone_behind_others", lone(3, 17)),
        ("lone_of_another_kind", lone(2, 1)),
        ("lone_interrupted", interrupted),
    ];
    for (name, entries) in middle {
        for (how, way) in [(0u8, "crc"), (1, "plain"), (4, "crc_in_pieces")] {
            let bytes = [vec![MIDDLE | how], entries.clone()].concat();
            seeds.push((format!("{name}_{way}"), bytes));
        }
    }
    seeds
}

/// Says that what comes are segments of [`PAYLOAD_MIDDLE`], one at a time.
const MIDDLE: u8 = 0x40;
const PAYLOAD_MIDDLE: usize = 3000;
/// Octets of each segment: long enough for guesses.
const PAYLOAD: usize = 17_000;
const READ_LEN: usize = 2 * PAYLOAD;
const ROOM: usize = 4 * PAYLOAD;
const SEGMENTS_MAX: usize = 32;
