//! `sovia explain`: which rules decide over a connection, and what would become of it.

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, ToSocketAddrs};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::net::if_::if_nametoindex;
use serde::Serialize;
use sockets::reason::Reason;
use sockets::rules::Upgrade;
use sockets::rules::text::{self, Answer, Key, Misfit, Rule, Rules};

use crate::check::{self, Rings};
use crate::config::Config;
use crate::error::{Context, Error, Result};
use crate::output::visible;
use crate::run::place::Place;
use crate::run::program::Program;
use settings::Setting;

mod settings;

/// Say which rules of the configuration decide over a connection, and what would become of it
///
/// The address is the other end's, with the server's port: for a client where it connects to, for a server whom it serves and at which port.
/// Without program and address the configuration is only read, and its mistakes are told.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// JSON instead of text
    #[arg(long)]
    json: bool,
    /// Configuration in place of the one that would be found; an empty name is none
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    config: Option<OsString>,
    /// As `sovia run` would be told it
    #[arg(value_name = "PROGRAM", requires = "address", value_hint = clap::ValueHint::CommandName)]
    program: Option<OsString>,
    /// HOST:PORT, or :PORT for 127.0.0.1; [fe80::1%eth0]:PORT for an address of one interface
    #[arg(value_name = "ADDRESS")]
    address: Option<String>,
}

const HELP: &str = "\
Exit status: 0 whatever the answer, 2 if the configuration or the address is wrong, 127 if there is no such program, or no such interpreter of it, \
126 if that may not be executed.

Examples:
  sovia explain redis-cli 127.0.0.1:6379
  sovia explain --config ./new.toml nginx [::1]:443 --json
  sovia explain ./server :8080
  sovia explain --config ./new.toml";

#[derive(Debug, Serialize)]
struct Explanation {
    program: String,
    address: SocketAddr,
    /// The configuration, if there is one.
    file: Option<String>,
    /// The line of the rule that decides whether it leaves TCP, if one does.
    line: Option<u32>,
    upgrade: &'static str,
    /// How it is to be, as far as that means something.
    settings: Vec<Setting>,
    /// How long a wait for several connections polls, if it is another time.
    several: Option<Setting>,
    /// Rules that would have decided something, and what of each did not fit.
    passed_over: Vec<PassedOver>,
    /// What keeps the connection on TCP, if that is known beforehand.
    reason: Option<Number>,
    outcome: String,
}

#[derive(Debug, Serialize)]
struct PassedOver {
    line: u32,
    because: &'static str,
}

#[derive(Debug, Serialize)]
struct Number {
    number: u16,
    name: &'static str,
}

/// `sovia explain`.
pub(crate) fn main(options: &Options) -> Result<()> {
    let read = || Config::find(options.config.as_deref().map(Path::new));
    let text = match (&options.program, &options.address) {
        (Some(program), Some(address)) => {
            let address = resolve(address)?;
            let program =
                Program::find(program, &Place::ours()).map_err(crate::run::Error::from)?;
            program
                .check_interpreter()
                .map_err(crate::run::Error::from)?;
            let explanation = explain(&program, address, read()?.as_ref())?;
            said(options, &explanation)?
        }
        _ => said(options, &Summary::of(read()?.as_ref()))?,
    };
    io::stdout()
        .write_all(text.as_bytes())
        .context("standard output")
}

fn said<T: Serialize + std::fmt::Display>(options: &Options, what: &T) -> Result<String> {
    if !options.json {
        return Ok(visible(&what.to_string()));
    }
    let text = serde_json::to_string_pretty(what)
        .map_err(io::Error::from)
        .context("JSON")?;
    Ok(text + "\n")
}

/// A configuration without a mistake.
#[derive(Debug, Serialize)]
struct Summary {
    /// `None` if there is no configuration.
    file: Option<String>,
    rules: usize,
}

impl Summary {
    fn of(config: Option<&Config>) -> Self {
        Self {
            file: config.map(|config| config.path().display().to_string()),
            rules: config.map_or(0, Config::rule_count),
        }
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.file {
            Some(file) if self.rules == 1 => writeln!(f, "{file}: no mistake, 1 rule"),
            Some(file) => writeln!(f, "{file}: no mistake, {} rules", self.rules),
            None => writeln!(f, "there is no configuration"),
        }
    }
}

