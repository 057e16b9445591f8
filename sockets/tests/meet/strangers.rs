//! Somebody else is at the name.

use std::cell::RefCell;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use proto::meet::{MESSAGE_MAX, Message, Terms};
use rustix::net::sockopt;
use sys::net::{Conn, Listener, Received};
use sys::stream;

use super::*;

const TERMS: Terms = Terms {
    layout: stream::VERSION,
    features: 0,
    memory_len: stream::LEN as u64,
};

fn bytes(message: &Message) -> Vec<u8> {
    message.encode(&mut [0; MESSAGE_MAX]).to_vec()
}

/// What a squatter that has the name says to who calls; the calls are kept open.
fn squat(answer: impl Fn(&Conn, &Ends)) -> (Ends, [Option<Reason>; 2]) {
    let mut ends = Ends::new();
    let name = name_of(&ends.tcp[0]);
    let listener = Listener::bind(name.as_bytes(), 128).expect("bind");
    let mut calls = Vec::new();
    for _ in 0..=STEPS_MAX + 1 {
        for end in 0..2 {
            ends.go(end, shm());
            while let Some(conn) = listener.accept().expect("accept") {
                answer(&conn, &ends);
                calls.push(conn);
            }
        }
    }
    assert!(calls.len() <= 16, "{} calls", calls.len());
    let reasons = [ends.reason(0), ends.reason(1)];
    ends.assert_untouched();
    (ends, reasons)
}

fn send(conn: &Conn, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
    conn.send(bytes, fds).expect("send");
}

#[test]
fn who_does_not_answer_costs_the_upgrade_and_no_more() {
    let _alone = alone();
    let (_ends, reasons) = squat(|_, _| {});
    assert_eq!(reasons, [Some(Reason::Silent); 2]);
}

#[test]
fn who_does_not_listen_costs_the_upgrade_and_no_more() {
    let _alone = alone();
    let mut ends = Ends::new();
    let name = name_of(&ends.tcp[0]);
    // Bound, with a backlog that is full at once.
    let listener = Listener::bind(name.as_bytes(), 0).expect("bind");
    let _full = Conn::connect(name.as_bytes()).expect("connect");
    ends.finish(shm());
    assert_eq!([ends.reason(0), ends.reason(1)], [Some(Reason::Silent); 2]);
    drop(listener);
    ends.assert_untouched();
}

#[test]
fn garbage_is_refused() {
    let _alone = alone();
    let mut long = bytes(&Message::Accept(TERMS));
    long.resize(1000, 0);
    let hello = bytes(&Message::Hello(TERMS));
    for garbage in [&b"what?"[..], &[0; 24], &long, &hello] {
        let (_ends, reasons) = squat(|conn, _| send(conn, garbage, &[]));
        assert_eq!(reasons, [Some(Reason::Garbage); 2], "{garbage:?}");
    }
}

#[test]
fn who_hangs_up_is_called_a_few_times_only() {
    let _alone = alone();
    let (_ends, reasons) = squat(|conn, _| conn.shutdown());
    assert_eq!(reasons, [Some(Reason::PeerLeft); 2]);
}

#[test]
fn another_version_is_refused() {
    let _alone = alone();
    let mut later = bytes(&Message::Accept(TERMS));
    later[4] += 1;
    let (_ends, reasons) = squat(|conn, _| send(conn, &later, &[]));
    assert_eq!(reasons, [Some(Reason::Version); 2]);
}

#[test]
fn a_decline_is_believed() {
    let _alone = alone();
    for (said, understood) in [
        (Reason::Layout, Reason::Layout),
        (Reason::Memory, Reason::Declined),
    ] {
        let reason = said.number();
        let (_ends, reasons) =
            squat(|conn, _| send(conn, &bytes(&Message::Decline { reason }), &[]));
        assert_eq!(reasons, [Some(understood); 2]);
    }
}

