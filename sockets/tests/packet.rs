//! Streams of SOVIA's packets over the NICs of one process: shared memory, and the simulated network.
#![allow(
    clippy::unwrap_used,
    reason = "a test fails where a value is not there"
)]

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use iwarp::{Config, IwarpDriver};
use proto::packet::{Kind, Packet, Settings, State, Wakeup};
use sim::{Fabric, FabricConfig, Time};
use sockets::packet::{Adapter, Large, Socket, Stream, Variant, Waiting, option};
use sockets::stat::{Closed, Ledger, Line, Nic, Path};
use sys::errno::Errno;
use via::provider::Driver;

fn forever() -> bool {
    true
}

fn at_once() -> bool {
    false
}

/// A pair of connected sockets of two adapters.
struct Pair {
    a: Arc<Stream>,
    b: Arc<Stream>,
    sockets: Open,
}

/// Closed at the end: a process has so many NICs, and threads that listen keep theirs.
struct Open([Socket; 3]);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.iter().for_each(Socket::close);
    }
}

fn place(port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)
}

/// Ports of this process's tests: those of processes that run beside it differ.
fn port() -> u16 {
    use std::sync::atomic::AtomicU16;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = (std::process::id() % 500) as u16 * 100;
    1024 + own + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn pair_over(drivers: [&dyn Driver; 2], variants: [Variant; 2]) -> Pair {
    let [a, b] = [0, 1].map(|n| Adapter::open(drivers[n], variants[n], None).unwrap());
    pair_of(&a, &b)
}

fn pair_of(a: &Arc<Adapter>, b: &Arc<Adapter>) -> Pair {
    let at = place(port());
    let listener = Socket::new(b);
    listener.bind(at).unwrap();
    listener.listen(5).unwrap();
    let asker = Socket::new(a);
    asker.connect(at, 7).unwrap();
    let accepted = listener.accept(forever).unwrap();
    assert_eq!(accepted.peer().unwrap(), asker.local());
    assert_eq!(asker.peer().unwrap().port(), at.port());
    Pair {
        a: Arc::clone(asker.stream().unwrap()),
        b: Arc::clone(accepted.stream().unwrap()),
        sockets: Open([listener, asker, accepted]),
    }
}

fn shm_pair(variant: Variant) -> Pair {
    pair_over([&shm::DRIVER; 2], [variant; 2])
}

fn versions() -> [Variant; 6] {
    [
        Variant::windowless(),
        Variant::handler(),
        Variant::single(),
        Variant::flowctrl(),
        Variant::dacks(),
        Variant::combine(),
    ]
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// Reads exactly so many bytes.
fn read(stream: &Stream, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let mut got = 0;
    while got < len {
        let n = stream.recv(&mut bytes[got..], forever).unwrap();
        assert!(n > 0, "the stream ended after {got} of {len}");
        got += n;
    }
    bytes
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        thread::yield_now();
    }
}

#[test]
fn every_version_carries_a_stream_both_ways() {
    for variant in versions() {
        let Pair {
            a,
            b,
            sockets: _sockets,
        } = shm_pair(variant);
        let sent = pattern(1_000_003);
        thread::scope(|scope| {
            for (from, to) in [(&a, &b), (&b, &a)] {
                let sent = &sent;
                scope.spawn(move || {
                    let mut rest = &sent[..];
                    for len in [1, 7, 100, 2048, 2049, 32768, 32769, 100_000]
                        .iter()
                        .cycle()
                    {
                        if rest.is_empty() {
                            break;
                        }
                        let n = from.send(&rest[..rest.len().min(*len)], forever).unwrap();
                        rest = &rest[n..];
                    }
                    from.end().unwrap();
                });
                scope.spawn(move || {
                    assert!(read(to, sent.len()) == *sent, "{variant:?}");
                    assert_eq!(to.recv(&mut [0], forever), Ok(0));
                });
            }
        });
    }
}

#[test]
fn requests_and_answers() {
    for variant in versions() {
        for waiting in [Waiting::Blocking, Waiting::Polling] {
            let Pair {
                a,
                b,
                sockets: _sockets,
            } = shm_pair(variant.waiting(waiting));
            thread::scope(|scope| {
                scope.spawn(|| {
                    for n in 0..200u32 {
                        assert_eq!(read(&b, 4), n.to_le_bytes());
                        b.send(&n.to_be_bytes(), forever).unwrap();
                    }
                    // What is held leaves when this end receives.
                    assert_eq!(b.recv(&mut [0], forever), Ok(0));
                });
                for n in 0..200u32 {
                    a.send(&n.to_le_bytes(), forever).unwrap();
                    assert_eq!(read(&a, 4), n.to_be_bytes());
                }
                a.end().unwrap();
            });
        }
    }
}

#[test]
fn a_version_talks_to_every_other() {
    for ours in versions() {
        for theirs in versions() {
            let Pair {
                a,
                b,
                sockets: _sockets,
            } = pair_over([&shm::DRIVER; 2], [ours, theirs]);
            let sent = pattern(300_000);
            thread::scope(|scope| {
                scope.spawn(|| assert!(read(&b, sent.len()) == sent));
                let mut rest = &sent[..];
                while !rest.is_empty() {
                    let n = a.send(&rest[..rest.len().min(3000)], forever).unwrap();
                    rest = &rest[n..];
                }
                a.end().unwrap();
            });
        }
    }
}

#[test]
fn over_a_simulated_network() {
    for variant in [Variant::dacks(), Variant::windowless()] {
        over_a_fabric(variant);
    }
}

/// Both ends are processes of one host to each other, over TCP.
#[test]
fn over_iwarp() {
    let driver = iwarp_here();
    for variant in versions() {
        let Pair {
            a,
            b,
            sockets: _sockets,
        } = pair_over([&driver as &dyn Driver; 2], [variant; 2]);
        let sent = pattern(300_000);
        thread::scope(|scope| {
            for (from, to) in [(&a, &b), (&b, &a)] {
                let sent = &sent;
                scope.spawn(move || {
                    assert_eq!(from.send(sent, forever), Ok(sent.len()));
                    from.end().unwrap();
                });
                scope.spawn(move || {
                    assert!(read(to, sent.len()) == *sent, "{variant:?}");
                    assert_eq!(to.recv(&mut [0], forever), Ok(0));
                });
            }
        });
    }
}

/// Its door is at one TCP port, whatever the discriminator.
#[test]
fn a_process_has_the_door_of_an_iwarp_nic_to_itself() {
    let driver = iwarp_here();
    let taken = TcpListener::bind(driver.config().address).unwrap();
    let adapter = Adapter::open(&driver, Variant::default(), None).unwrap();
    let listener = Socket::new(&adapter);
    listener.bind(place(port())).unwrap();
    assert_eq!(listener.listen(1), Err(Errno::ADDRINUSE));
    drop(taken);
    listener.listen(1).unwrap();
    listener.close();
}

fn iwarp_here() -> IwarpDriver {
    let config = Config {
        address: "127.0.0.1:0".parse().unwrap(),
        ..Config::default()
    };
    IwarpDriver::new(config).unwrap()
}

/// Between two hosts of a network; the sockets and the network stay while it is used.
fn fabric_pair(variant: Variant) -> Pair {
    let fabric = Fabric::new(FabricConfig {
        time: Time::Free,
        ..FabricConfig::default()
    });
    let hosts = [fabric.host(), fabric.host()];
    let adapters = hosts
        .each_ref()
        .map(|host| Adapter::open(host, variant, None).unwrap());
    // At any address: the hosts have none of IPv4's.
    let at = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port());
    let listener = Socket::new(&adapters[1]);
    listener.bind(at).unwrap();
    listener.listen(1).unwrap();
    let asker = Socket::new(&adapters[0]);
    // Another host of the network: by its own number, which no IPv4 address tells.
    let identity = sockets::packet::stream::Identity {
        descriptor: 1,
        address: [127, 0, 0, 1],
        port: 1,
    };
    let mut discriminator = b"SOVI".to_vec();
    discriminator.extend(at.port().to_be_bytes());
    let remote = via::NetAddress::new(
        via::Nic::open(&hosts[1])
            .unwrap()
            .attributes()
            .local_address,
        &discriminator,
    )
    .unwrap();
    let a = Stream::connect(&adapters[0], &remote, identity).unwrap();
    let accepted = listener.accept(forever).unwrap();
    Pair {
        a,
        b: Arc::clone(accepted.stream().unwrap()),
        sockets: Open([listener, asker, accepted]),
    }
}

