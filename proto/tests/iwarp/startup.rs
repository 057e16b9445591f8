//! Startup by RFC 5044 (17.1).

use proto::mpa::{
    Depths, Flags, Handshake, HandshakeMisuse, Kind, MpaError, Options, Outcome, Revision, Role,
    Startup, State, Terms,
};
use proto::rdmap::{Config, Engine};

use crate::rig::{NOW, Sut, counting, fpdu, hex, terms};

pub(crate) const REQUEST: &str = "4d504120494420526571204672616d65";
pub(crate) const REPLY: &str = "4d504120494420526570204672616d65";

pub(crate) fn revision_1() -> Options {
    Options {
        revision: Revision::One,
        ..Options::default()
    }
}

fn initiator(options: Options) -> Handshake {
    Handshake::initiate(options, b"", NOW).unwrap()
}

fn responder() -> Handshake {
    Handshake::respond(Options::default(), NOW)
}

pub(crate) fn failed(handshake: &mut Handshake, error: MpaError) {
    let tell = None;
    assert_eq!(
        handshake.poll_outcome(),
        Some(Outcome::Failed { error, tell })
    );
    assert_eq!(handshake.state(), State::Dead);
    assert_eq!(handshake.output(), b"");
    assert_eq!(handshake.wants(), 0);
}

pub(crate) fn established(handshake: &mut Handshake) -> Terms {
    match handshake.poll_outcome() {
        Some(Outcome::Established { terms, .. }) => terms,
        other => panic!("{other:?}"),
    }
}

/// Runs both ends until nothing moves, `step` octets at a time; returns what they came to.
pub(crate) fn shake(
    initiator: &mut Handshake,
    responder: &mut Handshake,
    private_data: &[u8],
    step: usize,
) -> (Option<Outcome>, Option<Outcome>) {
    let move_octets = |from: &mut Handshake, to: &mut Handshake| {
        let octets = from.output().to_vec();
        for octets in octets.chunks(step) {
            assert_eq!(to.handle_octets(octets), octets.len());
        }
        from.handle_written(octets.len());
    };
    move_octets(initiator, responder);
    let mut asked = responder.poll_outcome();
    if let Some(Outcome::Requested { .. }) = asked {
        responder.accept(private_data).unwrap();
        let requested = asked.take();
        move_octets(responder, initiator);
        asked = responder.poll_outcome();
        drop(requested);
    }
    (initiator.poll_outcome(), asked)
}

#[test]
fn c1_the_request_is_twenty_octets() {
    let mut handshake = initiator(revision_1());
    assert_eq!(handshake.output(), hex(&format!("{REQUEST} 40 01 0000")));
    handshake.handle_written(20);
    assert_eq!(handshake.output(), b"");
    assert_eq!(handshake.poll_outcome(), None);
}

#[test]
fn c2_the_reply_is_twenty_octets() {
    let mut handshake = responder();
    handshake.handle_octets(&hex(&format!("{REQUEST} 40 01 0000")));
    handshake.poll_outcome().unwrap();
    handshake.accept(b"").unwrap();
    assert_eq!(handshake.output(), hex(&format!("{REPLY} 40 01 0000")));
}

#[test]
fn c3_private_data_arrives_unchanged() {
    for len in [0, 1, 3, 512] {
        let (words, answer) = (counting(len), counting(512 - len));
        let mut one = Handshake::initiate(revision_1(), &words, NOW).unwrap();
        let mut other = responder();
        let octets = one.output().to_vec();
        other.handle_octets(&octets);
        let requested = Outcome::Requested {
            private_data: words,
            enhanced: None,
        };
        assert_eq!(other.poll_outcome(), Some(requested));
        other.accept(&answer).unwrap();
        let octets = other.output().to_vec();
        one.handle_octets(&octets);
        match one.poll_outcome() {
            Some(Outcome::Established { private_data, .. }) => assert_eq!(private_data, answer),
            other => panic!("{other:?}"),
        }
    }
    let too_long = Handshake::initiate(revision_1(), &[0; 513], NOW).map(|_| ());
    assert_eq!(too_long, Err(HandshakeMisuse::PrivateData(512)));
}

#[test]
fn c4_a_wrong_key_closes() {
    for octet in 0..16 {
        let mut request = hex(&format!("{REQUEST} 40 01 0000"));
        request[octet] ^= 0x01;
        let mut handshake = responder();
        handshake.handle_octets(&request);
        failed(&mut handshake, MpaError::Startup);
    }
}

#[test]
fn c5_two_of_a_kind_close() {
    let mut one = responder();
    one.handle_octets(&hex(&format!("{REPLY} 40 01 0000")));
    failed(&mut one, MpaError::Startup);
    let mut other = initiator(revision_1());
    other.handle_octets(&hex(&format!("{REQUEST} 40 01 0000")));
    failed(&mut other, MpaError::Startup);
}

#[test]
fn c6_a_bad_reply_is_not_answered() {
    let mut handshake = initiator(revision_1());
    handshake.handle_octets(b"HTTP/1.1 400 Bad Request\r\n");
    failed(&mut handshake, MpaError::Startup);
}

