//! What happens to who asks alone, too late, or for what cannot be.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use sys::errno::Errno;

use crate::kit::{ALL, Over, soon, tcp};

fn briefly() -> Option<Instant> {
    Some(Instant::now() + Duration::from_millis(100))
}

fn speaks((mut here, mut there): (TcpStream, TcpStream)) {
    here.write_all(b"plain").expect("writes");
    let mut bytes = [0; 5];
    there.read_exact(&mut bytes).expect("reads");
    assert_eq!(&bytes, b"plain");
}

fn copy(tcp: &TcpStream) -> std::os::fd::OwnedFd {
    tcp.try_clone().expect("duplicates").into()
}

#[test]
fn who_asks_alone_gets_no_answer_and_keeps_the_stream() {
    let (here, there) = tcp();
    for end in [&here, &there] {
        assert_eq!(
            Over::Shm.convert(copy(end), briefly()).err(),
            Some(Errno::TIMEDOUT)
        );
    }
    speaks((here, there));
}

#[test]
fn who_begins_alone_over_iwarp_resets_the_connection() {
    let (here, mut there) = tcp();
    assert_eq!(
        Over::Iwarp.convert(copy(&here), briefly()).err(),
        Some(Errno::TIMEDOUT)
    );
    let mut rest = Vec::new();
    let _request = there.read_to_end(&mut rest);
    assert!(
        there
            .write_all(b"x")
            .and_then(|()| there.write_all(b"x"))
            .is_err()
    );
}

#[test]
fn bytes_that_are_unread_are_in_the_way() {
    let (mut here, there) = tcp();
    here.write_all(b"plain").expect("writes");
    thread::scope(|scope| {
        let other = scope.spawn(|| Over::Shm.convert(copy(&there), soon()));
        let one = Over::Shm.convert(copy(&here), briefly());
        assert!(matches!(one.err(), Some(Errno::BUSY | Errno::TIMEDOUT)));
        assert_eq!(other.join().expect("no panic").err(), Some(Errno::BUSY));
    });
    let mut there = there;
    let mut bytes = [0; 5];
    there.read_exact(&mut bytes).expect("reads");
    speaks((here, there));
}

#[test]
fn what_is_no_connection_is_refused() {
    for over in ALL {
        let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
        assert_eq!(
            over.convert(udp.into(), soon()).err(),
            Some(Errno::OPNOTSUPP)
        );
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        assert_eq!(
            over.convert(listener.into(), soon()).err(),
            Some(Errno::NOTCONN)
        );
    }
}

#[test]
fn many_pairs_at_once() {
    for over in ALL {
        let pairs: Vec<_> = (0..8).map(|_| over.pair()).collect();
        for (index, (a, b)) in pairs.iter().enumerate() {
            a.write(&[index as u8]).expect("writes");
            let mut byte = [0];
            assert_eq!(b.read(&mut byte), Ok(1));
            assert_eq!(byte, [index as u8]);
        }
    }
}
