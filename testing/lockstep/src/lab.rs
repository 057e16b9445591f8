//! Where sessions are made: the actors' program, the library under test, and what has come of it all so far.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fmt, fs, io, process};

use crate::actor::{self, Pace};
use crate::choice::Chooser;
use crate::model::Model;
use crate::record::Record;
use crate::run::{Difference, Session, Stop};
use crate::shrink::shrink;
use crate::step::Step;
use crate::world::{Environment, World};

/// See the [module](self).
pub struct Lab {
    program: PathBuf,
    folder: PathBuf,
    /// None: the second world is native, too.
    library: Option<PathBuf>,
    /// Prints each step and its answer.
    pub verbose: bool,
    /// What there has been.
    pub tally: Tally,
}

/// Counts of what a [`Lab`] has made, without what shrinking has.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Sessions.
    pub sessions: usize,
    /// Their steps.
    pub steps: usize,
    /// Answers that were the same only when asked for again.
    pub late: usize,
    /// Sessions that could not go on, for reasons of neither world.
    pub broken: usize,
    /// Differences that are known, by reason.
    pub tolerated: BTreeMap<&'static str, usize>,
    /// Ends of connections that left TCP.
    pub upgraded: usize,
}

/// A session that differed.
pub struct Finding {
    /// All of it.
    pub record: Record,
    /// Where it differed.
    pub difference: Difference,
    /// In how many of [`AGAIN`] more runs it did, once that was tried.
    pub again: Option<usize>,
    /// What is left of it, and what that shows, if it always differs.
    pub short: Option<(Record, Difference)>,
}

impl Lab {
    /// With `library` under test, in a folder of its own that goes with it. That is where temporary files are: names of Unix sockets are short.
    ///
    /// # Errors
    /// There can be no folder; or see [`actor::compile`].
    pub fn new(library: Option<PathBuf>) -> io::Result<Self> {
        let number = LABS.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("lockstep.{}.{number}", process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Self {
            program: actor::compile(&folder)?,
            folder,
            library,
            verbose: false,
            tally: Tally::default(),
        })
    }

    /// Makes the session that a seed names, of so many steps.
    ///
    /// # Errors
    /// No session can begin.
    pub fn search(&mut self, seed: u64, length: usize) -> io::Result<Option<Finding>> {
        let (record, found) = self.explore(seed, length)?;
        Ok(found.map(|difference| Finding {
            record,
            difference,
            again: None,
            short: None,
        }))
    }

    /// Cuts what was found down to the steps that it takes, if it is so each time.
    ///
    /// # Errors
    /// No session can begin.
    pub fn cut(&self, finding: &mut Finding) -> io::Result<()> {
        let record = &finding.record;
        let class = finding.difference.class();
        let differs = |steps: &[Step]| match self.again(&Record::of(record.pace, steps)) {
            Ok(Some(difference)) => difference.class() == class,
            _ => false,
        };
        let again = (0..AGAIN).filter(|_| differs(&record.steps)).count();
        finding.again = Some(again);
        if again == AGAIN {
            let steps = shrink(record.steps.clone(), |steps| (0..2).all(|_| differs(steps)));
            let short = Record::of(record.pace, &steps);
            finding.short = self.again(&short)?.map(|difference| (short, difference));
        }
        Ok(())
    }

    /// Makes a session again; where it differs.
    ///
    /// # Errors
    /// No session can begin, or it cannot go on.
    pub fn replay(&mut self, record: &Record) -> io::Result<Option<Difference>> {
        let (session, difference) = self.play(record, self.verbose)?;
        self.tally(&session, record.steps.len());
        Ok(difference)
    }

    fn again(&self, record: &Record) -> io::Result<Option<Difference>> {
        Ok(self.play(record, false)?.1)
    }

    fn play(&self, record: &Record, verbose: bool) -> io::Result<(Session, Option<Difference>)> {
        let mut session = self.session(record.pace)?;
        for step in &record.steps {
            let outcome = session.make(step);
            if verbose {
                print_step(step, &outcome);
            }
            match outcome {
                Ok(_) => {}
                Err(Stop::Tolerated(_)) => break,
                Err(Stop::Difference(difference)) => return Ok((session, Some(*difference))),
                Err(Stop::Io(error)) => return Err(error),
            }
        }
        Ok((session, None))
    }

