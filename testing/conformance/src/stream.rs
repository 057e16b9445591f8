//! Long sequences of numbered messages.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use via::{Completion, Descriptor, Vi};

use crate::buffer::{Buffer, mix, pattern};
use crate::kit::{Must, Pair, beside, received, sent, until};

/// Sends `count` messages from A to B, which must arrive once each and in order.
#[track_caller]
pub(crate) fn stream(pair: &Pair<'_>, count: u64) {
    let target = Buffer::new(&pair.b, WINDOW as u32 * SLOT);
    let posted = AtomicU64::new(0);
    let post = |number| {
        pair.vb.post_recv(&target.recv(slot(number)), number).must();
        posted.fetch_add(1, Ordering::Release);
    };
    (0..WINDOW.min(count)).for_each(post);
    beside(
        pair.lab(),
        || Sender::new(pair).send_all(count, |number| posted.load(Ordering::Acquire) > number),
        || {
            for number in 0..count {
                let arrived = received(&pair.vb).ok().must();
                assert_eq!(arrived.token, number);
                assert_eq!(read_number(&target, &arrived), Some(number));
                if number + WINDOW < count {
                    post(number + WINDOW);
                }
            }
        },
    );
}

/// Sends `count` messages from A to B, heedless of how many receives are posted. What arrives must be intact and come once; returns
/// how many did.
#[track_caller]
pub(crate) fn stream_unreliably(pair: &Pair<'_>, count: u64) -> usize {
    let target = Buffer::new(&pair.b, WINDOW as u32 * SLOT);
    let ended = AtomicBool::new(false);
    let post = |token| pair.vb.post_recv(&target.recv(slot(token)), token).must();
    (0..WINDOW).for_each(post);
    let mut seen = HashSet::new();
    beside(
        pair.lab(),
        || {
            Sender::new(pair).send_all(count, |_| true);
            // Says that this was all, until the other side has heard it.
            until(pair.lab(), "the last message to arrive", || {
                pair.va.post_send(&Descriptor::send(), END).must();
                sent(&pair.va).ok().must();
                ended.load(Ordering::Acquire)
            });
        },
        || {
            loop {
                let arrived = received(&pair.vb).ok().must();
                if arrived.length == 0 {
                    break;
                }
                let number = read_number(&target, &arrived).must();
                assert!(number < count && seen.insert(number), "{number} twice");
                // The same slot again.
                post(arrived.token + WINDOW);
            }
            ended.store(true, Ordering::Release);
        },
    );
    seen.len()
}

struct Sender<'a> {
    vi: &'a Vi,
    pair: &'a Pair<'a>,
    source: Buffer,
    done: u64,
}

impl<'a> Sender<'a> {
    fn new(pair: &'a Pair<'_>) -> Self {
        Self {
            vi: &pair.va,
            pair,
            source: Buffer::new(&pair.a, WINDOW as u32 * SLOT),
            done: 0,
        }
    }

    fn send_all(&mut self, count: u64, may: impl Fn(u64) -> bool) {
        for number in 0..count {
            until(self.pair.lab(), "a posted receive", || may(number));
            if number - self.done == WINDOW {
                self.complete();
            }
            let slot = slot(number);
            let len = 8 + (mix(LENGTHS, number) % u64::from(SLOT - 8)) as u32;
            let mut message = pattern(number, len as usize);
            message[..8].copy_from_slice(&number.to_le_bytes());
            self.source.write(slot.start, &message);
            let send = self.source.send(slot.start..slot.start + len);
            self.vi.post_send(&send, number).must();
        }
        while self.done < count {
            self.complete();
        }
    }

    fn complete(&mut self) {
        let done = sent(self.vi).ok().must();
        assert_eq!(done.token, self.done);
        self.done += 1;
    }
}

/// The number of the message that arrived, if it is whole.
fn read_number(target: &Buffer, arrived: &Completion) -> Option<u64> {
    let at = slot(arrived.token).start;
    let found = target.read(at..at + arrived.length);
    let number = u64::from_le_bytes(found.get(..8)?.try_into().ok()?);
    let len = 8 + (mix(LENGTHS, number) % u64::from(SLOT - 8)) as usize;
    let intact = found.len() == len && found[8..] == pattern(number, len)[8..];
    intact.then_some(number)
}

fn slot(number: u64) -> std::ops::Range<u32> {
    let at = (number % WINDOW) as u32 * SLOT;
    at..at + SLOT
}

/// Messages under way at a time.
const WINDOW: u64 = 128;
/// Bytes of the longest message.
const SLOT: u32 = 200;
const LENGTHS: u64 = 0x1e57;
const END: u64 = u64::MAX;
