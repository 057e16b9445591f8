//! From ULPDUs to octets, without touching the payload.

use std::collections::VecDeque;

mod apart;
mod around;
mod run;
mod stream;

use apart::Apart;
pub use apart::ULPDU_APART_MAX;
use around::Around;
use run::Run;

use super::crc::{Crc, crc_of};
use super::fpdu::{CRC_LEN, MARKER_INTERVAL, pad_len};
use super::source::{Place, Source, SourceLost};

/// A run of the stream, for an `iovec`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Octets of ours: lengths, headers, markers, pad and CRC.
    Own(&'a [u8]),
    /// Payload, in the driver's memory.
    Payload {
        /// Where it begins.
        place: Place,
        /// Its octets.
        len: u32,
    },
}

/// The sending direction: takes ULPDUs, hands out the stream as [`Piece`]s.
///
/// Its few octets of its own lie in one buffer; payload is only named, unless there are markers in it. A driver maps
/// [`pieces`](Self::pieces) to `iovec`s, writes what the socket takes, and says how much
/// [that was](Self::handle_written).
#[derive(Debug)]
pub struct Framer {
    markers: bool,
    crc: bool,
    own: Vec<u8>,
    /// Where the first octet of `own` stands among all that ever were.
    own_start: u64,
    runs: VecDeque<Run>,
    written: u64,
    queued: u64,
    /// Where the last FPDU ends that has been written completely.
    complete: u64,
    /// Where the others end.
    ends: VecDeque<u64>,
    apart: Apart,
    around: Around,
}

impl Framer {
    /// At the beginning of full operation: with `markers` if the peer asked for them, with `crc` if
    /// either end did.
    #[must_use]
    pub fn new(markers: bool, crc: bool) -> Self {
        Self {
            markers,
            crc,
            own: Vec::new(),
            own_start: 0,
            runs: VecDeque::new(),
            written: 0,
            queued: 0,
            complete: 0,
            ends: VecDeque::new(),
            apart: Apart::default(),
            around: Around::default(),
        }
    }

    /// At stream position `at` instead of 0; for tests of what a long life brings.
    #[must_use]
    pub fn starting_at(self, at: u64) -> Self {
        Self {
            written: at,
            queued: at,
            complete: at,
            ..self
        }
    }

    /// Appends an FPDU around the ULPDU that is `head` and behind it `payload`, which must stay as
    /// it is until it has been written: the checksum is made now.
    ///
    /// At most 65535 octets in all, of which [`ULPDU_LEN_MAX`](super::ULPDU_LEN_MAX) is the
    /// caller's to observe; longer ones are refused as lost.
    ///
    /// # Errors
    /// [`SourceLost`] from the memory that the payload is in; then nothing has been appended.
    pub fn frame(
        &mut self,
        head: &[u8],
        payload: Option<(Place, u32)>,
        memory: &impl Source,
    ) -> Result<(), SourceLost> {
        self.frame_with(head, payload, memory, false)
    }

    /// As [`frame`](Self::frame), for payload that others may change meanwhile: takes a copy.
    ///
    /// # Errors
    /// As [`frame`](Self::frame).
    pub fn frame_copied(
        &mut self,
        head: &[u8],
        payload: Option<(Place, u32)>,
        memory: &impl Source,
    ) -> Result<(), SourceLost> {
        self.frame_with(head, payload, memory, true)
    }

