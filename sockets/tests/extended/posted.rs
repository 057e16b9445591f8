//! Posted sends and receives, RDMA, and what is wrong with them.

use std::thread;

use sockets::extended::{OUTSTANDING_MAX, Op, SLICES_MAX};
use sys::errno::Errno;
use via::Access;

use crate::kit::{ALL, Over, fill, held, pattern, region, soon, wait};

#[test]
fn messages_of_all_sizes_into_memory_that_the_peer_may_write_and_that_it_may_not() {
    for over in ALL {
        let (a, b) = over.pair();
        for access in [Access::Local, Access::Write] {
            let from = region(&a, LONG, Access::Local);
            let to = region(&b, LONG, access);
            for (seed, len) in [0, 1, 16, 4096, 4097, 16_368, 16_369, 100_000, LONG]
                .into_iter()
                .enumerate()
            {
                let sent = pattern(len, seed);
                fill(&from, &sent);
                b.post_recv(&[to.whole().expect("whole")], 7)
                    .expect("posts");
                a.post_send(&[from.slice(0..len).expect("within")], 8)
                    .expect("posts");
                let (sent_as, got) = thread::scope(|scope| {
                    let sending = scope.spawn(|| wait(&a, 8));
                    let got = wait(&b, 7);
                    (sending.join().expect("no panic"), got)
                });
                assert_eq!((sent_as.op, sent_as.result), (Op::Send, Ok(len as u32)));
                assert_eq!(
                    (got.op, got.result),
                    (Op::Recv, Ok(len as u32)),
                    "{over:?} {access:?}"
                );
                assert!(held(&to, len) == sent, "{over:?} {access:?} {len}");
            }
        }
    }
}

#[test]
fn a_send_waits_for_its_receive_and_goes_on_by_itself() {
    for over in ALL {
        let (a, b) = over.pair();
        let (from, to) = (
            region(&a, LONG, Access::Local),
            region(&b, LONG, Access::Write),
        );
        fill(&from, &pattern(LONG, 1));
        a.post_send(&[from.whole().expect("whole")], 1)
            .expect("posts");
        assert_eq!(a.completion(), Ok(None));
        // From here on the sender's program does nothing.
        b.post_recv(&[to.whole().expect("whole")], 2)
            .expect("posts");
        assert_eq!(wait(&b, 2).result, Ok(LONG as u32));
        assert_eq!(wait(&a, 1).result, Ok(LONG as u32));
        assert!(held(&to, LONG) == pattern(LONG, 1));
    }
}

/// The peer is told of many receives at once, and no later than it needs them, though their owner has posted them and gone.
#[test]
fn all_receives_that_were_posted_can_be_used_though_nobody_calls() {
    for over in ALL {
        for (access, len) in [(Access::Local, 8), (Access::Write, 8192)] {
            for count in [1, 2, 3, 7, 100, 1000] {
                let (a, b) = over.pair();
                let (from, to) = (region(&a, len, Access::Local), region(&b, len, access));
                fill(&from, &pattern(len, count));
                for id in 0..count as u64 {
                    b.post_recv(&[to.whole().expect("whole")], id)
                        .expect("posts");
                }
                // From here on the receiver's program does nothing.
                for id in 0..count as u64 {
                    a.post_send(&[from.whole().expect("whole")], id)
                        .expect("posts");
                }
                for id in 0..count as u64 {
                    assert_eq!(wait(&a, id).result, Ok(len as u32), "{over:?} {count}");
                }
                for id in 0..count as u64 {
                    assert_eq!(wait(&b, id).result, Ok(len as u32));
                }
                assert!(held(&to, len) == pattern(len, count));
            }
        }
    }
}

