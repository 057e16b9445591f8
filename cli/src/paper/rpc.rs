//! Figure 10: the call of a procedure without a body, by the size of its argument.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Serialize;

use super::end::CALL_BYTES;
use super::stage::{Side, Stage, missing};
use super::way::Way;
use crate::error::{Context, Error, Result};
use crate::folder::make_within;
use crate::process::{Said, until_our_end};
use crate::steps::Figure;
use crate::steps::{SILENCE_MAX, line};

/// One size measured once.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Call {
    pub(super) by: By,
    pub(super) way: Way,
    /// Of the argument; 0 is none.
    pub(super) bytes: usize,
    /// There and back.
    pub(super) ns: f64,
}

impl Call {
    /// Of messages alone.
    pub(super) fn own(way: Way, figure: &Figure) -> Self {
        Self {
            by: By::Own,
            way,
            bytes: figure.bytes,
            ns: figure.ns,
        }
    }
}

/// Who calls whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum By {
    /// What rpcgen and libtirpc make.
    Rpcgen,
    /// Two processes of ours, with messages of the same lengths.
    Own,
}

/// All curves of the figure.
pub(super) const CURVES: [(By, Way); 6] = [
    (By::Rpcgen, Way::Tcp),
    (By::Rpcgen, Way::Ring),
    (By::Own, Way::Tcp),
    (By::Own, Way::Single),
    (By::Own, Way::Combine),
    (By::Own, Way::Ring),
];

pub(super) fn name(by: By, way: Way) -> String {
    match by {
        By::Rpcgen => format!("RPC, {}", way.title()),
        By::Own => format!("messages alone, {}", way.title()),
    }
}

/// What keeps RPC from being measured.
pub(super) fn obstacle() -> Option<String> {
    missing(
        "Figure 10 (RPC)",
        &[
            ("rpcgen", "rpcsvc-proto"),
            ("cc", "gcc"),
            ("pkg-config", "pkg-config"),
            ("/usr/include/tirpc/rpc/rpc.h", "libtirpc-dev"),
        ],
    )
}

/// The service and its client, compiled.
pub(super) struct Programs {
    folder: PathBuf,
}

impl Programs {
    pub(super) fn build(stage: &Stage) -> Result<Self> {
        let sources = stage.folder().join("rpc");
        make_within(&sources)?;
        for (name, text) in SOURCES {
            fs::write(sources.join(name), text).context("the sources of RPC")?;
        }
        let folder = sources.join("built");
        let mut command = Command::new("sh");
        command.arg(sources.join("build.sh")).arg(&folder);
        let output = command.stdin(Stdio::null()).output();
        let output = output.context("compiling RPC")?;
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            return Err(Error::Protocol {
                from: "the compiler",
                what: String::from_utf8_lossy(&said).into_owned(),
            });
        }
        Ok(Self { folder })
    }

    /// All sizes once.
    pub(super) fn measure(&self, stage: &Stage, way: Way, count: u32) -> Result<Vec<Call>> {
        let mut command = until_our_end(&self.folder.join("server"), rustix::process::Signal::TERM);
        command.arg("0").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut server = stage.start(&mut command, Side::Server, way)?;
        let port = line(&mut server)?;
        let mut command = until_our_end(&self.folder.join("client"), rustix::process::Signal::TERM);
        command.args([&port, "time"]);
        for bytes in CALL_BYTES {
            command.args([bytes.to_string(), count.to_string()]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut client = stage.start(&mut command, Side::Client, way)?;
        let mut said = String::new();
        Said::new(client.stdout().ok_or(Error::Closed)?, SILENCE_MAX)?
            .read_to_string(&mut said)
            .context("the client of RPC")?;
        let medians = said.lines().filter_map(|line| {
            let (median, _least) = line.split_once(' ')?;
            median.parse::<f64>().ok()
        });
        let calls: Vec<_> = CALL_BYTES
            .iter()
            .zip(medians)
            .map(|(&bytes, ns)| Call {
                by: By::Rpcgen,
                way,
                bytes,
                ns,
            })
            .collect();
        if calls.len() == CALL_BYTES.len() && client.wait()?.success() {
            Ok(calls)
        } else {
            Err(Error::Protocol {
                from: "the client of RPC",
                what: said,
            })
        }
    }
}

/// What the programs of testing/programs are made of, too.
const SOURCES: [(&str, &str); 4] = [
    (
        "trip.x",
        include_str!("../../../testing/programs/servers/rpc/trip.x"),
    ),
    (
        "server.c",
        include_str!("../../../testing/programs/servers/rpc/server.c"),
    ),
    (
        "client.c",
        include_str!("../../../testing/programs/servers/rpc/client.c"),
    ),
    (
        "build.sh",
        include_str!("../../../testing/programs/servers/rpc/build.sh"),
    ),
];