fn over_a_fabric(variant: Variant) {
    let Pair {
        a,
        b,
        sockets: _sockets,
    } = fabric_pair(variant);
    let sent = pattern(200_000);
    thread::scope(|scope| {
        scope.spawn(|| {
            assert!(read(&b, sent.len()) == sent);
            assert_eq!(b.recv(&mut [0], forever), Ok(0));
        });
        assert_eq!(a.send(&sent, forever), Ok(sent.len()));
        a.end().unwrap();
    });
}

#[test]
fn connect_succeeds_before_accept_and_what_is_sent_waits() {
    let adapter = Adapter::open(&shm::DRIVER, Variant::windowless(), None).unwrap();
    let at = place(port());
    let listener = Socket::new(&adapter);
    listener.bind(at).unwrap();
    listener.listen(3).unwrap();
    let askers: Vec<_> = (0..3u8)
        .map(|n| {
            let asker = Socket::new(&adapter);
            asker.connect(at, 0).unwrap();
            asker.set_nodelay(true);
            assert_eq!(asker.stream().unwrap().send(&[n], forever), Ok(1));
            asker
        })
        .collect();
    for n in 0..3 {
        let accepted = listener.accept(forever).unwrap();
        assert_eq!(read(accepted.stream().unwrap(), 1), [n]);
        accepted.close();
    }
    assert_eq!(listener.accept(at_once).unwrap_err(), Errno::AGAIN);
    listener.close();
    drop(askers);
}

#[test]
fn nobody_listens() {
    let adapter = Adapter::open(&shm::DRIVER, Variant::windowless(), None).unwrap();
    let at = place(port());
    assert_eq!(
        Socket::new(&adapter).connect(at, 0),
        Err(Errno::CONNREFUSED)
    );
    let listener = Socket::new(&adapter);
    listener.bind(at).unwrap();
    listener.listen(1).unwrap();
    listener.close();
    assert_eq!(
        Socket::new(&adapter).connect(at, 0),
        Err(Errno::CONNREFUSED)
    );
    let far = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 80);
    assert_eq!(
        Socket::new(&adapter).connect(far, 0),
        Err(Errno::NETUNREACH)
    );
}

#[test]
fn a_port_is_one_listener_s() {
    let nics = [0, 1].map(|_| Adapter::open(&shm::DRIVER, Variant::default(), None).unwrap());
    let at = place(port());
    let [first, second, same] = [&nics[0], &nics[1], &nics[0]].map(Socket::new);
    first.bind(at).unwrap();
    assert_eq!(second.bind(at), Err(Errno::ADDRINUSE));
    first.listen(1).unwrap();
    assert_eq!(second.bind(at), Err(Errno::ADDRINUSE));
    assert_eq!(same.bind(at), Err(Errno::ADDRINUSE));
    // Also when the first takes no requests: what it has room for has come.
    let askers: Vec<_> = (0..2).map(|_| Socket::new(&nics[1])).collect();
    thread::scope(|scope| {
        for asker in &askers {
            scope.spawn(|| asker.connect(at, 0).unwrap());
        }
        assert_eq!(second.bind(at), Err(Errno::ADDRINUSE));
        for _ in &askers {
            first.accept(forever).unwrap().close();
        }
    });
    // Also when it has shut its listening down, until it is closed.
    first.shutdown(true, true).unwrap();
    assert_eq!(second.bind(at), Err(Errno::ADDRINUSE));
    first.close();
    second.bind(at).unwrap();
    second.listen(1).unwrap();
    second.close();
}

