//! Known differences, each as narrow as it can be told.

use crate::step::{Kind, Step};
use crate::world::World;

/// What there has been in a session on which it depends whether a difference is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Past {
    /// An actor was killed, or ended without a close: it says nothing in memory.
    has_died: bool,
    /// An end of a connection has gone, or takes nothing any more.
    has_gone: bool,
    /// How often a connection was passed on.
    passed: u32,
    /// A receive may wait for more than is there, and the kernel has it take that meanwhile.
    waits_for_more: bool,
    /// Urgent data was sent.
    has_urgent: bool,
    /// A connection may go back to TCP, for which its peer has to make a call.
    goes_back: bool,
    /// A set has an edge-triggered member.
    has_edges: bool,
    /// There are processes that came from others.
    begot: bool,
    /// Somebody else waits in a call, and makes no other.
    others_wait: bool,
}

impl Past {
    /// The same at a step of `actor`, in a world.
    pub(crate) fn among(self, world: &World, actor: &str) -> Self {
        Self {
            others_wait: world.busy().iter().any(|other| other != actor),
            ..self
        }
    }

    pub(crate) fn goes_back(self) -> bool {
        self.goes_back
    }

    pub(crate) fn has_passed(self) -> bool {
        self.passed > 0
    }

    pub(crate) fn note(&mut self, step: &Step) {
        self.has_died |= matches!(step.verb(), "kill" | "exit" | "_exit");
        self.goes_back |= matches!(step.verb(), "pass" | "exec" | "spawn");
        self.has_edges |= step.verb() == "epctl" && step.word(4).len() == 8 && step.word(4) >= "8";
        self.begot |= step.kind() == Kind::Begets;
        self.passed += u32::from(step.verb() == "pass");
        self.waits_for_more |= step.verb() == "set" && step.word(2) == "lowat";
        self.has_urgent |= step.verb() == "send" && step.word(6).contains('o');
        let shuts = step.verb() == "shut" && step.word(2) != "1";
        self.has_gone |=
            shuts || matches!(step.verb(), "kill" | "exit" | "_exit" | "close" | "dup2");
    }
}

