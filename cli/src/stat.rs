//! `sovia stat`: the connections of programs under sovia, and why each goes the way it goes.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use sockets::stat::Closed;

use crate::error::{Context, Error, Result};
use crate::output::complain;
use filter::Filter;
use row::{Host, Look, Reason};
use unseen::unseen;

mod filter;
mod listen;
mod prometheus;
mod rates;
mod row;
#[cfg(test)]
mod sample;
mod table;
mod unseen;
mod watch;

/// Show the connections of programs under sovia
///
/// Each line is one end of a connection: the way its bytes take (shm/ring, tcp with the reason, or a VI: shm/packet, iwarp/extended and the like), what it carried, and how often it
/// slept in the kernel and rang the peer's doorbell. Root sees the programs of all users.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Of this process only
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Sums of each process, with its connections that are no more, unless a filter is of more than pid and program
    #[arg(long, conflicts_with_all = ["history", "prometheus"])]
    processes: bool,
    /// The last ways that each connection took, and why
    #[arg(long, conflicts_with_all = ["prometheus", "watch"])]
    history: bool,
    /// The text format of Prometheus, for its textfile collector; filters by pid and program only
    #[arg(long, conflicts_with_all = ["json", "watch"])]
    prometheus: bool,
    /// With --prometheus, answer scrapes at this port or address of the loopback, until ended. Every user of this host may ask
    #[arg(long, value_name = "[ADDRESS:]PORT", requires = "prometheus")]
    listen: Option<String>,
    /// What flows, again and again: live on a terminal (q quit, s sort, p processes, space hold), table after table elsewhere
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "1", conflicts_with = "json")]
    watch: Option<f64>,
    /// With --watch, end after so many
    #[arg(long, value_name = "N", requires = "watch", value_parser = clap::value_parser!(u32).range(1..))]
    times: Option<u32>,
    /// List the reasons there are for a connection to be on TCP
    #[arg(long, conflicts_with_all = ["pid", "processes", "history", "prometheus", "watch", "filter"])]
    reasons: bool,
    /// Only connections that fit: sport, dport, src, dst, state, path, reason, pid, program, fd, origin, rule, sent, received; = != < <= > >=; and, or, not, ( )
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
}

const HELP: &str = "\
Filters are as in ss: ports as :6379 or 6379, addresses and networks, sizes as 64K; path as shown, or half of it (shm, iwarp, packet); state young, meeting, mapped, tcp or via; \
program, path and reason with * and ?; rule none, never, when-possible or always. Words side by side are joined by and.

Exit status: 0 whatever there is to show, 2 for a mistake in the filter or the options, 1 if it cannot be shown.

Examples:
  sovia stat
  sovia stat sport = :6379 and path = tcp
  sovia stat --history 'program = redis-* and not (reason = not-local or state = young)'
  sovia stat --watch=0.5 --processes
  sovia stat --pid 4711 --json | jq '.[].path'
  cd /var/lib/prometheus/node-exporter && sovia stat --prometheus > sovia.prom.new && mv sovia.prom.new sovia.prom
  sovia stat --prometheus --listen 9464
  sovia stat --reasons";

/// Where connections are looked up, and which of them are wanted.
struct Source {
    host: Host,
    pid: Option<u32>,
    filter: Filter,
}

impl Source {
    fn look(&mut self) -> Result<Look> {
        let look = self.host.look(self.pid);
        let mut look = match self.pid {
            Some(pid) => look.map_err(|error| unseen(pid, error))?,
            None => look.context("/proc")?,
        };
        narrow(&mut look, &self.filter);
        Ok(look)
    }

    /// Says on standard error what the last look left out; of other users' processes only where nothing was found otherwise.
    fn warn(&self, found_none: bool) {
        if found_none && self.host.hidden > 0 {
            complain("processes of other users were not looked at, which only root may");
        }
        if !self.host.strange.is_empty() {
            complain(format_args!(
                "not shown, for they run under another version of sovia: {:?}",
                self.host.strange
            ));
        }
    }
}