/// Receives, sends, bytes and RDMA of both ends at once, in memory that the peer may write and in memory that it may not.
#[test]
fn a_stream_of_messages_each_way_beside_bytes() {
    const COUNT: usize = 300;
    const LENS: [usize; 5] = [65_536, 65_536, 4, 5000, 40_000];
    for over in ALL {
        let (a, b) = over.pair();
        let both = |socket: &sockets::extended::Socket, access, seed: usize| {
            let from = region(socket, 65_536 + COUNT, Access::Local);
            fill(&from, &pattern(65_536 + COUNT, seed));
            let slots: Vec<_> = (0..8).map(|_| region(socket, 65_536, access)).collect();
            for (id, slot) in slots.iter().enumerate() {
                let whole = slot.whole().expect("whole");
                socket.post_recv(&[whole], id as u64).expect("posts");
            }
            let (mut sent, mut told, mut got) = (0, 0, 0);
            while told < COUNT || got < COUNT {
                while sent < COUNT && sent < told + 4 {
                    let len = LENS[sent % LENS.len()];
                    let message = from.slice(sent..sent + len).expect("within");
                    socket.post_send(&[message], u64::MAX).expect("posts");
                    sent += 1;
                }
                let completion = socket.wait(soon()).expect("a completion");
                let bytes = completion.result.expect("ends well") as usize;
                if completion.id == u64::MAX {
                    told += 1;
                    continue;
                }
                let slot = &slots[completion.id as usize];
                assert_eq!(bytes, LENS[got % LENS.len()], "{over:?} {got}");
                // The other end's seed is the other one.
                let all = pattern(65_536 + COUNT, 3 - seed);
                assert!(held(slot, bytes) == all[got..got + bytes], "{over:?} {got}");
                got += 1;
                if got + 8 <= COUNT {
                    let whole = slot.whole().expect("whole");
                    socket.post_recv(&[whole], completion.id).expect("posts");
                }
            }
        };
        let bytes = pattern(500_000, 9);
        thread::scope(|scope| {
            scope.spawn(|| both(&a, Access::Write, 1));
            scope.spawn(|| both(&b, Access::Local, 2));
            scope.spawn(|| a.write(&bytes).expect("writes"));
            let (mut read, mut at) = (vec![0; 500_000], 0);
            while at < read.len() {
                at += b.read(&mut read[at..]).expect("reads");
            }
            assert!(read == bytes, "{over:?}");
        });
    }
}

#[test]
fn slices_are_gathered_and_scattered() {
    for over in ALL {
        let (a, b) = over.pair();
        for access in [Access::Local, Access::ReadWrite] {
            let (from, to) = (
                region(&a, 100_000, Access::Local),
                region(&b, 100_000, access),
            );
            fill(&from, &pattern(100_000, 5));
            let pieces = |region: &sockets::extended::Region, cuts: &[(usize, usize)]| {
                cuts.iter()
                    .map(|&(start, end)| region.slice(start..end).expect("within"))
                    .collect::<Vec<_>>()
            };
            b.post_recv(
                &pieces(&to, &[(50_000, 50_010), (0, 30_000), (60_000, 80_000)]),
                1,
            )
            .expect("posts");
            a.post_send(&pieces(&from, &[(90_000, 100_000), (7, 7), (0, 15_000)]), 2)
                .expect("posts");
            assert_eq!(wait(&b, 1).result, Ok(25_000));
            assert_eq!(wait(&a, 2).result, Ok(25_000));
            let (sent, got) = (held(&from, 100_000), held(&to, 100_000));
            let message = [&sent[90_000..], &sent[..15_000]].concat();
            assert!([&got[50_000..50_010], &got[..24_990]].concat() == message);
            assert!(got[24_990..50_000].iter().all(|&byte| byte == 0));
        }
    }
}

/// A message that takes more than one transfer left its place to be guessed about for ever: what followed a later write there was put behind it.
#[test]
fn writes_where_a_long_message_came_touch_nothing_else() {
    let (a, b) = Over::Iwarp.pair();
    let (message, write, apart) = (17 << 20, 700_000, 20 << 20);
    let to = region(&b, apart + write, Access::Write);
    let from = region(&a, message, Access::Local);
    b.advertise(&to, 7).expect("tells");
    let remote = a.remote(7, soon()).expect("told");
    let whole = to.slice(0..message).expect("within");
    b.post_recv(&[whole], 1).expect("posts");
    a.post_send(&[from.whole().expect("whole")], 2)
        .expect("posts");
    thread::scope(|scope| {
        let sending = scope.spawn(|| wait(&a, 2));
        assert_eq!(wait(&b, 1).result, Ok(message as u32));
        sending.join().expect("no panic");
    });
    let untouched = vec![0xaa; message - write];
    let two = from.slice(0..write).expect("within");
    for _ in 0..8 {
        to.memory().write(write, &untouched).expect("in range");
        // Its engine looks at what comes from now on, not after each write.
        thread::scope(|scope| {
            let looking = scope.spawn(|| b.read(&mut [0; 1]));
            for (at, id) in [(0, 3), (apart as u64, 4)] {
                a.post_write(std::slice::from_ref(&two), &remote, at, id)
                    .expect("posts");
            }
            a.write(b"!").expect("writes");
            assert_eq!(looking.join().expect("no panic"), Ok(1));
        });
        assert_eq!((wait(&a, 3).id, wait(&a, 4).id), (3, 4));
        assert!(held(&to, message)[write..] == untouched[..]);
    }
}

