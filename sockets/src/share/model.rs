//! Processes that have one end, under loom. Each is a thread that has its own turns and its own flow over the same memory, as after a fork.

use std::io::IoSliceMut;

use loom::sync::Arc;
use loom::thread;
use sys::sync::{AtomicU32, Ordering};
use sys::turn::Turns;

use super::turn::{Around, Turn};
use crate::flow::model::{BELLS, End, Tcp, check, ends, on_ring, send};
use crate::flow::{Flow, RECEIVE, SEND, Take};
use crate::kernel::Kernel;

/// Each byte is sent once, by whomever, and no two write to one place.
#[test]
fn loom_two_processes_send_in_turns() {
    check(|| {
        let [a, b] = on_ring();
        let parent = Process::of(a);
        let child = parent.fork();
        let child = thread::spawn(move || child.send(1));
        parent.send(2);
        child.join().expect("no panic");
        let mut received = b.receive(2);
        received.sort_unstable();
        assert_eq!(received, [1, 2]);
    });
}

/// Who is alone again goes on where the other left, without turns among processes.
#[test]
fn loom_who_is_left_alone_goes_on_where_the_other_left() {
    check(|| {
        let [a, b] = on_ring();
        let parent = Process::of(a);
        let child = parent.fork();
        let child = thread::spawn(move || {
            child.send(1);
            child.close();
        });
        // The second finds the end unshared, if the first did that.
        parent.send(2);
        parent.send(3);
        child.join().expect("no panic");
        let received = b.receive(3);
        let of_parent: Vec<_> = received.iter().filter(|byte| **byte > 1).collect();
        assert_eq!((received.contains(&1), of_parent), (true, vec![&2, &3]));
    });
}

/// One that ends has left before its last byte.
#[test]
fn loom_who_ends_may_send_after_it_has_left() {
    check(|| {
        let [a, b] = on_ring();
        let parent = Process::of(a);
        let child = parent.fork();
        let has_ended = parent.around.has_ended.clone();
        let child = thread::spawn(move || {
            child.leave_at_exit();
            child.send(1);
            has_ended.store(1, Ordering::Release);
        });
        parent.send(2);
        parent.send(3);
        child.join().expect("no panic");
        let received = b.receive(3);
        let of_parent: Vec<_> = received.iter().filter(|byte| **byte > 1).collect();
        assert_eq!((received.contains(&1), of_parent), (true, vec![&2, &3]));
    });
}

/// What processes count between them counts each of them.
#[test]
fn loom_two_processes_receive_in_turns() {
    check(|| {
        let parent = receiver();
        let child = parent.fork();
        let child = thread::spawn(move || child.take());
        parent.take();
        child.join().expect("no panic");
        assert_eq!(parent.taken(), Some(2));
    });
}

/// And who is left alone goes on counting where the other left, though it found out while it was sending.
#[test]
fn loom_who_is_left_alone_goes_on_at_both_sides() {
    check(|| {
        let parent = receiver();
        let child = parent.fork();
        let child = thread::spawn(move || {
            child.take();
            child.close();
        });
        drop(parent.turn(SEND));
        parent.take();
        child.join().expect("no panic");
        assert_eq!(parent.taken(), Some(2));
    });
}

/// Who finds that it is alone may be so no more when it acts on that.
#[test]
fn loom_who_forks_meanwhile_is_not_alone() {
    check(|| {
        let [a, b] = on_ring();
        let parent = Arc::new(Process::of(a));
        // There was another, that has left.
        parent.share();
        parent.with(|flow| assert!(!flow.stream().holders().leave()));
        let child = {
            let parent = parent.clone();
            thread::spawn(move || parent.fork().send(1))
        };
        parent.send(2);
        parent.send(3);
        child.join().expect("no panic");
        let mut received = b.receive(3);
        received.sort_unstable();
        assert_eq!(received, [1, 2, 3]);
    });
}

/// One that was killed in its turn, when it had sent and not rung, has another ring for it.
#[test]
fn loom_who_takes_the_turn_of_one_who_was_killed_rings_for_him() {
    check(|| {
        let [a, b] = on_ring();
        let parent = Process::of(a);
        let child = parent.fork();
        let victim = thread::spawn(move || child.send_and_die(1));
        let receiver = thread::spawn(move || {
            // Asleep, where nobody rings for ever.
            assert_eq!(b.receive(1), [1]);
        });
        victim.join().expect("no panic");
        drop(parent.turn(SEND));
        receiver.join().expect("no panic");
    });
}

