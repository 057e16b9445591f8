//! What happened, as lines of text.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A record of what happened, one line each, in the style of a capture. Clones share it.
#[derive(Debug, Clone)]
pub struct Trace {
    log: Arc<Mutex<Log>>,
}

#[derive(Debug)]
struct Log {
    lines: VecDeque<String>,
    max: usize,
    forgotten: u64,
}

impl Trace {
    /// Keeps the last `max` lines.
    #[must_use]
    pub fn new(max: usize) -> Self {
        let log = Log {
            lines: VecDeque::new(),
            max,
            forgotten: 0,
        };
        Self {
            log: Arc::new(Mutex::new(log)),
        }
    }

    /// All lines, oldest first.
    #[must_use]
    pub fn text(&self) -> String {
        self.to_string()
    }

    /// Forgets all lines.
    pub fn clear(&self) {
        let mut log = self.log();
        log.lines.clear();
        log.forgotten = 0;
    }

    pub(crate) fn note(&self, at: Duration, what: fmt::Arguments<'_>) {
        let mut log = self.log();
        if log.max == 0 {
            return;
        }
        if log.lines.len() == log.max {
            log.lines.pop_front();
            log.forgotten += 1;
        }
        log.lines.push_back(format!("{} {what}", Stamp(at)));
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let log = self.log();
        if log.forgotten > 0 {
            writeln!(f, "({} earlier lines)", log.forgotten)?;
        }
        log.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// A time since the beginning, in microseconds, as wide as a simulated second needs.
struct Stamp(Duration);

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.as_nanos();
        write!(f, "{:>7}.{:03}", ns / 1000, ns % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_lines_go_first() {
        let trace = Trace::new(2);
        for n in 0..3 {
            trace.note(Duration::from_nanos(n * 1_500), format_args!("line {n}"));
        }
        assert_eq!(
            trace.text(),
            "(1 earlier lines)\n      1.500 line 1\n      3.000 line 2\n"
        );
        trace.clear();
        assert_eq!(trace.text(), "");
    }
}
