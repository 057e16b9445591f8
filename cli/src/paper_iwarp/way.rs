//! What carries the bytes.

use serde::{Deserialize, Serialize};

/// What carries the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Way {
    /// kernel TCP, blocking calls
    Tcp,
    /// the same program under libsovia.so, whose connections never ask for anything
    Asked,
    /// kernel TCP, polling
    Spinning,
    /// the same program under libsovia.so
    AskedSpinning,
    /// extended sockets over iWARP: posted sends and receives, with checksums
    Extended,
    /// without
    ExtendedPlain,
    /// with checksums, and markers both ways
    ExtendedMarkers,
    /// the same sockets' plain calls, send and recv, with checksums
    Stream,
    /// without
    StreamPlain,
    /// a VI over iWARP, polling, with checksums
    Crc,
    /// without
    Plain,
    /// with checksums, and markers both ways
    CrcMarkers,
    /// with markers only
    Markers,
    /// TCP's calls with the pieces of records and a checksum's pass at each end, and nothing else: a bound
    Bare,
    /// with markers
    BareMarkers,
    /// Linux siw, by perftest; only with --siw
    Siw,
}

impl Way {
    /// What can be measured everywhere.
    pub(super) const ALL: [Self; 15] = [
        Self::Tcp,
        Self::Asked,
        Self::Spinning,
        Self::AskedSpinning,
        Self::Extended,
        Self::ExtendedPlain,
        Self::ExtendedMarkers,
        Self::Stream,
        Self::StreamPlain,
        Self::Crc,
        Self::Plain,
        Self::CrcMarkers,
        Self::Markers,
        Self::Bare,
        Self::BareMarkers,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Asked => "under libsovia.so",
            Self::Spinning => "TCP polling",
            Self::AskedSpinning => "polling, under libsovia.so",
            Self::Extended => "extended sockets, CRC",
            Self::ExtendedPlain => "extended sockets",
            Self::ExtendedMarkers => "extended sockets, CRC, markers",
            Self::Stream => "extended, send and recv, CRC",
            Self::StreamPlain => "extended, send and recv",
            Self::Crc => "VI, CRC",
            Self::Plain => "VI",
            Self::CrcMarkers => "VI, CRC, markers",
            Self::Markers => "VI, markers",
            Self::Bare => "bare calls, CRC",
            Self::BareMarkers => "bare calls, CRC, markers",
            Self::Siw => "Linux siw",
        }
    }

    /// The command line's word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Asked => "asked",
            Self::Spinning => "spinning",
            Self::AskedSpinning => "asked-spinning",
            Self::Extended => "extended",
            Self::ExtendedPlain => "extended-plain",
            Self::ExtendedMarkers => "extended-markers",
            Self::Stream => "stream",
            Self::StreamPlain => "stream-plain",
            Self::Crc => "crc",
            Self::Plain => "plain",
            Self::CrcMarkers => "crc-markers",
            Self::Markers => "markers",
            Self::Bare => "bare",
            Self::BareMarkers => "bare-markers",
            Self::Siw => "siw",
        }
    }

    pub(super) fn crc(self) -> bool {
        matches!(
            self,
            Self::Extended | Self::ExtendedMarkers | Self::Stream | Self::Crc | Self::CrcMarkers
        )
    }

    pub(super) fn markers(self) -> bool {
        matches!(
            self,
            Self::ExtendedMarkers | Self::CrcMarkers | Self::Markers
        )
    }

    /// TCP with the same way of waiting.
    pub(super) fn beside(self) -> Self {
        match self {
            Self::Tcp
            | Self::Asked
            | Self::Extended
            | Self::ExtendedPlain
            | Self::ExtendedMarkers
            | Self::Stream
            | Self::StreamPlain => Self::Tcp,
            _ => Self::Spinning,
        }
    }

    /// A program with `libsovia.so` in front of its calls.
    pub(super) fn is_under(self) -> bool {
        matches!(self, Self::Asked | Self::AskedSpinning)
    }

    pub(super) fn is_tcp(self) -> bool {
        matches!(self, Self::Tcp | Self::Spinning)
    }
}