fn resolve(address: &str) -> Result<SocketAddr> {
    let wrong = |what: &str| Err(Error::Misuse(format!("{address}: {what}")));
    let Some((host, port)) = address.rsplit_once(':') else {
        return wrong("there is no port, as in 127.0.0.1:80 or :80");
    };
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    if host.contains(':') && !is_bracketed {
        return wrong("an address of IPv6 is in brackets, as in [::1]:80");
    }
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    let port = match port.parse() {
        Ok(port) if is_number && port > 0 => port,
        _ => return wrong("the port is a number from 1 to 65535"),
    };
    if host.is_empty() {
        return Ok(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
    }
    let mut found = match scoped(host) {
        Some((ip, Some(scope))) => SocketAddrV6::new(ip, port, 0, scope).into(),
        Some((_, None)) => return wrong("there is no such interface"),
        None => {
            let found = address.to_socket_addrs();
            let Some(found) = found.ok().and_then(|mut all| all.next()) else {
                return wrong("there is no such host");
            };
            found
        }
    };
    match found.ip().to_canonical() {
        ip if ip.is_multicast() || ip == Ipv4Addr::BROADCAST => {
            return wrong("nobody is connected to there by TCP");
        }
        // Whoever connects there is connected to the loopback.
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => found.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => found.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    Ok(found)
}

/// An address that is of one interface, as `[fe80::1%eth0]` or `[fe80::1%4]`, and the interface's number if there is that.
fn scoped(host: &str) -> Option<(Ipv6Addr, Option<u32>)> {
    let inner = host.strip_prefix('[')?.strip_suffix(']')?;
    let (ip, interface) = inner.split_once('%')?;
    let number = interface.parse().ok();
    let number = number.or_else(|| if_nametoindex(interface).ok());
    Some((ip.parse().ok()?, number))
}

fn explain(program: &Program, address: SocketAddr, config: Option<&Config>) -> Result<Explanation> {
    let (invoked, executable) = program.names().context("the program's path")?;
    let named = text::Program {
        executable: executable.as_os_str().as_bytes(),
        invoked: invoked.as_os_str().as_bytes(),
    };
    let text = config.map(Config::text).unwrap_or_default();
    let rules = match config {
        Some(_) => Some(
            Rules::parse(&text)
                .map_err(io::Error::other)
                .context("the configuration")?,
        ),
        None => None,
    };
    let (peer, port) = (address.ip().to_canonical(), address.port());
    let answer = rules
        .map(|rules| rules.ask(&named, peer, port))
        .unwrap_or_default();
    let of_program = rules
        .map(|rules| rules.of_program(&named))
        .unwrap_or_default();
    let decision = answer.decision;
    let passed_over = rules
        .iter()
        .flat_map(Rules::iter)
        .filter(|(number, rule)| would_decide(&answer, *number, rule))
        .filter_map(|(_, rule)| {
            let because = match rule.misfit(&named, peer, port)? {
                Misfit::Program => "another program",
                Misfit::Peer => "another peer",
                Misfit::Port => "another port",
            };
            Some(PassedOver {
                line: rule.line,
                because,
            })
        })
        .collect();
    let (reason, outcome) = outcome(program, address, &answer);
    Ok(Explanation {
        program: shown(&invoked, &executable),
        address,
        file: config.map(|config| config.path().display().to_string()),
        line: rules
            .map(|rules| rules.line_of(decision.number))
            .filter(|&line| line > 0),
        upgrade: decision.upgrade.name(),
        several: Setting::several(rules.as_ref(), &answer, &of_program),
        settings: Setting::all(rules.as_ref(), &answer),
        passed_over,
        reason: reason.map(|reason| Number {
            number: reason.number(),
            name: reason.name(),
        }),
        outcome,
    })
}

/// Whether something of what `rule` says had not been said before it.
fn would_decide(answer: &Answer, number: u16, rule: &Rule<'_>) -> bool {
    Key::ALL.into_iter().any(|key| {
        let by = answer.number(key);
        rule.words.keys().has(key) && (by == 0 || number < by)
    })
}

fn shown(invoked: &Path, executable: &Path) -> String {
    match invoked.canonicalize() {
        Ok(path) if path == executable => executable.display().to_string(),
        _ => format!("{} (run by {})", invoked.display(), executable.display()),
    }
}

/// As far as it can be known from here.
fn outcome(program: &Program, address: SocketAddr, answer: &Answer) -> (Option<Reason>, String) {
    let upgrade = answer.decision.upgrade;
    if upgrade == Upgrade::Never {
        return (Some(Reason::RuleNever), "stays on TCP".to_owned());
    }
    let told = match upgrade {
        Upgrade::Always => ", and standard error and sovia stat say so",
        _ => "",
    };
    if let Some(obstacle) = program.obstacle() {
        // Without the library nobody is there who could tell.
        return (
            Some(Reason::NobodyCame),
            format!("stays on TCP: {obstacle}"),
        );
    }
    if let Some((reason, text)) = check::obstacle_here(Rings::all(answer.settings.ring)) {
        let told = match reason {
            Some(Reason::NobodyCame) => "",
            _ => told,
        };
        return (reason, format!("stays on TCP{told}: {text}"));
    }
    if !is_here(address) {
        let peer = address.ip().to_canonical();
        return (
            Some(Reason::NotLocal),
            format!("stays on TCP{told}: {peer} is no address of this host"),
        );
    }
    let unless = match upgrade {
        Upgrade::Always => "; else it stays on TCP, and standard error and sovia stat say so",
        _ => "; else it stays on TCP",
    };
    (
        None,
        format!(
            "moves to shared memory, once it is no short one, if the other end is under sovia in this network namespace{unless}"
        ),
    )
}

/// An address of this host is one that can be listened at, if it is of one interface, at that.
fn is_here(mut address: SocketAddr) -> bool {
    address.set_port(0);
    address.set_ip(address.ip().to_canonical());
    address.ip().is_loopback() || TcpListener::bind(address).is_ok()
}

impl std::fmt::Display for Explanation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "program  {}", self.program)?;
        writeln!(f, "address  {}", self.address)?;
        let file = self.file.as_deref();
        for PassedOver { line, because } in &self.passed_over {
            writeln!(f, "not      {}:{line}: {because}", file.unwrap_or_default())?;
        }
        match (file, self.line) {
            (Some(file), Some(line)) => writeln!(f, "decides  {file}:{line}: {}", self.upgrade)?,
            (Some(file), None) => writeln!(
                f,
                "decides  no rule of {file} says otherwise: {}",
                self.upgrade
            )?,
            (None, _) => writeln!(f, "decides  there is no configuration: {}", self.upgrade)?,
        }
        for setting in &self.settings {
            setting.write(f, "with", file)?;
        }
        if let Some(several) = &self.several {
            several.write(f, "several", file)?;
        }
        write!(f, "then     {}", self.outcome)?;
        match &self.reason {
            Some(Number { number, name }) => writeln!(f, " (reason {number} {name})"),
            None => writeln!(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_an_interface_has_its_number() {
        let lo = if_nametoindex("lo").expect("every host has it");
        for text in [format!("[fe80::1%{lo}]:80"), "[fe80::1%lo]:80".to_owned()] {
            let SocketAddr::V6(found) = resolve(&text).expect(&text) else {
                panic!("{text}: another family");
            };
            assert_eq!((found.scope_id(), found.port()), (lo, 80), "{text}");
        }
        let told = resolve("[fe80::1%nosuch]:80").expect_err("no interface");
        assert!(told.to_string().contains("no such interface"), "{told}");
    }

    #[test]
    fn what_may_be_meant_otherwise_is_asked_for() {
        for text in ["::1", "::1:80", "fe80::1:80", "::", "[::1:80", "::1]:80"] {
            let told = resolve(text).expect_err(text).to_string();
            assert!(told.contains("in brackets, as in [::1]:80"), "{told}");
        }
        for text in [":+80", "127.0.0.1:+80", ":-1", ":", "[::1]:", ":65536"] {
            let told = resolve(text).expect_err(text).to_string();
            assert!(told.contains("a number from 1 to 65535"), "{told}");
        }
        assert_eq!(resolve("[::1]:80").ok(), "[::1]:80".parse().ok());
        assert_eq!(resolve(":80").ok(), "127.0.0.1:80".parse().ok());
    }

    /// The kernel gives each interface that is up one of its own.
    #[test]
    fn an_own_address_of_an_interface_is_here() {
        let table = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
        let own = table.lines().find_map(|line| {
            let fields: Vec<_> = line.split_ascii_whitespace().collect();
            let &[digits, _, _, "20", _, name] = fields.as_slice() else {
                return None;
            };
            let bits = u128::from_str_radix(digits, 16).ok()?;
            Some((Ipv6Addr::from_bits(bits), name.to_owned()))
        });
        let Some((ip, name)) = own else {
            println!("not tested here: there is no address of an interface");
            return;
        };
        let address = resolve(&format!("[{ip}%{name}]:80")).expect("it is there");
        assert!(is_here(address), "{address}");
    }
}