/// The descriptors that a stranger shows as its proof, beside good memory.
#[test]
fn false_proof_is_refused() {
    let _alone = alone();
    let others = Ends::new();
    let file = fs::File::open("/dev/null").expect("open");
    let of_others = sys::tcp::witness(others.tcp[0].as_fd()).expect("witness");
    let proofs: [BorrowedFd<'_>; 3] = [file.as_fd(), of_others.as_fd(), others.tcp[0].as_fd()];
    for proof in proofs {
        let (_ends, reasons) = squat(|conn, _| {
            let memory = shm().create(stream::LEN).expect("memory");
            send(
                conn,
                &bytes(&Message::Accept(TERMS)),
                &[proof, memory.as_fd()],
            );
        });
        assert_eq!(reasons, [Some(Reason::FalseProof); 2]);
    }
    let (_ends, reasons) = squat(|conn, _| send(conn, &bytes(&Message::Accept(TERMS)), &[]));
    assert_eq!(reasons, [Some(Reason::FalseProof); 2]);
}

/// What it passes would keep whoever closes it last for seconds.
#[test]
fn a_proof_that_lingers_keeps_nobody() {
    let _alone = alone();
    let linger = Duration::from_secs(60);
    let accept = bytes(&Message::Accept(TERMS));
    let began = Instant::now();
    let mut others = Vec::new();
    let (_ends, reasons) = {
        let others = RefCell::new(&mut others);
        squat(|conn, _| {
            let [end, other] = Ends::new().tcp;
            end.set_nonblocking(true).expect("set");
            while (&end).write(&[0; 1 << 16]).is_ok() {}
            sockopt::set_socket_linger(&end, Some(linger)).expect("set");
            send(conn, &accept, &[end.as_fd(), end.as_fd(), end.as_fd()]);
            drop(end);
            others.borrow_mut().push(other);
        })
    };
    assert_eq!(reasons, [Some(Reason::FalseProof); 2]);
    assert!(!others.is_empty() && began.elapsed() < linger);
}

/// It shows who called its own proof again.
#[test]
fn an_echo_of_the_own_proof_is_refused() {
    let _alone = alone();
    let (_ends, reasons) = squat(|conn, _| {
        let mut into = [0; 64];
        let Received::Packet { fds, .. } = conn.recv(&mut into).expect("recv") else {
            panic!("it has said hello");
        };
        let memory = shm().create(stream::LEN).expect("memory");
        let fds: Vec<_> = fds
            .iter()
            .map(AsFd::as_fd)
            .chain([memory.as_fd()])
            .collect();
        send(conn, &bytes(&Message::Accept(TERMS)), &fds);
    });
    assert_eq!(reasons, [Some(Reason::FalseProof); 2]);
}

/// What reaches a squatter is good for nothing.
#[test]
fn a_squatter_gets_no_socket() {
    let _alone = alone();
    let (_ends, _reasons) = squat(|conn, _| {
        let mut into = [0; 64];
        let Received::Packet { fds, .. } = conn.recv(&mut into).expect("recv") else {
            panic!("it has said hello");
        };
        assert_eq!(fds.len(), 1);
        for fd in &fds {
            assert!(sys::tcp::send_dontwait(fd.as_fd(), b"x").is_err());
            assert!(sys::tcp::recv_dontwait(fd.as_fd(), &mut [0; 8]).is_err());
        }
    });
}

/// While a witness lies in a stranger's queue the connection can be closed, and the other end sees it.
#[test]
fn a_silent_squatter_does_not_keep_the_connection_open() {
    let _alone = alone();
    let mut ends = Ends::new();
    let name = name_of(&ends.tcp[0]);
    let listener = Listener::bind(name.as_bytes(), 128).expect("bind");
    ends.go(0, shm());
    let Ends {
        tcp: [one, mut other],
        meetings,
        ..
    } = ends;
    drop(meetings);
    drop(one);
    assert_eq!(other.read(&mut [0; 8]).expect("read"), 0);
    drop(listener);
}

/// The real other end, with memory that is not what it should be.
fn offer(memory: &[OwnedFd], terms: Terms) -> Option<Reason> {
    let (_ends, reasons) = squat(|conn, ends| {
        // The proof of the end that has not called: both do, so the right one of two is tried.
        let mut into = [0; 64];
        let Received::Packet { fds, .. } = conn.recv(&mut into).expect("recv") else {
            panic!("it has said hello");
        };
        let inode = |fd: BorrowedFd<'_>| {
            let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
            fs::read_link(path).expect("/proc")
        };
        let caller = usize::from(inode(fds[0].as_fd()) == inode(ends.tcp[1].as_fd()));
        let proof = sys::tcp::witness(ends.tcp[1 - caller].as_fd()).expect("witness");
        let fds: Vec<_> = [proof.as_fd()]
            .into_iter()
            .chain(memory.iter().map(AsFd::as_fd))
            .collect();
        send(conn, &bytes(&Message::Accept(terms)), &fds);
    });
    assert_eq!(reasons[0], reasons[1]);
    reasons[0]
}

#[test]
fn memory_that_is_not_sealed_or_not_of_the_size_is_refused() {
    let _alone = alone();
    let short = shm().create(stream::LEN / 2).expect("memory");
    let long = shm().create(stream::LEN * 2).expect("memory");
    let file = fs::File::open("/dev/zero").expect("open");
    let path = std::env::temp_dir().join(format!("sovia-meet-{}", std::process::id()));
    let unsealed = fs::File::create_new(&path).expect("create");
    fs::remove_file(&path).expect("remove");
    unsealed.set_len(stream::LEN as u64).expect("resize");
    for bad in [short, long, file.into(), unsealed.into()] {
        assert_eq!(offer(&[bad], TERMS), Some(Reason::BadMemory));
    }
    assert_eq!(offer(&[], TERMS), Some(Reason::BadMemory));
}

