//! One of the two measuring processes: the same steps in the same order at both ends.

use std::io::{BufRead, Write, stdin, stdout};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use sockets::packet::Waiting;

use super::plain::Plain;
use super::way::{PacketPipe, Way, listen};
use crate::error::{Context, Error, Result};
use crate::machine;
use crate::netpipe::pipe::{Pipe, Port, Shape};
use crate::netpipe::plan::Wait;
use crate::netpipe::tcp::Tcp;
use crate::netpipe::vi::ViPort;

/// What `sovia` is started with, once more.
pub(crate) const COMMAND: &str = "paper-end";

/// One of bench paper-sovia's two measuring processes
#[derive(Debug, clap::Args)]
pub(crate) struct End {
    #[arg(long)]
    way: Way,
    #[arg(long)]
    cpu: usize,
    /// Sleep while waiting
    #[arg(long)]
    block: bool,
    #[arg(long)]
    quick: bool,
    /// Only 4 bytes there and back, and a stream of 32 kB
    #[arg(long)]
    short: bool,
    /// Only what goes there and back in Figure 10
    #[arg(long, conflicts_with = "short")]
    calls: bool,
    /// Where the other end listens
    #[arg(long)]
    dial: Option<String>,
}

/// One figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) what: What,
    pub(crate) bytes: usize,
    /// Nanoseconds one way, for one message of a stream, or for a call.
    pub(crate) ns: f64,
}

/// Which half of Figure 9, or Figure 10.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum What {
    /// Half of the time there and back.
    Latency,
    /// A long row of messages, and one answer.
    Bandwidth,
    /// A message as long as a call of a remote procedure with such an argument, and one as long as its answer: Figure 10.
    Call,
}

/// Runs one end. The one that listens says where on its standard output, the other its figures.
pub(crate) fn main(end: &End) -> Result<()> {
    let shape = Shape {
        wait: match (end.way, end.block) {
            // A program over TCP, or over the ring, does what programs do.
            (Way::Tcp | Way::Ring, _) | (_, true) => Wait::Block,
            _ => Wait::Poll,
        },
        yielding: false,
        bytes_max: BYTES_MAX,
        mtu: Some(BYTES_MAX as u32),
        medium: crate::nic::Medium::Shm,
    };
    let waiting = if end.block {
        Waiting::Blocking
    } else {
        Waiting::Polling
    };
    match (end.way.variant(), &end.dial) {
        (None, _) if end.way == Way::Native => end.over::<ViPort>(shape),
        (None, _) if end.way == Way::Ring => end.over::<Plain>(shape),
        (None, _) => end.over::<Tcp>(shape),
        (Some(variant), None) => {
            let (listener, port) = listen(variant, waiting)?;
            say(&port.to_string())?;
            end.run(PacketPipe::accept(listener, BYTES_MAX)?)
        }
        (Some(variant), Some(port)) => {
            let port = port
                .parse()
                .map_err(|_| Error::Misuse(format!("no port: {port}")))?;
            end.run(PacketPipe::dial(variant, waiting, port, BYTES_MAX)?)
        }
    }
}

impl End {
    fn over<P: Port>(&self, shape: Shape) -> Result<()> {
        let mut port = match &self.dial {
            Some(address) => P::dial(shape, address)?,
            None => {
                let port = P::listen(shape)?;
                say(&port.address())?;
                port
            }
        };
        self.run(port.open()?)
    }

    fn run(&self, mut pipe: impl Pipe) -> Result<()> {
        machine::pin(self.cpu)?;
        let steps = if self.calls {
            calls(self.quick)
        } else {
            steps(self.quick, self.short)
        };
        if self.dial.is_none() {
            for step in steps {
                step.answer(&mut pipe)?;
            }
            // The other end has all it waits for before the connection goes.
            let _end = stdin().lock().read_line(&mut String::new());
            return Ok(());
        }
        let mut figures = Vec::new();
        for step in steps {
            figures.push(step.ask(&mut pipe)?);
        }
        say(&serde_json::to_string(&figures).context("figures")?)
    }
}

pub(super) fn say(line: &str) -> Result<()> {
    let mut stdout = stdout().lock();
    writeln!(stdout, "{line}")
        .and_then(|()| stdout.flush())
        .context("standard output")
}