#[test]
fn c7_too_much_private_data_is_not_waited_for() {
    for len in ["0201", "ffff"] {
        let mut handshake = responder();
        let taken = handshake.handle_octets(&hex(&format!("{REQUEST} 40 01 {len} 00 00 00")));
        assert_eq!(taken, 20);
        failed(&mut handshake, MpaError::Startup);
    }
}

#[test]
fn c8_a_cut_request_is_lost() {
    for len in [1, 15, 16, 19] {
        let mut handshake = responder();
        handshake.handle_octets(&hex(&format!("{REQUEST} 40 01 0000"))[..len]);
        handshake.handle_end();
        failed(&mut handshake, MpaError::Lost);
    }
}

#[test]
fn c9_silence_in_private_data_times_out() {
    let mut handshake = responder();
    handshake.handle_octets(&hex(&format!("{REQUEST} 40 01 0008 01020304050607")));
    assert_eq!(handshake.poll_outcome(), None);
    assert_eq!(handshake.wants(), 1);
    let due = handshake.poll_timeout().unwrap();
    handshake.handle_timeout(due - std::time::Duration::from_nanos(1));
    assert_eq!(handshake.poll_outcome(), None);
    handshake.handle_timeout(due);
    failed(&mut handshake, MpaError::Lost);
}

#[test]
fn c10_one_octet_at_a_time() {
    let mut one = initiator(Options::default());
    let mut other = responder();
    let (here, there) = shake(&mut one, &mut other, b"hello", 1);
    assert!(
        matches!(here, Some(Outcome::Established { .. })),
        "{here:?}"
    );
    assert!(
        matches!(there, Some(Outcome::Established { .. })),
        "{there:?}"
    );
}

#[test]
fn c11_reserved_flags_are_ignored_and_never_sent() {
    for flags in ["5f", "4f", "41"] {
        let mut handshake = responder();
        handshake.handle_octets(&hex(&format!("{REQUEST} {flags} 01 0000")));
        assert!(matches!(
            handshake.poll_outcome(),
            Some(Outcome::Requested { enhanced: None, .. })
        ));
        handshake.accept(b"").unwrap();
        assert_eq!(handshake.output(), hex(&format!("{REPLY} 40 01 0000")));
    }
}

#[test]
fn c12_a_request_cannot_reject() {
    let request = Startup::decode(Kind::Request, &hex(&format!("{REQUEST} 60 01 0000"))).unwrap();
    let crc_only = Flags {
        crc: true,
        ..Flags::default()
    };
    assert_eq!(request.flags, crc_only);
}

#[test]
fn c13_other_revisions_close() {
    for revision in (0..=255u8).filter(|revision| !matches!(revision, 1 | 2)) {
        let mut handshake = responder();
        handshake.handle_octets(&hex(&format!("{REQUEST} 40 {revision:02x} 0000")));
        failed(&mut handshake, MpaError::Startup);
    }
}

#[test]
fn c14_c15_a_refusal_leaves_tcp_to_its_users() {
    let mut one = initiator(revision_1());
    let mut other = responder();
    other.handle_octets(one.output());
    other.poll_outcome().unwrap();
    other.reject(b"full").unwrap();
    assert_eq!(other.output(), hex(&format!("{REPLY} 60 01 0004 66756c6c")));
    assert_eq!(other.state(), State::Rejected);
    let plain = [other.output(), b"plain"].concat();
    assert_eq!(one.handle_octets(&plain), plain.len() - 5);
    let rejected = Outcome::Rejected {
        private_data: b"full".to_vec(),
        enhanced: None,
    };
    assert_eq!(one.poll_outcome(), Some(rejected));
    assert_eq!(one.wants(), 0);
    assert_eq!(one.handle_octets(b"plain"), 0);
    assert_eq!(other.reject(b""), Err(HandshakeMisuse::NotAsked));
}

/// What two ends agree on, who differ in flags only.
fn agreed(one: (bool, bool), other: (bool, bool)) -> (Terms, Terms) {
    let options = |(crc, markers)| Options {
        crc,
        markers,
        ..revision_1()
    };
    let mut one = initiator(options(one));
    let mut other = Handshake::respond(options(other), NOW);
    match shake(&mut one, &mut other, b"", 7) {
        (
            Some(Outcome::Established { terms: here, .. }),
            Some(Outcome::Established { terms: there, .. }),
        ) => (here, there),
        outcomes => panic!("{outcomes:?}"),
    }
}

#[test]
fn c16_checksums_if_either_wants_them() {
    for (one, other, crc) in [
        (false, false, false),
        (false, true, true),
        (true, false, true),
        (true, true, true),
    ] {
        let (here, there) = agreed((one, false), (other, false));
        assert_eq!((here.crc, there.crc), (crc, crc), "{one} {other}");
    }
}

#[test]
fn c18_c19_markers_where_their_receiver_wants_them() {
    for one in [false, true] {
        for other in [false, true] {
            let (here, there) = agreed((true, one), (true, other));
            assert_eq!((here.send_markers, here.receive_markers), (other, one));
            assert_eq!((there.send_markers, there.receive_markers), (one, other));
        }
    }
}