#[test]
fn another_layout_is_refused() {
    let _alone = alone();
    let memory = shm().create(stream::LEN).expect("memory");
    let terms = Terms {
        layout: TERMS.layout + 1,
        ..TERMS
    };
    assert_eq!(offer(&[memory], terms), Some(Reason::Layout));
    // More than this end would have, and what are no rings.
    let lens = [
        Size::MOST.memory_len(),
        stream::LEN + 1,
        stream::LEN - 4096,
        stream::LEN / 2,
    ];
    for len in lens {
        let memory = shm().create(len).expect("memory");
        let terms = Terms {
            memory_len: len as u64,
            ..TERMS
        };
        assert_eq!(offer(&[memory], terms), Some(Reason::Layout), "{len}");
    }
    // The terms are right, and the memory is of another size that there is.
    let memory = shm().create(Size::LEAST.memory_len()).expect("memory");
    assert_eq!(offer(&[memory], TERMS), Some(Reason::BadMemory));
}

#[test]
fn memory_that_is_withdrawn_already_is_refused() {
    let _alone = alone();
    let memory = shm().create(stream::LEN).expect("memory");
    let stream = Stream::map(memory.try_clone().expect("dup"), stream::Side::A).expect("map");
    assert!(stream.decide(stream::WITHDRAWN));
    assert_eq!(offer(&[memory], TERMS), Some(Reason::PeerGaveUp));
}

/// Strangers call at the name of an honest listener, before or while the other end does.
#[test]
fn the_ends_meet_among_strangers() {
    let _alone = alone();
    for strangers in [1, 4, 12] {
        let mut ends = Ends::new();
        let name = name_of(&ends.tcp[0]);
        ends.go(0, shm());
        let mut calls = Vec::new();
        for stranger in 0..strangers {
            if let Ok(conn) = Conn::connect(name.as_bytes()) {
                if stranger % 2 == 1 {
                    send(&conn, &bytes(&Message::Hello(TERMS)), &[conn.as_fd()]);
                }
                calls.push(conn);
            }
            ends.go(0, shm());
        }
        ends.finish(shm());
        assert!(ends.streams().is_some(), "{strangers}: {:?}", ends.outcomes);
        ends.assert_untouched();
    }
}

#[test]
fn a_flood_of_strangers_ends_the_meeting() {
    let _alone = alone();
    let mut ends = Ends::new();
    let name = name_of(&ends.tcp[0]);
    let mut calls = Vec::new();
    let mut steps = 0;
    while ends.outcomes[0].is_none() {
        ends.go(0, shm());
        while let Ok(conn) = Conn::connect(name.as_bytes()) {
            calls.push(conn);
        }
        steps += 1;
        assert!(steps < 20);
    }
    assert_eq!(ends.reason(0), Some(Reason::Disturbed));
    drop(calls);
    ends.assert_untouched();
}

#[test]
fn a_hello_of_another_version_is_declined_if_it_is_proven() {
    let _alone = alone();
    let mut ends = Ends::new();
    let name = name_of(&ends.tcp[0]);
    ends.go(0, shm());
    let mut later = bytes(&Message::Hello(TERMS));
    later[4] += 1;
    later.extend([1, 2, 3]);
    let stranger = Conn::connect(name.as_bytes()).expect("connect");
    send(&stranger, &later, &[]);
    ends.go(0, shm());
    assert!(ends.outcomes[0].is_none(), "a stranger decides nothing");
    let proof = sys::tcp::witness(ends.tcp[1].as_fd()).expect("witness");
    let peer = Conn::connect(name.as_bytes()).expect("connect");
    send(&peer, &later, &[proof.as_fd()]);
    drop(proof);
    ends.go(0, shm());
    assert_eq!(ends.reason(0), Some(Reason::Version));
    let mut into = [0; 64];
    let Received::Packet { len, .. } = peer.recv(&mut into).expect("recv") else {
        panic!("an answer");
    };
    let reason = Reason::Version.number();
    assert_eq!(
        Message::decode(&into[..len]),
        Ok(Message::Decline { reason })
    );
    ends.assert_untouched();
}

/// The other end writes into the word that decides.
#[test]
fn a_state_that_can_not_be_is_the_end() {
    let _alone = alone();
    let mut ends = Ends::new();
    let name = name_of(&ends.tcp[0]);
    ends.go(0, shm());
    let proof = sys::tcp::witness(ends.tcp[1].as_fd()).expect("witness");
    let peer = Conn::connect(name.as_bytes()).expect("connect");
    send(&peer, &bytes(&Message::Hello(TERMS)), &[proof.as_fd()]);
    drop(proof);
    ends.go(0, shm());
    let mut into = [0; 64];
    let Received::Packet { mut fds, .. } = peer.recv(&mut into).expect("recv") else {
        panic!("an answer");
    };
    let memory = Stream::map(fds.remove(1).trusted(), stream::Side::B).expect("map");
    assert!(memory.decide(77));
    ends.go(0, shm());
    assert_eq!(ends.reason(0), Some(Reason::PeerGaveUp));
    drop((memory, fds));
    ends.assert_untouched();
}