    fn explore(&mut self, seed: u64, length: usize) -> io::Result<(Record, Option<Difference>)> {
        let pace = if seed.is_multiple_of(4) {
            Pace::Usual
        } else {
            Pace::AtOnce
        };
        let mut session = self.session(pace)?;
        let mut chooser = Chooser::new(seed);
        let mut model = Model::new(&BEGIN);
        let mut steps = Vec::new();
        let mut found = None;
        let mut next = chooser.beginning(pace);
        'session: while steps.len() < length {
            for step in next {
                steps.push(step.clone());
                let outcome = session.make(&step);
                if self.verbose {
                    print_step(&step, &outcome);
                }
                match outcome {
                    Ok(done) => done.iter().for_each(|done| model.note(done)),
                    Err(Stop::Tolerated(_)) => break 'session,
                    Err(Stop::Difference(difference)) => {
                        found = Some(*difference);
                        break 'session;
                    }
                    Err(Stop::Io(error)) => {
                        eprintln!("seed {seed}: {error}");
                        self.tally.broken += 1;
                        break 'session;
                    }
                }
            }
            let actors = model.actors.keys();
            let idle: Vec<String> = actors
                .filter(|actor| session.is_idle(actor))
                .cloned()
                .collect();
            if idle.is_empty() {
                break;
            }
            next = (0..TRIES)
                .map(|_| chooser.next(&model, &idle))
                .find(|steps| !steps.is_empty())
                .unwrap_or_default();
            if next.is_empty() {
                break;
            }
        }
        self.tally(&session, steps.len());
        Ok((Record { pace, steps }, found))
    }

    fn session(&self, pace: Pace) -> io::Result<Session> {
        let begin = |name: &str, environment: &Environment| {
            let actors = BEGIN.map(|actor| (actor, environment.clone()));
            World::begin(&self.program, &self.folder, name, &actors)
        };
        // Lines of earlier sessions have been counted.
        let trace = self.folder.join(TRACE);
        match fs::remove_file(&trace) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let under = match &self.library {
            Some(library) => actor::under_sovia(library, pace, &trace),
            None => Environment::new(),
        };
        Ok(Session::of(
            begin("kernel", &Environment::new())?,
            begin("sovia", &under)?,
        ))
    }

    fn tally(&mut self, session: &Session, steps: usize) {
        self.tally.sessions += 1;
        self.tally.steps += steps;
        self.tally.late += session.late;
        for (reason, count) in &session.tolerated {
            *self.tally.tolerated.entry(reason).or_default() += count;
        }
        // None is there if nothing was upgraded.
        let lines = fs::read_to_string(self.folder.join(TRACE)).unwrap_or_default();
        self.tally.upgraded += lines.lines().count();
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Nobody misses what stays of it.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} sessions, {} steps, {} ends left TCP, {} answers came late, {} sessions broke off",
            self.sessions, self.steps, self.upgraded, self.late, self.broken
        )?;
        let mut tolerated = self.tolerated.iter();
        tolerated.try_for_each(|(reason, count)| writeln!(f, "{count:6} × tolerated: {reason}"))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "after {} steps: {}",
            self.record.steps.len(),
            self.difference
        )?;
        if let Some(again) = self.again {
            writeln!(f, "again in {again} of {AGAIN}")?;
        }
        match &self.short {
            Some((record, difference)) => write!(f, "these steps do:\n{record}{difference}"),
            None => Ok(()),
        }
    }
}

fn print_step(step: &Step, outcome: &Result<Vec<crate::run::Done>, Stop>) {
    println!("{step}");
    for done in outcome.iter().flatten() {
        println!("    {} -> {}", done.step, done.answer);
    }
}

/// Of this process.
static LABS: AtomicU32 = AtomicU32::new(0);

/// With whom each session begins.
const BEGIN: [&str; 2] = ["A", "B"];
/// A session is cut down only if it differs each time.
pub const AGAIN: usize = 3;
/// Ideas that mean nothing just now, before a session is over.
const TRIES: usize = 1000;
const TRACE: &str = "upgraded";
