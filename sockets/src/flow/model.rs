//! Both ends of a connection under loom, over a model of TCP: the bytes that arrive are those that were sent, whatever the interleaving and whatever
//! value an atomic of the shared memory may return.

use loom::sync::Arc;
use loom::thread;
use sys::sync::Word;

use sys::stream::GONE;

use super::*;

use self::tcp::Pipe;
pub(crate) use self::tcp::Tcp;

mod tcp;

/// A direction goes to the ring while its receiver consents, reads and sleeps.
#[test]
fn loom_no_byte_is_lost_or_passed_on_the_way_to_the_ring() {
    model(
        ends,
        |a| {
            a.send(1);
            a.send(2);
        },
        |b| {
            b.flow.consent(&b.tcp);
            assert_eq!(b.receive(2), [1, 2]);
        },
    );
}

/// An answer says how far its sender has read, and the ring begins again at its start where that is everything.
#[test]
fn loom_what_was_answered_is_overwritten_and_what_was_sent_before_an_end_is_there_with_it() {
    model(
        on_ring,
        |a| {
            a.send(1);
            a.send(3);
            assert_eq!(a.flow.finish(&a.tcp, true), Ok(true));
            assert_eq!(a.receive(1), [2]);
        },
        |b| {
            assert_eq!(b.receive(1), [1]);
            b.send(2);
            assert_eq!(b.receive(usize::MAX), [3]);
        },
    );
}

/// Question and answer lie where the ones before them did.
#[test]
fn loom_what_was_answered_is_overwritten_by_the_next_question() {
    model(
        on_ring,
        |a| {
            a.send(1);
            assert_eq!(a.receive(1), [2]);
            a.send(3);
        },
        |b| {
            assert_eq!(b.receive(1), [1]);
            b.send(2);
            assert_eq!(b.receive(1), [3]);
        },
    );
}

/// A sender goes back to TCP by itself.
#[test]
fn loom_no_byte_is_passed_when_a_sender_leaves_the_ring() {
    model(
        on_ring,
        |a| {
            a.send(1);
            a.flow.leave_ring(&a.tcp).expect("TCP is there");
            a.send(2);
        },
        |b| assert_eq!(b.receive(2), [1, 2]),
    );
}

/// A receiver calls its direction back, and what it has not read.
#[test]
fn loom_no_byte_is_lost_when_a_receiver_calls_the_ring_back() {
    let slept = || {
        let [a, b] = on_ring();
        // Nobody has woken it, so the sender rings.
        assert_eq!(b.flow.arm_receive(&b.tcp), Ok(true));
        [a, b]
    };
    model(
        slept,
        |a| {
            a.send(1);
            while !a.flow.stream.tx().back_wanted() {
                thread::yield_now();
            }
            assert_eq!(a.flow.serve_back(&a.tcp), Ok(true));
            a.send(2);
        },
        |b| {
            b.flow.call_back(&b.tcp, true).expect("TCP is there");
            while !b.flow.came_back(&b.tcp).expect("TCP is there") {
                thread::yield_now();
            }
            assert_eq!(b.receive(2), [1, 2]);
        },
    );
}

/// A receiver calls its direction back and does not wait: of what comes on TCP from then on nothing is a doorbell.
#[test]
fn loom_no_doorbell_is_taken_for_a_byte_when_a_receiver_goes_back_alone() {
    check(|| {
        let [a, b] = on_ring();
        assert_eq!(b.flow.arm_receive(&b.tcp), Ok(true));
        let other = thread::spawn(move || a.send(1));
        b.flow.call_back(&b.tcp, true).expect("TCP is there");
        b.flow.renounce_ring(&b.tcp).expect("TCP is there");
        let alone = b.flow.go_alone(&b.tcp, true).expect("TCP is there");
        other.join().expect("no panic");
        let mut byte = [1];
        let _ = b.tcp.recv(&mut byte);
        assert!(!alone || byte == [1]);
    });
}

/// Who sees that nobody reads at the other end sends where the kernel answers.
#[test]
fn loom_who_sends_when_an_end_is_gone_is_told_by_the_kernel() {
    model(
        on_ring,
        |a| {
            while !a.flow.stream.peer_deaf() {
                thread::yield_now();
            }
            a.send(1);
            assert_eq!(a.flow.unread(), 0, "it is not left where nobody reads");
        },
        |b| b.flow.leave(&b.tcp, true),
    );
}

/// Two processes have an end. The last that leaves says so, and the other end has read all before it learns of it.
#[test]
fn loom_the_last_holder_of_an_end_says_that_it_is_gone() {
    check(|| {
        let [a, b] = on_ring();
        a.flow.stream.holders().join();
        let a = Arc::new(a);
        let other = {
            let a = a.clone();
            thread::spawn(move || a.flow.leave(&a.tcp, true))
        };
        a.send(1);
        a.flow.leave(&a.tcp, true);
        other.join().expect("no panic");
        assert!(b.flow.stream.peer_deaf());
        assert_eq!(b.receive(usize::MAX), [1]);
    });
}

