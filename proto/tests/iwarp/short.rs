//! Short messages past the general way: the same octets leave, and the same comes of those that come.

use proto::ddp::Stag;
use proto::mpa::{Role, Terms};
use proto::rdmap::{Action, Config, Operation, Received, Remote, WorkId};

use crate::hostile::{Dice, change, corpus, victim};
use crate::rig::{Sut, counting, fpdu, hex, terms, ulpdus};

/// Sends the octets in one of the two ways.
fn send(sut: &mut Sut, id: u64, octets: Vec<u8>, invalidate: Option<Stag>, is_short: bool) -> bool {
    let len = octets.len() as u32;
    if is_short {
        let fill = |room: &mut [u8]| {
            room.copy_from_slice(&octets);
            true
        };
        return sut.engine.send_short(len, invalidate, fill);
    }
    let operation = Operation::Send {
        from: proto::mpa::Place::new(id),
        len: len.into(),
        solicited: false,
        invalidate,
    };
    sut.memory.buffers.insert(id, octets);
    sut.post(id, operation);
    true
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
        for (id, len) in (1..).zip([0, 1, 4, 100, 511, 512]) {
            let invalidate = (len == 4).then_some(Stag(7));
            assert!(send(&mut short, id, counting(len), invalidate, true));
            send(&mut general, id, counting(len), invalidate, false);
            let left = short.output();
            assert!(!left.is_empty());
            assert_eq!(left, general.output(), "{len}");
            assert_eq!(short.actions(), [], "nobody hears of it");
        }
        assert!(!send(&mut short, 9, counting(513), None, true), "too long");
    }
}

#[test]
fn nothing_overtakes() {
    let mut sut = Sut::open();
    let is_taken = |sut: &mut Sut| send(sut, 9, counting(4), None, true);
    send(&mut sut, 1, counting(4), None, false);
    assert!(!is_taken(&mut sut), "a work that was posted before");
    sut.output();
    assert!(is_taken(&mut sut));
    assert!(!is_taken(&mut sut), "one that has not left");
    sut.output();
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
    assert!(!send(&mut narrow, 9, counting(111), None, true));
    assert!(send(&mut narrow, 9, counting(110), None, true));
}

#[test]
fn what_could_not_be_written_has_not_been() {
    let mut sut = Sut::open();
    assert!(send(&mut sut, 1, counting(4), None, true));
    sut.engine.withdraw_short();
    assert!(!sut.engine.send_short(4, None, |_| false), "no memory");
    assert_eq!(sut.engine.waiting(), 0);
    send(&mut sut, 1, counting(3), None, false);
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
