//! One TCP connection of the program, with all its descriptors in this process.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use sys::fork::OwnFd;
use sys::holders::Fork;
use sys::kin::Kin;
use sys::ledger::Record;
use sys::lock::Lock;
use sys::stream::{Stream, Watch};
use sys::sync::mapped::AtomicU64;
use sys::sync::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use sys::turn::Turns;
use sys::wait::Spinner;

pub(crate) use self::asleep::{Counted, Sleepers};
pub use self::native::Native;
use self::native::UnderWay;
pub use self::option::low_water_is_used;
pub(crate) use self::pace::{Ask, Awaited, Exchanged};
use self::schedule::Schedule;
use self::standstill::Standstill;
use crate::flow::Flow;
use crate::kernel::Tcp;
use crate::lifetimes;
use crate::meet::Meeting;
use crate::reason::Reason;
use crate::states::connection::Event;
use crate::table;

mod ahead;
mod asleep;
mod identity;
mod life;
mod lifetime;
mod native;
mod option;
mod pace;
mod schedule;
mod settings;
mod standstill;
mod steps;
mod upgrade;

/// A connection. They live in [`crate::table`], and are used again after [`Conn::close`].
#[derive(Debug)]
// What each call reads comes first, in one line of the processor's.
#[repr(C, align(128))]
pub struct Conn {
    path: AtomicU32,
    /// [`NONBLOCKING`], [`GUESSED`].
    waits: AtomicU32,
    /// Which of several connections, one after the other, this is.
    generation: AtomicU32,
    /// What may be waited for less than a byte of: `SO_RCVLOWAT`.
    pub(crate) low_water: AtomicU32,
    /// See [`Conn::keeps_up`].
    streak: AtomicU32,
    /// See [`Conn::awaits_emptying`].
    emptied: AtomicU32,
    /// What `sovia stat` shows, counts among it.
    record: &'static Record,
    /// What the next look at the rings reads, for [`Conn::foresee_elsewhere`].
    watched: AtomicUsize,
    opener: AtomicBool,
    /// Whether the last descriptor is closed while threads sleep in calls on it.
    closing: AtomicBool,
    /// `O_ASYNC`.
    signals: AtomicBool,
    /// Whether the program sent on TCP since it last received.
    answered: AtomicBool,
    /// Whether each message says how much is left, `TCP_INQ`: 0 if nobody has asked the kernel, else [`SAYS_NOT`] or [`SAYS`].
    left: AtomicU32,
    /// The rings, once both ends have them.
    pub(crate) flow: Turns<Flow>,
    meeting: Lock<Option<Meeting>>,
    // What a connection begins and ends with, and no more than that in these lines: a short one has hardly any other cost, for between two
    // calls the kernel has used the cache.
    schedule: Schedule,
    /// How many descriptors there are.
    refs: AtomicU32,
    /// Calls under way that give the program's buffers to the kernel.
    native_in: UnderWay,
    native_out: UnderWay,
    reason: AtomicU32,
    origin: AtomicU32,
    /// Whether `connect` has begun it, and not yet said that it is there.
    connecting: AtomicBool,
    forked: AtomicBool,
    /// Whether the other end is known to come again, having missed this one.
    comes_again: AtomicBool,
    /// The first fork of the process that had it alone, if that was seen: ticks are 0 otherwise.
    fork_pid: AtomicU32,
    fork_ticks: AtomicU64,
    /// The processes that have it since, while all of them are known.
    pub(crate) kin: Kin,
    /// Where [`share`](crate::share) is with it, in the middle of a fork.
    pub(crate) at_fork: AtomicU32,
    /// The process that counts a program which it is starting, or will be, as a holder; 0 if none does.
    pub(crate) lent: AtomicU32,
    /// How often others were found to have the socket too, or the ends missed each other.
    pub(crate) looks: AtomicU32,
    /// The kernel's, 0 if it told none, or was not [asked](Conn::note_socket).
    cookie: AtomicU64,
    /// Threads asleep until there is room to send.
    pub(crate) room_sleepers: Sleepers,
    /// Turns that were taken among processes.
    pub(crate) entered: AtomicU32,
    turnarounds: AtomicU32,
    /// Threads asleep until something can be received.
    pub(crate) sleepers: Sleepers,
    /// Threads asleep in `poll` until something can be received.
    pub(crate) pollers: Sleepers,
    last: AtomicU32,
    /// After how many of those, or after how many bytes, it is to be upgraded; 0 if the rules are to be asked first.
    enough: AtomicU32,
    many: AtomicU64,
    /// Of which connections it is one, for [`lifetimes`].
    kind: AtomicU32,
    /// The bytes of the longest rings that it may have.
    longest: AtomicUsize,
    fruitless: AtomicU32,
    /// When the kernel was last asked whether the connection goes on; 0 if never.
    asked_ms: AtomicU32,
    /// What the user's [rules](crate::rules) say, once they were asked.
    pub(crate) rule: AtomicU32,
    /// See [`Conn::trickles`].
    trickle: AtomicU32,
    /// When somebody slept on it with pages to give back, for [`leftover`](crate::leftover); 0 if there are none.
    pub(crate) idle_since: AtomicU32,
    /// What it had sent by then.
    pub(crate) idle_tail: AtomicU64,
    standstill: Standstill,
    /// The connection's descriptor for those who sleep while another thread closes the program's.
    kept: Lock<Option<Arc<OwnFd>>>,
    /// How to wait for memory, and for the kernel.
    pub(crate) memory: Spinner,
    pub(crate) socket: Spinner,
    /// How to let small messages come together in the kernel.
    pub(crate) gather: Spinner,
}

