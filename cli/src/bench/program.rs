//! Real servers, and clients that measure them.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::pair::SILENCE_MAX;
use super::place::{Cpus, Place, Trace};
use super::ram::RamDisk;
use super::registry::Need;
use super::session::{Budget, Contestant};
use super::way::{End, Way};
use crate::error::{Context, Error, Result};
use crate::folder::make_within;
use crate::process::{Process, Said, until_our_end};

mod ftp;
mod installed;
mod log;
mod memcached;
mod nginx;
mod pgbench;
mod rpc;

pub(super) use log::Log;

pub(super) use installed::{find, missing};

/// A server that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum App {
    Nginx,
    /// With memcaslap: one thread that has 50 connections.
    Memcached,
    /// With memcaslap and small values.
    MemcachedSmall,
    /// With memcslap: 50 threads that have one each.
    MemcachedThreads,
    Pgbench,
    /// With tnftp.
    Ftp,
    FtpByCurl,
    /// On a RAM disk of large pages.
    FtpInLargePages,
    FtpByCurlInLargePages,
    Rpc,
}

/// How.
struct Recipe {
    needs: &'static [Need],
    /// Who of the two, or what, has no Unix sockets.
    not_unix: Option<&'static str>,
    /// As whom it runs if we are root, because it refuses root.
    user: Option<&'static str>,
    /// What ends the server, with its children.
    stop: Signal,
    /// Once, before the server starts.
    prepare: fn(&Stage) -> Result<()>,
    server: fn(&Stage) -> Command,
    /// Once, when the server listens.
    fill: fn(&Stage) -> Option<Command>,
    /// For so many seconds.
    client: fn(&Stage, u32) -> Command,
    /// From what the client said: how many a second.
    rate: fn(&str) -> Option<f64>,
}

impl App {
    #[cfg(test)]
    const ALL: [Self; 10] = [
        Self::Nginx,
        Self::Memcached,
        Self::MemcachedSmall,
        Self::MemcachedThreads,
        Self::Pgbench,
        Self::Ftp,
        Self::FtpByCurl,
        Self::FtpInLargePages,
        Self::FtpByCurlInLargePages,
        Self::Rpc,
    ];

    const fn recipe(self) -> &'static Recipe {
        match self {
            Self::Nginx => &nginx::RECIPE,
            Self::Memcached => &memcached::EVENTS,
            Self::MemcachedSmall => &memcached::SMALL,
            Self::MemcachedThreads => &memcached::THREADS,
            Self::Pgbench => &pgbench::RECIPE,
            Self::Ftp | Self::FtpInLargePages => &ftp::BY_TNFTP,
            Self::FtpByCurl | Self::FtpByCurlInLargePages => &ftp::BY_CURL,
            Self::Rpc => &rpc::RECIPE,
        }
    }

    /// What must be installed.
    pub(super) const fn needs(self) -> &'static [Need] {
        self.recipe().needs
    }

    /// What else keeps it from being measured here.
    pub(super) fn obstacle(self) -> Option<String> {
        self.is_in_large_pages().then(RamDisk::obstacle).flatten()
    }

    /// Whether what its client says are bytes a second.
    pub(super) const fn counts_bytes(self) -> bool {
        matches!(self, Self::Ftp | Self::FtpByCurl) || self.is_in_large_pages()
    }

    const fn is_in_large_pages(self) -> bool {
        matches!(self, Self::FtpInLargePages | Self::FtpByCurlInLargePages)
    }

    /// Why there is no Unix socket to compare with.
    pub(super) const fn not_unix(self) -> Option<&'static str> {
        self.recipe().not_unix
    }
}

