//! The stream as it is handed out, written and kept.

use std::collections::VecDeque;

use super::run::Run;
use super::{Framer, Piece};
use crate::mpa::source::{Source, SourceLost};

impl Framer {
    /// What is to be written, in order.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        self.runs.iter().map(|run| match *run {
            Run::Own { start, len } => {
                let from = (start - self.own_start) as usize;
                let octets = self.own.get(from..from + len as usize);
                Piece::Own(octets.unwrap_or_default())
            }
            Run::Payload { place, len } => Piece::Payload {
                place,
                len: len as u32,
            },
        })
    }

    /// The socket took the first `n` octets.
    pub fn handle_written(&mut self, n: u64) {
        let mut left = n.min(self.queued - self.written);
        self.written += left;
        while left > 0 {
            let Some(run) = self.runs.front_mut() else {
                break;
            };
            if run.len() > left {
                *run = run.without_first(left);
                break;
            }
            left -= run.len();
            self.runs.pop_front();
        }
        while let Some(end) = self.ends.pop_front_if(|end| *end <= self.written) {
            self.complete = end;
        }
        self.forget_own();
    }

    fn forget_own(&mut self) {
        let first = self.runs.iter().find_map(|run| match *run {
            Run::Own { start, .. } => Some(start),
            Run::Payload { .. } => None,
        });
        let done = first.map_or(self.own.len(), |start| (start - self.own_start) as usize);
        // Moving what is left costs less than what was written since.
        if done == self.own.len() || done > self.own.len() / 2 {
            self.own.drain(..done);
            self.own_start += done as u64;
        }
        if self.own.is_empty() && self.own.capacity() > OWN_KEPT_MAX {
            self.own = Vec::new();
        }
    }

    /// Forgets the FPDUs of which no octet has been written.
    pub fn drop_unbegun(&mut self) {
        let begun = self.written > self.complete;
        let end = self.ends.front().filter(|_| begun);
        self.truncate(end.copied().unwrap_or(self.written));
    }

    /// Copies what waits, so that it can be written after its memory has gone.
    ///
    /// # Errors
    /// [`SourceLost`] if it has; then nothing has changed.
    pub fn keep(&mut self, memory: &impl Source) -> Result<(), SourceLost> {
        if !self
            .runs
            .iter()
            .any(|run| matches!(run, Run::Payload { .. }))
        {
            return Ok(());
        }
        let mut own = Vec::new();
        for piece in self.pieces() {
            match piece {
                Piece::Own(octets) => own.extend_from_slice(octets),
                Piece::Payload { place, len } => {
                    let at = own.len();
                    own.resize(at + len as usize, 0);
                    memory.copy(place, own.get_mut(at..).unwrap_or_default())?;
                }
            }
        }
        let run = Run::Own {
            start: self.own_start,
            len: own.len() as u64,
        };
        self.own = own;
        self.runs = VecDeque::from([run]);
        Ok(())
    }

    pub(super) fn truncate(&mut self, end: u64) {
        while self.queued > end {
            let Some(run) = self.runs.pop_back() else {
                break;
            };
            let excess = (self.queued - end).min(run.len());
            self.queued -= excess;
            if matches!(run, Run::Own { .. }) {
                self.own.truncate(self.own.len() - excess as usize);
            }
            if run.len() > excess {
                self.runs.push_back(run.with_len(run.len() - excess));
            }
        }
        while self.ends.back().is_some_and(|last| *last > end) {
            self.ends.pop_back();
        }
    }

    /// Octets written since full operation began.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Octets that wait to be written.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.queued - self.written
    }

    /// Octets appended since full operation began: where the next FPDU begins, or its marker.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.queued
    }

    /// Whether it puts markers in, and so copies all payload.
    #[must_use]
    pub fn has_markers(&self) -> bool {
        self.markers
    }

    /// How many pieces wait.
    #[must_use]
    pub fn pieces_len(&self) -> usize {
        self.runs.len()
    }

    /// How many pieces an FPDU takes at most.
    #[must_use]
    pub fn pieces_of_fpdu(&self) -> usize {
        if self.markers { 1 } else { 3 }
    }
}

/// Room for octets of our own that a stream keeps when nothing waits.
const OWN_KEPT_MAX: usize = 256 << 10;