/// The simulated network knows of no claims.
#[test]
fn a_port_is_one_listener_s_over_any_nic() {
    let fabric = Fabric::new(FabricConfig {
        time: Time::Free,
        ..FabricConfig::default()
    });
    let adapter = Adapter::open(&fabric.host(), Variant::default(), None).unwrap();
    let at = place(port());
    let [first, second] = [0, 1].map(|_| Socket::new(&adapter));
    first.bind(at).unwrap();
    second.bind(at).unwrap();
    first.listen(1).unwrap();
    assert_eq!(second.listen(1), Err(Errno::ADDRINUSE));
    first.close();
    second.listen(1).unwrap();
    second.close();
}

/// Its threads may only begin to wait when it ends.
#[test]
fn a_port_is_free_when_its_listener_is_closed() {
    let fabric = Fabric::new(FabricConfig {
        time: Time::Free,
        ..FabricConfig::default()
    });
    let host = fabric.host();
    let nics: [&dyn Driver; 2] = [&host, &shm::DRIVER];
    for nic in nics {
        let adapter = Adapter::open(nic, Variant::default(), None).unwrap();
        let at = place(port());
        for turn in 0..1000 {
            let listener = Socket::new(&adapter);
            listener.bind(at).unwrap();
            assert_eq!(listener.listen(1), Ok(()), "the {turn}th");
            listener.close();
        }
    }
}

/// As over TCP: who asks a listener whose backlog is full waits, and is not refused.
#[test]
fn more_ask_than_there_is_room_for() {
    let adapter = Adapter::open(&shm::DRIVER, Variant::default(), None).unwrap();
    let at = place(port());
    let listener = Socket::new(&adapter);
    listener.bind(at).unwrap();
    listener.listen(1).unwrap();
    let askers: Vec<_> = (0..8).map(|_| Socket::new(&adapter)).collect();
    let connected = AtomicUsize::new(0);
    thread::scope(|scope| {
        for asker in &askers {
            scope.spawn(|| {
                assert_eq!(asker.connect(at, 0), Ok(()));
                connected.fetch_add(1, Ordering::Relaxed);
            });
        }
        until("there is one", || connected.load(Ordering::Relaxed) > 0);
        // Longer than a request is tried again where nobody listens.
        // tidy: sleep because those that are refused would be so within this time.
        thread::sleep(Duration::from_millis(150));
        for _ in &askers {
            listener.accept(forever).unwrap().close();
        }
    });
    listener.close();
}

/// TCP_DEFER_ACCEPT, which TCP rounds up.
fn defer(listener: &Socket, seconds: i32) {
    let bytes = seconds.to_ne_bytes();
    option::set(listener, 6, 9, || Ok(&bytes)).unwrap();
}

#[test]
fn a_connection_waits_for_its_first_bytes() {
    for variant in versions() {
        let adapter = Adapter::open(&shm::DRIVER, variant, None).unwrap();
        let listener = Socket::new(&adapter);
        listener.bind(place(port())).unwrap();
        defer(&listener, 1000);
        // Those that wait are not in the way of others.
        listener.listen(1).unwrap();
        let asker = || {
            let asker = Socket::new(&adapter);
            asker.connect(listener.local(), 0).unwrap();
            asker
        };
        let [silent, first, second] = [(); 3].map(|()| asker());
        assert_eq!(listener.accept(at_once).unwrap_err(), Errno::AGAIN);
        second.stream().unwrap().send(b"second", forever).unwrap();
        second.stream().unwrap().release();
        let accepted = listener.accept(forever).unwrap();
        let stream = accepted.stream().unwrap();
        assert_eq!(stream.readable(), 6);
        assert_eq!(read(stream, 6), b"second");
        // It is as any other from now on.
        let bytes = pattern(300_000);
        thread::scope(|scope| {
            let sender = scope.spawn(|| second.stream().unwrap().send(&bytes, forever).unwrap());
            assert_eq!(read(stream, bytes.len()), bytes);
            assert_eq!(sender.join().unwrap(), bytes.len());
            let answerer = scope.spawn(|| stream.send(&bytes, forever).unwrap());
            assert_eq!(read(second.stream().unwrap(), bytes.len()), bytes);
            assert_eq!(answerer.join().unwrap(), bytes.len());
        });
        // An end is something to tell, too.
        first.close();
        let ended = listener.accept(forever).unwrap();
        assert_eq!(ended.stream().unwrap().recv(&mut [0], forever), Ok(0));
        assert_eq!(listener.accept(at_once).unwrap_err(), Errno::AGAIN);
        for socket in [silent, second, accepted, ended, listener] {
            socket.close();
        }
    }
}

#[test]
fn who_says_nothing_is_accepted_in_the_end() {
    let adapter = Adapter::open(&shm::DRIVER, Variant::default(), None).unwrap();
    let listener = Socket::new(&adapter);
    listener.bind(place(port())).unwrap();
    listener.listen(5).unwrap();
    defer(&listener, 1);
    let asker = Socket::new(&adapter);
    asker.connect(listener.local(), 0).unwrap();
    let accepted = listener.accept(forever).unwrap();
    let [asking, answering] = [&asker, &accepted].map(|socket| socket.stream().unwrap());
    asking.send(b"after all", forever).unwrap();
    asking.release();
    assert_eq!(read(answering, 9), b"after all");
    for socket in [asker, accepted, listener] {
        socket.close();
    }
}

