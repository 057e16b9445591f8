//! One of the two measuring processes: takes orders on its standard input, one JSON value a line, and answers on its
//! standard output. Which end of a connection it is, the orders say.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};

use super::pipe::{Lanes, Pipe, Port, Shape};
use super::plan::{Job, Pattern, Transport};
use super::run::{self, End};
use super::socket::Socket;
use super::tcp::Tcp;
use super::unix::Unix;
use super::vi::ViPort;
use super::vi::pipe::ViPipe;
use crate::error::{Context, Error, Result};
use crate::machine;

/// What the parent may ask. Orders are done one after the other.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Order {
    /// Stay on this CPU from now on.
    Pin(usize),
    /// Make `lanes` connections, known from now on by their number: 0 for the first order of this kind, and so on.
    Open {
        transport: Transport,
        shape: Shape,
        lanes: usize,
        /// What to dial; `None` for the end that listens.
        address: Option<String>,
    },
    /// Measure on the connections of this number.
    Run { connection: usize, job: Job },
}

/// One for each order, and one more (`Listening`) for an `Open` that listens.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    Done,
    Listening(String),
    /// Nanoseconds of each block.
    Ran(Vec<u64>),
    Failed(String),
}

/// Serves orders until the parent closes the pipe.
pub(crate) fn serve() -> Result<()> {
    let mut side = Side { opened: Vec::new() };
    for line in io::stdin().lock().lines() {
        let line = line.context("standard input")?;
        let order = serde_json::from_str(&line).map_err(|error| Error::Protocol {
            from: "the parent",
            what: error.to_string(),
        })?;
        match side.obey(order) {
            Ok(answer) => answer_with(&answer)?,
            // Ending closes our connections, so the other side cannot wait for us for ever.
            Err(error) => return answer_with(&Answer::Failed(error.to_string())),
        }
    }
    Ok(())
}

struct Side {
    opened: Vec<Connection>,
}

impl Side {
    fn obey(&mut self, order: Order) -> Result<Answer> {
        match order {
            Order::Pin(cpu) => {
                machine::pin(cpu)?;
                Ok(Answer::Done)
            }
            Order::Open {
                transport,
                shape,
                lanes,
                address,
            } => {
                let open = || Connection::open(transport, shape, lanes, address.as_deref());
                self.opened.push(open()?);
                Ok(Answer::Done)
            }
            Order::Run { connection, job } => {
                let connection =
                    self.opened
                        .get_mut(connection)
                        .ok_or_else(|| Error::Protocol {
                            from: "the parent",
                            what: format!("no connection {connection}"),
                        })?;
                connection.run(job).map(Answer::Ran)
            }
        }
    }
}

fn answer_with(answer: &Answer) -> Result<()> {
    let mut line = serde_json::to_vec(answer).context("encoding an answer")?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line).context("standard output")?;
    stdout.flush().context("standard output")
}

/// Monomorphic below this point: the timing loops know their transport.
enum Connection {
    Tcp(Connected<Tcp, Socket>),
    Unix(Connected<Unix, Socket>),
    Vi(Connected<ViPort, ViPipe>),
}

impl Connection {
    fn open(
        transport: Transport,
        shape: Shape,
        lanes: usize,
        address: Option<&str>,
    ) -> Result<Self> {
        Ok(match transport {
            Transport::Tcp => Self::Tcp(Connected::new(shape, lanes, address)?),
            Transport::Unix => Self::Unix(Connected::new(shape, lanes, address)?),
            Transport::Vi => Self::Vi(Connected::new(shape, lanes, address)?),
        })
    }

    fn run(&mut self, job: Job) -> Result<Vec<u64>> {
        match self {
            Self::Tcp(connected) => connected.run(job),
            Self::Unix(connected) => connected.run(job),
            Self::Vi(connected) => connected.run(job),
        }
    }
}

struct Connected<T, P> {
    end: End,
    port: T,
    lanes: Lanes<P>,
}

impl<T: Port<Pipe = P>, P: Pipe> Connected<T, P> {
    fn new(shape: Shape, lanes: usize, address: Option<&str>) -> Result<Self> {
        let (end, mut port) = match address {
            Some(address) => (End::Active, T::dial(shape, address)?),
            None => {
                let port = T::listen(shape)?;
                answer_with(&Answer::Listening(port.address()))?;
                (End::Passive, port)
            }
        };
        let pipes = (0..lanes.max(1))
            .map(|_| port.open())
            .collect::<Result<_>>()?;
        Ok(Self {
            end,
            port,
            lanes: Lanes::new(pipes),
        })
    }

    fn run(&mut self, job: Job) -> Result<Vec<u64>> {
        match job.pattern {
            Pattern::Connect => {
                run::blocks(job, || (0..job.rounds).try_for_each(|_| self.port.knock()))
            }
            _ => run::run(&mut self.lanes, self.end, job),
        }
    }
}
