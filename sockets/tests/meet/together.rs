//! Both ends are honest.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Barrier;
use std::thread;

use proptest::prelude::*;
use rustix::net::{AddressFamily, SocketType};
use sys::stream::{READY, Side};

use super::*;

#[test]
fn the_ends_meet_and_have_one_stream() {
    let _alone = alone();
    let families = [
        ("127.0.0.1:0", "127.0.0.1"),
        ("[::1]:0", "::1"),
        // Mapped at the acceptor only, and at both.
        ("[::]:0", "127.0.0.1"),
        ("[::]:0", "::ffff:127.0.0.1"),
    ];
    for (listen, connect) in families {
        for first in 0..2 {
            let mut ends = Ends::over(listen, connect);
            ends.go(first, shm());
            ends.finish(shm());
            let streams = ends.streams().expect("both met");
            assert_eq!(streams.map(Stream::state), [READY; 2]);
            assert_eq!(streams[first].side(), Side::A);
            assert_eq!(streams[1 - first].side(), Side::B);
            streams[0].set_deaf();
            assert!(
                streams[1].peer_deaf() && !streams[0].peer_deaf(),
                "one memory"
            );
            assert_eq!(sys::hidden::count(), 2, "only the memory is held");
            ends.assert_untouched();
        }
    }
}

#[test]
fn ends_of_one_user_have_each_others_board() {
    let _alone = alone();
    for first in 0..2 {
        assert!(sys::board::make());
        let id = sys::board::lend(|id, _| id).expect("it was made");
        let mut ends = Ends::new();
        ends.go(first, shm());
        ends.finish(shm());
        let streams = ends.streams().expect("both met");
        assert!(streams.iter().all(|stream| stream.notes_on(id)));
        assert_eq!(sys::hidden::count(), 3, "two streams' memory and the board");
        ends.assert_untouched();
        sys::board::part_from_parent();
        assert_eq!(sys::board::lend(|id, _| id), None);
    }
}

#[test]
fn the_rings_are_the_lesser_of_what_both_would_have() {
    let _alone = alone();
    let all = [Size::LEAST, Size::DEFAULT, Size::MOST];
    for (one, other) in all
        .into_iter()
        .flat_map(|one| all.map(|other| (one, other)))
    {
        for first in 0..2 {
            let mut ends = Ends::new();
            ends.sizes = [one, other];
            ends.go(first, shm());
            ends.finish(shm());
            let streams = ends.streams().expect("both met");
            assert_eq!(streams.map(Stream::size), [one.min(other); 2]);
            ends.assert_untouched();
        }
    }
}

#[test]
fn nobody_comes() {
    let _alone = alone();
    let mut ends = Ends::new();
    for _ in 0..=STEPS_MAX {
        ends.go(0, shm());
        assert!(ends.outcomes[0].is_none());
    }
    ends.go(0, shm());
    assert_eq!(ends.reason(0), Some(Reason::NobodyCame));
    ends.assert_untouched();
}

#[test]
fn one_gives_up_whenever_it_likes() {
    let _alone = alone();
    for who in 0..2 {
        for when in 0..6 {
            let mut ends = Ends::new();
            for call in 0..when {
                ends.go(call % 2, shm());
            }
            let left = ends.meetings[who].take().and_then(Meeting::give_up);
            let already = matches!(ends.outcomes[who], Some(Outcome::Met(_)));
            ends.outcomes[who].get_or_insert(Outcome::Over(Reason::GaveUp));
            ends.finish(shm());
            let other_met = matches!(ends.outcomes[1 - who], Some(Outcome::Met(_)));
            assert_eq!(left.is_some() || already, other_met, "{who} after {when}");
            ends.assert_untouched();
        }
    }
}

#[test]
fn ends_that_are_not_connected_do_not_meet() {
    let _alone = alone();
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let begun = Meeting::begin(listener.as_fd(), shm(), Size::DEFAULT);
    assert_eq!(begun.expect_err("listens"), Reason::NotConnected);
    let (unix, _peer) = std::os::unix::net::UnixStream::pair().expect("pair");
    let begun = Meeting::begin(unix.as_fd(), shm(), Size::DEFAULT);
    assert_eq!(begun.expect_err("no TCP"), Reason::NotTcp);
}

