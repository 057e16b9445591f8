use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;

use sys::errno::Errno;

use super::*;
use crate::conn::{Path, Way};
use crate::ends;
use crate::reason::Reason;

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let near = TcpStream::connect(listener.local_addr().expect("bound")).expect("loopback");
    let far = listener.accept().expect("the connection").0;
    (near, far)
}

fn close(socket: impl AsFd) {
    let number = socket.as_fd().as_raw_fd();
    ends::before_close(number);
    drop(socket);
    ends::closed(number);
}

/// As after so much that it would leave TCP.
fn use_much(conn: &Conn, fd: BorrowedFd<'_>) {
    for turn in 0..8 {
        conn.advance(fd, if turn % 2 == 0 { Way::Out } else { Way::In });
    }
}

/// The numbers of descriptors are the process's, and other tests have some, too.
fn settled() {
    sys::fork::settle();
}

#[test]
fn what_was_believed_of_a_number_is_asked_before_it_leaves_tcp() {
    settled();
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
    udp.connect(udp.local_addr().expect("bound"))
        .expect("so it is");
    made(udp.as_raw_fd());
    connected(udp.as_fd(), Ok(()));
    let conn = known(udp.as_raw_fd()).expect("believed");
    use_much(conn, udp.as_fd());
    assert_eq!(conn.path(), Path::Tcp(Reason::NotTcp));
    close(udp);

    let (unix, _other) = UnixStream::pair().expect("two");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    made(listener.as_raw_fd());
    listens(listener.as_raw_fd());
    accepted(listener.as_raw_fd(), unix.as_fd(), false);
    let conn = known(unix.as_raw_fd()).expect("believed");
    use_much(conn, unix.as_fd());
    assert_eq!(conn.path(), Path::Tcp(Reason::NotTcp));
    close(unix);
    close(listener);
}

#[test]
fn a_listener_that_was_not_seen_is_asked_once() {
    settled();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let number = listener.as_raw_fd();
    assert!(connection(listener.as_fd()).is_none());
    let _near = TcpStream::connect(listener.local_addr().expect("bound")).expect("loopback");
    let far = listener.accept().expect("the connection").0;
    accepted(number, far.as_fd(), true);
    assert!(known(far.as_raw_fd()).is_some_and(Conn::is_nonblocking));
    let (unix, _other) = UnixStream::pair().expect("two");
    accepted(number, unix.as_fd(), false);
    assert!(known(unix.as_raw_fd()).is_some(), "nobody asks what it is");
    close(unix);
    // The number may be anything.
    close(listener);
    let (unix, _other) = UnixStream::pair().expect("two");
    accepted(number, unix.as_fd(), false);
    assert!(known(unix.as_raw_fd()).is_none());
    close(unix);
    close(far);
}

#[test]
fn how_calls_seem_to_wait_is_asked_before_it_matters() {
    settled();
    let (near, _far) = pair();
    made(near.as_raw_fd());
    // As after `SO_SNDTIMEO`.
    connected(near.as_fd(), Err(Errno::INPROGRESS));
    let conn = known(near.as_raw_fd()).expect("noted");
    assert!(conn.is_nonblocking());
    use_much(conn, near.as_fd());
    assert!(!conn.is_nonblocking());
    close(near);

    let (near, _far) = pair();
    made(near.as_raw_fd());
    connected(near.as_fd(), Ok(()));
    let conn = known(near.as_raw_fd()).expect("noted");
    assert!(!conn.is_nonblocking());
    near.set_nonblocking(true).expect("so it is");
    use_much(conn, near.as_fd());
    assert!(conn.is_nonblocking());
    close(near);
}

#[test]
fn what_fails_to_connect_is_no_connection() {
    settled();
    let (near, _far) = pair();
    made(near.as_raw_fd());
    connected(near.as_fd(), Err(Errno::CONNREFUSED));
    assert!(known(near.as_raw_fd()).is_none());
    connected(near.as_fd(), Err(Errno::ISCONN));
    assert!(
        known(near.as_raw_fd()).is_some(),
        "by ways that we did not see"
    );
    close(near);
}