#[test]
fn rdma_writes_and_reads_what_the_peer_told_of() {
    for over in ALL {
        let (a, b) = over.pair();
        let target = region(&b, LONG, Access::ReadWrite);
        b.advertise(&target, 0xfeed).expect("tells");
        let remote = a.remote(0xfeed, soon()).expect("told");
        assert_eq!(
            (remote.len(), remote.is_readable(), remote.is_writable()),
            (LONG as u64, true, true)
        );
        let (from, back) = (
            region(&a, LONG, Access::Local),
            region(&a, LONG, Access::Local),
        );
        let sent = pattern(LONG, 9);
        fill(&from, &sent);
        let halves = [
            from.slice(0..1000).expect("within"),
            from.slice(1000..LONG).expect("within"),
        ];
        a.post_write(&halves, &remote, 0, 1).expect("posts");
        a.post_read(&[back.slice(10..LONG).expect("within")], &remote, 10, 2)
            .expect("posts");
        assert_eq!(
            (wait(&a, 1).result, wait(&a, 2).result),
            (Ok(LONG as u32), Ok(LONG as u32 - 10))
        );
        assert!(held(&target, LONG) == sent && held(&back, LONG)[10..] == sent[10..]);
        // What is said afterwards comes afterwards.
        fill(&from, b"new");
        a.post_write(&[from.slice(0..3).expect("within")], &remote, 0, 3)
            .expect("posts");
        a.write(b"!").expect("writes");
        assert_eq!(b.read(&mut [0; 8]), Ok(1));
        assert_eq!(held(&target, 3), b"new");
    }
}

#[test]
fn who_waits_for_a_region_is_woken_by_the_telling() {
    for over in ALL {
        let (a, b) = over.pair();
        let (one, two) = (region(&b, 1, Access::Read), region(&b, 2, Access::Read));
        thread::scope(|scope| {
            for tag in [1, 2] {
                let a = &a;
                // Without limit: nothing else would wake it.
                scope.spawn(move || assert_eq!(a.remote(tag, None).expect("told").len(), tag));
            }
            // tidy: sleep because both are to be asleep by now; whether they are changes nothing but what is tested.
            thread::sleep(std::time::Duration::from_millis(20));
            b.advertise(&two, 2).expect("tells");
            b.advertise(&one, 1).expect("tells");
        });
    }
}

#[test]
fn so_many_regions_are_told_of_and_no_more() {
    for over in ALL {
        let (a, b) = over.pair();
        let one = region(&b, 8, Access::Read);
        // The same again is the same.
        for _ in 0..2000 {
            b.advertise(&one, 1).expect("tells");
        }
        for tag in 2..=1024 {
            b.advertise(&one, tag).expect("tells");
        }
        assert_eq!(b.advertise(&one, 1025), Err(Errno::NOBUFS), "{over:?}");
        a.remote(1024, soon()).expect("told");
        b.withdraw(&one).expect("tells");
        b.advertise(&one, 1025).expect("tells");
        a.remote(1025, soon()).expect("told");
    }
}

#[test]
fn wrong_arguments_change_nothing() {
    for over in ALL {
        let (a, b) = over.pair();
        let (c, _d) = Over::Shm.pair();
        let target = region(&b, 100, Access::Read);
        b.advertise(&target, 1).expect("tells");
        let remote = a.remote(1, soon()).expect("told");
        let (ours, alien) = (
            region(&a, 100, Access::Local),
            region(&c, 100, Access::Local),
        );
        let whole = |region: &sockets::extended::Region| region.whole().expect("whole");
        assert_eq!(ours.slice(0..101).err(), Some(Errno::FAULT));
        #[expect(clippy::reversed_empty_ranges, reason = "that is the point")]
        let backwards = ours.slice(5..4);
        assert_eq!(backwards.err(), Some(Errno::FAULT));
        let many = vec![ours.slice(0..1).expect("within"); SLICES_MAX + 1];
        assert_eq!(a.post_send(&many, 0), Err(Errno::INVAL));
        assert_eq!(a.post_send(&[whole(&alien)], 0), Err(Errno::INVAL));
        assert_eq!(a.post_recv(&[whole(&alien)], 0), Err(Errno::INVAL));
        assert_eq!(
            a.post_write(&[whole(&ours)], &remote, 0, 0),
            Err(Errno::ACCESS)
        );
        assert_eq!(
            a.post_read(&[whole(&ours)], &remote, 1, 0),
            Err(Errno::FAULT)
        );
        assert_eq!(
            a.post_read(&[whole(&ours)], &remote, u64::MAX, 0),
            Err(Errno::FAULT)
        );
        assert_eq!(a.post_read(&[], &remote, 0, 0), Err(Errno::INVAL));
        assert_eq!(
            c.post_read(&[whole(&alien)], &remote, 0, 0),
            Err(Errno::INVAL)
        );
        assert_eq!(a.advertise(&ours, 1), Err(Errno::ACCESS));
        assert_eq!(a.advertise(&alien, 1), Err(Errno::INVAL));
        assert_eq!(a.set_watermarks(0, 1), Err(Errno::INVAL));
        b.withdraw(&target).expect("says");
        b.write(b"w").expect("writes");
        assert_eq!(a.read(&mut [0; 4]), Ok(1));
        assert_eq!(
            a.post_read(&[whole(&ours)], &remote, 0, 0),
            Err(Errno::STALE)
        );
        assert_eq!(a.completion(), Ok(None));
        a.write(b"still there").expect("writes");
        assert_eq!(b.read(&mut [0; 32]), Ok(11));
    }
}

