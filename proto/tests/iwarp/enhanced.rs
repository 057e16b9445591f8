//! Startup by RFC 6581 (17.2).

use proto::ddp::Stag;
use proto::mpa::{
    Depths, Enhanced, Handshake, HandshakeMisuse, MpaError, NOT_NEGOTIATED, Options, Outcome,
    PeerToPeer, Revision, Role, RtrSet, State, Terms,
};
use proto::rdmap::{Action, Config, Engine, Remote};

use crate::rig::{NOW, Sut, hex, terms};
use crate::startup::{REPLY, REQUEST, established, failed, revision_1};

const ALL: RtrSet = RtrSet {
    write: true,
    read: true,
    send: true,
};

fn options(ask: bool, rtr: RtrSet, ird: u16, ord: u16) -> Options {
    Options {
        revision: Revision::Two(PeerToPeer {
            ask,
            rtr,
            negotiate_depths: true,
        }),
        depths: Depths { ird, ord },
        ..Options::default()
    }
}

/// The Reply of a responder to a Request of these octets.
fn replied(options: Options, request: &str) -> (Vec<u8>, Terms) {
    let mut handshake = Handshake::respond(options, NOW);
    handshake.handle_octets(&hex(&format!("{REQUEST} {request}")));
    match handshake.poll_outcome() {
        Some(Outcome::Requested { .. }) => {}
        other => panic!("{other:?}"),
    }
    handshake.accept(b"").unwrap();
    let terms = established(&mut handshake);
    (handshake.output()[16..].to_vec(), terms)
}

/// What an initiator makes of a Reply of these octets.
fn concluded(options: Options, reply: &str) -> Handshake {
    let mut handshake = Handshake::initiate(options, b"", NOW).unwrap();
    handshake.handle_octets(&hex(&format!("{REPLY} {reply}")));
    handshake
}

fn told(handshake: &mut Handshake) -> (MpaError, Terms) {
    assert_eq!(handshake.state(), State::Dead);
    match handshake.poll_outcome() {
        Some(Outcome::Failed {
            error,
            tell: Some(terms),
        }) => (error, terms),
        other => panic!("{other:?}"),
    }
}

#[test]
fn c28_the_enhanced_request() {
    let handshake = Handshake::initiate(options(true, ALL, 1, 1), b"", NOW).unwrap();
    let request = hex(&format!("{REQUEST} 50 02 0004 c001 c001"));
    assert_eq!(handshake.output(), request);
}

#[test]
fn c29_508_octets_are_left() {
    let longest = Handshake::initiate(options(true, ALL, 1, 1), &[7; 508], NOW).unwrap();
    assert_eq!(longest.output()[18..20], [0x02, 0x00]);
    let longer = Handshake::initiate(options(true, ALL, 1, 1), &[7; 509], NOW).map(|_| ());
    assert_eq!(longer, Err(HandshakeMisuse::PrivateData(508)));
}

#[test]
fn c30_too_little_for_the_depths_closes() {
    for data in ["0000", "0003 010203"] {
        let mut handshake = Handshake::respond(Options::default(), NOW);
        handshake.handle_octets(&hex(&format!("{REQUEST} 50 02 {data}")));
        failed(&mut handshake, MpaError::Startup);
    }
}

#[test]
fn c31_c32_an_unenhanced_request_gets_an_unenhanced_reply() {
    assert_eq!(
        replied(Options::default(), "40 01 0000").0,
        hex("40 01 0000")
    );
    assert_eq!(
        replied(Options::default(), "40 02 0000").0,
        hex("40 02 0000")
    );
}

#[test]
fn c33_an_enhanced_request_gets_an_enhanced_refusal() {
    let mut handshake = Handshake::respond(options(true, ALL, 5, 6), NOW);
    handshake.handle_octets(&hex(&format!("{REQUEST} 50 02 0004 8001 c001")));
    handshake.poll_outcome().unwrap();
    handshake.reject(b"no").unwrap();
    assert_eq!(
        handshake.output(),
        hex(&format!("{REPLY} 70 02 0006 8005 c001 6e6f"))
    );
}

#[test]
fn c34_the_reply_offers_what_both_can() {
    let write_or_read = RtrSet::WRITE_OR_READ;
    let (reply, terms) = replied(options(true, write_or_read, 4, 4), "50 02 0004 c004 4004");
    // Read and Send were offered.
    assert_eq!(reply, hex("50 02 0004 8004 4004"));
    let read = RtrSet {
        read: true,
        ..RtrSet::EMPTY
    };
    assert_eq!(terms.rtr, read);
}

#[test]
fn c35_without_a_common_one_it_offers_its_own() {
    let write = RtrSet {
        write: true,
        ..RtrSet::EMPTY
    };
    let (reply, _) = replied(options(true, write, 4, 4), "50 02 0004 c004 4004");
    assert_eq!(reply, hex("50 02 0004 8004 8004"));
}

