//! What no peer may bring about (17.8), however it changes what others say.

use std::collections::BTreeSet;

use proto::mpa::{FPDU_LEN_MAX, Framer, Handshake, MarkerCheck, Options, Role, Terms};
use proto::rdmap::{Action, Config, Engine, Failure, Line, NoBuffer, PlaceAhead};

use crate::rig::{NOW, Plain, Sut, counting, fpdu, framed, hex, terms};

/// Numbers from a seed (SplitMix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// The conversations that changes begin with: a name, and ULPDUs as they come.
pub(crate) fn corpus() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    include_str!("corpus.txt")
        .trim_end()
        .split("\n\n")
        .map(|entry| {
            let mut lines = entry.lines();
            let name = lines.next().expect("a name");
            (name, lines.map(hex).collect())
        })
        .collect()
}

/// An engine that a peer may do a little with: regions, receives, a Read and an atomic under way.
pub(crate) fn victim(dice: &mut Dice, markers: bool) -> Sut {
    let role = [Role::Initiator, Role::Responder][dice.below(2)];
    let terms = Terms {
        crc: true,
        receive_markers: markers,
        send_markers: dice.below(2) == 0,
        ..terms(role)
    };
    let config = Config {
        receive_buffer: 0,
        mulpdu: [128, 1442, 64768][dice.below(3)],
        extensions: dice.below(2) == 0,
        marker_check: [MarkerCheck::On, MarkerCheck::Off][dice.below(2)],
        no_buffer: [NoBuffer::Terminate, NoBuffer::Wait][dice.below(2)],
        place_ahead: PlaceAhead::Always,
        ahead_min: 1,
        ..Config::default()
    };
    let mut sut = Sut::new(terms, config);
    sut.memory.region(0x77, 0x1000, counting(64));
    sut.memory.region(0x78, 0, counting(64));
    sut.memory.regions.get_mut(&0x78).unwrap().write = false;
    sut.memory.region(0x79, 0, counting(64));
    sut.memory.regions.get_mut(&0x79).unwrap().associated = false;
    sut.memory.region(0x7a, 0, counting(64));
    sut.memory.regions.get_mut(&0x7a).unwrap().read = false;
    // What is no region of this peer's, and must stay as it is.
    sut.memory.buffers.insert(0xdead, counting(64));
    for id in 1..=3 {
        sut.receive(id, 16);
    }
    let (stag, to) = (proto::ddp::Stag(0x51), 0x500);
    let sink = proto::rdmap::Remote { stag, to };
    sut.read(9, 8, sink, sink);
    sut.output();
    sut
}

/// Lets it read everything, now and then to the place ahead, and checks what must hold.
/// Returns what became of it.
fn suffer(sut: &mut Sut, mut stream: &[u8], dice: &mut Dice) -> Option<Failure> {
    while !stream.is_empty() {
        let most = 1 + dice.below(stream.len());
        let ahead = sut.engine.ahead(&mut sut.memory, sut.now);
        let taken = match ahead {
            Some(ahead) => {
                let n = most.min(ahead.len as usize);
                proto::ddp::Memory::place(&mut sut.memory, ahead.place, &stream[..n]).unwrap();
                sut.engine.handle_ahead(n as u32, &mut sut.memory, sut.now);
                n
            }
            None => sut.engine.handle_octets(&stream[..most]),
        };
        stream = &stream[taken..];
        sut.engine.handle_arrivals(&mut sut.memory, sut.now);
        if dice.below(4) == 0 {
            let most = dice.below(200);
            sut.output_some(most);
        }
        if taken == 0 {
            assert!(
                sut.engine.is_blocked(),
                "it takes nothing in, and does not say why"
            );
            break;
        }
    }
    if dice.below(2) == 0 {
        sut.engine.handle_fin(&mut sut.memory, sut.now);
    } else {
        sut.engine.handle_reset(sut.now);
    }
    let room: usize = sut.engine.space().iter().map(|space| space.len()).sum();
    assert!(room <= FPDU_LEN_MAX);
    assert!(sut.output().len() < 1 << 20);
    assert_eq!(sut.memory.buffers[&0xdead], counting(64));
    assert_eq!(sut.memory.buffers[&0x1078], counting(64));
    let actions = sut.actions();
    assert!(actions.len() < 100);
    actions.into_iter().find_map(|action| match action {
        Action::Failed(failure) => Some(failure),
        _ => None,
    })
}

