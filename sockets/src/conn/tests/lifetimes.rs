//! When connections leave TCP where the user says nothing.

use super::*;
use crate::lifetimes::{self, Kind, Level};

const USUAL: u32 = Level::USUAL.turns;
const LATE: u32 = Level::LATE.turns;

/// Both ends' of pairs, whose ports the kernel gives.
fn levels() -> [Level; 2] {
    [true, false].map(|opens| lifetimes::level(Kind::new(opens, u16::MAX)))
}

fn end_after(turns: u32) {
    let pair = Pair::connected();
    pair.exchange(0, turns);
    pair.exchange(1, turns);
    pair.close();
}

#[test]
fn the_first_leaves_as_is_usual() {
    let pair = Pair::connected();
    pair.exchange(0, USUAL - 2);
    assert_eq!(pair.states(), [State::Young; 2]);
    pair.exchange(0, 2);
    assert_eq!(pair.states(), [State::Meeting, State::Young]);
    pair.close();
}

#[test]
fn after_some_that_ended_in_vain_it_leaves_late() {
    (0..8).for_each(|_| end_after(USUAL + 2));
    assert_eq!(levels(), [Level::LATE; 2]);
    let pair = Pair::connected();
    pair.exchange(0, LATE - 2);
    assert_eq!(pair.states(), [State::Young; 2]);
    pair.exchange(0, 2);
    assert_eq!(pair.states(), [State::Meeting, State::Young]);
    pair.meet_after(LATE);
    pair.close();
}

#[test]
fn those_that_ended_early_teach_nothing() {
    (0..100).for_each(|_| end_after(Level::SOON.turns - 1));
    assert_eq!(levels(), [Level::USUAL; 2]);
}

/// As where a new client, which knows nothing, meets a server that has learned otherwise.
#[test]
fn whoever_comes_too_early_comes_again() {
    let pair = Pair::connected();
    let [early, late] = pair.conns;
    pair.exchange(0, USUAL);
    early.learn_from_nobody(&pair);
    assert_eq!(early.path(), Path::Young);
    assert_eq!(late.path(), Path::Young);
    pair.exchange(0, LATE - USUAL - 2);
    assert_eq!(early.path(), Path::Young);
    pair.meet_after(LATE);
    pair.close();
}

#[test]
fn whoever_has_come_at_the_last_level_stays_on_tcp() {
    let pair = Pair::connected();
    let [conn, _] = pair.conns;
    pair.exchange(0, USUAL);
    conn.learn_from_nobody(&pair);
    pair.exchange(0, LATE - USUAL);
    assert_eq!(conn.path(), Path::Meeting);
    conn.learn_from_nobody(&pair);
    assert_eq!(conn.path(), Path::Tcp(Reason::NobodyCame));
    pair.close();
}

#[test]
fn a_child_teaches_nothing_of_what_its_parent_has() {
    for _ in 0..8 {
        let pair = Pair::connected();
        pair.exchange(0, USUAL + 2);
        pair.exchange(1, USUAL + 2);
        for conn in pair.conns {
            conn.forget_lifetime();
        }
        pair.close();
    }
    assert_eq!(levels(), [Level::USUAL; 2]);
}

/// As in a server that forks for what has been asked for by then.
#[test]
fn in_a_child_too_others_make_it_wait_for_its_level_or_for_eight_times_the_least() {
    let pair = Pair::connected();
    let [conn, _] = pair.conns;
    pair.exchange(0, Level::SOON.turns + 2);
    conn.forget_lifetime();
    conn.looks.store(1, Ordering::Relaxed);
    let enough = 8 * Level::SOON.turns;
    pair.exchange(0, enough - Level::SOON.turns - 4);
    assert_eq!(conn.path(), Path::Young);
    pair.exchange(0, 2);
    assert_eq!(conn.path(), Path::Meeting);
    pair.close();
}

impl Conn {
    /// Looks at its meeting until it gives up.
    fn learn_from_nobody(&self, pair: &Pair) {
        if let Some(meeting) = self.meeting.lock().as_mut() {
            meeting.tire();
        }
        while self.is_meeting() {
            self.schedule.hurry();
            pair.exchange(0, 1);
        }
    }
}
