use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use proptest::prelude::*;
use rustix::fs::{Mode, OFlags, open};

use super::*;
use crate::socket::{
    is_connected, is_nonblocking, is_open, is_tcp, receive_timeout_ms, reset_on_close,
    send_timeout_ms,
};

/// Who connected, and who accepted.
fn pair(listen: &str, connect: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(listen).expect("bind");
    let port = listener.local_addr().expect("address").port();
    let opener = TcpStream::connect((connect, port)).expect("connect");
    let (acceptor, _) = listener.accept().expect("accept");
    for end in [&opener, &acceptor] {
        end.set_nodelay(true).expect("TCP_NODELAY");
    }
    (opener, acceptor)
}

fn v4() -> (TcpStream, TcpStream) {
    pair("127.0.0.1:0", "127.0.0.1")
}

fn each_family() -> [(TcpStream, TcpStream); 3] {
    // The last: mapped at the acceptor, plain at the opener.
    [v4(), pair("[::1]:0", "::1"), pair("[::]:0", "127.0.0.1")]
}

#[test]
fn the_ends_are_mirror_images() {
    for (one, other) in each_family() {
        let ours = identity(one.as_fd()).expect("identity");
        let theirs = identity(other.as_fd()).expect("identity");
        assert_eq!((ours.local, ours.peer), (theirs.peer, theirs.local));
        assert_eq!(ours.netns, theirs.netns);
        assert!(ours.is_local() && theirs.is_local());
        assert!(!ours.is_to_itself());
    }
}

#[test]
fn what_is_no_connection_has_no_identity() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    assert_eq!(identity(listener.as_fd()), Err(Errno::NOTCONN));
    let (unix, _other) = UnixStream::pair().expect("pair");
    assert_eq!(identity(unix.as_fd()), Err(Errno::AFNOSUPPORT));
    let (one, other) = v4();
    reset_on_close(other.as_fd());
    drop(other);
    assert_eq!(identity(one.as_fd()), Err(Errno::NOTCONN));
    assert_eq!(state(one.as_fd()), Ok(State::None));
}

#[test]
fn only_addresses_of_this_host_are_local() {
    let identity = |local: &str, peer: &str| Identity {
        local: local.parse().expect("an address"),
        peer: peer.parse().expect("an address"),
        netns: 1,
        interface: 0,
    };
    assert!(identity("127.0.0.1:1", "127.0.0.2:2").is_local());
    assert!(identity("192.0.2.1:1", "192.0.2.1:2").is_local());
    assert!(!identity("192.0.2.1:1", "192.0.2.2:1").is_local());
    assert!(!identity("127.0.0.1:1", "192.0.2.2:1").is_local());
    assert!(identity("192.0.2.1:1", "192.0.2.1:1").is_to_itself());
}

#[test]
fn tcp_is_told_from_everything_else() {
    let (one, _other) = pair("[::1]:0", "::1");
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let udp = UdpSocket::bind("127.0.0.1:0").expect("bind");
    let (unix, _peer) = UnixStream::pair().expect("pair");
    let file = std::fs::File::open("/dev/null").expect("open");
    assert!(is_tcp(one.as_fd()) && is_tcp(listener.as_fd()));
    assert!(!is_tcp(udp.as_fd()) && !is_tcp(unix.as_fd()) && !is_tcp(file.as_fd()));
    assert!(is_connected(one.as_fd()) && !is_connected(listener.as_fd()));
    assert!(is_open(one.as_raw_fd()) && !is_open(-1) && !is_open(i32::MAX));
}

#[test]
fn modes_and_time_limits_are_the_sockets() {
    let (one, _other) = v4();
    assert_eq!(
        (
            send_timeout_ms(one.as_fd()),
            receive_timeout_ms(one.as_fd())
        ),
        (-1, -1)
    );
    assert!(!is_nonblocking(one.as_fd()));
    one.set_nonblocking(true).expect("FIONBIO");
    assert!(is_nonblocking(one.as_fd()));
    one.set_read_timeout(Some(Duration::from_millis(8)))
        .expect("SO_RCVTIMEO");
    // The kernel rounds to its clock tick.
    assert!((8..=20).contains(&receive_timeout_ms(one.as_fd())));
}

#[test]
fn sending_and_receiving_do_not_wait() {
    let (one, other) = v4();
    let mut into = [0; 8];
    assert_eq!(recv_dontwait(one.as_fd(), &mut into), Err(Errno::AGAIN));
    assert_eq!(send_dontwait(other.as_fd(), b"abc"), Ok(3));
    assert_eq!(recv_peek(one.as_fd(), &mut into), Ok(3));
    assert_eq!(recv_dontwait(one.as_fd(), &mut into), Ok(3));
    assert_eq!(&into[..3], b"abc");
    while send_dontwait(other.as_fd(), &[0; 65536]).is_ok() {}
    assert_eq!(send_dontwait(other.as_fd(), b"x"), Err(Errno::AGAIN));
}

