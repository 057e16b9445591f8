use std::os::fd::AsFd;
use std::thread;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage};

use super::*;
use crate::sync::{Ordering, mapped::AtomicU32};
use crate::time;

fn packet(conn: &Conn) -> (Vec<u8>, Vec<Passed>) {
    let mut into = [0xa5; 64];
    match conn.recv(&mut into).expect("recv") {
        Received::Packet {
            len,
            fds,
            truncated: false,
        } => (into[..len].to_vec(), fds),
        other => panic!("expected a whole packet, got {other:?}"),
    }
}

fn name() -> Vec<u8> {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let nth = TAKEN.fetch_add(1, Ordering::Relaxed);
    format!("sovia-sys-net-{}-{nth}", std::process::id()).into_bytes()
}

fn receives_closed(conn: &Conn) -> bool {
    matches!(conn.recv(&mut [0; 64]).expect("recv"), Received::Closed)
}

#[test]
fn a_connection_carries_packets_both_ways() {
    let name = name();
    let listener = Listener::bind(&name, 4).expect("bind");
    assert!(listener.accept().expect("accept").is_none());

    let client = Conn::connect(&name).expect("connect");
    let server = listener.accept().expect("accept").expect("a connection");
    assert!(matches!(
        server.recv(&mut [0; 8]).expect("recv"),
        Received::Nothing
    ));

    assert_eq!(client.send(b"ping", &[]).expect("send"), Sent::Whole);
    assert_eq!(client.send(b"pong", &[]).expect("send"), Sent::Whole);
    assert_eq!(packet(&server).0, b"ping");
    assert_eq!(packet(&server).0, b"pong");
    assert_eq!(server.send(b"back", &[]).expect("send"), Sent::Whole);
    assert_eq!(packet(&client).0, b"back");
}

#[test]
fn a_name_is_refused_taken_and_free_again() {
    let name = name();
    assert_eq!(
        Conn::connect(&name).expect_err("no one").kind(),
        io::ErrorKind::ConnectionRefused
    );

    let listener = Listener::bind(&name, 1).expect("bind");
    assert_eq!(
        Listener::bind(&name, 1).expect_err("taken").kind(),
        io::ErrorKind::AddrInUse
    );

    drop(listener);
    assert_eq!(
        Conn::connect(&name).expect_err("gone").kind(),
        io::ErrorKind::ConnectionRefused
    );
    Listener::bind(&name, 1).expect("free again");
    assert!(Listener::bind(&[b'x'; 200], 1).is_err());
}

#[test]
fn a_full_backlog_would_block() {
    let name = name();
    let _listener = Listener::bind(&name, 1).expect("bind");
    let mut waiting = Vec::new();
    let full = loop {
        match Conn::connect(&name) {
            Ok(conn) => waiting.push(conn),
            Err(error) => break error,
        }
        assert!(waiting.len() < 10);
    };
    assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn descriptors_travel_with_a_packet() {
    let (ours, theirs) = Conn::pair().expect("pair");
    let (kept, passed) = Conn::pair().expect("pair");
    ours.send(b"here", &[passed.as_fd(), kept.as_fd()])
        .expect("send");
    drop(passed);

    let (bytes, mut fds) = packet(&theirs);
    assert_eq!(bytes, b"here");
    assert_eq!(fds.len(), 2);
    let passed = Conn::of(fds.remove(0).trusted());
    let flags = rustix::io::fcntl_getfd(&passed).expect("flags");
    assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    passed.send(b"through", &[]).expect("send");
    assert_eq!(packet(&kept).0, b"through");

    drop((passed, fds));
    assert!(receives_closed(&kept));
}

#[test]
fn surplus_descriptors_are_closed() {
    let (ours, theirs) = Conn::pair().expect("pair");
    let (kept, passed) = Conn::pair().expect("pair");
    let many = [passed.as_fd(); FDS_MAX + 4];
    let refused = ours.send(b"many", &many).expect_err("too many");
    assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);

    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX + 4))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&many)));
    rustix::net::sendmsg(&ours.fd, &[IoSlice::new(b"many")], &mut control, SEND).expect("sendmsg");
    drop(passed);

    match theirs.recv(&mut [0; 8]).expect("recv") {
        Received::Packet {
            len: 4,
            fds,
            truncated: true,
        } => assert_eq!(fds.len(), FDS_MAX),
        other => panic!("{other:?}"),
    }
    assert!(receives_closed(&kept), "a duplicate is still open");
}

#[test]
fn descriptors_of_a_doorbell_are_closed() {
    let (ours, theirs) = Conn::pair().expect("pair");
    let (kept, passed) = Conn::pair().expect("pair");
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let one = [passed.as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&one)));
    rustix::net::sendmsg(&ours.fd, &[IoSlice::new(&KNOCK)], &mut control, SEND).expect("sendmsg");
    drop(passed);

    assert_eq!(theirs.drain(&mut [0; 8]).expect("drain").knocks, 1);
    assert!(
        receives_closed(&kept),
        "the doorbell's descriptor is still open"
    );
}

#[test]
fn a_packet_that_does_not_fit_is_truncated() {
    let (ours, theirs) = Conn::pair().expect("pair");
    ours.send(b"0123456789", &[]).expect("send");
    ours.send(b"next", &[]).expect("send");
    let mut into = [0; 4];
    match theirs.recv(&mut into).expect("recv") {
        Received::Packet {
            len: 4,
            truncated: true,
            ..
        } => assert_eq!(&into, b"0123"),
        other => panic!("{other:?}"),
    }
    assert_eq!(packet(&theirs).0, b"next");
}

