//! What holds for all messages, sizes, options and splits.

use proptest::prelude::*;
use proto::ddp::Stag;
use proto::mpa::{Deframer, Framer, MarkerCheck, Ready, Role, Terms};
use proto::rdmap::{Action, AtomicOperation, Config, Operation, PlaceAhead, Remote};

use crate::rig::{Plain, Sut, counting, drained, taken, terms};

const TARGET: Remote = Remote {
    stag: Stag(0x77),
    to: 0x1000,
};
const REGION_LEN: usize = 1 << 20;

/// Something to do, of this length.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Send(usize),
    Write(usize),
    Read(usize),
    Immediate,
    Add(u64),
}

fn deed() -> impl Strategy<Value = Deed> {
    let len = prop_oneof![0usize..70, 400usize..2000, 60_000usize..140_000];
    prop_oneof![
        len.clone().prop_map(Deed::Send),
        len.clone().prop_map(Deed::Write),
        len.prop_map(Deed::Read),
        Just(Deed::Immediate),
        any::<u64>().prop_map(Deed::Add),
    ]
}

/// Posts these at one end, with a receive for each at the other; how many messages that makes.
fn post(sut: &mut Sut, deeds: &[Deed]) {
    for (id, deed) in (1000..).zip(deeds) {
        let fill = |len| counting(len + id as usize % 7).split_off(id as usize % 7);
        match *deed {
            Deed::Send(len) => sut.send(id, fill(len)),
            Deed::Write(len) => sut.write(id, fill(len), TARGET),
            Deed::Read(len) => {
                let sink = Remote {
                    stag: Stag(id as u32),
                    to: u64::MAX - 5,
                };
                sut.read(id, len as u64, sink, TARGET);
            }
            Deed::Immediate => sut.post(
                id,
                Operation::Immediate {
                    data: id.to_be_bytes(),
                    solicited: false,
                },
            ),
            Deed::Add(add) => sut.post(
                id,
                Operation::Atomic {
                    operation: AtomicOperation::FetchAdd { add, mask: 0 },
                    target: Remote {
                        stag: Stag(0x78),
                        to: 0,
                    },
                },
            ),
        }
    }
}

