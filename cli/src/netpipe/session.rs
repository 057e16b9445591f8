use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use sys::host::Machine;

use super::options::Options;
use super::pair::Pair;
use super::pipe::Shape;
use super::plan::{self, Budget, Column, Job, Pattern, Placement, Transport, Wait};
use super::report::{Report, Row};
use super::run;
use super::vi::MTU_DEFAULT;
use crate::error::{Error, Result};
use crate::machine::{self, Conditions};

/// What is to be measured, checked.
pub(super) struct Session<'a> {
    options: &'a Options,
    pattern: Pattern,
    columns: Vec<Column>,
    sizes: Vec<usize>,
    budget: Budget,
}

/// A column with its connection.
struct Running {
    column: Column,
    pair: usize,
    connection: usize,
}

impl<'a> Session<'a> {
    pub(super) fn new(options: &'a Options) -> Result<Self> {
        if options.min > options.max {
            return Err(Error::Misuse(format!(
                "--min {} is more than --max {}",
                options.min, options.max
            )));
        }
        let sizes = if options.quick {
            QUICK_SIZES.to_vec()
        } else if options.sizes.is_empty() {
            plan::sizes(options.min, options.max, options.perturbation.into())
        } else {
            sorted(options.sizes.clone())
        };
        let run_ms = options
            .run_ms
            .unwrap_or(if options.quick { 10 } else { 20 });
        let run = Duration::from_millis(run_ms.into());
        Ok(Self {
            options,
            pattern: match options {
                Options { stream: true, .. } => Pattern::Stream,
                Options {
                    bidirectional: true,
                    ..
                } => Pattern::Bidirectional,
                _ => Pattern::PingPong,
            },
            columns: columns(options)?,
            sizes,
            budget: Budget {
                run,
                block: (run / 40).max(Duration::from_micros(500)),
            },
        })
    }

    /// Whether `column` is measured at `size`: the comparison of transfer sizes does without perturbation.
    fn wants(&self, column: Column, size: usize) -> bool {
        let options = self.options;
        column.mtu.is_none()
            || options.quick
            || !options.sizes.is_empty()
            || plan::centres(options.min, options.max).contains(&size)
    }

    pub(super) fn measure(&self) -> Result<Report> {
        let before = machine::measure()?;
        let progress = progress(self.runs());
        let mut pairs = Vec::new();
        let running = self.connect(&mut pairs)?;
        let mut rows = Vec::new();
        for &size in &self.sizes {
            let wanted = running
                .iter()
                .filter(|running| self.wants(running.column, size));
            progress.set_message(format!("{size} bytes · "));
            rows.extend(self.measure_size(size, wanted.collect(), &mut pairs, &progress)?);
        }
        drop(pairs);
        progress.finish_and_clear();
        self.report(rows, before)
    }

    /// One pair of processes a placement, and in it one connection a column.
    fn connect(&self, pairs: &mut Vec<Pair>) -> Result<Vec<Running>> {
        let mut running = Vec::new();
        for placement in [Placement::One, Placement::Two] {
            let columns: Vec<_> = self
                .columns
                .iter()
                .filter(|column| column.placement == placement)
                .collect();
            if columns.is_empty() {
                continue;
            }
            let mut pair = Pair::start(machine::cpus(placement)?)?;
            for &column in columns {
                let connection = self.open(&mut pair, column)?;
                running.push(Running {
                    column,
                    pair: pairs.len(),
                    connection,
                });
            }
            pairs.push(pair);
        }
        Ok(running)
    }

    fn open(&self, pair: &mut Pair, column: Column) -> Result<usize> {
        let longest = self.sizes.iter().copied().max().unwrap_or(1);
        let shape = Shape {
            wait: column.wait,
            yielding: column.placement == Placement::One,
            bytes_max: longest.max(run::ACK_SIZE),
            mtu: column.mtu,
            medium: self.options.medium(),
        };
        pair.open(column.transport, shape, self.options.vis.into())
    }

