//! One of the two measuring processes: the same steps in the same order at both ends.

use std::io::{BufRead, Write, stdin, stdout};
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::posted::PostedPipe;
use super::stream::{self, StreamPipe};
use super::way::Way;
use crate::error::{Context, Result};
use crate::machine;
use crate::netpipe::pipe::{Pipe, Port, Shape};
use crate::netpipe::plan::Wait;
use crate::netpipe::vi::ViPort;
use crate::nic::Medium;

/// What `sovia` is started with, once more.
pub(crate) const COMMAND: &str = "paper-iwarp-end";

/// One of bench paper-iwarp's two measuring processes
#[derive(Debug, clap::Args)]
pub(crate) struct End {
    #[arg(long)]
    way: Way,
    #[arg(long)]
    cpu: usize,
    /// The address of this end
    #[arg(long)]
    host: Ipv4Addr,
    #[arg(long)]
    quick: bool,
    /// Where the other end listens
    #[arg(long)]
    dial: Option<String>,
}

/// One figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) what: What,
    pub(crate) bytes: usize,
    /// Nanoseconds one way, or for one message of a stream.
    pub(crate) ns: f64,
}

/// Which half of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum What {
    /// Half of the time there and back.
    Latency,
    /// A window of messages, and one answer.
    Bandwidth,
}

/// Runs one end. The one that listens says where on its standard output, the other its figures.
pub(crate) fn main(end: &End) -> Result<()> {
    let all = 0..=BYTES_MAX;
    let figures = match end.way {
        Way::Tcp | Way::Asked | Way::Spinning | Way::AskedSpinning => {
            let polls = matches!(end.way, Way::Spinning | Way::AskedSpinning);
            end.run(&mut StreamPipe::new(end.connect()?, polls, BYTES_MAX)?, all)?
        }
        Way::Extended => {
            let mut pipe = PostedPipe::convert(end.connect()?, end.host, BYTES_MAX)?;
            end.run(&mut pipe, all)?
        }
        Way::Crc | Way::Plain | Way::CrcMarkers | Way::Markers => {
            let shape = Shape {
                wait: Wait::Poll,
                yielding: false,
                bytes_max: BYTES_MAX,
                mtu: Some(MTU as u32),
                medium: Medium::Iwarp {
                    host: end.host,
                    crc: end.way.crc(),
                    markers: end.way.markers(),
                },
            };
            let mut port = match &end.dial {
                Some(address) => ViPort::dial(shape, address)?,
                None => {
                    let port = ViPort::listen(shape)?;
                    say(&port.address())?;
                    port
                }
            };
            let mut figures = end.run(&mut port.open()?, 0..=MTU)?;
            // A message is one descriptor, as it is one call of TCP's.
            port.set_mtu(BYTES_MAX as u32);
            figures.extend(end.run(&mut port.open()?, MTU + 1..=BYTES_MAX)?);
            figures
        }
    };
    if end.dial.is_some() {
        return say(&serde_json::to_string(&figures).context("figures")?);
    }
    // The other end has all it waits for before this process goes.
    let _end = stdin().lock().read_line(&mut String::new());
    Ok(())
}

impl End {
    fn connect(&self) -> Result<std::net::TcpStream> {
        if let Some(address) = &self.dial {
            return stream::dial(address);
        }
        let (listener, address) = stream::listen(self.host)?;
        say(&address)?;
        stream::accept(&listener)
    }

    /// The steps with messages of such lengths; figures at the end that asks.
    fn run(&self, pipe: &mut impl Pipe, lens: RangeInclusive<usize>) -> Result<Vec<Figure>> {
        machine::pin(self.cpu)?;
        let mut figures = Vec::new();
        for step in steps(self.quick) {
            if !lens.contains(&step.bytes) {
                continue;
            }
            match self.dial {
                Some(_) => figures.push(step.ask(pipe)?),
                None => step.answer(pipe)?,
            }
        }
        Ok(figures)
    }
}

fn say(line: &str) -> Result<()> {
    let mut stdout = stdout().lock();
    writeln!(stdout, "{line}")
        .and_then(|()| stdout.flush())
        .context("standard output")
}

/// What is measured at one size.
struct Step {
    what: What,
    bytes: usize,
    /// Of so many messages each; of a stream, a window.
    count: usize,
    blocks: usize,
}

impl Step {
    fn answer(&self, pipe: &mut impl Pipe) -> Result<()> {
        for _ in 0..=self.blocks {
            for _ in 0..self.count {
                pipe.recv(self.bytes)?;
                if self.what == What::Latency {
                    pipe.send(self.bytes)?;
                }
            }
            if self.what == What::Bandwidth {
                pipe.send(ANSWER)?;
            }
        }
        Ok(())
    }

    fn ask(&self, pipe: &mut impl Pipe) -> Result<Figure> {
        let mut times = Vec::with_capacity(self.blocks);
        // The first block warms up.
        for block in 0..=self.blocks {
            let start = Instant::now();
            for _ in 0..self.count {
                pipe.send(self.bytes)?;
                if self.what == What::Latency {
                    pipe.recv(self.bytes)?;
                }
            }
            if self.what == What::Bandwidth {
                pipe.recv(ANSWER)?;
            }
            let messages = match self.what {
                What::Latency => 2 * self.count,
                What::Bandwidth => self.count,
            };
            if block > 0 {
                times.push(start.elapsed().as_nanos() as f64 / messages as f64);
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

fn steps(quick: bool) -> Vec<Step> {
    let part = if quick { 4 } else { 1 };
    let latency = LATENCY_BYTES.iter().map(|&bytes| Step {
        what: What::Latency,
        bytes,
        count: 100 / part,
        blocks: 21,
    });
    let stream = BANDWIDTH_BYTES.iter().map(|&bytes| Step {
        what: What::Bandwidth,
        bytes,
        count: ((8 << 20) / bytes).clamp(16, 2048) / part,
        blocks: 15,
    });
    latency.chain(stream).collect()
}

/// Up to here receives are as long, so that there are many of them.
const MTU: usize = 64 << 10;
const BYTES_MAX: usize = 1 << 20;
const ANSWER: usize = 4;
pub(super) const LATENCY_BYTES: [usize; 8] = [4, 16, 64, 256, 1024, 4096, 16384, 65536];
pub(super) const BANDWIDTH_BYTES: [usize; 8] =
    [64, 256, 1024, 4096, 16384, 65536, 262_144, BYTES_MAX];
