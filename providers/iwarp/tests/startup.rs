//! What either end makes of what the other says of itself at the startup (RFC 6581).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use iwarp::{Config, IwarpDriver, Role};
use proto::mpa::{Crc, Enhanced, Flags, Kind, Rtr, RtrSet, Startup};
use proto::setup::{self, Message};
use via::provider::Timeout;
use via::{
    Access, Descriptor, Error, Fault, MemHandle, Memory, NetAddress, Nic, Reliability,
    RemoteSegment, Vi, ViConfig,
};

/// A frame of revision 2.
fn frame(kind: Kind, enhanced: Enhanced) -> Vec<u8> {
    frame_saying(kind, enhanced, &[])
}

fn frame_saying(kind: Kind, enhanced: Enhanced, words: &[u8]) -> Vec<u8> {
    let flags = Flags {
        markers: false,
        crc: true,
        rejected: false,
    };
    let frame = Startup {
        kind,
        flags,
        revision: 2,
        enhanced: Some(enhanced),
        private_data: words.to_vec(),
    };
    frame.encode()
}

/// Somebody who answers no RDMA Read.
const UNREADABLE: Enhanced = Enhanced {
    peer_to_peer: true,
    rtr: RtrSet {
        write: true,
        ..RtrSet::EMPTY
    },
    ird: 0,
    ord: 0,
};

/// Takes a Request, says `enhanced`, and hands over what comes.
fn answer(listener: &TcpListener, enhanced: Enhanced) -> TcpStream {
    let (mut tcp, _) = listener.accept().expect("a caller");
    tcp.set_read_timeout(LONG).expect("TCP");
    let mut head = [0; 20];
    tcp.read_exact(&mut head).expect("a Request");
    let mut private = vec![0; usize::from(u16::from_be_bytes([head[18], head[19]]))];
    tcp.read_exact(&mut private).expect("private data");
    tcp.write_all(&frame(Kind::Reply, enhanced))
        .expect("a listener");
    tcp
}

fn nic(config: Config) -> (Nic, Config) {
    let driver = IwarpDriver::new(config).expect("a driver");
    let nic = Nic::open(&driver).expect("opens");
    nic.on_error(|_| {}).expect("a handler");
    (nic, driver.config())
}

/// A connection to a responder that says `enhanced`.
fn call(nic: &Nic, vi: &Vi, enhanced: Enhanced) -> (Result<via::ViAttributes, Error>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let SocketAddr::V4(at) = listener.local_addr().expect("bound") else {
        panic!("not IPv4");
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| answer(&listener, enhanced));
        let to = NetAddress::new(iwarp::host(at), b"").expect("short");
        let result = vi.connect(&nic.address(b"").expect("short"), &to, LONG);
        (result, other.join().expect("no panic"))
    })
}

#[test]
fn a_read_of_who_answers_none_fails_and_stalls_nothing() {
    let (nic, _) = nic(Config::default());
    let tag = nic.create_ptag().expect("a tag");
    let vi = nic.create_vi(&ViConfig::new(&tag)).expect("a VI");
    let memory = Memory::private(64).expect("memory");
    let region = nic.register(memory, &tag, Access::Local).expect("room");
    let (connected, tcp) = call(&nic, &vi, UNREADABLE);
    connected.expect("accepts");
    let from = RemoteSegment {
        addr: 0,
        handle: MemHandle(7),
    };
    vi.post_send(&Descriptor::send().segment(&region, 0..4), 1)
        .expect("posts");
    let read = Descriptor::rdma_read(from).segment(&region, 0..4);
    vi.post_send(&read, 2).expect("posts");
    let sent = vi.send_wait(LONG).expect("ends");
    assert_eq!((sent.token, sent.status.fault()), (1, None));
    let failed = vi.send_wait(LONG).expect("ends");
    assert_eq!(
        (failed.token, failed.status.fault()),
        (2, Some(Fault::Format))
    );
    drop(tcp);
}