#[test]
fn c17_without_checksums_the_word_means_nothing() {
    let terms = Terms {
        crc: false,
        ..terms(Role::Initiator)
    };
    let mut sut = Sut::new(terms, Config::default());
    sut.receive(1, 8);
    let mut octets = fpdu(&hex("4143 00000000 00000000 00000001 00000000 6869"));
    let end = octets.len();
    octets[end - 4..].copy_from_slice(&[1, 2, 3, 4]);
    sut.feed(&octets);
    assert_eq!(sut.received(), [(1, 2)]);
    sut.send(2, b"hi".to_vec());
    let output = sut.output();
    assert_eq!(output[output.len() - 4..], [0; 4]);
    assert_eq!(sut.memory.shown.get(), 0);
}

#[test]
fn c20_the_responder_is_silent_until_spoken_to() {
    let mut sut = Sut::new(terms(Role::Responder), Config::default());
    sut.send(1, b"one".to_vec());
    sut.send(2, b"two".to_vec());
    assert_eq!(sut.output(), b"");
    sut.feed_ulpdu("c140 00000001 0000000000000000");
    assert_eq!(
        sut.lines(),
        [
            "Send qn 0 msn 1 mo 0 last len 3",
            "Send qn 0 msn 2 mo 0 last len 3"
        ]
    );
}

#[test]
fn c21_a_bad_first_fpdu_is_not_answered() {
    let mut sut = Sut::new(terms(Role::Responder), Config::default());
    sut.send(1, b"one".to_vec());
    let mut octets = fpdu(&hex("c140 00000001 0000000000000000"));
    octets[5] ^= 1;
    sut.feed(&octets);
    assert_eq!(sut.output(), b"");
    let actions = format!("{:?}", sut.actions());
    assert!(actions.ends_with("Close]"), "{actions}");
}

#[test]
fn c22_c23_what_follows_the_reply_is_not_the_handshakes() {
    let mut handshake = initiator(revision_1());
    let first = fpdu(&hex("4143 00000000 00000000 00000001 00000000 6869"));
    let octets = [hex(&format!("{REPLY} 40 01 0003 010203")), first].concat();
    let taken = handshake.handle_octets(&octets);
    assert_eq!(taken, 23);
    let terms = established(&mut handshake);
    let mut sut = Sut::new(terms, Config::default());
    sut.receive(1, 8);
    sut.feed(&octets[taken..]);
    assert_eq!(sut.received(), [(1, 2)]);
}

#[test]
fn c24_plain_octets_before_do_not_count() {
    // The stream positions of markers are the framer's own, whatever TCP carried before.
    let terms = Terms {
        send_markers: true,
        ..terms(Role::Initiator)
    };
    let mut sut = Sut::new(terms, Config::default());
    sut.send(1, b"hi".to_vec());
    assert_eq!(sut.output()[..6], hex("00000000 0014"));
}

#[test]
fn c25_nobody_waits_for_ever() {
    for mut handshake in [initiator(Options::default()), responder()] {
        let due = handshake.poll_timeout().unwrap();
        assert_eq!(due, NOW + Options::default().time_limit);
        handshake.handle_timeout(due);
        failed(&mut handshake, MpaError::Lost);
        assert_eq!(handshake.poll_timeout(), None);
    }
}

#[test]
fn c26_an_end_while_waiting() {
    for mut handshake in [initiator(Options::default()), responder()] {
        handshake.handle_end();
        failed(&mut handshake, MpaError::Lost);
    }
}

#[test]
fn c27_roles_are_not_those_of_tcp() {
    // Neither end knows who connected; the role is chosen where the handshake is made.
    let (here, there) = agreed((true, true), (true, false));
    assert_eq!((here.role, there.role), (Role::Initiator, Role::Responder));
    let [mut one, mut other] = [here, there].map(|terms| Sut::new(terms, Config::default()));
    other.receive(1, 4);
    one.send(1, b"ping".to_vec());
    other.feed(&one.output());
    assert_eq!(other.received(), [(1, 4)]);
}

#[test]
fn a_frame_prints_like_a_capture_line() {
    let request = Startup::decode(
        Kind::Request,
        &hex(&format!("{REQUEST} 50 02 0006 c001 c001 0102")),
    );
    assert_eq!(
        request.unwrap().to_string(),
        "MPA Request rev 2 crc IRD 1 ORD 1 peer-to-peer RTR write RTR read RTR send private 2"
    );
    let reply = Startup::decode(Kind::Reply, &hex(&format!("{REPLY} e0 01 0000")));
    assert_eq!(
        reply.unwrap().to_string(),
        "MPA Reply rev 1 markers crc rejected private 0"
    );
}

#[test]
fn a_failed_startup_that_is_told_is_told_by_an_engine() {
    let depths = Depths { ird: 0, ord: 0 };
    let terms = Terms {
        depths,
        ..terms(Role::Initiator)
    };
    let mut sut = Sut::new(terms, Config::default());
    sut.engine = Engine::refusing(&terms, Config::default(), MpaError::NoMatchingRtr, NOW);
    sut.expect_terminate("20 07 00 00");
}
