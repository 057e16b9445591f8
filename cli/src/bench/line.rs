use serde::Serialize;

use super::aim::Aim;
use super::pair::{Method, Service};
use super::peer::Peer;
use super::program::App;
use super::redis::Load;
use super::registry::{Need, Row};
use super::unit::Unit;
use super::way::Way;

/// One measurement: a line of the report, or for some kinds several.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(super) row: Row,
    pub(super) title: String,
    /// Where it stands on a curve, if on any.
    pub(super) point: Option<Point>,
    pub(super) unit: Unit,
    pub(super) ways: Vec<Way>,
    /// Who has no Unix sockets, where they are asked for.
    pub(super) not_unix: Option<&'static str>,
    pub(super) kind: Kind,
    pub(super) aim: Aim,
}

/// What lines differ by, where they differ by nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Point {
    /// Bytes a message.
    Size(usize),
    /// Messages there and back before a connection ends.
    RoundTrips(usize),
    /// Bytes that a connection brings before it ends.
    Received(usize),
}

impl Point {
    /// What stands along the axis; those of one are on one curve.
    pub(super) fn axis(self) -> &'static str {
        match self {
            Self::Size(_) => "message size",
            Self::RoundTrips(_) => "messages of 64 B there and back in a connection",
            Self::Received(_) => "bytes that a connection brings",
        }
    }

    pub(super) fn value(self) -> usize {
        match self {
            Self::Size(value) | Self::RoundTrips(value) | Self::Received(value) => value,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// So many pairs at once, on all CPUs.
    Crowd { pairs: usize },
    /// Connections that are not used, beside one that is.
    Idle { connections: usize },
    /// As many connections, used in turn, as many more.
    Many { few: usize, many: usize },
    /// Two of the plain programs; the peers' own programs where they do the same.
    Plain(Service, Method),
    /// redis and its benchmark.
    Redis(Load),
    /// A real server and a client that measures.
    Program(App),
    /// Others want the CPUs meanwhile.
    Beside(Company, Hogged),
    /// Two of the plain programs, with connection after connection.
    Short(Service),
    /// Somebody looks at the connection meanwhile.
    Watched,
}

/// Who else wants the CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Company {
    /// On each a process that computes for ever.
    Hogs,
    /// Two for each that compute for some milliseconds and sleep for some, as compilers do, wherever the kernel lets them.
    Passers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hogged {
    Plain(Service),
    Redis(Load),
}

impl Kind {
    /// Bytes of a round that one unit of throughput counts.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Plain(service, _) => service.size,
            Self::Program(app) if app.counts_bytes() => 1,
            _ => 0,
        }
    }

    /// Whether connections live long enough to be upgraded.
    pub(super) fn lasts(self) -> bool {
        if let Self::Short(_) = self {
            return false;
        }
        let (Self::Plain(service, _) | Self::Beside(_, Hogged::Plain(service))) = self else {
            return true;
        };
        service != SHORT
    }
}

impl Line {
    pub(super) fn new(row: Row, title: impl Into<String>, unit: Unit, kind: Kind) -> Self {
        Self {
            row,
            title: title.into(),
            point: None,
            unit,
            ways: vec![Way::Tcp, Way::Sovia],
            not_unix: None,
            kind,
            aim: Aim::Gain(NEVER_SLOWER),
        }
    }

    /// Two of the plain programs, and the median of short blocks.
    pub(super) fn plain(row: Row, title: &str, unit: Unit, service: Service) -> Self {
        Self::new(row, title, unit, Kind::Plain(service, Method::Median))
    }

    pub(super) fn by(mut self, ways: &[Way]) -> Self {
        self.ways = ways.to_vec();
        self
    }

    pub(super) fn aiming(mut self, aim: Aim) -> Self {
        self.aim = aim;
        self
    }

    /// A Unix socket beside TCP, or who cannot use one.
    pub(super) fn beside_unix(mut self) -> Self {
        if self.ways.first() != Some(&Way::Tcp) || self.ways.contains(&Way::Unix) {
            return self;
        }
        self.not_unix = match self.kind {
            Kind::Program(app) => app.not_unix(),
            _ => None,
        };
        if self.not_unix.is_none() {
            self.ways.insert(1, Way::Unix);
        }
        self
    }

    /// What must be installed.
    pub(super) fn needs(&self) -> &'static [Need] {
        match self.kind {
            Kind::Redis(_) | Kind::Beside(_, Hogged::Redis(_)) => REDIS,
            Kind::Program(app) => app.needs(),
            _ => &[],
        }
    }

    /// What else keeps it from being measured here.
    pub(super) fn obstacle(&self) -> Option<String> {
        match self.kind {
            Kind::Program(app) => app.obstacle(),
            _ => None,
        }
    }

    /// What a peer's program does that is the same.
    pub(super) fn of_peer(&self, way: Way) -> Option<Peer> {
        match self.point? {
            Point::Size(size) => Peer::of(way, self.unit, size),
            Point::RoundTrips(_) | Point::Received(_) => None,
        }
    }
}

pub(super) const PINGPONG: Service = Service::of("echo-server", "echo-client", 64);
pub(super) const EPOLL: Service = Service::of("echo-epoll-server", "echo-epoll-client", 64);
pub(super) const SHORT: Service = Service::of("echo-server", "short-client", 64);

pub(super) const fn stream(size: usize) -> Service {
    Service::of("sink-server", "stream-client", size)
}

/// The share of kernel TCP's speed that nothing is allowed to stay under.
const NEVER_SLOWER: f64 = 0.98;

const REDIS: &[Need] = &[
    Need {
        program: "redis-server",
        package: "redis-server",
    },
    Need {
        program: "redis-benchmark",
        package: "redis-tools",
    },
];
