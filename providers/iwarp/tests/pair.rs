//! Two NIC handles over loopback.

use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use iwarp::{Config, IwarpDriver};
use via::{
    Access, Descriptor, Error, Fault, Memory, Nic, Ptag, Region, Reliability, Vi, ViConfig, ViState,
};

struct Site {
    nic: Nic,
    tag: Ptag,
}

impl Site {
    fn open(driver: &IwarpDriver) -> Self {
        let nic = Nic::open(driver).expect("opens");
        nic.on_error(|_| {}).expect("a handler");
        let tag = nic.create_ptag().expect("a tag");
        Self { nic, tag }
    }

    fn vi(&self, level: Reliability) -> Vi {
        let config = ViConfig::new(&self.tag)
            .reliability(level)
            .max_transfer_size(16 << 20)
            .accept_rdma_write();
        let config = if level == Reliability::Unreliable {
            config
        } else {
            config.accept_rdma_read()
        };
        self.nic.create_vi(&config).expect("a VI")
    }

    fn region(&self, len: usize) -> Region {
        let memory = Memory::private(len).expect("memory");
        self.nic
            .register(memory, &self.tag, Access::ReadWrite)
            .expect("registers")
    }
}

fn driver(crc: bool, markers: bool) -> IwarpDriver {
    IwarpDriver::new(Config {
        address: "127.0.0.1:0".parse().expect("an address"),
        crc,
        markers,
        ..Config::default()
    })
    .expect("a port")
}

fn connect(a: (&Site, &Vi), b: (&Site, &Vi)) {
    let at = b.0.nic.address(b"pair").expect("short");
    let from = a.0.nic.address(b"").expect("short");
    thread::scope(|scope| {
        let asked = scope.spawn(|| {
            while let Err(error) = a.1.connect(&from, &at, SOON) {
                assert_eq!(error, Error::NoMatch);
                thread::yield_now();
            }
        });
        let mut incoming = b.0.nic.connect_wait(&at, SOON).expect("a request");
        incoming.accept(b.1).expect("accepts");
        asked.join().expect("connects");
    });
}

/// Octets that depend on where they are.
fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251 + seed) as u8).collect()
}

fn fill(region: &Region, octets: &[u8]) {
    region.memory().write(0, octets).expect("in range");
}

fn held(region: &Region, len: usize) -> Vec<u8> {
    let mut octets = vec![0; len];
    region.memory().read(0, &mut octets).expect("in range");
    octets
}

#[test]
fn messages_of_all_sizes_with_and_without_checksums_and_markers() {
    for (crc, markers) in [(true, false), (false, false), (true, true), (false, true)] {
        let driver = driver(crc, markers);
        let (a, b) = (Site::open(&driver), Site::open(&driver));
        for level in Reliability::ALL {
            let (va, vb) = (a.vi(level), b.vi(level));
            connect((&a, &va), (&b, &vb));
            let (source, target) = (a.region(LONG), b.region(LONG));
            for (seed, len) in [0, 1, 3, 4, 511, 512, 513, 4093, 64768, 65535, 300_001, LONG]
                .into_iter()
                .enumerate()
            {
                let octets = pattern(len, seed);
                fill(&source, &octets);
                let room = Descriptor::recv().segment(&target, 0..LONG as u32);
                vb.post_recv(&room, 1).expect("posts");
                let message = Descriptor::send().segment(&source, 0..len as u32);
                thread::scope(|scope| {
                    scope.spawn(|| {
                        va.post_send(&message, 2).expect("posts");
                        va.send_wait(SOON).expect("sent");
                    });
                    let got = vb.recv_wait(SOON).expect("received");
                    assert_eq!(
                        got.length as usize, len,
                        "{level} crc {crc} markers {markers}"
                    );
                });
                assert_eq!(held(&target, len), octets, "{len} octets");
            }
        }
    }
}

#[test]
fn a_flow_of_long_and_short_messages_into_scattered_receives() {
    for (crc, markers) in [(true, false), (false, false), (true, true)] {
        let driver = driver(crc, markers);
        let (a, b) = (Site::open(&driver), Site::open(&driver));
        let level = Reliability::ReliableDelivery;
        let (va, vb) = (a.vi(level), b.vi(level));
        connect((&a, &va), (&b, &vb));
        let lens = [
            200_000, 5, 5_000, 70_000, 1, 0, 4_096, 65_536, 9, 131_072, 33_000, 2,
        ];
        let sources: Vec<_> = lens.iter().map(|&len| a.region(len.max(1))).collect();
        let targets: Vec<_> = lens.iter().map(|&len| b.region(len + 64)).collect();
        for round in 0..8 {
            for (at, (&len, target)) in lens.iter().zip(&targets).enumerate() {
                let (third, len) = (len as u32 / 3, len as u32);
                let room = Descriptor::recv()
                    .segment(target, 7..7 + third)
                    .segment(target, 20 + third..20 + third)
                    .segment(target, 30 + third..30 + len);
                vb.post_recv(&room, at as u64).expect("posts");
            }
            thread::scope(|scope| {
                scope.spawn(|| {
                    for (at, (&len, source)) in lens.iter().zip(&sources).enumerate() {
                        fill(source, &pattern(len, round + at));
                        let message = Descriptor::send().segment(source, 0..len as u32);
                        va.post_send(&message, at as u64).expect("posts");
                    }
                    for _ in lens {
                        va.send_wait(SOON).expect("sent").ok().expect("arrives");
                    }
                });
                for (at, (&len, target)) in lens.iter().zip(&targets).enumerate() {
                    let got = vb.recv_wait(SOON).expect("received").ok().expect("whole");
                    assert_eq!((got.token, got.length as usize), (at as u64, len));
                    let (octets, third) = (held(target, len + 64), len / 3);
                    let (first, second) = (&octets[7..7 + third], &octets[30 + third..30 + len]);
                    assert!(
                        [first, second].concat() == pattern(len, round + at),
                        "{len} octets"
                    );
                    // What lies between was nobody's.
                    assert!(
                        octets[7 + third..30 + third]
                            .iter()
                            .all(|&octet| octet == 0)
                    );
                }
            });
        }
    }
}

