use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use super::pipe::Shape;
use super::plan::{Budget, Job, Transport};
use super::side::{Answer, Order};
use crate::error::{Context, Error, Result};
use crate::process::Process;

/// Two measuring processes. Killed when dropped.
pub(crate) struct Pair {
    sides: [Side; 2],
    opened: usize,
}

impl Pair {
    /// Starts this program twice more, on these CPUs: the passive end on the first.
    pub(crate) fn start(cpus: [usize; 2]) -> Result<Self> {
        let mut pair = Self {
            sides: [Side::start(0)?, Side::start(1)?],
            opened: 0,
        };
        for (side, cpu) in pair.sides.iter_mut().zip(cpus) {
            side.order(&Order::Pin(cpu))?;
            side.done()?;
        }
        Ok(pair)
    }

    /// Connects the two; the connection's number.
    pub(crate) fn open(
        &mut self,
        transport: Transport,
        shape: Shape,
        lanes: usize,
    ) -> Result<usize> {
        let order = |address| Order::Open {
            transport,
            shape,
            lanes,
            address,
        };
        let [passive, active] = &mut self.sides;
        passive.order(&order(None))?;
        let address = match passive.answer()? {
            Answer::Listening(address) => address,
            other => return Err(other.unexpected()),
        };
        active.order(&order(Some(address)))?;
        active.done()?;
        passive.done()?;
        self.opened += 1;
        Ok(self.opened - 1)
    }

    /// Runs `job` at both ends; nanoseconds a message, the median of the blocks.
    pub(crate) fn run(&mut self, connection: usize, job: Job) -> Result<f64> {
        let order = Order::Run { connection, job };
        for side in &mut self.sides {
            side.order(&order)?;
        }
        let [passive, active] = &mut self.sides;
        // Whichever fails ends, so the other does, too: waiting for both cannot hang.
        let mut blocks = match (active.ran(), passive.ran()) {
            (Ok(blocks), Ok(_)) => blocks,
            (Err(error), Err(cause)) if error.is_consequence() => return Err(cause),
            (Err(error), _) | (_, Err(error)) => return Err(error),
        };
        blocks.sort_unstable();
        let median = blocks
            .get(blocks.len() / 2)
            .ok_or_else(|| Error::Protocol {
                from: "a measuring process",
                what: "no blocks".into(),
            })?;
        Ok(job.per_message(*median))
    }

    /// Finds how many rounds and blocks fill `budget`. Also warms caches and buffers up.
    pub(crate) fn fit(&mut self, connection: usize, job: Job, budget: Budget) -> Result<Job> {
        let mut trial = Job { blocks: 1, ..job };
        loop {
            let per_message = self.run(connection, trial)?;
            let block_ns = (per_message / trial.per_message(1)) as u64;
            if Duration::from_nanos(block_ns) >= budget.block / 4
                || trial.rounds >= ROUNDS_TRIED_MAX
            {
                return Ok(trial.fitted(block_ns, budget));
            }
            trial.rounds *= 4;
        }
    }
}

struct Side {
    index: usize,
    _process: Process,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Side {
    fn start(index: usize) -> Result<Self> {
        let mut process = Process::again([super::SIDE_COMMAND], Stdio::piped(), Stdio::piped())?;
        let (orders, answers) = process.pipes().expect("both were asked for");
        Ok(Self {
            index,
            _process: process,
            orders,
            answers: BufReader::new(answers),
        })
    }

    fn order(&mut self, order: &Order) -> Result<()> {
        let mut line = serde_json::to_vec(order).context("encoding an order")?;
        line.push(b'\n');
        self.orders
            .write_all(&line)
            .context("order to a measuring process")
    }

    fn answer(&mut self) -> Result<Answer> {
        let mut line = String::new();
        let length = self
            .answers
            .read_line(&mut line)
            .context("answer of a measuring process")?;
        if length == 0 {
            return Err(self.failed("it ended"));
        }
        match serde_json::from_str(&line) {
            Ok(Answer::Failed(message)) => Err(self.failed(&message)),
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.failed(&error.to_string())),
        }
    }

    fn done(&mut self) -> Result<()> {
        match self.answer()? {
            Answer::Done => Ok(()),
            other => Err(other.unexpected()),
        }
    }

    fn ran(&mut self) -> Result<Vec<u64>> {
        match self.answer()? {
            Answer::Ran(blocks) => Ok(blocks),
            other => Err(other.unexpected()),
        }
    }

    fn failed(&self, message: &str) -> Error {
        Error::Side {
            side: self.index,
            message: message.to_owned(),
        }
    }
}

impl Answer {
    fn unexpected(self) -> Error {
        Error::Protocol {
            from: "a measuring process",
            what: format!("{self:?}"),
        }
    }
}

const ROUNDS_TRIED_MAX: u32 = 1 << 20;
