use serde::Serialize;

use super::pair::{Method, Service};
use super::place::Ends;
use super::redis::Load;
use super::unit::Unit;

/// A row of the table of aims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Row {
    /// 64 bytes there and back, blocking send and recv
    Pingpong,
    /// the same through epoll, level-triggered
    Epoll,
    /// 64 kB writes one way
    Stream,
    /// 64 B writes one way, TCP_NODELAY
    Small,
    /// redis-benchmark GET: 1 client; 50 clients; 50 clients, 16 requests in a pipeline
    Redis,
    /// only one of the two programs under sovia
    OneEnd,
    /// a process on each CPU that computes for ever
    Hog,
    /// four and eight pairs of programs on two CPUs
    Pairs,
    /// short connections, one after the other
    Connects,
    /// 1,000 idle connections beside the one that is used
    Idle,
}

/// One measurement: a line of the report, or for some kinds several.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(super) row: Row,
    pub(super) title: String,
    pub(super) unit: Unit,
    pub(super) ends: Vec<Ends>,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// So many pairs at once, on all CPUs.
    Crowd {
        pairs: usize,
    },
    /// Connections that are not used, beside one that is.
    Idle {
        connections: usize,
    },
    Plain(Service, Method),
    Redis(Load),
    /// Something computes on each CPU meanwhile.
    Beside(Hogged),
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
            _ => 0,
        }
    }

    /// Whether connections live long enough to be upgraded.
    pub(super) fn lasts(self) -> bool {
        !matches!(self, Self::Plain(service, _) if service == SHORT)
    }
}

/// The lines of `sovia demo`.
pub(crate) fn demo() -> Vec<Line> {
    [
        Row::Pingpong,
        Row::Epoll,
        Row::Stream,
        Row::Small,
        Row::Connects,
        Row::Redis,
    ]
    .into_iter()
    .flat_map(lines_of)
    .map(|line| Line {
        ends: ALL.to_vec(),
        ..line
    })
    .collect()
}

/// What is measured for `row`.
pub(crate) fn lines_of(row: Row) -> Vec<Line> {
    let line = |title: &str, unit, kind| Line {
        row,
        title: title.to_owned(),
        unit,
        ends: vec![Ends::Neither, Ends::Both],
        kind,
    };
    let plain = |title, unit, service| line(title, unit, Kind::Plain(service, Method::Median));
    let redis = |title, clients, pipeline| {
        let load = Load { clients, pipeline };
        line(title, Unit::PerSecond, Kind::Redis(load))
    };
    match row {
        Row::Pingpong => vec![plain(PINGPONG_TITLE, Unit::Microseconds, PINGPONG)],
        Row::Epoll => vec![plain(EPOLL_TITLE, Unit::Microseconds, EPOLL)],
        Row::Stream => vec![plain(
            "64 kB writes, one way",
            Unit::GigabytesPerSecond,
            stream(64 << 10),
        )],
        Row::Small => vec![plain("64 B writes, one way", Unit::PerSecond, stream(64))],
        Row::Connects => vec![plain(
            "connect, 64 B there and back, close",
            Unit::PerSecond,
            SHORT,
        )],
        Row::Redis => vec![
            redis("redis GET, 1 client", 1, 1),
            redis("redis GET, 50 clients", 50, 1),
            redis("redis GET, 50 clients × 16", 50, 16),
        ],
        Row::OneEnd => one_end(),
        Row::Hog => {
            let beside = |title: &str, unit, hogged| {
                let title = format!("beside CPU hogs: {title}");
                line(&title, unit, Kind::Beside(hogged))
            };
            vec![
                beside(PINGPONG_TITLE, Unit::Microseconds, Hogged::Plain(PINGPONG)),
                beside(EPOLL_TITLE, Unit::Microseconds, Hogged::Plain(EPOLL)),
                beside(
                    "redis GET, 1 client",
                    Unit::PerSecond,
                    Hogged::Redis(ONE_CLIENT),
                ),
            ]
        }
        Row::Pairs => [4, 8]
            .into_iter()
            .map(|pairs| {
                let title = format!("{pairs} pairs, 64 B there and back");
                line(&title, Unit::PerSecond, Kind::Crowd { pairs })
            })
            .collect(),
        Row::Idle => vec![line(
            "1,000 idle connections",
            Unit::Microseconds,
            Kind::Idle { connections: 1_000 },
        )],
    }
}

fn one_end() -> Vec<Line> {
    [
        Row::Pingpong,
        Row::Epoll,
        Row::Stream,
        Row::Small,
        Row::Connects,
        Row::Redis,
    ]
    .into_iter()
    .filter_map(|row| lines_of(row).into_iter().next())
    .map(|line| Line {
        row: Row::OneEnd,
        ends: vec![Ends::Neither, Ends::Server, Ends::Client],
        ..line
    })
    .collect()
}

const ALL: [Ends; 4] = [Ends::Neither, Ends::Both, Ends::Server, Ends::Client];

const PINGPONG_TITLE: &str = "64 B there and back, send/recv";
const EPOLL_TITLE: &str = "64 B there and back, epoll";

pub(super) const PINGPONG: Service = Service {
    server: "echo-server",
    client: "echo-client",
    size: 64,
    idle: 0,
};

pub(super) const EPOLL: Service = Service {
    server: "echo-epoll-server",
    client: "echo-epoll-client",
    size: 64,
    idle: 0,
};

const SHORT: Service = Service {
    server: "echo-server",
    client: "short-client",
    size: 64,
    idle: 0,
};

const ONE_CLIENT: Load = Load {
    clients: 1,
    pipeline: 1,
};

fn stream(size: usize) -> Service {
    Service {
        server: "sink-server",
        client: "stream-client",
        size,
        idle: 0,
    }
}
