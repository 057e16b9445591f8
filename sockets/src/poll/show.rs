//! What memory shows of entries of `poll`, and what the kernel adds to it.

use std::os::fd::RawFd;

use super::survey::What;
use super::{PollFd, bits, revents, with};
use crate::epoll::Set;
use crate::ready::{self, ALWAYS, ERR, HUP, NVAL, PRI, RDHUP, READ};

pub(super) struct Shown {
    /// How many entries are ready.
    pub(super) ready: usize,
    /// Whether the kernel must be asked about one that memory knows, for more than urgent bytes.
    pub(super) ask: bool,
}

/// Sets `revents` as memory shows, and `scratch` to the questions for the kernel.
pub(super) fn show(fds: &mut [PollFd], scratch: &mut [PollFd]) -> Shown {
    let mut shown = Shown {
        ready: 0,
        ask: false,
    };
    for (entry, question) in fds.iter_mut().zip(scratch) {
        entry.revents = 0;
        *question = PollFd {
            revents: 0,
            ..*entry
        };
        let interest = bits(entry.events);
        match What::is(entry.fd) {
            What::Ring(conn) => {
                let look = with(entry.fd, |fd| ready::look(conn, fd, interest)).unwrap_or_default();
                entry.revents = revents(look.ready & (interest | ALWAYS));
                let ask = look.ask & (interest | ALWAYS);
                shown.ask |= ask & !PRI != 0;
                // An end that memory does not show yet, too: that of a peer that was killed.
                question.events = revents(ask | RDHUP);
            }
            What::Set(set) => {
                question.fd = -1;
                if interest & READ != 0 && is_ready(set, entry.fd) {
                    entry.revents = revents(interest & READ);
                }
            }
            What::Nothing | What::PlainSet(_) | What::Other => {}
        }
        shown.ready += usize::from(entry.revents != 0);
    }
    shown
}

pub(super) struct Answer {
    pub(super) ready: usize,
    /// Whether some of it only the kernel knew.
    pub(super) news: bool,
}

/// Adds what the kernel answered.
pub(super) fn answer(fds: &mut [PollFd], scratch: &[PollFd]) -> Answer {
    let mut answer = Answer {
        ready: 0,
        news: false,
    };
    for (entry, question) in fds.iter_mut().zip(scratch) {
        let interest = bits(entry.events);
        let said = bits(question.revents);
        match What::is(entry.fd) {
            What::Ring(conn) if said & NVAL == 0 => {
                let mut said = said;
                if said & (RDHUP | ALWAYS) != 0 {
                    sys::socket::with_borrowed(entry.fd, |fd| ready::note_end(conn, fd));
                    // What was an error is in memory now, or none to the program.
                    said &= !ERR;
                    said |= u32::from(sys::epoll::shows(entry.fd, 0)) & ERR;
                }
                let look = with(entry.fd, |fd| ready::look(conn, fd, interest)).unwrap_or_default();
                // Beside what memory shows: something in the error queue, and the end of a connection that is read from TCP.
                let from_tcp = look.ask & (READ | RDHUP) != 0;
                let ask = look.ask | ERR | if from_tcp { HUP } else { 0 };
                let told = look.ready | said & ask & !look.hush;
                entry.revents = revents(told & (interest | ALWAYS));
                answer.news |= said & interest & PRI != 0;
            }
            What::Set(set) => {
                let is_ready =
                    interest & READ != 0 && (entry.revents != 0 || is_ready(set, entry.fd));
                entry.revents = if is_ready {
                    revents(interest & READ)
                } else {
                    0
                };
            }
            What::Nothing => entry.revents = 0,
            What::Ring(_) | What::PlainSet(_) | What::Other => {
                entry.revents = revents(said & (interest | ALWAYS | NVAL));
                answer.news |= entry.revents != 0;
            }
        }
        answer.ready += usize::from(entry.revents != 0);
    }
    answer
}

/// Whether a wait on the set would return at once. Whose doorbells the look has taken hears of it.
fn is_ready(set: &Set, fd: RawFd) -> bool {
    let ready = set.is_ready(fd);
    set.tell_others();
    ready
}
