//! The stream's protocols under loom: every interleaving, with every value that an atomic may return.

use loom::sync::Arc;
use loom::thread;

use super::held::try_take;
use super::sleep::{Bytes, Room};
use super::{BOARD, READY, SLEEPER, STANDS, Stream};
use crate::sync::{AtomicU32, AtomicU64, Count, Ordering, UnsafeCell, Word};

#[test]
fn loom_a_receiver_that_sleeps_is_rung() {
    loom::model(|| {
        let shared = Arc::new(Shared::default());
        let sender = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.write(0, 0);
                shared.bytes().publish(0, 1);
                shared.ring_if_armed();
                shared.bytes().finish(1);
                shared.ring_if_armed();
            })
        };
        let bytes = shared.bytes();
        // Ends only if each sleep does.
        while bytes.tail.load(Ordering::Acquire) == 0 {
            shared.sleep_for_bytes(0);
        }
        assert_eq!(shared.read(0), 0);
        while shared.fin.load(Ordering::Acquire) == 0 {
            shared.sleep_for_bytes(1);
        }
        sender.join().expect("no panic");
    });
}

/// A receiver that finds that its request stands, and then that nothing is left, needs to do no more: whatever comes is noted. So it is where the sender
/// [takes](Bytes::knock) the request with the first of what it sends, for then it notes after that.
#[test]
fn loom_what_comes_is_noted_while_a_request_stands() {
    for takes in [false, true] {
        loom::model(move || {
            let shared = Arc::new(Shared::default());
            shared.bytes().arm_at(BOARD | STANDS);
            let sender = {
                let shared = shared.clone();
                thread::spawn(move || {
                    for tail in 0..2 {
                        shared.write(tail, tail);
                        shared.bytes().publish(tail, tail + 1);
                        shared.note_if_asked(takes && tail == 0);
                    }
                })
            };
            let bytes = shared.bytes();
            let mut head = 0;
            // Ends only if each sleep does.
            while head < 2 {
                shared.sleep_for_note();
                loop {
                    let stands = bytes.stands(BOARD | STANDS);
                    let tail = Count::load(bytes.tail, Ordering::SeqCst);
                    while head < tail {
                        assert_eq!(shared.read(head), head);
                        head += 1;
                    }
                    if !stands {
                        bytes.arm_at(BOARD | STANDS);
                    }
                    if bytes.settled(head) {
                        break;
                    }
                }
            }
            sender.join().expect("no panic");
        });
    }
}

/// The ring has four places, so a quarter is one. The receiver takes one at a time, often without a look.
#[test]
fn loom_a_sender_that_sleeps_is_rung_when_half_the_ring_is_free() {
    loom::model(|| {
        let shared = Arc::new(Shared::default());
        // Little enough at a time that the receiver need not look, for all that it sees.
        shared.tail.store(1, Ordering::Relaxed);
        let sender = {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut tail = 1;
                while tail < 5 {
                    if tail - shared.space().seen() < RING {
                        shared.bytes().publish(tail, tail + 1);
                        tail += 1;
                    } else {
                        shared.sleep_for_room(tail);
                    }
                }
            })
        };
        let mut head = 0;
        while head < 5 {
            let tail = shared.tail.load(Ordering::Acquire);
            if tail == head {
                thread::yield_now();
                continue;
            }
            if shared.space().free(head, head + 1, tail) == Some(true) && shared.space().knock() {
                shared.room_rung.fetch_add(1, Ordering::Release);
            }
            head += 1;
        }
        sender.join().expect("no panic");
    });
}

/// Bytes are where the base says that goes with the tail, and are not overwritten before they are taken.
#[test]
fn loom_a_ring_begins_again_only_when_it_is_empty() {
    loom::model(|| {
        let shared = Arc::new(Shared::default());
        let sender = {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut tail = 0;
                while tail < 3 {
                    let base = shared.base.load(Ordering::Acquire);
                    let seen = shared.space().seen();
                    let base = if seen == tail && shared.base.exchange_here(base, tail) {
                        tail
                    } else {
                        base
                    };
                    if tail - seen == RING {
                        thread::yield_now();
                        continue;
                    }
                    shared.write(tail - base, tail);
                    shared.bytes().publish(tail, tail + 1);
                    tail += 1;
                }
            })
        };
        let mut head = 0;
        while head < 3 {
            let tail = shared.tail.load(Ordering::Acquire);
            if tail == head {
                thread::yield_now();
                continue;
            }
            let base = shared.base.load(Ordering::Relaxed);
            assert_eq!(shared.read(head - base), head);
            shared
                .space()
                .free(head, head + 1, tail)
                .expect("no handler");
            head += 1;
        }
        sender.join().expect("no panic");
    });
}

