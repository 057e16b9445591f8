//! One end of a connection, as it is shown.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::SocketAddr;

use serde::Serialize;
use sockets::conn::Origin;
use sockets::stat::{Closed, Ledger, Line, Path};

/// One end of a connection.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) pid: u32,
    pub(super) program: String,
    pub(super) fd: Option<u32>,
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    pub(super) origin: &'static str,
    pub(super) state: &'static str,
    pub(super) path: Cow<'static, str>,
    /// The number and name of why it is on TCP.
    pub(super) reason: Option<Reason>,
    /// What the configuration says of it, if a rule does.
    pub(super) rule: Option<Rule>,
    pub(super) bytes_sent: u64,
    pub(super) bytes_received: u64,
    pub(super) calls_sent: u64,
    pub(super) calls_received: u64,
    pub(super) sleeps: u64,
    pub(super) doorbells: u64,
    pub(super) seconds: u32,
    /// The last ways that it took, the oldest first.
    pub(super) history: Vec<Change>,
}

/// It took another way.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Change {
    pub(super) ms_ago: u64,
    pub(super) path: Cow<'static, str>,
    pub(super) reason: Option<Reason>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Rule {
    /// From 1, in the order of the file.
    pub(super) number: u16,
    pub(super) upgrade: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Reason {
    pub(super) number: u16,
    pub(super) name: &'static str,
    pub(super) explanation: &'static str,
}

/// A process and what its connections were before those that it has now.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) program: String,
    pub(super) closed: Closed,
    /// Of all its connections, those that are no more too; `None` where only some are wanted.
    pub(super) sums: Option<Sums>,
}

impl From<sockets::reason::Reason> for Reason {
    fn from(reason: sockets::reason::Reason) -> Self {
        Self {
            number: reason.number(),
            name: reason.name(),
            explanation: reason.explanation(),
        }
    }
}

impl Row {
    pub(super) fn new(pid: u32, program: &str, line: &Line) -> Self {
        let (path, reason) = shown(line.path);
        let [bytes_sent, bytes_received] = line.bytes;
        let [calls_sent, calls_received] = line.calls;
        Self {
            pid,
            program: program.to_owned(),
            fd: line.fd,
            local: line.local,
            peer: line.peer,
            origin: match line.origin {
                Origin::Connected => "connected",
                Origin::Accepted => "accepted",
                Origin::Inherited => "inherited",
            },
            state: match line.path {
                Path::Ring => "mapped",
                Path::Tcp(sockets::reason::Reason::NotTried) => "young",
                Path::Tcp(sockets::reason::Reason::Meeting) => "meeting",
                Path::Tcp(_) => "tcp",
                Path::Packet(_) | Path::Extended(_) => "via",
            },
            path,
            reason,
            rule: (line.rule.number > 0).then(|| Rule {
                number: line.rule.number,
                upgrade: line.rule.upgrade.name(),
            }),
            bytes_sent,
            bytes_received,
            calls_sent,
            calls_received,
            sleeps: line.sleeps,
            doorbells: line.bells,
            seconds: line.age,
            history: line
                .history
                .iter()
                .map(|change| {
                    let (path, reason) = shown(change.path);
                    Change {
                        ms_ago: change.ago_ms,
                        path,
                        reason,
                    }
                })
                .collect(),
        }
    }

    /// Path and reason in a word or three. `!` marks what a rule wants otherwise.
    pub(super) fn way(&self) -> String {
        let mark = match (&self.reason, &self.rule) {
            (Some(_), Some(rule)) if rule.upgrade == "always" => " (always!)",
            _ => "",
        };
        way(&self.path, self.reason.as_ref()) + mark
    }

    /// Whether it is a TCP connection that has moved to shared memory.
    pub(super) fn is_mapped(&self) -> bool {
        self.state == "mapped"
    }

    /// Whether it is a VI, which sleeps and rings in its NIC.
    pub(super) fn is_vi(&self) -> bool {
        self.state == "via"
    }

    pub(super) fn calls(&self) -> u64 {
        self.calls_sent.saturating_add(self.calls_received)
    }
}

pub(super) fn way(path: &str, reason: Option<&Reason>) -> String {
    match reason {
        None => path.to_owned(),
        Some(reason) => format!("{path} {} {}", reason.number, reason.name),
    }
}

fn shown(path: Path) -> (Cow<'static, str>, Option<Reason>) {
    match path {
        Path::Ring => ("shm/ring".into(), None),
        Path::Tcp(reason) => ("tcp".into(), Some(reason.into())),
        Path::Packet(nic) => (format!("{nic}/packet").into(), None),
        Path::Extended(nic) => (format!("{nic}/extended").into(), None),
    }
}

/// What a process has sent and received, its calls, sleeps and doorbells, of all its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums(pub(super) [u64; 5]);

