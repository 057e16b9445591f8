//! What we say on the wire, decoded by tshark: each field as our own decoder has it.

use std::fs;
use std::process::Command;
use std::time::Duration;

use conformance::Plain;
use proto::ddp::{Header, Stag};
use proto::mpa::{Deframer, Handshake, Options, Outcome, Place, Ready, Revision};
use proto::rdmap::{Config, Engine, Operation, Receive, Remote, Work, WorkId};

const NOW: Duration = Duration::ZERO;
const CLIENT: u16 = 40000;
const SERVER: u16 = 7174;

/// A conversation: who says what, one segment each.
#[derive(Default)]
struct Capture {
    segments: Vec<(u16, Vec<u8>)>,
}

impl Capture {
    fn say(&mut self, port: u16, octets: &[u8]) {
        self.segments.push((port, octets.to_vec()));
    }

    /// One segment for each record.
    fn say_records(&mut self, port: u16, mut stream: &[u8]) {
        while let Some(length) = stream.first_chunk() {
            let len = usize::from(u16::from_be_bytes(*length)) + 2;
            let (record, rest) = stream.split_at(len.next_multiple_of(4) + 4);
            self.say(port, record);
            stream = rest;
        }
    }

    /// As a pcap file (Ethernet, IPv4, TCP; checksums of those are zero).
    fn pcap(&self) -> Vec<u8> {
        let mut file = Vec::new();
        for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 1] {
            file.extend(word.to_le_bytes());
        }
        // Next sequence number of each end.
        let (mut client, mut server) = (1000, 2000);
        let hello = [(CLIENT, 0x02), (SERVER, 0x12), (CLIENT, 0x10)];
        let hello = hello.map(|(port, flags)| (port, flags, &[][..]));
        let segments = self.segments.iter();
        let data = segments.map(|(port, octets)| (*port, 0x18, &octets[..]));
        for (second, (port, flags, octets)) in (0u32..).zip(hello.into_iter().chain(data)) {
            let from_client = port == CLIENT;
            let (seq, ack) = if from_client {
                (client, server)
            } else {
                (server, client)
            };
            let frame = frame(from_client, seq, ack, flags, octets);
            let advance = octets.len() as u32 + u32::from(flags & 0x02 != 0);
            if from_client {
                client += advance;
            } else {
                server += advance;
            }
            let len = frame.len() as u32;
            for word in [second, 0, len, len] {
                file.extend(word.to_le_bytes());
            }
            file.extend(frame);
        }
        file
    }
}

