//! One of the two measuring processes.

use sockets::packet::Waiting;

use super::plain::Plain;
use super::way::{PacketPipe, Way, listen};
use crate::error::{Error, Result};
use crate::machine;
use crate::netpipe::pipe::{Pipe, Port, Shape};
use crate::netpipe::plan::Wait;
use crate::netpipe::tcp::Tcp;
use crate::netpipe::vi::ViPort;
use crate::steps::{self, Step, What, say};

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
        let mut port: P = steps::port(shape, self.dial.as_deref())?;
        self.run(port.open()?)
    }

    fn run(&self, mut pipe: impl Pipe) -> Result<()> {
        machine::pin(self.cpu)?;
        let steps = if self.calls {
            calls(self.quick)
        } else {
            steps(self.quick, self.short)
        };
        let asks = self.dial.is_some();
        steps::finish(&steps::take(steps, &mut pipe, asks)?, asks)
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
    let latency = latencies
        .iter()
        .map(|&bytes| Step::of(What::Latency, bytes, 400 / part, 15));
    let stream = streams.iter().map(|&bytes| {
        let count = ((8 << 20) / part / bytes).clamp(64, 8192 / part);
        Step::of(What::Bandwidth, bytes, count, 9)
    });
    latency.chain(stream).collect()
}

/// Messages as long as a call of a remote procedure with such an argument, and as its answer: Figure 10.
fn calls(quick: bool) -> Vec<Step> {
    let count = if quick { 100 } else { 400 };
    let step = |&bytes: &usize| Step {
        what: What::Call,
        bytes,
        lengths: match bytes {
            0 => [CALL_HEADER, ANSWER_HEADER],
            // The length of the string, and what fills up its last word; the answer is an integer.
            bytes => [
                CALL_HEADER + 4 + bytes.next_multiple_of(4),
                ANSWER_HEADER + 4,
            ],
        },
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
pub(super) const LATENCY_BYTES: [usize; 8] = [4, 16, 64, 256, 1024, 4096, 16384, BYTES_MAX];
pub(super) const BANDWIDTH_BYTES: [usize; 9] =
    [16, 64, 256, 1024, 2048, 4096, 8192, 16384, BYTES_MAX];
