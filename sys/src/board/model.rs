//! A leaf under loom: every interleaving, with every value that an atomic may return.

use loom::sync::Arc;
use loom::thread;

use super::protocol::{Group, Words};
use crate::sync::{AtomicU32, Ordering, Word};

/// Who is noted while the set goes to sleep is found by its last look, or rings.
#[test]
fn loom_what_is_noted_is_looked_at_or_rung_for() {
    loom::model(|| {
        let leaf = Arc::new(Leaf::default());
        let sender = {
            let leaf = leaf.clone();
            thread::spawn(move || leaf.send(0))
        };
        leaf.receive(1);
        sender.join().expect("no panic");
    });
}

/// Of two whose bits lie in one word, one may be taken while the other is being noted.
#[test]
fn loom_no_note_is_lost_to_another() {
    loom::model(|| {
        let leaf = Arc::new(Leaf::default());
        let senders = [0, 1].map(|slot| {
            let leaf = leaf.clone();
            thread::spawn(move || leaf.send(slot))
        });
        leaf.receive(0b11);
        for sender in senders {
            sender.join().expect("no panic");
        }
    });
}

/// One that was killed, or stopped, between the two steps of a note takes nobody else's with it.
#[test]
fn loom_a_note_that_is_left_half_way_harms_no_other() {
    loom::model(|| {
        let leaf = Arc::new(Leaf::default());
        let senders = {
            let leaf = leaf.clone();
            thread::spawn(move || {
                leaf.groups[0].bits[0].fetch_or(0b10, Ordering::SeqCst);
                leaf.send(0);
            })
        };
        leaf.receive(1);
        senders.join().expect("no panic");
    });
}

/// Who leaves the board looks at all once more, and is rung for from then on.
#[test]
fn loom_what_is_noted_when_a_set_leaves_is_found_or_rung_for() {
    loom::model(|| {
        let leaf = Arc::new(Leaf::default());
        let sender = {
            let leaf = leaf.clone();
            thread::spawn(move || leaf.send(0))
        };
        let rung = leaf.rung.load(Ordering::Acquire);
        leaf.words().leave();
        if leaf.sent() & 1 == 0 {
            leaf.rung.wait(rung, None);
        }
        assert_eq!(leaf.sent(), 1);
        sender.join().expect("no panic");
    });
}

/// A leaf of two members, what they have been sent, and their doorbells.
#[derive(Default)]
struct Leaf {
    asleep: AtomicU32,
    groups: [Box<Group<AtomicU32>>; 1],
    tails: [AtomicU32; 2],
    rung: AtomicU32,
}

impl Leaf {
    fn words(&self) -> Words<'_, AtomicU32, Box<Group<AtomicU32>>> {
        Words {
            asleep: &self.asleep,
            groups: &self.groups,
        }
    }

    /// The doorbell is a byte on a connection; here it is a count, which is not lost either.
    fn send(&self, slot: u32) {
        Word::store(&self.tails[slot as usize], 1, Ordering::SeqCst);
        if self.words().note(slot) {
            self.rung.fetch_add(1, Ordering::Release);
        }
    }

    /// Which members have been sent something.
    fn sent(&self) -> u32 {
        let sent = |slot: usize| Word::load(&self.tails[slot], Ordering::SeqCst) << slot;
        sent(0) | sent(1)
    }

    /// Looks only at what is noted, and sleeps in between; ends only if each sleep does.
    fn receive(&self, all: u32) {
        let words = self.words();
        let mut found = 0;
        loop {
            words.take(0, |slot| {
                // A bit may be left of one who was killed.
                found |= self.sent() & 1 << slot;
            });
            if found == all {
                return;
            }
            let rung = self.rung.load(Ordering::Acquire);
            words.sleep();
            if words.is_quiet(1) {
                self.rung.wait(rung, None);
                words.wake();
                // The doorbell makes its member hot.
                found |= self.sent() & all;
            } else {
                words.wake();
            }
            if found == all {
                return;
            }
        }
    }
}