#[test]
fn writes_reads_and_immediate_data() {
    for level in [
        Reliability::ReliableDelivery,
        Reliability::ReliableReception,
    ] {
        let driver = driver(true, false);
        let (a, b) = (Site::open(&driver), Site::open(&driver));
        let (va, vb) = (a.vi(level), b.vi(level));
        connect((&a, &va), (&b, &vb));
        let (source, target, back) = (a.region(LONG), b.region(LONG), a.region(LONG));
        for (seed, len) in [1, 17, 4096, 70_001, LONG].into_iter().enumerate() {
            let octets = pattern(len, seed);
            fill(&source, &octets);
            vb.post_recv(&Descriptor::recv(), 1).expect("posts");
            let write = Descriptor::rdma_write(target.remote(0))
                .segment(&source, 0..len as u32)
                .immediate(seed as u32);
            va.post_send(&write, 2).expect("posts");
            let told = vb.recv_wait(SOON).expect("told");
            assert_eq!(
                (told.immediate, told.length),
                (Some(seed as u32), len as u32)
            );
            va.send_wait(SOON).expect("sent");
            assert_eq!(held(&target, len), octets);
            let half = len as u32 / 2;
            let read = Descriptor::rdma_read(target.remote(0))
                .segment(&back, 0..half)
                .segment(&back, half..len as u32);
            va.post_send(&read, 3).expect("posts");
            // Nobody calls at the other end: its agent answers.
            va.send_wait(SOON).expect("read");
            assert_eq!(held(&back, len), octets);
        }
        vb.post_recv(&Descriptor::recv().segment(&target, 0..8), 4)
            .expect("posts");
        let message = Descriptor::send()
            .segment(&source, 0..8)
            .immediate(0xfeed_beef);
        va.post_send(&message, 5).expect("posts");
        let got = vb.recv_wait(SOON).expect("received");
        assert_eq!((got.immediate, got.length), (Some(0xfeed_beef), 8));
    }
}

/// Revision 1 has no message with which the asker says that it is ready, and the acceptor may say nothing before the asker has.
#[test]
fn an_acceptor_may_speak_first_in_either_revision() {
    for (asks, answers) in [(true, true), (false, true), (false, false)] {
        let revision = |enhanced| {
            let config = Config {
                address: "127.0.0.1:0".parse().expect("an address"),
                enhanced,
                ..Config::default()
            };
            IwarpDriver::new(config).expect("a port")
        };
        let drivers = [revision(asks), revision(answers)];
        let (a, b) = (Site::open(&drivers[0]), Site::open(&drivers[1]));
        let level = Reliability::ReliableDelivery;
        let (va, vb) = (a.vi(level), b.vi(level));
        let (source, target) = (b.region(64), a.region(64));
        fill(&source, &pattern(64, 1));
        va.post_recv(&Descriptor::recv().segment(&target, 0..64), 1)
            .expect("posts");
        connect((&a, &va), (&b, &vb));
        vb.post_send(&Descriptor::send().segment(&source, 0..64), 2)
            .expect("posts");
        let got = va.recv_wait(SOON).expect("comes").ok().expect("whole");
        assert_eq!(got.length, 64);
        assert_eq!(held(&target, 64), pattern(64, 1));
        vb.send_wait(SOON).expect("sent").ok().expect("arrives");
    }
}

#[test]
fn blocking_waits_sleep_and_wake() {
    let driver = driver(true, false);
    let (a, b) = (Site::open(&driver), Site::open(&driver));
    let (va, vb) = (
        a.vi(Reliability::ReliableDelivery),
        b.vi(Reliability::ReliableDelivery),
    );
    connect((&a, &va), (&b, &vb));
    let short = Some(Duration::from_millis(50));
    for _ in 0..3 {
        vb.post_recv(&Descriptor::recv(), 0).expect("posts");
        let waited = vb.ops().wait(via::Queue::Recv, short);
        assert_eq!(waited, Err(Error::Timeout));
        thread::scope(|scope| {
            let receiver = scope.spawn(|| vb.recv_wait(SOON).expect("received"));
            va.post_send(&Descriptor::send(), 0).expect("posts");
            receiver.join().expect("no panic");
        });
    }
}

