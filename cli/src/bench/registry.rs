//! Everything that can be measured: one table.

use serde::Serialize;

use super::line::Line;
use super::way::Way;

mod table;

use table::{BASIC, REGISTRY};

/// What can be asked for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Row {
    /// messages of 1 B to 1 MB there and back, blocking send and recv
    Latency,
    /// the same through epoll, level-triggered
    LatencyEpoll,
    /// writes of 1 B to 1 MB one way, blocking
    Bandwidth,
    /// the same through epoll
    BandwidthEpoll,
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
    /// nginx and wrk, keep-alive, 1 kB
    Nginx,
    /// memcached, with memcaslap's 50 clients in a thread, and with memcslap's in 50
    Memcached,
    /// PostgreSQL and pgbench, select-only, 1 client
    Pgbench,
    /// FTP: vsftpd with tnftp and curl, a file of 145 MB on a RAM disk
    Ftp,
    /// ONC RPC: empty calls, with rpcgen and libtirpc
    Rpc,
    /// short connections, one after the other
    Connects,
    /// connections that end soon, by round trips and by bytes
    Short,
    /// four and eight pairs of programs on two CPUs
    Pairs,
    /// 1,000 idle connections beside the one that is used
    Idle,
    /// 10,000 connections, all used
    Many,
    /// a process on each CPU that computes for ever; programs that come and go
    Hog,
    /// only one of the two programs under sovia
    OneEnd,
    /// somebody runs `sovia stat` each second
    Stat,
}

/// Where in the report a row stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Latency,
    LatencyEpoll,
    Bandwidth,
    BandwidthEpoll,
    Basics,
    Programs,
    Connections,
    Short,
    Company,
    OneEnd,
    Stat,
}

impl Section {
    /// As they follow each other.
    pub(super) const ALL: [Self; 11] = [
        Self::Latency,
        Self::LatencyEpoll,
        Self::Bandwidth,
        Self::BandwidthEpoll,
        Self::Basics,
        Self::Programs,
        Self::Connections,
        Self::Short,
        Self::Company,
        Self::OneEnd,
        Self::Stat,
    ];
}

/// A program, or a file by its whole path, and the package of Debian's that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) program: &'static str,
    pub(super) package: &'static str,
}

/// One row.
pub(super) struct Entry {
    pub(super) row: Row,
    pub(super) section: Section,
    lines: fn(Row, Extent) -> Vec<Line>,
}

/// How much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Quick,
    Whole,
}

impl Row {
    /// What `sovia bench sockets` measures.
    pub(super) const SOCKETS: [Self; 10] = [
        Self::Pingpong,
        Self::Epoll,
        Self::Stream,
        Self::Small,
        Self::Redis,
        Self::OneEnd,
        Self::Hog,
        Self::Pairs,
        Self::Connects,
        Self::Idle,
    ];

    /// What `sovia bench` measures.
    pub(super) const BENCH: [Self; 16] = [
        Self::Latency,
        Self::LatencyEpoll,
        Self::Bandwidth,
        Self::BandwidthEpoll,
        Self::Redis,
        Self::Nginx,
        Self::Memcached,
        Self::Pgbench,
        Self::Ftp,
        Self::Rpc,
        Self::Connects,
        Self::Short,
        Self::Idle,
        Self::Many,
        Self::Pairs,
        Self::Stat,
    ];

    pub(super) fn entry(self) -> &'static Entry {
        let found = REGISTRY.iter().find(|entry| entry.row == self);
        found.expect("each row is in the table; a test sees to it")
    }

    pub(super) fn lines(self, extent: Extent) -> Vec<Line> {
        (self.entry().lines)(self, extent)
    }
}

/// The lines of `sovia demo`: with one end under sovia, too.
pub(crate) fn demo() -> Vec<Line> {
    BASIC
        .into_iter()
        .flat_map(|row| row.lines(Extent::Whole))
        .map(|line| line.by(&[Way::Tcp, Way::Sovia, Way::ServerOnly, Way::ClientOnly]))
        .collect()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::bench::line::{Company, Hogged, Kind, SHORT};

    #[test]
    fn each_row_is_in_the_table_once_and_has_lines() {
        assert_eq!(REGISTRY.len(), Row::value_variants().len());
        for &row in Row::value_variants() {
            let entries = REGISTRY.iter().filter(|entry| entry.row == row);
            assert_eq!(entries.count(), 1, "{row:?}");
            for extent in [Extent::Quick, Extent::Whole] {
                let lines = row.lines(extent);
                assert!(!lines.is_empty(), "{row:?}");
                assert!(lines.iter().all(|line| line.row == row), "{row:?}");
            }
        }
    }

    #[test]
    fn a_unix_socket_or_why_there_is_none() {
        let mut without = Vec::new();
        for row in Row::BENCH.into_iter().chain(Row::SOCKETS) {
            for line in row.lines(Extent::Whole).into_iter().map(Line::beside_unix) {
                let has = line.ways.contains(&Way::Unix);
                assert_eq!(has, line.ways[0] == Way::Tcp && line.not_unix.is_none());
                without.extend(line.not_unix);
            }
        }
        assert_eq!(
            without,
            ["wrk", "memcaslap", "memcaslap", "FTP", "FTP", "FTP", "FTP"]
        );
    }

    #[test]
    fn hogs_stand_beside_short_connections_too() {
        let lines = Row::Hog.lines(Extent::Quick);
        let short = |line: &&Line| line.kind == Kind::Beside(Company::Hogs, Hogged::Plain(SHORT));
        let short = lines.iter().find(short).expect("there is one");
        // That it stays on TCP is no wonder.
        assert!(!short.kind.lasts());
        assert!(lines.iter().filter(|line| line.kind.lasts()).count() == lines.len() - 1);
    }

    #[test]
    fn peers_stand_only_where_they_do_the_same() {
        let ways = |row: Row, at: usize| row.lines(Extent::Quick)[at].ways.clone();
        assert!(ways(Row::Latency, 0).contains(&Way::Libfabric));
        assert!(!ways(Row::LatencyEpoll, 0).iter().any(|way| way.is_peer()));
        assert!(!ways(Row::Bandwidth, 0).contains(&Way::Libfabric));
    }
}
