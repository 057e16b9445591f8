//! What an iWARP peer can send to one who reads long segments to where they should belong.

use proto::mpa::{Depths, Framer, Place, Role, RtrSet, Terms};
use proto::rdmap::{
    Action, Config, Engine, Operation, PlaceAhead, Receive, Remote, SEAM_MAX, Work, WorkId,
};

use super::iwarp::{GUARD, NOW, READ, RECEIVED, REGION, framed};
use crate::plain::Plain;

/// Well framed segments, each behind a length in an octet and before many octets of payload: the first octet says how they are read.
///
/// # Panics
/// When whoever guesses where they belong comes to anything else than whoever takes one after the other.
pub fn fuzz_rdmap_ahead(bytes: &[u8]) {
    let Some((&how, mut rest)) = bytes.split_first() else {
        return;
    };
    let crc = how & 1 == 0;
    let step = [usize::MAX, 40_000, 1000][usize::from(how >> 1) % 3];
    let mut framer = Framer::new(false, crc);
    let mut stream = Vec::new();
    let mut segments = 0;
    while let Some((&len, after)) = rest.split_first()
        && segments < SEGMENTS_MAX
    {
        let (begin, after) = after.split_at(after.len().min(len.into()));
        rest = after;
        segments += 1;
        let payload = (0..PAYLOAD).map(|at| (at + segments) as u8);
        let ulpdu: Vec<u8> = begin.iter().copied().chain(payload).collect();
        stream.extend(framed(&mut framer, &ulpdu, &Plain::default()));
    }
    let mut plain = End::new(crc, PlaceAhead::Never);
    let mut guesser = End::new(crc, PlaceAhead::Unseen);
    let expected = plain.read_all(&stream, usize::MAX);
    assert_eq!(guesser.read_all(&stream, step), expected);
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
    fn read_all(&mut self, stream: &[u8], step: usize) -> Vec<Action> {
        let mut rest = stream;
        while !rest.is_empty() {
            let taken = self.read(&rest[..rest.len().min(step)]);
            self.engine.handle_arrivals(&mut self.memory, NOW);
            if taken == 0 {
                break;
            }
            rest = &rest[taken..];
        }
        self.engine.handle_fin(&mut self.memory, NOW);
        std::iter::from_fn(|| self.engine.poll_action()).collect()
    }

    /// One read of a socket that has these octets; how many it took.
    fn read(&mut self, octets: &[u8]) -> usize {
        let Some(ahead) = self.engine.ahead(&mut self.memory, NOW) else {
            return self.engine.handle_octets(octets);
        };
        let guesses = self.engine.guess(&self.memory).to_vec();
        let mut left = octets;
        let mut next = |len: usize| {
            let (now, later) = left.split_at(len.min(left.len()));
            left = later;
            now
        };
        let mut seams = vec![0; SEAM_MAX * (guesses.len() + 1)];
        let mut slots = seams.chunks_mut(SEAM_MAX);
        self.memory.put(ahead.place, next(ahead.len as usize));
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
    seeds
}

/// Octets of each segment: long enough for guesses.
const PAYLOAD: usize = 17_000;
const READ_LEN: usize = 2 * PAYLOAD;
const ROOM: usize = 4 * PAYLOAD;
const SEGMENTS_MAX: usize = 32;