pub(crate) fn change(ulpdu: &mut Vec<u8>, dice: &mut Dice) {
    for _ in 0..dice.below(4) {
        let at = dice.below(ulpdu.len());
        match dice.below(7) {
            0 => ulpdu.truncate(at),
            1 => ulpdu.resize(at + dice.below(200), 0x5a),
            2 => {
                if let Some(octet) = ulpdu.get_mut(at) {
                    *octet ^= 1 << dice.below(8);
                }
            }
            // Headers are where it matters.
            3 | 4 => {
                let at = at.min(dice.below(50));
                if let Some(octet) = ulpdu.get_mut(at) {
                    *octet = [0, 1, 0x7f, 0x80, 0xff, 0x40, 0x41, 0xc1][dice.below(8)];
                }
            }
            5 => {
                let piece = ulpdu[at..].to_vec();
                ulpdu.extend(piece);
            }
            _ => {
                let word = (dice.next() as u32).to_be_bytes();
                for (to, from) in ulpdu.iter_mut().skip(at).zip(word) {
                    *to = from;
                }
            }
        }
    }
}

#[test]
fn the_corpus_is_what_it_says() {
    for (name, ulpdus) in corpus() {
        for ulpdu in &ulpdus {
            let line = Line(ulpdu).to_string();
            assert!(!line.starts_with("malformed"), "{name}: {line}");
        }
    }
}

#[test]
fn c135_changed_segments_with_good_checksums() {
    let corpus = corpus();
    let mut met = BTreeSet::new();
    for seed in 0..cases() {
        let mut dice = Dice(seed);
        let markers = dice.below(2) == 0;
        let mut sut = victim(&mut dice, markers);
        let mut framer = Framer::new(markers, true);
        let mut stream = Vec::new();
        for _ in 0..1 + dice.below(3) {
            let (_, ulpdus) = &corpus[dice.below(corpus.len())];
            for ulpdu in ulpdus {
                let mut ulpdu = ulpdu.clone();
                if dice.below(2) == 0 {
                    change(&mut ulpdu, &mut dice);
                }
                ulpdu.truncate(60_000);
                stream.extend(framed(&mut framer, &ulpdu));
            }
        }
        if let Some(Failure::Violation { code, .. }) = suffer(&mut sut, &stream, &mut dice) {
            met.insert(code.to_string());
        }
    }
    // The changes get everywhere where a peer can do wrong.
    for offence in include_str!("offences.txt").lines() {
        assert!(met.contains(offence), "{offence} is not among {met:#?}");
    }
}

#[test]
fn c134_changed_octets_of_the_stream() {
    let corpus = corpus();
    for seed in 0..cases() {
        let mut dice = Dice(seed);
        let mut sut = victim(&mut dice, false);
        let (_, ulpdus) = &corpus[dice.below(corpus.len())];
        let mut stream: Vec<u8> = ulpdus.iter().flat_map(|ulpdu| fpdu(ulpdu)).collect();
        change(&mut stream, &mut dice);
        suffer(&mut sut, &stream, &mut dice);
    }
}

