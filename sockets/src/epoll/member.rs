//! A member of a set.

use std::os::fd::{BorrowedFd, RawFd};

use sys::stream::Watch;
use sys::{epoll, socket};

use super::{EDGE, EXCLUSIVE, Event, FLAGS, ONCE, Set, places};
use crate::conn::Conn;
use crate::ready::{self, ALWAYS, ERR, Look, Marks, PRI, READ, WRITE};
use crate::table;

mod kernel;
mod nested;
mod record;

/// A member, as the program registered it, and what it was told of it.
#[derive(Debug)]
// Two lines, which the processor fetches together: of thousands each look at one waits for them.
#[repr(align(128))]
pub(super) struct Member {
    pub(super) fd: RawFd,
    pub(super) what: What,
    /// Events waited for, and flags.
    pub(super) events: u32,
    pub(super) data: u64,
    /// What the kernel was told to report, under our token; `None` where it has the program's own registration.
    pub(super) captured: Option<u32>,
    /// What the kernel said that has not been passed on.
    said: u32,
    /// The kernel has said something since it was last armed: doorbells, perhaps.
    heard: bool,
    /// A jump has left a change of the set: the kernel may have it otherwise.
    pub(super) unsure: bool,
    /// Errors and ends that the program was told of.
    told_ends: u8,
    /// A descriptor of the connection for calls; `fd` is what the kernel knows it by, and may be closed.
    pub(super) via: RawFd,
    /// Reported [`ONCE`], and not modified since.
    fired: bool,
    /// The program has deleted it. The kernel still has it, so that adding it again is one system call less: some programs do both for each message.
    pub(super) dormant: bool,
    /// Took a doorbell away that others may be waiting for.
    pub(super) rang: bool,
    /// Where it is among those that each wait looks at.
    pub(super) hot: Option<u32>,
    /// It was armed last so that what comes is noted on the set's board.
    pub(super) noted: bool,
    /// What the kernel reported of it when it was last armed so, and all that could end its rest came from its peer; else 0.
    lay_noted: u32,
    /// The number of the wait after which it was no longer among them.
    pub(super) cooled: u32,
    /// After how many sleeps it last had news, if it had any.
    told_in: u32,
    was_told: bool,
    /// Whether nothing but its peer can change what its connection shows, as far as the last look tells.
    settled: bool,
    /// As [`Look::in_memory`], as far as the last look tells.
    in_memory: bool,
    /// Whether all that comes was going to be noted on the board, as far as the last look tells.
    stands: bool,
    /// What the program knows of an edge-triggered member.
    told: Marks,
    /// What was there when somebody who watches the set last asked.
    seen: Marks,
}

const _: () = assert!(size_of::<Member>() == 128 && ALWAYS <= u8::MAX as u32);

/// What there is to tell of a member.
#[derive(Default)]
struct News {
    events: u32,
    /// Of an edge-triggered connection.
    marks: Option<Marks>,
    /// As [`Look::settled`].
    settled: bool,
    /// As [`Look::in_memory`].
    in_memory: bool,
    /// As [`ready::look_at_noted`] says.
    stands: bool,
}

/// What a descriptor is.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// A connection, the `generation`th at its place.
    Connection {
        conn: &'static Conn,
        generation: u32,
    },
    /// Another set.
    Set(&'static Set),
    /// Only the kernel knows.
    Other,
    /// Nothing: the place is free.
    Nothing,
}

/// What became of getting ready to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Armed {
    /// There is something to report.
    Awake,
    /// It is no member any more.
    Gone,
    /// One may sleep, but not for long if `nap`.
    Quiet { nap: bool },
}

impl What {
    pub(super) fn of(fd: RawFd) -> Self {
        if let Some(conn) = socket::with_borrowed(fd, table::connection).flatten() {
            return Self::Connection {
                conn,
                generation: conn.generation(),
            };
        }
        super::known(fd).map_or(Self::Other, Self::Set)
    }

    /// Whether it is to be captured.
    #[inline]
    pub(super) fn is_in_memory(&self) -> bool {
        match *self {
            Self::Connection { conn, generation } => {
                conn.is_mapped() && conn.generation() == generation
            }
            Self::Set(set) => set.is_in_memory(),
            Self::Other | Self::Nothing => false,
        }
    }
}

impl Member {
    pub(super) fn new(fd: RawFd, what: What, event: Event) -> Self {
        Self {
            fd,
            what,
            events: event.events,
            data: event.data,
            captured: None,
            said: 0,
            heard: true,
            unsure: false,
            told_ends: 0,
            via: fd,
            fired: false,
            dormant: false,
            rang: false,
            hot: None,
            noted: false,
            lay_noted: 0,
            cooled: 0,
            told_in: 0,
            was_told: false,
            settled: false,
            in_memory: false,
            stands: false,
            told: UNTOLD,
            seen: UNTOLD,
        }
    }

    /// As the program now has it.
    #[inline]
    pub(super) fn modify(&mut self, event: Event) {
        self.note_change();
        self.events = event.events;
        self.data = event.data;
        self.unsure = false;
        self.fired = false;
        self.said = 0;
        self.told = UNTOLD;
        self.told_ends = 0;
    }

