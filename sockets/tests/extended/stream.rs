//! Plain calls: a stream of bytes, as on any socket.

use std::io::{IoSlice, IoSliceMut};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sockets::extended::{Directions, Socket, Wait};
use sys::errno::Errno;

use crate::kit::{ALL, Over, pattern};

const SHUT_WR: Directions = Directions {
    input: false,
    output: true,
};

fn read_all(socket: &Socket, step: usize) -> Vec<u8> {
    let (mut all, mut piece) = (Vec::new(), vec![0; step]);
    loop {
        match socket.read(&mut piece).expect("reads") {
            0 => return all,
            n => all.extend(&piece[..n]),
        }
    }
}

#[test]
fn bytes_arrive_in_order_whatever_the_pieces() {
    for over in ALL {
        for (len, write, read) in [(1, 1, 1), (70_000, 7, 100_000), (3_000_017, 65_536, 10_007)] {
            let (a, b) = over.pair();
            let sent = pattern(len, write);
            thread::scope(|scope| {
                scope.spawn(|| {
                    for piece in sent.chunks(write) {
                        a.write(piece).expect("writes");
                    }
                    a.shutdown(SHUT_WR).expect("ends");
                });
                assert!(read_all(&b, read) == sent, "{over:?} {len} {write} {read}");
            });
        }
    }
}

#[test]
fn both_directions_at_once() {
    for over in ALL {
        let (a, b) = over.pair();
        let sent = pattern(2_000_000, 3);
        thread::scope(|scope| {
            for socket in [&a, &b] {
                let sent = &sent;
                scope.spawn(move || {
                    socket.write(sent).expect("writes");
                    socket.shutdown(SHUT_WR).expect("ends");
                });
                scope.spawn(move || assert!(read_all(socket, 65_536) == *sent));
            }
        });
    }
}

#[test]
fn a_call_that_does_not_wait_says_so() {
    for over in ALL {
        let (a, b) = over.pair();
        let mut byte = [0];
        let nothing = b.receive(&mut [IoSliceMut::new(&mut byte)], Wait::Not, false, false);
        assert_eq!(nothing, Err(Errno::AGAIN));
        let piece = vec![7; 100_000];
        let mut sent = 0;
        let full = loop {
            match a.send(&[IoSlice::new(&piece)], Wait::Not) {
                Ok(n) => sent += n,
                Err(errno) => break errno,
            }
        };
        assert_eq!(full, Errno::AGAIN);
        let mut got = 0;
        let mut room = vec![0; 50_000];
        while got < sent {
            got += b.read(&mut room).expect("reads");
        }
        assert_eq!(got, sent);
    }
}

#[test]
fn peek_takes_nothing_and_all_waits_for_all() {
    for over in ALL {
        let (a, b) = over.pair();
        let sent = pattern(40_000, 1);
        a.write(&sent).expect("writes");
        let mut first = [0; 5];
        for _ in 0..2 {
            let n = b.receive(&mut [IoSliceMut::new(&mut first)], Wait::Ever, true, false);
            assert_eq!((n, &first[..]), (Ok(5), &sent[..5]));
        }
        let (mut one, mut two) = (vec![0; 17_000], vec![0; 24_000]);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut into = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
                assert_eq!(b.receive(&mut into, Wait::Ever, false, true), Ok(41_000));
            });
            a.write(&sent[..1000]).expect("writes");
        });
        assert!(one == sent[..17_000] && two[..23_000] == sent[17_000..]);
    }
}

#[test]
fn a_look_at_all_waits_for_all() {
    for over in ALL {
        let (a, b) = over.pair();
        let look = |len: usize, wait| {
            let mut bytes = vec![0; len];
            let n = b.receive(&mut [IoSliceMut::new(&mut bytes)], wait, true, true);
            n.map(|n| {
                bytes.truncate(n);
                bytes
            })
        };
        a.write(b"four").expect("writes");
        assert_eq!(look(4, Wait::Ever), Ok(b"four".to_vec()));
        // What there is, for one who does not wait, and for one whose time is over.
        assert_eq!(look(8, Wait::Not), Ok(b"four".to_vec()));
        let soon = Instant::now() + Duration::from_millis(20);
        assert_eq!(look(8, Wait::Until(soon)), Ok(b"four".to_vec()));
        thread::scope(|scope| {
            let looking = scope.spawn(|| look(8, Wait::Ever));
            a.write(b"and").expect("writes");
            a.write(b"more").expect("writes");
            assert_eq!(looking.join().expect("no panic"), Ok(b"fourandm".to_vec()));
        });
        // And at the end, and when no more can come before some is taken.
        let rest = pattern(1 << 20, 1);
        let mut sent = 11;
        while let Ok(n) = a.send(&[IoSlice::new(&rest)], Wait::Not) {
            sent += n;
        }
        assert_eq!(look(4 << 20, Wait::Ever).map(|bytes| bytes.len()), Ok(sent));
        let mut taken = vec![0; sent];
        let all = b.receive(&mut [IoSliceMut::new(&mut taken)], Wait::Ever, false, true);
        assert_eq!(all, Ok(sent));
        thread::scope(|scope| {
            let looking = scope.spawn(|| look(8, Wait::Ever));
            a.write(b"last").expect("writes");
            a.shutdown(SHUT_WR).expect("ends");
            assert_eq!(looking.join().expect("no panic"), Ok(b"last".to_vec()));
        });
    }
}

