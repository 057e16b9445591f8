//! What the user's configuration says of the program, whatever its connections.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::ffi::OsStrExt;

use sockets::reason::Reason;
use sockets::rules::Upgrade;
use sockets::rules::text::{Misfit, Program as Named, Rule, Rules};

use super::finding::{Finding, Verdict};
use crate::config::{self, Config};
use crate::error::{Context, Result};
use crate::run::program::Program;
use sys::stream::Size;

/// With it no program is run.
pub(super) const MISTAKE: &str = "configuration";

/// The configuration, if there is one without a mistake.
pub(super) fn mistake(
    config: Result<Option<Config>, config::Error>,
    found: &mut Vec<Finding>,
) -> Option<Config> {
    config.unwrap_or_else(|error| {
        found.push(Finding::new(Verdict::CannotRun, MISTAKE, error.to_string()));
        None
    })
}

/// How long the rings of a program's connections may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rings {
    /// Of those that no rule names one by one.
    pub(super) usual: Size,
    pub(super) least: Size,
    pub(super) most: Size,
}

impl Default for Rings {
    fn default() -> Self {
        Self::all(Size::DEFAULT)
    }
}

impl Rings {
    /// Of one connection.
    pub(crate) fn all(size: Size) -> Self {
        Self {
            usual: size,
            least: size,
            most: size,
        }
    }

    /// What `config` says; as ever where it cannot be read, which is told.
    pub(super) fn of(program: &Program, config: &Config) -> Self {
        let text = config.text();
        let (Ok((invoked, executable)), Ok(rules)) = (program.names(), Rules::parse(&text)) else {
            return Self::default();
        };
        let named = Named {
            executable: executable.as_os_str().as_bytes(),
            invoked: invoked.as_os_str().as_bytes(),
        };
        let mut rings = Self::all(rules.of_program(&named).settings.ring);
        for (_, rule) in rules.iter() {
            if let Some(size) = rule.words.ring
                && !rule.is_of_program_only()
                && misfit(&rule, &named) != Some(Misfit::Program)
            {
                rings.least = rings.least.min(size);
                rings.most = rings.most.max(size);
            }
        }
        rings
    }
}

/// Everything that is to be said of it.
pub(super) fn look(program: &Program, config: &Config, found: &mut Vec<Finding>) {
    match decide(program, config) {
        Ok(findings) => found.extend(findings),
        Err(error) => found.push(Finding::new(Verdict::Partly, MISTAKE, error.to_string())),
    }
}

/// The rules that may be asked of a connection of the program, up to one that fits all.
fn decide(program: &Program, config: &Config) -> Result<Vec<Finding>> {
    let (invoked, executable) = program.names().context("the program's path")?;
    let named = Named {
        executable: executable.as_os_str().as_bytes(),
        invoked: invoked.as_os_str().as_bytes(),
    };
    let text = config.text();
    let rules = Rules::parse(&text)
        .map_err(io::Error::other)
        .context("the configuration")?;
    let mut findings = Vec::new();
    let mut is_allowed_some = false;
    for (_, rule) in rules.iter() {
        if misfit(&rule, &named) == Some(Misfit::Program) {
            continue;
        }
        let at = format!("{}:{}", config.path().display(), rule.line);
        let fits_all = rule.is_of_program_only();
        let Some(upgrade) = rule.words.upgrade else {
            continue;
        };
        match (upgrade, fits_all) {
            (Upgrade::Never, true) => {
                let verdict = match is_allowed_some {
                    true => Verdict::Partly,
                    false => Verdict::Tcp,
                };
                let rest = match is_allowed_some {
                    true => "all other connections are",
                    false => "its connections are",
                };
                let text = format!("{at}: {rest} to stay on TCP (upgrade = \"never\")");
                findings.push(Finding::new(verdict, "rule", text).because(Reason::RuleNever));
            }
            (Upgrade::Never, false) => findings.push(Finding::note(
                "rule",
                format!("{at}: connections with the peers or ports that it names are to stay on TCP; sovia explain says of one"),
            )),
            _ => is_allowed_some |= !fits_all,
        }
        if fits_all {
            break;
        }
    }
    Ok(findings)
}

fn misfit(rule: &Rule<'_>, named: &Named<'_>) -> Option<Misfit> {
    rule.misfit(named, IpAddr::V4(Ipv4Addr::LOCALHOST), 1)
}
