//! A peer that writes anything anywhere at any time.

use std::thread;

use super::*;
use crate::sync::{AtomicBool, AtomicU64};

/// Calls everything at one end while the other scribbles. Whatever comes of it, it comes: no panic, no fault, no endless loop.
#[test]
fn a_peer_that_scribbles_harms_only_its_own_stream() {
    for seed in 0..6 {
        let (a, b) = pair();
        let (done, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = Random(seed);
                while !done.load(Ordering::Relaxed) {
                    scribble(&b, &mut random, seed % 2 == 0);
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
            let mut random = Random(seed + 1000);
            let mut buffer = vec![0; RING + 100];
            for _ in 0..20_000 {
                use_all(&a, &mut random, &mut buffer);
            }
            // On a busy machine the other may have come late.
            while rounds.load(Ordering::Relaxed) < 1000 {
                use_all(&a, &mut random, &mut buffer);
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}

/// Each word set to each awkward value, alone, before each call.
#[test]
fn no_value_of_a_word_harms() {
    let mut random = Random(7);
    let mut buffer = vec![0; RING + 100];
    let (a, b) = pair();
    for word in 0..size_of::<ControlPage>() / 8 {
        for value in AWKWARD {
            for near in [0, 1, RING as u64, u64::MAX] {
                words(&b)[word].store(value.wrapping_add(near), Ordering::Relaxed);
                use_all(&a, &mut random, &mut buffer);
            }
        }
        if word % 16 == 0 {
            for word in words(&b) {
                word.store(0, Ordering::Relaxed);
            }
        }
    }
}

/// A cursor that moves all the time looks like a signal handler that always comes in between; there is an end to it.
#[test]
fn a_cursor_that_never_rests_ends_a_read() {
    let (a, _b) = pair();
    let rx = a.rx();
    let mut tries = 0;
    while !rx.take(rx.head().wrapping_add(1), 5).0 {
        tries += 1;
        assert!(tries <= 1000);
    }
    assert!(!rx.take(rx.head(), 0).0 || rx.take(rx.head(), rx.head()).0);
}

fn use_all(stream: &Stream, random: &mut Random, buffer: &mut [u8]) {
    let (tx, rx) = (stream.tx(), stream.rx());
    let len = random.len() as usize;
    let _ = match random.below(20) {
        0 => tx.room(len).is_ok(),
        1 => tx.writable().is_ok() && tx.drained().is_ok(),
        2 => tx
            .unread(random.next(), &mut buffer[..len])
            .is_ok_and(|n| n <= len),
        3 => tx.unread(0, buffer).is_ok_and(|n| n <= RING),
        4 => {
            tx.arm();
            rx.arm();
            rx.arm_at(Place::from_number(random.next() as u32));
            rx.settled() || rx.is_armed()
        }
        5 => tx.note(tx.knock()) || rx.knock(),
        6 => tx.take_back(len).is_ok(),
        7 => rx.put_back(&buffer[..len]).is_ok(),
        8 => {
            tx.release_unused();
            true
        }
        9 => [
            tx.to_ring(),
            tx.to_tcp(),
            rx.to_ring(),
            rx.to_tcp(),
            rx.mark(),
        ]
        .iter()
        .any(Option::is_some),
        10 => {
            tx.mark();
            format!("{stream:?}").is_empty()
        }
        11 => tx
            .write(true, || [&buffer[..len]].into_iter())
            .is_ok_and(|(n, _)| n <= len),
        12..16 => {
            let (one, two) = buffer.split_at(len);
            let short = tx.write_short(one).is_none_or(|(n, _)| n == len);
            assert!(short, "all or nothing");
            let written = tx.write(false, || [one, two, one].into_iter());
            written.is_ok_and(|(n, _)| n <= buffer.len() + len)
        }
        _ => {
            let head = rx.head();
            let mut at = head;
            for part in buffer.chunks_mut(len) {
                let n = rx.peek(at, part).unwrap_or(0);
                assert!(n <= part.len());
                at = at.wrapping_add(n as u64);
                if n < part.len() {
                    break;
                }
            }
            rx.available().is_ok() && rx.take(head, at).0
        }
    };
}

fn scribble(stream: &Stream, random: &mut Random, wild: bool) {
    let words = words(stream);
    for _ in 0..4 {
        let word = &words[random.below(words.len() as u64) as usize];
        let old = word.load(Ordering::Relaxed);
        let value = match random.below(4) {
            0 => AWKWARD[random.below(AWKWARD.len() as u64) as usize],
            1 if wild => random.next() << 40 ^ random.next(),
            2 => old.wrapping_add(random.below(2 * RING as u64)),
            _ => old.wrapping_sub(random.below(RING as u64)),
        };
        word.store(value, Ordering::Relaxed);
    }
    // And bytes, of either ring.
    let place = random.below((2 * RING) as u64 / 8) as usize;
    let ring = stream.ring(0).cast::<AtomicU64>();
    // SAFETY: inside the mapping, aligned; others race with atomics or raw copies.
    unsafe { &*ring.add(place) }.store(random.next(), Ordering::Relaxed);
    let _ = stream.tx().write(false, || [&[1; 100][..]].into_iter());
    let rx = stream.rx();
    let _ = rx.take(rx.head(), random.next());
}

/// The control page as words, except for what turns between processes wait for, which has a test of its own.
fn words(stream: &Stream) -> &[AtomicU64] {
    let start = stream.words.cast::<AtomicU64>();
    // SAFETY: the page is mapped as long as the stream lives, aligned, and made of atomics, which may be seen in other widths here.
    unsafe { std::slice::from_raw_parts(start, size_of::<ControlPage>() / 8) }
}

const AWKWARD: [u64; 9] = [
    0,
    1,
    RING as u64 - 1,
    RING as u64,
    RING as u64 + 1,
    1 << 63,
    (1 << 63) - 1,
    u64::MAX - RING as u64,
    u64::MAX,
];