#[test]
fn many_small_pieces_do_not_use_the_window_up() {
    for over in ALL {
        let (a, b) = over.pair();
        let sent = pattern(300, 1);
        // Both write all before either reads, as they may on TCP.
        thread::scope(|scope| {
            for socket in [&a, &b] {
                let sent = &sent;
                scope.spawn(move || {
                    for byte in sent.chunks(1) {
                        socket.write(byte).expect("writes");
                    }
                    // Looked at until there is enough of it.
                    let mut got = [0; 300];
                    let mut seen = 0;
                    while seen < sent.len() {
                        let mut into = [IoSliceMut::new(&mut got)];
                        seen = socket
                            .receive(&mut into, Wait::Ever, true, false)
                            .expect("looks");
                    }
                    assert_eq!(socket.readable_bytes(), Ok(300));
                    assert_eq!(got, sent[..]);
                    let mut into = [IoSliceMut::new(&mut got)];
                    let taken = socket.receive(&mut into, Wait::Ever, false, true);
                    assert_eq!((taken, &got[..]), (Ok(300), &sent[..]));
                });
            }
        });
        // Pieces of every size, some of which fit behind others.
        let sent = pattern(2_000_000, 2);
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut rest, mut len) = (&sent[..], 1);
                while !rest.is_empty() {
                    let (piece, after) = rest.split_at(len.min(rest.len()));
                    a.write(piece).expect("writes");
                    (rest, len) = (after, len * 7 % 16411);
                }
                a.shutdown(Directions {
                    input: false,
                    output: true,
                })
                .expect("ends");
            });
            assert!(read_all(&b, 20_000) == sent);
        });
    }
}

fn shows(socket: &Socket, events: PollFlags, wait: bool) -> PollFlags {
    let mut entry = [PollFd::from_borrowed_fd(socket.fd(), events)];
    let timeout = Timespec {
        tv_sec: if wait { 20 } else { 0 },
        tv_nsec: 0,
    };
    poll(&mut entry, Some(&timeout)).expect("polls");
    entry[0].revents()
}

#[test]
fn poll_sees_bytes_room_and_ends() {
    for over in ALL {
        let (a, b) = over.pair();
        let all = PollFlags::IN | PollFlags::OUT | PollFlags::RDHUP;
        assert_eq!(shows(&b, all, false), PollFlags::OUT, "{over:?}");
        a.write(b"x").expect("writes");
        // Nobody calls at this end: it is woken all the same.
        assert_eq!(shows(&b, PollFlags::IN, true), PollFlags::IN);
        assert_eq!(b.read(&mut [0; 8]), Ok(1));
        assert_eq!(shows(&b, all, false), PollFlags::OUT);
        let piece = vec![1; 65_536];
        while a.send(&[IoSlice::new(&piece)], Wait::Not).is_ok() {}
        assert_eq!(shows(&a, PollFlags::OUT, false), PollFlags::empty());
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(shows(&a, PollFlags::OUT, true), PollFlags::OUT));
            let mut room = vec![0; 65_536];
            for _ in 0..8 {
                let waited = b.receive(&mut [IoSliceMut::new(&mut room)], Wait::Not, false, false);
                assert_ne!(waited, Ok(0));
            }
        });
        b.shutdown(SHUT_WR).expect("ends");
        let end = shows(&a, PollFlags::IN | PollFlags::RDHUP, true);
        assert!(end.contains(PollFlags::IN | PollFlags::RDHUP), "{end:?}");
        assert_eq!(a.read(&mut [0; 8]), Ok(0));
    }
}

#[test]
fn bytes_that_nobody_reads_hold_up_their_sender_only() {
    let (a, b) = Over::Shm.pair();
    let piece = vec![1; 65_536];
    while a.send(&[IoSlice::new(&piece)], Wait::Not).is_ok() {}
    b.write(b"the other way").expect("writes");
    let mut answer = [0; 32];
    assert_eq!(a.read(&mut answer), Ok(13));
}