#[test]
fn both_ends_of_a_server_bound_to_no_address_have_one() {
    let adapter = Adapter::open(&shm::DRIVER, Variant::default(), None).unwrap();
    let port = port();
    let listener = Socket::new(&adapter);
    let anywhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
    listener.bind(anywhere).unwrap();
    listener.listen(5).unwrap();
    for asked in [anywhere, place(port)] {
        let asker = Socket::new(&adapter);
        asker.connect(asked, 0).unwrap();
        let accepted = listener.accept(forever).unwrap();
        assert_eq!(asker.peer(), Ok(place(port)));
        assert_eq!(accepted.local(), place(port));
        assert_eq!(accepted.peer(), Ok(asker.local()));
        asker.close();
        accepted.close();
    }
    listener.close();
}

#[test]
fn a_socket_out_of_order() {
    let adapter = Adapter::open(&shm::DRIVER, Variant::windowless(), None).unwrap();
    let socket = Socket::new(&adapter);
    assert_eq!(socket.stream().unwrap_err(), Errno::NOTCONN);
    assert_eq!(socket.accept(at_once).unwrap_err(), Errno::INVAL);
    socket.bind(place(port())).unwrap();
    assert_eq!(socket.bind(place(port())), Err(Errno::INVAL));
    socket.listen(1).unwrap();
    socket.listen(2).unwrap();
    assert_eq!(socket.connect(place(port()), 0), Err(Errno::ISCONN));
    socket.close();
}

#[test]
fn small_messages_are_combined_until_somebody_receives_or_closes() {
    let Pair {
        a,
        b,
        sockets: _sockets,
    } = shm_pair(Variant {
        // Longer than the test takes: only the other conditions count.
        combine: Some(Duration::from_secs(600)),
        ..Variant::combine()
    });
    for _ in 0..10 {
        a.send(b"0123456789", forever).unwrap();
    }
    assert_eq!(b.recv(&mut [0; 200], at_once), Err(Errno::AGAIN));
    // (4) The program receives.
    assert_eq!(a.recv(&mut [0], at_once), Err(Errno::AGAIN));
    assert_eq!(b.recv(&mut [0; 200], forever), Ok(100));
    // (3) Too large to copy.
    a.send(b"small", forever).unwrap();
    a.send(&[1; 4000], forever).unwrap();
    assert_eq!(read(&b, 4005).len(), 4005);
    // (2) It does not fit.
    for _ in 0..17 {
        a.send(&[2; 2048], forever).unwrap();
    }
    assert_eq!(read(&b, 32768).len(), 32768);
    assert_eq!(b.recv(&mut [0], at_once), Err(Errno::AGAIN));
    // TCP_NODELAY sends what is held, and holds no more.
    a.set_nodelay(true);
    assert_eq!(read(&b, 2048), [2; 2048]);
    a.send(b"now", forever).unwrap();
    assert_eq!(read(&b, 3), b"now");
    // (4) The program closes.
    a.set_nodelay(false);
    a.send(b"last", forever).unwrap();
    a.close();
    assert_eq!(read(&b, 4), b"last");
    assert_eq!(b.recv(&mut [0], forever), Ok(0));
}

#[test]
fn the_timer_sends_what_nobody_else_does() {
    let Pair {
        a,
        b,
        sockets: _sockets,
    } = shm_pair(Variant {
        combine: Some(Duration::from_millis(20)),
        ..Variant::combine()
    });
    for round in 0..3u8 {
        a.send(&[round], forever).unwrap();
        // Who waits would send it.
        let mut into = [0];
        until("the timer", || b.recv(&mut into, at_once) == Ok(1));
        assert_eq!(into, [round]);
    }
}

#[test]
fn who_waits_elsewhere_sends_what_is_held_first() {
    let held = || {
        shm_pair(Variant {
            combine: Some(Duration::from_secs(600)),
            ..Variant::combine()
        })
    };
    let (first, second) = (held(), held());
    for round in 0..3u8 {
        first.a.send(&[round], forever).unwrap();
        second.a.send(&[round], forever).unwrap();
        // The one waits for the other's answer, which comes only when both have heard.
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(read(&second.a, 1), [round]));
            for end in [&first.b, &second.b] {
                let mut into = [0];
                until("it is sent", || end.recv(&mut into, at_once) == Ok(1));
                assert_eq!(into, [round]);
            }
            second.b.send(&[round], forever).unwrap();
            assert_eq!(second.b.recv(&mut [0], at_once), Err(Errno::AGAIN));
        });
    }
    first.a.send(b"held", forever).unwrap();
    let listener = &first.sockets.0[0];
    let adapter = Adapter::open(&shm::DRIVER, Variant::default(), None).unwrap();
    let asker = Socket::new(&adapter);
    thread::scope(|scope| {
        scope.spawn(|| listener.accept(forever).unwrap().close());
        until("it is sent", || first.b.recv(&mut [0; 4], at_once) == Ok(4));
        asker.connect(listener.local(), 0).unwrap();
    });
    asker.close();
}

#[test]
fn what_is_held_goes_with_the_connection() {
    let Pair {
        a,
        b,
        sockets: _sockets,
    } = shm_pair(Variant {
        combine: Some(Duration::from_secs(600)),
        ..Variant::combine()
    });
    a.send(b"held", forever).unwrap();
    assert_eq!(a.held(), 4);
    b.abort();
    until("it is known here", || a.readable() == 0 && a.held() == 0);
    assert_eq!(a.recv(&mut [0], forever), Err(Errno::CONNRESET));
    assert_eq!(a.send(b"more", forever), Err(Errno::PIPE));
}

