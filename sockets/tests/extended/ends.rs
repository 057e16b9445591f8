//! How connections end.

use std::io::IoSliceMut;
use std::thread;

use sockets::extended::{Directions, Op, Socket, Wait};
use sys::errno::Errno;
use via::Access;

use crate::kit::{ALL, Over, fill, pattern, region, soon, wait};

#[test]
fn what_was_sent_before_a_close_arrives() {
    for over in ALL {
        for len in [1, 100_000, 200_000] {
            let (a, b) = over.pair();
            let sent = pattern(len, 1);
            thread::scope(|scope| {
                let sending = scope.spawn(|| {
                    a.write(&sent).expect("writes");
                    a.close(soon());
                });
                let (mut got, mut at) = (vec![0; len + 1], 0);
                loop {
                    match b.read(&mut got[at..]).expect("reads") {
                        0 => break,
                        n => at += n,
                    }
                }
                assert!(got[..at] == sent, "{over:?} {len}: {at}");
                sending.join().expect("no panic");
            });
            assert_eq!(b.read(&mut [0; 1]), Ok(0));
        }
    }
}

#[test]
fn the_end_completes_what_is_posted() {
    for over in ALL {
        let (a, b) = over.pair();
        let (ours, theirs) = (
            region(&a, 100_000, Access::Write),
            region(&b, 8, Access::Read),
        );
        b.advertise(&theirs, 1).expect("tells");
        let remote = a.remote(1, soon()).expect("told");
        a.post_recv(&[ours.whole().expect("whole")], 1)
            .expect("posts");
        a.post_send(&[ours.whole().expect("whole")], 2)
            .expect("posts");
        drop(b);
        let mut ended = [a.wait(soon()).expect("ends"), a.wait(soon()).expect("ends")];
        ended.sort_by_key(|completion| completion.id);
        assert_eq!(ended.map(|completion| completion.op), [Op::Recv, Op::Send]);
        assert_eq!(ended[0].result, Err(Errno::SHUTDOWN), "{over:?}");
        assert_eq!(ended[1].result, Err(Errno::SHUTDOWN), "{over:?}");
        assert_eq!(
            a.post_send(&[ours.slice(0..1).expect("within")], 3),
            Err(Errno::PIPE)
        );
        assert_eq!(
            a.post_read(&[ours.slice(0..8).expect("within")], &remote, 0, 3),
            Err(Errno::PIPE)
        );
        assert_eq!(a.read(&mut [0; 8]), Ok(0));
        assert_eq!(a.write(b"x"), Err(Errno::PIPE));
    }
}

#[test]
fn half_a_connection_goes_on() {
    for over in ALL {
        let (a, b) = over.pair();
        a.shutdown(Directions {
            input: false,
            output: true,
        })
        .expect("ends");
        assert_eq!(b.read(&mut [0; 8]), Ok(0));
        assert_eq!(a.write(b"x"), Err(Errno::PIPE));
        b.write(b"still").expect("writes");
        assert_eq!(a.read(&mut [0; 8]), Ok(5));
        let (ours, theirs) = (region(&a, 8, Access::Local), region(&b, 8, Access::Local));
        a.post_recv(&[ours.whole().expect("whole")], 1)
            .expect("posts");
        b.post_send(&[theirs.whole().expect("whole")], 2)
            .expect("posts");
        assert_eq!(wait(&a, 1).result, Ok(8));
        assert_eq!(
            b.post_recv(&[theirs.whole().expect("whole")], 3),
            Err(Errno::SHUTDOWN)
        );
        assert_eq!(
            a.post_send(&[ours.whole().expect("whole")], 3),
            Err(Errno::PIPE)
        );
    }
}

#[test]
fn rdma_to_memory_that_has_gone_ends_the_connection_and_names_the_culprit() {
    for over in ALL {
        let (a, b) = over.pair();
        let theirs = region(&b, 4096, Access::ReadWrite);
        b.advertise(&theirs, 1).expect("tells");
        let remote = a.remote(1, soon()).expect("told");
        let ours = region(&a, 4096, Access::Local);
        fill(&ours, &[1; 4096]);
        drop(theirs);
        a.post_read(&[ours.whole().expect("whole")], &remote, 0, 1)
            .expect("posts");
        assert_eq!(wait(&a, 1).result, Err(Errno::ACCESS), "{over:?}");
        assert_eq!(a.read(&mut [0; 1]), Err(Errno::CONNRESET));
        assert_eq!(a.read(&mut [0; 1]), Ok(0));
        let end = b.read(&mut [0; 1]);
        assert_eq!(end, Err(Errno::CONNRESET), "{over:?}");
    }
}

/// The one that has asked for what it may not have, its connection gone, and three bytes there.
fn reset(over: Over) -> (Socket, Socket) {
    let (a, b) = over.pair();
    let theirs = region(&b, 64, Access::ReadWrite);
    b.advertise(&theirs, 1).expect("tells");
    let remote = a.remote(1, soon()).expect("told");
    let ours = region(&a, 64, Access::Local);
    b.write(b"abc").expect("writes");
    drop(theirs);
    a.post_read(&[ours.whole().expect("whole")], &remote, 0, 1)
        .expect("posts");
    assert_eq!(wait(&a, 1).result, Err(Errno::ACCESS), "{over:?}");
    (a, b)
}

#[test]
fn whoever_sends_first_is_told_of_the_reset() {
    for over in ALL {
        let (a, _b) = reset(over);
        assert_eq!(a.write(b"x"), Err(Errno::CONNRESET), "{over:?}");
        assert_eq!(a.write(b"x"), Err(Errno::PIPE), "{over:?}");
        assert_eq!(a.read(&mut [0; 8]), Ok(3));
        assert_eq!(a.read(&mut [0; 8]), Ok(0));
    }
}

#[test]
fn who_waited_for_more_than_came_is_told_of_the_reset_by_the_next_call() {
    for over in ALL {
        let (a, _b) = reset(over);
        let mut room = [0; 8];
        let into = &mut [IoSliceMut::new(&mut room)];
        assert_eq!(a.receive(into, Wait::Ever, false, true), Ok(3), "{over:?}");
        assert_eq!(a.read(&mut [0; 8]), Err(Errno::CONNRESET), "{over:?}");
        assert_eq!(a.read(&mut [0; 8]), Ok(0));
    }
}

#[test]
fn the_end_wakes_who_waits_for_a_completion() {
    for over in ALL {
        let (a, b) = over.pair();
        thread::scope(|scope| {
            let waits = [(); 2].map(|()| scope.spawn(|| a.wait(None)));
            drop(b);
            for wait in waits {
                let ended = wait.join().expect("no panic");
                assert_eq!(ended, Err(Errno::SHUTDOWN), "{over:?}");
            }
        });
        let (a, _b) = over.pair();
        thread::scope(|scope| {
            let wait = scope.spawn(|| a.wait(None));
            a.close(soon());
            let ended = wait.join().expect("no panic");
            assert_eq!(ended, Err(Errno::CANCELED), "{over:?}");
        });
    }
}