/// A program is started in vain, while another thread finds that nobody else has the end.
#[test]
fn loom_who_has_an_end_is_counted_whoever_was_not_started() {
    check(|| {
        let [a, _b] = on_ring();
        let process = Arc::new(Process::of(a));
        process.around.is_killed.store(1, Ordering::Relaxed);
        process.share();
        let other = {
            let process = process.clone();
            thread::spawn(move || drop(process.turn(SEND)))
        };
        process.with(|flow| flow.stream().holders().take_back());
        other.join().expect("no panic");
        process.with(|flow| assert_eq!(flow.stream().holders().count(), 1));
    });
}

/// One that counts what it takes from TCP, where two bytes are.
fn receiver() -> Process {
    let [a, b] = ends();
    b.flow.consent(&b.tcp);
    for byte in [1, 2] {
        assert_eq!(a.tcp.send(&[byte]), Ok(1));
    }
    Process::of(b)
}

/// One of the processes that have an end.
struct Process {
    turns: Turns<Flow>,
    around: Kin,
}

/// What the kernel says to it.
struct Kin {
    tcp: Tcp,
    /// Whether the others were killed.
    is_killed: AtomicU32,
    /// Whether one that left has ended.
    has_ended: Arc<AtomicU32>,
}

impl Process {
    fn of(end: End) -> Self {
        let turns = Turns::new();
        assert!(matches!(turns.replace(Some(end.flow)), Ok(None)));
        let is_killed = AtomicU32::new(0);
        Self {
            turns,
            around: Kin {
                tcp: end.tcp,
                is_killed,
                has_ended: Arc::new(AtomicU32::new(0)),
            },
        }
    }

    /// Another that has the end, too.
    fn fork(&self) -> Self {
        self.share();
        let mut child = None;
        self.with(|flow| child = flow.stream().again().ok());
        Self::of(End {
            flow: Flow::resume(child.expect("a stream"), &BELLS),
            tcp: self.around.tcp.clone(),
        })
    }

    fn share(&self) {
        let _both = self.turns.both().expect("no turn");
        self.with(|flow| flow.stream().holders().share());
    }

    fn with(&self, act: impl FnOnce(&Flow)) {
        act(&self.turns.take(SEND).expect("a flow"));
    }

    /// As `Conn::turn`.
    fn turn(&self, side: usize) -> Turn<'_> {
        let turn = self.turns.take(side).expect("a flow");
        if !turn.stream().holders().is_shared() {
            return Turn::of_thread(turn, side);
        }
        let entered = Turn::enter(&self.turns, turn, side, &self.around);
        entered.expect("nobody lies").expect("a flow")
    }

    fn send(&self, byte: u8) {
        send(&self.turn(SEND), &self.around.tcp, byte);
    }

    /// Takes a byte from TCP.
    fn take(&self) {
        let mut byte = [0];
        let into = &mut [IoSliceMut::new(&mut byte)];
        let taken = self
            .turn(RECEIVE)
            .receive(&self.around.tcp, into, Take::Read);
        assert_eq!(taken, Ok(1));
    }

    fn taken(&self) -> Option<u64> {
        self.turn(RECEIVE).stream().rx().taken_from_tcp()
    }

    /// Killed when the byte is there, and nobody was told.
    fn send_and_die(&self, byte: u8) {
        let turn = self.turn(SEND);
        let byte = [byte];
        let written = turn.stream().tx().write(false, || [&byte[..]].into_iter());
        assert_eq!(written.map(|(written, _)| written), Ok(1));
        turn.stream().die();
        std::mem::forget(turn);
    }

    fn leave_at_exit(&self) {
        self.with(|flow| flow.leave_at_exit(&self.around.tcp));
    }

    fn close(&self) {
        let flow = self.turns.replace(None).expect("no turn");
        flow.expect("a flow").leave(&self.around.tcp, true);
    }
}

impl Around for Kin {
    fn finds_nobody(&self) -> bool {
        self.is_killed.load(Ordering::Acquire) != 0
    }

    fn finds_ended(&self, _: u32) -> bool {
        self.has_ended.load(Ordering::Acquire) != 0
    }

    fn shares(&self, _: u32) -> Option<bool> {
        None
    }

    fn tcp(&self) -> impl Kernel {
        self.tcp.clone()
    }
}