#[test]
fn a_full_window_holds_back_and_says_so() {
    let Pair {
        a,
        b,
        sockets: _sockets,
    } = shm_pair(Variant::dacks());
    let mut sent = 0;
    loop {
        match a.send(&[7; 1000], at_once) {
            Ok(n) => sent += n,
            Err(errno) => {
                assert_eq!(errno, Errno::AGAIN);
                break;
            }
        }
    }
    // One of the 32 was the WAKEUP, which may be acknowledged by now or not.
    assert!((31_000..=32_000).contains(&sent), "{sent}");
    assert_eq!(read(&b, sent).len(), sent);
    until("acknowledgements come", || a.send(&[7], at_once).is_ok());
}

#[test]
fn an_acknowledgement_waits_for_the_next_call_but_not_for_ever() {
    let Pair {
        a,
        b,
        sockets: _sockets,
    } = shm_pair(Variant::single());
    a.send(b"one", forever).unwrap();
    assert_eq!(read(&b, 3), b"one");
    // The reader is busy with other things.
    assert_eq!(a.send(b"two", forever), Ok(3));
    assert_eq!(read(&b, 3), b"two");
    // And so are both, each with a full window.
    b.send(b"three", forever).unwrap();
    a.send(b"four", forever).unwrap();
    assert_eq!(
        (read(&a, 5), read(&b, 4)),
        (b"three".into(), b"four".into())
    );
    assert_eq!(b.send(b"five", forever), Ok(4));
}

#[test]
fn without_a_window_the_nic_holds_a_sender_back() {
    let plain = Variant {
        combine: None,
        ..Variant::windowless()
    };
    let Pair {
        a,
        b,
        sockets: _sockets,
    } = shm_pair(plain);
    for round in 0..3 {
        let mut sent = Vec::new();
        loop {
            let piece = pattern(20_000 + round);
            match a.send(&piece, at_once) {
                Ok(n) => sent.extend(&piece[..n]),
                Err(errno) => break assert_eq!(errno, Errno::AGAIN),
            }
        }
        assert!(sent.len() < 4 << 20, "somebody keeps it: {}", sent.len());
        assert!(read(&b, sent.len()) == sent);
        until("there is room", || a.send(&[7], at_once).is_ok());
        assert_eq!(read(&b, 1), [7]);
    }
    // Who waits for room sleeps, and is woken by a reader.
    let sent = pattern(8 << 20);
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(a.send(&sent, forever), Ok(sent.len()));
            a.end().unwrap();
        });
        // tidy: sleep because the sender is to be asleep by then, which nothing shows.
        thread::sleep(Duration::from_millis(5));
        assert!(read(&b, sent.len()) == sent);
        assert_eq!(b.recv(&mut [0], forever), Ok(0));
    });
}

#[test]
fn who_waits_for_room_hears_of_the_end() {
    let plain = Variant {
        combine: None,
        ..Variant::windowless()
    };
    let Pair {
        a,
        b,
        sockets: _sockets,
    } = shm_pair(plain);
    // More than the other end has buffers for: the rest stays in the NIC, unread.
    let mut unread = 0;
    while let Ok(n) = b.send(&pattern(1000), at_once) {
        unread += n;
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            let bytes = pattern(1 << 20);
            let errno = loop {
                if let Err(errno) = a.send(&bytes, forever) {
                    break errno;
                }
            };
            assert_eq!(errno, Errno::CONNRESET);
            assert_eq!(a.send(b"x", forever), Err(Errno::PIPE));
        });
        // tidy: sleep because the sender is to be asleep by then, which nothing shows.
        thread::sleep(Duration::from_millis(5));
        b.abort();
    });
    assert!(unread > 0);
}

#[test]
fn one_direction_ends_and_the_other_goes_on() {
    let Pair {
        a,
        b,
        sockets: _sockets,
    } = shm_pair(Variant::dacks());
    a.send(b"question", forever).unwrap();
    a.end().unwrap();
    assert_eq!(a.send(b"x", forever), Err(Errno::PIPE));
    assert_eq!(read(&b, 8), b"question");
    assert_eq!(b.recv(&mut [0], forever), Ok(0));
    b.send(&pattern(50_000), forever).unwrap();
    b.end().unwrap();
    assert!(read(&a, 50_000) == pattern(50_000));
    assert_eq!(a.recv(&mut [0], forever), Ok(0));
    until("both are closed", || {
        let _end = b.recv(&mut [0], at_once);
        [&a, &b].iter().all(|end| end.state() == State::Closed)
    });
}

#[test]
fn a_close_returns_at_once_and_finishes_behind_the_program() {
    for variant in versions() {
        let Pair {
            a,
            b,
            sockets: _sockets,
        } = shm_pair(variant);
        a.send(b"bye", forever).unwrap();
        a.close();
        assert_eq!(read(&b, 3), b"bye");
        assert_eq!(b.recv(&mut [0], forever), Ok(0));
        assert_ne!(a.state(), State::Closed, "{variant:?}");
        b.close();
        until("both are closed", || {
            [&a, &b].iter().all(|end| end.state() == State::Closed)
        });
    }
}

#[test]
fn data_for_a_closed_program_resets_as_tcp_does() {
    let Pair {
        a,
        b,
        sockets: _sockets,
    } = shm_pair(Variant::dacks());
    a.close();
    until("the peer hears of it", || {
        b.send(b"more and more", forever).is_err()
    });
    until("and receives an end or a reset", || {
        matches!(b.recv(&mut [0], at_once), Ok(0) | Err(Errno::CONNRESET))
    });
}

