//! The four conditions, and TCP_NODELAY.

use std::time::Duration;

use proto::packet::{Combiner, Verdict};

const DELAY: Duration = Duration::from_millis(100);

fn combiner() -> Combiner {
    Combiner::new(Some(DELAY), 2048, 32768)
}

fn at(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn the_timer_runs_from_the_first_message_held() {
    let mut combiner = combiner();
    assert_eq!(combiner.due(), None);
    assert_eq!(combiner.offer(10, at(0)), Verdict::Append);
    assert_eq!(combiner.offer(10, at(60)), Verdict::Append);
    assert_eq!((combiner.held(), combiner.due()), (20, Some(at(100))));
    combiner.flushed();
    assert_eq!((combiner.held(), combiner.due()), (0, None));
}

#[test]
fn what_does_not_fit_sends_what_is_held() {
    let mut combiner = combiner();
    for _ in 0..16 {
        assert_eq!(combiner.offer(2048, at(0)), Verdict::Append);
    }
    assert_eq!(combiner.held(), 32768);
    assert_eq!(combiner.offer(1, at(5)), Verdict::FlushThenAppend);
    assert_eq!((combiner.held(), combiner.due()), (1, Some(at(105))));
}

#[test]
fn a_large_message_sends_what_is_held_and_goes_by_itself() {
    let mut combiner = combiner();
    assert_eq!(combiner.offer(2048, at(0)), Verdict::Append);
    assert_eq!(combiner.offer(2049, at(0)), Verdict::Send);
    combiner.flushed();
    assert_eq!(combiner.held(), 0);
}

#[test]
fn nodelay_holds_nothing() {
    let mut combiner = combiner();
    combiner.set_delay(None);
    assert_eq!(combiner.offer(1, at(0)), Verdict::Send);
    assert!(!combiner.is_on());
}

#[test]
fn a_small_mtu_bounds_what_is_held() {
    let mut combiner = Combiner::new(Some(DELAY), 2048, 100);
    assert_eq!(combiner.offer(100, at(0)), Verdict::Append);
    assert_eq!(combiner.offer(101, at(0)), Verdict::Send);
}
