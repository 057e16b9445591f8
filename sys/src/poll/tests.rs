use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

use super::*;
use crate::net::Conn;

const AT_ONCE: Option<Duration> = Some(Duration::ZERO);

fn wait(poller: &Poller, timeout: Option<Duration>) -> (Vec<Event>, bool) {
    let mut events = Vec::new();
    let woken = poller.wait(&mut events, timeout).expect("wait");
    (events, woken)
}

fn tokens(poller: &Poller) -> Vec<u64> {
    let mut tokens: Vec<_> = wait(poller, AT_ONCE)
        .0
        .iter()
        .map(|event| event.token)
        .collect();
    tokens.sort_unstable();
    tokens
}

#[test]
fn reports_the_members_that_are_ready() {
    let poller = Poller::new().expect("poller");
    let (a, a_far) = Conn::pair().expect("pair");
    let (b, b_far) = Conn::pair().expect("pair");
    poller.add(&a, 1, Interest::Read).expect("add");
    poller.add(&b, 2, Interest::Read).expect("add");
    assert_eq!(wait(&poller, AT_ONCE), (vec![], false));

    a_far.knock();
    let readable = Event {
        token: 1,
        readable: true,
        writable: false,
        hangup: false,
    };
    assert_eq!(wait(&poller, None), (vec![readable], false));
    assert_eq!(tokens(&poller), [1], "level-triggered");

    b_far.knock();
    assert_eq!(tokens(&poller), [1, 2]);
    a.drain(&mut [0; 2]).expect("drain");
    assert_eq!(tokens(&poller), [2]);
}

#[test]
fn room_alone_says_nothing_of_the_other_sides_end() {
    let poller = Poller::new().expect("poller");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let far = TcpStream::connect(listener.local_addr().expect("bound")).expect("listens");
    let (near, _) = listener.accept().expect("the other end");
    poller.add(&near, 1, Interest::Hangup).expect("add");
    far.shutdown(Shutdown::Write).expect("connected");
    assert!(wait(&poller, None).0[0].hangup);
    poller.modify(&near, 1, Interest::Room).expect("modify");
    let (events, _) = wait(&poller, None);
    assert!(events[0].writable && !events[0].hangup && !events[0].readable);
}

#[test]
fn membership_follows_add_modify_and_remove() {
    let poller = Poller::new().expect("poller");
    let (near, far) = Conn::pair().expect("pair");
    assert_eq!(
        poller.remove(&near).expect_err("no member").kind(),
        io::ErrorKind::NotFound
    );
    poller.add(&near, 1, Interest::Hangup).expect("add");
    assert_eq!(
        poller
            .add(&near, 2, Interest::Read)
            .expect_err("member")
            .kind(),
        io::ErrorKind::AlreadyExists
    );
    for refused in [
        poller.add(&far, u64::MAX, Interest::Read),
        poller.modify(&near, u64::MAX, Interest::Read),
    ] {
        assert_eq!(
            refused.expect_err("reserved").kind(),
            io::ErrorKind::InvalidInput
        );
    }

    far.knock();
    assert_eq!(tokens(&poller), []);
    poller
        .modify(&near, 7, Interest::ReadWrite)
        .expect("modify");
    let both = Event {
        token: 7,
        readable: true,
        writable: true,
        hangup: false,
    };
    assert_eq!(wait(&poller, None).0, [both]);
    poller.modify(&near, 8, Interest::Write).expect("modify");
    assert_eq!(tokens(&poller), [8]);
    poller.remove(&near).expect("remove");
    assert_eq!(tokens(&poller), []);
}

#[test]
fn a_closed_peer_is_a_hangup_whatever_the_interest() {
    for interest in [
        Interest::Hangup,
        Interest::Read,
        Interest::ReadWrite,
        Interest::Write,
    ] {
        let poller = Poller::new().expect("poller");
        let (near, far) = Conn::pair().expect("pair");
        poller.add(&near, 5, interest).expect("add");
        drop(far);
        let (events, _) = wait(&poller, None);
        assert!(
            events.len() == 1 && events[0].hangup,
            "{interest:?}: {events:?}"
        );
    }
}

#[test]
fn a_wake_up_ends_a_wait_once() {
    let poller = Poller::new().expect("poller");
    poller.wake();
    poller.wake();
    assert_eq!(wait(&poller, None), (vec![], true));
    assert_eq!(wait(&poller, AT_ONCE), (vec![], false));

    thread::scope(|scope| {
        let sleeper = scope.spawn(|| wait(&poller, None));
        poller.wake();
        assert_eq!(sleeper.join().expect("thread"), (vec![], true));
    });
}

#[test]
fn a_wake_up_is_told_beside_events() {
    let poller = Poller::new().expect("poller");
    let (near, far) = Conn::pair().expect("pair");
    poller.add(&near, 3, Interest::Read).expect("add");
    far.knock();
    poller.wake();
    let (events, woken) = wait(&poller, None);
    assert!(woken && events.len() == 1, "{events:?}");
}

#[test]
fn a_timeout_passes_entirely() {
    let poller = Poller::new().expect("poller");
    let timeout = Duration::from_micros(1500);
    let start = time::now();
    assert_eq!(wait(&poller, Some(timeout)), (vec![], false));
    assert!(start.elapsed() >= timeout);
}

#[test]
fn a_set_nests_in_another() {
    let inner = Poller::new().expect("poller");
    let outer = Poller::new().expect("poller");
    let (near, far) = Conn::pair().expect("pair");
    inner.add(&near, 1, Interest::Read).expect("add");
    outer.add(&inner, 2, Interest::Read).expect("add");
    assert_eq!(tokens(&outer), []);

    far.knock();
    assert_eq!(tokens(&outer), [2]);
    near.drain(&mut [0; 2]).expect("drain");
    assert_eq!(tokens(&outer), []);

    inner.wake();
    assert_eq!(tokens(&outer), [2]);
    assert!(wait(&inner, None).1);
    assert_eq!(tokens(&outer), []);
}

#[test]
fn more_ready_members_than_fit_take_turns() {
    let poller = Poller::new().expect("poller");
    let members = EVENTS_MAX + 8;
    let pairs: Vec<_> = (0..members).map(|_| Conn::pair().expect("pair")).collect();
    for (token, (near, far)) in (0..).zip(&pairs) {
        poller.add(near, token, Interest::Read).expect("add");
        far.knock();
    }
    let mut seen = vec![false; members];
    for _ in 0..2 {
        let (events, _) = wait(&poller, None);
        assert_eq!(events.len(), EVENTS_MAX);
        for event in events {
            seen[event.token as usize] = true;
        }
    }
    assert!(seen.iter().all(|&seen| seen));
}

#[test]
fn a_plain_poll_says_which() {
    let (a, a_far) = Conn::pair().expect("pair");
    let (b, b_far) = Conn::pair().expect("pair");
    let soon = time::deadline(Some(1));
    assert_eq!(
        wait_readable([a.as_fd(), b.as_fd()], soon).expect("poll"),
        [false, false]
    );
    b_far.knock();
    assert_eq!(
        wait_readable([a.as_fd(), b.as_fd()], None).expect("poll"),
        [false, true]
    );
    drop(a_far);
    assert_eq!(
        wait_readable([a.as_fd(), b.as_fd()], None).expect("poll"),
        [true, true]
    );
}
