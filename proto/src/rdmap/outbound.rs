//! What goes out: works and responses, a segment at a time.

mod responses;
mod segment;

use std::collections::VecDeque;

use super::body::Remote;
use super::config::{Config, ReadCopy};
use super::response::{Outstanding, Response};
use super::terminate::{Terminate, Violation};
use super::work::{Completion, Flushed, Operation, Work, WorkId};
use crate::ddp::{Memory, Msn, Stag};
use crate::mpa::{Framer, Place, Rtr, Source, SourceLost, Terms};

/// The sending half of a stream, down to the octets.
#[derive(Debug)]
pub(super) struct Outbound {
    framer: Framer,
    entries: VecDeque<Entry>,
    /// The number of the first entry.
    first: u64,
    /// The number of the entry that is sent next, or is being sent.
    next: u64,
    outstanding: Outstanding,
    ord: u16,
    mulpdu: u16,
    inline_max: u32,
    even_segments: bool,
    alone_min: u32,
    copies_reads: bool,
    send_msn: Msn,
    request_msn: Msn,
    answer_msn: Msn,
    /// What is being sent: nothing comes between the segments of a message.
    current: Option<Turn>,
    /// Who is next if both have something.
    turn: Turn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Work,
    Response,
}

/// A work on its way.
#[derive(Debug)]
struct Entry {
    /// `None` for what its user does not know of.
    id: Option<WorkId>,
    operation: Operation,
    fence: bool,
    stage: Stage,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    /// So many octets are in segments.
    Waiting(u32),
    /// The last segment ends there in the stream.
    Sent(u64),
    /// The peer has answered, an atomic with this.
    Answered(u64),
}

impl Outbound {
    pub(super) fn new(terms: &Terms, config: &Config) -> Self {
        let mut outbound = Self {
            framer: Framer::new(terms.send_markers, terms.crc),
            entries: VecDeque::new(),
            first: 0,
            next: 0,
            outstanding: Outstanding::default(),
            ord: terms.depths.ord,
            mulpdu: config.mulpdu,
            inline_max: config.inline_max,
            even_segments: config.even_segments,
            alone_min: config.alone_min,
            copies_reads: terms.crc && config.read_copy == ReadCopy::WithCrc,
            send_msn: Msn::FIRST,
            request_msn: Msn::FIRST,
            answer_msn: Msn::FIRST,
            current: None,
            turn: Turn::Work,
        };
        if let Some(rtr) = terms.first_message() {
            outbound.push(None, first_message(rtr), false);
        }
        outbound
    }

    pub(super) fn set_mulpdu(&mut self, mulpdu: u16) {
        self.mulpdu = mulpdu;
    }

    pub(super) fn set_alone_min(&mut self, octets: u32) {
        self.alone_min = octets;
    }

    pub(super) fn post(&mut self, work: Work) {
        self.push(Some(work.id), work.operation, work.fence);
    }

    pub(super) fn reads(&self) -> bool {
        self.ord > 0
    }

    fn push(&mut self, id: Option<WorkId>, operation: Operation, fence: bool) {
        self.entries.push_back(Entry {
            id,
            operation,
            fence,
            stage: Stage::Waiting(0),
        });
    }

    pub(super) fn framer(&self) -> &Framer {
        &self.framer
    }

    pub(super) fn outstanding(&self) -> &Outstanding {
        &self.outstanding
    }

    /// Whether no work waits for anything, and every octet has been written.
    pub(super) fn is_settled(&self) -> bool {
        self.entries.is_empty() && self.framer.waiting() == 0
    }

    fn entry(&mut self, seq: u64) -> Option<&mut Entry> {
        let index = usize::try_from(seq.checked_sub(self.first)?).ok()?;
        self.entries.get_mut(index)
    }

    /// Makes FPDUs while there is something to say and less than `window` octets wait.
    pub(super) fn fill(
        &mut self,
        responses: &mut VecDeque<Response>,
        memory: &impl Memory,
        window: u64,
    ) -> Result<(), Violation> {
        let alone = u64::from(self.alone_min);
        let mut longest = 0;
        while self.has_room(window) && longest < alone {
            let both = self.current.is_none() && self.has_work() && !responses.is_empty();
            let turn = match self.current {
                Some(turn) => turn,
                None if both => self.turn,
                None if self.has_work() => Turn::Work,
                None if !responses.is_empty() => Turn::Response,
                None => break,
            };
            let before = self.framer.waiting();
            if self.copies(turn) && before >= COPIED_MAX {
                break;
            }
            let ended = match turn {
                Turn::Work => self.frame_work(memory)?,
                Turn::Response => self.frame_response(responses, memory)?,
            };
            longest = self.framer.waiting() - before;
            self.current = (!ended).then_some(turn);
            self.turn = match turn {
                Turn::Work => Turn::Response,
                Turn::Response => Turn::Work,
            };
        }
        Ok(())
    }