/// Its number was closed and given out again by ways that nobody saw.
#[test]
fn a_connection_that_begins_at_the_number_of_another_is_another() {
    settled();
    let (near, _far) = pair();
    let number = near.as_raw_fd();
    made(number);
    connected(near.as_fd(), Err(Errno::INPROGRESS));
    let first = known(number).expect("noted");
    let generation = first.generation();
    connected(near.as_fd(), Ok(()));
    assert!(known(number).is_some_and(|conn| std::ptr::eq(conn, first)));
    assert_eq!(first.generation(), generation, "now it is there");
    let second = || known(number).expect("noted");
    for begins in [Ok(()), Err(Errno::INPROGRESS)] {
        let before = (second() as *const Conn, second().generation());
        connected(near.as_fd(), begins);
        assert_ne!(before, (second() as *const Conn, second().generation()));
    }
    close(near);
}

#[test]
fn a_duplicate_that_nobody_saw_is_the_same_connection() {
    settled();
    let (near, far) = pair();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    made(near.as_raw_fd());
    connected(near.as_fd(), Ok(()));
    accepted(listener.as_raw_fd(), far.as_fd(), false);
    for socket in [near, far] {
        let conn = known(socket.as_raw_fd()).expect("noted");
        assert_eq!(conn.cookie(), 0, "nobody has asked");
        let twin = socket.try_clone().expect("a number");
        assert!(connection(twin.as_fd()).is_some_and(|twin| std::ptr::eq(twin, conn)));
        assert!(!conn.has_one_descriptor());
        close(twin);
        assert!(conn.has_one_descriptor());
        close(socket);
    }
}

#[test]
fn a_connection_with_two_descriptors_is_known_by_its_socket() {
    settled();
    let (near, _far) = pair();
    made(near.as_raw_fd());
    connected(near.as_fd(), Ok(()));
    let conn = known(near.as_raw_fd()).expect("noted");
    let (other, _partner) = pair();
    duplicate(near.as_raw_fd(), other.as_raw_fd());
    assert_eq!(conn.cookie(), cookie(near.as_fd()).expect("a socket"));
    // As where the duplicate was closed, and its number given to another socket, by ways that nobody saw.
    connected(other.as_fd(), Ok(()));
    assert!(known(other.as_raw_fd()).is_some_and(|now| !std::ptr::eq(now, conn)));
    assert!(conn.has_one_descriptor());
    close(other);
    close(near);
}

#[test]
fn a_handler_that_comes_into_a_change_makes_its_own() {
    settled();
    let (near, far) = pair();
    let (unix, _other) = UnixStream::pair().expect("two");
    let conn = connection(near.as_fd()).expect("a connection");
    let interrupted = change();
    assert!(connection(unix.as_fd()).is_none());
    assert!(connection(far.as_fd()).is_none(), "as yet");
    duplicate(near.as_raw_fd(), 800_100);
    assert!(known(800_100).is_some_and(|same| std::ptr::eq(same, conn)));
    assert!(remove(800_100).is_none());
    close(near);
    assert!(matches!(try_freeze(), Ok(None)));
    drop(interrupted);
    assert!(matches!(try_freeze(), Ok(Some(_))));
    assert!(connection(far.as_fd()).is_some());
    close(far);
}

/// Who looks at a place that was just left does not see the next connection there, however many last.
#[test]
fn a_place_is_not_taken_again_at_once() {
    settled();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let open = || {
        let near = TcpStream::connect(address).expect("loopback");
        let far = listener.accept().expect("the connection").0;
        accepted(listener.as_raw_fd(), far.as_fd(), false);
        (near, far)
    };
    let place = |far: &TcpStream| std::ptr::from_ref(known(far.as_raw_fd()).expect("noted"));
    for lasting in [0, 15, 60] {
        let last: Vec<_> = (0..lasting).map(|_| open()).collect();
        // A round, after which there is room.
        for _ in 0..200 {
            close(open().1);
        }
        let before: Vec<_> = (0..places::WINDOW_MIN / 2 - 1)
            .map(|_| {
                let (_near, far) = open();
                let place = place(&far);
                close(far);
                place
            })
            .collect();
        for (n, one) in before.iter().enumerate() {
            assert!(!before[n + 1..].contains(one), "{lasting} last");
        }
        for (_near, far) in last {
            close(far);
        }
    }
    close(listener);
}

#[test]
fn each_of_a_burst_has_a_place() {
    settled();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    for burst in [70, 70, 70, 150, 300, 70, 300] {
        let ends: Vec<_> = (0..burst)
            .map(|_| {
                let near = TcpStream::connect(address).expect("loopback");
                let far = listener.accept().expect("the connection").0;
                accepted(listener.as_raw_fd(), far.as_fd(), false);
                assert!(known(far.as_raw_fd()).is_some(), "of {burst}");
                (near, far)
            })
            .collect();
        for (_near, far) in ends {
            close(far);
        }
    }
    close(listener);
}