#[test]
fn an_end_that_is_finished_does_not_meet() {
    let _alone = alone();
    for (calls, who) in (0..5).flat_map(|calls| [(calls, 0), (calls, 1)]) {
        let mut ends = Ends::new();
        for call in 0..calls {
            ends.go(call % 2, shm());
        }
        let met = ends.outcomes.iter().any(Option::is_some);
        ends.tcp[who]
            .shutdown(std::net::Shutdown::Write)
            .expect("shutdown");
        ends.finish(shm());
        if !met && ends.streams().is_some() {
            // Only the memory was still to be declared ready.
            assert!(calls >= 3, "{calls} {who}");
        }
    }
}

/// An opener whose connection was reset still waits at the name when its addresses are used again.
#[test]
fn an_end_of_an_earlier_connection_is_no_end_of_this_one() {
    let _alone = alone();
    // An address that nobody else uses, so that its ports are free when we have left them.
    let [high, low, ..] = std::process::id().to_le_bytes();
    let listener = TcpListener::bind((Ipv4Addr::new(127, 99, high, low), 0)).expect("bind");
    let to = listener.local_addr().expect("address");
    let from = SocketAddr::new(to.ip(), 0);
    let mut earlier = connect(from, &listener);
    earlier.go(0, shm());
    let from = earlier.tcp[0].local_addr().expect("address");
    let [old, reset] = earlier.tcp;
    sys::socket::reset_on_close(reset.as_fd());
    drop(reset);
    let mut stale = earlier.meetings[0].take().expect("it waits");

    let mut ends = connect(from, &listener);
    ends.go(0, shm());
    ends.go(1, shm());
    let Step::Over(reason) = stale.step(old.as_fd()) else {
        panic!("it heard of a connection that is not its own");
    };
    assert_eq!(reason, Reason::NotConnected);
    drop(stale);
    ends.finish(shm());
    assert!(ends.streams().is_some(), "{:?}", ends.outcomes);
    ends.assert_untouched();
}

fn connect(from: SocketAddr, listener: &TcpListener) -> Ends {
    let to = listener.local_addr().expect("address");
    let opener =
        rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("socket");
    rustix::net::bind(&opener, &from).expect("the port is free again");
    rustix::net::connect(&opener, &to).expect("connect");
    let (acceptor, _) = listener.accept().expect("accept");
    Ends::of(opener.into(), acceptor)
}

#[test]
fn two_threads_meet_at_any_moment() {
    let _alone = alone();
    for _ in 0..200 {
        let ends = Ends::new();
        let barrier = Barrier::new(2);
        let outcomes = thread::scope(|scope| {
            let threads = ends.tcp.each_ref().map(|tcp| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    let mut meeting =
                        Meeting::begin(tcp.as_fd(), shm(), Size::DEFAULT).expect("begin");
                    let outcome = loop {
                        match meeting.step(tcp.as_fd()) {
                            Step::Wait => thread::yield_now(),
                            Step::Met(stream) => break Ok(stream),
                            Step::Over(reason) => break Err(reason),
                        }
                    };
                    outcome.iter().for_each(Stream::set_deaf);
                    barrier.wait();
                    outcome.map(|stream| (stream.side(), stream.peer_deaf()))
                })
            });
            threads.map(|thread| thread.join().expect("no panic"))
        });
        match outcomes {
            [Ok((one, true)), Ok((other, true))] => assert_ne!(one, other),
            // A thread that did not run for the other's 256 steps came too late.
            [Err(_), Err(_)] => {}
            mixed => panic!("{mixed:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_interleaving_ends_the_same_at_both(calls in prop::collection::vec(0_usize..2, 0..40)) {
        let _alone = alone();
        let mut ends = Ends::new();
        for end in calls {
            ends.go(end, shm());
        }
        ends.finish(shm());
        prop_assert!(ends.streams().is_some(), "{:?}", ends.outcomes);
        ends.assert_untouched();
    }
}