/// What a recipe has to work with.
struct Stage {
    folder: PathBuf,
    /// In memory, where the system has such a place.
    memory: PathBuf,
    /// What is mounted there.
    _disk: Option<RamDisk>,
    port: u16,
    /// A Unix socket, where it is to be one.
    unix: bool,
    user: Option<User>,
    /// What ends the server.
    stop: Signal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct User {
    uid: u32,
    gid: u32,
}

impl Stage {
    /// The Unix socket, if it is to be one. PostgreSQL's name; others take any.
    fn socket(&self) -> Option<PathBuf> {
        let name = format!(".s.PGSQL.{}", self.port);
        self.unix.then(|| self.folder.join(name))
    }

    /// A program, as the user that the recipe asks for.
    fn command(&self, program: &str) -> Command {
        let path = find(program).unwrap_or_else(|| PathBuf::from(program));
        let mut command = until_our_end(&path, self.stop);
        if let Some(user) = self.user {
            command.uid(user.uid).gid(user.gid);
        }
        // Some look for files in their home, which may be somebody else's or nobody's.
        command.env("HOME", &self.folder);
        for proxy in PROXIES {
            command.env_remove(proxy).env_remove(proxy.to_uppercase());
        }
        command.current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    /// Who listens need not be ready yet: PostgreSQL turns clients away until it has looked through its logs.
    fn fill(&self, by: fn(&Self) -> Option<Command>, server: &mut Process) -> Result<()> {
        let start = Instant::now();
        while let Some(command) = by(self) {
            let filled = self.run(command);
            if filled.is_ok() || start.elapsed() > SILENCE_MAX || server.ended()? {
                return filled;
            }
            thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    /// Runs a command to its end.
    fn run(&self, mut command: Command) -> Result<()> {
        let said = Log::new(self.folder.with_extension("run"))?;
        command.stdout(said.end()?).stderr(said.end()?);
        let status = Process::start(&mut command)?.wait()?;
        if status.success() {
            return Ok(());
        }
        Err(said.blame(Error::Protocol {
            from: "a program",
            what: status.to_string(),
        }))
    }
}

/// A server; each run is a client of its own.
pub(super) struct Real<'a> {
    place: &'a Place,
    way: Way,
    recipe: &'static Recipe,
    stage: Stage,
    server: Process,
    trace: Trace,
    seconds: u32,
}

impl<'a> Real<'a> {
    pub(super) fn start(place: &'a Place, app: App, way: Way) -> Result<Self> {
        let recipe = app.recipe();
        let trace = place.trace()?;
        let user = match recipe.user {
            Some(name) if rustix::process::geteuid().is_root() => {
                Some(user(name).ok_or_else(|| Error::Misuse(format!("there is no user {name}")))?)
            }
            _ => None,
        };
        let memory = place.memory(&trace)?;
        let disk = app.is_in_large_pages().then(|| RamDisk::mount(&memory));
        let stage = Stage {
            folder: trace.beside("files"),
            memory,
            _disk: disk.transpose()?,
            port: free_port()?,
            unix: way == Way::Unix,
            user,
            stop: recipe.stop,
        };
        make_within(&stage.folder)?;
        if let Some(User { uid, gid }) = user {
            chown(&stage.folder, Some(uid), Some(gid)).context("chown")?;
            chown(trace.path(), Some(uid), Some(gid)).context("chown")?;
        }
        (recipe.prepare)(&stage)?;
        let said = Log::new(trace.beside("said"))?;
        let mut command = (recipe.server)(&stage);
        command.stdout(said.end()?).stderr(said.end()?);
        let server = place.start(&mut command, End::Server, way, Cpus::Own, &trace)?;
        server.ends_by(recipe.stop);
        // From here on it is ended in order.
        let mut real = Self {
            place,
            way,
            recipe,
            stage,
            server,
            trace,
            seconds: 1,
        };
        real.get_ready().map_err(|error| said.blame(error))?;
        Ok(real)
    }

    fn get_ready(&mut self) -> Result<()> {
        let Self { stage, server, .. } = self;
        match stage.socket() {
            Some(socket) => self.place.wait_for_socket(server, &socket)?,
            None => self.place.wait_for_port(server, stage.port)?,
        }
        stage.fill(self.recipe.fill, server)
    }

    /// How many a second.
    fn measure(&self) -> Result<f64> {
        let mut command = (self.recipe.client)(&self.stage, self.seconds);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut client =
            self.place
                .start(&mut command, End::Client, self.way, Cpus::Own, &self.trace)?;
        let mut said = String::new();
        if let Some(stdout) = client.stdout() {
            Said::new(stdout, SILENCE_MAX)?
                .read_to_string(&mut said)
                .context("a client's output")?;
        }
        let status = client.wait()?;
        match (self.recipe.rate)(&said) {
            Some(rate) if status.success() && rate > 0.0 => Ok(rate),
            _ => Err(Error::Protocol {
                from: "a client",
                what: format!("{status}, {said:?}"),
            }),
        }
    }
}

impl Contestant for Real<'_> {
    fn fit(&mut self, budget: Budget) -> Result<()> {
        // They count in whole seconds.
        self.seconds = (budget.run.as_secs_f64().round() as u32).max(1);
        if budget.run < LONG {
            return Ok(());
        }
        self.measure().map(drop)
    }

    fn run(&mut self) -> Result<f64> {
        Ok(1e9 / self.measure()?)
    }

    fn upgrades(&self) -> usize {
        self.trace.upgrades()
    }
}

impl Drop for Real<'_> {
    fn drop(&mut self) {
        self.server.stop(self.recipe.stop, STOP_MAX);
    }
}

fn user(name: &str) -> Option<User> {
    let file = fs::read_to_string("/etc/passwd").ok()?;
    let line = file
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let mut fields = line.split(':').skip(1);
    Some(User {
        uid: fields.next()?.parse().ok()?,
        gid: fields.next()?.parse().ok()?,
    })
}

/// A port of TCP's that nobody has now.
pub(crate) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("bind")?;
    Ok(listener.local_addr().context("getsockname")?.port())
}