#[test]
fn c36_without_a_the_others_mean_nothing() {
    let (reply, terms) = replied(options(true, ALL, 4, 4), "50 02 0004 4004 c004");
    assert_eq!(reply, hex("50 02 0004 0004 0004"));
    assert_eq!(terms.rtr, RtrSet::EMPTY);
}

#[test]
fn c37_no_ready_to_receive_message_in_common() {
    for reply in [
        "50 02 0004 c004 0004",
        "50 02 0004 8004 0004",
        "50 02 0004 0004 0004",
    ] {
        let mut handshake = concluded(options(true, RtrSet::WRITE_OR_READ, 4, 4), reply);
        let (error, terms) = told(&mut handshake);
        assert_eq!(error, MpaError::NoMatchingRtr, "{reply}");
        let mut sut = Sut::new(terms, Config::default());
        sut.engine = Engine::refusing(&terms, Config::default(), error, NOW);
        sut.expect_terminate("20 07 00 00");
    }
}

#[test]
fn c38_the_responder_reads_deeper_than_we_serve() {
    let mut handshake = concluded(options(true, ALL, 4, 4), "50 02 0004 8004 8005");
    let (error, terms) = told(&mut handshake);
    assert_eq!(error, MpaError::InsufficientIrd);
    let mut sut = Sut::new(terms, Config::default());
    sut.engine = Engine::refusing(&terms, Config::default(), error, NOW);
    sut.expect_terminate("20 06 00 00");
}

#[test]
fn a_ready_to_receive_read_needs_a_place() {
    for (ird, is_enough) in [("8000", false), ("8001", true), ("bfff", true)] {
        let reply = format!("50 02 0004 {ird} 4004");
        let mut handshake = concluded(options(true, ALL, 4, 4), &reply);
        if is_enough {
            let outcome = handshake.poll_outcome();
            assert!(
                matches!(outcome, Some(Outcome::Established { .. })),
                "{ird}"
            );
        } else {
            assert_eq!(told(&mut handshake).0, MpaError::InsufficientIrd);
        }
    }
}

#[test]
fn c39_what_is_not_negotiated_is_mirrored() {
    let (reply, terms) = replied(options(true, ALL, 5, 6), "50 02 0004 8004 bfff");
    // Their ORD is not told: neither is our IRD.
    assert_eq!(reply, hex("50 02 0004 bfff 8004"));
    assert_eq!(terms.depths, Depths { ird: 5, ord: 4 });
    let (reply, terms) = replied(options(true, ALL, 5, 6), "50 02 0004 bfff 8004");
    assert_eq!(reply, hex("50 02 0004 8005 bfff"));
    assert_eq!(terms.depths, Depths { ird: 5, ord: 6 });
    let silent = Options {
        revision: Revision::Two(PeerToPeer {
            ask: false,
            rtr: ALL,
            negotiate_depths: false,
        }),
        ..options(false, ALL, 5, 6)
    };
    let handshake = Handshake::initiate(silent, b"", NOW).unwrap();
    assert_eq!(handshake.output()[16..], hex("50 02 0004 3fff 3fff"));
    let mut handshake = concluded(silent, "50 02 0004 3fff 3fff");
    assert_eq!(
        established(&mut handshake).depths,
        Depths { ird: 5, ord: 6 }
    );
    assert_eq!(NOT_NEGOTIATED, 0x3fff);
}

#[test]
fn c40_reads_wait_for_each_other() {
    let mut handshake = concluded(options(true, ALL, 4, 4), "50 02 0004 8002 8004");
    let terms = established(&mut handshake);
    assert_eq!(terms.depths, Depths { ird: 4, ord: 2 });
    let mut sut = Sut::new(terms, Config::default());
    let (stag, to) = (Stag(9), 0);
    let remote = Remote { stag, to };
    for id in 1..=3 {
        sut.read(id, 4, remote, remote);
    }
    sut.send(4, b"behind".to_vec());
    // The RTR is a Write; two Reads follow it, and nothing overtakes the third.
    let lines = sut.lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    sut.feed_ulpdu("c142 00000009 0000000000000000 01020304");
    let lines = sut.lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("Read Request qn 1 msn 3"), "{lines:?}");
    assert_eq!(lines[1], "Send qn 0 msn 1 mo 0 last len 6");
    assert_eq!(sut.completed(), [(1, 4)]);
}

#[test]
fn c41_c42_the_first_fpdu_is_the_rtr() {
    for (rtr, fpdu) in [
        (
            RtrSet::WRITE_OR_READ,
            "000e c140 00000001 0000000000000000 ebd34c5f",
        ),
        (
            RtrSet {
                read: true,
                ..RtrSet::EMPTY
            },
            "002e 4141 00000000 00000001 00000001 00000000 00000001 0000000000000000 00000000 00000001 0000000000000000 27dbd7e7",
        ),
        (
            RtrSet {
                send: true,
                ..RtrSet::EMPTY
            },
            "0012 4143 00000000 00000000 00000001 00000000 587be8c4",
        ),
    ] {
        let terms = Terms {
            rtr,
            ..terms(Role::Initiator)
        };
        let mut sut = Sut::new(terms, Config::default());
        sut.send(1, b"queued before".to_vec());
        let output = sut.output();
        assert!(output.starts_with(&hex(fpdu)), "{output:02x?}");
        // The user hears of its own send only, however long the RTR is unanswered.
        if !rtr.read {
            assert_eq!(sut.completed(), [(1, 13)]);
        } else {
            sut.feed(&hex("000e c142 00000001 0000000000000000 21a3e83e"));
            assert_eq!(sut.completed(), [(1, 13)]);
        }
    }
}

