//! A startup that is refused: what the other end hears of it, and what is left of the TCP connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use iwarp::{Config, IwarpDriver};
use proto::mpa::{Handshake, Options, Outcome};
use via::provider::Timeout;
use via::{Access, Descriptor, Error, Memory, NetAddress, Nic, ViConfig};

fn nic(config: Config) -> (Nic, Config) {
    let driver = IwarpDriver::new(config).expect("a driver");
    let nic = Nic::open(&driver).expect("opens");
    nic.on_error(|_| {}).expect("a handler");
    (nic, driver.config())
}

fn caller(at: impl Into<SocketAddr>) -> TcpStream {
    let at = at.into();
    loop {
        if let Ok(tcp) = TcpStream::connect(at) {
            tcp.set_read_timeout(LONG).expect("TCP");
            break tcp;
        }
        thread::yield_now();
    }
}

/// A listener, and a caller who has got through to it.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let here = caller(listener.local_addr().expect("bound"));
    let (there, _) = listener.accept().expect("the caller");
    there.set_read_timeout(LONG).expect("TCP");
    (here, there)
}

#[test]
fn c14_a_refusal_is_the_last_that_is_said() {
    let (nic, config) = nic(Config {
        address: "127.0.0.1:0".parse().expect("an address"),
        // Of Full Operation a marker would be the first sign.
        markers: true,
        ..Config::default()
    });
    let at = nic.address(b"").expect("short");
    // Of either revision, and with markers both ways.
    for (request, head) in [
        (&b"MPA ID Req Frame\xc0\x01\0\0"[..], [0xe0, 1]),
        (
            &b"MPA ID Req Frame\xd0\x02\0\x04\0\x01\0\x01"[..],
            [0xf0, 2],
        ),
    ] {
        let said = thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let mut tcp = caller(config.address);
                tcp.write_all(request).expect("it listens");
                let mut said = Vec::new();
                tcp.read_to_end(&mut said).expect("FIN, and no reset");
                said
            });
            let incoming = nic.connect_wait(&at, LONG).expect("a request");
            incoming.reject().expect("it is there");
            asking.join().expect("no panic")
        });
        assert_eq!(said[..16], *b"MPA ID Rep Frame");
        assert_eq!(said[16..18], head);
        let private = usize::from(u16::from_be_bytes([said[18], said[19]]));
        assert_eq!(said.len(), 20 + private, "{said:02x?}");
    }
}

#[test]
fn c15_who_is_refused_says_nothing_more() {
    for (markers, reply) in [
        (false, &b"MPA ID Rep Frame\x70\x02\0\x08\0\0\0\0full"[..]),
        (true, &b"MPA ID Rep Frame\xf0\x02\0\x08\0\0\0\0full"[..]),
    ] {
        let (nic, _) = nic(Config {
            markers,
            ..Config::default()
        });
        let tag = nic.create_ptag().expect("a tag");
        let vi = nic.create_vi(&ViConfig::new(&tag)).expect("a VI");
        let memory = Memory::private(64).expect("memory");
        let region = nic.register(memory, &tag, Access::Local).expect("room");
        vi.post_recv(&Descriptor::recv().segment(&region, 0..64), 1)
            .expect("posts");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let SocketAddr::V4(at) = listener.local_addr().expect("bound") else {
            panic!("not IPv4");
        };
        thread::scope(|scope| {
            let refusing = scope.spawn(|| {
                let (mut tcp, _) = listener.accept().expect("a caller");
                tcp.set_read_timeout(LONG).expect("TCP");
                let mut head = [0; 20];
                tcp.read_exact(&mut head).expect("a Request");
                let mut words = vec![0; usize::from(u16::from_be_bytes([head[18], head[19]]))];
                tcp.read_exact(&mut words).expect("private data");
                tcp.write_all(reply).expect("it waits");
                let mut rest = Vec::new();
                tcp.read_to_end(&mut rest).expect("FIN, and no reset");
                rest
            });
            let to = NetAddress::new(iwarp::host(at), b"").expect("short");
            let refused = vi.connect(&nic.address(b"").expect("short"), &to, LONG);
            assert_eq!(refused.err(), Some(Error::Reject));
            assert_eq!(refusing.join().expect("no panic"), [0; 0]);
        });
        // And is not asked once more, as one who closes without a word would be.
        listener.set_nonblocking(true).expect("TCP");
        assert!(listener.accept().is_err());
    }
}

