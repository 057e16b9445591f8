//! Figure 8.

use proto::packet::{Kind, Settings, State, Trigger, transition, transitions};

use crate::rig::Pair;

#[test]
fn the_diagram() {
    insta::assert_snapshot!(transitions());
}

#[test]
fn one_end_closes_and_the_other_goes_on_sending() {
    let mut pair = Pair::woken(Settings::default());
    assert!(pair.close(0));
    assert_eq!(pair.states(), [State::FinWait1, State::Normal]);
    pair.deliver_all();
    assert_eq!(pair.states(), [State::FinWait2, State::CloseWait]);
    assert!(pair.ends[1].ended && !pair.send(0, b"no more"));
    assert!(pair.send(1, b"last words"));
    pair.deliver_all();
    assert!(pair.read(0));
    assert_eq!(pair.ends[0].taken, b"last words");
    assert!(pair.close(1));
    assert_eq!(pair.states(), [State::FinWait2, State::LastAck]);
    pair.deliver_all();
    assert_eq!(pair.states(), [State::Closed; 2]);
    assert_eq!(
        pair.ends[1].sent,
        [Kind::Wakeup, Kind::FinAck, Kind::Data, Kind::Fin]
    );
}

#[test]
fn both_close_at_once() {
    let mut pair = Pair::woken(Settings::default());
    assert!(pair.close(0) && pair.close(1));
    assert_eq!(pair.states(), [State::FinWait1; 2]);
    pair.deliver(0).unwrap();
    assert_eq!(pair.states()[0], State::Closing);
    pair.deliver_all();
    assert_eq!(pair.states(), [State::Closed; 2]);
}

#[test]
fn a_connection_closes_once() {
    let mut pair = Pair::woken(Settings::default());
    assert!(pair.close(0) && !pair.close(0));
    pair.deliver_all();
    assert!(!pair.close(0));
}

#[test]
fn whatever_state_a_lost_vi_closes_it() {
    let states = [
        State::Normal,
        State::FinWait1,
        State::FinWait2,
        State::Closing,
        State::CloseWait,
        State::LastAck,
    ];
    for state in states {
        assert_eq!(
            transition(state, Trigger::Lost),
            Some((State::Closed, None)),
            "{state}"
        );
    }
    assert_eq!(transition(State::Closed, Trigger::Lost), None);
}

#[test]
fn a_listener_makes_connections_and_closes_quietly() {
    assert_eq!(
        transition(State::Closed, Trigger::Listen),
        Some((State::Listen, None))
    );
    assert_eq!(
        transition(State::Listen, Trigger::Accept),
        Some((State::Normal, Some(Kind::Wakeup)))
    );
    assert_eq!(
        transition(State::Listen, Trigger::Close),
        Some((State::Closed, None))
    );
    assert_eq!(
        transition(State::Closed, Trigger::Connect),
        Some((State::Normal, Some(Kind::Wakeup)))
    );
}
