use std::fmt;

use serde::Serialize;

use crate::error::Error;

/// What carries the bytes between a server and its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Way {
    /// Kernel TCP, which the others are compared with.
    Tcp,
    /// A Unix stream socket.
    Unix,
    /// TCP's calls, with both ends under sovia.
    Sovia,
    /// With only the server under sovia.
    ServerOnly,
    /// With only the client under sovia.
    ClientOnly,
    /// Both ends under sovia, and somebody who runs `sovia stat` again and again.
    Watched,
    /// Shared memory through UCX's own test program.
    Ucx,
    /// Shared memory through libfabric's own test program.
    Libfabric,
}

impl Way {
    pub(super) const ALL: [Self; 8] = [
        Self::Tcp,
        Self::Unix,
        Self::Sovia,
        Self::Watched,
        Self::ServerOnly,
        Self::ClientOnly,
        Self::Ucx,
        Self::Libfabric,
    ];

    /// Whether this end runs under sovia.
    pub(super) fn has(self, end: End) -> bool {
        match self {
            Self::Tcp | Self::Unix | Self::Ucx | Self::Libfabric => false,
            Self::Sovia | Self::Watched => true,
            Self::ServerOnly => end == End::Server,
            Self::ClientOnly => end == End::Client,
        }
    }

    /// Whether it is another project's program, and not a way for ours.
    pub(super) fn is_peer(self) -> bool {
        matches!(self, Self::Ucx | Self::Libfabric)
    }

    /// Whether it is what we answer for, and is to be judged.
    pub(super) fn is_ours(self) -> bool {
        self.has(End::Server) || self.has(End::Client)
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Unix => "Unix",
            Self::Sovia => "sovia",
            Self::ServerOnly => "server only",
            Self::ClientOnly => "client only",
            Self::Watched => "with stat",
            Self::Ucx => "UCX",
            Self::Libfabric => "libfabric",
        }
    }

    /// Adds to an error which way it happened.
    pub(super) fn blamed(self) -> impl FnOnce(Error) -> Error {
        move |error| Error::Under {
            way: self,
            source: Box::new(error),
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "over TCP",
            Self::Unix => "over a Unix socket",
            Self::Sovia => "with both ends under sovia",
            Self::ServerOnly => "with the server under sovia",
            Self::ClientOnly => "with the client under sovia",
            Self::Watched => "with sovia stat running",
            Self::Ucx => "with UCX",
            Self::Libfabric => "with libfabric",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Server,
    Client,
}
