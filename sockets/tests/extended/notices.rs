//! Completions through a descriptor, callbacks, watermarks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sockets::extended::{COMPLETION, END, READABLE, Socket, WRITABLE};
use via::Access;

use crate::kit::{ALL, region, wait};

fn next(events: &Receiver<u32>, bit: u32) {
    loop {
        let got = events
            .recv_timeout(Duration::from_secs(20))
            .expect("called back");
        if got & bit != 0 {
            return;
        }
    }
}

fn told(socket: &Socket) -> Receiver<u32> {
    let (tell, events) = channel();
    socket
        .on_events(move |bits| {
            let _heard = tell.send(bits);
        })
        .expect("a thread");
    events
}

#[test]
fn a_descriptor_shows_completions() {
    for over in ALL {
        let (a, b) = over.pair();
        let to = region(&b, 8, Access::Local);
        let sign = b.completion_fd().expect("a descriptor");
        let shows = |seconds| {
            let mut entry = [PollFd::new(&sign, PollFlags::IN)];
            let timeout = Timespec {
                tv_sec: seconds,
                tv_nsec: 0,
            };
            poll(&mut entry, Some(&timeout)).expect("polls") > 0
        };
        assert!(!shows(0));
        for id in 0..10 {
            b.post_recv(&[to.whole().expect("whole")], id)
                .expect("posts");
            let from = region(&a, 8, Access::Local);
            a.post_send(&[from.whole().expect("whole")], id)
                .expect("posts");
            assert!(shows(20), "{over:?}");
            assert_eq!(wait(&b, id).result, Ok(8));
            assert!(!shows(0));
            wait(&a, id);
        }
    }
}

#[test]
fn a_callback_hears_of_bytes_completions_and_the_end() {
    for over in ALL {
        let (a, b) = over.pair();
        let events = told(&b);
        next(&events, WRITABLE);
        a.write(b"x").expect("writes");
        next(&events, READABLE);
        assert_eq!(b.read(&mut [0; 8]), Ok(1));
        let (from, to) = (region(&a, 8, Access::Local), region(&b, 8, Access::Local));
        for id in 0..3 {
            b.post_recv(&[to.whole().expect("whole")], id)
                .expect("posts");
            a.post_send(&[from.whole().expect("whole")], id)
                .expect("posts");
            next(&events, COMPLETION);
        }
        drop(a);
        next(&events, END);
        b.off_events();
        assert!(
            events.recv_timeout(Duration::from_secs(20)).is_err(),
            "its thread has gone"
        );
    }
}

#[test]
fn watermarks_hold_a_callback_back() {
    for over in ALL {
        let (a, b) = over.pair();
        b.set_watermarks(1000, 1).expect("sets");
        let events = told(&b);
        next(&events, WRITABLE);
        for _ in 0..9 {
            a.write(&[1; 100]).expect("writes");
        }
        // Answered after the bytes have come: they are there, and are not enough.
        let to = region(&b, 8, Access::Local);
        b.post_recv(&[to.whole().expect("whole")], 1)
            .expect("posts");
        let from = region(&a, 8, Access::Local);
        a.post_send(&[from.whole().expect("whole")], 1)
            .expect("posts");
        let got = events
            .recv_timeout(Duration::from_secs(20))
            .expect("called back");
        assert_eq!(got, COMPLETION);
        assert_eq!(b.readable_bytes(), Ok(900));
        a.write(&[1; 100]).expect("writes");
        let got = events
            .recv_timeout(Duration::from_secs(20))
            .expect("called back");
        assert_eq!(got, READABLE);
        assert_eq!(b.readable_bytes(), Ok(1000));
    }
}

/// As many of them as the peer can send, where that is less, and as much room as it grants.
#[test]
fn watermarks_are_reached() {
    for over in ALL {
        let (a, b) = over.pair();
        b.set_watermarks(1000, 1).expect("sets");
        let events = told(&b);
        for _ in 0..20 {
            a.write(&[1; 50]).expect("writes");
        }
        next(&events, READABLE);
        assert_eq!(b.readable_bytes(), Ok(1000));

        let (a, b) = over.pair();
        b.set_watermarks(usize::MAX, 1).expect("sets");
        let events = told(&b);
        // More than half a frame each, so that no two fit together.
        for _ in 0..16 {
            a.write(&[1; 9000]).expect("writes");
        }
        next(&events, READABLE);
        assert_eq!(b.readable_bytes(), Ok(16 * 9000));

        let (a, b) = over.pair();
        a.set_watermarks(1, usize::MAX).expect("sets");
        // Seven of sixteen are read, which the peer does not tell of.
        for _ in 0..7 {
            a.write(&[1; 10]).expect("writes");
        }
        let mut got = 0;
        while got < 70 {
            got += b.read(&mut [0; 100]).expect("reads");
        }
        next(&told(&a), WRITABLE);
    }
}

#[test]
fn a_callback_may_use_the_socket() {
    for over in ALL {
        let (a, b) = over.pair();
        let b = Arc::new(b);
        let (tell, done) = channel();
        let in_it = Arc::downgrade(&b);
        b.on_events(move |bits| {
            if bits & READABLE != 0
                && let Some(socket) = in_it.upgrade()
            {
                let mut bytes = [0; 8];
                let n = socket.read(&mut bytes).expect("reads");
                socket.write(&bytes[..n]).expect("writes");
                socket.off_events();
                let _heard = tell.send(());
            }
        })
        .expect("a thread");
        a.write(b"echo").expect("writes");
        let mut bytes = [0; 8];
        assert_eq!(a.read(&mut bytes), Ok(4));
        done.recv_timeout(Duration::from_secs(20))
            .expect("called back");
    }
}

/// Long enough that whoever does not wait is seen not to. Beside busy processes each yield is a slice of theirs.
fn work_on() {
    let end = Instant::now() + Duration::from_millis(20);
    for _ in (0..10_000).take_while(|_| Instant::now() < end) {
        thread::yield_now();
    }
}

#[test]
fn a_callback_that_has_ended_itself_is_waited_for() {
    for over in ALL {
        let (_a, b) = over.pair();
        let b = Arc::new(b);
        let (tell, within) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let (socket, ended) = (Arc::downgrade(&b), Arc::clone(&is_over));
        b.on_events(move |_| {
            if let Some(socket) = socket.upgrade() {
                socket.off_events();
            }
            tell.send(()).expect("heard");
            work_on();
            ended.store(true, Ordering::SeqCst);
        })
        .expect("a thread");
        within
            .recv_timeout(Duration::from_secs(20))
            .expect("called back");
        b.off_events();
        assert!(is_over.load(Ordering::SeqCst), "{over:?}");
    }
}

#[test]
fn a_callback_that_sets_another_is_over_before_that_runs() {
    for over in ALL {
        let (_a, b) = over.pair();
        let b = Arc::new(b);
        let (tell, within) = channel();
        let runs = Arc::new(AtomicBool::new(false));
        let socket = Arc::downgrade(&b);
        b.on_events(move |_| {
            runs.store(true, Ordering::SeqCst);
            let (tell, first) = (tell.clone(), Arc::clone(&runs));
            if let Some(socket) = socket.upgrade() {
                let second = move |_| {
                    let _heard = tell.send(first.load(Ordering::SeqCst));
                };
                socket.on_events(second).expect("a thread");
            }
            work_on();
            runs.store(false, Ordering::SeqCst);
        })
        .expect("a thread");
        let together = within
            .recv_timeout(Duration::from_secs(20))
            .expect("called back");
        assert!(!together, "{over:?}");
        b.off_events();
    }
}