#[test]
fn what_came_before_the_connection_broke_is_read() {
    let Pair {
        a,
        b,
        sockets: _sockets,
    } = shm_pair(Variant::dacks());
    a.send(b"last words", forever).unwrap();
    a.abort();
    assert_eq!(read(&b, 10), b"last words");
    assert_eq!(b.recv(&mut [0], forever), Err(Errno::CONNRESET));
    assert_eq!(b.send(b"x", forever), Err(Errno::PIPE));
}

#[test]
fn looking_leaves_the_bytes() {
    let Pair {
        a,
        b,
        sockets: _sockets,
    } = shm_pair(Variant::dacks());
    a.send(b"abc", forever).unwrap();
    a.send(b"def", forever).unwrap();
    let mut seen = [0; 10];
    until("both packets are there", || b.readable() == 6);
    assert_eq!(b.peek(&mut seen, false, forever), Ok(6));
    assert_eq!(&seen[..6], b"abcdef");
    assert_eq!(read(&b, 6), b"abcdef");
    assert_eq!(b.peek(&mut seen, false, at_once), Err(Errno::AGAIN));
}

#[test]
fn two_ends_that_both_send_before_they_read_hold_more_than_their_windows() {
    const MUCH: usize = 3 << 19;
    for variant in versions() {
        let pair = shm_pair(variant);
        let exchange = |stream: &Arc<Stream>, seed: usize| {
            let bytes = pattern(MUCH + seed);
            assert_eq!(stream.send(&bytes[seed..], forever), Ok(MUCH));
            let mut first = [0; 10];
            assert_eq!(stream.peek(&mut first, true, forever), Ok(10));
            let got = read(stream, MUCH);
            assert!(got == pattern(MUCH + 7 - seed)[7 - seed..], "{variant:?}");
            assert_eq!(first, got[..10]);
        };
        thread::scope(|scope| {
            scope.spawn(|| exchange(&pair.a, 0));
            exchange(&pair.b, 7);
        });
    }
}

#[test]
fn several_threads_send_and_receive_on_one_stream() {
    let Pair {
        a,
        b,
        sockets: _sockets,
    } = shm_pair(Variant::combine());
    let each = 2000;
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..each {
                    assert_eq!(a.send(&[1], forever), Ok(1));
                }
            });
            scope.spawn(|| {
                for _ in 0..each {
                    assert_eq!(b.recv(&mut [0], forever), Ok(1));
                }
            });
        }
    });
    assert_eq!(b.recv(&mut [0], at_once), Err(Errno::AGAIN));
}

#[test]
fn without_a_way_to_the_program_s_memory_large_messages_are_copied() {
    let variant = Variant::dacks().large(Large::Registered);
    let Pair {
        a,
        b,
        sockets: _sockets,
    } = shm_pair(variant);
    a.send(&pattern(30_000), forever).unwrap();
    assert!(read(&b, 30_000) == pattern(30_000));
}

#[test]
fn who_has_sent_a_part_is_told_of_the_reset_by_the_next_call() {
    let Pair {
        a,
        b,
        sockets: _sockets,
    } = shm_pair(Variant::dacks());
    thread::scope(|scope| {
        let sender = scope.spawn(|| a.send(&pattern(8 << 20), forever));
        // Some of it has come, and the rest has no room.
        until("there is something", || b.readable() > 0);
        b.abort();
        let sent = sender.join().unwrap().unwrap();
        assert!(sent > 0 && sent < 8 << 20, "{sent}");
    });
    assert_eq!(a.take_error(), Some(Errno::CONNRESET));
    assert_eq!(a.send(b"x", forever), Err(Errno::PIPE));
}

#[test]
fn an_end_does_not_wait_for_room_and_nothing_is_lost() {
    for waiting in [Waiting::Blocking, Waiting::Polling] {
        let Pair {
            a,
            b,
            sockets: _sockets,
        } = shm_pair(Variant::combine().waiting(waiting));
        let mut sent = 0;
        while let Ok(n) = a.send(&[7; 4000], at_once) {
            sent += n;
        }
        assert_eq!(a.send(b"last", forever), Ok(4));
        a.end().unwrap();
        assert_eq!(a.send(b"x", forever), Err(Errno::PIPE));
        assert!(read(&b, sent).iter().all(|byte| *byte == 7));
        assert_eq!(read(&b, 4), b"last");
        assert_eq!(b.recv(&mut [0], forever), Ok(0));
    }
}

#[test]
fn threads_that_wait_are_told_of_a_shutdown_here() {
    for variant in versions() {
        for waiting in [Waiting::Blocking, Waiting::Polling] {
            let Pair {
                a,
                b,
                sockets: _sockets,
            } = shm_pair(variant.waiting(waiting));
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        assert_eq!(a.recv(&mut [0], forever), Ok(0), "{variant:?} {waiting:?}")
                    });
                    scope.spawn(|| {
                        let all = pattern(8 << 20);
                        let errno = loop {
                            if let Err(errno) = a.send(&all, forever) {
                                break errno;
                            }
                        };
                        assert_eq!(errno, Errno::PIPE);
                    });
                }
                until("something came", || b.readable() > 0);
                a.shut();
                a.end().unwrap();
            });
        }
    }
}

#[test]
fn several_threads_send_more_than_there_is_room_for() {
    let over_shm = versions().map(shm_pair);
    let over_a_fabric = [Variant::dacks(), Variant::combine()].map(fabric_pair);
    for Pair {
        a,
        b,
        sockets: _sockets,
    } in over_shm.into_iter().chain(over_a_fabric)
    {
        let (threads, each) = (4, 3 << 20);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let bytes = pattern(each);
                    assert_eq!(a.send(&bytes, forever), Ok(each));
                });
            }
            read(&b, threads * each);
        });
    }
}

