//! A session in both worlds at once.
//!
//! A step may block: then it is awaited while others make theirs, and must end in both worlds or in neither. What asks and changes nothing
//! may come late under sovia, as what a peer has to do first takes a moment; it is asked again until both say the same or time is over.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::time::{Duration, Instant};

use crate::compare::{Comparison, nudge};
use crate::step::{Kind, Step};
use crate::tolerated::{self, Past};
use crate::world::{Heard, PATIENCE, World};

/// The two worlds of a session, and what is known of it.
pub struct Session {
    kernel: World,
    sovia: World,
    ports: HashMap<String, (String, String)>,
    /// The step that each busy actor makes.
    pending: HashMap<String, Step>,
    past: Past,
    /// How many answers were the same only when asked for again.
    pub late: usize,
    /// Differences that are known, by reason.
    pub tolerated: BTreeMap<&'static str, usize>,
}

/// What a step came to, where both worlds agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The step: perhaps one from before, that has ended only now.
    pub step: Step,
    /// The answer; empty where there is none.
    pub answer: String,
}

/// Where the worlds differ.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{step}\n  kernel: {kernel}\n  sovia:  {sovia}")]
pub struct Difference {
    /// The step whose outcome differs.
    pub step: Step,
    /// What came of it.
    pub kernel: String,
    /// What came of it.
    pub sovia: String,
}