/// Three long messages one behind the other: from the second on, each waits for company. What has happened when the peer has them all.
fn a_stream_of_three(and_then: impl FnOnce(&Vi)) {
    const LEN: u32 = 48 << 10;
    let driver = driver(true, false);
    let (near, far) = (Site::open(&driver), Site::open(&driver));
    let (a, b) = (
        near.vi(Reliability::ReliableDelivery),
        far.vi(Reliability::ReliableDelivery),
    );
    let inbox = far.region(3 * LEN as usize);
    for n in 0..3 {
        let place = Descriptor::recv().segment(&inbox, n * LEN..(n + 1) * LEN);
        b.post_recv(&place, 0).expect("posts");
    }
    connect((&near, &a), (&far, &b));
    let outbox = near.region(LEN as usize);
    let sent = pattern(LEN as usize, 7);
    fill(&outbox, &sent);
    for _ in 0..3 {
        let message = Descriptor::send().segment(&outbox, 0..LEN);
        a.post_send(&message, 0).expect("posts");
    }
    and_then(&a);
    for n in 0..3 {
        let received = b.recv_wait(SOON).expect("comes");
        assert_eq!(received.ok().expect("whole").length, LEN);
        let mut come = vec![0; LEN as usize];
        let from = n * LEN as usize;
        inbox.memory().read(from, &mut come).expect("in range");
        assert!(come == sent, "message {n}");
    }
}

#[test]
fn what_waits_for_company_leaves_with_its_owner() {
    a_stream_of_three(|a| a.disconnect().expect("disconnects"));
}

#[test]
fn what_waits_for_company_does_not_wait_for_its_owner() {
    a_stream_of_three(|_| {});
}

/// C-24: markers count from the first octet behind the startup, whatever the stream carried before.
#[test]
fn a_connection_in_place_of_plain_octets() {
    for markers in [false, true] {
        in_place(markers);
    }
}

fn in_place(markers: bool) {
    let driver = driver(true, markers);
    let (a, b) = (Site::open(&driver), Site::open(&driver));
    let (va, vb) = (
        a.vi(Reliability::ReliableDelivery),
        b.vi(Reliability::ReliableDelivery),
    );
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let here = std::net::TcpStream::connect(listener.local_addr().expect("bound")).expect("there");
    let (there, _) = listener.accept().expect("connected");
    for (mut from, mut to, len) in [(&here, &there, 333), (&there, &here, 77)] {
        let plain = pattern(len, 9);
        from.write_all(&plain).expect("connected");
        let mut come = vec![0; len];
        to.read_exact(&mut come).expect("comes");
        assert_eq!(come, plain);
    }
    let soon = Instant::now() + Duration::from_secs(10);
    let config = driver.config();
    thread::scope(|scope| {
        let initiator = scope.spawn(|| {
            iwarp::over(
                &va,
                here.into(),
                iwarp::Role::Initiator,
                &config,
                Some(soon),
            )
        });
        iwarp::over(
            &vb,
            there.into(),
            iwarp::Role::Responder,
            &config,
            Some(soon),
        )
        .expect("responds");
        initiator.join().expect("no panic").expect("initiates");
    });
    const LEN: usize = 3000;
    for (from, to, here, there) in [(&va, &vb, &a, &b), (&vb, &va, &b, &a)] {
        let (source, target) = (here.region(LEN), there.region(LEN));
        fill(&source, &pattern(LEN, 1));
        to.post_recv(&Descriptor::recv().segment(&target, 0..LEN as u32), 0)
            .expect("posts");
        from.post_send(&Descriptor::send().segment(&source, 0..LEN as u32), 0)
            .expect("posts");
        let got = to.recv_wait(SOON).expect("received").ok().expect("whole");
        assert_eq!(got.length as usize, LEN);
        assert_eq!(held(&target, LEN), pattern(LEN, 1));
    }
}

#[test]
fn a_message_without_a_receive_ends_the_connection() {
    let driver = driver(true, false);
    let (a, b) = (Site::open(&driver), Site::open(&driver));
    let (va, vb) = (
        a.vi(Reliability::ReliableReception),
        b.vi(Reliability::ReliableReception),
    );
    connect((&a, &va), (&b, &vb));
    va.post_send(&Descriptor::send(), 1).expect("posts");
    let via::Done::Completed(ended) = va.ops().wait(via::Queue::Send, SOON).expect("ends") else {
        panic!("nothing was posted");
    };
    assert_eq!(ended.status.fault(), Some(Fault::RemoteDescriptor));
    until(|| vb.state() == Ok(ViState::Error));
}

fn until(mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(20), "in vain");
        thread::yield_now();
    }
}

const SOON: via::provider::Timeout = Some(Duration::from_secs(20));
const LONG: usize = 3_000_017;