#[test]
fn reliable_reception_needs_a_peer_that_answers_reads() {
    let (nic, config) = nic(Config {
        address: "127.0.0.1:0".parse().expect("an address"),
        ..Config::default()
    });
    let tag = nic.create_ptag().expect("a tag");
    let vi = || {
        let config = ViConfig::new(&tag).reliability(Reliability::ReliableReception);
        nic.create_vi(&config).expect("a VI")
    };
    let (refused, mut tcp) = call(&nic, &vi(), UNREADABLE);
    assert_eq!(refused.err(), Some(Error::InvalidReliabilityLevel));
    // It has said yes already (C-48).
    assert_eq!(terminate(&mut tcp), "2005");
    let (connected, _tcp) = call(
        &nic,
        &vi(),
        Enhanced {
            ird: 1,
            ..UNREADABLE
        },
    );
    connected.expect("accepts");

    // And the other way round: a stranger, and one of us.
    let at = nic.address(b"").expect("short");
    for words in [Vec::new(), request(&at, &vi())] {
        thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let tcp = loop {
                    if let Ok(tcp) = TcpStream::connect(config.address) {
                        break tcp;
                    }
                    thread::yield_now();
                };
                is_rejected(tcp, &words)
            });
            let mut incoming = nic.connect_wait(&at, LONG).expect("a request");
            let refused = incoming.accept(&vi());
            assert_eq!(refused.err(), Some(Error::InvalidReliabilityLevel));
            drop(incoming);
            assert!(asking.join().expect("no panic"));
        });
    }

    // Over a connection that is there already, too.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    for (words, why) in [
        // What a stranger says is not understood there.
        (Vec::new(), Error::Reject),
        (accept(&vi()), Error::InvalidReliabilityLevel),
    ] {
        let tcp = TcpStream::connect(listener.local_addr().expect("bound")).expect("listens");
        let (ours, _) = listener.accept().expect("the asker");
        thread::scope(|scope| {
            let asking = scope.spawn(|| is_rejected(tcp, &words));
            let deadline = Some(Instant::now() + LONG.expect("some"));
            let refused = iwarp::over(&vi(), ours.into(), Role::Responder, &config, deadline);
            assert_eq!(refused, Err(why));
            assert!(asking.join().expect("no panic"));
        });
    }
}

#[test]
fn a_stranger_is_none_to_go_on_with_over_his_connection() {
    let (nic, config) = nic(Config::default());
    let tag = nic.create_ptag().expect("a tag");
    let vi = nic.create_vi(&ViConfig::new(&tag)).expect("a VI");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("bound");
    let deadline = Some(Instant::now() + LONG.expect("some"));
    let ours = TcpStream::connect(at).expect("listens");
    thread::scope(|scope| {
        let answering = scope.spawn(|| answer(&listener, UNREADABLE));
        let refused = iwarp::over(&vi, ours.into(), Role::Initiator, &config, deadline);
        assert_eq!(refused, Err(Error::Reject));
        assert_eq!(terminate(&mut answering.join().expect("no panic")), "2005");
    });
    let tcp = TcpStream::connect(at).expect("listens");
    let (ours, _) = listener.accept().expect("the asker");
    thread::scope(|scope| {
        let asking = scope.spawn(|| is_rejected(tcp, &[]));
        let refused = iwarp::over(&vi, ours.into(), Role::Responder, &config, deadline);
        assert_eq!(refused, Err(Error::Reject));
        assert!(asking.join().expect("no panic"));
    });
}

/// Asks as one that answers no RDMA Read; whether that is declined.
fn is_rejected(mut tcp: TcpStream, words: &[u8]) -> bool {
    let request = frame_saying(Kind::Request, UNREADABLE, words);
    tcp.write_all(&request).expect("a listener");
    tcp.set_read_timeout(LONG).expect("TCP");
    let mut reply = [0; 17];
    tcp.read_exact(&mut reply).expect("a Reply");
    reply[16] & 0x20 != 0
}

/// What sovia says of such a VI.
fn attributes(vi: &Vi) -> setup::Attributes {
    let ours = vi.ops().attributes().expect("alive");
    setup::Attributes {
        reliability: ours.reliability.bits(),
        enable_rdma_write: ours.enable_rdma_write,
        enable_rdma_read: ours.enable_rdma_read,
        max_transfer_size: ours.max_transfer_size,
        qos: ours.qos,
    }
}

fn request(at: &NetAddress, vi: &Vi) -> Vec<u8> {
    let address = setup::Address {
        host: at.host,
        discriminator_len: 0,
        discriminator: [0; setup::DISCRIMINATOR_MAX],
    };
    octets(&Message::Request(setup::Ask {
        local: address,
        remote: address,
        attributes: attributes(vi),
    }))
}

fn accept(vi: &Vi) -> Vec<u8> {
    octets(&Message::Accept {
        attributes: attributes(vi),
        data_len: 0,
    })
}

fn octets(message: &Message) -> Vec<u8> {
    message.encode(&mut [0; setup::MESSAGE_MAX]).to_vec()
}

/// The layer, type and code of the one record that `tcp` has.
fn terminate(tcp: &mut TcpStream) -> String {
    let covered = last_record(tcp);
    format!("{:02x}{:02x}", covered[20], covered[21])
}

/// The Terminate that is the one record that `tcp` has.
fn last_record(tcp: &mut TcpStream) -> Vec<u8> {
    let mut octets = Vec::new();
    tcp.read_to_end(&mut octets).expect("FIN, and no reset");
    let (covered, sum) = octets.split_last_chunk::<4>().expect("a record");
    let mut crc = Crc::new();
    crc.update(covered);
    assert_eq!(crc.octets(), *sum);
    assert_eq!(covered[2..4], [0x41, 0x47], "a Terminate");
    covered.to_vec()
}