    fn frame_with(
        &mut self,
        head: &[u8],
        payload: Option<(Place, u32)>,
        memory: &impl Source,
        copied: bool,
    ) -> Result<(), SourceLost> {
        let payload_len = payload.map_or(0, |(_, len)| len);
        let ulpdu_len = head.len() + payload_len as usize;
        let length = u16::try_from(ulpdu_len).map_err(|_| SourceLost)?;
        let before = self.queued;
        let begin = self.own.len();
        let mut start = None;
        self.own_octets(&mut start, &length.to_be_bytes());
        self.own_octets(&mut start, head);
        let mut crc = None;
        let appended = match payload {
            None => Ok(()),
            Some((place, len)) if self.markers => {
                self.marked_payload(&mut start, place, len, memory)
            }
            Some((place, len)) if copied => self.copied_payload(place, len, memory),
            Some((place, len)) => self.payload(&mut crc, begin, place, len, memory),
        };
        if appended.is_err() {
            self.truncate(before);
            return appended;
        }
        let pad = self.own.len();
        let zeros = [0; 3];
        let zeros = zeros.get(..pad_len(ulpdu_len)).unwrap_or(&zeros);
        self.own_octets(&mut start, zeros);
        self.marker_if_due(&mut start);
        let word = match crc {
            _ if !self.crc => [0; CRC_LEN],
            // All of it lies in one run.
            None => crc_of(self.own.get(begin..).unwrap_or_default()),
            Some(mut crc) => {
                crc.update(self.own.get(pad..).unwrap_or_default());
                crc.octets()
            }
        };
        self.append_own(&word);
        self.ends.push_back(self.queued);
        Ok(())
    }

    fn own_octets(&mut self, start: &mut Option<u64>, mut octets: &[u8]) {
        while !octets.is_empty() {
            self.marker_if_due(start);
            let room = self.until_marker(octets.len() as u64) as usize;
            let (run, rest) = octets.split_at_checked(room).unwrap_or((octets, &[]));
            self.append_own(run);
            octets = rest;
        }
    }

    fn payload(
        &mut self,
        crc: &mut Option<Crc>,
        begin: usize,
        place: Place,
        len: u32,
        memory: &impl Source,
    ) -> Result<(), SourceLost> {
        if self.crc {
            let crc = crc.insert(Crc::new());
            crc.update(self.own.get(begin..).unwrap_or_default());
            memory.digest(place, len, crc)?;
        }
        let len = u64::from(len);
        self.runs.push_back(Run::Payload { place, len });
        self.queued += len;
        Ok(())
    }

    fn copied_payload(
        &mut self,
        place: Place,
        len: u32,
        memory: &impl Source,
    ) -> Result<(), SourceLost> {
        let mut done = 0;
        while done < len {
            // A page that has just been zeroed is still in the cache when it is filled.
            let run = (len - done).min(PAGE);
            let at = self.own.len();
            self.own.resize(at + run as usize, 0);
            self.extend_last(at, run.into());
            let room = self.own.get_mut(at..).unwrap_or_default();
            memory.copy(place.advanced(done.into()), room)?;
            done += run;
        }
        Ok(())
    }

    /// Payload is copied between its markers: a system call that gathers pieces of 508 octets takes longer than that.
    fn marked_payload(
        &mut self,
        start: &mut Option<u64>,
        place: Place,
        len: u32,
        memory: &impl Source,
    ) -> Result<(), SourceLost> {
        let mut left = len as usize;
        memory.show(place, len, |octets| {
            let octets = octets.get(..left).unwrap_or(octets);
            left -= octets.len();
            self.own_octets(start, octets);
        })?;
        if left > 0 {
            return Err(SourceLost);
        }
        Ok(())
    }

    fn marker_if_due(&mut self, start: &mut Option<u64>) {
        if self.markers && self.queued.is_multiple_of(MARKER_INTERVAL) {
            let back = start.map_or(0, |start| self.queued - start);
            // An FPDU that spans more than 16 bits is refused by its length, before.
            self.append_own(&(back as u32).to_be_bytes());
        }
        start.get_or_insert(self.queued);
    }

    fn until_marker(&self, most: u64) -> u64 {
        if self.markers {
            most.min(MARKER_INTERVAL - self.queued % MARKER_INTERVAL)
        } else {
            most
        }
    }

    fn append_own(&mut self, octets: &[u8]) {
        if octets.is_empty() {
            return;
        }
        let at = self.own.len();
        self.own.extend_from_slice(octets);
        self.extend_last(at, octets.len() as u64);
    }

    /// `len` octets of ours were appended at `at`.
    fn extend_last(&mut self, at: usize, len: u64) {
        if let Some(Run::Own { len: last, .. }) = self.runs.back_mut() {
            *last += len;
        } else {
            let start = self.own_start + at as u64;
            self.runs.push_back(Run::Own { start, len });
        }
        self.queued += len;
    }
}

const PAGE: u32 = 4096;
