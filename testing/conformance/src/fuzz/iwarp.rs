//! What an iWARP peer can send: startup frames and records, headers, and messages.

use std::time::Duration;

use proto::ddp::Header;
use proto::mpa::{
    Deframer, Depths, FPDU_LEN_MAX, Framer, Handshake, MarkerCheck, Options, Piece, Place, Ready,
    Role, RtrSet, Terms,
};
use proto::rdmap::{Config, Engine, Line, NoBuffer, Operation, Receive, Remote, Work, WorkId};

use crate::plain::Plain;

/// A startup frame, then records: the first octet says which end this is and what was agreed.
///
/// # Panics
/// When it takes more than a frame, or holds more than a record.
pub fn fuzz_mpa(bytes: &[u8]) {
    let Some((&how, stream)) = bytes.split_first() else {
        return;
    };
    let handshake = if how & 1 == 0 {
        Ok(Handshake::respond(Options::default(), NOW))
    } else {
        Handshake::initiate(Options::default(), b"", NOW)
    };
    let mut handshake = handshake.expect("no private data is short");
    let mut left = stream;
    while handshake.wants() > 0 && !left.is_empty() {
        let some = left.len().min(handshake.wants());
        let taken = handshake.handle_octets(&left[..some]);
        assert!(taken <= 532, "a frame is no longer");
        if taken == 0 {
            break;
        }
        left = &left[taken..];
        while handshake.poll_outcome().is_some() {}
    }
    let markers = (how & 2 != 0).then_some(MarkerCheck::On);
    let mut deframer = Deframer::new(markers, how & 4 != 0, 0);
    let mut left = stream;
    loop {
        let taken = deframer.handle_octets(left);
        left = &left[taken..];
        assert!(deframer.held() <= FPDU_LEN_MAX);
        match deframer.poll() {
            Ok(Ready::Fpdu) => {
                let ulpdu = deframer.ulpdu();
                let len: usize = ulpdu.pieces().map(<[u8]>::len).sum();
                assert_eq!(len, usize::from(ulpdu.len()));
                deframer.release();
            }
            Ok(_) if taken > 0 => {}
            _ => return,
        }
    }
}

/// A header, and the line of a capture.
///
/// # Panics
/// When a header that was understood is not what it was understood as.
pub fn fuzz_ddp(bytes: &[u8]) {
    if let Ok(header) = Header::decode(bytes) {
        assert_eq!(Header::decode(&header.encode()), Ok(header));
    }
    assert!(!Line(bytes).to_string().is_empty());
}

/// Well framed segments, each behind its length in an octet, to an engine that may be reached a little: the first octet says how it was set up.
///
/// # Panics
/// When they reach what is not theirs, or the engine grows.
pub fn fuzz_rdmap(bytes: &[u8]) {
    let Some((&how, mut rest)) = bytes.split_first() else {
        return;
    };
    let terms = Terms {
        role: [Role::Initiator, Role::Responder][usize::from(how & 1)],
        crc: true,
        send_markers: false,
        receive_markers: how & 2 != 0,
        depths: Depths { ird: 2, ord: 2 },
        rtr: RtrSet::EMPTY,
    };
    let config = Config {
        receive_buffer: 0,
        mulpdu: 128,
        extensions: how & 4 != 0,
        no_buffer: [NoBuffer::Terminate, NoBuffer::Wait][usize::from(how >> 3 & 1)],
        ..Config::default()
    };
    let mut engine = Engine::new(&terms, config);
    let mut memory = Plain::default();
    for number in [REGION, GUARD, RECEIVED, RECEIVED + 1, READ] {
        memory.0.insert(number, vec![0x5a; 64]);
    }
    for id in [RECEIVED, RECEIVED + 1] {
        let receive = Receive {
            id: WorkId(id),
            into: Place::new(id),
            capacity: 16,
        };
        engine.post_receive(receive).expect("it receives");
    }
    let sink = Remote {
        stag: proto::ddp::Stag(0x51),
        to: 0x500,
    };
    let operation = Operation::Read {
        into: Place::new(READ),
        len: 8,
        sink,
        source: sink,
    };
    let read = Work {
        id: WorkId(READ),
        operation,
        fence: false,
    };
    engine.post(read).expect("it may read");
    let mut framer = Framer::new(terms.receive_markers, true);
    while let Some((&len, after)) = rest.split_first() {
        let (ulpdu, after) = after.split_at(after.len().min(len.into()));
        rest = after;
        let mut stream = framed(&mut framer, ulpdu, &memory);
        while !stream.is_empty() {
            let taken = engine.handle_octets(&stream);
            stream.drain(..taken);
            engine.handle_arrivals(&mut memory, NOW);
            if taken == 0 {
                break;
            }
        }
        let said = memory.said(&mut engine);
        assert!(said.len() < 1 << 16);
    }
    engine.handle_fin(&mut memory, NOW);
    assert!(std::iter::from_fn(|| engine.poll_action()).count() < 1000);
    assert_eq!(memory.0.get(&GUARD), Some(&vec![0x5a; 64]));
}