/// Why a difference at `step` is none to report, if it is so. The worlds are no longer the same after it.
pub(crate) fn reason(step: &Step, kernel: &str, sovia: &str, past: Past) -> Option<&'static str> {
    let sends = step.verb() == "send";
    let count = |answer: &str| {
        answer
            .split(' ')
            .next()
            .and_then(|word| word.parse::<i64>().ok())
    };
    let error = |answer: &str| {
        answer
            .split(' ')
            .nth(1)
            .filter(|_| answer.starts_with("-1 "))
            .map(str::to_owned)
    };
    let (of_kernel, of_sovia) = (error(kernel), error(sovia));
    let is_of_broken = |error: &Option<String>| {
        matches!(error.as_deref(), Some("EPIPE" | "ECONNRESET" | "ENOTCONN"))
    };
    let waits = matches!(step.verb(), "poll" | "ppoll" | "select" | "epwait");
    let is_cut_off = is_of_broken(&of_sovia) || waits && tells(sovia, POLLERR | POLLHUP);
    if past.passed > 0 && is_cut_off {
        return Some(
            "bytes that nobody can put on TCP any more, after a pass, make a reset (docs/limitations.md)",
        );
    }
    let is_receive = step.kind() == Kind::Receives;
    if step.verb() == "pass" && past.passed > 0 && sovia == "hangs" {
        return Some(
            "the other end has to make a call where bytes from before the ring are unread (docs/limitations.md)",
        );
    }
    if past.waits_for_more
        && past.begot
        && (kernel == "waits"
            || step.words.iter().any(|word| word == "lowat")
            || waits && tells_less(sovia, kernel, POLLIN))
    {
        return Some("SO_RCVLOWAT that another process sets goes unnoticed");
    }
    if past.has_edges && waits && tells(sovia, POLLIN) && is_part(kernel, sovia) {
        return Some(
            "an edge is told a second time as its connection leaves TCP (docs/limitations.md)",
        );
    }
    if past.begot
        && past.has_gone
        && step.verb() == "epwait"
        && events(kernel).count() > events(sovia).count()
    {
        return Some(
            "a member is gone once its descriptor is closed, though another process has it",
        );
    }
    if past.passed > 0 && past.others_wait && step.kind() != Kind::Calls && of_kernel.is_none() {
        return Some(
            "what goes back to TCP comes once the peer, who waits elsewhere, makes a call (docs/limitations.md)",
        );
    }
    if past.waits_for_more
        && is_receive
        && of_kernel.as_deref() == Some("EAGAIN")
        && of_sovia.is_none()
    {
        return Some("a receive that waits for more leaves there what the kernel has it take");
    }
    if past.waits_for_more && is_receive && step.word(3) == "splice" && sovia == "hangs" {
        return Some("splice waits for what SO_RCVLOWAT says, which the kernel's does not heed");
    }
    if past.has_urgent && is_receive && step.word(3) == "splice" && sovia == "hangs" {
        return Some("splice waits at an urgent byte, where the kernel's ends");
    }
    if sends && is_of_broken(&of_kernel) && is_of_broken(&of_sovia) {
        return Some("a send on a broken connection fails with another error");
    }
    if sends && step.word(4) == "0" && is_of_broken(&of_kernel) && sovia == "0" {
        return Some("a send of no bytes succeeds on a broken connection");
    }
    if sends && is_of_broken(&of_kernel) && count(sovia) > Some(0) {
        return Some(if past.has_died {
            "sends succeed after the peer has died (docs/limitations.md)"
        } else {
            "a send succeeds where the kernel has been told of a reset"
        });
    }
    if sends && past.has_gone && of_kernel.is_none() && is_of_broken(&of_sovia) {
        return Some("a send fails at once where the kernel finds out with the next");
    }
    if past.has_died && waits && tells_less(kernel, sovia, POLLERR | POLLHUP | POLLRDHUP) {
        return Some("what memory shows is told without asking whether the peer has died");
    }
    if past.has_died
        && is_receive
        && kernel.starts_with("0 ")
        && of_sovia.as_deref() == Some("ECONNRESET")
    {
        return Some("what is sent after the peer has died looks as if it had been there unread");
    }
    if is_receive && is_of_broken(&of_kernel) && is_of_broken(&of_sovia) {
        return Some("a receive on a broken connection fails with another error");
    }
    if step.verb() == "peer" && (kernel, sovia) == ("-1 ENOTCONN", "0") {
        return Some("getpeername succeeds on a connection that is over");
    }
    if step.verb() == "shut" && (kernel, sovia) == ("-1 ENOTCONN", "0") {
        return Some("shutdown succeeds on a connection that was reset");
    }
    let is_patient = match step.verb() {
        "epwait" => step.word(2) == "-1",
        _ => step.word(1) == "-1",
    };
    if waits && is_patient && tells(sovia, u32::MAX) && is_part(sovia, kernel) {
        return Some("a wait leaves out others that are ready, too (docs/limitations.md)");
    }
    if step.word(3) == "recvmmsg" && is_of_broken(&of_kernel) && of_sovia.is_none() {
        return Some("recvmmsg gives bytes before it tells a pending error");
    }
    if sends
        && (step.word(5) == "splice" || step.word(5) == "sendfile" && past.has_gone)
        && count(kernel) > count(sovia)
        && count(sovia) == Some(16384)
    {
        return Some("splice sends no more than 16 kB at once, and sendfile where it ends so");
    }
    None
}

/// Whether an answer of `poll` or `select` tells some of the events of another, and nothing else.
fn is_part(some: &str, all: &str) -> bool {
    let all = told(all);
    told(some).iter().all(|(of, some)| {
        *some == 0
            || all
                .iter()
                .any(|(other, all)| of == other && some & !all == 0)
    })
}

/// Whether an answer of `poll` or `epoll_wait` tells some of `bits`.
fn tells(answer: &str, bits: u32) -> bool {
    events(answer).any(|events| events & bits != 0)
}

/// The events alone.
fn events(answer: &str) -> impl Iterator<Item = u32> {
    told(answer).into_iter().map(|(_, events)| events)
}

/// The events in an answer of `poll`, `select` or `epoll_wait`, and of whom: by place, or by the set's data.
fn told(answer: &str) -> Vec<(u32, u32)> {
    let words = answer.split(' ').skip(1).zip(0..);
    let told = words.filter_map(|(word, place)| match word.split_once(':') {
        Some((data, events)) => Some((data.parse().ok()?, u32::from_str_radix(events, 16).ok()?)),
        None => Some((place, u32::from_str_radix(word, 16).ok()?)),
    });
    told.collect()
}

/// Whether the only difference of two answers is that one leaves out some of `bits`.
fn tells_less(all: &str, some: &str, bits: u32) -> bool {
    let (mut all, mut some) = (events(all), events(some));
    loop {
        match (all.next(), some.next()) {
            (Some(all), Some(some)) if all & !bits == some & !bits && some & !all == 0 => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

const POLLIN: u32 = 0x1;
const POLLERR: u32 = 0x8;
const POLLHUP: u32 = 0x10;
const POLLRDHUP: u32 = 0x2000;
/// POSIX lets a receive return less than there is.
pub(crate) const SHORT: &str = "bytes came in more pieces than natively";
/// As [`SHORT`].
pub(crate) const LONG_PEEK: &str = "MSG_PEEK showed more than natively";