/// Answers that are copied wait for the peer to take those before them.
#[test]
fn c136_a_peer_that_takes_nothing_holds_little() {
    for (crc, send_markers) in [(true, false), (false, true), (false, false)] {
        let terms = Terms {
            crc,
            send_markers,
            ..terms(Role::Initiator)
        };
        let config = Config {
            mulpdu: 64768,
            ..Config::default()
        };
        let mut sut = Sut::new(terms, config);
        sut.memory.region(0x77, 0, counting(4 << 20));
        let mut framer = Framer::new(false, crc);
        for msn in 1..=4 {
            let request = format!(
                "4141 00000000 00000001 {msn:08x} 00000000 00000007 0000000000000000 00400000 00000077 0000000000000000"
            );
            sut.feed(&framed(&mut framer, &hex(&request)));
        }
        sut.output_some(0);
        let is_copied = crc || send_markers;
        assert_eq!(
            sut.engine.waiting() < 256 << 10,
            is_copied,
            "{crc} {send_markers}"
        );
        // And all of it goes out in the end.
        let ulpdus = sut.ulpdus();
        let octets: usize = ulpdus.iter().map(|ulpdu| ulpdu.len() - 14).sum();
        assert_eq!(octets, 16 << 20);
    }
}

#[test]
fn c134_random_octets() {
    for seed in 0..cases() {
        let mut dice = Dice(seed);
        let len = dice.below(300);
        let octets: Vec<u8> = (0..len).map(|_| dice.next() as u8).collect();
        let markers = dice.below(2) == 0;
        let mut sut = victim(&mut dice, markers);
        suffer(&mut sut, &octets, &mut dice);
        let mut handshakes = [
            Handshake::respond(Options::default(), NOW),
            Handshake::initiate(Options::default(), b"", NOW).unwrap(),
        ];
        for handshake in &mut handshakes {
            let responds = handshake.output().is_empty();
            let mut frame = hex(if responds {
                crate::startup::REQUEST
            } else {
                crate::startup::REPLY
            });
            frame.extend(&octets);
            assert!(handshake.handle_octets(&frame) <= 532);
        }
    }
}

#[test]
fn c136_a_slow_peer_holds_one_fpdu_at_most() {
    let mut sut = Sut::open();
    let held = |engine: &mut Engine| {
        engine
            .space()
            .iter()
            .map(|space| space.len())
            .sum::<usize>()
    };
    let all = held(&mut sut.engine);
    // It announces the longest, and goes on for ever.
    sut.feed(&[0xff, 0xff]);
    for _ in 0..200_000 {
        sut.engine.handle_octets(&[0]);
        assert!(held(&mut sut.engine) <= all);
        if sut.engine.state() != proto::rdmap::State::Open {
            break;
        }
        sut.engine.handle_arrivals(&mut sut.memory, sut.now);
    }
    assert_eq!(
        sut.lines(),
        ["Terminate qn 2 msn 1 mo 0 last 2/0/02 MPA CRC"]
    );
}

#[test]
fn c138_domains_do_not_mix() {
    // Two connections, each with its view of the same memory.
    for associated in [true, false] {
        let mut sut = Sut::open();
        sut.memory.region(0x77, 0, vec![0; 4]);
        sut.memory.regions.get_mut(&0x77).unwrap().associated = associated;
        sut.feed(&fpdu(&hex("c140 00000077 0000000000000000 01020304")));
        let expected: &[u8] = if associated { &[1, 2, 3, 4] } else { &[0; 4] };
        assert_eq!(sut.memory.octets_of(0x77), expected);
    }
}

#[test]
fn a_handshake_allocates_what_has_come() {
    let mut handshake = Handshake::respond(Options::default(), NOW);
    let mut request = hex(crate::startup::REQUEST);
    request.extend(hex("40 01 0200"));
    request.extend([7; 600]);
    assert_eq!(handshake.handle_octets(&request), 532);
    let memory = Plain::default();
    assert_eq!(memory.placed, 0);
}

/// Of each kind; as many as `IWARP_CASES` says.
fn cases() -> u64 {
    let wanted = std::env::var("IWARP_CASES").ok();
    wanted.map_or(20_000, |cases| cases.parse().expect("a number of cases"))
}
