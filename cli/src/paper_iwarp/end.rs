//! One of the two measuring processes.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::RangeInclusive;

use super::bare::BarePipe;
use super::bytes::BytesPipe;
use super::convert::convert;
use super::posted::{PostedPipe, Slots};
use super::siw;
use super::stream::{self, StreamPipe};
use super::way::Way;
use crate::error::Result;
use crate::machine;
use crate::netpipe::pipe::{Pipe, Port, Shape};
use crate::netpipe::plan::Wait;
use crate::netpipe::vi::ViPort;
use crate::nic::Medium;
use crate::steps::{self, Figure, Step, What, say};

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

/// Runs one end. The one that listens says where on its standard output, the other its figures.
pub(crate) fn main(end: &End) -> Result<()> {
    let all = 0..=BYTES_MAX;
    let figures = match end.way {
        Way::Tcp | Way::Asked | Way::Spinning | Way::AskedSpinning => {
            let polls = matches!(end.way, Way::Spinning | Way::AskedSpinning);
            let tcp = end.meeting()?.next()?;
            end.run(&mut StreamPipe::new(tcp, polls, BYTES_MAX)?, all)?
        }
        Way::Extended | Way::ExtendedPlain | Way::ExtendedMarkers => {
            let meeting = end.meeting()?;
            let run = |slots, lens| {
                let socket = convert(meeting.next()?, end.host, end.way)?;
                end.run(&mut PostedPipe::new(socket, slots)?, lens)
            };
            let mut figures = run(SHORT, 0..=MTU)?;
            // As with a VI.
            figures.extend(run(LONG, MTU + 1..=BYTES_MAX)?);
            figures
        }
        Way::Stream | Way::StreamPlain => {
            let socket = convert(end.meeting()?.next()?, end.host, end.way)?;
            end.run(&mut BytesPipe::new(socket, BYTES_MAX), all)?
        }
        Way::Crc | Way::Plain | Way::CrcMarkers | Way::Markers => {
            let shape = Shape {
                wait: Wait::Poll,
                yielding: false,
                bytes_max: BYTES_MAX,
                mtu: Some(MTU as u32),
                medium: end.medium(),
            };
            let mut port: ViPort = steps::port(shape, end.dial.as_deref())?;
            let mut figures = end.run(&mut port.open()?, 0..=MTU)?;
            // A message is one descriptor, as it is one call of TCP's.
            port.set_mtu(BYTES_MAX as u32);
            figures.extend(end.run(&mut port.open()?, MTU + 1..=BYTES_MAX)?);
            figures
        }
        Way::Bare | Way::BareMarkers => {
            let meeting = end.meeting()?;
            let run = |mtu, lens| {
                let markers = end.way == Way::BareMarkers;
                let mut pipe = BarePipe::new(meeting.next()?, markers, mtu, end.medium())?;
                end.run(&mut pipe, lens)
            };
            let mut figures = run(MTU, 0..=MTU)?;
            // As with a VI.
            figures.extend(run(BYTES_MAX, MTU + 1..=BYTES_MAX)?);
            figures
        }
        Way::Siw => {
            // What is started from here keeps to it, too.
            machine::pin(end.cpu)?;
            let steps = steps(end.quick);
            match &end.dial {
                Some(address) => siw::ask(address, steps)?,
                None => {
                    siw::serve(end.host, steps)?;
                    Vec::new()
                }
            }
        }
    };
    steps::finish(&figures, end.dial.is_some())
}

impl End {
    fn medium(&self) -> Medium {
        Medium::Iwarp {
            host: self.host,
            crc: self.way.crc(),
            markers: self.way.markers(),
        }
    }

    fn meeting(&self) -> Result<Meeting> {
        if let Some(address) = &self.dial {
            return Ok(Meeting::At(address.clone()));
        }
        let (listener, address) = stream::listen(self.host)?;
        say(&address)?;
        Ok(Meeting::Here(listener))
    }

    /// The steps with messages of such lengths; figures at the end that asks.
    fn run(&self, pipe: &mut impl Pipe, lens: RangeInclusive<usize>) -> Result<Vec<Figure>> {
        machine::pin(self.cpu)?;
        let steps = steps(self.quick).filter(|step| lens.contains(&step.bytes));
        steps::take(steps, pipe, self.dial.is_some())
    }
}

/// Where TCP connections come from.
enum Meeting {
    Here(TcpListener),
    At(String),
}

impl Meeting {
    fn next(&self) -> Result<TcpStream> {
        match self {
            Self::Here(listener) => stream::accept(listener),
            Self::At(address) => stream::dial(address),
        }
    }
}

fn steps(quick: bool) -> impl Iterator<Item = Step> {
    let part = if quick { 4 } else { 1 };
    let latency = LATENCY_BYTES
        .iter()
        .map(move |&bytes| Step::of(What::Latency, bytes, 100 / part, 21));
    let stream = BANDWIDTH_BYTES.iter().map(move |&bytes| {
        let window = ((8 << 20) / bytes).clamp(16, 2048) / part;
        Step::of(What::Bandwidth, bytes, window, 15)
    });
    latency.chain(stream)
}

/// Up to here receives are as long, so that there are many of them.
const MTU: usize = 64 << 10;
const BYTES_MAX: usize = 1 << 20;
/// Receives of extended sockets, and those for longer messages: as many bytes as a VI of ours has.
const SHORT: Slots = Slots {
    bytes: MTU,
    count: 64,
};
const LONG: Slots = Slots {
    bytes: BYTES_MAX,
    count: 7,
};
pub(super) const LATENCY_BYTES: [usize; 8] = [4, 16, 64, 256, 1024, 4096, 16384, 65536];
pub(super) const BANDWIDTH_BYTES: [usize; 8] =
    [64, 256, 1024, 4096, 16384, 65536, 262_144, BYTES_MAX];
