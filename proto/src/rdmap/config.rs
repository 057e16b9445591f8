//! How an engine works.

use std::time::Duration;

use crate::mpa::{MarkerCheck, ULPDU_LEN_MAX};

/// How an engine works; what the two ends need not agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Longest ULPDU to send: [`mulpdu`](crate::mpa::mulpdu) towards hardware, the format's limit
    /// towards software.
    pub mulpdu: u16,
    /// Messages are cut into segments of one length, instead of the longest and a rest.
    pub even_segments: bool,
    /// A segment with this much payload is written by itself, so that the peer can take it while the next is made.
    pub alone_min: u32,
    /// Octets of the buffer for the socket; at least the longest FPDU.
    pub receive_buffer: usize,
    /// No more FPDUs are made while this many octets wait to be written.
    pub send_window: u64,
    /// Whether received markers are looked at.
    pub marker_check: MarkerCheck,
    /// RFC 7306: immediate data and atomics.
    pub extensions: bool,
    /// What to do with a message for which there is no receive.
    pub no_buffer: NoBuffer,
    /// Segments with this many octets of payload or fewer are copied: one piece is written in less time
    /// than three.
    pub inline_max: u32,
    /// Whether what a peer reads is copied before it is sent.
    pub read_copy: ReadCopy,
    /// When payload may be placed before its FPDU is whole.
    pub place_ahead: PlaceAhead,
    /// How many octets of a segment must be missing for that; fewer are copied in less time than a
    /// read of their own takes.
    pub ahead_min: u16,
    /// Octets of later segments that may be read along, to where they [should belong](super::Engine::guess); 0 for none.
    pub guess_max: u32,
    /// How long an orderly end may take.
    pub drain_limit: Duration,
}

impl Default for Config {
    /// Towards software; two seconds for the end.
    fn default() -> Self {
        Self {
            mulpdu: ULPDU_LEN_MAX,
            even_segments: false,
            alone_min: u32::MAX,
            receive_buffer: 128 << 10,
            send_window: 256 << 10,
            marker_check: MarkerCheck::On,
            extensions: false,
            no_buffer: NoBuffer::Terminate,
            inline_max: 0,
            read_copy: ReadCopy::WithCrc,
            place_ahead: PlaceAhead::WithoutCrc,
            ahead_min: 1024,
            guess_max: 0,
            drain_limit: Duration::from_secs(2),
        }
    }
}

/// What becomes of a message that has no receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoBuffer {
    /// It ends the connection (1/2/02), as RFC 5041 has it.
    Terminate,
    /// It waits, and everything behind it, until a receive is posted.
    Wait,
}

/// When the payload of a Read Response is copied.
///
/// Its owner and other peers may write to a region at any time. If they do between the checksum and
/// the system call, the peer that reads sees a wrong checksum, and ends the connection. (What is
/// *sent* belongs to the engine until it has completed, and is never copied.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadCopy {
    /// With checksums. Without, nobody can tell.
    WithCrc,
    /// Never: for regions that nobody writes while they are read.
    Never,
}

/// When [`Engine::ahead`](super::Engine::ahead) says anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceAhead {
    /// Never.
    Never,
    /// When there is no checksum that could be wrong.
    WithoutCrc,
    /// Where nobody sees it before its message is complete: what is sent, what this end reads, and what is written [unseen](crate::ddp::Memory::unseen).
    /// What else the peer writes is placed when it has been verified, for it may overwrite what somebody reads.
    Unseen,
    /// Always. RFC 5044 section 6 does not allow it; a wrong checksum still ends the connection
    /// before anything is delivered, but what was placed stays.
    Always,
}