#[test]
fn between_two_waits_the_port_stays_open_for_a_moment() {
    let (nic, config) = nic(Config {
        address: "127.0.0.1:0".parse().expect("an address"),
        ..Config::default()
    });
    let at = nic.address(b"").expect("short");
    let request = b"MPA ID Req Frame\xc0\x01\0\0";
    let ask = |mut tcp: TcpStream| {
        tcp.write_all(request).expect("it listens");
        tcp
    };
    let _first = thread::scope(|scope| {
        let asking = scope.spawn(|| ask(caller(config.address)));
        let incoming = nic.connect_wait(&at, LONG).expect("a request");
        incoming.reject().expect("it is there");
        asking.join().expect("no panic")
    });
    let _second = ask(TcpStream::connect(config.address).expect("it is open"));
    let incoming = nic.connect_wait(&at, LONG).expect("a request");
    incoming.reject().expect("it is there");
    while TcpStream::connect(config.address).is_ok() {
        thread::yield_now();
    }
}

/// Else one who tries again while nobody waits would do so for ever.
#[test]
fn who_speaks_otherwise_is_not_a_place_where_nobody_waits() {
    let (nic, _) = nic(Config::default());
    let tag = nic.create_ptag().expect("a tag");
    let vi = nic.create_vi(&ViConfig::new(&tag)).expect("a VI");
    for said in [
        &b"SSH-2.0-x\r\n"[..],
        // Not peer-to-peer, as was asked for.
        b"MPA ID Rep Frame\x50\x02\0\x04\0\x10\0\x10",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let SocketAddr::V4(at) = listener.local_addr().expect("bound") else {
            panic!("not IPv4");
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut tcp, _) = listener.accept().expect("a caller");
                let mut head = [0; 20];
                tcp.read_exact(&mut head).expect("a Request");
                let mut words = vec![0; usize::from(u16::from_be_bytes([head[18], head[19]]))];
                tcp.read_exact(&mut words).expect("private data");
                tcp.write_all(said).expect("it waits");
            });
            let to = NetAddress::new(iwarp::host(at), b"").expect("short");
            let refused = vi.connect(&nic.address(b"").expect("short"), &to, LONG);
            assert_eq!(refused.err(), Some(Error::Reject));
        });
    }
}

/// Reads what the startup wants, and no octet more, until there is a result.
fn carry_on(tcp: &mut TcpStream, handshake: &mut Handshake) -> Outcome {
    loop {
        tcp.write_all(handshake.output()).expect("connected");
        handshake.handle_written(handshake.output().len());
        if let Some(outcome) = handshake.poll_outcome() {
            return outcome;
        }
        let mut room = vec![0; handshake.wants()];
        let n = tcp.read(&mut room).expect("comes");
        assert_ne!(n, 0, "more of the frame");
        assert_eq!(handshake.handle_octets(&room[..n]), n);
    }
}

/// Whoever uses the codec by itself may go on without MPA.
#[test]
fn c14_c15_tcp_is_its_users_again() {
    let options = Options {
        markers: true,
        ..Options::default()
    };
    let (mut here, mut there) = pair();
    let plain: Vec<u8> = (0..3000).map(|i| (i * 7) as u8).collect();
    thread::scope(|scope| {
        let refusing = scope.spawn(|| {
            let mut handshake = Handshake::respond(options, Duration::ZERO);
            let asked = carry_on(&mut there, &mut handshake);
            assert!(matches!(asked, Outcome::Requested { .. }), "{asked:?}");
            handshake.reject(b"full").expect("short");
            // At once behind the Reply.
            let glued = [handshake.output(), &plain].concat();
            there.write_all(&glued).expect("connected");
            let mut come = vec![0; plain.len()];
            there.read_exact(&mut come).expect("comes");
            assert_eq!(come, plain);
            there
        });
        let mut handshake = Handshake::initiate(options, b"room?", Duration::ZERO).expect("short");
        match carry_on(&mut here, &mut handshake) {
            Outcome::Rejected { private_data, .. } => assert_eq!(private_data, b"full"),
            other => panic!("{other:?}"),
        }
        let mut come = vec![0; plain.len()];
        here.read_exact(&mut come).expect("comes");
        assert_eq!(come, plain);
        here.write_all(&plain).expect("connected");
        let mut there = refusing.join().expect("no panic");
        // Neither has said a word beside that.
        here.shutdown(std::net::Shutdown::Write).expect("connected");
        there
            .shutdown(std::net::Shutdown::Write)
            .expect("connected");
        for tcp in [&mut here, &mut there] {
            assert_eq!(tcp.read(&mut [0; 1]).expect("its end"), 0);
        }
    });
}

const LONG: Timeout = Some(Duration::from_secs(20));