/// Peers number their regions alike, and programs tag them alike.
#[test]
fn a_region_of_one_peer_is_not_taken_for_one_of_another() {
    for over in ALL {
        let ((a, b), (c, d)) = (over.pair(), over.pair());
        let (ours, theirs) = (region(&b, 64, Access::Write), region(&d, 64, Access::Write));
        b.advertise(&ours, 1).expect("tells");
        d.advertise(&theirs, 1).expect("tells");
        let (one, other) = (a.remote(1, soon()), c.remote(1, soon()));
        let (one, other) = (one.expect("told"), other.expect("told"));
        assert_ne!(one.id(), other.id());
        assert_eq!(a.remote_by_id(one.id()), Ok(one));
        assert_eq!(c.remote_by_id(one.id()), Err(Errno::STALE), "{over:?}");
        assert_eq!(a.remote_by_id(other.id()), Err(Errno::STALE));
        // Told again it is the same; told anew it is not.
        b.advertise(&ours, 1).expect("tells");
        b.advertise(&ours, 2).expect("tells");
        let again = a.remote(2, soon()).expect("told");
        assert_ne!(again.id(), one.id());
        assert_eq!(a.remote(1, soon()), Ok(one));
        b.withdraw(&ours).expect("tells");
        b.advertise(&ours, 3).expect("tells");
        a.remote(3, soon()).expect("told");
        assert_eq!(a.remote_by_id(one.id()), Err(Errno::STALE));
    }
}

#[test]
fn a_message_that_is_too_long_fails_alone() {
    for over in ALL {
        let (a, b) = over.pair();
        let (from, to) = (
            region(&a, 100, Access::Local),
            region(&b, 100, Access::Write),
        );
        b.post_recv(&[to.slice(0..10).expect("within")], 1)
            .expect("posts");
        a.post_send(&[from.slice(0..11).expect("within")], 2)
            .expect("posts");
        assert_eq!(wait(&a, 2).result, Err(Errno::MSGSIZE));
        a.post_send(&[from.slice(0..10).expect("within")], 3)
            .expect("posts");
        assert_eq!((wait(&a, 3).result, wait(&b, 1).result), (Ok(10), Ok(10)));
    }
}

#[test]
fn so_many_operations_and_no_more() {
    let (a, b) = Over::Shm.pair();
    let ours = region(&a, 8, Access::Local);
    let slice = [ours.whole().expect("whole")];
    for id in 0..OUTSTANDING_MAX as u64 {
        a.post_recv(&slice, id).expect("posts");
    }
    assert_eq!(a.post_recv(&slice, 0), Err(Errno::AGAIN));
    assert_eq!(a.post_send(&slice, 0), Err(Errno::AGAIN));
    let theirs = region(&b, 8, Access::Local);
    b.post_send(&[theirs.whole().expect("whole")], 1)
        .expect("posts");
    assert_eq!(wait(&a, 0).result, Ok(8));
    a.post_recv(&slice, 0).expect("there is room again");
}

#[test]
fn a_region_lives_as_long_as_what_was_posted_on_it() {
    for over in ALL {
        let (a, b) = over.pair();
        let to = region(&b, LONG, Access::Write);
        let memory = std::sync::Arc::clone(to.memory());
        b.post_recv(&[to.whole().expect("whole")], 1)
            .expect("posts");
        drop(to);
        let from = region(&a, LONG, Access::Local);
        fill(&from, &pattern(LONG, 4));
        a.post_send(&[from.whole().expect("whole")], 2)
            .expect("posts");
        drop(from);
        assert_eq!(
            (wait(&b, 1).result, wait(&a, 2).result),
            (Ok(LONG as u32), Ok(LONG as u32))
        );
        let mut got = vec![0; LONG];
        memory.read(0, &mut got).expect("in range");
        assert!(got == pattern(LONG, 4));
    }
}

const LONG: usize = 1_500_007;
