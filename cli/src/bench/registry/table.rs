//! The table: what each row measures.

use super::{Entry, Extent, Row, Section};
use crate::bench::aim::Aim;
use crate::bench::line::{Company, EPOLL, Hogged, Kind, Line, PINGPONG, Point, SHORT, stream};
use crate::bench::pair::Service;
use crate::bench::peer::Peer;
use crate::bench::program::App;
use crate::bench::redis::Load;
use crate::bench::short;
use crate::bench::unit::Unit;
use crate::bench::way::Way;
use crate::netpipe::table::bytes;

pub(super) const REGISTRY: [Entry; 22] = [
    entry(Row::Latency, Section::Latency, |row, extent| {
        by_size(
            row,
            extent,
            Unit::Microseconds,
            "echo-server",
            "echo-client",
        )
    }),
    entry(Row::LatencyEpoll, Section::LatencyEpoll, |row, extent| {
        let [server, client] = ["echo-epoll-server", "echo-epoll-client"];
        by_size(row, extent, Unit::Microseconds, server, client)
    }),
    entry(Row::Bandwidth, Section::Bandwidth, |row, extent| {
        let unit = Unit::GigabytesPerSecond;
        by_size(row, extent, unit, "sink-server", "stream-client")
    }),
    entry(
        Row::BandwidthEpoll,
        Section::BandwidthEpoll,
        |row, extent| {
            let [server, client] = ["sink-epoll-server", "stream-epoll-client"];
            by_size(row, extent, Unit::GigabytesPerSecond, server, client)
        },
    ),
    entry(Row::Pingpong, Section::Basics, |row, _| {
        vec![
            Line::plain(row, PINGPONG_TITLE, Unit::Microseconds, PINGPONG).aiming(Aim::Figure {
                near: 0.3,
                far: 1.0,
            }),
        ]
    }),
    entry(Row::Epoll, Section::Basics, |row, _| {
        vec![
            Line::plain(row, EPOLL_TITLE, Unit::Microseconds, EPOLL).aiming(Aim::Figure {
                near: 0.35,
                far: 1.1,
            }),
        ]
    }),
    entry(Row::Stream, Section::Basics, |row, _| {
        let title = "64 kB writes, one way";
        vec![
            Line::plain(row, title, Unit::GigabytesPerSecond, stream(64 << 10)).aiming(
                Aim::Figure {
                    near: 13.0,
                    far: 13.0,
                },
            ),
        ]
    }),
    entry(Row::Small, Section::Basics, |row, _| {
        let title = "64 B writes, one way";
        vec![Line::plain(row, title, Unit::PerSecond, stream(64)).aiming(Aim::Gain(20.0))]
    }),
    entry(Row::Redis, Section::Programs, |row, _| {
        let line = |title: &str, clients, pipeline, least| {
            let kind = Kind::Redis(Load { clients, pipeline });
            Line::new(row, title, Unit::PerSecond, kind).aiming(Aim::Gain(least))
        };
        vec![
            line("redis GET, 1 client", 1, 1, 30.0),
            line("redis GET, 50 clients", 50, 1, 20.0),
            line("redis GET, 50 clients × 16", 50, 16, 2.2),
        ]
    }),
    entry(Row::Nginx, Section::Programs, |row, _| {
        program(row, "nginx, 1 kB, keep-alive", App::Nginx, 3.0)
    }),
    entry(Row::Memcached, Section::Programs, |row, extent| {
        let apps = [
            ("memcached, memcaslap: 50 in a thread, 1 kB", App::Memcached),
            (
                "memcached, memcaslap: 50 in a thread, 100 B",
                App::MemcachedSmall,
            ),
            ("memcached, memcslap: 50 threads", App::MemcachedThreads),
        ];
        let apps = &apps[..if extent == Extent::Quick { 1 } else { 3 }];
        apps.iter()
            .flat_map(|&(title, app)| program(row, title, app, 10.0))
            .collect()
    }),
    entry(Row::Pgbench, Section::Programs, |row, _| {
        program(row, "pgbench, select-only, 1 client", App::Pgbench, 1.5)
    }),
    entry(Row::Ftp, Section::Programs, |row, _| {
        let apps = [
            (
                "vsftpd and tnftp, 145 MB, on a RAM disk of large pages",
                App::FtpInLargePages,
            ),
            (
                "vsftpd and curl, on a RAM disk of large pages",
                App::FtpByCurlInLargePages,
            ),
            ("vsftpd and tnftp, 145 MB, of small pages", App::Ftp),
            ("vsftpd and curl, of small pages", App::FtpByCurl),
        ];
        let line = |(title, app)| {
            Line::new(row, title, Unit::GigabytesPerSecond, Kind::Program(app))
                .aiming(Aim::Gain(2.0))
        };
        apps.map(line).into()
    }),
    entry(Row::Rpc, Section::Programs, |row, _| {
        let kind = Kind::Program(App::Rpc);
        let title = "ONC RPC, an empty call";
        vec![Line::new(row, title, Unit::Microseconds, kind).aiming(Aim::Gain(16.7))]
    }),
    entry(Row::Connects, Section::Connections, |row, _| {
        vec![Line::plain(row, SHORT_TITLE, Unit::PerSecond, SHORT).aiming(Aim::Gain(0.95))]
    }),
    entry(Row::Short, Section::Short, short::lines),
    entry(Row::Pairs, Section::Company, |row, _| {
        let pairs = [4, 8].into_iter().map(|pairs| {
            let title = format!("{pairs} pairs, 64 B there and back");
            Line::new(row, title, Unit::PerSecond, Kind::Crowd { pairs }).aiming(Aim::Gain(3.0))
        });
        pairs.collect()
    }),
    entry(Row::Idle, Section::Connections, |row, _| {
        let kind = Kind::Idle { connections: 1_000 };
        vec![Line::new(
            row,
            "1,000 idle connections",
            Unit::Microseconds,
            kind,
        )]
    }),
    entry(Row::Many, Section::Connections, |row, extent| {
        let many = match extent {
            Extent::Quick => 1_000,
            Extent::Whole => 10_000,
        };
        let kind = Kind::Many { few: 100, many };
        vec![Line::new(
            row,
            "many connections, all used",
            Unit::PerSecond,
            kind,
        )]
    }),
    entry(Row::Hog, Section::Company, |row, _| hogged(row)),
    entry(Row::OneEnd, Section::OneEnd, |row, _| one_end(row)),
    entry(Row::Stat, Section::Stat, |row, _| {
        let title = "64 B there and back, send/recv";
        let ways = [Way::Sovia, Way::Watched];
        vec![
            Line::new(row, title, Unit::Microseconds, Kind::Watched)
                .by(&ways)
                .aiming(Aim::Gain(0.99)),
        ]
    }),
];

