//! Tables for a terminal or a file.

use std::collections::BTreeMap;

use super::rates::Lively;
use super::row::{Look, Process, Reason, Row, Sums, way};
use crate::netpipe::table::{new_table, right};

pub(super) fn connections(rows: &[Row]) -> String {
    if rows.is_empty() {
        return NONE.to_owned();
    }
    let mut table = new_table();
    table.set_header([
        "pid", "program", "fd", "local", "peer", "path", "sent", "received", "calls", "sleeps",
        "bells", "for",
    ]);
    for row in rows {
        let own = |count: u64| match row.is_vi() {
            true => right("-"),
            false => right(count),
        };
        table.add_row([
            right(row.pid),
            row.program.clone().into(),
            right(number(row.fd)),
            row.local.to_string().into(),
            row.peer.to_string().into(),
            row.way().into(),
            right(bytes(row.bytes_sent)),
            right(bytes(row.bytes_received)),
            right(row.calls()),
            own(row.sleeps),
            own(row.doorbells),
            right(format!("{} s", row.seconds)),
        ]);
    }
    format!("{table}\n")
}

/// The ways that each connection took.
pub(super) fn histories(rows: &[Row]) -> String {
    if rows.is_empty() {
        return NONE.to_owned();
    }
    let mut text = String::new();
    for row in rows {
        let Row {
            pid,
            program,
            fd,
            local,
            peer,
            ..
        } = row;
        let fd = number(*fd);
        text.push_str(&format!("{program} ({pid}) {fd}: {local} to {peer}\n"));
        for change in &row.history {
            let way = way(&change.path, change.reason.as_ref());
            let explanation = match &change.reason {
                Some(reason) => reason.explanation,
                None if row.is_vi() => "It is a VI.",
                None => "Its bytes go through shared memory.",
            };
            text.push_str(&format!(
                "{:>12} ago  {way}: {explanation}\n",
                duration(change.ms_ago)
            ));
        }
    }
    text
}

fn number(fd: Option<u32>) -> String {
    fd.map_or_else(|| "-".to_owned(), |fd| fd.to_string())
}

pub(super) fn processes(look: &Look) -> String {
    if look.processes.is_empty() {
        return NONE.to_owned();
    }
    let mut table = new_table();
    table.set_header([
        "pid", "program", "open", "shm/ring", "closed", "sent", "received", "calls", "sleeps",
        "bells",
    ]);
    for total in totals(look) {
        table.add_row([
            right(total.pid),
            total.program.into(),
            right(total.open),
            right(total.mapped),
            right(total.closed),
            right(bytes(total.sent)),
            right(bytes(total.received)),
            right(total.calls),
            right(total.sleeps),
            right(total.bells),
        ]);
    }
    format!("{table}\n")
}

/// A process, with its connections that are no more.
#[derive(Debug, Default, serde::Serialize)]
pub(super) struct Total {
    pub(super) pid: u32,
    pub(super) program: String,
    pub(super) open: u64,
    pub(super) mapped: u64,
    pub(super) closed: u64,
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) calls: u64,
    pub(super) sleeps: u64,
    pub(super) bells: u64,
}

pub(super) fn totals(look: &Look) -> Vec<Total> {
    let mut totals: BTreeMap<u32, Total> = look
        .processes
        .iter()
        .map(|process| (process.pid, total(process)))
        .collect();
    for row in &look.rows {
        let Some(total) = totals.get_mut(&row.pid) else {
            continue;
        };
        total.open += 1;
        total.mapped += u64::from(row.is_mapped());
        for (sum, count) in [
            (&mut total.sent, row.bytes_sent),
            (&mut total.received, row.bytes_received),
            (&mut total.calls, row.calls()),
            (&mut total.sleeps, row.sleeps),
            (&mut total.bells, row.doorbells),
        ] {
            *sum = sum.saturating_add(count);
        }
    }
    for process in &look.processes {
        if let (Some(total), Some(Sums(sums))) = (totals.get_mut(&process.pid), process.sums) {
            [
                total.sent,
                total.received,
                total.calls,
                total.sleeps,
                total.bells,
            ] = sums;
        }
    }
    totals.into_values().collect()
}

fn total(process: &Process) -> Total {
    let closed = process.closed;
    let [sent, received] = closed.bytes;
    let [calls_sent, calls_received] = closed.calls;
    Total {
        pid: process.pid,
        program: process.program.clone(),
        closed: closed.connections,
        sent,
        received,
        calls: calls_sent.saturating_add(calls_received),
        sleeps: closed.sleeps,
        bells: closed.bells,
        ..Total::default()
    }
}

/// As the live view, for what is no terminal.
pub(super) fn rates(lines: &[Lively]) -> String {
    if lines.is_empty() {
        return NONE.to_owned();
    }
    let mut table = new_table();
    table.set_header([
        "pid",
        "program",
        "local",
        "peer",
        "path",
        "sent/s",
        "received/s",
        "calls/s",
        "sleeps/s",
    ]);
    for line in lines {
        let (local, peer) = ends(line);
        table.add_row([
            right(line.pid),
            line.program.clone().into(),
            local.into(),
            peer.into(),
            line.way.clone().into(),
            right(bytes(line.rate.sent as u64)),
            right(bytes(line.rate.received as u64)),
            right(format!("{:.0}", line.rate.calls)),
            right(format!("{:.0}", line.rate.sleeps)),
        ]);
    }
    format!("{table}\n")
}

pub(super) fn ends(line: &Lively) -> (String, String) {
    match line.ends {
        Some((local, peer)) => (local.to_string(), peer.to_string()),
        None => Default::default(),
    }
}

pub(super) fn reasons(reasons: &[Reason]) -> String {
    let mut table = new_table();
    table.set_header(["number", "name", "why the connection is on TCP"]);
    for reason in reasons {
        table.add_row([
            right(reason.number),
            reason.name.into(),
            reason.explanation.into(),
        ]);
    }
    format!("{table}\n")
}

/// In the largest unit that leaves a figure before the point.
pub(super) fn bytes(n: u64) -> String {
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

fn duration(ms: u64) -> String {
    match ms {
        0..60_000 => format!("{}.{:03} s", ms / 1000, ms % 1000),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms / 1000 % 60),
        _ => format!("{} h {} min", ms / 3_600_000, ms / 60_000 % 60),
    }
}

/// In place of a table.
pub(super) const NONE: &str = "No such connection of a program under sovia.\n";

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn bytes_have_a_unit_that_fits() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(5 << 40), "5.0 TiB");
    }

    #[test]
    fn each_view_of_the_same() {
        let look = sample::look();
        let views = [
            connections(&look.rows),
            processes(&look),
            histories(&look.rows),
        ];
        insta::assert_snapshot!(views.join("\n"));
        assert_eq!(connections(&[]), NONE);
    }

    #[test]
    fn vis_sleep_and_ring_in_their_nic() {
        let rows = sample::vis();
        insta::assert_snapshot!([connections(&rows), histories(&rows)].join("\n"));
    }
}
