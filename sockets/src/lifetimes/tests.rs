use proptest::prelude::*;

use super::*;

/// Where the next one leaves after so many of those.
fn after(connections: &[(usize, u32, u64)]) -> Level {
    let mut regrets = Regrets::NONE;
    for &(times, turns, bytes) in connections {
        let costs = Level::ALL.map(|level| cost_us(level, turns, bytes));
        for _ in 0..times {
            regrets = regrets.with(costs);
        }
    }
    regrets.least()
}

#[test]
fn nothing_is_known_of_the_first() {
    assert_eq!(after(&[]), Level::USUAL);
    assert_eq!(level(Kind::new(true, 80)), Level::USUAL);
}

#[test]
fn those_that_last_leave_soon() {
    assert_eq!(after(&[(1, 100_000, 0)]), Level::USUAL, "one is chance");
    assert_eq!(after(&[(2, 100_000, 0)]), Level::SOON);
    assert_eq!(after(&[(8, 200, 0)]), Level::SOON);
    assert_eq!(after(&[(8, 2, 145 << 20)]), Level::SOON);
}

#[test]
fn those_that_end_in_vain_leave_late() {
    assert_eq!(after(&[(8, 50, 4000)]), Level::LATE);
    assert_eq!(after(&[(8, 2, 1_200_000)]), Level::LATE);
    // Neither does it cost them anything where they never came so far.
    assert_ne!(after(&[(8, 12, 4000)]), Level::SOON);
}

#[test]
fn what_was_learned_is_learned_anew() {
    assert_eq!(after(&[(100, 50, 4000), (8, 100_000, 0)]), Level::SOON);
    assert_ne!(after(&[(100, 100_000, 0), (64, 12, 4000)]), Level::SOON);
}

#[test]
fn ports_do_not_learn_from_each_other() {
    let [web, mail] = [80, 25].map(|port| Kind::new(false, port));
    for _ in 0..8 {
        note(web, 100_000, 0);
    }
    assert_eq!(level(web), Level::SOON);
    assert_eq!(level(mail), Level::USUAL);
    assert_eq!(level(Kind::new(true, 80)), Level::USUAL, "nor ends");
}

#[test]
fn ports_that_the_kernel_gave_are_one() {
    assert_eq!(Kind::new(true, 40_000), Kind::new(true, 50_000));
    assert_ne!(Kind::new(true, 40_000), Kind::new(true, 20_000));
}

proptest! {
    #[test]
    fn any_word_is_read_and_written(
        word: u64, opens: bool, port: u16, turns: u32, bytes: u64,
    ) {
        let kind = Kind::new(opens, port);
        prop_assert_eq!(Kind::from_number(kind.number()), kind);
        prop_assert_ne!(kind.number(), 0);
        let costs = Level::ALL.map(|level| cost_us(level, turns, bytes));
        let tagged = word & !u64::from(TAG) | u64::from(kind.number());
        for word in [word, tagged] {
            let now = Regrets::of(kind, word).with(costs);
            prop_assert_eq!(Regrets::of(kind, now.word(kind)), now);
        }
    }

    #[test]
    fn who_never_leaves_pays_for_tcp_alone(turns in 0u32..512, bytes in 0u64..16 << 20) {
        let all = cost_us(Level { turns: u32::MAX, bytes: u64::MAX }, turns, bytes);
        prop_assert_eq!(cost_us(Level::LATE, turns, bytes), all);
    }
}