/// Hands octets to an engine as a driver does that reads payload to its place.
fn feed_ahead(sut: &mut Sut, mut octets: &[u8], most: usize) {
    while !octets.is_empty() {
        if let Some(ahead) = sut.engine.ahead(&mut sut.memory, sut.now) {
            let n = octets.len().min(ahead.len as usize).min(most);
            let (now, later) = octets.split_at(n);
            if n.is_multiple_of(2) {
                proto::ddp::Memory::place(&mut sut.memory, ahead.place, now).unwrap();
                sut.engine.handle_ahead(n as u32, &mut sut.memory, sut.now);
            } else {
                sut.engine
                    .handle_ahead_octets(now, &mut sut.memory, sut.now);
            }
            octets = later;
        } else {
            let taken = sut.engine.handle_octets(&octets[..octets.len().min(most)]);
            octets = &octets[taken..];
        }
        sut.engine.handle_arrivals(&mut sut.memory, sut.now);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_engines_do_what_they_were_asked(
        here in proptest::collection::vec(deed(), 0..8),
        there in proptest::collection::vec(deed(), 0..8),
        markers: (bool, bool),
        crc: bool,
        mulpdu in prop_oneof![128u16..2000, Just(64768)],
        steps in proptest::collection::vec(prop_oneof![1usize..40, 400usize..1500, 50_000usize..200_000], 1..20),
        place_ahead in prop_oneof![Just(PlaceAhead::Never), Just(PlaceAhead::Unseen), Just(PlaceAhead::Always)],
        inline_max in prop_oneof![Just(0u32), Just(600)],
        even_segments: bool,
        alone_min in prop_oneof![Just(u32::MAX), Just(1000)],
    ) {
        let config = Config {
            mulpdu,
            extensions: true,
            ahead_min: 1,
            inline_max,
            even_segments,
            alone_min,
            place_ahead,
            ..Config::default()
        };
        let one = Terms { crc, send_markers: markers.0, receive_markers: markers.1, ..terms(Role::Initiator) };
        let other = Terms { crc, send_markers: markers.1, receive_markers: markers.0, ..terms(Role::Responder) };
        let mut ends = [Sut::new(one, config), Sut::new(other, config)];
        // The first FPDU lets the responder speak.
        ends[0].write(1, vec![], TARGET);
        let deeds = [here, there];
        for side in 0..2 {
            let sut = &mut ends[side];
            sut.memory.region(0x77, 0x1000, counting(REGION_LEN));
            sut.memory.region(0x78, 0, 7u64.to_ne_bytes().to_vec());
            post(sut, &deeds[side]);
            for (id, deed) in (5000..).zip(&deeds[1 - side]) {
                match deed {
                    Deed::Send(len) => sut.receive(id, *len as u32),
                    Deed::Immediate => sut.receive(id, 0),
                    Deed::Write(_) | Deed::Read(_) | Deed::Add(_) => {}
                }
            }
        }
        let mut steps = steps.iter().cycle();
        let mut quiet = 0;
        while quiet < 2 {
            for side in 0..2 {
                let step = *steps.next().unwrap();
                let octets = ends[side].output_some(step);
                quiet = if octets.is_empty() { quiet + 1 } else { 0 };
                if place_ahead != PlaceAhead::Never {
                    feed_ahead(&mut ends[1 - side], &octets, step);
                } else {
                    ends[1 - side].feed(&octets);
                }
            }
        }
        for side in 0..2 {
            let actions = ends[side].actions();
            let completed: Vec<_> = actions.iter().filter_map(|action| match action {
                Action::Completed(completion) => Some((completion.id.0, completion.outcome)),
                _ => None,
            }).filter(|(id, _)| *id >= 1000).collect();
            let mut number = 7u64;
            let expected: Vec<_> = (1000..).zip(&deeds[side]).map(|(id, deed)| {
                let value = match *deed {
                    Deed::Send(len) | Deed::Write(len) | Deed::Read(len) => len as u64,
                    Deed::Immediate => 8,
                    Deed::Add(add) => {
                        let original = number;
                        number = number.wrapping_add(add);
                        original
                    }
                };
                (id, Ok(value))
            }).collect();
            prop_assert_eq!(completed, expected, "{:?}", actions);
            let mut received = actions.iter().filter_map(|action| match action {
                Action::Received(received) => Some(*received),
                _ => None,
            });
            let mut placed = 0;
            for (index, deed) in deeds[1 - side].iter().enumerate() {
                let (id, sent) = (5000 + index as u64, 1000 + index as u64);
                match *deed {
                    Deed::Send(len) => {
                        let message = received.next().unwrap();
                        prop_assert_eq!((message.id.0, message.len), (id, len as u32));
                        prop_assert_eq!(&ends[side].memory.buffers[&id], &ends[1 - side].memory.buffers[&sent]);
                        placed += len;
                    }
                    Deed::Immediate => {
                        let message = received.next().unwrap();
                        prop_assert_eq!((message.id.0, message.immediate), (id, Some(sent.to_be_bytes())));
                    }
                    Deed::Write(len) => placed += len,
                    Deed::Read(_) => {}
                    Deed::Add(_) => placed += 8,
                }
            }
            prop_assert_eq!(received.next(), None);
            for (id, deed) in (1000..).zip(&deeds[side]) {
                if let Deed::Read(len) = *deed {
                    // What is read may be written at the same time; its length is what is sure.
                    prop_assert_eq!(ends[side].memory.buffers[&id].len(), len);
                    placed += len;
                }
            }
            // Each octet once, and none elsewhere.
            prop_assert_eq!(ends[side].memory.placed, placed as u64);
        }
    }

    #[test]
    fn reads_bring_what_is_there(
        lens in proptest::collection::vec(0usize..100_000, 1..5),
        markers: bool,
        mulpdu in 128u16..=64768,
        step in 1usize..100_000,
    ) {
        let config = Config { mulpdu, ..Config::default() };
        let mut one = Sut::new(Terms { receive_markers: markers, ..terms(Role::Initiator) }, config);
        let mut other = Sut::new(Terms { send_markers: markers, ..terms(Role::Responder) }, config);
        other.memory.region(0x77, 0x1000, counting(100_000));
        for (id, len) in (1..).zip(&lens) {
            one.read(id, *len as u64, TARGET, TARGET);
        }
        loop {
            let there = one.output_some(step);
            other.feed(&there);
            let back = other.output_some(step);
            one.feed(&back);
            if there.is_empty() && back.is_empty() {
                break;
            }
        }
        for (id, len) in (1..).zip(&lens) {
            prop_assert_eq!(&one.memory.buffers[&id], &counting(*len));
        }
    }

    #[test]
    fn a_deframer_finds_what_a_framer_made_at_every_split(
        lens in proptest::collection::vec(prop_oneof![0usize..200, 450usize..600, 64_000usize..=64768], 1..6),
        markers: bool,
        crc: bool,
        step in prop_oneof![1usize..20, 500usize..530, 1000usize..100_000],
        start in 0u64..2048,
    ) {
        let start = start * 4;
        let mut framer = Framer::new(markers, crc).starting_at(start);
        let mut memory = Plain::default();
        memory.buffers.insert(1, counting(1 << 16));
        let mut expected = Vec::new();
        let mut stream = Vec::new();
        for len in lens {
            let head = [len as u8; 18];
            let head = &head[..len.min(18)];
            let payload = len - head.len();
            let place = proto::mpa::Place::new(1);
            framer.frame(head, Some((place, payload as u32)), &memory).unwrap();
            stream.extend(drained(&mut framer, &memory));
            expected.push([head.to_vec(), counting(payload)].concat());
        }
        prop_assert_eq!(stream.len() as u64, framer.position() - start);
        let check = markers.then_some(MarkerCheck::On);
        let mut deframer = Deframer::new(check, crc, 0).starting_at(start);
        prop_assert_eq!(taken(&mut deframer, &stream, step), expected);
        prop_assert!(!deframer.is_inside_fpdu());
    }

    #[test]
    fn a_diverted_fpdu_is_verified_like_another(
        len in 30usize..5000,
        come in 20usize..5000,
        flip in any::<Option<prop::sample::Index>>(),
        crc: bool,
    ) {
        let come = come.min(len + 1);
        let mut framer = Framer::new(false, crc);
        let ulpdu = counting(len);
        framer.frame(&ulpdu, None, &Plain::default()).unwrap();
        let mut stream = drained(&mut framer, &Plain::default());
        let flipped = flip.map(|index| 2 + index.index(stream.len() - 2));
        if let Some(at) = flipped {
            stream[at] ^= 0x10;
        }
        let mut deframer = Deframer::new(None, crc, 0);
        deframer.handle_octets(&stream[..come]);
        prop_assert_eq!(deframer.poll(), Ok(Ready::Nothing));
        let left = deframer.divert();
        prop_assert_eq!(left, len + 2 - come);
        for octets in stream[come..len + 2].chunks(999) {
            if let Some(crc) = deframer.diverted_crc() {
                crc.update(octets);
            }
            deframer.handle_diverted(octets.len());
            prop_assert!(deframer.poll().is_ok());
        }
        deframer.handle_octets(&stream[len + 2..]);
        let expected = if crc && flipped.is_some() {
            Err(proto::mpa::MpaError::Crc)
        } else {
            Ok(Ready::Diverted)
        };
        prop_assert_eq!(deframer.poll(), expected);
        deframer.release();
        prop_assert_eq!(deframer.held() == 0, expected.is_ok());
    }
}
