//! A program in one of its variants, and the verdict on it.

use std::env;
use std::fmt::Write;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::compile::{Build, Sockets, compile};
use crate::ends::{Combination, End, Outcome, Run};
use crate::library;
use crate::program::Program;
use crate::table::{self, Known, Upgrade};

/// A program, warm or cold, with the behaviour shown by one end, in [its build](Build::of).
#[derive(Clone, Debug)]
pub struct Case {
    program: Program,
    warm: bool,
    subject: End,
}

impl Case {
    /// All cases of all programs.
    ///
    /// # Errors
    /// The folder of programs cannot be read.
    pub fn all() -> io::Result<Vec<Self>> {
        let mut cases = Vec::new();
        for program in Program::all()? {
            for subject in End::BOTH {
                for warm in [false, true] {
                    let case = Self {
                        program: program.clone(),
                        warm,
                        subject,
                    };
                    if !(warm && matches!(case.upgrade(), Upgrade::NoConnection(_))) {
                        cases.push(case);
                    }
                }
            }
        }
        Ok(cases)
    }

    /// `FAMILY::NAME::cold::client_plain` and so on.
    pub fn name(&self) -> String {
        format!(
            "{}::{}::{}_{}",
            self.program.path.replace('/', "::"),
            if self.warm { "warm" } else { "cold" },
            self.subject.name(),
            match Build::of(self.subject) {
                Build::Fortified => "fortified",
                Build::Plain | Build::Static => "plain",
            }
        )
    }

    fn upgrade(&self) -> Upgrade {
        (self.program.particular()).map_or(Upgrade::Expected, |row| row.upgrade)
    }

    fn known(&self, combination: Combination) -> Option<&'static Known> {
        table::KNOWN.iter().find(|known| {
            known.program == self.program.path
                && known.combination == combination
                && (self.warm || known.cold)
        })
    }

    /// Runs all combinations and compares.
    ///
    /// # Errors
    /// What differs, hangs, or could not be run, for a person to read.
    pub fn verify(&self) -> Result<(), String> {
        let target = library::target_folder()?;
        let only = env::var("DUALRUN_COMBINATIONS").ok();
        let wanted = |c: Combination| {
            let name = c.to_string();
            only.as_ref()
                .is_none_or(|only| only.split(',').any(|one| one == name))
        };
        let native = native_run(&self.program, self.subject, self.warm, &target)?;
        let reference = native.carry_out().map_err(|error| error.to_string())?;
        reference_is_sound(&reference)?;

        let mut faults = String::new();
        for again in 1..repetitions()? {
            let outcome = native.carry_out().map_err(|error| error.to_string())?;
            if let Some(difference) = difference(&reference, &outcome) {
                return Err(format!(
                    "native/native differs from itself in repetition {again}:\n{difference}"
                ));
            }
        }
        for combination in Combination::COMPARED.into_iter().filter(|&c| wanted(c)) {
            let run = Run {
                combination,
                library: Some(library::under_test(&target)?),
                ..native.clone()
            };
            let outcome = run.carry_out().map_err(|error| error.to_string())?;
            let fault = difference(&reference, &outcome)
                .or_else(|| self.wrong_upgrade(combination, &outcome));
            let verdict = match (fault, self.known(combination)) {
                (None, None) => continue,
                (Some(_), Some(known)) => {
                    println!("{combination}: known difference: {}", known.reason);
                    continue;
                }
                (Some(fault), None) => fault,
                (None, Some(known)) => format!(
                    "no longer differs; take out of table.rs: {}\n",
                    known.reason
                ),
            };
            // A String takes whatever is written to it.
            let _ = writeln!(faults, "client/server = {combination}: {verdict}");
        }
        if faults.is_empty() {
            Ok(())
        } else {
            Err(faults)
        }
    }

    /// A warm connection that stays on TCP shows nothing about the ring; one whose other end is native cannot be upgraded.
    fn wrong_upgrade(&self, combination: Combination, outcome: &Outcome) -> Option<String> {
        if self.upgrade() != Upgrade::Expected {
            return None;
        }
        let [client, server] = outcome.upgraded;
        let what = match combination {
            Combination::SOVIA if self.warm && (client == 0 || server == 0) => {
                "not every end upgraded its connection"
            }
            Combination::CLIENT | Combination::SERVER if client + server > 0 => {
                "a connection with a native end was upgraded"
            }
            _ => return None,
        };
        Some(format!(
            "the outcome is the same, but {what}: client {client}, server {server}\n"
        ))
    }
}

/// The program on the kernel: the run that all others are compared with, and differ from in little.
pub(crate) fn native_run(
    program: &Program,
    subject: End,
    warm: bool,
    target: &Path,
) -> Result<Run, String> {
    let built =
        |build| compile(program, build, Sockets::Tcp, target).map_err(|error| error.to_string());
    let twin = program.particular().is_some_and(|row| row.static_twin);
    Ok(Run {
        binary: built(Build::of(subject))?,
        static_twin: twin.then(|| built(Build::Static)).transpose()?,
        warm,
        subject,
        combination: Combination::NATIVE,
        library: None,
        timeout: Duration::from_secs(number("DUALRUN_TIMEOUT_S", 45)?),
        patience: None,
        variables: Vec::new(),
    })
}

pub(crate) fn reference_is_sound(reference: &Outcome) -> Result<(), String> {
    if let Some(hang) = &reference.hang {
        return Err(format!("native/native hangs:\n{hang}{}", both(reference)));
    }
    if reference.transcripts.iter().any(|t| t.died().is_some()) {
        return Err(format!("native/native fails:\n{}", both(reference)));
    }
    Ok(())
}

fn both(outcome: &Outcome) -> String {
    let mut text = String::new();
    for (end, transcript) in End::BOTH.into_iter().zip(&outcome.transcripts) {
        // A String takes whatever is written to it.
        let _ = writeln!(
            text,
            "  {}:\n      {}",
            end.name(),
            transcript.lines.join("\n      ")
        );
    }
    text
}

/// `None` if both ends did the same as in the reference.
pub(crate) fn difference(reference: &Outcome, outcome: &Outcome) -> Option<String> {
    let mut text = String::new();
    if let Some(hang) = &outcome.hang {
        // A String takes whatever is written to it.
        let _ = writeln!(text, "hangs:\n{hang}");
    }
    for (place, end) in End::BOTH.into_iter().enumerate() {
        let [expected, got] = [reference, outcome].map(|o| &o.transcripts[place]);
        if let Some(difference) = expected.difference(got) {
            let _ = writeln!(text, "the {} differs:\n{difference}", end.name());
        }
    }
    (!text.is_empty()).then_some(text)
}

/// How often the reference is compared with itself.
fn repetitions() -> Result<u64, String> {
    number("DUALRUN_REPEAT", 1)
}

pub(crate) fn number(variable: &str, otherwise: u64) -> Result<u64, String> {
    match env::var(variable) {
        Ok(value) => value
            .parse()
            .map_err(|_| format!("{variable}={value} is not a number")),
        Err(_) => Ok(otherwise),
    }
}