impl Sums {
    fn of(closed: &Closed) -> Self {
        let ([sent, received], [sending, receiving]) = (closed.bytes, closed.calls);
        let calls = sending.saturating_add(receiving);
        Self([sent, received, calls, closed.sleeps, closed.bells])
    }

    fn add(&mut self, line: &Line) {
        let ([sent, received], [sending, receiving]) = (line.bytes, line.calls);
        let calls = sending.saturating_add(receiving);
        let counts = [sent, received, calls, line.sleeps, line.bells];
        for (sum, count) in self.0.iter_mut().zip(counts) {
            *sum = sum.saturating_add(count);
        }
    }

    fn raise(&mut self, to: &Self) {
        for (sum, least) in self.0.iter_mut().zip(to.0) {
            *sum = (*sum).max(least);
        }
    }
}

/// All processes that may be looked at, from one look to the next.
#[derive(Debug, Default)]
pub(super) struct Host {
    ledgers: BTreeMap<u32, Ledger>,
    /// The last sums of processes, which one that never holds still is not to fall behind.
    shown: BTreeMap<u32, Sums>,
    /// Processes whose ledger is another version's.
    pub(super) strange: Vec<u32>,
    /// How many of other users' processes may not be looked at.
    pub(super) hidden: usize,
}

/// What one look found.
#[derive(Debug, Default)]
pub(super) struct Look {
    pub(super) rows: Vec<Row>,
    pub(super) processes: Vec<Process>,
}

impl Host {
    /// Whether the last look found that this process has no connections, nor had any.
    pub(super) fn is_without(&self, pid: u32) -> bool {
        !self.ledgers.contains_key(&pid) && !self.strange.contains(&pid)
    }

    /// Looks at all processes, or at one.
    ///
    /// # Errors
    /// The kernel's about `/proc`, or about the one process.
    pub(super) fn look(&mut self, only: Option<u32>) -> io::Result<Look> {
        let mut look = Look::default();
        self.strange.clear();
        self.hidden = 0;
        if let Some(pid) = only {
            match self.look_at(pid, &mut look) {
                Err(error) if error.kind() == io::ErrorKind::InvalidData => self.strange.push(pid),
                looked => looked?,
            }
            look.rows.sort_by_key(|row| row.fd);
            return Ok(look);
        }
        let mut seen = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let Some(pid) = entry?
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            else {
                continue;
            };
            seen.push(pid);
            // Other users' processes, and those that end meanwhile, are not shown.
            match self.look_at(pid, &mut look).map_err(|error| error.kind()) {
                Err(io::ErrorKind::InvalidData) => self.strange.push(pid),
                Err(io::ErrorKind::PermissionDenied) => self.hidden += 1,
                _ => {}
            }
        }
        self.ledgers.retain(|pid, _| seen.contains(pid));
        self.shown.retain(|pid, _| seen.contains(pid));
        look.rows.sort_by_key(|row| (row.pid, row.fd));
        Ok(look)
    }

    fn look_at(&mut self, pid: u32, look: &mut Look) -> io::Result<()> {
        if !self.ledgers.get(&pid).is_some_and(Ledger::is_current) {
            self.ledgers.remove(&pid);
            self.shown.remove(&pid);
            if let Some(ledger) = Ledger::open(pid)? {
                self.ledgers.insert(pid, ledger);
            }
        }
        let Some(ledger) = self.ledgers.get(&pid) else {
            return Ok(());
        };
        let program = printable(&fs::read(format!("/proc/{pid}/comm"))?);
        let (rows, closed, _) = ledger.look();
        let mut sums = Sums::of(&closed);
        rows.iter().for_each(|line| sums.add(line));
        // More was shown of a connection that was both here and there, or less is found for one that is neither.
        let shown = self.shown.entry(pid).or_default();
        shown.raise(&sums);
        look.rows
            .extend(rows.iter().map(|line| Row::new(pid, &program, line)));
        look.processes.push(Process {
            pid,
            program,
            closed,
            sums: Some(*shown),
        });
        Ok(())
    }
}

/// A process may call itself anything, and what is shown may be a terminal. The kernel keeps 15 bytes of a name, whatever letter they
/// end in.
fn printable(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let name = name.trim_end_matches('\n');
    name.replace(|byte: char| byte.is_control(), "?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_nothing_to_a_terminal() {
        assert_eq!(printable("a\x1b[2J\u{9b}b\n".as_bytes()), "a?[2J?b");
    }

    #[test]
    fn a_name_that_is_cut_is_a_name() {
        let name = "ééééééééé";
        assert_eq!(printable(&name.as_bytes()[..15]), "ééééééé\u{fffd}");
    }

    #[test]
    fn a_program_without_connections_has_none() {
        let look = Host::default().look(Some(std::process::id()));
        assert!(look.expect("own process").rows.is_empty());
    }
}
