use std::fs;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;

use super::super::registry::Need;
use super::{Recipe, Stage};
use crate::error::{Context, Result};

/// The service of Figure 10 of the SOVIA paper, as rpcgen and libtirpc make it: calls without an argument or a result.
pub(super) const RECIPE: Recipe = Recipe {
    needs: &[
        Need {
            program: "rpcgen",
            package: "rpcsvc-proto",
        },
        Need {
            program: "cc",
            package: "gcc",
        },
        Need {
            program: "pkg-config",
            package: "pkg-config",
        },
        Need {
            program: "/usr/include/tirpc/rpc/rpc.h",
            package: "libtirpc-dev",
        },
    ],
    not_unix: None,
    user: None,
    stop: Signal::TERM,
    prepare,
    server: |stage| {
        let mut command = built(stage, "server");
        command.arg(place(stage));
        command
    },
    fill: |_| None,
    client: |stage, seconds| {
        let mut command = built(stage, "client");
        // Ten rows of so many; the first warms up.
        let calls = (1_000 * seconds).to_string();
        command.arg(place(stage)).args(["time", "0", &calls]);
        command
    },
    // Nanoseconds: the median of the rows, and the least.
    rate: |said| {
        let ns: f64 = said.split_whitespace().next()?.parse().ok()?;
        Some(1e9 / ns)
    },
};

fn prepare(stage: &Stage) -> Result<()> {
    for (name, text) in SOURCES {
        fs::write(stage.folder.join(name), text).context("a source of the RPC service")?;
    }
    let mut command = stage.command("sh");
    command.arg(stage.folder.join(BUILD)).arg(BUILT);
    stage.run(command)
}

/// A port, or a Unix socket.
fn place(stage: &Stage) -> PathBuf {
    let port = || stage.port.to_string().into();
    stage.socket().unwrap_or_else(port)
}

fn built(stage: &Stage, name: &str) -> Command {
    let path = stage.folder.join(BUILT).join(name);
    stage.command(&path.to_string_lossy())
}

const BUILT: &str = "built";
const BUILD: &str = "build.sh";
/// The same as in `testing/programs`.
const SOURCES: [(&str, &str); 4] = [
    (
        BUILD,
        include_str!("../../../../testing/programs/servers/rpc/build.sh"),
    ),
    (
        "trip.x",
        include_str!("../../../../testing/programs/servers/rpc/trip.x"),
    ),
    (
        "server.c",
        include_str!("../../../../testing/programs/servers/rpc/server.c"),
    ),
    (
        "client.c",
        include_str!("../../../../testing/programs/servers/rpc/client.c"),
    ),
];
