//! Where the two processes are: on loopback, or in a network namespace each.

use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::process::{ChildStdin, Command, Stdio};
use std::time::Duration;

use crate::error::{Context, Error, Result};
use crate::process::{Process, Said, myself};

/// Where the two processes are.
pub(super) enum Place {
    Loopback,
    /// In namespaces that go with the value, and with this process however it ends.
    Namespaces([Namespace; 2]),
}

impl Place {
    /// Two namespaces, joined by a veth pair.
    pub(super) fn namespaces() -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            let why = "--namespaces makes network namespaces, which takes root";
            return Err(Error::Misuse(why.to_owned()));
        }
        let [a, b] = [Namespace::new()?, Namespace::new()?];
        let there = b.id();
        a.ip(&[
            "link", "add", DEVICE, "type", "veth", "peer", "name", DEVICE, "netns", &there,
        ])?;
        for (namespace, host) in [&a, &b].into_iter().zip(HOSTS) {
            namespace.ip(&["addr", "add", &format!("{host}/30"), "dev", DEVICE])?;
            namespace.ip(&["link", "set", DEVICE, "up"])?;
        }
        Ok(Self::Namespaces([a, b]))
    }

    /// The addresses of the two ends.
    pub(super) fn hosts(&self) -> [Ipv4Addr; 2] {
        match self {
            Self::Loopback => [Ipv4Addr::LOCALHOST; 2],
            Self::Namespaces(_) => HOSTS,
        }
    }

    /// This program once more, as that end.
    pub(super) fn again(&self, side: usize) -> Command {
        match self {
            Self::Loopback => myself(),
            // Not /proc/self/exe: that would be nsenter.
            Self::Namespaces([a, b]) => {
                let namespace = if side == 0 { a } else { b };
                namespace.command(&format!("/proc/{}/exe", std::process::id()))
            }
        }
    }

    /// What does it again.
    pub(super) fn command(&self) -> &'static str {
        match self {
            Self::Loopback => "sovia bench paper-iwarp",
            Self::Namespaces(_) => "sovia bench paper-iwarp --namespaces",
        }
    }
}

/// A network namespace, which is there while a process of its own is.
pub(super) struct Namespace {
    process: Process,
    /// That process ends when this does.
    _until: ChildStdin,
}

impl Namespace {
    fn new() -> Result<Self> {
        let mut command = Command::new("unshare");
        command.args(["--net", "cat"]);
        let mut process = Process::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let (mut until, stdout) = process.pipes().ok_or(Error::Closed)?;
        // It answers when it is where it is to be.
        until.write_all(b"\n").context("unshare")?;
        let mut answer = String::new();
        let read = BufReader::new(Said::new(stdout, PATIENCE)?).read_line(&mut answer);
        if read.context("unshare --net")? == 0 {
            return Err(Error::Closed);
        }
        Ok(Self {
            process,
            _until: until,
        })
    }

    fn id(&self) -> String {
        self.process.id().to_string()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.process.id()));
        command.arg(program);
        command
    }

    fn ip(&self, arguments: &[&str]) -> Result<()> {
        let status = self.command("ip").args(arguments).status();
        if status.context("nsenter")?.success() {
            return Ok(());
        }
        let what = format!("ip {} failed", arguments.join(" "));
        Err(Error::Misuse(what))
    }
}

const DEVICE: &str = "veth0";
const HOSTS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];
const PATIENCE: Duration = Duration::from_secs(5);
