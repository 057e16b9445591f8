//! Chooses steps at random, such as mean something with what there is.

use fastrand::Rng;

use crate::actor::Pace;
use crate::model::{Held, Model};
use crate::step::Step;

use self::pool::What::{self, *};
use self::pool::{ALL, ALWAYS};

mod pool;

/// Chooses for one session. Each session leaves out some kinds of steps, so that others come more often and together.
pub struct Chooser {
    random: Rng,
    weights: Vec<(What, u32)>,
    begotten: usize,
}

impl Chooser {
    /// For the session that `seed` names.
    pub fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let mut weights = Vec::new();
        for (index, entry) in ALL.into_iter().enumerate() {
            if index < ALWAYS || random.u32(..3) > 0 {
                weights.push(entry);
            }
        }
        Self {
            random,
            weights,
            begotten: 0,
        }
    }

    /// The steps with which each session begins: A connects to B.
    pub fn beginning(&mut self, pace: Pace) -> Vec<Step> {
        let mut steps = vec![
            Step::new("B", "listen 0"),
            Step::new("A", "connect 1 B.0"),
            Step::new("B", "accept 1 0"),
        ];
        if pace == Pace::Usual {
            steps.push(Step::new("A", "warm 1 client"));
            steps.push(Step::new("B", "warm 1 server"));
        }
        steps
    }

    /// What to do next, of one of `idle`; perhaps several steps that belong together. None if what was thought of means nothing just now.
    pub fn next(&mut self, model: &Model, idle: &[String]) -> Vec<Step> {
        if idle.is_empty() {
            return Vec::new();
        }
        let actor = idle[self.random.usize(..idle.len())].clone();
        let total: u32 = self.weights.iter().map(|(_, weight)| weight).sum();
        let mut at = self.random.u32(..total);
        let what = self.weights.iter().find(|(_, weight)| {
            let here = at < *weight;
            at = at.saturating_sub(*weight);
            here
        });
        let Some(&(what, _)) = what else {
            return Vec::new();
        };
        self.of(what, model, &actor, idle).unwrap_or_default()
    }

    fn of(&mut self, what: What, model: &Model, actor: &str, idle: &[String]) -> Option<Vec<Step>> {
        let one = |words: String| Some(vec![Step::new(actor, &words)]);
        match what {
            Send => {
                let (slot, connection, side) = self.end(model, actor)?;
                let known = model.connections.get(connection)?;
                let room = IN_FLIGHT.saturating_sub(known.waiting(1 - side));
                let count = self.pick(&[1, 1, 7, 100, 1000, 5000, 20_000]).min(room);
                let call = self.pick(&[
                    "send", "send", "write", "writev", "sendto", "sendmsg", "sendmmsg", "sendfile",
                    "splice",
                ]);
                if count == 0 && matches!(call, "sendfile" | "splice") {
                    return None;
                }
                let flags = match call {
                    "write" | "writev" | "sendfile" | "splice" => "-",
                    _ => self.pick(&["-", "-", "-", "d", "m"]),
                };
                let (key, offset) = (connection * 2 + side, *known.sent.get(side)?);
                one(format!("send {slot} {key} {offset} {count} {call} {flags}"))
            }
            Receive => {
                let (slot, connection, side) = self.end(model, actor)?;
                let known = model.connections.get(connection)?;
                let count = self.pick(&[1, 1, 10, 100, 3000, 100_000]);
                let sure = known.waiting(side) > 0 && Self::is_alone(model, actor, idle);
                let call = if sure {
                    self.pick(&[
                        "recv", "recv", "read", "readv", "recvfrom", "recvmsg", "recvmmsg",
                        "splice",
                    ])
                } else {
                    self.pick(&["recv", "recvfrom", "recvmsg", "recvmmsg"])
                };
                let flags = match call {
                    "read" | "readv" | "splice" => "-",
                    _ if sure => self.pick(&["-", "-", "d", "p", "dp", "dw", "dt"]),
                    _ => self.pick(&["d", "d", "dp", "dw"]),
                };
                one(format!("recv {slot} {count} {call} {flags}"))
            }
            Poll => {
                let call = self.pick(&["poll", "ppoll", "select"]);
                let mut words = format!("{call} 0");
                for slot in model.slots(actor, |held| held.is_some()) {
                    if self.random.u32(..4) == 0 {
                        continue;
                    }
                    match call {
                        "select" => words.push_str(&format!(" {slot}")),
                        _ => {
                            let events = self.pick(&["2047", "2047", "1", "4", "2001", "3", "0"]);
                            words.push_str(&format!(" {slot}:{events}"));
                        }
                    }
                }
                (words.len() > 9).then_some(())?;
                one(words)
            }
            Collect => {
                let set = self.set(model, actor)?;
                one(format!("epwait {set} 0"))
            }
            NewSet => {
                let set = self.free(model, actor)?;
                one(format!("epcreate {set}"))
            }
            Change => {
                let set = self.set(model, actor)?;
                let slot = self.slot(model, actor, |held| held.is_some())?;
                if slot == set {
                    return None;
                }
                let how = self.pick(&["add", "add", "add", "mod", "mod", "del"]);
                // EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLPRI; EPOLLET, EPOLLONESHOT.
                let events = self.pick(&[
                    "2001", "1", "5", "2005", "3", "80002001", "80000001", "40000001", "40002005",
                    "4", "0",
                ]);
                one(format!("epctl {set} {how} {slot} {events}"))
            }
            Connect => self.connect(model, actor, idle),
            Shut => {
                let (slot, ..) = self.end(model, actor)?;
                let how = self.pick(&[1, 1, 1, 0, 2]);
                one(format!("shut {slot} {how}"))
            }
            Close => {
                let slot = self.slot(model, actor, |held| held.is_some())?;
                one(format!("close {slot}"))
            }
            Duplicate => {
                let slot = self.slot(model, actor, |held| held.is_some())?;
                let to = self.free(model, actor)?;
                one(format!("dup {slot} {to}"))
            }
            Over => {
                let slot = self.slot(model, actor, |held| held.is_some())?;
                let to = self.slot(model, actor, |held| held.is_some())?;
                one(format!("dup2 {slot} {to}"))
            }
            Fork | Spawn => {
                if self.begotten >= BEGOTTEN {
                    return None;
                }
                self.begotten += 1;
                let name = format!("C{}", self.begotten);
                let how = if what == Fork { "fork" } else { "spawn" };
                one(format!("{how} {name}"))
            }
            Exec => one("exec".to_owned()),
            Exit => {
                let how = self.pick(&["exit", "_exit"]);
                one(how.to_owned())
            }
            Kill => one("kill".to_owned()),
            Pass => {
                let slot = self.slot(model, actor, |held| {
                    matches!(held, Some(Held::End { .. } | Held::Listener(_)))
                })?;
                let to = self.pick(idle);
                let free = self.free(model, &to)?;
                let take = Step::new(&to, &format!("take {free}"));
                Some(vec![Step::new(actor, &format!("pass {slot} {to}")), take])
            }
            Set => {
                let (slot, ..) = self.end(model, actor)?;
                let option = self.pick(&[
                    "nonblock 1",
                    "nonblock 0",
                    "lowat 1",
                    "lowat 5",
                    "lowat 500",
                    "oobinline 1",
                    "oobinline 0",
                    "nodelay 1",
                    "keepalive 1",
                    "linger 0",
                    "linger -1",
                    "linger 1",
                ]);
                one(format!("set {slot} {option}"))
            }
            Get => {
                let slot = self.slot(model, actor, |held| held.is_some())?;
                let option = self.pick(&[
                    "error",
                    "lowat",
                    "oobinline",
                    "keepalive",
                    "type",
                    "nodelay",
                    "listens",
                    "flags",
                    "cork",
                ]);
                one(format!("get {slot} {option}"))
            }
            Ask => {
                let slot = self.slot(model, actor, |held| held.is_some())?;
                let what = self.pick(&["fionread", "fionread", "atmark", "peer"]);
                one(format!("{what} {slot}"))
            }
            Urgent => {
                let (slot, connection, side) = self.end(model, actor)?;
                if self.random.bool() {
                    let known = model.connections.get(connection)?;
                    // Whether a second takes the place of the first depends on how far the kernel's own socket has been read.
                    if *known.urgent.get(side)? {
                        return None;
                    }
                    let offset = known.sent.get(side)?;
                    one(format!(
                        "send {slot} {} {offset} 1 send o",
                        100 + connection * 2 + side
                    ))
                } else {
                    one(format!("recv {slot} 1 recv do"))
                }
            }
            Block if Self::is_alone(model, actor, idle) => self.block(model, actor),
            Block => None,
        }
    }
}

/// More bytes than these are never under way: with more, how much there is room for is each side's own.
const IN_FLIGHT: usize = 24_000;
/// Actors that come later.
const BEGOTTEN: usize = 3;
