//! A peer that says what it likes: an error, never a panic, and nothing beyond the bounds.

use proptest::prelude::*;
use proto::packet::{
    Arrival, BadImmediate, BadWakeup, Conversation, Kind, Packet, Settings, State, Violation,
    WAKEUP_LEN, Wakeup,
};

fn wakeup() -> Wakeup {
    Wakeup {
        descriptor: 5,
        address: [10, 0, 0, 1],
        port: 4711,
        settings: Settings::default(),
        place: *b"namesakesecretly",
    }
}

fn packet(kind: Kind, acks: u32) -> Packet {
    Packet {
        kind,
        acks,
        byte: 0,
    }
}

fn woken() -> Conversation {
    let mut talk = Conversation::new(Settings::new(4, 2, 64).unwrap());
    while talk.poll_transmit().is_some() {}
    talk.handle(packet(Kind::Wakeup, 0), WAKEUP_LEN as u32, || {
        wakeup().encode().to_vec()
    })
    .unwrap();
    talk.reposted();
    talk
}

/// What a fuzzer does: an end of a connection, bytes of a peer, and an application that goes on using it.
pub(crate) fn drive(bytes: &[u8]) {
    let mut talk = Conversation::new(Settings::new(4, 2, 64).unwrap());
    let mut unread = 0u32;
    let mut chunks = bytes.chunks(6);
    while let Some(chunk) = chunks.next() {
        let mut word = [0; 6];
        word[..chunk.len()].copy_from_slice(chunk);
        let [a, b, c, d, len, act] = word;
        match act % 8 {
            0 => {
                talk.close();
            }
            1 => {
                talk.take_window();
            }
            2 if unread > 0 => {
                unread -= 1;
                talk.reposted();
            }
            3 => talk.deafen(),
            4 if act >= 128 => {
                talk.hand_over(Kind::Move);
            }
            5 if act >= 128 => {
                talk.hand_over(Kind::Moved);
            }
            _ => {
                let Ok(packet) = Packet::decode(u32::from_le_bytes([a, b, c, d])) else {
                    continue;
                };
                assert_eq!(Packet::decode(packet.encode()), Ok(packet));
                let payload = || {
                    if len == 255 {
                        wakeup().encode().to_vec()
                    } else {
                        {
                            let bytes = chunks.by_ref().take(7).flatten().copied();
                            bytes.take(WAKEUP_LEN).collect()
                        }
                    }
                };
                match talk.handle(packet, len.into(), payload) {
                    Ok(Arrival::Data | Arrival::Urgent(_)) => unread += 1,
                    Ok(Arrival::Wakeup(_)) => talk.reposted(),
                    Ok(_) => {}
                    Err(_) => talk.lose(),
                }
            }
        }
        assert!(unread <= 4, "no more than the window is kept");
        assert!(talk.window() <= 4096);
        for _ in 0..8 {
            if talk.poll_transmit().is_none() {
                break;
            }
        }
        assert_eq!(talk.poll_transmit(), None, "what is due is bounded");
    }
}

#[test]
fn the_corpus() {
    CORPUS.iter().for_each(|bytes| drive(bytes));
}

const CORPUS: [&[u8]; 8] = [
    include_bytes!("corpus/acks_of_nothing"),
    include_bytes!("corpus/data_first"),
    include_bytes!("corpus/finack_first"),
    include_bytes!("corpus/honest_close"),
    include_bytes!("corpus/simultaneous_close"),
    include_bytes!("corpus/wakeup_of_garbage"),
    include_bytes!("corpus/wakeup_twice"),
    include_bytes!("corpus/window_overrun"),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        drive(&bytes);
    }

    #[test]
    fn plausible_bytes(packets in prop::collection::vec((0..10u8, 0..4u8, 0..3u8, any::<u8>()), 0..100)) {
        let mut bytes = vec![0, 0, 0, 0x30, 255, 7];
        for (kind, acks, len, act) in packets {
            bytes.extend([acks, 0, 0, kind << 4, len, act]);
        }
        drive(&bytes);
    }

    #[test]
    fn a_wakeup_that_is_understood_says_what_it_said(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(wakeup) = Wakeup::decode(&bytes) {
            prop_assert_eq!(wakeup.encode().to_vec(), bytes);
        }
    }
}