/// How this process came by a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// By `connect`.
    Connected,
    /// By `accept`.
    Accepted,
    /// It was there before we were, or came by ways that we did not see: others may have it too.
    Inherited,
}

/// Where the bytes of a connection go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Over TCP, so far.
    Young,
    /// Over TCP, while the ends look for each other.
    Meeting,
    /// As [`Flow`] says.
    Mapped,
    /// Over TCP, for good.
    Tcp(Reason),
}

/// A direction of the program's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Sent.
    Out,
    /// Received.
    In,
}

impl Conn {
    /// Where the bytes go.
    pub fn path(&self) -> Path {
        match self.path.load(Ordering::Acquire) {
            YOUNG => Path::Young,
            MEETING => Path::Meeting,
            MAPPED if self.reason.load(Ordering::Relaxed) == 0 => Path::Mapped,
            // With rings or without.
            _ => Path::Tcp(Reason::from_number(
                self.reason.load(Ordering::Relaxed) as u16
            )),
        }
    }

    /// Whether there are rings.
    #[inline]
    pub fn is_mapped(&self) -> bool {
        // Sequentially consistent with who takes the step, and then looks who has the connection: either he finds that, or this finds the rings.
        self.path.load(Ordering::SeqCst) == MAPPED
    }

    /// Whether there are no rings, nor will be unless much more is exchanged.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.path.load(Ordering::Acquire), YOUNG | TCP)
    }

    /// Whether it may have rings after one of the next calls.
    #[inline]
    pub fn may_meet(&self) -> bool {
        matches!(self.path.load(Ordering::Acquire), YOUNG | MEETING)
    }

    /// Whether the ends are looking for each other.
    pub(crate) fn is_meeting(&self) -> bool {
        self.path.load(Ordering::Acquire) == MEETING
    }

    /// Goes on with the rings that the program before this one had.
    pub(crate) fn resume(&self, opener: bool, stream: Stream) {
        self.opener.store(opener, Ordering::Relaxed);
        let bytes = stream.low_water().load(Ordering::Relaxed).max(1);
        if self.install(Flow::resume(stream, &self.record.bells)) {
            self.low_water.store(bytes, Ordering::Relaxed);
            self.go(Event::Resume, None);
        }
    }

    fn install(&self, flow: Flow) -> bool {
        self.watched
            .store(flow.stream().rx().watched(), Ordering::Relaxed);
        self.flow.replace(Some(flow)).is_ok()
    }

    /// Whether that watches what this end receives by now.
    #[inline]
    pub(crate) fn is_watched_by(&self, watch: &Watch) -> bool {
        watch.is_of(self.watched.load(Ordering::Relaxed))
    }

    /// Does without the rings of a connection that is back on TCP.
    pub(crate) fn drop_rings(&self) {
        self.go(Event::Drop, None);
        self.forget_rings();
    }

    fn forget_rings(&self) {
        if let Ok(Some(flow)) = self.flow.replace(None) {
            flow.stream().holders().leave();
        }
    }

    /// Changes with each connection that has this place.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    /// How this process came by it.
    pub fn is_inherited(&self) -> bool {
        self.origin.load(Ordering::Relaxed) == Origin::Inherited as u32
    }

    /// Whether calls on it do not wait.
    #[inline]
    pub fn is_nonblocking(&self) -> bool {
        self.waits.load(Ordering::Relaxed) & NONBLOCKING != 0
    }

    /// Whether the program waits for signals: `O_ASYNC`.
    #[inline]
    pub fn signals(&self) -> bool {
        self.signals.load(Ordering::Relaxed)
    }

    /// Notes `O_ASYNC`.
    pub fn set_signals(&self, on: bool) {
        self.signals.store(on, Ordering::Relaxed);
    }

    /// Whether each message is to say how much is left (`TCP_INQ`).
    #[inline]
    pub fn says_what_is_left(&self, fd: BorrowedFd<'_>) -> bool {
        match self.left.load(Ordering::Relaxed) {
            SAYS_NOT => false,
            known => self.says(fd, known),
        }
    }

    #[cold]
    fn says(&self, fd: BorrowedFd<'_>, known: u32) -> bool {
        let says = known == SAYS || sys::socket::says_what_is_left(fd);
        self.left
            .store(if says { SAYS } else { SAYS_NOT }, Ordering::Relaxed);
        says
    }

    /// The program has set `TCP_INQ`, or may have.
    pub fn forget_what_it_says(&self) {
        self.left.store(0, Ordering::Relaxed);
    }

    /// Notes that another process has the connection too, or may, since it was young.
    pub fn set_forked(&self) {
        self.kin.forget();
        self.forked.store(true, Ordering::Relaxed);
    }

    /// As [`Conn::set_forked`], where this is known of the fork by which.
    pub(crate) fn set_forked_since(&self, fork: Fork) {
        self.fork_pid
            .store(fork.pid.cast_unsigned(), Ordering::Relaxed);
        self.fork_ticks.store(fork.ticks, Ordering::Relaxed);
        self.set_forked();
    }

    /// Notes the fork by which another process will have it, and counts that process if it counts those before.
    pub(crate) fn note_fork(&self, fork: Fork) {
        let is_young = matches!(self.path(), Path::Young | Path::Meeting);
        if !self.may_be_shared() {
            self.set_forked_since(fork);
            if is_young && !self.may_have_unseen_duplicates() {
                self.kin.begin();
            }
        }
        self.forked.store(true, Ordering::Relaxed);
        lifetimes::share();
        if is_young {
            self.kin.add();
        }
    }

    /// Whether this process may have it by numbers that it does not know of: duplicates from before it was connected.
    fn may_have_unseen_duplicates(&self) -> bool {
        self.origin.load(Ordering::Relaxed) == Origin::Connected as u32 && table::has_duplicates()
    }

    /// The fork before which one process had it alone, if that was seen.
    pub(crate) fn fork(&self) -> Option<Fork> {
        let ticks = self.fork_ticks.load(Ordering::Relaxed);
        let pid = self.fork_pid.load(Ordering::Relaxed).cast_signed();
        (ticks != 0).then_some(Fork { pid, ticks })
    }

    /// Whether another process may have the socket, for all that this one knows.
    pub(crate) fn may_be_shared(&self) -> bool {
        self.forked.load(Ordering::Relaxed) || self.is_inherited()
    }

    /// It has not.
    pub(crate) fn set_alone(&self) {
        self.fork_ticks.store(0, Ordering::Relaxed);
        self.kin.forget();
        self.forked.store(false, Ordering::Relaxed);
        self.origin
            .compare_exchange(
                Origin::Inherited as u32,
                Origin::Accepted as u32,
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .ok();
    }

    /// The TCP connection beneath.
    #[inline]
    pub(crate) fn tcp<'a>(&self, fd: BorrowedFd<'a>) -> Tcp<'a> {
        Tcp {
            fd,
            opener: self.opener.load(Ordering::Relaxed),
        }
    }

    /// What `sovia stat` shows.
    pub(crate) fn record(&self) -> &'static Record {
        self.record
    }

    /// Whether a call that does not wait is the kernel's alone.
    #[inline]
    pub(crate) fn rest(&self, way: Way) -> Option<Rest<'_>> {
        if !self.is_nonblocking() {
            return None;
        }
        match self.path.load(Ordering::Acquire) {
            TCP => Some(Rest::ForGood),
            MEETING if self.schedule.rests() => self.native(way).map(Rest::InMeeting),
            _ => None,
        }
    }

    /// Whether all calls on it are the kernel's alone, as they do not wait and it stays on TCP.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.is_on_tcp() && self.is_nonblocking()
    }

    /// Whether all that is exchanged is the kernel's, at this moment.
    #[inline]
    pub(crate) fn has_no_rings(&self) -> bool {
        matches!(self.path.load(Ordering::Acquire), YOUNG | MEETING | TCP)
    }

    /// Whether it stays on TCP.
    #[inline]
    pub(crate) fn is_on_tcp(&self) -> bool {
        self.path.load(Ordering::Acquire) == TCP
    }

    /// Whether this end called `connect`.
    pub(crate) fn is_opener(&self) -> bool {
        self.opener.load(Ordering::Relaxed)
    }

    /// Whether no thread of this process sleeps in a call on the connection itself.
    pub(crate) fn nobody_sleeps(&self) -> bool {
        !self.sleepers.others() && !self.room_sleepers.others()
    }
}

