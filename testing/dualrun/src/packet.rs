//! The programs over SOVIA's packets: each asks for sockets of type `SOCK_VIA` where it else asks for TCP over IPv4.

use std::io;
use std::time::Duration;

use crate::case::{difference, native_run, reference_is_sound};
use crate::compile::{Build, Sockets, compile};
use crate::ends::{Combination, End, Outcome, Run};
use crate::library;
use crate::program::Program;
use crate::table::Upgrade;

pub mod table;

/// A program over packets, with the behaviour shown by one end.
#[derive(Clone, Debug)]
pub struct PacketCase {
    program: Program,
    warm: bool,
    subject: End,
}

impl PacketCase {
    /// All cases of all programs.
    ///
    /// # Errors
    /// The folder of programs cannot be read.
    pub fn all() -> io::Result<Vec<Self>> {
        let mut cases = Vec::new();
        for program in Program::all()? {
            for subject in End::BOTH {
                cases.push(Self {
                    warm: subject == End::Client && has_connection(&program),
                    program: program.clone(),
                    subject,
                });
            }
        }
        Ok(cases)
    }

    /// `FAMILY::NAME::client` and so on.
    pub fn name(&self) -> String {
        let path = self.program.path.replace('/', "::");
        format!("{path}::{}", self.subject.name())
    }

    /// Runs it over TCP without us, and over packets, and compares.
    ///
    /// # Errors
    /// What differs, hangs, or could not be run, for a person to read.
    pub fn verify(&self) -> Result<(), String> {
        let target = library::target_folder()?;
        let native = native_run(&self.program, self.subject, self.warm, &target)?;
        let reference = native.carry_out().map_err(|error| error.to_string())?;
        reference_is_sound(&reference)?;
        let known = table::reason(&self.program.path, self.subject);
        if let Some(reason) = table::unsteady(&self.program.path, self.subject) {
            println!("not compared: {reason}");
            return Ok(());
        }
        let build = Build::of(self.subject);
        let over_packets = compile(&self.program, build, Sockets::Via, &target);
        let run = Run {
            binary: over_packets.map_err(|error| error.to_string())?,
            combination: Combination::SOVIA,
            library: Some(library::under_test(&target)?),
            timeout: match known {
                Some(_) => native.timeout.min(KNOWN_TIMEOUT),
                None => native.timeout,
            },
            patience: known.map(|_| KNOWN_PATIENCE),
            ..native
        };
        let outcome = run.carry_out().map_err(|error| error.to_string())?;
        let fault = difference(&reference, &outcome).or_else(|| without_via(&outcome));
        match (fault, known) {
            (None, None) => Ok(()),
            (Some(_), Some(reason)) => {
                println!("known difference: {reason}");
                Ok(())
            }
            (Some(fault), None) => Err(fault),
            (None, Some(reason)) => Err(format!(
                "no longer differs; take out of packet/table.rs: {reason}"
            )),
        }
    }
}

fn has_connection(program: &Program) -> bool {
    let row = program.particular();
    row.is_none_or(|row| !matches!(row.upgrade, Upgrade::NoConnection(_)))
}

/// A run that met no VI shows nothing about packets.
fn without_via(outcome: &Outcome) -> Option<String> {
    let [client, server] = outcome.vias;
    (client == 0 && server == 0)
        .then(|| "the outcome is the same, but nobody asked for SOCK_VIA\n".to_owned())
}

/// Of what is known to hang. What passes after all is done long before.
const KNOWN_TIMEOUT: Duration = Duration::from_secs(1);
/// Of an end whose other end has failed, which is a difference already.
const KNOWN_PATIENCE: Duration = Duration::from_millis(100);