#[test]
fn the_wire() {
    assert_eq!(packet(Kind::Data, 0).encode(), 0x1000_0000);
    assert_eq!(packet(Kind::Ack, 16).encode(), 0x2000_0010);
    assert_eq!(packet(Kind::Wakeup, 0).encode(), 0x3000_0000);
    assert_eq!(packet(Kind::Fin, 1).encode(), 0x4000_0001);
    assert_eq!(packet(Kind::FinAck, 2).encode(), 0x5000_0002);
    assert_eq!(packet(Kind::Move, 0).encode(), 0x6000_0000);
    assert_eq!(packet(Kind::Moved, 3).encode(), 0x7000_0003);
    let urgent = Packet {
        byte: b'!',
        ..packet(Kind::Urgent, 1)
    };
    assert_eq!(urgent.encode(), 0x8021_0001);
    assert_eq!(Packet::decode(0x9000_0000), Err(BadImmediate::Kind(9)));
    assert_eq!(Packet::decode(0), Err(BadImmediate::Kind(0)));
    assert_eq!(Packet::decode(0x1001_0000), Err(BadImmediate::Reserved));
    assert_eq!(Packet::decode(0x8100_0000), Err(BadImmediate::Reserved));
    assert_eq!(
        wakeup().encode(),
        [
            2, 0, 0x67, 0x12, 10, 0, 0, 1, 5, 0, 0, 0, 32, 0, 0, 0, 16, 0, 0, 0, 0, 0x80, 0, 0,
            b'n', b'a', b'm', b'e', b's', b'a', b'k', b'e', b's', b'e', b'c', b'r', b'e', b't',
            b'l', b'y'
        ]
    );
    assert_eq!(Wakeup::decode(&wakeup().encode()), Ok(wakeup()));
}

#[test]
fn a_wakeup_under_which_nothing_could_be_sent() {
    let mut bytes = wakeup().encode();
    assert_eq!(Wakeup::decode(&bytes[1..]), Err(BadWakeup::Length));
    bytes[12..16].fill(0);
    assert!(matches!(
        Wakeup::decode(&bytes),
        Err(BadWakeup::Settings(_))
    ));
    bytes[0] = 9;
    assert_eq!(Wakeup::decode(&bytes), Err(BadWakeup::Version(9)));
}

#[test]
fn what_no_honest_peer_does() {
    let none = Vec::new;
    let mut talk = Conversation::new(Settings::default());
    let early = talk.handle(packet(Kind::Data, 0), 1, none);
    assert_eq!(early, Err(Violation::Order(Kind::Data, State::Normal)));

    let again = woken().handle(packet(Kind::Wakeup, 0), WAKEUP_LEN as u32, none);
    assert_eq!(again, Err(Violation::Order(Kind::Wakeup, State::Normal)));

    // Nothing has been sent but the WAKEUP.
    assert_eq!(
        woken().handle(packet(Kind::Ack, 2), 0, none),
        Err(Violation::Acks)
    );
    assert_eq!(
        woken().handle(packet(Kind::Ack, 0), 0, none),
        Err(Violation::Acks)
    );
    assert!(woken().handle(packet(Kind::Ack, 1), 0, none).is_ok());

    for (kind, len) in [
        (Kind::Data, 0),
        (Kind::Data, 65),
        (Kind::Fin, 1),
        (Kind::FinAck, 1),
    ] {
        assert_eq!(
            woken().handle(packet(kind, 0), len, none),
            Err(Violation::Length(kind, len))
        );
    }

    assert_eq!(
        woken().handle(packet(Kind::FinAck, 0), 0, none),
        Err(Violation::Order(Kind::FinAck, State::Normal))
    );

    let mut talk = woken();
    talk.handle(packet(Kind::Fin, 0), 0, none).unwrap();
    assert_eq!(
        talk.handle(packet(Kind::Data, 0), 1, none),
        Err(Violation::Order(Kind::Data, State::CloseWait))
    );

    let mut talk = woken();
    // The WAKEUP is owed: three more fit.
    for _ in 0..3 {
        assert_eq!(
            talk.handle(packet(Kind::Data, 0), 1, none),
            Ok(Arrival::Data)
        );
    }
    assert_eq!(
        talk.handle(packet(Kind::Data, 0), 1, none),
        Err(Violation::Window)
    );
}

#[test]
fn data_for_an_application_that_has_closed() {
    let mut talk = woken();
    talk.close();
    talk.deafen();
    assert_eq!(
        talk.handle(packet(Kind::Data, 0), 1, Vec::new),
        Ok(Arrival::Unwanted)
    );
}