#[test]
fn who_looks_at_a_full_window_sees_all_that_can_come() {
    for variant in versions() {
        let Pair {
            a,
            b,
            sockets: _sockets,
        } = shm_pair(variant);
        let mut sent = 4000;
        until("there is room", || a.send(&[7; 4000], at_once).is_ok());
        while let Ok(n) = a.send(&[7; 4000], at_once) {
            sent += n;
        }
        // More than it has buffers for, where the NIC holds the sender back.
        until("all that fits", || {
            b.readable() >= 4000 && b.readable() + 4000 >= sent.min(16 * 4000)
        });
        assert_eq!(b.take_error(), None);
        let seen = b.peek(&mut vec![0; sent + 1], true, forever).unwrap();
        assert!(seen > 0 && seen <= sent, "{variant:?}");
        assert_eq!(read(&b, sent).len(), sent);
        until("there is room", || a.send(&[7], at_once).is_ok());
    }
}

#[test]
fn what_it_carries_is_told_to_whoever_looks() {
    let over = IwarpDriver::new(Config {
        address: place(0),
        ..Config::default()
    });
    let over = over.unwrap();
    let drivers: [(&dyn Driver, _); 2] = [(&shm::DRIVER, "shm"), (&over, "iwarp")];
    for (driver, nic) in drivers {
        for variant in versions() {
            let Pair {
                a,
                b,
                sockets: _sockets,
            } = pair_over([driver; 2], [variant; 2]);
            // Small enough to be combined, and in packets.
            for len in [10, 10, 100_000] {
                thread::scope(|scope| {
                    let sending = scope.spawn(|| a.send(&vec![5; len], forever));
                    assert_eq!(read(&b, len).len(), len);
                    assert_eq!(sending.join().unwrap(), Ok(len));
                });
            }
            let at = _sockets.0[0].local().into();
            let (lines, before) = lines_at(at);
            let [asked, accepted] = &lines[..] else {
                panic!("{lines:?}");
            };
            let path = Path::Packet(Nic::new(nic));
            assert_eq!((asked.path, accepted.path), (path, path));
            assert_eq!((asked.fd, accepted.fd), (Some(7), None));
            assert_eq!((asked.local, asked.peer), (accepted.peer, accepted.local));
            assert_eq!((asked.bytes, asked.calls[0]), ([100_020, 0], 3));
            assert_eq!((accepted.bytes, accepted.calls[0]), ([0, 100_020], 0));
            assert!(accepted.calls[1] >= 3, "{variant:?}");
            // What is held back when it is closed has been sent all the same.
            assert_eq!(a.send(&[5; 10], forever), Ok(10));
            drop(_sockets);
            let (lines, now) = lines_at(at);
            assert!(lines.is_empty(), "{lines:?}");
            assert!(now.connections >= before.connections + 2);
            assert!(now.bytes[0] >= before.bytes[0] + 100_030);
        }
    }
}

/// What this process tells of connections with the listener at that place, who asked first.
fn lines_at(at: SocketAddr) -> (Vec<Line>, Closed) {
    let ledger = Ledger::open(std::process::id()).unwrap().unwrap();
    let (mut lines, closed, _) = ledger.look();
    lines.retain(|line| line.local == at || line.peer == at);
    lines.sort_by_key(|line| line.local == at);
    (lines, closed)
}

/// Connections to the listener at that port over NICs of our own, on which nobody has said anything.
struct Silent {
    nic: via::Nic,
    tag: via::Ptag,
    mtu: u32,
    to: via::NetAddress,
    /// For what the listener says.
    room: via::Region,
}

impl Silent {
    fn to(driver: &dyn Driver, adapter: &Adapter, port: u16) -> Self {
        let nic = via::Nic::open(driver).unwrap();
        let mut discriminator = b"SOVI".to_vec();
        discriminator.extend(port.to_be_bytes());
        let tag = nic.create_ptag().unwrap();
        let memory = via::Memory::private(4096).unwrap();
        Self {
            mtu: adapter.variant().settings.mtu,
            to: nic.address(&discriminator).unwrap(),
            room: nic.register(memory, &tag, via::Access::Local).unwrap(),
            tag,
            nic,
        }
    }

    fn connect(&self) -> via::Vi {
        let config = via::ViConfig::new(&self.tag).max_transfer_size(self.mtu);
        let vi = self.nic.create_vi(&config).unwrap();
        for token in 0..8 {
            let descriptor = via::Descriptor::recv().segment(&self.room, 0..4096);
            vi.post_recv(&descriptor, token).unwrap();
        }
        let from = self.nic.address(&[]).unwrap();
        let patience = Some(Duration::from_secs(30));
        vi.connect(&from, &self.to, patience).unwrap();
        vi
    }

    fn wakeup(&self, address: [u8; 4]) -> Wakeup {
        Wakeup {
            descriptor: 7,
            address,
            port: 8,
            settings: Settings::new(32, 16, self.mtu).unwrap(),
            place: [0; 16],
        }
    }

    /// Posts a packet, and waits until it has left.
    fn send(&self, vi: &via::Vi, kind: Kind, bytes: &[u8]) {
        let memory = via::Memory::private(bytes.len().max(1)).unwrap();
        memory.write(0, bytes).unwrap();
        let region = self.nic.register(memory, &self.tag, via::Access::Local);
        let region = region.unwrap();
        let packet = Packet {
            kind,
            acks: 0,
            byte: 0,
        };
        let descriptor = via::Descriptor::send()
            .segment(&region, 0..bytes.len() as u32)
            .immediate(packet.encode());
        vi.post_send(&descriptor, 0).unwrap();
        vi.send_wait(None).unwrap().ok().unwrap();
    }
}

