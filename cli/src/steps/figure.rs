use serde::{Deserialize, Serialize};

use crate::report::{Curve, Curves, Plot, Scale};

/// One figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) what: What,
    pub(crate) bytes: usize,
    /// Nanoseconds one way, for one message of a stream, or for a call.
    pub(crate) ns: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum What {
    /// Half of the time there and back.
    Latency,
    /// A row of messages, and one answer.
    Bandwidth,
    /// There and back, in different lengths.
    Call,
}

impl What {
    /// As it stands in a paper's figure: µs, or MB/s.
    pub(crate) fn value(self, bytes: usize, ns: f64) -> f64 {
        match self {
            Self::Latency | Self::Call => ns / 1e3,
            Self::Bandwidth => bytes as f64 / ns * 1e3,
        }
    }

    /// A curve for each way, of its name and its figures.
    pub(crate) fn plot<'f>(self, ways: impl Iterator<Item = (&'f str, &'f [Figure])>) -> Plot {
        let curves = ways.map(|(name, figures)| {
            let figures = figures.iter().filter(|figure| figure.what == self);
            let point = |figure: &Figure| {
                let value = self.value(figure.bytes, figure.ns);
                (figure.bytes as f64, value)
            };
            Curve {
                name: name.to_owned(),
                points: figures.map(point).collect(),
            }
        });
        let unit = match self {
            Self::Latency | Self::Call => "µs one way",
            Self::Bandwidth => "MB/s",
        };
        Plot::Curves(Curves {
            x: ("message size".to_owned(), Scale::Bytes),
            y: (unit.to_owned(), Scale::Logarithmic),
            curves: curves.collect(),
        })
    }
}

/// Nanoseconds of one of `figures`.
pub(crate) fn ns(figures: &[Figure], what: What, bytes: usize) -> Option<f64> {
    let mut figures = figures.iter();
    let figure = figures.find(|figure| (figure.what, figure.bytes) == (what, bytes))?;
    Some(figure.ns)
}

/// Takes over what is better in the same figures of another run.
pub(crate) fn keep_best(best: &mut [Figure], figures: &[Figure]) {
    for (best, figure) in best.iter_mut().zip(figures) {
        best.ns = best.ns.min(figure.ns);
    }
}
