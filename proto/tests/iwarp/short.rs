//! Short messages past the general way: the same octets leave, and the same comes of those that come.

use proto::ddp::Stag;
use proto::mpa::{Role, Terms};
use proto::rdmap::{Action, Config, Operation, Received, Remote, WorkId};

use crate::hostile::{Dice, change, corpus, victim};
use crate::rig::{Sut, counting, fpdu, hex, terms, ulpdus};

/// Sends the octets the short way; what left of them, if they were taken.
fn send_short(sut: &mut Sut, octets: &[u8], invalidate: Option<Stag>) -> Option<Vec<u8>> {
    let fill = |room: &mut [u8]| {
        room.copy_from_slice(octets);
        true
    };
    let framed = sut
        .engine
        .frame_short(octets.len() as u32, invalidate, fill)?;
    let left = framed.to_vec();
    sut.engine.handle_short_written(left.len());
    Some(left)
}

/// Posts them.
fn post(sut: &mut Sut, id: u64, octets: Vec<u8>, invalidate: Option<Stag>) {
    let operation = Operation::Send {
        from: proto::mpa::Place::new(id),
        len: octets.len() as u64,
        solicited: false,
        invalidate,
    };
    sut.memory.buffers.insert(id, octets);
    sut.post(id, operation);
}

#[test]
fn the_same_octets_leave() {
    for (crc, send_markers) in [(false, false), (true, false), (true, true)] {
        let terms = Terms {
            crc,
            send_markers,
            ..terms(Role::Initiator)
        };
        let mut short = Sut::new(terms, Config::default());
        let mut general = Sut::new(terms, Config::default());
        let mut taken = 0;
        for (id, len) in (1..).zip([0, 1, 4, 100, 256, 2, 511, 512]) {
            let invalidate = (len == 4).then_some(Stag(7));
            let left = send_short(&mut short, &counting(len), invalidate);
            post(&mut general, id, counting(len), invalidate);
            assert!(left.is_some() || send_markers, "{len}");
            let left = left.unwrap_or_else(|| {
                // A marker is due.
                post(&mut short, id, counting(len), invalidate);
                let left = short.output();
                assert_eq!(short.completed(), [(id, len as u64)]);
                taken -= 1;
                left
            });
            taken += 1;
            assert_eq!(left, general.output(), "{len}");
            assert_eq!(short.actions(), [], "nobody hears of it");
        }
        assert!(taken >= 4, "{taken}");
        let none = send_short(&mut short, &counting(513), None);
        assert_eq!(none, None, "too long");
    }
}

#[test]
fn nothing_overtakes() {
    let mut sut = Sut::open();
    let is_taken = |sut: &mut Sut| send_short(sut, &counting(4), None).is_some();
    post(&mut sut, 1, counting(4), None);
    assert!(!is_taken(&mut sut), "a work that was posted before");
    sut.output();
    assert!(is_taken(&mut sut));
    let there = Remote {
        stag: Stag(1),
        to: 0,
    };
    sut.read(2, 8, there, there);
    sut.output();
    assert!(!is_taken(&mut sut), "a Read that is not answered");
    let mut silent = Sut::new(terms(Role::Responder), Config::default());
    assert!(!is_taken(&mut silent), "before the first FPDU has come");
    silent.feed(&fpdu(&hex("c140 00000001 0000000000000000")));
    assert!(is_taken(&mut silent));
    let narrow = Config {
        mulpdu: 128,
        ..Config::default()
    };
    let mut narrow = Sut::with(narrow);
    assert_eq!(send_short(&mut narrow, &counting(111), None), None);
    assert!(send_short(&mut narrow, &counting(110), None).is_some());
}

#[test]
fn what_the_socket_did_not_take_comes_next() {
    let mut whole = Sut::open();
    let expected = [4, 5].map(|len| send_short(&mut whole, &counting(len), None));
    let expected: Vec<u8> = expected.into_iter().flatten().flatten().collect();
    let mut sut = Sut::open();
    let framed = sut.engine.frame_short(4, None, |room| {
        room.copy_from_slice(&counting(4));
        true
    });
    let mut left = framed.expect("nothing waits")[..5].to_vec();
    sut.engine.handle_short_written(5);
    assert_eq!(send_short(&mut sut, &counting(5), None), None);
    left.extend(sut.output());
    left.extend(send_short(&mut sut, &counting(5), None).expect("nothing waits"));
    assert_eq!(left, expected);
    assert_eq!(sut.actions(), []);
}