pub(super) fn framed(framer: &mut Framer, ulpdu: &[u8], memory: &Plain) -> Vec<u8> {
    framer
        .frame(ulpdu, None, memory)
        .expect("it is short and at hand");
    let mut stream = Vec::new();
    for piece in framer.pieces() {
        if let Piece::Own(octets) = piece {
            stream.extend_from_slice(octets);
        }
    }
    framer.handle_written(stream.len() as u64);
    stream
}

pub(super) fn mpa_seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    let mut initiator =
        Handshake::initiate(Options::default(), b"who is there", NOW).expect("it is short");
    let mut responder = Handshake::respond(Options::default(), NOW);
    let request = initiator.output().to_vec();
    initiator.handle_written(request.len());
    responder.handle_octets(&request);
    while responder.poll_outcome().is_some() {}
    responder.accept(b"nobody").expect("it has been asked");
    seeds.push(("request".into(), [&[0][..], &request].concat()));
    seeds.push(("reply".into(), [&[1][..], responder.output()].concat()));
    for (name, how) in [("plain", 0u8), ("markers", 2), ("crc", 4), ("both", 6)] {
        let mut framer = Framer::new(how & 2 != 0, how & 4 != 0);
        let mut stream = vec![how];
        for ulpdu in [&[0x41; 18][..], &[], &[7; 700]] {
            stream.extend(framed(&mut framer, ulpdu, &Plain::default()));
        }
        seeds.push((format!("records_{name}"), stream));
    }
    seeds
}

pub(super) fn ddp_seeds() -> Vec<(String, Vec<u8>)> {
    let ulpdus = ULPDUS.iter();
    ulpdus
        .map(|(name, digits)| ((*name).to_owned(), hex(digits)))
        .collect()
}

pub(super) fn rdmap_seeds() -> Vec<(String, Vec<u8>)> {
    let mut all = vec![4];
    let mut seeds = Vec::new();
    for (name, digits) in ULPDUS {
        let ulpdu = hex(digits);
        let entry = [&[ulpdu.len() as u8][..], &ulpdu].concat();
        all.extend_from_slice(&entry);
        seeds.push(((*name).to_owned(), [&[4][..], &entry].concat()));
    }
    seeds.push(("one_after_the_other".into(), all));
    seeds
}

fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<_> = digits.chars().filter_map(|c| c.to_digit(16)).collect();
    let pairs = digits.chunks(2);
    pairs
        .map(|pair| {
            pair.iter()
                .fold(0, |octet, digit| octet << 4 | *digit as u8)
        })
        .collect()
}

/// One of each kind.
const ULPDUS: &[(&str, &str)] = &[
    ("write", "c140 00000077 0000000000000008 010203"),
    (
        "read_request",
        "4141 00000000 00000001 00000001 00000000 00000051 0000000000000500 00000004 00000077 0000000000000000",
    ),
    (
        "read_response",
        "c142 00000051 0000000000000500 0102030405060708",
    ),
    ("send", "4143 00000000 00000000 00000001 00000000 6869"),
    ("send_part", "0143 00000000 00000000 00000002 00000000 6869"),
    (
        "send_invalidate",
        "4144 00000077 00000000 00000002 00000000 6869",
    ),
    (
        "send_solicited",
        "4145 00000000 00000000 00000002 00000000 6869",
    ),
    (
        "send_solicited_invalidate",
        "4146 00000077 00000000 00000002 00000000 6869",
    ),
    (
        "terminate",
        "4147 00000000 00000002 00000001 00000000 20020000",
    ),
    (
        "immediate",
        "4148 00000000 00000000 00000002 00000000 0102030405060708",
    ),
    (
        "immediate_solicited",
        "4149 00000000 00000000 00000002 00000000 0102030405060708",
    ),
    (
        "atomic_request",
        "414a 00000000 00000001 00000001 00000000 00000000 00000009 00000077 0000000000000000 0000000000000001 0000000000000000 0000000000000000 0000000000000000",
    ),
    (
        "atomic_response",
        "414b 00000000 00000003 00000001 00000000 00000009 0000000000000001",
    ),
];

pub(super) const NOW: Duration = Duration::from_secs(100);
/// The only region that a peer may know.
pub(super) const REGION: u64 = 0x77;
/// Numbers that are no STag.
pub(super) const GUARD: u64 = 1 << 40;
pub(super) const RECEIVED: u64 = 2 << 40;
pub(super) const READ: u64 = 3 << 40;
