//! `sovia stat`: the connections of programs under sovia, and why each goes the way it goes.

use std::fs;
use std::io::{self, Write};

use serde::Serialize;
use sockets::conn::Origin;
use sockets::stat::{self, Line, Path};

use crate::error::{Context, Result};
use crate::netpipe::table::{new_table, right};

/// Show the connections of programs under sovia
///
/// Each line is one end of a connection: the way its bytes take (shm/ring, or tcp with the reason), what it carried, and how often it
/// slept in the kernel and rang the peer's doorbell. Root sees the programs of all users.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  sovia stat\n  sovia stat --pid 4711 --json | jq '.[].path'\n  sovia stat --reasons"
)]
pub(crate) struct Options {
    /// JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Of this process only
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// List the reasons there are for a connection to be on TCP
    #[arg(long, conflicts_with = "pid")]
    reasons: bool,
}

/// One end of a connection.
#[derive(Debug, Serialize)]
struct Row {
    pid: u32,
    program: String,
    fd: u32,
    local: String,
    peer: String,
    origin: &'static str,
    path: &'static str,
    /// The number and name of why it is on TCP.
    reason: Option<Reason>,
    /// What the configuration says of it, if a rule does.
    rule: Option<Rule>,
    bytes_sent: u64,
    bytes_received: u64,
    calls_sent: u64,
    calls_received: u64,
    sleeps: u64,
    doorbells: u64,
    seconds: u32,
}

#[derive(Debug, Serialize)]
struct Rule {
    /// From 1, in the order of the file.
    number: u16,
    upgrade: &'static str,
}

#[derive(Debug, Serialize)]
struct Reason {
    number: u16,
    name: &'static str,
    explanation: &'static str,
}

/// `sovia stat`.
pub(crate) fn main(options: &Options) -> Result<()> {
    let text = if options.reasons {
        let reasons: Vec<_> = sockets::reason::Reason::ALL
            .iter()
            .map(|reason| explain(*reason))
            .collect();
        if options.json {
            json(&reasons)?
        } else {
            reason_table(&reasons)
        }
    } else {
        let rows = match options.pid {
            Some(pid) => of_process(pid).context("that process")?,
            None => of_all()?,
        };
        if options.json {
            json(&rows)?
        } else {
            table(&rows)
        }
    };
    io::stdout()
        .write_all(text.as_bytes())
        .context("standard output")
}

fn of_all() -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for entry in fs::read_dir("/proc").context("/proc")? {
        let name = entry.context("/proc")?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // Other users' processes, and those that end meanwhile, are not shown.
        rows.extend(of_process(pid).unwrap_or_default());
    }
    rows.sort_by_key(|row| (row.pid, row.fd));
    Ok(rows)
}

fn of_process(pid: u32) -> io::Result<Vec<Row>> {
    let lines = stat::connections(pid)?.unwrap_or_default();
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let program = fs::read_to_string(format!("/proc/{pid}/comm"))?;
    Ok(lines
        .iter()
        .map(|line| row(pid, program.trim_end(), line))
        .collect())
}

fn row(pid: u32, program: &str, line: &Line) -> Row {
    let (path, reason) = match line.path {
        Path::Ring => ("shm/ring", None),
        Path::Tcp(reason) => ("tcp", Some(explain(reason))),
    };
    let [bytes_sent, bytes_received] = line.bytes;
    let [calls_sent, calls_received] = line.calls;
    Row {
        pid,
        program: program.to_owned(),
        fd: line.fd,
        local: line.local.to_string(),
        peer: line.peer.to_string(),
        origin: match line.origin {
            Origin::Connected => "connected",
            Origin::Accepted => "accepted",
            Origin::Inherited => "inherited",
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
    }
}

fn explain(reason: sockets::reason::Reason) -> Reason {
    Reason {
        number: reason.number(),
        name: reason.name(),
        explanation: reason.explanation(),
    }
}

fn json(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value)
        .map_err(io::Error::from)
        .context("JSON")?;
    Ok(text + "\n")
}

fn table(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "No program under sovia has a TCP connection.\n".to_owned();
    }
    let mut table = new_table();
    table.set_header([
        "pid", "program", "fd", "local", "peer", "path", "sent", "received", "calls", "sleeps",
        "bells", "for",
    ]);
    for row in rows {
        let path = match &row.reason {
            None => row.path.to_owned(),
            Some(reason) => {
                let wanted = row
                    .rule
                    .as_ref()
                    .is_some_and(|rule| rule.upgrade == "always");
                let mark = if wanted { " (always!)" } else { "" };
                format!("{} {} {}{mark}", row.path, reason.number, reason.name)
            }
        };
        table.add_row([
            right(row.pid.to_string()),
            row.program.clone().into(),
            right(row.fd.to_string()),
            row.local.clone().into(),
            row.peer.clone().into(),
            path.into(),
            right(bytes(row.bytes_sent)),
            right(bytes(row.bytes_received)),
            right((row.calls_sent + row.calls_received).to_string()),
            right(row.sleeps.to_string()),
            right(row.doorbells.to_string()),
            right(format!("{} s", row.seconds)),
        ]);
    }
    format!("{table}\n")
}

fn reason_table(reasons: &[Reason]) -> String {
    let mut table = new_table();
    table.set_header(["number", "name", "why the connection is on TCP"]);
    for reason in reasons {
        table.add_row([
            right(reason.number.to_string()),
            reason.name.into(),
            reason.explanation.into(),
        ]);
    }
    format!("{table}\n")
}

/// In the largest unit that leaves a figure before the point.
fn bytes(n: u64) -> String {
    const UNITS: [(u64, &str); 4] = [
        (1 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ];
    match UNITS.iter().find(|(size, _)| n >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}", n as f64 / *size as f64),
        None => format!("{n} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_a_unit_that_fits() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(5 << 40), "5.0 TiB");
    }

    #[test]
    fn a_program_without_connections_has_none() {
        assert!(
            of_process(std::process::id())
                .expect("own process")
                .is_empty()
        );
    }
}