#[test]
fn c42_c44_c45_an_rtr_is_seen_by_nobody() {
    for (ulpdu, answer) in [
        ("c140 00000000 ffffffffffffffff", None),
        ("c140 0000abcd 0000000000000000", None),
        (
            "4141 00000000 00000001 00000001 00000000 0000abcd 0000000000000000 00000000 00001234 0000000000000000",
            Some("Read Response stag 0xabcd to 0x0 last len 0"),
        ),
        ("4143 00000000 00000000 00000001 00000000", None),
    ] {
        let terms = Terms {
            rtr: ALL,
            ..terms(Role::Responder)
        };
        let mut sut = Sut::new(terms, Config::default());
        sut.receive(7, 4);
        sut.send(1, b"held".to_vec());
        assert_eq!(sut.output(), b"");
        sut.feed_ulpdu(ulpdu);
        let lines = sut.lines();
        let mut expected = vec!["Send qn 0 msn 1 mo 0 last len 4"];
        expected.extend(answer);
        assert_eq!(lines, expected);
        assert_eq!(sut.received(), []);
        // The receive is still there for the first message, which is number 2 after a Send.
        let msn = if ulpdu.starts_with("4143") { 2 } else { 1 };
        sut.feed_ulpdu(&format!("4143 00000000 00000000 {msn:08x} 00000000 6869"));
        assert_eq!(sut.received(), [(7, 2)]);
    }
}

#[test]
fn c43_a_read_rtr_of_intels() {
    let mut sut = Sut::new(terms(Role::Responder), Config::default());
    sut.feed_ulpdu("4141 00000000 00000001 00000001 00000000 0000abcd 0000000000000000 00000000 00001234 0000000000000000");
    assert_eq!(sut.ulpdus(), [hex("c142 0000abcd 0000000000000000")]);
}

#[test]
fn c46_one_more_try_with_revision_1() {
    let mut handshake = Handshake::initiate(options(true, ALL, 4, 4), b"words", NOW).unwrap();
    assert!(handshake.fallback(NOW).is_none());
    handshake.handle_end();
    failed(&mut handshake, MpaError::Lost);
    let mut second = handshake.fallback(NOW).unwrap();
    assert_eq!(
        second.output(),
        hex(&format!("{REQUEST} 40 01 0005 776f726473"))
    );
    second.handle_end();
    assert!(second.fallback(NOW).is_none());
    // Not after a malformed Reply, nor when time was up.
    let handshake = concluded(Options::default(), "40 07 0000");
    assert!(handshake.fallback(NOW).is_none());
    let mut handshake = Handshake::initiate(Options::default(), b"", NOW).unwrap();
    handshake.handle_timeout(NOW * 2);
    assert!(handshake.fallback(NOW).is_none());
}

#[test]
fn c47_an_unenhanced_reply_to_an_enhanced_request() {
    let mut handshake = concluded(Options::default(), "40 02 0000");
    failed(&mut handshake, MpaError::Startup);
}

#[test]
fn c48_a_failure_of_our_own_is_told() {
    let terms = terms(Role::Initiator);
    let mut sut = Sut::new(terms, Config::default());
    sut.engine = Engine::refusing(&terms, Config::default(), MpaError::Local, NOW);
    sut.expect_terminate("20 05 00 00");
    // A responder that nobody has spoken to may not say anything.
    let mut sut = Sut::new(crate::rig::terms(Role::Responder), Config::default());
    sut.engine = Engine::refusing(&sut.terms, Config::default(), MpaError::Local, NOW);
    assert_eq!(sut.output(), b"");
    assert_eq!(sut.actions().last(), Some(&Action::Close));
}

#[test]
fn both_users_see_the_depths_of_the_other_as_sent() {
    let mut handshake = Handshake::respond(options(true, ALL, 4, 4), NOW);
    handshake.handle_octets(&hex(&format!("{REQUEST} 50 02 0004 8009 c00a")));
    let seen = Enhanced {
        peer_to_peer: true,
        rtr: RtrSet::WRITE_OR_READ,
        ird: 9,
        ord: 10,
    };
    match handshake.poll_outcome() {
        Some(Outcome::Requested { enhanced, .. }) => assert_eq!(enhanced, Some(seen)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_old_responder_closes_on_revision_2() {
    let mut handshake = Handshake::respond(revision_1(), NOW);
    handshake.handle_octets(&hex(&format!("{REQUEST} 50 02 0004 8009 c00a")));
    failed(&mut handshake, MpaError::Startup);
}