/// Where the other direction says that everything was taken, nobody looks at the head.
#[test]
fn loom_an_acknowledged_ring_is_empty() {
    loom::model(|| {
        let shared = Arc::new(Shared::default());
        let acknowledged = Arc::new(AtomicU64::new(0));
        shared.write(0, 7);
        shared.bytes().publish(0, 1);
        let receiver = {
            let (shared, acknowledged) = (shared.clone(), acknowledged.clone());
            thread::spawn(move || {
                assert_eq!(shared.read(0), 7);
                shared.space().free(0, 1, 1).expect("no handler");
                acknowledged.store(1, Ordering::Release);
            })
        };
        if acknowledged.load(Ordering::Acquire) == 1 {
            assert!(shared.base.exchange_here(0, 1));
            shared.write(0, 8);
        }
        receiver.join().expect("no panic");
    });
}

/// Of two who find a holder dead one takes its place, and sees what it wrote.
#[test]
fn loom_a_turn_is_one_processs_at_a_time() {
    loom::model(|| {
        const DEAD: u32 = 9;
        let shared = Arc::new((AtomicU32::new(DEAD), UnsafeCell::new(0u32)));
        let heirs = [1, 2].map(|me| {
            let shared = shared.clone();
            thread::spawn(move || {
                let (word, value) = &*shared;
                let held = loop {
                    let from = word.load(Ordering::Relaxed);
                    let free = from == 0 || from == DEAD;
                    if free && let Ok(held) = try_take(word, me, from) {
                        break held;
                    }
                    thread::yield_now();
                };
                // SAFETY: in its turn; loom checks that.
                value.with_mut(|value| unsafe { *value += 1 });
                assert!(try_take(word, me, 0).is_ok(), "its own again");
                held.orphaned()
            })
        });
        let orphans = heirs.map(|heir| heir.join().expect("no panic"));
        assert_eq!(orphans.iter().filter(|orphan| **orphan).count(), 1);
        // SAFETY: nobody else is left.
        assert_eq!(shared.1.with(|value| unsafe { *value }), 2);
    });
}

/// Of one that takes an offer and one that takes it back, one does.
#[test]
fn loom_an_offer_is_taken_or_withdrawn() {
    loom::model(|| {
        let [maker, taker] = Stream::pair().expect("a stream");
        let taker = thread::spawn(move || taker.decide(READY));
        let uses = !maker.withdraw();
        assert_eq!(taker.join().expect("no panic"), uses);
    });
}

/// The words of a direction, and its ring, whose places loom watches.
#[derive(Default)]
struct Shared {
    tail: AtomicU64,
    base: AtomicU64,
    head: AtomicU64,
    looked: AtomicU64,
    fin: AtomicU32,
    armed_data: AtomicU32,
    armed_room: AtomicU32,
    data_rung: AtomicU32,
    room_rung: AtomicU32,
    noted: AtomicU32,
    ring: [UnsafeCell<u64>; RING as usize],
}

// SAFETY: the places are reached as the protocol allows, and loom panics if that is not enough.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    fn bytes(&self) -> Bytes<'_, AtomicU64, AtomicU32> {
        Bytes {
            tail: &self.tail,
            fin: &self.fin,
            armed: &self.armed_data,
        }
    }

    fn space(&self) -> Room<'_, AtomicU64, AtomicU32> {
        Room {
            head: &self.head,
            looked: &self.looked,
            armed: &self.armed_room,
            len: RING,
        }
    }

    fn ring_if_armed(&self) {
        if self.bytes().armed() & SLEEPER != 0 && self.bytes().knock() != 0 {
            self.data_rung.fetch_add(1, Ordering::Release);
        }
    }

    /// As `sockets` does; `takes` where the set sleeps.
    fn note_if_asked(&self, takes: bool) {
        let asked = self.bytes().armed();
        let note = || Word::fetch_or(&self.noted, 1, Ordering::SeqCst);
        if asked & STANDS != 0 {
            note();
        }
        if takes && self.bytes().knock() & BOARD != 0 {
            note();
        }
    }

    fn sleep_for_note(&self) {
        while Word::swap(&self.noted, 0, Ordering::SeqCst) == 0 {
            self.noted.wait(0, None);
        }
    }

    /// The doorbell is a byte on a connection; here it is a count, which is not lost either.
    fn sleep_for_bytes(&self, head: u64) {
        let rung = self.data_rung.load(Ordering::Acquire);
        self.bytes().arm(SLEEPER);
        if self.bytes().settled(head) {
            self.data_rung.wait(rung, None);
        }
    }

    fn sleep_for_room(&self, tail: u64) {
        let rung = self.room_rung.load(Ordering::Acquire);
        self.space().arm();
        if tail - self.space().seen() > 3 * RING / 4 {
            self.room_rung.wait(rung, None);
        }
    }

    fn write(&self, at: u64, value: u64) {
        // SAFETY: free places are the sender's; loom checks that.
        self.ring[(at % RING) as usize].with_mut(|place| unsafe { *place = value });
    }

    fn read(&self, at: u64) -> u64 {
        // SAFETY: published places are the receiver's; loom checks that.
        self.ring[(at % RING) as usize].with(|place| unsafe { *place })
    }
}

const RING: u64 = 4;
