//! The programs over SOVIA's packets: each asks for sockets of type `SOCK_VIA` where it else asks for TCP over IPv4.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use crate::case::{difference, native_run, reference_is_sound};
use crate::compile::{Build, Sockets, compile};
use crate::ends::{Combination, End, Run};
use crate::library;
use crate::program::Program;
use crate::table::Upgrade;

pub mod table;

/// For the NIC of one run, which listens there only while somebody waits: not one of those that the kernel gives to whoever asks for any, nor that of another
/// run, in this process or beside it.
fn free_port() -> io::Result<u16> {
    static RUNS: AtomicU16 = AtomicU16::new(0);
    let first = (process::id() as u16).wrapping_add(RUNS.fetch_add(1, Ordering::Relaxed)) % PORTS;
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    (0..PORTS)
        .map(|n| FIRST_PORT + (first + n) % PORTS)
        .find(is_free)
        .ok_or_else(|| io::ErrorKind::AddrInUse.into())
}

/// Below Linux's own range (32768 to 60999).
const FIRST_PORT: u16 = 12_000;
const PORTS: u16 = 20_000;

/// A program over packets, with the behaviour shown by one end.
#[derive(Clone, Debug)]
pub struct PacketCase {
    program: Program,
    warm: bool,
    subject: End,
    nic: Nic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nic {
    Shm,
    Iwarp,
}

impl PacketCase {
    /// All cases of all programs, and those of some over `iwarp`, too.
    ///
    /// # Errors
    /// The folder of programs cannot be read.
    pub fn all() -> io::Result<Vec<Self>> {
        let mut cases = Vec::new();
        for program in Program::all()? {
            let over_iwarp = table::OVER_IWARP.contains(&program.path.as_str());
            let nics = [Some(Nic::Shm), over_iwarp.then_some(Nic::Iwarp)];
            for (nic, subject) in nics
                .into_iter()
                .flatten()
                .flat_map(|nic| End::BOTH.map(|subject| (nic, subject)))
            {
                cases.push(Self {
                    warm: subject == End::Client && has_connection(&program),
                    program: program.clone(),
                    subject,
                    nic,
                });
            }
        }
        Ok(cases)
    }

    /// `FAMILY::NAME::client`, `FAMILY::NAME::client_over_iwarp` and so on.
    pub fn name(&self) -> String {
        let path = self.program.path.replace('/', "::");
        let over = match self.nic {
            Nic::Shm => "",
            Nic::Iwarp => "_over_iwarp",
        };
        format!("{path}::{}{over}", self.subject.name())
    }

    /// Where the NIC is.
    fn variables(&self) -> io::Result<Vec<(&'static str, String)>> {
        if self.nic == Nic::Shm {
            return Ok(Vec::new());
        }
        let port = free_port()?;
        Ok(vec![
            ("SOVIA_PACKET", "nic=iwarp".to_owned()),
            ("SOVIA_IWARP", format!("{}:{port}", Ipv4Addr::LOCALHOST)),
        ])
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
        let of_tcp_alone = table::of_tcp_alone(&self.program.path, self.subject);
        let known = table::reason(&self.program.path, self.subject).or(of_tcp_alone);
        let not_applicable = table::not_applicable(&self.program.path);
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
            variables: self.variables().map_err(|error| error.to_string())?,
            ..native
        };
        let outcome = run.carry_out().map_err(|error| error.to_string())?;
        let met = outcome.vias != [0, 0];
        if let Some(reason) = not_applicable {
            println!("not applicable: {reason}");
            let asked = met
                .then(|| format!("it asked for SOCK_VIA; take out of packet/table.rs: {reason}\n"));
            return difference(&reference, &outcome)
                .or(asked)
                .map_or(Ok(()), Err);
        }
        // A run that met no VI shows nothing about packets.
        let without = || {
            (!met).then(|| "the outcome is the same, but nobody asked for SOCK_VIA\n".to_owned())
        };
        let fault = difference(&reference, &outcome).or_else(without);
        match (fault, known) {
            (None, None) => Ok(()),
            (Some(_), Some(reason)) => {
                let what = match of_tcp_alone {
                    Some(_) => "not applicable",
                    None => "known difference",
                };
                println!("{what}: {reason}");
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

/// Of what is known to hang. What passes after all is done long before.
const KNOWN_TIMEOUT: Duration = Duration::from_secs(1);
/// Of an end whose other end has failed, which is a difference already.
const KNOWN_PATIENCE: Duration = Duration::from_millis(100);
