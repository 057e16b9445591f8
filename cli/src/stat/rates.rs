//! From counts of one look to rates at the next.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use super::row::{Look, Row, Sums};

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
pub(super) struct Rates {
    connections: BTreeMap<Key, Known>,
    processes: BTreeMap<u32, Known>,
}

/// What flows, from one look to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Moving {
    pub(super) connections: Vec<Lively>,
    /// With what their connections carried that are no more, if that is wanted.
    pub(super) processes: Vec<Lively>,
}

type Key = (u32, Option<u32>, SocketAddr, SocketAddr);

#[derive(Debug)]
struct Known {
    counts: [u64; 4],
    past: VecDeque<f64>,
}

impl Rates {
    /// The lines of a look that came `seconds` after the one before. What is new has no rate yet.
    pub(super) fn next(&mut self, look: &Look, seconds: f64) -> Moving {
        let mut before = std::mem::take(&mut self.connections);
        let mut connections = Vec::with_capacity(look.rows.len());
        for row in &look.rows {
            let key = (row.pid, row.fd, row.local, row.peer);
            let counts = [row.bytes_sent, row.bytes_received, row.calls(), row.sleeps];
            let (rate, known) = since(before.remove(&key), counts, seconds);
            connections.push(lively(row, rate, &known.past));
            self.connections.insert(key, known);
        }
        let mut processes = by_process(&connections);
        let mut before = std::mem::take(&mut self.processes);
        for process in &look.processes {
            let Some(Sums([sent, received, calls, sleeps, _])) = process.sums else {
                continue;
            };
            let counts = [sent, received, calls, sleeps];
            let (rate, known) = since(before.remove(&process.pid), counts, seconds);
            let line = processes.entry(process.pid).or_insert_with(|| Lively {
                pid: process.pid,
                program: process.program.clone(),
                ends: None,
                way: "0 of 0 on shm/ring".to_owned(),
                rate,
                past: Vec::new(),
            });
            line.rate = rate;
            line.past = known.past.iter().copied().collect();
            self.processes.insert(process.pid, known);
        }
        Moving {
            connections,
            processes: processes.into_values().collect(),
        }
    }
}

fn since(known: Option<Known>, counts: [u64; 4], seconds: f64) -> (Rate, Known) {
    let Some(mut known) = known else {
        let past = VecDeque::new();
        return (Rate::default(), Known { counts, past });
    };
    let [sent, received, calls, sleeps] =
        std::array::from_fn(|n| per_second(known.counts[n], counts[n], seconds));
    let rate = Rate {
        sent,
        received,
        calls,
        sleeps,
    };
    known.counts = counts;
    known.past.push_back(rate.bytes());
    while known.past.len() > PAST {
        known.past.pop_front();
    }
    (rate, known)
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

/// One line for each process: the sums of its connections'.
fn by_process(lines: &[Lively]) -> BTreeMap<u32, Lively> {
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
    let line = |(pid, (process, all, ring)): (u32, (Lively, usize, usize))| {
        let way = format!("{ring} of {all} on shm/ring");
        (pid, Lively { way, ..process })
    };
    processes.into_iter().map(line).collect()
}

/// The first is the most; of equals, by process.
pub(super) fn sort(lines: &mut [Lively], by: Sort) {
    lines.sort_by(|a, b| compare(a, b, by));
}

/// The places of `lines` as they would be sorted.
pub(super) fn order(lines: &[Lively], by: Sort) -> Vec<usize> {
    let mut places: Vec<usize> = (0..lines.len()).collect();
    places.sort_by(|&a, &b| compare(&lines[a], &lines[b], by));
    places
}

fn compare(a: &Lively, b: &Lively, by: Sort) -> Ordering {
    let value = |line: &Lively| match by {
        Sort::Bytes => line.rate.bytes(),
        Sort::Calls => line.rate.calls,
        Sort::Sleeps => line.rate.sleeps,
        Sort::Pid => 0.0,
    };
    value(b)
        .total_cmp(&value(a))
        .then(a.pid.cmp(&b.pid))
        .then(a.ends.cmp(&b.ends))
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
        let first = rates.next(&look, 2.0).connections;
        assert!(first.iter().all(|line| line.rate == Rate::default()));
        look.rows[0].bytes_sent += 4096;
        look.rows[0].calls_received += 10;
        let second = rates.next(&look, 2.0).connections;
        assert_eq!((second[0].rate.sent, second[0].rate.calls), (2048.0, 5.0));
        assert_eq!(second[0].past, [2048.0]);
        // Another connection with the same number begins anew.
        look.rows[0].peer.set_port(1);
        look.rows[0].bytes_sent = 7;
        let third = rates.next(&look, 2.0).connections;
        assert_eq!(third[0].rate, Rate::default());
    }

    #[test]
    fn processes_are_sums() {
        let mut rates = Rates::default();
        let mut look = sample::look();
        rates.next(&look, 1.0);
        for row in &mut look.rows {
            row.bytes_sent += 100;
        }
        let processes = rates.next(&look, 1.0).processes;
        assert_eq!(processes.len(), 2);
        assert_eq!(processes[0].way, "1 of 2 on shm/ring");
        assert_eq!(processes[0].rate.sent, 200.0);
        assert_eq!(processes[0].past, [200.0]);
    }

    /// A server of short connections has none at two looks.
    #[test]
    fn what_a_process_did_between_two_looks_counts() {
        let mut rates = Rates::default();
        let mut look = sample::look();
        look.rows.clear();
        look.processes[0].sums = Some(Sums([1000, 2000, 30, 4, 5]));
        rates.next(&look, 1.0);
        look.processes[0].sums = Some(Sums([5000, 2000, 40, 4, 5]));
        let processes = rates.next(&look, 2.0).processes;
        assert_eq!(processes[0].rate.sent, 2000.0);
        assert_eq!(processes[0].rate.calls, 5.0);
        assert_eq!(processes[0].past, [2000.0]);
    }
}