    /// All columns once, then all once more, and so on: a machine that changes its mind for some seconds then does so for
    /// every column alike.
    fn measure_size(
        &self,
        size: usize,
        wanted: Vec<&Running>,
        pairs: &mut [Pair],
        progress: &ProgressBar,
    ) -> Result<Vec<Row>> {
        let job = Job {
            pattern: self.pattern,
            size,
            rounds: self.pattern.rounds_min(),
            blocks: 1,
        };
        let mut jobs = Vec::with_capacity(wanted.len());
        for running in &wanted {
            jobs.push(pairs[running.pair].fit(running.connection, job, self.budget)?);
        }
        let mut rows: Vec<Row> = wanted
            .iter()
            .map(|running| Row::new(running.column, self.pattern, size))
            .collect();
        for _ in 0..self.options.runs {
            for ((running, job), row) in wanted.iter().zip(&jobs).zip(&mut rows) {
                row.runs_ns
                    .push(pairs[running.pair].run(running.connection, *job)?);
                progress.inc(1);
            }
        }
        Ok(rows)
    }

    fn report(&self, rows: Vec<Row>, before: Machine) -> Result<Report> {
        Ok(Report {
            nic: self.options.medium().name(),
            pattern: self.pattern,
            connections: self.options.vis,
            runs: self.options.runs,
            run_ms: self.budget.run.as_millis() as u64,
            is_exact: !self.options.sizes.is_empty(),
            rows,
            conditions: Conditions::since(before)?,
        })
    }

    fn runs(&self) -> usize {
        let of_size = |&size: &usize| {
            self.columns
                .iter()
                .filter(|&&column| self.wants(column, size))
                .count()
        };
        self.sizes.iter().map(of_size).sum::<usize>() * usize::from(self.options.runs)
    }
}

/// A bar with the time left. indicatif hides it where standard error is no terminal.
pub(crate) fn progress(runs: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {percent:>3} % · {msg}{eta} left")
        .expect("the template is constant");
    ProgressBar::new(runs as u64).with_style(style)
}

fn columns(options: &Options) -> Result<Vec<Column>> {
    let placements = match options.cpus.as_slice() {
        [] if machine::cpus(Placement::Two).is_err() => vec![Placement::One],
        [] => vec![Placement::One, Placement::Two],
        asked => asked.to_vec(),
    };
    let mut columns = Vec::new();
    for &placement in &placements {
        machine::cpus(placement)?;
        for &transport in &options.transport {
            for &wait in &options.wait {
                columns.push(Column {
                    transport,
                    wait,
                    placement,
                    mtu: None,
                });
            }
        }
    }
    columns.retain(|column| column.exists());
    // The effect of the transfer size shows best where nobody sleeps and each has a CPU.
    let sweep = columns
        .iter()
        .filter(|column| column.transport == Transport::Vi)
        .max_by_key(|column| {
            (
                column.placement == Placement::Two,
                column.wait == Wait::Poll,
            )
        })
        .copied();
    if let Some(column) = sweep {
        let mtus = sorted(options.mtu.clone())
            .into_iter()
            .filter(|&mtu| mtu != MTU_DEFAULT);
        columns.extend(mtus.map(|mtu| Column {
            mtu: Some(mtu),
            ..column
        }));
    }
    if columns.is_empty() {
        let asked = "sockets wait by polling or by blocking, and on one CPU a VI does so, too";
        return Err(Error::Misuse(format!("nothing to measure: {asked}")));
    }
    let mut distinct: Vec<Column> = Vec::new();
    for column in columns {
        if !distinct.contains(&column) {
            distinct.push(column);
        }
    }
    Ok(distinct)
}

fn sorted<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort_unstable();
    values.dedup();
    values
}

const QUICK_SIZES: [usize; 6] = [1, 8, 1 << 10, 16 << 10, 64 << 10, 1 << 20];
