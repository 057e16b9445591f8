//! What rounds that differ allow to say.

use serde::Serialize;

/// A median, and where the true one is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    /// The rounds between which the median of all rounds that there could be lies, with a confidence of 94 % or more, from
    /// five rounds on; of fewer, the least and the most.
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Spread {
    /// `None` without a round. Rounds that are not finite do not count.
    pub(crate) fn of(rounds: impl IntoIterator<Item = f64>) -> Option<Self> {
        let finite = rounds.into_iter().filter(|round| round.is_finite());
        let mut rounds: Vec<f64> = finite.collect();
        rounds.sort_by(f64::total_cmp);
        let last = rounds.len().checked_sub(1)?;
        let out = left_out(rounds.len());
        Some(Self {
            median: f64::midpoint(rounds[last / 2], rounds[rounds.len() / 2]),
            low: rounds[out],
            high: rounds[last - out],
        })
    }

    /// Whether nobody can say on which side of `value` it is.
    pub(crate) fn covers(&self, value: f64) -> bool {
        self.low < value && value < self.high
    }
}

/// How many rounds at each end may be left out: the median lies outside of what remains only if all of those fell on the same
/// side of it, as coins do.
fn left_out(rounds: usize) -> usize {
    let all = 2f64.powi(rounds as i32);
    let mut ways = 1.0;
    let mut outside = 0.0;
    for out in 0..rounds / 2 {
        outside += 2.0 * ways / all;
        if outside > DOUBT_MAX {
            return out.saturating_sub(1);
        }
        ways *= (rounds - out) as f64 / (out + 1) as f64;
    }
    (rounds / 2).saturating_sub(1)
}

const DOUBT_MAX: f64 = 0.065;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_rounds_are_left_out_as_a_sign_test_allows() {
        // n, and the order statistics of textbooks' tables.
        for (rounds, out) in [
            (1, 0),
            (2, 0),
            (3, 0),
            (5, 0),
            (7, 0),
            (9, 1),
            (12, 2),
            (20, 5),
        ] {
            assert_eq!(left_out(rounds), out, "{rounds}");
        }
    }

    #[test]
    fn the_median_and_its_bounds() {
        let spread = Spread::of([5.0, 1.0, 2.0, f64::NAN, 9.0]).expect("rounds");
        assert_eq!((spread.median, spread.low, spread.high), (3.5, 1.0, 9.0));
        let nine = Spread::of((1..=9).map(f64::from)).expect("rounds");
        assert_eq!((nine.median, nine.low, nine.high), (5.0, 2.0, 8.0));
        assert_eq!(Spread::of([]), None);
        assert!(nine.covers(3.0) && !nine.covers(8.0) && !nine.covers(20.0));
    }
}
