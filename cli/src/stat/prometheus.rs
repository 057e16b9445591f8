//! The text format of Prometheus, version 0.0.4.
//!
//! Per process, for connections come and go: a scrape of each would make a time series of each.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::row::Look;
use super::table::{Total, totals};

pub(super) fn text(look: &Look) -> String {
    let mut text = String::new();
    let totals = totals(look);
    // Writing to a string does not fail, here and below.
    let _ = writeln!(
        text,
        "# HELP sovia_connections Open connections by path and reason (0 is none).\n# TYPE sovia_connections gauge"
    );
    let mut open: BTreeMap<_, u64> = BTreeMap::new();
    for row in &look.rows {
        let reason = row
            .reason
            .as_ref()
            .map_or((0, ""), |reason| (reason.number, reason.name));
        *open
            .entry((row.pid, &row.program, &row.path, reason))
            .or_default() += 1;
    }
    for ((pid, program, path, (number, name)), n) in open {
        let program = escaped(program);
        let _ = writeln!(
            text,
            "sovia_connections{{pid=\"{pid}\",program=\"{program}\",path=\"{path}\",reason=\"{number}\",name=\"{name}\"}} {n}"
        );
    }
    for (name, help, value) in COUNTERS {
        let _ = writeln!(
            text,
            "# HELP sovia_{name} {help}\n# TYPE sovia_{name} counter"
        );
        for total in &totals {
            let program = escaped(&total.program);
            let value = value(total);
            let _ = writeln!(
                text,
                "sovia_{name}{{pid=\"{}\",program=\"{program}\"}} {value}",
                total.pid
            );
        }
    }
    text
}

fn escaped(label: &str) -> String {
    label
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

type Counter = (&'static str, &'static str, fn(&Total) -> u64);

const COUNTERS: [Counter; 6] = [
    (
        "bytes_sent_total",
        "Bytes sent, by whatever path.",
        |total| total.sent,
    ),
    (
        "bytes_received_total",
        "Bytes received, by whatever path.",
        |total| total.received,
    ),
    ("calls_total", "Calls that sent or received.", |total| {
        total.calls
    }),
    ("sleeps_total", "Sleeps in the kernel.", |total| {
        total.sleeps
    }),
    ("doorbells_total", "Doorbells rung.", |total| total.bells),
    (
        "connections_closed_total",
        "Connections that are no more.",
        |total| total.closed,
    ),
];

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn each_process_and_each_reason() {
        let mut look = sample::look();
        look.processes[1].program = "a\"b\\".to_owned();
        insta::assert_snapshot!(text(&look));
    }
}
