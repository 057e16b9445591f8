use std::fs;
use std::process::Command;

use rustix::process::Signal;

use super::super::registry::Need;
use super::{Recipe, Stage};
use crate::error::{Context, Result};

/// One thread, and libmemcached's `memcaslap`: one thread, too, with 50 connections; nine gets to one set, values of 1 kB.
pub(super) const EVENTS: Recipe = Recipe {
    needs: &[
        MEMCACHED,
        Need {
            program: "memcaslap",
            package: "libmemcached-tools",
        },
    ],
    not_unix: Some("memcaslap"),
    user: None,
    stop: Signal::TERM,
    // What it would write into our home otherwise.
    prepare: |stage| write_load(stage, 1024),
    server,
    fill: |_| None,
    client: |stage, seconds| {
        let mut command = stage.command("memcaslap");
        command
            .arg("-s")
            .arg(format!("127.0.0.1:{}", stage.port))
            .args(["-T", "1", "-c", "50", "-t", &format!("{seconds}s")])
            .args(["-F", LOAD]);
        command
    },
    rate: |said| {
        let (_, after) = said.rsplit_once("TPS: ")?;
        after.split_whitespace().next()?.parse().ok()
    },
};

/// The same, with values of 100 B.
pub(super) const SMALL: Recipe = Recipe {
    prepare: |stage| write_load(stage, 100),
    ..EVENTS
};

/// The same server, and libmemcached's `memcslap`: 50 threads with a connection each, that get.
pub(super) const THREADS: Recipe = Recipe {
    needs: &[
        MEMCACHED,
        Need {
            program: "memcslap",
            package: "libmemcached-tools",
        },
    ],
    not_unix: None,
    user: None,
    stop: Signal::TERM,
    prepare: |_| Ok(()),
    server,
    fill: |_| None,
    // It counts, and not in seconds.
    client: |stage, seconds| {
        let mut command = stage.command("memcslap");
        match stage.socket() {
            Some(socket) => command.arg("--servers").arg(socket),
            None => command.arg(format!("--servers=127.0.0.1:{}", stage.port)),
        };
        command
            .args(["--concurrency=50", "--test=get", "--initial-load=1000"])
            .arg(format!("--execute-number={}", 1_500 * seconds));
        command
    },
    rate: |said| {
        let line = said
            .lines()
            .find_map(|line| line.strip_prefix("Time to get"))?;
        let mut words = line.split_whitespace();
        let keys: f64 = words.next()?.parse().ok()?;
        let seconds: f64 = words.nth_back(1)?.parse().ok()?;
        Some(keys / seconds)
    },
};

const MEMCACHED: Need = Need {
    program: "memcached",
    package: "memcached",
};

fn server(stage: &Stage) -> Command {
    let mut command = stage.command("memcached");
    command.args(["-U", "0", "-t", "1"]);
    match stage.socket() {
        Some(socket) => command.arg("-s").arg(socket),
        None => command.args(["-l", "127.0.0.1", "-p", &stage.port.to_string()]),
    };
    // It refuses to be root unless told to.
    if rustix::process::geteuid().is_root() {
        command.args(["-u", "root"]);
    }
    command
}

/// Lengths and shares of keys and values; 0 is set, 1 is get.
fn write_load(stage: &Stage, bytes: usize) -> Result<()> {
    let text = format!("key\n64 64 1\nvalue\n{bytes} {bytes} 1\ncmd\n0 0.1\n1 0.9\n");
    fs::write(stage.folder.join(LOAD), text).context("memcaslap's load")
}

const LOAD: &str = "load";