/// What is measured at one size.
struct Step {
    what: What,
    bytes: usize,
    /// Of so many messages each.
    count: usize,
    blocks: usize,
}

impl Step {
    /// Bytes there and back.
    fn lengths(&self) -> [usize; 2] {
        match (self.what, self.bytes) {
            (What::Call, 0) => [CALL_HEADER, ANSWER_HEADER],
            // The length of the string, and what fills up its last word; the answer is an integer.
            (What::Call, bytes) => [
                CALL_HEADER + 4 + bytes.next_multiple_of(4),
                ANSWER_HEADER + 4,
            ],
            (_, bytes) => [bytes; 2],
        }
    }

    fn answer(&self, pipe: &mut impl Pipe) -> Result<()> {
        for _ in 0..=self.blocks {
            match self.what {
                What::Latency | What::Call => {
                    let [there, back] = self.lengths();
                    for _ in 0..self.count {
                        pipe.recv(there)?;
                        pipe.send(back)?;
                    }
                }
                What::Bandwidth => {
                    for _ in 0..self.count {
                        pipe.recv(self.bytes)?;
                    }
                    pipe.send(ANSWER)?;
                }
            }
            // Whatever is held back leaves, and both begin together.
            pipe.recv(ANSWER)?;
        }
        Ok(())
    }

    fn ask(&self, pipe: &mut impl Pipe) -> Result<Figure> {
        let mut times = Vec::with_capacity(self.blocks);
        // The first block warms up.
        for block in 0..=self.blocks {
            let start = Instant::now();
            let [there, back] = self.lengths();
            for _ in 0..self.count {
                pipe.send(there)?;
                if self.what != What::Bandwidth {
                    pipe.recv(back)?;
                }
            }
            if self.what == What::Bandwidth {
                pipe.recv(ANSWER)?;
            }
            let messages = match self.what {
                What::Latency => 2 * self.count,
                What::Bandwidth | What::Call => self.count,
            };
            let time = start.elapsed().as_nanos() as f64 / messages as f64;
            pipe.send(ANSWER)?;
            if block > 0 {
                times.push(time);
            }
        }
        times.sort_by(f64::total_cmp);
        Ok(Figure {
            what: self.what,
            bytes: self.bytes,
            ns: times.get(times.len() / 2).copied().unwrap_or(f64::NAN),
        })
    }
}

fn steps(quick: bool, short: bool) -> Vec<Step> {
    let part = if quick { 4 } else { 1 };
    let latencies: &[usize] = if short { &[4] } else { &LATENCY_BYTES };
    let streams: &[usize] = if short {
        &[BYTES_MAX]
    } else {
        &BANDWIDTH_BYTES
    };
    let latency = latencies.iter().map(|&bytes| Step {
        what: What::Latency,
        bytes,
        count: 400 / part,
        blocks: 15,
    });
    let stream = streams.iter().map(|&bytes| Step {
        what: What::Bandwidth,
        bytes,
        count: ((8 << 20) / part / bytes).clamp(64, 8192 / part),
        blocks: 9,
    });
    latency.chain(stream).collect()
}

fn calls(quick: bool) -> Vec<Step> {
    let count = if quick { 100 } else { 400 };
    let step = |&bytes: &usize| Step {
        what: What::Call,
        bytes,
        count,
        blocks: 9,
    };
    CALL_BYTES.iter().map(step).collect()
}

const BYTES_MAX: usize = 32 << 10;
/// Of an RPC over a stream: the paper's "44 bytes for request, and 28 bytes for response".
const CALL_HEADER: usize = 44;
const ANSWER_HEADER: usize = 28;
/// Arguments of Figure 10; 0 is none at all.
pub(super) const CALL_BYTES: [usize; 9] = [0, 4, 16, 64, 256, 512, 1024, 2048, 4096];
const ANSWER: usize = 4;
pub(super) const LATENCY_BYTES: [usize; 8] = [4, 16, 64, 256, 1024, 4096, 16384, BYTES_MAX];
pub(super) const BANDWIDTH_BYTES: [usize; 9] =
    [16, 64, 256, 1024, 2048, 4096, 8192, 16384, BYTES_MAX];
