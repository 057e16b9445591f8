use loom::{sync::Arc, thread};

use super::*;

#[test]
fn loom_a_side_is_one_threads_at_a_time() {
    loom::model(|| {
        let turns = Arc::new(Turns::new());
        turns
            .replace(Some(Alone::default()))
            .expect("nobody has a turn");
        let others = {
            let turns = turns.clone();
            thread::spawn(move || turns.take(0).expect("a value").act(0))
        };
        turns.take(0).expect("a value").act(0);
        turns.take(1).expect("a value").act(1);
        others.join().expect("no panic");
    });
}

#[test]
fn loom_a_value_goes_between_turns() {
    loom::model(|| {
        let turns = Arc::new(Turns::new());
        turns
            .replace(Some(Alone::default()))
            .expect("nobody has a turn");
        let user = {
            let turns = turns.clone();
            thread::spawn(move || {
                for side in [0, 1] {
                    if let Some(turn) = turns.take(side) {
                        turn.act(side);
                    }
                }
            })
        };
        let before = turns.replace(None).expect("no turn of this thread");
        // Nobody refers to it any more: loom sees to that as it is dropped.
        drop(before.expect("a value"));
        user.join().expect("no panic");
    });
}

#[test]
fn loom_two_who_want_both_get_them_beside_one_who_crosses() {
    loom::model(|| {
        let turns = Arc::new(Turns::new());
        turns
            .replace(Some(Alone::default()))
            .expect("nobody has a turn");
        let crosser = {
            let turns = turns.clone();
            thread::spawn(move || {
                let one = turns.take(0);
                let other = turns.take(1);
                drop((other, one));
            })
        };
        drop(turns.both().expect("no turn of this thread"));
        crosser.join().expect("no panic");
    });
}

/// What only one thread may touch, at each side.
#[derive(Debug, Default)]
struct Alone([UnsafeCell<u32>; 2]);

// SAFETY: `act` is called in a turn, and loom panics if that is not enough.
unsafe impl Sync for Alone {}
// SAFETY: as above.
unsafe impl Send for Alone {}

impl Alone {
    fn act(&self, side: usize) {
        // SAFETY: loom checks that nobody else does the same.
        self.0[side].with_mut(|value| unsafe { *value += 1 });
    }
}
