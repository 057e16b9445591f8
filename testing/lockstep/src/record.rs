//! A session as it is kept in a file: `pace usual` if so it is, the steps a line each, and comments behind `#`.

use std::fmt;
use std::str::FromStr;

use crate::actor::Pace;
use crate::step::{NoStep, Step};

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When its connections leave TCP.
    pub pace: Pace,
    /// What is done.
    pub steps: Vec<Step>,
}

impl Record {
    /// Of steps.
    pub fn of(pace: Pace, steps: &[Step]) -> Self {
        Self {
            pace,
            steps: steps.to_vec(),
        }
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pace == Pace::Usual {
            writeln!(f, "{USUAL}")?;
        }
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

impl FromStr for Record {
    type Err = NoStep;

    fn from_str(text: &str) -> Result<Self, NoStep> {
        let lines = || {
            text.lines()
                .map(str::trim)
                .filter(|line| !line.is_empty() && !line.starts_with('#'))
        };
        let steps = lines().filter(|line| *line != USUAL).map(str::parse);
        Ok(Self {
            pace: if lines().any(|line| line == USUAL) {
                Pace::Usual
            } else {
                Pace::AtOnce
            },
            steps: steps.collect::<Result<_, _>>()?,
        })
    }
}

const USUAL: &str = "pace usual";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let steps = [Step::new("A", "connect 1 B.0"), Step::new("C1", "kill")];
        for pace in [Pace::Usual, Pace::AtOnce] {
            let record = Record::of(pace, &steps);
            assert_eq!(
                format!("# why\n\n{record}")
                    .parse::<Record>()
                    .expect("a record"),
                record
            );
        }
        assert!("A connects".parse::<Record>().is_err());
    }
}
