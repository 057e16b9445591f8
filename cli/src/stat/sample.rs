//! Connections for tests.

use sockets::conn::Origin;
use sockets::reason::Reason;
use sockets::rules::Upgrade;
use sockets::rules::text::Decision;
use sockets::stat::{Change, Closed, Line, Nic, Path};

use super::row::{Look, Process, Row};

fn line(fd: u32, local: &str, peer: &str, path: Path) -> Line {
    Line {
        fd: Some(fd),
        local: local.parse().expect("an address"),
        peer: peer.parse().expect("an address"),
        origin: Origin::Accepted,
        rule: Decision::default(),
        path,
        bytes: [1 << 20, 1536],
        calls: [20, 5],
        sleeps: 3,
        bells: 2,
        age: 61,
        history: vec![
            Change {
                ago_ms: 62_000,
                path: Path::Tcp(Reason::NotTried),
            },
            Change {
                ago_ms: 61_500,
                path,
            },
        ],
    }
}

/// A socket of type `SOCK_VIA`, and an extended one.
pub(super) fn vis() -> Vec<Row> {
    let paths = [
        Path::Packet(Nic::new("iwarp")),
        Path::Extended(Nic::new("shm")),
    ];
    let row = |path| {
        let mut line = line(4, "127.0.0.1:7000", "127.0.0.1:40003", path);
        line.history.remove(0);
        Row::new(300, "via", &line)
    };
    paths.into_iter().map(row).collect()
}

/// Two connections of one process, and one of another.
pub(super) fn look() -> Look {
    let mut wanted = line(
        9,
        "127.0.0.1:6379",
        "127.0.0.1:40002",
        Path::Tcp(Reason::IoUring),
    );
    wanted.rule = Decision {
        upgrade: Upgrade::Always,
        number: 2,
    };
    let redis = [
        line(8, "127.0.0.1:6379", "127.0.0.1:40001", Path::Ring),
        wanted,
    ];
    let mut nginx = line(5, "[::1]:80", "[::1]:50000", Path::Tcp(Reason::NotTried));
    nginx.origin = Origin::Connected;
    nginx.bytes = [100, 5 << 30];
    let mut rows: Vec<_> = redis
        .iter()
        .map(|line| Row::new(100, "redis-server", line))
        .collect();
    rows.push(Row::new(200, "nginx", &nginx));
    let process = |pid, program: &str, connections| Process {
        pid,
        program: program.to_owned(),
        closed: Closed {
            connections,
            bytes: [1000, 2000],
            ..Closed::default()
        },
        sums: None,
    };
    Look {
        rows,
        processes: vec![process(100, "redis-server", 0), process(200, "nginx", 7)],
    }
}
