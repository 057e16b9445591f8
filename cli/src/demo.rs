use crate::bench::{self, Output};
use crate::error::Result;

/// Unmodified programs over kernel TCP, and the same under sovia: both ends, and one
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    #[command(flatten)]
    output: Output,
}

const HELP: &str = "\
Server and client are separate processes with a CPU of their own each; redis takes part if it is installed. \
`sovia bench sockets` measures more. `sovia vi demo` compares a VI by itself with sockets.

Examples:
  sovia demo
  sovia demo --quick --svg gains.svg";

/// `sovia demo`.
pub(crate) fn main(options: &Options) -> Result<()> {
    bench::demo(&options.output)
}
