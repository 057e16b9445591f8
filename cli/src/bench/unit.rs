use serde::Serialize;

use super::spread::Spread;
use crate::netpipe::table::significant;

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Unit {
    /// 1 GB is 10⁹ bytes.
    GigabytesPerSecond,
    /// Of 1,024 bytes.
    Kilobytes,
    Microseconds,
    /// Of one CPU.
    Percent,
    PerSecond,
    /// Of one.
    Share,
}

impl Unit {
    /// As it stands on an axis.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::GigabytesPerSecond => "GB/s",
            Self::Kilobytes => "kB",
            Self::Microseconds => "µs",
            Self::Percent => "% of a CPU",
            Self::PerSecond => "a second",
            Self::Share => "of one",
        }
    }

    /// Whether more of it is better.
    pub(super) fn grows(self) -> bool {
        matches!(
            self,
            Self::GigabytesPerSecond | Self::PerSecond | Self::Share
        )
    }

    /// The better end of `runs`; not a number if there are none.
    pub(crate) fn best(self, runs: &[f64]) -> f64 {
        let better = if self.grows() { f64::max } else { f64::min };
        runs.iter().copied().fold(f64::NAN, better)
    }

    /// How many times better than `base` it is. What is next to nothing on both sides has no ratio.
    pub(crate) fn gain(self, base: f64, figure: f64) -> Option<f64> {
        // A run that was too short to be timed says nothing.
        if !base.is_finite() || !figure.is_finite() {
            return None;
        }
        let gain = match self {
            Self::GigabytesPerSecond | Self::PerSecond => figure / base,
            Self::Microseconds => base / figure,
            Self::Kilobytes | Self::Percent | Self::Share => return None,
        };
        gain.is_finite().then_some(gain)
    }

    /// The same for each of the rounds, which were taken in turn.
    pub(super) fn gains(self, base: &[f64], runs: &[f64]) -> Option<Spread> {
        let gains = base.iter().zip(runs);
        Spread::of(gains.filter_map(|(base, run)| self.gain(*base, *run)))
    }

    /// A round number, without zeros that say nothing.
    pub(super) fn short(self, figure: f64) -> String {
        match self {
            Self::GigabytesPerSecond => format!("{figure} GB/s"),
            Self::Kilobytes => format!("{figure} kB"),
            Self::Microseconds => format!("{figure} µs"),
            Self::Percent => format!("{figure} %"),
            Self::PerSecond => format!("{figure} /s"),
            Self::Share => format!("{} %", 100.0 * figure),
        }
    }

    pub(crate) fn text(self, figure: f64) -> String {
        if !figure.is_finite() {
            return "-".to_owned();
        }
        match self {
            Self::GigabytesPerSecond => format!("{} GB/s", significant(figure)),
            Self::Kilobytes => format!("{figure:.1} kB"),
            Self::Microseconds => format!("{} µs", significant(figure)),
            Self::Percent => format!("{figure:.1} %"),
            Self::Share => format!("{:.1} %", 100.0 * figure),
            Self::PerSecond if figure >= 1e6 => format!("{} M/s", significant(figure / 1e6)),
            Self::PerSecond if figure >= 1e3 => format!("{} k/s", significant(figure / 1e3)),
            Self::PerSecond => format!("{} /s", significant(figure)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_is_less_time_and_more_of_the_rest() {
        let runs = [2.0, 1.0, 4.0];
        assert_eq!(Unit::Microseconds.best(&runs), 1.0);
        assert_eq!(Unit::PerSecond.best(&runs), 4.0);
        assert_eq!(Unit::Microseconds.gain(54.0, 0.25), Some(216.0));
        assert_eq!(Unit::GigabytesPerSecond.gain(4.0, 14.0), Some(3.5));
        assert_eq!(Unit::PerSecond.gain(0.0, 14.0), None);
        assert_eq!(Unit::PerSecond.gain(f64::INFINITY, 14.0), None);
        assert_eq!(Unit::Percent.gain(1.0, 1.0), None);
        assert!(Unit::PerSecond.best(&[]).is_nan());
    }

    #[test]
    fn figures_are_short() {
        assert_eq!(Unit::PerSecond.text(2_714_000.0), "2.71 M/s");
        assert_eq!(Unit::PerSecond.text(18_100.0), "18.1 k/s");
        assert_eq!(Unit::PerSecond.text(9.0), "9.00 /s");
        assert_eq!(Unit::Microseconds.text(0.2512), "0.251 µs");
        assert_eq!(Unit::Percent.text(f64::NAN), "-");
    }
}
