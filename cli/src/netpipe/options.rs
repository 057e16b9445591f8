use std::net::Ipv4Addr;
use std::path::PathBuf;

use super::plan::{Placement, Transport, Wait};
use crate::nic::Medium;

/// Latency and throughput by message size: VI, TCP and Unix sockets in one run
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The VI's NIC
    #[arg(long, value_enum, value_name = "NAME", default_value = "shm")]
    pub(super) nic: Nic,
    /// Without checksums in iWARP's records
    #[arg(long)]
    pub(super) no_crc: bool,
    /// With markers in iWARP's records, both ways
    #[arg(long)]
    pub(super) markers: bool,
    /// Transports to compare
    #[arg(long, value_delimiter = ',', default_values = ["tcp", "unix", "vi"],
          value_parser = crate::names::Name::<Transport>::new())]
    pub(super) transport: Vec<Transport>,
    /// How an end learns that a message has come
    #[arg(long, value_delimiter = ',', default_values = ["poll", "block", "adaptive"],
          value_parser = crate::names::Name::<Wait>::new())]
    pub(super) wait: Vec<Wait>,
    /// Both processes on one CPU, or each on its own [default: as many as there are]
    #[arg(long, value_delimiter = ',', value_name = "PLACEMENT", value_parser = crate::names::Name::<Placement>::new())]
    pub(super) cpus: Vec<Placement>,
    /// Connections a transport, which take turns message by message
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) vis: u16,
    /// Messages one way, instead of one there and one back
    #[arg(long, conflicts_with = "bidirectional")]
    pub(super) stream: bool,
    /// Both ends send at the same time; throughput is of both directions together
    #[arg(long)]
    pub(super) bidirectional: bool,
    /// Maximum transfer sizes of the VI to compare with 64k, its default; longer messages go in fragments
    #[arg(long, value_delimiter = ',', value_name = "BYTES", default_values = ["1500", "9000", "1m"],
          value_parser = mtu)]
    pub(super) mtu: Vec<u32>,
    /// Smallest message
    #[arg(long, value_name = "BYTES", default_value_t = 1, value_parser = size)]
    pub(super) min: usize,
    /// Largest message
    #[arg(long, value_name = "BYTES", default_value_t = 8 << 20, value_parser = size)]
    pub(super) max: usize,
    /// Also measure each size with so many bytes less and more
    #[arg(long, value_name = "BYTES", default_value_t = 3, value_parser = clap::value_parser!(u16).range(0..=4096))]
    pub(super) perturbation: u16,
    /// Exactly these sizes, without perturbation
    #[arg(long, value_delimiter = ',', value_name = "BYTES", value_parser = size,
          conflicts_with_all = ["min", "max", "perturbation"])]
    pub(super) sizes: Vec<usize>,
    /// Runs a measurement; the best counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(5..=100))]
    pub(super) runs: u16,
    /// Milliseconds a run
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(super) run_ms: Option<u16>,
    /// A few sizes only: takes some seconds
    #[arg(long, conflicts_with_all = ["min", "max", "perturbation", "sizes"])]
    pub(super) quick: bool,
    /// Write all figures to this file, - for standard output instead of the tables
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Draw the curves into this file
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
}

/// NICs to measure.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum Nic {
    Shm,
    Iwarp,
}

impl Options {
    pub(super) fn medium(&self) -> Medium {
        match self.nic {
            Nic::Shm => Medium::Shm,
            Nic::Iwarp => Medium::Iwarp {
                host: Ipv4Addr::LOCALHOST,
                crc: !self.no_crc,
                markers: self.markers,
            },
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  sovia vi netpipe --quick
  sovia vi netpipe --json all.json --svg curves.svg
  sovia vi netpipe --stream --cpus two --transport tcp,vi --sizes 64k,1m
  sovia vi netpipe --nic iwarp --markers --cpus two --sizes 4,64k,1m
  sovia vi netpipe --vis 8 --max 64k --wait poll";

/// As a size, within what a fragment may be.
fn mtu(text: &str) -> Result<u32, String> {
    match size(text).map(u32::try_from)? {
        Ok(mtu @ MTU_MIN..=MTU_MAX) => Ok(mtu),
        _ => Err(format!(
            "a size between {MTU_MIN} and {}m is wanted",
            MTU_MAX >> 20
        )),
    }
}

const MTU_MIN: u32 = 64;
const MTU_MAX: u32 = 16 << 20;

/// A size in bytes, `k` and `m` meaning 1024 and 1024².
fn size(text: &str) -> Result<usize, String> {
    let lower = text.to_ascii_lowercase();
    let (digits, unit) = match lower.strip_suffix(['k', 'm']) {
        Some(digits) if lower.ends_with('k') => (digits, 1 << 10),
        Some(digits) => (digits, 1 << 20),
        None => (lower.as_str(), 1),
    };
    digits
        .parse::<usize>()
        .ok()
        .and_then(|number| number.checked_mul(unit))
        .filter(|bytes| (1..=SIZE_MAX).contains(bytes))
        .ok_or_else(|| format!("a size between 1 and {}m is wanted", SIZE_MAX >> 20))
}

const SIZE_MAX: usize = 64 << 20;
