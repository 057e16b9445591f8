use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use super::place::{Cpus, Place, Trace};
use super::session::{Budget, Contestant};
use super::way::{End, Way};
use crate::error::{Context, Error, Result};
use crate::plain::{self, Order};
use crate::process::{self, Process, Said};

/// Which two of the plain programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    pub(super) server: &'static str,
    pub(super) client: &'static str,
    /// Bytes a message.
    pub(super) size: usize,
    /// Connections besides, or, where all are used, instead.
    pub(super) idle: usize,
    /// Messages of a connection, where there is one after the other.
    pub(super) trips: usize,
}

impl Service {
    pub(super) const fn of(server: &'static str, client: &'static str, size: usize) -> Self {
        Self {
            server,
            client,
            size,
            idle: 0,
            trips: 1,
        }
    }
}

/// How the rounds of a run become one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// The median of many short blocks: what passes by now and then does not count.
    Median,
    /// All rounds of the run: what others take away counts.
    Whole,
}

/// A server and a client, which wait for orders.
pub(super) struct Pair {
    // The client first: its end closes the connection, as in life.
    client: Process,
    server: Process,
    orders: ChildStdin,
    answers: BufReader<Said>,
    trace: Trace,
    method: Method,
    /// What a run is.
    order: Order,
}

impl Pair {
    pub(super) fn start(
        place: &Place,
        service: Service,
        way: Way,
        cpus: Cpus,
        method: Method,
    ) -> Result<Self> {
        Self::start_noting(place, service, way, cpus, method, place.trace()?)
    }

    /// The same with a trace of its own.
    pub(super) fn start_noting(
        place: &Place,
        service: Service,
        way: Way,
        cpus: Cpus,
        method: Method,
        trace: Trace,
    ) -> Result<Self> {
        let mut command = process::myself();
        command
            .args([plain::COMMAND, service.server])
            .arg(service.size.to_string())
            .args((way == Way::Unix).then_some("--unix"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut server = place.start(&mut command, End::Server, way, cpus, &trace)?;
        let address = match server.stdout() {
            Some(stdout) => first_line(stdout)?,
            None => return Err(ended()),
        };
        let mut command = process::myself();
        command
            .args([plain::COMMAND, service.client, &address])
            .arg(service.size.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if service.idle > 0 {
            command.arg(service.idle.to_string());
        }
        if service.trips > 1 {
            command.arg(service.trips.to_string());
        }
        let mut client = place.start(&mut command, End::Client, way, cpus, &trace)?;
        let (orders, answers) = client.pipes().ok_or_else(ended)?;
        Ok(Self {
            client,
            server,
            orders,
            answers: BufReader::new(Said::new(answers, SILENCE_MAX)?),
            trace,
            method,
            order: Order::Span { ms: WARM_UP_MS },
        })
    }

    /// Process identifiers.
    pub(super) fn ids(&self) -> [u32; 2] {
        [self.server.id(), self.client.id()]
    }

    pub(super) fn order(&mut self, order: Order) -> Result<()> {
        let mut line = serde_json::to_vec(&order).context("encoding an order")?;
        line.push(b'\n');
        self.orders.write_all(&line).context("order to a client")
    }

    pub(super) fn answer(&mut self) -> Result<Vec<u64>> {
        let mut line = String::new();
        let length = self
            .answers
            .read_line(&mut line)
            .context("answer of a client")?;
        if length == 0 {
            return Err(ended());
        }
        serde_json::from_str(&line).map_err(|error| Error::Protocol {
            from: "a client",
            what: error.to_string(),
        })
    }

    /// So many rounds that nobody times.
    pub(super) fn warm_up(&mut self, rounds: u32) -> Result<()> {
        self.obey(Order::Blocks { blocks: 1, rounds }).map(drop)
    }

    fn obey(&mut self, order: Order) -> Result<Vec<u64>> {
        self.order(order)?;
        self.answer()
    }

    /// As many blocks as fill `budget`, judged by the least disturbed of a few, more than once: a stream in small blocks is
    /// slower than in large ones.
    fn fitted(&mut self, round_ns: f64, budget: Budget) -> Result<Order> {
        let block_ns = budget.block.as_nanos() as f64;
        let mut rounds = (block_ns / round_ns).clamp(1.0, ROUNDS_MAX);
        let mut least_ns = block_ns;
        for _ in 0..FITTINGS_MAX {
            let blocks = self.obey(Order::Blocks {
                blocks: BLOCKS_MIN,
                rounds: rounds as u32,
            })?;
            least_ns = blocks.into_iter().min().ok_or_else(ended)?.max(1) as f64;
            if least_ns >= block_ns * 0.7 {
                break;
            }
            rounds = (rounds * (block_ns / least_ns).min(8.0))
                .ceil()
                .min(ROUNDS_MAX);
        }
        let blocks = budget.run.as_nanos() as f64 / least_ns.max(block_ns);
        Ok(Order::Blocks {
            blocks: blocks.clamp(BLOCKS_MIN.into(), 100.0) as u32,
            rounds: rounds as u32,
        })
    }

    /// Nanoseconds a round, for so long.
    fn whole(&mut self, time: Duration) -> Result<f64> {
        let order = Order::Span {
            ms: time.as_millis() as u32,
        };
        match self.obey(order)?[..] {
            [rounds, ns] => Ok(ns as f64 / rounds.max(1) as f64),
            _ => Err(ended()),
        }
    }
}

impl Contestant for Pair {
    fn fit(&mut self, budget: Budget) -> Result<()> {
        // Long enough for an upgrade, too.
        let round_ns = self.whole(Duration::from_millis(WARM_UP_MS.into()))?;
        self.order = match self.method {
            Method::Whole => Order::Span {
                ms: budget.run.as_millis() as u32,
            },
            Method::Median => self.fitted(round_ns, budget)?,
        };
        Ok(())
    }

    fn run(&mut self) -> Result<f64> {
        match self.order {
            Order::Span { ms } => self.whole(Duration::from_millis(ms.into())),
            Order::Blocks { rounds, .. } => {
                let mut blocks = self.obey(self.order)?;
                blocks.sort_unstable();
                let median = blocks.get(blocks.len() / 2).ok_or_else(ended)?;
                Ok(*median as f64 / f64::from(rounds))
            }
        }
    }

    fn upgrades(&self) -> usize {
        self.trace.upgrades()
    }
}

fn first_line(stdout: ChildStdout) -> Result<String> {
    let mut line = String::new();
    BufReader::new(Said::new(stdout, SILENCE_MAX)?)
        .read_line(&mut line)
        .context("address of a server")?;
    match line.trim_end() {
        "" => Err(ended()),
        address => Ok(address.to_owned()),
    }
}

/// It has said why on standard error, which is ours.
pub(super) fn ended() -> Error {
    Error::Protocol {
        from: "a measuring program",
        what: "it ended".into(),
    }
}

const WARM_UP_MS: u32 = 20;
/// Below this a median says little.
const BLOCKS_MIN: u32 = 5;
const ROUNDS_MAX: f64 = 1e7;
const FITTINGS_MAX: u32 = 10;

/// Whoever says nothing for so long hangs; no order takes more than seconds, but connections by the thousands are made first.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(60);
