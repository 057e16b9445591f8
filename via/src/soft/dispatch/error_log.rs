//! What becomes of errors that nobody handles: lines on standard error.

use std::time::{Duration, Instant};

use crate::AsyncError;

/// Lines for errors, no more in a second than a person reads: a peer can cause a million.
#[derive(Default)]
pub(super) struct ErrorLog {
    /// When the second began, and the lines since.
    second: Option<(Instant, u32)>,
    left_out: u64,
}

impl ErrorLog {
    /// What to say of `error` now, and of those left out before it.
    pub(super) fn line(&mut self, error: &AsyncError, now: Instant) -> Option<String> {
        let lines = match self.second {
            Some((began, lines)) if now.saturating_duration_since(began) < SECOND => lines,
            _ => {
                self.second = Some((now, 0));
                0
            }
        };
        if lines >= LINES_MAX {
            self.leave_out();
            return None;
        }
        if let Some((_, lines)) = &mut self.second {
            *lines += 1;
        }
        let before = match std::mem::take(&mut self.left_out) {
            0 => String::new(),
            count => format!("via: {count} asynchronous errors left out\n"),
        };
        Some(format!("{before}via: asynchronous error: {error:?}"))
    }

    /// One more that is not told.
    pub(super) fn leave_out(&mut self) {
        self.left_out += 1;
    }
}

const SECOND: Duration = Duration::from_secs(1);
const LINES_MAX: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;
    use crate::provider::ViId;

    #[test]
    fn a_flood_is_a_hundred_lines_a_second() {
        let (mut log, began) = (ErrorLog::default(), Instant::now());
        let error = AsyncError::of_vi(ErrorCode::RdmawProt, ViId(7));
        let lines = (0..100_000).filter_map(|_| log.line(&error, began));
        assert_eq!(lines.count(), 100);
        let next = log.line(&error, began + SECOND).expect("a new second");
        assert!(
            next.starts_with("via: 99900 asynchronous errors left out\nvia: asynchronous error: ")
        );
        let next = log.line(&error, began + SECOND).expect("a second line");
        assert!(next.starts_with("via: asynchronous error: "), "{next}");
    }
}