/// Why a call is the kernel's alone.
#[derive(Debug)]
pub(crate) enum Rest<'a> {
    /// The connection stays on TCP.
    ForGood,
    /// The next look at the meeting is far away; another thread may take it.
    InMeeting(Native<'a>),
}

/// In `Conn::waits`: `O_NONBLOCK`.
const NONBLOCKING: u32 = 1;
/// So it seems: the kernel is asked before the connection leaves TCP.
const GUESSED: u32 = 2;

const SAYS_NOT: u32 = 1;
const SAYS: u32 = 2;

const YOUNG: u32 = 0;
const MEETING: u32 = 1;
const MAPPED: u32 = 2;
const TCP: u32 = 3;
const CLOSED: u32 = 4;

// Who sends or receives finds its words, the turns and what is there in three lines, one after the other.
#[cfg(not(loom))]
const _: () = assert!(std::mem::offset_of!(Conn, flow) == 48);
// Who sleeps on one of thousands asks for both kinds of others, in one line.
#[cfg(not(loom))]
const _: () = {
    let end = std::mem::offset_of!(Conn, pollers) + size_of::<Sleepers>() - 1;
    assert!(std::mem::offset_of!(Conn, sleepers) / 64 == end / 64);
};

#[cfg(all(test, not(loom)))]
mod tests;