const fn entry(row: Row, section: Section, lines: fn(Row, Extent) -> Vec<Line>) -> Entry {
    Entry {
        row,
        section,
        lines,
    }
}

fn by_size(
    row: Row,
    extent: Extent,
    unit: Unit,
    server: &'static str,
    client: &'static str,
) -> Vec<Line> {
    let sizes: &[usize] = match extent {
        Extent::Quick => &[1, 64, 4 << 10, 64 << 10, 1 << 20],
        Extent::Whole => &[
            1,
            4,
            16,
            64,
            256,
            1 << 10,
            4 << 10,
            16 << 10,
            64 << 10,
            256 << 10,
            1 << 20,
        ],
    };
    let epoll = matches!(row, Row::LatencyEpoll | Row::BandwidthEpoll);
    let lines = sizes.iter().map(|&size| {
        let how = if epoll { "epoll" } else { "send/recv" };
        let whither = match unit {
            Unit::Microseconds => "there and back",
            _ => "one way",
        };
        let title = format!("{} {whither}, {how}", bytes(size));
        let mut line = Line::plain(row, &title, unit, Service::of(server, client, size));
        line.point = Some(Point::Size(size));
        if !epoll {
            let peers = [Way::Ucx, Way::Libfabric].into_iter();
            line.ways
                .extend(peers.filter(|peer| Peer::of(*peer, unit, size).is_some()));
        }
        match (unit, size) {
            (Unit::Microseconds, 64) if epoll => line.aiming(Aim::Figure {
                near: 0.35,
                far: 1.1,
            }),
            (Unit::Microseconds, 64) => line.aiming(Aim::Figure {
                near: 0.3,
                far: 1.0,
            }),
            (Unit::GigabytesPerSecond, 64) if !epoll => line.aiming(Aim::Gain(20.0)),
            (Unit::GigabytesPerSecond, 0x1_0000) => line.aiming(Aim::Figure {
                near: 13.0,
                far: 13.0,
            }),
            _ => line,
        }
    });
    lines.collect()
}

fn program(row: Row, title: &str, app: App, least: f64) -> Vec<Line> {
    vec![Line::new(row, title, Unit::PerSecond, Kind::Program(app)).aiming(Aim::Gain(least))]
}

fn hogged(row: Row) -> Vec<Line> {
    let beside = |company, title: &str, unit, hogged| {
        let who = match company {
            Company::Hogs => "CPU hogs",
            Company::Passers => "programs that come and go",
        };
        let title = format!("beside {who}: {title}");
        Line::new(row, title, unit, Kind::Beside(company, hogged)).aiming(Aim::Gain(0.9))
    };
    let redis = Load {
        clients: 1,
        pipeline: 1,
    };
    let lines = [
        (PINGPONG_TITLE, Unit::Microseconds, Hogged::Plain(PINGPONG)),
        (EPOLL_TITLE, Unit::Microseconds, Hogged::Plain(EPOLL)),
        ("redis GET, 1 client", Unit::PerSecond, Hogged::Redis(redis)),
        (SHORT_TITLE, Unit::PerSecond, Hogged::Plain(SHORT)),
    ];
    let hogs = lines.iter().map(|line| (Company::Hogs, line));
    // Short connections sleep as TCP's do.
    let passers = lines.iter().take(3).map(|line| (Company::Passers, line));
    hogs.chain(passers)
        .map(|(company, &(title, unit, hogged))| beside(company, title, unit, hogged))
        .collect()
}

fn one_end(row: Row) -> Vec<Line> {
    let first = |other: Row| other.lines(Extent::Whole).into_iter().next();
    let lines = BASIC.into_iter().filter_map(first).map(|line| {
        let least = if line.row == Row::Redis { 1.5 } else { 0.98 };
        let ways = [Way::Tcp, Way::ServerOnly, Way::ClientOnly];
        Line { row, ..line }.by(&ways).aiming(Aim::Gain(least))
    });
    lines.collect()
}

pub(super) const BASIC: [Row; 6] = [
    Row::Pingpong,
    Row::Epoll,
    Row::Stream,
    Row::Small,
    Row::Connects,
    Row::Redis,
];

const PINGPONG_TITLE: &str = "64 B there and back, send/recv";
const EPOLL_TITLE: &str = "64 B there and back, epoll";
const SHORT_TITLE: &str = "connect, 64 B there and back, close";