/// What the kernel says at both ends, against what was written and read.
fn check(end: &TcpStream, opener: bool, sent: u64, read: u64) {
    assert_eq!(written(end.as_fd()), Ok(sent), "opener: {opener}");
    assert_eq!(
        written_by(end.as_fd(), opener),
        Ok(sent),
        "opener: {opener}"
    );
    assert_eq!(is_opener(end.as_fd()), Ok(opener));
    assert_eq!(taken(end.as_fd()), Ok(read), "opener: {opener}");
}

#[test]
fn nothing_has_gone_over_a_fresh_connection() {
    for (opener, acceptor) in each_family() {
        check(&opener, true, 0, 0);
        check(&acceptor, false, 0, 0);
    }
}

#[test]
fn a_full_connection_is_counted_too() {
    for (opener, acceptor) in each_family() {
        let mut sent = [0_u64; 2];
        for (end, sent) in [&opener, &acceptor].into_iter().zip(&mut sent) {
            while let Ok(more) = send_dontwait(end.as_fd(), &[0; 50_000]) {
                *sent += more as u64;
            }
        }
        check(&opener, true, sent[0], 0);
        check(&acceptor, false, sent[1], 0);
        let mut read = 0;
        while let Ok(more) = recv_dontwait(opener.as_fd(), &mut [0; 30_000]) {
            read += more as u64;
        }
        check(&opener, true, sent[0], read);
    }
}

#[test]
fn ends_do_not_count() {
    for (first, opener_first) in [(0, true), (1, false)] {
        for (opener, acceptor) in each_family() {
            (&opener).write_all(b"12345").expect("write");
            (&acceptor).write_all(b"123").expect("write");
            (&acceptor).read_exact(&mut [0; 4]).expect("read");
            let ends = [&opener, &acceptor];
            ends[first].shutdown(Shutdown::Write).expect("shutdown");
            check(&opener, true, 5, 0);
            check(&acceptor, false, 3, 4);
            // Each FIN is there at once on the loopback.
            let finished = if opener_first { &acceptor } else { &opener };
            assert_eq!(state(finished.as_fd()), Ok(State::FinReceived));
            (&opener).read_exact(&mut [0; 3]).expect("read");
            (&acceptor).read_exact(&mut [0; 1]).expect("read");
            check(&opener, true, 5, 3);
            check(&acceptor, false, 3, 5);
            assert_eq!(recv_dontwait(finished.as_fd(), &mut [0; 8]), Ok(0));
            check(&opener, true, 5, 3);
            check(&acceptor, false, 3, 5);
        }
    }
}

#[test]
fn a_fin_behind_what_does_not_fit_does_not_count() {
    for (opener, acceptor) in each_family() {
        for (end, is_opener) in [(&opener, true), (&acceptor, false)] {
            let mut sent = 0;
            while let Ok(more) = send_dontwait(end.as_fd(), &[0; 50_000]) {
                sent += more as u64;
            }
            end.shutdown(Shutdown::Write).expect("shutdown");
            assert_eq!(written(end.as_fd()), Ok(sent), "opener: {is_opener}");
            assert_eq!(written_by(end.as_fd(), is_opener), Ok(sent));
        }
    }
}

#[test]
fn after_both_ends_the_kernel_does_not_say() {
    let (opener, acceptor) = v4();
    opener.shutdown(Shutdown::Write).expect("shutdown");
    acceptor.shutdown(Shutdown::Write).expect("shutdown");
    assert_eq!(taken(acceptor.as_fd()), Err(Errno::NOTCONN));
    assert_eq!(written(acceptor.as_fd()), Err(Errno::NOTCONN));
}

