//! A step of a session, and how it is written.

use std::fmt;
use std::str::FromStr;

/// One command for one actor, written `A: send 3 17 0 100 write -`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Who does it.
    pub actor: String,
    /// What: the words of `actor/*.c`.
    pub words: Vec<String>,
}

impl Step {
    /// `words` are separated by spaces.
    pub fn new(actor: &str, words: &str) -> Self {
        Self {
            actor: actor.to_owned(),
            words: words.split_whitespace().map(str::to_owned).collect(),
        }
    }

    /// The first word.
    pub fn verb(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// The word at `index`, the verb being the first; empty if there are not so many.
    pub fn word(&self, index: usize) -> &str {
        self.words.get(index).map_or("", String::as_str)
    }

    /// What the step does, as far as the controller has a part in it.
    pub fn kind(&self) -> Kind {
        match self.verb() {
            "listen" => Kind::Listens,
            "fork" | "spawn" => Kind::Begets,
            "exec" => Kind::Becomes,
            "exit" | "_exit" => Kind::Ends,
            "kill" => Kind::IsKilled,
            "poll" | "ppoll" | "select" if self.word(1) == "0" => Kind::Asks,
            "fionread" | "atmark" => Kind::Asks,
            "epwait" if self.word(2) == "0" => Kind::Collects,
            "recv" => Kind::Receives,
            _ => Kind::Calls,
        }
    }
}

/// See [`Step::kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Makes a listener, whose port later steps name by where it is: `A.2`.
    Listens,
    /// Another actor comes of it.
    Begets,
    /// The actor begins anew.
    Becomes,
    /// The actor ends.
    Ends,
    /// The controller kills the actor.
    IsKilled,
    /// A question that may be asked again.
    Asks,
    /// A question whose answers may come in parts, each once.
    Collects,
    /// May be tried again where it found nothing.
    Receives,
    /// Any other call.
    Calls,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.actor, self.words.join(" "))
    }
}

/// A line that is no step.
#[derive(Debug, thiserror::Error)]
#[error("no step, which is written `ACTOR: WORD ...`: {0}")]
pub struct NoStep(String);

impl FromStr for Step {
    type Err = NoStep;

    fn from_str(line: &str) -> Result<Self, NoStep> {
        match line.split_once(": ") {
            Some((actor, words)) if !actor.contains(' ') && !words.trim().is_empty() => {
                Ok(Self::new(actor, words))
            }
            _ => Err(NoStep(line.to_owned())),
        }
    }
}