    /// Whatever there is, is new to the program.
    pub(super) fn forget_told(&mut self) {
        self.told = UNTOLD;
    }

    /// As the program's `EPOLL_CTL_DEL` leaves it, without asking the kernel; false if that must be asked. What is not captured the kernel would go
    /// on reporting: it may doze only if it is [`late`](super::members::Members::put_off).
    pub(super) fn doze(&mut self, may_be_late: bool) -> bool {
        let fits = self.captured.is_some() || (may_be_late && self.events & EXCLUSIVE == 0);
        if !fits || !self.is_connection() || self.is_orphan() || !self.is_same() {
            return false;
        }
        self.dormant = true;
        self.fired = true;
        true
    }

    /// Whether it is a connection on TCP of which the kernel reports all that there is for as long as it is so, and has it registered just like that: to
    /// be told again would change nothing. `ae`, which Redis and `wrk` wait with, says so twice of each connection that it makes.
    pub(super) fn is_so_in_kernel(&self, event: Event) -> bool {
        let Event { events, data } = event;
        self.captured.is_none()
            && !self.unsure
            && (events, data) == (self.events, self.data)
            && events & FLAGS == 0
            && !self.is_orphan()
            && self.is_connection()
            && !self.what.is_in_memory()
            && self.is_same()
    }

    /// Whether it is still the connection or set that it was registered as.
    #[inline]
    pub(super) fn is_same(&self) -> bool {
        match self.what {
            What::Connection { conn, generation } => {
                conn.generation() == generation
                    && table::known(self.fd).is_some_and(|now| std::ptr::eq(now, conn))
            }
            What::Set(set) => super::known(self.fd).is_some_and(|now| std::ptr::eq(now, set)),
            What::Other | What::Nothing => false,
        }
    }

    /// Whether the kernel need report none of these events, as far as the last look tells.
    #[inline]
    pub(super) fn is_in_memory(&self, events: u32) -> bool {
        self.in_memory && events & PRI == 0
    }

    /// Whether it is a connection.
    pub(super) fn is_connection(&self) -> bool {
        matches!(self.what, What::Connection { .. })
    }

    /// Whether it is that connection.
    pub(super) fn is(&self, other: &Conn) -> bool {
        matches!(self.what, What::Connection { conn, generation }
            if std::ptr::eq(conn, other) && generation == other.generation())
    }

    /// Whether it was no connection when it was added, and may be this one by now.
    pub(super) fn may_have_become(&self, conn: &Conn) -> bool {
        matches!(self.what, What::Other)
            && table::known(self.fd).is_some_and(|now| std::ptr::eq(now, conn))
    }

    /// Whether the program has deleted it, and the kernel would report it nevertheless.
    pub(super) fn is_late(&self) -> bool {
        self.dormant && self.captured.is_none()
    }

    /// What is waited for.
    #[inline]
    pub(super) fn interest(&self) -> u32 {
        self.events & !FLAGS | ALWAYS
    }

    #[inline]
    fn is_edge(&self) -> bool {
        self.events & EDGE != 0
    }

    /// Which of its events the program is to be told now.
    #[inline]
    pub(super) fn news(&self) -> u32 {
        self.find_news().events
    }

    /// As [`Member::news`], and from now on the program knows.
    #[inline]
    pub(super) fn tell(&mut self) -> u32 {
        let News {
            events: news,
            marks,
            settled,
            in_memory,
            stands,
        } = self.find_news();
        self.said = 0;
        self.settled = settled;
        self.in_memory = in_memory;
        self.stands = stands;
        if news != 0 {
            self.told_ends |= (news & ALWAYS) as u8;
            self.fired = self.events & ONCE != 0;
            if let Some(marks) = marks {
                self.told = Marks {
                    full_at: if news & WRITE != 0 {
                        marks.full_at
                    } else {
                        self.told.full_at
                    },
                    ..marks
                };
            }
        }
        news
    }

    /// Whether it waits to be modified.
    #[inline]
    pub(super) fn is_fired(&self) -> bool {
        self.fired
    }

    #[inline]
    fn find_news(&self) -> News {
        if self.fired {
            return News::default();
        }
        match self.what {
            What::Connection { conn, generation } if conn.generation() == generation => {
                self.news_of(conn)
            }
            What::Set(set) if self.events & READ != 0 && set.is_ready(self.via) => {
                self.news_of_set(set)
            }
            _ => News::default(),
        }
    }