/// Anybody can connect and say nothing, and that often.
#[test]
fn silent_connections_are_in_nobody_s_way() {
    let adapter = Adapter::open(&shm::DRIVER, Variant::default(), None).unwrap();
    let listener = Socket::new(&adapter);
    listener.bind(place(port())).unwrap();
    listener.listen(1).unwrap();
    let silent = Silent::to(&shm::DRIVER, &adapter, listener.local().port());
    let several = [(); 3].map(|()| silent.connect());
    let asker = Socket::new(&adapter);
    asker.connect(listener.local(), 7).unwrap();
    let accepted = listener.accept(forever).unwrap();
    assert_eq!(accepted.peer().unwrap(), asker.local());
    for vi in &several {
        // They have not had to go for that.
        silent.send(vi, Kind::Wakeup, &silent.wakeup([127, 0, 0, 1]).encode());
        assert_eq!(listener.accept(forever).unwrap().peer(), Ok(place(8)));
    }
    listener.close();
}

#[test]
fn of_too_many_silent_connections_the_oldest_goes() {
    let adapter = Adapter::open(&shm::DRIVER, Variant::default(), None).unwrap();
    let listener = Socket::new(&adapter);
    listener.bind(place(port())).unwrap();
    listener.listen(1).unwrap();
    let silent = Silent::to(&shm::DRIVER, &adapter, listener.local().port());
    let many: Vec<_> = (0..=SILENT_MAX).map(|_| silent.connect()).collect();
    until("the oldest is gone", || {
        many[0].state() != Ok(via::ViState::Connected)
    });
    assert_eq!(many[1].state(), Ok(via::ViState::Connected));
    listener.close();
}

/// What a listener keeps of them.
const SILENT_MAX: usize = 128;

/// The NIC knows where a request comes from, which nobody else has to be told.
#[test]
fn who_asks_over_a_network_has_the_address_that_it_asks_from() {
    let driver = iwarp_here();
    let adapter = Adapter::open(&driver, Variant::default(), None).unwrap();
    let listener = Socket::new(&adapter);
    listener.bind(place(port())).unwrap();
    listener.listen(5).unwrap();
    let asker = Silent::to(&driver, &adapter, listener.local().port());
    for (says, has) in [
        ([192, 0, 2, 9], [127, 0, 0, 1]),
        ([0; 4], [127, 0, 0, 1]),
        ([127, 0, 0, 5], [127, 0, 0, 5]),
    ] {
        let vi = asker.connect();
        asker.send(&vi, Kind::Wakeup, &asker.wakeup(says).encode());
        let accepted = listener.accept(forever).unwrap();
        assert_eq!(accepted.peer(), Ok(SocketAddrV4::new(has.into(), 8)));
        accepted.close();
    }
    listener.close();
}

/// Its process cannot be asked for its end.
#[test]
fn who_hands_its_end_over_from_another_host_is_reset() {
    let driver = iwarp_here();
    let adapter = Adapter::open(&driver, Variant::default(), None).unwrap();
    let listener = Socket::new(&adapter);
    listener.bind(place(port())).unwrap();
    listener.listen(5).unwrap();
    let asker = Silent::to(&driver, &adapter, listener.local().port());
    let vi = asker.connect();
    asker.send(&vi, Kind::Wakeup, &asker.wakeup([127, 0, 0, 1]).encode());
    let accepted = listener.accept(forever).unwrap();
    let stream = accepted.stream().unwrap();
    asker.send(&vi, Kind::Move, &[]);
    until("it is reset", || {
        stream.recv(&mut [0], at_once) == Err(Errno::CONNRESET)
    });
    accepted.close();
    listener.close();
}

#[test]
fn a_peer_that_says_nothing_is_not_accepted_and_keeps_nobody_waiting() {
    let adapter = Adapter::open(&shm::DRIVER, Variant::windowless(), None).unwrap();
    let at = place(port());
    let listener = Socket::new(&adapter);
    listener.bind(at).unwrap();
    listener.listen(4).unwrap();
    let nic = via::Nic::open(&shm::DRIVER).unwrap();
    let tag = nic.create_ptag().unwrap();
    let mtu = adapter.variant().settings.mtu;
    let config = via::ViConfig::new(&tag).max_transfer_size(mtu);
    let mut discriminator = b"SOVI".to_vec();
    discriminator.extend(at.port().to_be_bytes());
    let silent = nic.create_vi(&config).unwrap();
    silent.hold_back().unwrap();
    let (from, to) = (nic.address(&[]), nic.address(&discriminator));
    let asked = silent.connect(&from.unwrap(), &to.unwrap(), Some(Duration::from_secs(10)));
    asked.unwrap();
    let asker = Socket::new(&adapter);
    asker.connect(at, 7).unwrap();
    let accepted = listener.accept(forever).unwrap();
    assert_eq!(accepted.peer().unwrap(), asker.local());
    assert_eq!(listener.accept(at_once).unwrap_err(), Errno::AGAIN);
    thread::scope(|scope| {
        let late = scope.spawn(|| listener.accept(forever).unwrap().peer());
        let wakeup = Wakeup {
            descriptor: 7,
            address: [127, 0, 0, 1],
            port: 8,
            settings: Settings::without_window(mtu).unwrap(),
            place: [0; 16],
        };
        let first = Packet {
            kind: Kind::Wakeup,
            acks: 0,
            byte: 0,
        };
        let sent = silent.send_copied(&wakeup.encode(), Some(first.encode()));
        assert_eq!(sent, Ok(true));
        assert_eq!(late.join().unwrap(), Ok(place(8)));
    });
}
