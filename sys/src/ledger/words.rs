//! What lies in a ledger, and how a connection goes from its record into the sums while somebody reads.
//!
//! The writer stores and never waits; a reader looks twice whether anything went meanwhile. Written for any words, so that loom checks what runs on
//! mapped ones.

use crate::sync::{Count, Ordering, Word, fence, mapped};

/// One connection. Written by its process, read by anybody: so a reader may see two counts of different moments.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Record<W = mapped::AtomicU32, C = mapped::AtomicU64> {
    /// What the writer's version says; 0 for nobody.
    pub state: W,
    /// A number that the writer's version explains.
    pub reason: W,
    /// One of its descriptors.
    pub fd: W,
    /// Flags that the writer's version explains.
    pub flags: W,
    /// Bytes sent and received.
    pub bytes: [C; 2],
    /// Calls that sent and received.
    pub calls: [C; 2],
    /// Sleeps in the kernel.
    pub sleeps: C,
    /// Doorbells rung.
    pub bells: C,
    /// The local address: 16 bytes, in network order, IPv4 as mapped.
    pub local: [C; 2],
    /// The peer's address.
    pub peer: [C; 2],
    /// The local port in the high half, the peer's in the low half.
    pub ports: W,
    /// When the state last changed, in seconds of the monotonic clock.
    pub since: W,
    /// How many changes there were.
    pub changes: W,
    /// The name of the VI NIC, up to 8 bytes, if it goes over one.
    pub nic: C,
    /// The last of them, the n-th at n modulo the length, as the writer's version has them.
    pub history: [C; HISTORY],
}

/// Sums over connections that are no more.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Totals<C = mapped::AtomicU64> {
    /// How many have begun to end, each before its record is given up.
    pub ending: C,
    /// How many of those are in the sums: the same, when none is on its way from its record into them.
    pub ended: C,
    /// How many there were.
    pub connections: C,
    /// Bytes sent and received.
    pub bytes: [C; 2],
    /// Calls that sent and received.
    pub calls: [C; 2],
    /// Sleeps in the kernel.
    pub sleeps: C,
    /// Doorbells rung.
    pub bells: C,
}

impl<W: Word, C: Count> Record<W, C> {
    /// Is for a connection that begins, and has counted nothing. Say which one it is, and then its state.
    pub fn begin(&self) {
        // Pairs with the fence in `Totals::still`: who finds anything of this connection finds that the one before it has begun to end.
        fence(Ordering::Release);
        for count in self.counts() {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// Whoever sees this state sees what was said before.
    pub fn set_state(&self, state: u32) {
        // Pairs with the acquire in `state`.
        self.state.store(state, Ordering::Release);
    }

    /// The state, 0 for nobody. What belongs to it is to be read afterwards.
    pub fn state(&self) -> u32 {
        self.state.load(Ordering::Acquire)
    }

    /// The connection is gone: gives the record up, and adds it to the sums.
    pub fn end(&self, totals: Option<&Totals<C>>) {
        let Some(totals) = totals else {
            self.set_state(0);
            return;
        };
        totals.ending.fetch_add(1, Ordering::Relaxed);
        // Release, here and in the sums: who finds it given up, or added, finds that it has begun to end.
        if self.state.swap(0, Ordering::Release) != 0 {
            totals.connections.fetch_add(1, Ordering::Release);
            for (total, count) in totals.counts().into_iter().zip(self.counts()) {
                let count = count.load(Ordering::Relaxed);
                if count != 0 {
                    total.fetch_add(count, Ordering::Release);
                }
            }
        }
        totals.ended.fetch_add(1, Ordering::Release);
    }

    // An array, for which each short connection's end and beginning cost a third of what iterators that are chained do.
    #[inline]
    fn counts(&self) -> [&C; 6] {
        let ([sent, received], [sends, receives]) = (&self.bytes, &self.calls);
        [sent, received, sends, receives, &self.sleeps, &self.bells]
    }
}

impl<C: Count> Totals<C> {
    /// Calls `read`, which looks at the records first and at the sums then, until no connection went from the ones to the others meanwhile, so that
    /// each is in one of them: true; or so often, when they end all the time: false, and it is in both, or in none, for what it is worth.
    pub fn look<T>(&self, tries: u32, mut read: impl FnMut() -> T) -> (T, bool) {
        let mut tried = 0;
        loop {
            let before = self.still();
            let found = read();
            let is_whole = before.is_some() && before == self.still();
            tried += 1;
            if is_whole || tried >= tries {
                return (found, is_whole);
            }
        }
    }

    /// How many connections have ended, if none is on its way from the records to the sums.
    fn still(&self) -> Option<u64> {
        // What was read before this is of a moment before it. Pairs with `begin`.
        fence(Ordering::Acquire);
        // In this order: what has ended has begun to. Pairs with `end`.
        let ended = self.ended.load(Ordering::Acquire);
        (self.ending.load(Ordering::Acquire) == ended).then_some(ended)
    }

    #[inline]
    fn counts(&self) -> [&C; 6] {
        let ([sent, received], [sends, receives]) = (&self.bytes, &self.calls);
        [sent, received, sends, receives, &self.sleeps, &self.bells]
    }
}

/// Changes that are kept of a connection.
pub const HISTORY: usize = 16;

#[cfg(all(test, loom))]
mod tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::sync::{AtomicU32, AtomicU64};

    type Words = (Record<AtomicU32, AtomicU64>, Totals<AtomicU64>);

    /// The bytes that a reader finds, those of the connection that ends among them, whatever takes its place.
    #[test]
    fn loom_a_connection_that_ends_is_told_once() {
        loom::model(|| {
            let words = Arc::new(Words::default());
            words.0.bytes[0].store(5, Ordering::Relaxed);
            words.0.set_state(1);
            let writer = {
                let words = words.clone();
                thread::spawn(move || {
                    let (record, totals) = &*words;
                    record.end(Some(totals));
                    record.begin();
                    record.ports.store(2, Ordering::Relaxed);
                    record.set_state(2);
                    record.bytes[0].store(7, Ordering::Relaxed);
                })
            };
            let (record, totals) = &*words;
            let ((state, ports, bytes, sum), is_whole) = totals.look(1, || {
                let state = record.state();
                let ports = record.ports.load(Ordering::Relaxed);
                let bytes = record.bytes[0].load(Ordering::Relaxed);
                // As a reader does: it pairs with `end`.
                let sum = totals.bytes[0].load(Ordering::Acquire);
                (state, ports, if state == 0 { 0 } else { bytes }, sum)
            });
            assert!(state != 2 || ports == 2, "it says who it is");
            if is_whole {
                assert!([5, 12].contains(&(bytes + sum)), "{bytes} and {sum}");
            }
            writer.join().expect("no panic");
            assert_eq!(
                totals.look(1, || totals.bytes[0].load(Ordering::Acquire)),
                (5, true)
            );
        });
    }
}