/// Why a session ended early.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// What sessions are for.
    #[error(transparent)]
    Difference(#[from] Box<Difference>),
    /// A known difference, after which the worlds are no longer the same.
    #[error("a known difference: {0}")]
    Tolerated(&'static str),
    /// Something that says nothing of either.
    #[error("the session cannot go on: {0}")]
    Io(#[from] io::Error),
}

impl Session {
    /// Of two worlds in which nothing has happened yet.
    pub fn of(kernel: World, sovia: World) -> Self {
        Self {
            kernel,
            sovia,
            ports: HashMap::new(),
            pending: HashMap::new(),
            past: Past::default(),
            late: 0,
            tolerated: BTreeMap::new(),
        }
    }

    /// Whether an actor is there and has nothing to do.
    pub fn is_idle(&self, actor: &str) -> bool {
        self.kernel.has(actor) && !self.kernel.is_busy(actor)
    }

    /// Makes a step, and says which ended by it. A step for an actor that is busy or gone is left out.
    ///
    /// # Errors
    /// See [`Stop`].
    pub fn make(&mut self, step: &Step) -> Result<Vec<Done>, Stop> {
        if !self.is_idle(&step.actor) {
            return Ok(Vec::new());
        }
        self.past.note(step);
        let mut done = Vec::new();
        match step.kind() {
            Kind::IsKilled => {
                self.kernel.kill(&step.actor);
                self.sovia.kill(&step.actor);
                self.await_end(step)?;
                done.push(Done::silent(step));
            }
            Kind::Ends => {
                self.tell(step);
                self.await_end(step)?;
                done.push(Done::silent(step));
            }
            Kind::Becomes => {
                self.tell(step);
                self.await_end(step)?;
                self.await_actor(step, &step.actor)?;
                done.push(Done::silent(step));
            }
            Kind::Begets => {
                done.extend(self.call(step)?);
                let begotten = step.word(1).to_owned();
                self.await_actor(step, &begotten)?;
            }
            _ => done.extend(self.call(step)?),
        }
        done.extend(self.settle()?);
        Ok(done)
    }

    fn tell(&mut self, step: &Step) {
        let (mut kernel, mut sovia) = (step.words.join(" "), step.words.join(" "));
        if step.verb() == "connect"
            && let Some((of_kernel, of_sovia)) = self.ports.get(step.word(2))
        {
            kernel = format!("connect {} {of_kernel}", step.word(1));
            sovia = format!("connect {} {of_sovia}", step.word(1));
        }
        self.kernel.tell(&step.actor, &kernel);
        self.sovia.tell(&step.actor, &sovia);
    }

    fn await_end(&mut self, step: &Step) -> Result<(), Stop> {
        let exits = step.kind() != Kind::Becomes;
        self.kernel.await_end(&step.actor, exits)?;
        let ended = self.sovia.await_end(&step.actor, exits);
        ended.map_err(|error| differs(step, "it ends", &error.to_string()))
    }

    fn await_actor(&mut self, step: &Step, actor: &str) -> Result<(), Stop> {
        self.kernel.await_hello(actor, PATIENCE)?;
        let came = self.sovia.await_hello(actor, PATIENCE);
        came.map_err(|error| differs(step, "it begins", &error.to_string()))
    }

    /// Makes a call; its outcome, if it has ended.
    fn call(&mut self, step: &Step) -> Result<Option<Done>, Stop> {
        self.tell(step);
        match self.kernel.hear(&step.actor, BLOCKS)? {
            Heard::Answer(kernel) => Ok(Some(self.ended(step, kernel)?)),
            Heard::End => Err(io::Error::other(format!("{step}: ended natively")).into()),
            Heard::Nothing => {
                self.pending.insert(step.actor.clone(), step.clone());
                Ok(None)
            }
        }
    }

    /// The kernel's world has answered.
    fn ended(&mut self, step: &Step, kernel: String) -> Result<Done, Stop> {
        let mut heard = self.sovia.hear(&step.actor, SLOW)?;
        let end = Instant::now() + HANGS;
        while heard == Heard::Nothing && Instant::now() < end {
            // What goes back to TCP waits until the peer makes a call (docs/limitations.md).
            nudge(&mut self.kernel, step, self.past)?;
            nudge(&mut self.sovia, step, self.past)?;
            heard = self.sovia.hear(&step.actor, BLOCKS)?;
            self.late += usize::from(heard != Heard::Nothing);
        }
        let sovia = match heard {
            Heard::Answer(sovia) => sovia,
            Heard::End => return Err(differs(step, &kernel, "its process ended")),
            Heard::Nothing => return Err(self.unless_known(step, &kernel, "hangs")),
        };
        if step.kind() == Kind::Listens {
            let label = format!("{}.{}", step.actor, step.word(1));
            let port = |answer: &str| answer.trim_start_matches("port ").to_owned();
            self.ports.insert(label, (port(&kernel), port(&sovia)));
            return Ok(Done {
                step: step.clone(),
                answer: "port".to_owned(),
            });
        }
        self.compare(step, kernel, sovia)
    }

    fn unless_known(&mut self, step: &Step, kernel: &str, sovia: &str) -> Stop {
        let past = self.past.among(&self.sovia, &step.actor);
        match tolerated::reason(step, kernel, sovia, past) {
            Some(reason) => {
                *self.tolerated.entry(reason).or_default() += 1;
                Stop::Tolerated(reason)
            }
            None => differs(step, kernel, sovia),
        }
    }

    fn compare(&mut self, step: &Step, kernel: String, sovia: String) -> Result<Done, Stop> {
        let mut compared = Comparison {
            past: self.past.among(&self.sovia, &step.actor),
            step,
            kernel: &mut self.kernel,
            sovia: &mut self.sovia,
        };
        let outcome = compared.outcome(kernel, sovia)?;
        self.late += usize::from(outcome.is_late);
        if let Some(reason) = outcome.tolerated {
            *self.tolerated.entry(reason).or_default() += 1;
            if outcome.kernel != outcome.sovia {
                return Err(Stop::Tolerated(reason));
            }
        }
        if outcome.kernel == outcome.sovia {
            Ok(Done {
                step: step.clone(),
                answer: outcome.kernel,
            })
        } else {
            Err(differs(step, &outcome.kernel, &outcome.sovia))
        }
    }

    /// Whoever was blocked, and is no more, is so in both worlds.
    fn settle(&mut self) -> Result<Vec<Done>, Stop> {
        let mut done = Vec::new();
        for actor in self.kernel.busy() {
            let Some(step) = self.pending.get(&actor).cloned() else {
                continue;
            };
            match self.kernel.hear(&actor, WAKES)? {
                Heard::Answer(kernel) => {
                    self.pending.remove(&actor);
                    done.push(self.ended(&step, kernel)?);
                }
                Heard::End => {
                    self.pending.remove(&actor);
                }
                Heard::Nothing => match self.sovia.hear(&actor, Duration::ZERO)? {
                    Heard::Nothing => {}
                    Heard::End => return Err(differs(&step, "waits", "its process ended")),
                    Heard::Answer(sovia) => match self.kernel.hear(&actor, HANGS)? {
                        Heard::Answer(kernel) => {
                            self.pending.remove(&actor);
                            done.push(self.compare(&step, kernel, sovia)?);
                        }
                        _ => return Err(self.unless_known(&step, "waits", &sovia)),
                    },
                },
            }
        }
        Ok(done)
    }
}

impl Done {
    fn silent(step: &Step) -> Self {
        Self {
            step: step.clone(),
            answer: String::new(),
        }
    }
}

impl Difference {
    /// What it is about, without the numbers: by this a session that is cut down stays the same.
    pub fn class(&self) -> (String, String, String) {
        let call = match self.step.verb() {
            "send" => self.step.word(5),
            "recv" => self.step.word(3),
            verb => verb,
        };
        (call.to_owned(), class(&self.kernel), class(&self.sovia))
    }
}

fn class(answer: &str) -> String {
    let mut words = answer.split(' ');
    match (words.next(), words.next()) {
        (Some("-1"), Some(name)) => name.to_owned(),
        (Some(number), _) if number.parse::<u64>().is_ok_and(|number| number > 0) => {
            "some".to_owned()
        }
        (Some(word), _) => word.to_owned(),
        (None, _) => String::new(),
    }
}

fn differs(step: &Step, kernel: &str, sovia: &str) -> Stop {
    Stop::Difference(Box::new(Difference {
        step: step.clone(),
        kernel: kernel.to_owned(),
        sovia: sovia.to_owned(),
    }))
}

/// What takes longer blocks, as far as the kernel's world goes.
const BLOCKS: Duration = Duration::from_millis(20);
/// After a step whoever it wakes is awake by then.
const WAKES: Duration = Duration::from_millis(4);
/// What takes longer under sovia may wait for others.
const SLOW: Duration = Duration::from_millis(200);
/// What takes longer where the other world has answered does not end.
pub(crate) const HANGS: Duration = Duration::from_secs(4);
