//! Reads and atomics: those that we have asked, and those that we are asked.

use std::collections::VecDeque;

use super::body::{AtomicResponse, ReadRequest, Remote};
use super::code::RdmapError;
use super::terminate::Offender;
use crate::ddp::{DdpError, Tagged};
use crate::mpa::Place;

use super::code::Code;

/// What the peer waits for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Response {
    /// Octets of ours.
    Read {
        request: ReadRequest,
        sent: u32,
        /// The segment that asked, in case its source goes.
        asked: Offender,
    },
    /// A number of ours, as it was.
    Atomic(AtomicResponse),
}

/// What we wait for, in the order of asking.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    asked: VecDeque<Asked>,
}

/// A Read or an atomic on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// The number of the work.
    pub(super) seq: u64,
    pub(super) what: AskedFor,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum AskedFor {
    Read {
        into: Place,
        sink: Remote,
        len: u32,
        come: u32,
    },
    Atomic {
        id: u32,
    },
}

impl Outstanding {
    pub(super) fn len(&self) -> usize {
        self.asked.len()
    }

    pub(super) fn push(&mut self, seq: u64, what: AskedFor) {
        self.asked.push_back(Asked { seq, what });
    }

    pub(super) fn clear(&mut self) {
        self.asked.clear();
    }

    /// Where a segment of a Read Response belongs, which must continue the first Read.
    pub(super) fn spot(&self, header: &Tagged, payload_len: u32) -> Result<Place, Code> {
        let Some(Asked {
            what:
                AskedFor::Read {
                    into,
                    sink,
                    len,
                    come,
                },
            ..
        }) = self.asked.front()
        else {
            return Err(RdmapError::UnexpectedOpcode.into());
        };
        let left = len - come;
        // Without octets, STag and offset mean nothing.
        if payload_len > 0 {
            if header.stag != sink.stag {
                return Err(DdpError::InvalidStag.into());
            }
            if header.to != sink.advanced(*come).to || payload_len > left {
                return Err(DdpError::Bounds.into());
            }
        }
        if header.last && payload_len < left {
            return Err(RdmapError::Unspecified.into());
        }
        Ok(into.advanced(u64::from(*come)))
    }

    /// Octets that are still to come of the first Read.
    pub(super) fn left(&self) -> u32 {
        match self.asked.front() {
            Some(Asked {
                what: AskedFor::Read { len, come, .. },
                ..
            }) => len - come,
            _ => 0,
        }
    }

    /// A segment is in its spot; the work that it completes.
    pub(super) fn handle_placed(&mut self, header: &Tagged, payload_len: u32) -> Option<u64> {
        let Asked { seq, what } = self.asked.front_mut()?;
        let seq = *seq;
        if let AskedFor::Read { come, .. } = what {
            *come += payload_len;
        }
        if header.last {
            self.asked.pop_front();
        }
        header.last.then_some(seq)
    }

    /// The work that an Atomic Response completes, which must be the first.
    pub(super) fn answered(&mut self, response: &AtomicResponse) -> Result<u64, RdmapError> {
        match self.asked.front() {
            Some(Asked {
                seq,
                what: AskedFor::Atomic { id },
            }) if *id == response.id => {
                let seq = *seq;
                self.asked.pop_front();
                Ok(seq)
            }
            Some(Asked {
                what: AskedFor::Atomic { .. },
                ..
            }) => Err(RdmapError::Unspecified),
            _ => Err(RdmapError::UnexpectedOpcode),
        }
    }
}
