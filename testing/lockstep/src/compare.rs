//! What both worlds say to one step in the end, where they do not say the same at once.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::run::HANGS;
use crate::step::{Kind, Step};
use crate::tolerated::{self, Past};
use crate::world::{Heard, World};

/// A step that has ended in both worlds.
pub(crate) struct Comparison<'a> {
    pub(crate) kernel: &'a mut World,
    pub(crate) sovia: &'a mut World,
    pub(crate) step: &'a Step,
    pub(crate) past: Past,
}

/// What both said.
pub(crate) struct Outcome {
    pub(crate) kernel: String,
    pub(crate) sovia: String,
    /// They said the same only when asked for again.
    pub(crate) is_late: bool,
    /// The known difference that there was. If both say the same now, the session may go on.
    pub(crate) tolerated: Option<&'static str>,
}

impl Comparison<'_> {
    pub(crate) fn outcome(&mut self, kernel: String, sovia: String) -> io::Result<Outcome> {
        let mut outcome = Outcome {
            kernel,
            sovia,
            is_late: false,
            tolerated: None,
        };
        if outcome.kernel == outcome.sovia {
            return Ok(outcome);
        }
        self.ask_again(&mut outcome)?;
        outcome.is_late = outcome.kernel == outcome.sovia;
        if outcome.kernel != outcome.sovia && self.step.kind() == Kind::Receives {
            self.complete(&mut outcome)?;
        }
        if outcome.kernel != outcome.sovia {
            outcome.tolerated =
                tolerated::reason(self.step, &outcome.kernel, &outcome.sovia, self.past);
        }
        Ok(outcome)
    }

    /// What a peer has to do first, or the kernel has queued, may take a moment.
    fn ask_again(&mut self, outcome: &mut Outcome) -> io::Result<()> {
        let end = Instant::now() + LATE;
        let nothing = |answer: &str| answer.ends_with("EAGAIN");
        while outcome.kernel != outcome.sovia && Instant::now() < end {
            let (ask_kernel, ask_sovia) = match self.step.kind() {
                Kind::Asks | Kind::Collects => (true, true),
                Kind::Receives => (nothing(&outcome.kernel), nothing(&outcome.sovia)),
                _ => (false, false),
            };
            if !ask_kernel && !ask_sovia {
                break;
            }
            // tidy: sleep because a world may say so later, and tells nobody when
            thread::sleep(Duration::from_millis(1));
            nudge(self.kernel, self.step, self.past)?;
            nudge(self.sovia, self.step, self.past)?;
            let words = self.step.words.join(" ");
            for (world, answer, ask) in [
                (&mut *self.kernel, &mut outcome.kernel, ask_kernel),
                (&mut *self.sovia, &mut outcome.sovia, ask_sovia),
            ] {
                if !ask {
                    continue;
                }
                let more = again(world, &self.step.actor, &words)?;
                *answer = match self.step.kind() {
                    Kind::Collects => collected(answer, &more),
                    _ => more,
                };
            }
        }
        Ok(())
    }

    /// Bytes may come in other pieces than natively, where POSIX has a call return what there is. They must be the same.
    fn complete(&mut self, outcome: &mut Outcome) -> io::Result<()> {
        let [_, slot, _, call, flags] = self.step.words.as_slice() else {
            return Ok(());
        };
        let (Some((kernel, _)), Some((sovia, _))) =
            (received(&outcome.kernel), received(&outcome.sovia))
        else {
            return Ok(());
        };
        if kernel == sovia || flags.contains('o') || flags == "w" {
            return Ok(());
        }
        let is_sovia_short = sovia < kernel;
        let actor = self.step.actor.clone();
        if flags.contains('p') {
            // Who looks until there is enough would look for ever at less.
            if !is_sovia_short {
                let words = format!("recv {slot} {kernel} {call} {flags}");
                outcome.sovia = again(self.sovia, &actor, &words)?;
                outcome.tolerated = Some(tolerated::LONG_PEEK);
            }
            return Ok(());
        }
        outcome.tolerated = Some(tolerated::SHORT);
        for _ in 0..PIECES {
            let (world, short, long) = if is_sovia_short {
                (&mut *self.sovia, &mut outcome.sovia, &outcome.kernel)
            } else {
                (&mut *self.kernel, &mut outcome.kernel, &outcome.sovia)
            };
            let (Some((have, sum)), Some((want, _))) = (received(short), received(long)) else {
                break;
            };
            if have >= want {
                break;
            }
            let how = if flags.contains('t') { "dt" } else { "d" };
            let words = format!("recv {slot} {} recv {how} {sum}", want - have);
            let more = again(world, &actor, &words)?;
            match received(&more) {
                Some((count, _)) if count > 0 => {
                    let rest = more
                        .split_once(' ')
                        .map_or(String::new(), |(_, rest)| format!(" {rest}"));
                    *short = format!("{}{rest}", have + count);
                }
                _ => {
                    // Not there, or not yet: the rest must be.
                    // tidy: sleep because a world may say so later, and tells nobody when
                    thread::sleep(Duration::from_millis(1));
                    nudge(self.kernel, self.step, self.past)?;
                    nudge(self.sovia, self.step, self.past)?;
                }
            }
        }
        Ok(())
    }
}

/// Has everybody else make a call on each connection, for which what goes back to TCP may have to wait. In both worlds, as it may take an error. Who may have
/// both ends of one, after a pass, makes it on the others of its own, too.
pub(crate) fn nudge(world: &mut World, step: &Step, past: Past) -> io::Result<()> {
    if !past.goes_back() {
        return Ok(());
    }
    for actor in world.idle() {
        if actor != step.actor {
            again(world, &actor, "nudge -1")?;
        } else if past.has_passed() {
            again(world, &actor, &format!("nudge {}", step.word(1)))?;
        }
    }
    Ok(())
}

fn again(world: &mut World, actor: &str, words: &str) -> io::Result<String> {
    world.tell(actor, words);
    // A turn among processes may be another's for as long as that goes back to TCP.
    match world.hear(actor, 3 * HANGS)? {
        Heard::Answer(answer) => Ok(answer),
        Heard::End => Ok("its process ended".to_owned()),
        Heard::Nothing => Ok("hangs".to_owned()),
    }
}

/// The number of bytes, and their sum if there is one.
fn received(answer: &str) -> Option<(usize, &str)> {
    let mut words = answer.split(' ');
    let count = words.next()?.parse().ok()?;
    Some((count, words.next().unwrap_or("")))
}

/// What two answers of `epwait` tell together: `COUNT DATA:EVENTS ...`.
fn collected(before: &str, after: &str) -> String {
    let mut events: Vec<(u32, u32)> = Vec::new();
    for pair in [before, after]
        .iter()
        .flat_map(|answer| answer.split(' ').skip(1))
    {
        let Some((data, bits)) = pair.split_once(':') else {
            return after.to_owned();
        };
        let (Ok(data), Ok(bits)) = (data.parse(), u32::from_str_radix(bits, 16)) else {
            return after.to_owned();
        };
        match events.iter_mut().find(|(of, _)| *of == data) {
            Some((_, known)) => *known |= bits,
            None => events.push((data, bits)),
        }
    }
    events.sort_unstable();
    let pairs: Vec<String> = events
        .iter()
        .map(|(data, bits)| format!(" {data}:{bits:x}"))
        .collect();
    format!("{}{}", pairs.len(), pairs.concat())
}

/// So late may come what is asked for again.
const LATE: Duration = Duration::from_millis(300);
/// In so many pieces what the other world had in one.
const PIECES: usize = 100;
