use super::*;

#[test]
fn a_thread_gets_its_own_turn_again_and_nobody_else_does() {
    let turns = Turns::new();
    assert!(turns.take(0).is_none());
    turns.replace(Some(7)).expect("nobody has a turn");
    let outer = turns.take(0).expect("a value");
    assert_eq!(*turns.take(0).expect("nested"), 7);
    assert_eq!(*turns.take(1).expect("the other side"), 7);
    assert_eq!(turns.replace(None), Err(None));
    thread::scope(|scope| {
        let other = scope.spawn(|| turns.take(0).map(|turn| *turn));
        drop(outer);
        assert_eq!(other.join().expect("no panic"), Some(7));
    });
    assert_eq!(turns.replace(None), Ok(Some(7)));
}

#[test]
fn who_has_one_side_may_want_the_other_beside_one_who_wants_both() {
    let turns = Turns::new();
    turns.replace(Some(())).expect("nobody has a turn");
    thread::scope(|scope| {
        for side in [0, 1] {
            let turns = &turns;
            scope.spawn(move || {
                for _ in 0..20_000 {
                    let one = turns.take(side).expect("a value");
                    // Two who cross in both directions would wait for each other; one direction at a time is what handlers do.
                    let other = (side == 1).then(|| turns.take(0).expect("a value"));
                    drop((other, one));
                }
            });
        }
        for _ in 0..2_000 {
            turns.replace(Some(())).expect("no turn of this thread");
        }
    });
}

#[test]
fn a_value_goes_only_between_turns() {
    let turns = Turns::new();
    turns
        .replace(Some(Box::new(0u64)))
        .expect("nobody has a turn");
    thread::scope(|scope| {
        for side in 0..2 {
            let turns = &turns;
            scope.spawn(move || while turns.take(side).is_some_and(|turn| **turn < 1000) {});
        }
        for n in 1..=1000 {
            turns
                .replace(Some(Box::new(n)))
                .expect("no turn of this thread");
        }
    });
}