fn frame(from_client: bool, seq: u32, ack: u32, flags: u8, octets: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let len = (40 + octets.len()) as u16;
    frame.extend([0x45, 0]);
    frame.extend(len.to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    let (a, b) = ([192, 0, 2, 1], [192, 0, 2, 2]);
    let ends = if from_client { [a, b] } else { [b, a] };
    let ports = if from_client {
        [CLIENT, SERVER]
    } else {
        [SERVER, CLIENT]
    };
    ends.iter().for_each(|end| frame.extend(end));
    ports
        .iter()
        .for_each(|port| frame.extend(port.to_be_bytes()));
    frame.extend(seq.to_be_bytes());
    frame.extend(ack.to_be_bytes());
    frame.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    frame.extend(octets);
    frame
}

/// One end of the conversation.
struct End {
    engine: Engine,
    memory: Plain,
    port: u16,
}

impl End {
    fn speak(&mut self, other: &mut Self, capture: &mut Capture) {
        let said = self.memory.said(&mut self.engine);
        capture.say_records(self.port, &said);
        let taken = other.engine.handle_octets(&said);
        assert_eq!(taken, said.len());
        other.engine.handle_arrivals(&mut other.memory, NOW);
    }

    fn post(&mut self, id: u64, operation: Operation) {
        let work = Work {
            id: WorkId(id),
            operation,
            fence: false,
        };
        self.engine.post(work).expect("it is open");
    }
}

/// Startup of revision 1, a Send in three segments, a Write, a Read, and a Terminate for a Write that may not be.
fn conversation() -> Capture {
    let mut capture = Capture::default();
    let options = Options {
        revision: Revision::One,
        ..Options::default()
    };
    let mut initiator = Handshake::initiate(options, b"hello", NOW).expect("it is short");
    let mut responder = Handshake::respond(options, NOW);
    let request = initiator.output().to_vec();
    initiator.handle_written(request.len());
    responder.handle_octets(&request);
    capture.say(CLIENT, &request);
    assert!(matches!(
        responder.poll_outcome(),
        Some(Outcome::Requested { .. })
    ));
    responder.accept(b"welcome").expect("it has been asked");
    let reply = responder.output().to_vec();
    responder.handle_written(reply.len());
    initiator.handle_octets(&reply);
    capture.say(SERVER, &reply);
    let end = |handshake: &mut Handshake, port| {
        let Some(Outcome::Established { terms, .. }) = handshake.poll_outcome() else {
            panic!("both have agreed");
        };
        let config = Config {
            mulpdu: 128,
            ..Config::default()
        };
        End {
            engine: Engine::new(&terms, config),
            memory: Plain::default(),
            port,
        }
    };
    let mut client = end(&mut initiator, CLIENT);
    let mut server = end(&mut responder, SERVER);
    client.memory.0.insert(1 << 40, (0..=255).collect());
    client.memory.0.insert(0x51, vec![0; 64]);
    server.memory.0.insert(0x77, (0..64).collect());
    server.memory.0.insert(1 << 40, vec![0; 512]);
    let receive = Receive {
        id: WorkId(1),
        into: Place::new(1 << 40),
        capacity: 512,
    };
    server.engine.post_receive(receive).expect("it is open");
    let from = Place::new(1 << 40);
    let remote = |stag, to| Remote {
        stag: Stag(stag),
        to,
    };
    client.post(
        1,
        Operation::Send {
            from,
            len: 256,
            solicited: false,
            invalidate: None,
        },
    );
    let to = remote(0x77, 8);
    client.post(2, Operation::Write { from, len: 5, to });
    client.speak(&mut server, &mut capture);
    client.post(
        3,
        Operation::Read {
            into: Place::new(0x51),
            len: 33,
            sink: remote(0x51, 0),
            source: remote(0x77, 0),
        },
    );
    client.speak(&mut server, &mut capture);
    server.speak(&mut client, &mut capture);
    let to = remote(0xbad, 8);
    client.post(4, Operation::Write { from, len: 5, to });
    client.speak(&mut server, &mut capture);
    server.speak(&mut client, &mut capture);
    capture
}

/// What a decoder says of a record.
#[derive(Debug, PartialEq, Eq)]
struct Fields([Option<u64>; 9]);

const FIELDS: [&str; 9] = [
    "iwarp_mpa.ulpdulength",
    "iwarp_ddp.tagged_flag",
    "iwarp_ddp.last_flag",
    "iwarp_ddp.stag",
    "iwarp_ddp.tagged_offset",
    "iwarp_ddp.qn",
    "iwarp_ddp.msn",
    "iwarp_ddp.mo",
    "iwarp_rdma.opcode",
];

fn ours(record: &[u8]) -> Fields {
    let mut deframer = Deframer::new(None, true, 0);
    deframer.handle_octets(record);
    assert_eq!(deframer.poll(), Ok(Ready::Fpdu));
    let ulpdu = deframer.ulpdu();
    let mut octets = vec![0; ulpdu.len().into()];
    ulpdu.copy_to(&mut octets);
    let header = Header::decode(&octets).expect("it is ours");
    let (mut tagged, mut untagged) = ([None; 2], [None; 3]);
    match header {
        Header::Tagged(it) => tagged = [it.stag.0.into(), it.to].map(Some),
        Header::Untagged(it) => {
            untagged = [it.queue, it.msn.0, it.mo].map(|word| Some(word.into()));
        }
    }
    let [qn, msn, mo] = untagged;
    let [stag, to] = tagged;
    let is_tagged = u64::from(stag.is_some());
    Fields([
        Some(u64::from(ulpdu.len())),
        Some(is_tagged),
        Some(header.is_last().into()),
        stag,
        to,
        qn,
        msn,
        mo,
        Some(u64::from(header.ulp() & 0xf)),
    ])
}

fn number(text: &str) -> Option<u64> {
    match (text, text.strip_prefix("0x")) {
        ("True", _) => Some(1),
        ("False", _) => Some(0),
        (_, Some(digits)) => u64::from_str_radix(digits, 16).ok(),
        _ => text.parse().ok(),
    }
}

fn tshark(file: &std::path::Path, arguments: &[&str]) -> String {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file);
    command.args(["-o", "tcp.try_heuristic_first:TRUE"]);
    command.args(["--enable-heuristic", "iwarp_mpa_tcp"]);
    // They take short payloads for their own.
    command.args(["--disable-heuristic", "smb_direct_iwarp"]);
    command.args(["--disable-heuristic", "rpcrdma_iwarp"]);
    let output = command.args(arguments).output().expect("tshark runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn tshark_reads_what_we_wrote() {
    if Command::new("tshark").arg("--version").output().is_err() {
        println!("not tested here: there is no tshark (Debian's package tshark)");
        return;
    }
    let capture = conversation();
    let name = format!("sovia-capture-{}.pcap", std::process::id());
    let file = std::env::temp_dir().join(name);
    fs::write(&file, capture.pcap()).expect("a file");
    let fields = FIELDS.iter().flat_map(|field| ["-e", field]);
    let arguments = ["-T", "fields", "-Y", "iwarp_ddp"]
        .into_iter()
        .chain(fields);
    let table = tshark(&file, &arguments.collect::<Vec<_>>());
    let frames = ["iwarp_mpa.rev", "iwarp_mpa.crc_flag", "iwarp_mpa.pdlength"];
    let frames = frames.iter().flat_map(|field| ["-e", field]);
    let arguments = ["-T", "fields", "-Y", "iwarp_mpa.rev"]
        .into_iter()
        .chain(frames);
    let startup = tshark(&file, &arguments.collect::<Vec<_>>());
    let text = tshark(
        &file,
        &["-O", "iwarp_mpa,iwarp_ddp_rdmap", "-Y", "iwarp_mpa"],
    );
    fs::remove_file(&file).expect("it was there");

    let startup: Vec<Vec<_>> = startup
        .lines()
        .map(|line| line.split('\t').map(number).collect())
        .collect();
    let frame = |private| vec![Some(1), Some(1), Some(private)];
    assert_eq!(startup, [frame(5), frame(7)]);

    let records: Vec<_> = capture.segments[2..].iter().collect();
    let theirs: Vec<_> = table
        .lines()
        .map(|line| {
            let mut fields = line.split('\t').map(number);
            Fields([(); 9].map(|()| fields.next().flatten()))
        })
        .collect();
    let ours: Vec<_> = records.iter().map(|(_, record)| ours(record)).collect();
    assert_eq!(theirs, ours, "{text}");
    let opcodes: Vec<_> = ours.iter().filter_map(|fields| fields.0[8]).collect();
    assert_eq!(opcodes, [3, 3, 3, 0, 1, 2, 0, 7], "{text}");
    assert_eq!(text.matches("Good CRC32").count(), records.len(), "{text}");
    assert!(!text.contains("Malformed"), "{text}");
}