#[test]
fn a_close_is_seen_after_what_is_queued() {
    let (ours, theirs) = Conn::pair().expect("pair");
    theirs.send(b"last words", &[]).expect("send");
    drop(theirs);
    assert_eq!(packet(&ours).0, b"last words");
    assert!(receives_closed(&ours));
    assert!(receives_closed(&ours));
    assert_eq!(ours.send(b"anyone", &[]).expect("send"), Sent::Closed);
    ours.knock();
}

#[test]
fn a_close_without_reading_loses_nothing_on_this_side() {
    let (ours, theirs) = Conn::pair().expect("pair");
    ours.send(b"unread", &[]).expect("send");
    theirs.send(b"last words", &[]).expect("send");
    drop(theirs);
    assert_eq!(packet(&ours).0, b"last words");
    assert!(receives_closed(&ours));
}

#[test]
fn shutdown_ends_the_connection_for_duplicates_too() {
    let (ours, theirs) = Conn::pair().expect("pair");
    let duplicate = theirs.as_fd().try_clone_to_owned().expect("dup");
    theirs.shutdown();
    theirs.shutdown();
    assert!(receives_closed(&ours));
    assert_eq!(ours.send(b"anyone", &[]).expect("send"), Sent::Closed);
    drop(duplicate);
}

#[test]
fn doorbells_do_not_mix_with_packets() {
    let (ours, theirs) = Conn::pair().expect("pair");
    ours.knock();
    ours.knock();
    ours.send(b"between", &[]).expect("send");
    ours.knock();

    let mut into = [0; 16];
    let first = theirs.drain(&mut into).expect("drain");
    assert_eq!(first.knocks, 2);
    assert!(
        matches!(
            first.then,
            Received::Packet {
                len: 7,
                truncated: false,
                ..
            }
        ),
        "{first:?}"
    );
    assert_eq!(&into[..7], b"between");

    let second = theirs.drain(&mut into).expect("drain");
    assert_eq!(second.knocks, 1);
    assert!(matches!(second.then, Received::Nothing));

    ours.knock();
    ours.send(b"behind", &[]).expect("send");
    assert_eq!(packet(&theirs).0, b"behind");
    ours.knock();
    drop(ours);
    let last = theirs.drain(&mut into).expect("drain");
    assert_eq!(last.knocks, 1);
    assert!(matches!(last.then, Received::Closed));
}

#[test]
fn what_could_be_mistaken_is_refused() {
    let (ours, theirs) = Conn::pair().expect("pair");
    for short in [&b""[..], b"x"] {
        let refused = ours.send(short, &[]).expect_err("too short");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }
    for room in 0..2 {
        let refused = theirs.drain(&mut vec![0; room]).expect_err("no room");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }
}

#[test]
fn any_number_of_doorbells_is_drained_at_once() {
    let (ours, theirs) = Conn::pair().expect("pair");
    for _ in 0..5000 {
        ours.knock();
    }
    let drained = theirs.drain(&mut [0; 2]).expect("drain");
    assert!(
        drained.knocks > 0 && drained.knocks < KNOCKS_MAX,
        "{drained:?}"
    );
    assert!(matches!(drained.then, Received::Nothing));
    assert!(!theirs.wait_readable(time::deadline(Some(0))).expect("poll"));
}

#[test]
fn a_full_queue_takes_more_after_a_receive() {
    let (ours, theirs) = Conn::pair().expect("pair");
    let mut queued = 0;
    while ours.send(&[1; 1024], &[]).expect("send") == Sent::Whole {
        queued += 1;
        assert!(queued < 10_000);
    }
    assert_eq!(ours.send(&[1; 1024], &[]).expect("send"), Sent::Full);
    for _ in 0..queued {
        assert!(matches!(
            theirs.recv(&mut [0; 1024]).expect("recv"),
            Received::Packet {
                len: 1024,
                truncated: false,
                ..
            },
        ));
    }
    assert_eq!(ours.send(&[1; 1024], &[]).expect("send"), Sent::Whole);
}

#[test]
fn a_knock_and_a_close_wake_a_sleeper() {
    let (ours, theirs) = Conn::pair().expect("pair");
    assert!(!theirs.wait_readable(time::deadline(Some(1))).expect("poll"));

    thread::scope(|scope| {
        let sleeper = scope.spawn(|| theirs.wait_readable(None).expect("poll"));
        ours.knock();
        assert!(sleeper.join().expect("thread"));
    });
    assert_eq!(theirs.drain(&mut [0; 2]).expect("drain").knocks, 1);

    thread::scope(|scope| {
        let sleeper = scope.spawn(|| theirs.wait_readable(None).expect("poll"));
        ours.shutdown();
        assert!(sleeper.join().expect("thread"));
    });
    assert!(receives_closed(&theirs));
}

#[test]
fn the_kernel_says_who_the_peer_is() {
    let (ours, _theirs) = Conn::pair().expect("pair");
    let peer = ours.peer().expect("peer");
    assert_eq!(peer.pid, std::process::id());
    assert_eq!(peer.uid, rustix::process::geteuid().as_raw());
    assert_eq!(peer.gid, rustix::process::getegid().as_raw());
}