/// The last holder of an end takes what the others took for read, and closes in order.
#[test]
fn loom_the_last_holder_of_an_end_knows_what_the_others_took() {
    check(|| {
        let [a, b] = on_ring();
        a.send(1);
        b.flow.stream.holders().join();
        let (other, tcp) = (b.again(), b.tcp.clone());
        let other = thread::spawn(move || {
            assert_eq!(other.receive(1), [1]);
            other.flow.leave(&other.tcp, true);
        });
        b.flow.leave(&tcp, true);
        other.join().expect("no panic");
        assert_eq!(a.flow.stream.rx().finished(), GONE, "and no reset");
    });
}

/// What the ends of `ends` do, each on a thread of its own. Bounded as it is, loom finds less where the one that waits is the first thread: so
/// either is, in turn.
fn model(ends: fn() -> [End; 2], a_acts: fn(&End), b_acts: fn(&End)) {
    for a_is_first in [true, false] {
        check(move || {
            let [a, b] = ends();
            let [(first, acts), (second, also)] = if a_is_first {
                [(a, a_acts), (b, b_acts)]
            } else {
                [(b, b_acts), (a, a_acts)]
            };
            let other = thread::spawn(move || also(&second));
            acts(&first);
            other.join().expect("no panic");
        });
    }
}

pub(crate) fn check(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 10_000;
    builder.check(body);
}

pub(crate) struct End {
    pub(crate) flow: Flow,
    pub(crate) tcp: Tcp,
}

/// A connection whose bytes are all on TCP.
pub(crate) fn ends() -> [End; 2] {
    let streams = Stream::pair().expect("a stream");
    let pipes: [Arc<Pipe>; 2] = Default::default();
    let mut side = 0;
    streams.map(|stream| {
        let tcp = Tcp {
            out: pipes[side].clone(),
            input: pipes[1 - side].clone(),
        };
        side += 1;
        End {
            flow: Flow::new(stream, &BELLS),
            tcp,
        }
    })
}

/// A connection both of whose directions have gone to the ring.
pub(crate) fn on_ring() -> [End; 2] {
    let ends = ends();
    for end in &ends {
        end.flow.consent(&end.tcp);
    }
    for end in &ends {
        assert_eq!(end.flow.switch(&end.tcp), Ok(true));
    }
    for end in &ends {
        end.flow.follow(&end.tcp).expect("TCP is there");
        assert_eq!(end.flow.stream.rx().phase(), ON_RING);
    }
    ends
}

impl End {
    fn send(&self, byte: u8) {
        send(&self.flow, &self.tcp, byte);
    }

    /// As many bytes, or what comes before the end; asleep where there is nothing.
    pub(crate) fn receive(&self, most: usize) -> Vec<u8> {
        let mut received = Vec::new();
        while received.len() < most {
            let mut bytes = [0; 1];
            let mut into = [IoSliceMut::new(&mut bytes)];
            // What comes after the first goes the straight way, if it can.
            let [only] = &mut into;
            let straight = if received.is_empty() {
                None
            } else {
                self.flow.receive_short(only)
            };
            let taken = match straight {
                Some(n) => Ok(n),
                None => self.flow.receive(&self.tcp, &mut into, Take::Read),
            };
            match taken {
                Ok(n) => received.extend_from_slice(&bytes[..n]),
                Err(Stop::End) => break,
                Err(Stop::Again) => {
                    if self.flow.arm_receive(&self.tcp).expect("TCP is there") {
                        // Ends only if something comes on TCP.
                        self.tcp.input.level.wait(0, None);
                    }
                }
                Err(stop) => panic!("{stop:?}"),
            }
        }
        received
    }

    /// This end in another process.
    pub(crate) fn again(&self) -> Self {
        let stream = self.flow.stream.again().expect("a stream");
        Self {
            flow: Flow::resume(stream, &BELLS),
            tcp: self.tcp.clone(),
        }
    }
}

/// Odd ones the straight way, if it can be, as calls do; the others as those that it is not for.
pub(crate) fn send(flow: &Flow, tcp: &Tcp, byte: u8) {
    let bytes = [byte];
    let buffers = &[IoSlice::new(&bytes)];
    if byte & 1 == 1
        && let Some(sent) = flow.send_short(tcp, &buffers[0])
    {
        assert_eq!(sent, 1);
        return;
    }
    let pieces = Pieces {
        buffers,
        skip: 0,
        most: usize::MAX,
    };
    assert_eq!(flow.send(tcp, &pieces, false, true), Ok(1));
}

pub(crate) static BELLS: AtomicU64 = AtomicU64::new(0);