/// Runs below that are of one who is in a hurry, and the first of them warms up for the others.
const LONG: Duration = Duration::from_secs(1);
/// What clients take for the way to a server, where the user has set it.
const PROXIES: [&str; 4] = ["all_proxy", "ftp_proxy", "http_proxy", "no_proxy"];
const STOP_MAX: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_their_whole_name() {
        assert_eq!(user("root"), Some(User { uid: 0, gid: 0 }));
        assert_eq!(user("roo"), None);
    }

    #[test]
    fn rates_are_read_from_what_clients_say() {
        let wrk = "Running 1s test\n  Latency 1ms\nRequests/sec:  51234.50\nTransfer/sec: 60MB\n";
        assert_eq!((App::Nginx.recipe().rate)(wrk), Some(51_234.5));
        let threads = "Time to set  200 keys:  0.025 seconds.\nTime to get  10000 keys by   50 threads:     0.125 seconds.\n";
        assert_eq!(
            (App::MemcachedThreads.recipe().rate)(threads),
            Some(80_000.0)
        );
        assert_eq!((App::Rpc.recipe().rate)("50000 40000"), Some(20_000.0));
        assert_eq!((App::FtpByCurl.recipe().rate)("2000000000"), Some(2e9));
        let tnftp = "226 Transfer complete.\n145000000 bytes received in 00:00 (1.00 GiB/s)\n221 Goodbye.\n";
        assert_eq!((App::Ftp.recipe().rate)(tnftp), Some(1_073_741_824.0));
        let slap = "get_misses: 0\n\nRun time: 1.0s Ops: 145309 TPS: 145264 Net_rate: 162.5M/s\n";
        assert_eq!((App::Memcached.recipe().rate)(slap), Some(145_264.0));
        let pgbench =
            "latency average = 0.05 ms\ntps = 18123.456789 (without initial connection time)\n";
        assert_eq!((App::Pgbench.recipe().rate)(pgbench), Some(18_123.456_789));
        for app in App::ALL {
            assert_eq!((app.recipe().rate)("connection refused"), None);
        }
    }
}
