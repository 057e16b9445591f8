use std::io::{self, Write};
use std::time::Duration;

use crate::error::{Context, Result};
use crate::machine::{self, Conditions};
use crate::netpipe;
use crate::netpipe::pair::Pair;
use crate::netpipe::pipe::Shape;
use crate::netpipe::plan::{Budget, Column, Job, Pattern, Placement, Transport, Wait};
use crate::netpipe::report::{NOISY_MARK, Row};
use crate::netpipe::table::{micros, new_table, right, significant};
use crate::nic::Medium;

/// Two processes exchange messages over a VI, a Unix socket and TCP, side by side
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  sovia vi demo\n  sovia vi demo --quick")]
pub(crate) struct Options {
    /// Take a second or two instead of five
    #[arg(long)]
    quick: bool,
}

/// `sovia vi demo`.
pub(crate) fn main(options: &Options) -> Result<()> {
    let before = machine::measure()?;
    let placement = match machine::cpus(Placement::Two) {
        Ok(_) => Placement::Two,
        Err(_) => Placement::One,
    };
    let mut pair = Pair::start(machine::cpus(placement)?)?;
    let mut cells = Vec::new();
    for line in &LINES {
        for transport in TRANSPORTS {
            cells.push(Cell::open(&mut pair, line, transport, placement)?);
        }
    }
    let run = Duration::from_millis(if options.quick { 10 } else { 30 });
    for cell in &mut cells {
        cell.job = pair.fit(
            cell.connection,
            cell.job,
            Budget {
                run,
                block: run / 40,
            },
        )?;
    }
    let progress = netpipe::progress(RUNS * cells.len());
    for _ in 0..RUNS {
        for cell in &mut cells {
            cell.row.runs_ns.push(pair.run(cell.connection, cell.job)?);
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    drop(pair);
    let text = describe(&cells, placement, &Conditions::since(before)?);
    io::stdout()
        .write_all(text.as_bytes())
        .context("standard output")
}

/// A line of the table.
struct Line {
    title: &'static str,
    pattern: Pattern,
    size: usize,
    /// Of the VI; sockets that cannot wait like this block.
    wait: Wait,
    unit: Unit,
}

#[derive(Clone, Copy)]
enum Unit {
    Micros,
    GigabytesPerSecond,
    PerSecond,
}

const LINES: [Line; 6] = [
    Line {
        title: "8 bytes one way, polling",
        pattern: Pattern::PingPong,
        size: 8,
        wait: Wait::Poll,
        unit: Unit::Micros,
    },
    Line {
        title: "8 bytes one way, asleep",
        pattern: Pattern::PingPong,
        size: 8,
        wait: Wait::Block,
        unit: Unit::Micros,
    },
    Line {
        title: "8 bytes one way, as programs wait",
        pattern: Pattern::PingPong,
        size: 8,
        wait: Wait::Adaptive,
        unit: Unit::Micros,
    },
    Line {
        title: "64 kB messages, one direction",
        pattern: Pattern::Stream,
        size: 64 << 10,
        wait: Wait::Poll,
        unit: Unit::GigabytesPerSecond,
    },
    Line {
        title: "1 MB by RDMA write (sockets: send)",
        pattern: Pattern::RdmaWrite,
        size: RDMA_SIZE as usize,
        wait: Wait::Poll,
        unit: Unit::GigabytesPerSecond,
    },
    Line {
        title: "connect and disconnect",
        pattern: Pattern::Connect,
        size: 1,
        wait: Wait::Block,
        unit: Unit::PerSecond,
    },
];

const TRANSPORTS: [Transport; 3] = [Transport::Vi, Transport::Unix, Transport::Tcp];

/// One transport in one line.
struct Cell {
    connection: usize,
    job: Job,
    unit: Unit,
    row: Row,
}

impl Cell {
    fn open(
        pair: &mut Pair,
        line: &Line,
        transport: Transport,
        placement: Placement,
    ) -> Result<Self> {
        let mut column = Column {
            transport,
            wait: line.wait,
            placement,
            mtu: None,
        };
        if !column.exists() {
            column.wait = Wait::Block;
        }
        let shape = Shape {
            wait: column.wait,
            yielding: placement == Placement::One,
            bytes_max: line.size.max(8),
            mtu: match line.pattern {
                // One descriptor a write.
                Pattern::RdmaWrite => Some(RDMA_SIZE),
                // Room for many messages, as a program has it whose messages are short: fewer are about nothing but room.
                Pattern::PingPong => Some(SHORT_MAX),
                _ => None,
            },
            medium: Medium::Shm,
        };
        let (pattern, size) = (line.pattern, line.size);
        Ok(Self {
            connection: pair.open(transport, shape, 1)?,
            job: Job {
                pattern,
                size,
                rounds: pattern.rounds_min(),
                blocks: 1,
            },
            unit: line.unit,
            row: Row::new(column, pattern, size),
        })
    }

    fn figure(&self) -> String {
        let ns = self.row.best_ns();
        let figure = match self.unit {
            Unit::Micros => format!("{} µs", micros(ns)),
            Unit::GigabytesPerSecond => format!("{} GB/s", significant(self.row.gigabytes_per_s())),
            Unit::PerSecond => format!("{:.0} /s", 1e9 / ns),
        };
        if self.row.is_noisy() {
            format!("{figure}{NOISY_MARK}")
        } else {
            figure
        }
    }
}

fn describe(cells: &[Cell], placement: Placement, conditions: &Conditions) -> String {
    let mut table = new_table();
    let header = TRANSPORTS.map(|transport| transport.to_string());
    table.set_header(
        [right("")]
            .into_iter()
            .chain(header.map(right))
            .chain([right("VI against TCP")]),
    );
    for (line, cells) in LINES.iter().zip(cells.chunks(TRANSPORTS.len())) {
        let [vi, .., tcp] = cells else { continue };
        let gain = format!("{} ×", significant(tcp.row.best_ns() / vi.row.best_ns()));
        let figures = cells.iter().map(|cell| right(cell.figure()));
        table.add_row(
            [comfy_table::Cell::new(line.title)]
                .into_iter()
                .chain(figures)
                .chain([right(gain)]),
        );
    }
    format!(
        "Two processes of this host, on {placement}; best of {RUNS} runs, of a run the median block; \
         {NOISY_MARK} marks runs that disagree.\n{table}\n\
         \"As programs wait\": the VI polls for 20 µs at most before it sleeps; sockets sleep.\n\
         {conditions}\n"
    )
}

const RUNS: usize = 5;
const RDMA_SIZE: u32 = 1 << 20;
const SHORT_MAX: u32 = 4096;
