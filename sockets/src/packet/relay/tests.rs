use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use proto::packet::Kind;
use sys::relay::close_number;
use sys::socket::with_borrowed;

use crate::packet::calls::{self, How};
use crate::packet::relay::finish;
use crate::packet::stream::relay::BY_KERNEL;
use crate::packet::table::{self, sharing};
use crate::packet::{Socket, Variant};

use sys::errno::Errno;

/// One test at a time: the end of a process is that of all its relays.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A socket at a number, and its peer.
fn pair() -> (RawFd, Socket) {
    table::install(&shm::DRIVER, Variant::default(), None);
    let adapter = table::adapter().expect("a NIC");
    let listener = Socket::new(&adapter);
    let at = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    listener.bind(at).expect("an address");
    listener.listen(1).expect("a port");
    let asker = Socket::new(&adapter);
    asker.connect(listener.local(), 0).expect("it listens");
    let accepted = listener.accept(|| true).expect("it has asked");
    listener.close();
    (table::insert(asker).expect("a number"), accepted)
}

/// The kernel's socket at that number, as another process would have it.
fn stand_in(fd: RawFd) -> UnixStream {
    let copy = with_borrowed(fd, |fd| fd.try_clone_to_owned());
    copy.expect("a number").expect("it is open").into()
}

fn byte(at: usize) -> u8 {
    (at ^ (at >> 8) ^ (at >> 16)) as u8
}

fn filled(from: usize, len: usize) -> Vec<u8> {
    (from..from + len).map(byte).collect()
}

/// What the program's `send` does.
fn send(fd: RawFd, bytes: &[u8], plain: &mut UnixStream) -> usize {
    let pieces = &[std::io::IoSlice::new(bytes)];
    match table::get(fd).map(|socket| calls::send(plain.as_fd(), &socket, pieces, false)) {
        None | Some(Err(BY_KERNEL)) => plain.write(bytes).expect("it is open"),
        Some(sent) => sent.expect("it is connected"),
    }
}

/// What the program's `recv` does.
fn receive(fd: RawFd, room: &mut [u8], plain: &mut UnixStream) -> usize {
    let rooms = &mut [std::io::IoSliceMut::new(room)];
    let how = How::default();
    match table::get(fd).map(|socket| calls::receive(plain.as_fd(), &socket, rooms, how)) {
        None | Some(Err(BY_KERNEL)) => plain.read(room).expect("it is open"),
        Some(received) => received.expect("it is connected"),
    }
}

/// Ends it, as the program and all who have it do.
fn close(fd: RawFd) {
    let removed = table::remove(fd);
    close_number(fd);
    drop(removed);
}

#[test]
fn a_stream_in_use_keeps_its_bytes_and_their_order_when_the_relay_begins() {
    let _alone = alone();
    for round in 0..ROUNDS {
        let (fd, peer) = pair();
        let total = 200_000 + round * 7919;
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut plain = stand_in(fd);
                let mut at = 0;
                while at < total {
                    let len = (1 + at * 31 % (40_000 >> (round % 4 * 3))).min(total - at);
                    at += send(fd, &filled(at, len), &mut plain);
                }
            });
            scope.spawn(|| {
                let mut plain = stand_in(fd);
                let (mut at, mut room) = (0, vec![0; 1 + 50_000 / (1 + round % 5)]);
                while at < total {
                    let count = receive(fd, &mut room, &mut plain);
                    assert!(count > 0, "ended at {at} of {total}");
                    assert!(
                        room[..count] == filled(at, count),
                        "round {round}, from {at} on"
                    );
                    at += count;
                }
            });
            let stream = peer.stream().expect("it is connected");
            scope.spawn(|| {
                let mut at = 0;
                while at < total {
                    let len = (total - at).min(9000);
                    at += stream.send(&filled(at, len), || true).expect("it is open");
                }
            });
            scope.spawn(|| {
                let (mut at, mut room) = (0, vec![0; 30_000]);
                while at < total {
                    let count = stream.recv(&mut room, || true).expect("it is open");
                    assert!(count > 0, "the peer's ended at {at} of {total}");
                    assert!(
                        room[..count] == filled(at, count),
                        "round {round}, from {at} on"
                    );
                    at += count;
                }
            });
            // At another moment each time.
            (0..round * 13).for_each(|_| thread::yield_now());
            sharing::one(fd);
            assert!(table::is_relayed(fd) && !table::is(fd));
        });
        close(fd);
        let stream = peer.stream().expect("it was connected");
        assert_eq!(stream.recv(&mut [0], || true), Ok(0));
        peer.close();
    }
}

#[test]
fn what_has_come_before_is_there_at_once_and_then_the_end() {
    let _alone = alone();
    let (fd, peer) = pair();
    let mut plain = stand_in(fd);
    let stream = peer.stream().expect("it is connected");
    assert_eq!(stream.send(b"before", || true), Ok(6));
    // The program polls, and is shown an end that it has not come to yet.
    table::watch(fd);
    stream.end().expect("it is connected");
    let held = table::known(fd).expect("it is there");
    while held.stream().map(|stream| stream.state()) != Ok(proto::packet::State::CloseWait) {
        thread::yield_now();
    }
    sharing::one(fd);
    // An end that was shown cannot be taken back: another pair is at the number.
    drop(std::mem::replace(&mut plain, stand_in(fd)));
    plain.set_nonblocking(true).expect("a flag");
    let mut room = [0; 10];
    assert_eq!(plain.read(&mut room).expect("it is there"), 6);
    assert_eq!(plain.read(&mut room).expect("it has ended"), 0);
    assert_eq!(plain.write(b"answer").expect("it is open"), 6);
    drop(plain);
    drop(held);
    close(fd);
    assert_eq!(stream.recv(&mut room, || true), Ok(6));
    assert_eq!(stream.recv(&mut room, || true), Ok(0));
}

#[test]
fn who_closes_with_bytes_unread_resets_the_peer_though_the_process_ends() {
    let _alone = alone();
    for _ in 0..ROUNDS {
        let (fd, peer) = pair();
        let stream = peer.stream().expect("it is connected");
        sharing::one(fd);
        let mut plain = stand_in(fd);
        close(fd);
        assert_eq!(stream.send(b"never read", || true), Ok(10));
        let mut room = [0; 5];
        plain.read_exact(&mut room).expect("it has come");
        drop(plain);
        finish(Instant::now() + Duration::from_secs(10));
        assert_eq!(stream.recv(&mut room, || true), Err(Errno::CONNRESET));
        peer.close();
    }
}

/// A peer's process leaves, and is gone before this one could ask it for anything.
#[test]
fn who_is_left_by_somebody_that_nobody_can_reach_is_told_of_a_reset() {
    let _alone = alone();
    sharing::allow_to_follow();
    let (fd, peer) = pair();
    let mut plain = stand_in(fd);
    let stream = peer.stream().expect("it is connected");
    assert_eq!(stream.send(b"before", || true), Ok(6));
    sharing::one(fd);
    assert!(stream.say_move(Kind::Move));
    let held = table::known(fd).expect("it is there");
    let left = held.stream().expect("it is connected");
    while !left.is_asked_to_move() {
        thread::yield_now();
    }
    stream.abort();
    plain.set_read_timeout(Some(PATIENCE)).expect("a time");
    let mut room = [0; 10];
    assert_eq!(plain.read(&mut room).expect("it has come"), 6);
    let error = plain.read(&mut room).expect_err("it broke");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    drop((plain, held));
    close(fd);
}

const ROUNDS: usize = 40;
/// After which what has not happened does not.
const PATIENCE: Duration = Duration::from_secs(30);