/// C-85, also where the engine let it wait for a receive.
#[test]
fn a_message_of_ours_without_a_receive_is_named() {
    let (nic, config) = nic(Config {
        address: "127.0.0.1:0".parse().expect("an address"),
        ..Config::default()
    });
    let tag = nic.create_ptag().expect("a tag");
    let vi = nic.create_vi(&ViConfig::new(&tag)).expect("a VI");
    let at = nic.address(b"").expect("short");
    let words = request(&at, &vi);
    thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut tcp = loop {
                if let Ok(tcp) = TcpStream::connect(config.address) {
                    break tcp;
                }
                thread::yield_now();
            };
            tcp.set_read_timeout(LONG).expect("TCP");
            tcp.write_all(&frame_saying(Kind::Request, UNREADABLE, &words))
                .expect("a listener");
            let mut head = [0; 20];
            tcp.read_exact(&mut head).expect("a Reply");
            let mut said = vec![0; usize::from(u16::from_be_bytes([head[18], head[19]]))];
            tcp.read_exact(&mut said).expect("private data");
            tcp
        });
        let mut incoming = nic.connect_wait(&at, LONG).expect("a request");
        incoming.accept(&vi).expect("it fits");
        let mut tcp = asking.join().expect("no panic");
        // A Send of two octets.
        let header = *b"\x41\x43\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0";
        let mut record = [b"\0\x14", &header[..], b"hi", b"\0\0"].concat();
        let mut crc = Crc::new();
        crc.update(&record);
        record.extend(crc.octets());
        tcp.write_all(&record).expect("connected");
        while vi.state() == Ok(via::ViState::Connected) {
            let _nothing = vi.recv_done();
        }
        let told = last_record(&mut tcp);
        assert_eq!(told[20..24], *b"\x12\x02\xc0\0");
        assert_eq!(told[26..44], header);
    });
}

#[test]
fn a_responder_that_will_not_do_hears_why() {
    let (nic, _) = nic(Config::default());
    let tag = nic.create_ptag().expect("a tag");
    let vi = nic.create_vi(&ViConfig::new(&tag)).expect("a VI");
    let greedy = Enhanced {
        ord: 0x3ffe,
        ..UNREADABLE
    };
    let speechless = Enhanced {
        rtr: RtrSet {
            send: true,
            ..RtrSet::EMPTY
        },
        ..UNREADABLE
    };
    assert!(!RtrSet::WRITE_OR_READ.contains(Rtr::Send));
    // C-38 and C-37.
    for (enhanced, code) in [(greedy, "2006"), (speechless, "2007")] {
        let (refused, mut tcp) = call(&nic, &vi, enhanced);
        assert!(refused.is_err());
        assert_eq!(terminate(&mut tcp), code);
    }
}

/// C-46: a responder that closes on revision 2 is asked once more, with revision 1 and the same words.
#[test]
fn an_old_responder_is_asked_in_its_revision() {
    let (nic, _) = nic(Config::default());
    let tag = nic.create_ptag().expect("a tag");
    let vi = nic.create_vi(&ViConfig::new(&tag)).expect("a VI");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let SocketAddr::V4(at) = listener.local_addr().expect("bound") else {
        panic!("not IPv4");
    };
    let read_request = || {
        let (mut tcp, _) = listener.accept().expect("a caller");
        tcp.set_read_timeout(LONG).expect("TCP");
        let mut head = [0; 20];
        tcp.read_exact(&mut head).expect("a Request");
        let mut words = vec![0; usize::from(u16::from_be_bytes([head[18], head[19]]))];
        tcp.read_exact(&mut words).expect("private data");
        (tcp, head, words)
    };
    thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let to = NetAddress::new(iwarp::host(at), b"").expect("short");
            vi.connect(&nic.address(b"").expect("short"), &to, LONG)
        });
        let (tcp, head, words) = read_request();
        assert_eq!((head[16] & 0x10, head[17]), (0x10, 2));
        drop(tcp);
        let (mut tcp, head, again) = read_request();
        assert_eq!((head[16] & 0x10, head[17]), (0, 1));
        // Without what RFC 6581 puts before them.
        assert_eq!(words[4..], again);
        tcp.write_all(b"MPA ID Rep Frame\x40\x01\0\0")
            .expect("a listener");
        asking.join().expect("no panic").expect("connects");
    });
    // And not a third time.
    listener.set_nonblocking(true).expect("TCP");
    assert!(listener.accept().is_err());
}

const LONG: Timeout = Some(Duration::from_secs(20));
