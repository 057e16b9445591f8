//! How far a stream goes into its ring.

use proptest::prelude::*;

use super::super::grow::{FIRST, LONG};
use super::release::pages;
use super::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Whatever is sent and read, by one who waits where he had better, and in vain `grown` times.
    #[test]
    fn who_waits_stays_in_memory_that_is_there(
        grown in 0..5u32,
        steps in proptest::collection::vec((any::<bool>(), 1..400_000usize, 0..400_000usize), 1..40),
    ) {
        let (a, b) = pair();
        for _ in 0..grown {
            a.tx().grow();
            b.tx().grow();
        }
        let reach = (FIRST << grown).min(RING);
        prop_assert_eq!(a.tx().reach(), reach);
        let mut sent = [0u64; 2];
        let mut got = [0u64; 2];
        for (way, len, taken) in steps {
            let (from, to) = if way { (&a, &b) } else { (&b, &a) };
            let (sent, got) = (&mut sent[usize::from(way)], &mut got[usize::from(way)]);
            let mut left = len;
            while left > 0 {
                let mut fitting = from.tx().fitting(left).min(from.tx().room(left).expect("sound"));
                if fitting == 0 {
                    take(to, got, RING);
                    prop_assert_eq!(from.tx().drained(), Ok(true));
                    fitting = from.tx().reach().min(left);
                }
                let data: Vec<u8> = (*sent..*sent + fitting as u64).map(byte_at).collect();
                prop_assert_eq!(write(from.tx(), false, &[&data]).0, fitting);
                *sent += fitting as u64;
                left -= fitting;
            }
            take(to, got, taken);
        }
        prop_assert!(pages(&a) <= 1 + 2 * reach / 4096, "{} pages", pages(&a));
        take(&b, &mut got[1], RING);
        take(&a, &mut got[0], RING);
        prop_assert_eq!(sent, got);
    }
}

fn take(stream: &Stream, got: &mut u64, most: usize) {
    for byte in read(stream, most) {
        assert_eq!(byte, byte_at(*got));
        *got += 1;
    }
}

#[test]
fn all_of_the_ring_can_be_written_without_waiting() {
    for size in [Size::LEAST, Size::DEFAULT, Size::MOST] {
        let (a, _b) = pair_of(size);
        let data = vec![1; size.bytes()];
        assert_eq!(write(a.tx(), false, &[&data]).0, data.len());
        assert_eq!(a.tx().reach(), size.bytes());
    }
}

#[test]
fn a_ring_that_has_grown_all_the_way_asks_for_nothing() {
    let (a, _b) = pair();
    while a.tx().reach() < RING {
        let before = a.tx().reach();
        a.tx().grow();
        assert_eq!(a.tx().reach(), 2 * before);
    }
    a.tx().grow();
    assert_eq!(a.tx().reach(), RING);
    write(a.tx(), false, &[&[1; RING - 1]]);
    assert_eq!(a.tx().fitting(usize::MAX), usize::MAX);
}

#[test]
fn short_rings_are_there_from_the_beginning() {
    let (a, _b) = pair_of(Size::LEAST);
    assert_eq!(a.tx().fitting(usize::MAX), usize::MAX);
}

#[test]
fn a_connection_that_rested_begins_anew() {
    let (a, b) = pair();
    write(a.tx(), false, &[&[1; RING]]);
    read(&b, RING);
    assert_eq!(a.tx().reach(), RING);
    a.tx().release_unused();
    assert_eq!(a.tx().reach(), FIRST);
    assert_eq!(a.tx().fitting(RING), FIRST);
}

#[test]
fn a_stream_that_has_carried_much_asks_for_nothing() {
    let (a, b) = pair();
    let data = vec![1; FIRST];
    for _ in 0..LONG / FIRST as u64 {
        assert_eq!(a.tx().reach(), FIRST);
        write(a.tx(), false, &[&data]);
        read(&b, FIRST);
    }
    assert_eq!(a.tx().reach(), RING);
}

/// Asked for where the first lies, it begins at the start if that has been taken.
#[test]
fn what_follows_a_short_answer_is_no_longer_than_what_there_is() {
    let (a, b) = pair();
    write(a.tx(), false, &[&[1]]);
    assert_eq!(a.tx().fitting(RING), FIRST);
    read(&b, 1);
    assert_eq!(a.tx().fitting(RING), FIRST);
}
