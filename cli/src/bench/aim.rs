//! What a figure ought to be, and whether it is.

use serde::Serialize;

use super::spread::Spread;
use super::unit::Unit;
use crate::netpipe::table::significant;

/// What was set as a target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Aim {
    /// So many times as good as kernel TCP, at least.
    Gain(f64),
    /// So good by itself, by whether the two CPUs are near to each other or far.
    Figure { near: f64, far: f64 },
    /// So much more than over kernel TCP, at most.
    Beyond(f64),
}

/// Whether a target is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    Met,
    Missed,
    /// The rounds differ by too much to say.
    Unsure,
}

impl Aim {
    /// Of several rounds, taken in turn with kernel TCP's. `None` where nothing was measured to judge by.
    pub(super) fn judge(
        self,
        unit: Unit,
        near: bool,
        base: &[f64],
        runs: &[f64],
    ) -> Option<Verdict> {
        let own = || Spread::of(runs.iter().copied());
        let (spread, bound, up) = match self {
            Self::Gain(least) => (unit.gains(base, runs)?, least, true),
            Self::Figure { near: bound, .. } if near => (own()?, bound, unit.grows()),
            Self::Figure { far: bound, .. } => (own()?, bound, unit.grows()),
            Self::Beyond(most) => (self.more(base, runs)?, most, false),
        };
        let [worst, best] = if up {
            [spread.low, spread.high]
        } else {
            [-spread.high, -spread.low]
        };
        let bound = if up { bound } else { -bound };
        Some(if worst >= bound {
            Verdict::Met
        } else if best < bound {
            Verdict::Missed
        } else {
            Verdict::Unsure
        })
    }

    /// How much more than over kernel TCP, where that is what has a bound.
    pub(super) fn more(self, base: &[f64], runs: &[f64]) -> Option<Spread> {
        let rounds = runs.iter().zip(base).map(|(run, base)| run - base);
        matches!(self, Self::Beyond(_))
            .then(|| Spread::of(rounds))
            .flatten()
    }

    /// Whether it is another one where the CPUs are far from each other.
    pub(super) fn depends_on_place(self) -> bool {
        matches!(self, Self::Figure { near, far } if near != far)
    }

    pub(super) fn text(self, unit: Unit) -> String {
        let sign = if unit.grows() { '≥' } else { '≤' };
        match self {
            Self::Gain(least) => format!("≥ {least} ×"),
            Self::Figure { near, far } if near == far => format!("{sign} {}", unit.short(near)),
            Self::Figure { near, far } => {
                format!("{sign} {}, far {}", unit.short(near), unit.short(far))
            }
            Self::Beyond(most) => format!("≤ {} more", unit.short(most)),
        }
    }
}

impl Verdict {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::Unsure => UNSURE_MARK,
        }
    }

    /// Of two that both must hold.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Missed, _) | (_, Self::Missed) => Self::Missed,
            (Self::Unsure, _) | (_, Self::Unsure) => Self::Unsure,
            (Self::Met, Self::Met) => Self::Met,
        }
    }
}

/// Beside what the noise does not allow to say.
pub(super) const UNSURE_MARK: &str = "~";

/// A gain as it is printed, marked where it may be a loss as well.
pub(super) fn gain(spread: Spread) -> String {
    let mark = if spread.covers(1.0) { UNSURE_MARK } else { "" };
    format!("{mark}{} ×", significant(spread.median))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROS: Unit = Unit::Microseconds;

    #[test]
    fn a_gain_is_judged_by_all_rounds() {
        let base = [50.0, 60.0, 50.0];
        let judged = |runs: [f64; 3], least| Aim::Gain(least).judge(MICROS, true, &base, &runs);
        assert_eq!(judged([5.0, 6.0, 5.0], 10.0), Some(Verdict::Met));
        assert_eq!(judged([5.0, 6.0, 5.0], 11.0), Some(Verdict::Missed));
        assert_eq!(judged([4.0, 6.0, 5.0], 11.0), Some(Verdict::Unsure));
        assert_eq!(judged([f64::NAN; 3], 1.0), None);
    }

    #[test]
    fn a_figure_is_judged_by_where_the_cpus_are() {
        let aim = Aim::Figure {
            near: 0.3,
            far: 1.0,
        };
        let judged = |near| aim.judge(MICROS, near, &[], &[0.5, 0.6]);
        assert_eq!(judged(true), Some(Verdict::Missed));
        assert_eq!(judged(false), Some(Verdict::Met));
        let rate = Aim::Figure {
            near: 13.0,
            far: 13.0,
        };
        let judged = rate.judge(Unit::GigabytesPerSecond, false, &[], &[12.0, 14.0]);
        assert_eq!(judged, Some(Verdict::Unsure));
    }

    #[test]
    fn more_than_tcp_is_a_difference() {
        let judged = |most| Aim::Beyond(most).judge(Unit::Kilobytes, true, &[2.0], &[17.0]);
        assert_eq!(judged(16.0), Some(Verdict::Met));
        assert_eq!(judged(14.0), Some(Verdict::Missed));
        let rounds = [&[2.0, 2.0, 3.0], &[17.0, 18.0, 22.0]];
        let judged = |most| Aim::Beyond(most).judge(Unit::Kilobytes, true, rounds[0], rounds[1]);
        assert_eq!(judged(16.0), Some(Verdict::Unsure));
        assert_eq!(judged(19.0), Some(Verdict::Met));
    }

    #[test]
    fn targets_are_short() {
        assert_eq!(Aim::Gain(0.98).text(MICROS), "≥ 0.98 ×");
        let figure = Aim::Figure {
            near: 0.3,
            far: 1.0,
        };
        assert_eq!(figure.text(MICROS), "≤ 0.3 µs, far 1 µs");
        assert_eq!(Aim::Beyond(16.0).text(Unit::Kilobytes), "≤ 16 kB more");
    }
}