#[test]
fn what_could_not_be_written_has_not_been() {
    let mut sut = Sut::open();
    assert!(sut.engine.frame_short(4, None, |_| true).is_some());
    let refused = sut.engine.frame_short(4, None, |_| false);
    assert_eq!(refused, None, "no memory");
    assert_eq!(sut.engine.waiting(), 0);
    post(&mut sut, 1, counting(3), None);
    let said = ulpdus(&sut.output(), false, true);
    assert_eq!(
        said,
        [hex("4143 00000000 00000000 00000001 00000000 000102")]
    );
    assert_eq!(sut.completed(), [(1, 3)]);
}

/// Lets it carry out what has come; what it says of that, and whether that was a short message.
fn carry_out(sut: &mut Sut, receives: &mut std::ops::RangeInclusive<u64>) -> (Vec<Action>, bool) {
    let id = *receives.start();
    let buffers = &mut sut.memory.buffers;
    let place = |octets: &[u8]| {
        let room = buffers.get_mut(&id).and_then(|b| b.get_mut(..octets.len()));
        room.is_some_and(|room| {
            room.copy_from_slice(octets);
            true
        })
    };
    let taken = sut.engine.take_short(WorkId(id), place);
    let actions = match taken {
        Some(len) => vec![Action::Received(Received {
            id: WorkId(id),
            len,
            solicited: false,
            invalidated: None,
            immediate: None,
            written: 0,
        })],
        None => {
            sut.engine.handle_arrivals(&mut sut.memory, sut.now);
            sut.actions()
        }
    };
    let is_received = |action: &&Action| matches!(action, Action::Received(_));
    let received = actions.iter().filter(is_received).count() as u64;
    *receives = id + received..=*receives.end();
    (actions, taken.is_some())
}

#[test]
fn c135_the_same_comes_of_what_comes() {
    let corpus = corpus();
    let mut short = 0;
    for seed in 0..20_000 {
        let [mut quick, mut general] = [(); 2].map(|()| victim(&mut Dice(seed), seed % 3 == 0));
        let mut dice = Dice(!seed);
        let mut receives = 1..=3;
        let mut framer = proto::mpa::Framer::new(seed % 3 == 0, true);
        for _ in 0..1 + dice.below(4) {
            let (_, ulpdus) = &corpus[dice.below(corpus.len())];
            let mut octets = Vec::new();
            for ulpdu in ulpdus {
                let mut ulpdu = match dice.below(3) {
                    0 => ulpdu.clone(),
                    _ => hex("4143 00000000 00000000 00000001 00000000 68692121"),
                };
                if dice.below(4) == 0 {
                    change(&mut ulpdu, &mut dice);
                }
                ulpdu.truncate(60_000);
                octets.extend(crate::rig::framed(&mut framer, &ulpdu));
                // Together with the next, or by itself; or a piece of it.
                let n = match dice.below(4) {
                    0 => 0,
                    1 => dice.below(octets.len()),
                    _ => octets.len(),
                };
                let rest = octets.split_off(n);
                for sut in [&mut quick, &mut general] {
                    sut.engine.handle_octets(&octets);
                }
                octets = rest;
                let (actions, is_short) = carry_out(&mut quick, &mut receives);
                general
                    .engine
                    .handle_arrivals(&mut general.memory, general.now);
                let expected = general.actions();
                short += usize::from(is_short);
                assert_eq!(actions, expected, "seed {seed}");
                assert_eq!(quick.output(), general.output(), "seed {seed}");
            }
        }
        assert_eq!(quick.engine.state(), general.engine.state());
        assert_eq!(quick.memory.buffers, general.memory.buffers, "seed {seed}");
    }
    assert!(short > 1000, "{short}");
}
