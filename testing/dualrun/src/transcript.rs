//! What an end of a program did, as text, and how two such texts differ.

use std::fmt::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// What is left of an end when it is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// What it said, then what it or the library complained about, then how it ended.
    pub lines: Vec<String>,
}

impl Transcript {
    /// From standard output, standard error and exit status.
    pub fn new(said: &[u8], complaints: &[u8], status: Option<ExitStatus>) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut lines: Vec<String> = text(said).lines().map(str::to_owned).collect();
        lines.extend(
            text(complaints)
                .lines()
                .map(|line| format!("stderr: {line}")),
        );
        lines.push(match status {
            None => "killed by the harness".to_owned(),
            Some(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("exit {code}"),
                (None, Some(signal)) => format!("signal {signal}"),
                (None, None) => "neither exit nor signal".to_owned(),
            },
        });
        Self { lines }
    }

    /// What a program prints when an expectation about its own set-up fails (`die` in `dual.h`).
    pub fn died(&self) -> Option<&str> {
        self.lines
            .iter()
            .find(|line| line.starts_with("stderr: dual: "))
            .map(String::as_str)
    }

    /// `None` if they are the same, else a text with both: common lines, then `-` for the reference and `+` for the other.
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self == other {
            return None;
        }
        let (a, b) = (&self.lines, &other.lines);
        let before = a.iter().zip(b).take_while(|(x, y)| x == y).count();
        let left = a.len().min(b.len()) - before;
        let after = (a.iter().rev().zip(b.iter().rev()))
            .take(left)
            .take_while(|(x, y)| x == y)
            .count();
        let mut text = String::new();
        let mut put = |mark: &str, lines: &[String]| {
            for line in lines {
                // A String takes whatever is written to it.
                let _ = writeln!(text, "    {mark} {line}");
            }
        };
        put(" ", a.get(..before).unwrap_or_default());
        put("-", a.get(before..a.len() - after).unwrap_or_default());
        put("+", b.get(before..b.len() - after).unwrap_or_default());
        put(" ", a.get(a.len() - after..).unwrap_or_default());
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::Transcript;

    fn transcript(lines: &[&str]) -> Transcript {
        Transcript {
            lines: lines.iter().map(|&line| line.to_owned()).collect(),
        }
    }

    #[test]
    fn the_same_does_not_differ() {
        let a = transcript(&["x", "y"]);
        assert_eq!(a.difference(&a.clone()), None);
    }

    #[test]
    fn what_differs_stands_between_what_does_not() {
        let a = transcript(&["x", "y", "y", "z"]);
        let b = transcript(&["x", "y", "z"]);
        assert_eq!(
            a.difference(&b).as_deref(),
            Some("      x\n      y\n    - y\n      z\n")
        );
        assert_eq!(
            b.difference(&transcript(&[])).as_deref(),
            Some("    - x\n    - y\n    - z\n")
        );
    }
}