/// A number behind `--watch` is no filter, and seconds are a part of its word.
fn hint(options: &Options) -> String {
    let first = options.filter.first();
    match first.filter(|first| options.watch.is_some() && first.parse::<f64>().is_ok()) {
        Some(seconds) => format!(" (for every {seconds} seconds: --watch={seconds})"),
        None => String::new(),
    }
}

/// Leaves what fits.
fn narrow(look: &mut Look, filter: &Filter) {
    let Look { rows, processes } = look;
    rows.retain(|row| filter.fits(row));
    if filter.is_of_processes() {
        processes.retain(|process| filter.fits_process(process));
        return;
    }
    processes.retain(|process| rows.iter().any(|row| row.pid == process.pid));
    for process in processes {
        // Of connections that are no more nobody knows whether they fitted.
        process.closed = Closed::default();
        process.sums = None;
    }
}

/// `sovia stat`.
pub(crate) fn main(options: &Options) -> Result<()> {
    let filter = Filter::parse(&options.filter.join(" "));
    let mut source = Source {
        host: Host::default(),
        pid: options.pid,
        filter: filter.map_err(|mistake| Error::Misuse(format!("{mistake}{}", hint(options))))?,
    };
    // Prometheus takes a counter that goes down for one that has begun anew.
    if options.prometheus && !source.filter.is_of_processes() {
        return Err(Error::Misuse(
            "--prometheus counts by process: filters by pid and program only".to_owned(),
        ));
    }
    if let Some(seconds) = options.watch {
        let every = Duration::try_from_secs_f64(seconds)
            .ok()
            .filter(|every| (Duration::from_millis(50)..=Duration::from_hours(24)).contains(every));
        let every =
            every.ok_or_else(|| Error::Misuse("--watch: from 0.05 seconds to a day".to_owned()))?;
        return watch::watch(options, &mut source, every);
    }
    if let Some(address) = &options.listen {
        return listen::serve(address, &mut source);
    }
    let (text, found_none) = once(options, &mut source)?;
    io::stdout()
        .write_all(text.as_bytes())
        .context("standard output")?;
    if let Some(pid) = source.pid.filter(|pid| source.host.is_without(*pid)) {
        complain(format_args!(
            "process {pid} is not under sovia, or has had no connection"
        ));
    }
    source.warn(found_none);
    Ok(())
}

/// What is to be shown, and whether that is nothing.
fn once(options: &Options, source: &mut Source) -> Result<(String, bool)> {
    if options.reasons {
        let reasons: Vec<Reason> = sockets::reason::Reason::ALL
            .iter()
            .map(|&reason| reason.into())
            .collect();
        let text = match options.json {
            true => json(&reasons)?,
            false => table::reasons(&reasons),
        };
        return Ok((text, false));
    }
    let look = source.look()?;
    let found_none = match options.processes || options.prometheus {
        true => look.processes.is_empty(),
        false => look.rows.is_empty(),
    };
    let text = match options {
        Options {
            processes: true,
            json: true,
            ..
        } => json(&table::totals(&look))?,
        Options { json: true, .. } => json(&look.rows)?,
        Options {
            prometheus: true, ..
        } => prometheus::text(&look),
        Options {
            processes: true, ..
        } => table::processes(&look),
        Options { history: true, .. } => table::histories(&look.rows),
        _ => table::connections(&look.rows),
    };
    Ok((text, found_none))
}

fn json(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value)
        .map_err(io::Error::from)
        .context("JSON")?;
    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_of_what_fits() {
        let sums = |filter: &str| -> Vec<_> {
            let filter = Filter::parse(filter).unwrap_or_else(|mistake| panic!("{mistake}"));
            let mut look = sample::look();
            narrow(&mut look, &filter);
            let totals = table::totals(&look).into_iter();
            totals
                .map(|total| (total.pid, total.open, total.closed, total.sent))
                .collect()
        };
        let redis = (100, 2, 0, 1000 + (2 << 20));
        let nginx = (200, 1, 7, 1100);
        assert_eq!(sums(""), [redis, nginx]);
        assert_eq!(sums("program = nginx"), [nginx]);
        assert_eq!(sums("path = shm"), [(100, 1, 0, 1 << 20)]);
        assert_eq!(sums("sport = 80"), [(200, 1, 0, 100)]);
    }
}
