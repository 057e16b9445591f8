//! From counts of one look to rates at the next.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use super::row::{Look, Row};

/// What flows through a connection, or through all of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rate {
    pub(super) sent: f64,
    pub(super) received: f64,
    pub(super) calls: f64,
    pub(super) sleeps: f64,
}

impl Rate {
    pub(super) fn bytes(&self) -> f64 {
        self.sent + self.received
    }

    fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.calls += other.calls;
        self.sleeps += other.sleeps;
    }
}

/// A line of the live view.
#[derive(Clone, Debug)]
pub(super) struct Lively {
    pub(super) pid: u32,
    pub(super) program: String,
    /// `None` for a process.
    pub(super) ends: Option<(SocketAddr, SocketAddr)>,
    pub(super) way: String,
    pub(super) rate: Rate,
    /// Bytes a second at each of the last looks, the latest last.
    pub(super) past: Vec<f64>,
}

/// By what lines are sorted, most first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sort {
    #[default]
    Bytes,
    Calls,
    Sleeps,
    Pid,
}

impl Sort {
    pub(super) fn next(self) -> Self {
        match self {
            Self::Bytes => Self::Calls,
            Self::Calls => Self::Sleeps,
            Self::Sleeps => Self::Pid,
            Self::Pid => Self::Bytes,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Calls => "calls",
            Self::Sleeps => "sleeps",
            Self::Pid => "pid",
        }
    }
}

/// What is remembered from look to look.
#[derive(Debug, Default)]
pub(super) struct Rates(BTreeMap<Key, Known>);

type Key = (u32, u32, SocketAddr, SocketAddr);

#[derive(Debug)]
struct Known {
    counts: [u64; 4],
    past: VecDeque<f64>,
}

impl Rates {
    /// The lines of a look that came `seconds` after the one before. A connection that is new has no rate yet.
    pub(super) fn next(&mut self, look: &Look, seconds: f64) -> Vec<Lively> {
        let mut before = std::mem::take(&mut self.0);
        let mut lines = Vec::with_capacity(look.rows.len());
        for row in &look.rows {
            let key = (row.pid, row.fd, row.local, row.peer);
            let counts = [row.bytes_sent, row.bytes_received, row.calls(), row.sleeps];
            let known = before.remove(&key);
            let mut past = VecDeque::new();
            let mut rate = Rate::default();
            if let Some(known) = known {
                let [sent, received, calls, sleeps] =
                    std::array::from_fn(|n| per_second(known.counts[n], counts[n], seconds));
                rate = Rate {
                    sent,
                    received,
                    calls,
                    sleeps,
                };
                past = known.past;
                past.push_back(rate.bytes());
                while past.len() > PAST {
                    past.pop_front();
                }
            }
            lines.push(lively(row, rate, &past));
            self.0.insert(key, Known { counts, past });
        }
        lines
    }
}

fn lively(row: &Row, rate: Rate, past: &VecDeque<f64>) -> Lively {
    Lively {
        pid: row.pid,
        program: row.program.clone(),
        ends: Some((row.local, row.peer)),
        way: row.way(),
        rate,
        past: past.iter().copied().collect(),
    }
}

/// One line for each process instead of one for each connection.
pub(super) fn by_process(lines: &[Lively]) -> Vec<Lively> {
    let mut processes: BTreeMap<u32, (Lively, usize, usize)> = BTreeMap::new();
    for line in lines {
        let (process, all, ring) = processes.entry(line.pid).or_insert_with(|| {
            let empty = Lively {
                ends: None,
                rate: Rate::default(),
                past: Vec::new(),
                ..line.clone()
            };
            (empty, 0, 0)
        });
        *all += 1;
        *ring += usize::from(line.way == "shm/ring");
        process.rate.add(&line.rate);
        // The latest of each stand under each other.
        let missing = line.past.len().saturating_sub(process.past.len());
        process.past.splice(0..0, vec![0.0; missing]);
        let sums = process.past.iter_mut().rev().zip(line.past.iter().rev());
        sums.for_each(|(sum, value)| *sum += value);
    }
    processes
        .into_values()
        .map(|(process, all, ring)| Lively {
            way: format!("{ring} of {all} on shm/ring"),
            ..process
        })
        .collect()
}

/// The first is the most; of equals, by process.
pub(super) fn sort(lines: &mut [Lively], by: Sort) {
    let value = |line: &Lively| match by {
        Sort::Bytes => line.rate.bytes(),
        Sort::Calls => line.rate.calls,
        Sort::Sleeps => line.rate.sleeps,
        Sort::Pid => 0.0,
    };
    lines.sort_by(|a, b| {
        value(b)
            .total_cmp(&value(a))
            .then(a.pid.cmp(&b.pid))
            .then(a.ends.cmp(&b.ends))
    });
}

/// Counts of a process that tells lies may go back.
fn per_second(before: u64, now: u64, seconds: f64) -> f64 {
    now.saturating_sub(before) as f64 / seconds.max(0.001)
}

/// Looks that a sparkline goes back.
pub(super) const PAST: usize = 20;

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn rates_are_differences_by_time() {
        let mut rates = Rates::default();
        let mut look = sample::look();
        let first = rates.next(&look, 2.0);
        assert!(first.iter().all(|line| line.rate == Rate::default()));
        look.rows[0].bytes_sent += 4096;
        look.rows[0].calls_received += 10;
        let second = rates.next(&look, 2.0);
        assert_eq!((second[0].rate.sent, second[0].rate.calls), (2048.0, 5.0));
        assert_eq!(second[0].past, [2048.0]);
        // Another connection with the same number begins anew.
        look.rows[0].peer.set_port(1);
        look.rows[0].bytes_sent = 7;
        assert_eq!(rates.next(&look, 2.0)[0].rate, Rate::default());
    }

    #[test]
    fn processes_are_sums() {
        let mut rates = Rates::default();
        let mut look = sample::look();
        rates.next(&look, 1.0);
        for row in &mut look.rows {
            row.bytes_sent += 100;
        }
        let processes = by_process(&rates.next(&look, 1.0));
        assert_eq!(processes.len(), 2);
        assert_eq!(processes[0].way, "1 of 2 on shm/ring");
        assert_eq!(processes[0].rate.sent, 200.0);
        assert_eq!(processes[0].past, [200.0]);
    }
}
