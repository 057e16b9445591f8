//! Lists of operations against what a byte stream does.

use std::collections::VecDeque;

use proptest::prelude::*;
use proto::packet::{Settings, State};

use crate::rig::Pair;

#[derive(Debug, Clone)]
enum Act {
    Send(usize, u8),
    Urge(usize),
    Deliver(usize),
    Read(usize),
    Close(usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let end = 0..2usize;
    let act = prop_oneof![
        8 => (end.clone(), 1..=64u8).prop_map(|(end, len)| Act::Send(end, len)),
        1 => end.clone().prop_map(Act::Urge),
        8 => end.clone().prop_map(Act::Deliver),
        6 => end.clone().prop_map(Act::Read),
        1 => end.prop_map(Act::Close),
    ];
    prop::collection::vec(act, 0..400)
}

fn settings() -> impl Strategy<Value = Settings> {
    let windowed = (1..=40u32)
        .prop_flat_map(|window| (Just(window), 1..=window))
        .prop_map(|(window, threshold)| Settings::new(window, threshold, 64).expect("in bounds"));
    let without = Just(Settings::without_window(64).expect("in bounds"));
    prop_oneof![4 => windowed, 1 => without]
}

fn carry_out(act: &Act, pair: &mut Pair, model: &mut [Vec<u8>; 2], counter: &mut u8) {
    match *act {
        Act::Send(from, len) => {
            let next = |_| {
                *counter = counter.wrapping_add(1);
                *counter
            };
            let bytes: Vec<u8> = (0..len).map(next).collect();
            // The rig fails if the peer has no descriptor.
            if pair.send(from, &bytes) {
                model[1 - from].extend(bytes);
            }
        }
        Act::Urge(from) => {
            *counter = counter.wrapping_add(1);
            if pair.urge(from, *counter) {
                model[1 - from].push(*counter);
            }
        }
        Act::Deliver(to) => {
            pair.deliver(to).unwrap();
        }
        Act::Read(at) => {
            pair.read(at);
        }
        Act::Close(at) => {
            pair.close(at);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn two_ends_are_a_byte_stream_and_no_packet_lacks_a_descriptor(
        ours in settings(),
        theirs in settings(),
        acts in acts(),
    ) {
        let mut pair = Pair::new([ours, theirs]);
        let mut model: [Vec<u8>; 2] = Default::default();
        let mut counter = 0u8;
        for act in acts {
            carry_out(&act, &mut pair, &mut model, &mut counter);
        }
        // Then both close, and read until there is nothing more: the end comes behind the last byte, and both are closed.
        for at in [0, 1] {
            pair.close(at);
        }
        loop {
            pair.deliver_all();
            if ![0, 1].map(|at| pair.read(at)).contains(&true) {
                break;
            }
        }
        pair.deliver_all();
        prop_assert_eq!(pair.states(), [State::Closed; 2]);
        for (end, model) in pair.ends.iter().zip(model) {
            prop_assert!(end.ended && end.inbox.is_empty());
            prop_assert_eq!(&end.taken, &model);
        }
    }

    #[test]
    fn an_end_that_is_handed_over_leaves_nothing_in_packets(
        ours in settings(),
        theirs in settings(),
        before in acts(),
        after in acts(),
    ) {
        let mut pair = Pair::new([ours, theirs]);
        let mut model: [Vec<u8>; 2] = Default::default();
        let mut counter = 0;
        for act in before {
            carry_out(&act, &mut pair, &mut model, &mut counter);
        }
        let mut is_said = pair.hand_over(0);
        for act in after {
            carry_out(&act, &mut pair, &mut model, &mut counter);
            is_said |= pair.hand_over(0);
        }
        loop {
            pair.deliver_all();
            let read = [0, 1].map(|at| pair.read(at)).contains(&true);
            let said = pair.hand_over(0);
            is_said |= said;
            if !read && !said {
                break;
            }
        }
        let is_over = pair.states() == [State::Closed; 2];
        prop_assert!(is_said || is_over);
        for (end, model) in pair.ends.iter().zip(model) {
            prop_assert!(end.inbox.is_empty() && end.talk.window() == 0);
            prop_assert!(is_over || (end.talk.is_moved() && !end.is_asked));
            prop_assert_eq!(&end.taken, &model);
        }
    }

    #[test]
    fn a_reader_that_goes_on_reading_never_stops_a_sender(settings in settings(), packets in 1..300usize) {
        let mut pair = Pair::woken(settings);
        let mut waiting: VecDeque<u8> = (0..packets).map(|n| n as u8).collect();
        let mut idle = 0;
        while let Some(&byte) = waiting.front() {
            if pair.send(0, &[byte]) {
                waiting.pop_front();
                idle = 0;
                continue;
            }
            idle += 1;
            prop_assert!(idle < 3, "nothing moves");
            pair.deliver_all();
            while pair.read(1) {}
            pair.deliver_all();
        }
    }
}