    fn has_room(&self, window: u64) -> bool {
        let waiting = self.framer.waiting();
        let pieces = self.framer.pieces_len() + self.framer.pieces_of_fpdu();
        waiting == 0 || (waiting < window && pieces <= PIECES_MAX)
    }

    /// Whether its payload is copied, and so takes memory of ours until it is written.
    fn copies(&self, turn: Turn) -> bool {
        self.framer.has_markers() || (turn == Turn::Response && self.copies_reads)
    }

    /// Whether the next work may be sent now.
    fn has_work(&self) -> bool {
        let index = usize::try_from(self.next - self.first).unwrap_or(usize::MAX);
        self.entries.get(index).is_some_and(|entry| {
            let asked = self.outstanding.len();
            let fenced = entry.fence && asked > 0;
            let too_deep = entry.operation.is_answered() && asked >= usize::from(self.ord.max(1));
            !fenced && !too_deep
        })
    }

    /// A Terminate, behind the FPDU that is being written and instead of those that are not.
    pub(super) fn terminate(&mut self, terminate: &Terminate) {
        self.framer.drop_unbegun();
        let framed = self.framer.frame(&terminate.encode(), None, &NoPayload);
        debug_assert!(framed.is_ok(), "it has no payload to lose");
    }

    /// Nobody keeps the memory for the FPDU whose end comes before a Terminate: it is copied, if it is still there.
    pub(super) fn keep(&mut self, memory: &impl Memory) {
        let _torn = self.framer.keep(memory);
    }

    pub(super) fn handle_written(&mut self, n: u64) {
        self.framer.handle_written(n);
    }

    /// The next work that is done; in their order, whatever is done first.
    pub(super) fn poll_completion(&mut self) -> Option<Completion> {
        loop {
            let written = self.framer.written();
            let entry = self.entries.front()?;
            let value = match entry.stage {
                Stage::Sent(end) if end <= written && !entry.operation.is_answered() => {
                    entry.operation.payload_len()
                }
                Stage::Answered(value) => value,
                Stage::Waiting(_) | Stage::Sent(_) => return None,
            };
            let id = entry.id;
            self.entries.pop_front();
            self.first += 1;
            if let Some(id) = id {
                return Some(Completion {
                    id,
                    outcome: Ok(value),
                });
            }
        }
    }

    /// Ends what is left.
    pub(super) fn flush(&mut self) -> impl Iterator<Item = Completion> + '_ {
        self.outstanding.clear();
        self.current = None;
        self.first += self.entries.len() as u64;
        self.next = self.first;
        self.entries.drain(..).filter_map(|entry| {
            entry.id.map(|id| Completion {
                id,
                outcome: Err(Flushed),
            })
        })
    }
}

/// What was posted is no longer than this.
fn len_of(len: u64) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// Tells atomics apart that are outstanding together.
fn request_id(seq: u64) -> u32 {
    seq as u32
}

/// STag 1, since Chelsio's adapters refuse 0 even without octets.
fn first_message(rtr: Rtr) -> Operation {
    let nothing = Place::new(0);
    let remote = Remote {
        stag: Stag(1),
        to: 0,
    };
    match rtr {
        Rtr::Write => Operation::Write {
            from: nothing,
            len: 0,
            to: remote,
        },
        Rtr::Read => Operation::Read {
            into: nothing,
            len: 0,
            sink: remote,
            source: remote,
        },
        Rtr::Send => Operation::Send {
            from: nothing,
            len: 0,
            solicited: false,
            invalidate: None,
        },
    }
}

/// For what has no payload.
struct NoPayload;

impl Source for NoPayload {
    fn show(&self, _: Place, _: u32, _: impl FnMut(&[u8])) -> Result<(), SourceLost> {
        Err(SourceLost)
    }
}

/// Octets that wait before no more is copied: a peer that does not take them has no more of our memory than this and a segment.
const COPIED_MAX: u64 = 128 << 10;
/// One system call takes 1024 pieces (`IOV_MAX`).
const PIECES_MAX: usize = 1024;