    #[inline]
    fn news_of(&self, conn: &Conn) -> News {
        let interest = self.interest();
        if !self.is_edge() {
            let (look, stands) = if self.noted {
                with(self.via, |fd| ready::look_at_noted(conn, fd, interest)).unwrap_or_default()
            } else {
                let look = with(self.via, |fd| ready::look(conn, fd, interest));
                (look.unwrap_or_default(), false)
            };
            return News {
                events: self.shown(look) & interest,
                marks: None,
                settled: look.settled,
                in_memory: look.in_memory,
                stands,
            };
        }
        let Some((look, marks)) = with(self.via, |fd| ready::look_closely(conn, fd, interest))
        else {
            return News::default();
        };
        let shown = self.shown(look) & interest;
        let edge = self.said & look.ask & shown & !ALWAYS != 0
            || shown & ALWAYS & !u32::from(self.told_ends) != 0
            || self.said & shown & !look.ready & ERR != 0
            || (shown & !WRITE != 0 && marks.input != self.told.input)
            || (shown & WRITE != 0 && marks.sent >= self.told.full_at);
        News {
            events: if edge { shown } else { 0 },
            marks: Some(marks),
            settled: look.settled,
            in_memory: look.in_memory,
            stands: false,
        }
    }

    #[inline]
    fn shown(&self, look: Look) -> u32 {
        let mut shown = look.ready;
        let said = if self.is_stuck() { u32::MAX } else { self.said };
        let said = said & look.ask & !look.hush & self.interest();
        if said != 0 {
            // Another thread may have heard the same, and have taken the bytes since.
            shown |= u32::from(epoll::shows(self.via, said as u16)) & said;
        }
        if (look.ask | self.said) & ALWAYS != 0 {
            // TCP has ended, for one direction or both, or has something in its error queue: rare, and soon over.
            shown |= u32::from(epoll::shows(self.via, 0)) & ALWAYS & !look.hush;
        }
        shown
    }

    /// Whether the kernel has it by a number that is closed, behind which there may be something else now: its registration cannot be changed.
    #[inline]
    pub(super) fn is_orphan(&self) -> bool {
        self.via != self.fd
    }

    /// Whether that is so, and the kernel is to tell an edge of what the program wants told for as long as it is there.
    #[inline]
    pub(super) fn is_stuck(&self) -> bool {
        self.is_orphan() && !self.is_edge() && self.captured.is_some_and(|wake| wake & EDGE != 0)
    }

    /// After how many sleeps it last had news, if it had any.
    pub(super) fn told_in(&self) -> Option<u32> {
        self.was_told.then_some(self.told_in)
    }

    /// It has news, after so many sleeps.
    pub(super) fn note_told(&mut self, sleeps: u32) {
        self.told_in = sleeps;
        self.was_told = true;
    }

    /// It ended the sleep of one who waited for it.
    pub(super) fn count_sleep(&self) {
        if let What::Connection { conn, generation } = self.what
            && conn.generation() == generation
        {
            conn.count_sleep();
        }
    }

    /// It is looked at soon.
    #[inline]
    pub(super) fn foresee(&self) {
        if let What::Connection { conn, .. } = self.what {
            conn.foresee();
        }
    }

    /// It is looked at sooner.
    #[inline]
    pub(super) fn foresee_elsewhere(&self) {
        if let What::Connection { conn, .. } = self.what {
            conn.foresee_elsewhere();
        }
    }

    /// The connection, if it can have news only when what its peer shows has changed, or a call of this process has changed something.
    #[inline]
    fn watched(&self) -> Option<&'static Conn> {
        let What::Connection { conn, generation } = self.what else {
            return None;
        };
        let settled = self.settled && self.interest() & WRITE == 0;
        (settled && conn.generation() == generation).then_some(conn)
    }

    /// Whether `now`, from the last time, still is what [`Member::watch`] says.
    #[inline]
    pub(super) fn is_watched_by(&self, now: Option<&Watch>) -> bool {
        match (self.watched(), now) {
            (Some(conn), Some(watch)) => conn.is_watched_by(watch),
            (None, None) => true,
            _ => false,
        }
    }

    /// What its peer shows, where it is enough to look at that.
    #[cold]
    pub(super) fn watch(&self) -> Option<Watch> {
        let conn = self.watched()?;
        with(self.via, |fd| ready::watch(conn, fd))
    }

    /// Its descriptor is about to be closed: whether there is another one of the connection or set, by which it lives on.
    pub(super) fn outlive(&mut self, closed: RawFd) -> bool {
        let other = match self.what {
            What::Connection { conn, generation } => {
                let mut other = None;
                table::for_each(|fd, at| {
                    if fd != closed && std::ptr::eq(at, conn) && conn.generation() == generation {
                        other = Some(fd);
                    }
                });
                other
            }
            What::Set(set) => places::numbers(set).find(|fd| *fd != closed),
            What::Other | What::Nothing => None,
        };
        self.via = other.unwrap_or(self.via);
        other.is_some()
    }

    /// Whether its connection has other descriptors, which may be in sets too.
    pub(super) fn has_duplicates(&self) -> bool {
        matches!(self.what, What::Connection { conn, .. } if !conn.has_one_descriptor())
    }
}

#[inline]
fn with<R>(fd: RawFd, act: impl FnOnce(BorrowedFd<'_>) -> Option<R>) -> Option<R> {
    socket::with_borrowed(fd, act).flatten()
}

/// Of a member of which nothing was told yet: whatever there is, is new.
const UNTOLD: Marks = Marks {
    input: u64::MAX,
    sent: 0,
    full_at: 0,
};