/// What the documentation warns of: before the mark is passed, what lies behind it seems taken.
#[test]
fn urgent_data_hides_what_is_behind_it() {
    let (opener, mut acceptor) = v4();
    send_dontwait(opener.as_fd(), b"before").expect("send");
    rustix::net::send(&opener, b"!", SendFlags::OOB).expect("send");
    send_dontwait(opener.as_fd(), b"after").expect("send");
    assert_eq!(written(opener.as_fd()), Ok(12));
    assert_eq!(inq(acceptor.as_fd()), Ok(6));
    assert_eq!(taken(acceptor.as_fd()), Ok(6), "6 too many");
    acceptor.read_exact(&mut [0; 6]).expect("read");
    acceptor.read_exact(&mut [0; 5]).expect("read");
    assert_eq!(
        taken(acceptor.as_fd()),
        Ok(12),
        "the urgent byte is among them"
    );
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Send(bool, usize),
    Receive(bool, usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (any::<bool>(), 0_usize..100_000).prop_map(|(end, len)| Op::Send(end, len)),
        (any::<bool>(), 0_usize..200_000).prop_map(|(end, len)| Op::Receive(end, len)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn counts_agree_with_what_was_done(
        family in 0_usize..3,
        ops in prop::collection::vec(op(), 1..40),
    ) {
        let (opener, acceptor) = each_family().into_iter().nth(family).expect("three");
        let (mut sent, mut read) = ([0_u64; 2], [0_u64; 2]);
        let buffer = vec![0; 100_000];
        for op in ops {
            match op {
                Op::Send(end, len) => {
                    let fd = if end { &opener } else { &acceptor };
                    let more = send_dontwait(fd.as_fd(), &buffer[..len]).unwrap_or(0);
                    sent[usize::from(!end)] += more as u64;
                }
                Op::Receive(end, len) => {
                    let fd = if end { &opener } else { &acceptor };
                    let more = recv_dontwait(fd.as_fd(), &mut vec![0; len]).unwrap_or(0);
                    read[usize::from(!end)] += more as u64;
                }
            }
            check(&opener, true, sent[0], read[0]);
            check(&acceptor, false, sent[1], read[1]);
        }
    }
}

#[test]
fn a_witness_is_of_one_socket() {
    for (one, other) in each_family() {
        let ours = identity(one.as_fd()).expect("identity");
        let owner = owner(&ours).expect("the other end's");
        let good = witness(other.as_fd()).expect("witness");
        let bad = witness(one.as_fd()).expect("witness");
        assert_eq!(is_witness_of(&good.as_fd(), &owner, one.as_fd()), Ok(true));
        assert_eq!(is_witness_of(&bad.as_fd(), &owner, one.as_fd()), Ok(false));
    }
}

#[test]
fn both_ways_to_the_owner_lead_to_the_same() {
    for (one, other) in each_family() {
        for end in [&one, &other] {
            let identity = identity(end.as_fd()).expect("identity");
            let asked = owner::ask(&identity).expect("sock_diag");
            // Other tests leave thousands of connections in TIME-WAIT: more rows than are read for a connection of a program.
            let found = owner::table::look_up_within(&identity, usize::MAX);
            assert_eq!(found, Ok(asked));
            assert_eq!(asked.uid, rustix::process::geteuid().as_raw());
        }
    }
}

#[test]
fn a_connection_that_is_not_there_has_no_owner() {
    let (one, other) = v4();
    let ours = identity(one.as_fd()).expect("identity");
    let elsewhere = Identity {
        netns: ours.netns + 1,
        ..ours
    };
    assert_eq!(owner::ask(&elsewhere), Err(Errno::XDEV));
    assert_eq!(owner::table::look_up(&elsewhere), Err(Errno::XDEV));
    other.shutdown(Shutdown::Write).expect("shutdown");
    assert_eq!(owner::ask(&ours), Err(Errno::NOENT));
    assert_eq!(owner::table::look_up(&ours), Err(Errno::NOENT));
}

#[test]
fn other_files_are_no_witness() {
    let (one, other) = v4();
    let owner = owner(&identity(one.as_fd()).expect("identity")).expect("owner");
    let (unix, _peer) = UnixStream::pair().expect("pair");
    let path = std::env::temp_dir().join(format!("sovia-witness-{}", std::process::id()));
    let listener = UnixListener::bind(&path).expect("bind");
    let in_file_system =
        open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("a socket's file");
    std::fs::remove_file(&path).expect("remove");
    drop(listener);
    for file in [unix.as_fd(), in_file_system.as_fd()] {
        let metadata = rustix::fs::fstat(file).expect("fstat");
        // Even if number and owner were right.
        let posing = Owner {
            inode: metadata.st_ino as u32,
            uid: metadata.st_uid,
        };
        assert_eq!(is_witness_of(&file, &owner, one.as_fd()), Ok(false));
        let same_device = is_witness_of(&in_file_system, &posing, other.as_fd());
        assert_eq!(same_device, Ok(false));
    }
}

#[test]
fn a_witness_has_no_power_over_the_connection() {
    let (one, other) = v4();
    let witness = witness(other.as_fd()).expect("witness");
    assert_eq!(send_dontwait(witness.as_fd(), b"x"), Err(Errno::BADF));
    assert_eq!(rustix::io::write(witness.as_fd(), b"x"), Err(Errno::BADF));
    let path = format!("/proc/self/fd/{}", witness.as_raw_fd());
    assert_eq!(
        open(path, OFlags::RDWR, Mode::empty()).err(),
        Some(Errno::NXIO)
    );
    drop(other);
    assert_eq!(
        recv_dontwait(one.as_fd(), &mut [0; 8]),
        Ok(0),
        "the end is seen"
    );
}
