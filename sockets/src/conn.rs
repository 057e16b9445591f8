//! One TCP connection of the program, with all its descriptors in this process.

use std::os::fd::BorrowedFd;

use sys::ledger::{self, Record};
use sys::lock::Lock;
use sys::stream::Stream;
use sys::sync::mapped::AtomicU64;
use sys::sync::{AtomicBool, AtomicU32, Ordering};
use sys::time;
use sys::turn::Turns;
use sys::wait::{self, Limits, Monotonic, Spinner};

use crate::flow::Flow;
use crate::host::host;
use crate::kernel::Tcp;
use crate::meet::{Meeting, Step};
use crate::reason::Reason;
use crate::{handover, ready, share, stat, table};

/// A connection. They live in [`crate::table`], and are used again after [`Conn::close`].
#[derive(Debug)]
#[repr(align(128))]
pub struct Conn {
    path: AtomicU32,
    nonblocking: AtomicBool,
    /// `O_ASYNC`.
    signals: AtomicBool,
    opener: AtomicBool,
    /// Which of several connections, one after the other, this is.
    generation: AtomicU32,
    /// How many descriptors there are.
    refs: AtomicU32,
    reason: AtomicU32,
    origin: AtomicU32,
    forked: AtomicBool,
    /// Where [`share`] is with it, in the middle of a fork.
    pub(crate) at_fork: AtomicU32,
    /// Whether a program that is being started counts as a holder.
    pub(crate) lent: AtomicBool,
    /// The kernel's, 0 if it told none.
    cookie: AtomicU64,
    /// Sends since the peer was last looked at, and how far it had read then.
    unlooked: AtomicU32,
    read_then: AtomicU64,
    /// How often others were found to have the socket too.
    pub(crate) looks: AtomicU32,
    /// Turns that were taken among processes.
    pub(crate) entered: AtomicU32,
    /// Calls under way that give the program's buffers to the kernel.
    native_in: AtomicU32,
    native_out: AtomicU32,
    /// Threads asleep until something can be received.
    pub(crate) sleepers: AtomicU32,
    /// Threads asleep until there is room to send.
    pub(crate) room_sleepers: AtomicU32,
    turnarounds: AtomicU32,
    last: AtomicU32,
    fruitless: AtomicU32,
    /// What `sovia stat` shows, counts among it.
    record: &'static Record,
    /// What may be waited for less than a byte of: `SO_RCVLOWAT`.
    pub(crate) low_water: AtomicU32,
    meeting: Lock<Option<Meeting>>,
    next_step_ns: AtomicU64,
    step_interval_ns: AtomicU64,
    /// `TCP_NODELAY` as the program set it, where there are rings: doorbells need it.
    nodelay: AtomicBool,
    /// Whether the last descriptor is closed while threads sleep in calls on it.
    closing: AtomicBool,
    /// See [`Conn::keeps_up`].
    streak: AtomicU32,
    /// Whether the program sent on TCP since it last received.
    answered: AtomicBool,
    /// The rings, once both ends have them.
    pub(crate) flow: Turns<Flow>,
    /// How to wait for memory, and for the kernel.
    pub(crate) memory: Spinner,
    pub(crate) socket: Spinner,
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
    /// For the place `index`, which is also that of its record in the ledger.
    pub(crate) fn new(index: usize) -> Self {
        let cpus = wait::cpus();
        Self {
            path: AtomicU32::new(YOUNG),
            nonblocking: AtomicBool::new(false),
            signals: AtomicBool::new(false),
            opener: AtomicBool::new(false),
            generation: AtomicU32::new(0),
            refs: AtomicU32::new(0),
            reason: AtomicU32::new(0),
            origin: AtomicU32::new(0),
            forked: AtomicBool::new(false),
            at_fork: AtomicU32::new(0),
            lent: AtomicBool::new(false),
            cookie: AtomicU64::new(0),
            unlooked: AtomicU32::new(0),
            read_then: AtomicU64::new(0),
            looks: AtomicU32::new(0),
            entered: AtomicU32::new(0),
            native_in: AtomicU32::new(0),
            native_out: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            room_sleepers: AtomicU32::new(0),
            turnarounds: AtomicU32::new(0),
            last: AtomicU32::new(0),
            fruitless: AtomicU32::new(0),
            record: ledger::record(index),
            low_water: AtomicU32::new(1),
            meeting: Lock::new(None),
            next_step_ns: AtomicU64::new(0),
            step_interval_ns: AtomicU64::new(0),
            nodelay: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            streak: AtomicU32::new(0),
            answered: AtomicBool::new(false),
            flow: Turns::new(),
            memory: Spinner::with_clock(Limits::MEMORY, cpus, Monotonic),
            socket: Spinner::with_clock(Limits::SOCKET, cpus, Monotonic),
        }
    }

    /// Takes the place for a new connection, if it is free.
    pub(crate) fn claim(&self) -> bool {
        self.refs
            .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Begins as the connection behind `fd`, with one descriptor.
    pub(crate) fn open(&self, fd: BorrowedFd<'_>, origin: Origin) {
        self.generation.fetch_add(1, Ordering::Relaxed);
        let opener = match origin {
            Origin::Connected => true,
            Origin::Accepted => false,
            Origin::Inherited => sys::tcp::is_opener(fd).unwrap_or(false),
        };
        self.opener.store(opener, Ordering::Relaxed);
        self.origin.store(origin as u32, Ordering::Relaxed);
        self.forked.store(false, Ordering::Relaxed);
        self.lent.store(false, Ordering::Relaxed);
        self.nonblocking
            .store(sys::socket::is_nonblocking(fd), Ordering::Relaxed);
        self.signals.store(false, Ordering::Relaxed);
        for count in [
            &self.native_in,
            &self.native_out,
            &self.sleepers,
            &self.room_sleepers,
        ] {
            count.store(0, Ordering::Relaxed);
        }
        for count in [&self.turnarounds, &self.last, &self.fruitless] {
            count.store(0, Ordering::Relaxed);
        }
        for count in [&self.at_fork, &self.looks, &self.entered, &self.reason] {
            count.store(0, Ordering::Relaxed);
        }
        stat::begin(self.record, fd, origin);
        self.low_water.store(1, Ordering::Relaxed);
        self.set_path(YOUNG);
    }

    /// Which socket it is.
    pub(crate) fn cookie(&self) -> u64 {
        self.cookie.load(Ordering::Relaxed)
    }

    /// Says which socket it is.
    pub(crate) fn set_cookie(&self, cookie: u64) {
        self.cookie.store(cookie, Ordering::Relaxed);
    }

    /// How many descriptors it has.
    pub(crate) fn descriptors(&self) -> u32 {
        self.refs.load(Ordering::Relaxed)
    }

    /// Whether it has one and no more.
    pub fn has_one_descriptor(&self) -> bool {
        self.descriptors() == 1
    }

    /// Whether it has descriptors.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.refs.load(Ordering::Acquire), 1..CLOSING)
    }

    /// One descriptor more.
    pub(crate) fn refer(&self) {
        self.refs.fetch_add(1, Ordering::AcqRel);
    }

    /// One descriptor less; true if it was the last. The place stays taken until [`Conn::close`].
    pub(crate) fn release(&self) -> bool {
        let before = self
            .refs
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |refs| {
                Some(if refs <= 1 { CLOSING } else { refs - 1 })
            });
        matches!(before, Ok(0 | 1))
    }

    /// Ends the connection as far as this process goes: `fd` is its last descriptor and about to be closed.
    pub fn close(&self, fd: BorrowedFd<'_>) {
        self.end_meeting();
        self.closing.store(true, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            // A thread that sleeps in the kernel goes on there, with what comes, though the number is gone: the last of them ends it.
            return;
        }
        // A signal handler that closes what its thread is reading leaves the rings to be unmapped with the place's next user.
        if let Ok(Some(flow)) = self.flow.replace(None) {
            flow.leave(&self.tcp(fd));
        }
        self.closing.store(false, Ordering::Relaxed);
        self.path.store(YOUNG, Ordering::Release);
        stat::end(self.record);
        self.refs.store(0, Ordering::Release);
    }

    /// After a sleep: ends the connection if another thread closed it meanwhile and nobody else sleeps.
    pub(crate) fn end_if_closed(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 || !self.closing.swap(false, Ordering::SeqCst) {
            return;
        }
        if let Ok(Some(flow)) = self.flow.replace(None) {
            flow.leave_closed();
        }
        self.path.store(YOUNG, Ordering::Release);
        stat::end(self.record);
        self.refs.store(0, Ordering::Release);
    }

    /// Whether another thread closed it while this one slept.
    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Ends the connection as far as this process goes, where its last descriptor has gone by ways that we did not see.
    pub(crate) fn abandon(&self) {
        self.end_meeting();
        if let Ok(Some(flow)) = self.flow.replace(None) {
            share::forget_holder(flow.stream());
        }
        self.path.store(YOUNG, Ordering::Release);
        stat::end(self.record);
        self.refs.store(0, Ordering::Release);
    }

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

    fn set_path(&self, path: u32) {
        self.path.store(path, Ordering::SeqCst);
        stat::change(self.record, path + 1, self.reason.load(Ordering::Relaxed));
    }

    /// Whether there are rings.
    #[inline]
    pub fn is_mapped(&self) -> bool {
        self.path.load(Ordering::Acquire) == MAPPED
    }

    /// Whether the ends are looking for each other.
    pub(crate) fn is_meeting(&self) -> bool {
        self.path.load(Ordering::Acquire) == MEETING
    }

    /// Goes on with the rings that the program before this one had.
    pub(crate) fn resume(&self, opener: bool, stream: Stream) {
        self.opener.store(opener, Ordering::Relaxed);
        let flow = Flow::resume(stream, &self.record.bells);
        if self.flow.replace(Some(flow)).is_ok() {
            self.set_path(MAPPED);
        }
    }

    /// Does without the rings of a connection that is back on TCP.
    pub(crate) fn drop_rings(&self) {
        self.path.store(TCP, Ordering::SeqCst);
        if let Ok(Some(flow)) = self.flow.replace(None) {
            share::forget_holder(flow.stream());
        }
    }

    /// Changes with each connection that has this place.
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    /// How this process came by it.
    pub fn is_inherited(&self) -> bool {
        self.origin.load(Ordering::Relaxed) == Origin::Inherited as u32
    }

    /// Whether calls on it wait.
    #[inline]
    pub fn is_nonblocking(&self) -> bool {
        self.nonblocking.load(Ordering::Relaxed)
    }

    /// Notes `O_NONBLOCK`.
    pub fn set_nonblocking(&self, on: bool) {
        self.nonblocking.store(on, Ordering::Relaxed);
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

    /// Notes `TCP_NODELAY`; true if that is all there is to do, because the connection needs it set.
    pub fn set_nodelay(&self, on: bool) -> bool {
        self.nodelay.store(on, Ordering::Relaxed);
        self.is_mapped()
    }

    /// `TCP_NODELAY` as the program set it, where the kernel does not know.
    pub fn nodelay(&self) -> Option<bool> {
        self.is_mapped()
            .then(|| self.nodelay.load(Ordering::Relaxed))
    }

    /// Notes `SO_RCVLOWAT`, which the program has set in the kernel. Where there are rings it is not to stay there: a doorbell is one byte.
    pub fn note_low_water(&self, fd: BorrowedFd<'_>) {
        let bytes = sys::socket::low_water(fd);
        self.low_water.store(bytes, Ordering::Relaxed);
        if bytes > 1 && self.is_mapped() {
            sys::socket::set_low_water(fd, 1);
        }
    }

    /// `SO_RCVLOWAT` as the program set it, where the kernel does not know.
    pub fn low_water(&self) -> Option<u32> {
        self.is_mapped()
            .then(|| self.low_water.load(Ordering::Relaxed))
    }

    /// Tells the kernel, which has all bytes again.
    pub(crate) fn restore_low_water(&self, fd: BorrowedFd<'_>) {
        let bytes = self.low_water.load(Ordering::Relaxed);
        if bytes > 1 {
            sys::socket::set_low_water(fd, bytes);
        }
    }

    /// Notes that another process has the connection too, from a fork before it was upgraded.
    pub fn set_forked(&self) {
        self.forked.store(true, Ordering::Relaxed);
    }

    /// Whether another process may have the socket, for all that this one knows.
    pub(crate) fn may_be_shared(&self) -> bool {
        self.forked.load(Ordering::Relaxed) || self.is_inherited()
    }

    /// It has not.
    pub(crate) fn set_alone(&self) {
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

    /// Stays on TCP for good, unless it is upgraded already.
    pub fn stay_on_tcp(&self, reason: Reason) {
        self.end_meeting();
        if !self.is_mapped() {
            self.reason
                .store(u32::from(reason.number()), Ordering::Relaxed);
            self.set_path(TCP);
        }
    }

    /// The peer wrote into the shared memory what it can not mean: resets the connection, and does without that memory from now on. To be called
    /// outside turns.
    #[cold]
    pub(crate) fn reset_spoilt(&self, fd: BorrowedFd<'_>) {
        self.note_back(Reason::Corrupt);
        sys::socket::reset_now(fd);
        if !share::is_home() {
            return;
        }
        // Without memory for it, or in a signal handler, the next call finds the same again.
        if let Ok(remains) = Flow::of_reset(&self.record.bells)
            && let Ok(Some(spoilt)) = self.flow.replace(Some(remains))
        {
            share::forget_holder(spoilt.stream());
        }
    }

    /// Notes why a connection that has rings is back on TCP.
    pub(crate) fn note_back(&self, reason: Reason) {
        let number = u32::from(reason.number());
        let _ = self
            .reason
            .compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
        stat::change(
            self.record,
            self.path.load(Ordering::Relaxed) + 1,
            self.reason.load(Ordering::Relaxed),
        );
    }

    /// Whoever is in the middle of a step ends it soon, unless it is this thread, which a signal interrupted.
    fn end_meeting(&self) {
        for _ in 0..TRIES {
            if let Some(mut meeting) = self.meeting.try_lock() {
                drop(meeting.take());
                return;
            }
            std::thread::yield_now();
        }
    }

    /// Says that a call gives the program's buffer to the kernel, for as long as the result lives; `None` if there are rings, and it must not.
    pub fn native(&self, way: Way) -> Option<Native<'_>> {
        let count = match way {
            Way::In => &self.native_in,
            Way::Out => &self.native_out,
        };
        // Sequentially consistent with `set_mapped`: either we see the rings, or who uses them sees us.
        count.fetch_add(1, Ordering::SeqCst);
        let native = Native(count);
        (self.path.load(Ordering::SeqCst) != MAPPED).then_some(native)
    }

    /// Whether this end called `connect`.
    pub(crate) fn is_opener(&self) -> bool {
        self.opener.load(Ordering::Relaxed)
    }

    /// Whether no call gives a buffer of that direction to the kernel.
    #[inline]
    pub(crate) fn is_quiet(&self, way: Way) -> bool {
        let count = match way {
            Way::In => &self.native_in,
            Way::Out => &self.native_out,
        };
        count.load(Ordering::SeqCst) == 0
    }

    /// Counts a call that moved `bytes`.
    #[inline]
    pub fn count(&self, way: Way, bytes: usize) {
        let index = way as usize;
        let add = |count: &AtomicU64, n: u64| {
            // A lost count of two threads at once is worth less than a locked instruction.
            count.store(
                count.load(Ordering::Relaxed).wrapping_add(n),
                Ordering::Relaxed,
            );
        };
        if let (Some(total), Some(calls)) =
            (self.record.bytes.get(index), self.record.calls.get(index))
        {
            add(total, bytes as u64);
            add(calls, 1);
        }
    }

    /// Bytes and calls so far.
    pub fn counts(&self, way: Way) -> (u64, u64) {
        let index = way as usize;
        let of =
            |counts: &[AtomicU64; 2]| counts.get(index).map_or(0, |n| n.load(Ordering::Relaxed));
        (of(&self.record.bytes), of(&self.record.calls))
    }

    /// Whether the receiver has caught up with the sender at each of some looks, without waiting and without an answer in between: a stream of
    /// small messages.
    #[inline]
    pub(crate) fn keeps_up(&self) -> bool {
        self.streak.load(Ordering::Relaxed) >= STREAK
    }

    /// Notes whether a receive caught up with the sender, and whether it did not have to wait.
    #[inline]
    pub(crate) fn note_pace(&self, caught_up: bool, at_once: bool) {
        let streak = self.streak.load(Ordering::Relaxed);
        let now = match (at_once, caught_up) {
            (false, _) => 0,
            (true, true) => (streak + 1).min(STREAK),
            (true, false) => streak,
        };
        if now != streak {
            self.streak.store(now, Ordering::Relaxed);
        }
    }

    /// Notes that something was sent.
    #[inline]
    pub(crate) fn note_answer(&self) {
        if self.streak.load(Ordering::Relaxed) != 0 {
            self.streak.store(0, Ordering::Relaxed);
        }
    }

    /// Notes that something was sent on TCP.
    #[inline]
    pub(crate) fn note_answer_on_tcp(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    /// Whether something was sent on TCP since this was last asked. Then an answer may be near; else data comes as it comes, and who polls for it
    /// only takes it in smaller pieces, in the way of the sender.
    #[inline]
    pub(crate) fn expects_answer(&self) -> bool {
        self.answered.load(Ordering::Relaxed) && self.answered.swap(false, Ordering::Relaxed)
    }

    /// Whether no thread of this process sleeps in a call on the connection itself.
    pub(crate) fn nobody_sleeps(&self) -> bool {
        self.sleepers.load(Ordering::SeqCst) == 0 && self.room_sleepers.load(Ordering::SeqCst) == 0
    }

    /// Counts a sleep in the kernel.
    pub(crate) fn count_sleep(&self) {
        self.record.sleeps.fetch_add(1, Ordering::Relaxed);
    }

    /// How often a call slept in the kernel.
    pub fn sleeps(&self) -> u64 {
        self.record.sleeps.load(Ordering::Relaxed)
    }

    /// After a call on TCP: takes the next step towards an upgrade, if it is time.
    #[inline]
    pub fn advance(&self, fd: BorrowedFd<'_>, way: Way) {
        match self.path.load(Ordering::Relaxed) {
            YOUNG => self.grow(fd, way),
            MEETING => self.meet(fd),
            _ => {}
        }
    }

    /// Both ends see the same turns and about the same bytes, so both come here at about the same time.
    fn grow(&self, fd: BorrowedFd<'_>, way: Way) {
        let last = way as u32 + 1;
        let mut turns = self.turnarounds.load(Ordering::Relaxed);
        if self.last.swap(last, Ordering::Relaxed) != last {
            turns += 1;
            self.turnarounds.store(turns, Ordering::Relaxed);
        }
        let bytes: u64 = self
            .record
            .bytes
            .iter()
            .map(|bytes| bytes.load(Ordering::Relaxed))
            .sum();
        // Eight times as much each time that others were found to have the socket.
        let patience = 3 * self.looks.load(Ordering::Relaxed);
        if turns < TURNS << patience && bytes < BYTES << patience {
            return;
        }
        let Some(windows) = host().and_then(|host| host.windows()) else {
            return self.stay_on_tcp(Reason::NoNic);
        };
        if let Some(reason) = handover::all_on_tcp() {
            return self.stay_on_tcp(reason);
        }
        match share::is_alone(self, fd) {
            Some(true) => {}
            Some(false) => return,
            None => return self.stay_on_tcp(Reason::SharedWithStranger),
        }
        // Not in the middle of a fork.
        let Some(_still) = table::try_freeze() else {
            return;
        };
        let Some(mut meeting) = self.meeting.try_lock() else {
            return;
        };
        if self.path.load(Ordering::Acquire) != YOUNG || self.may_be_shared() {
            return;
        }
        match Meeting::begin(fd, windows) {
            Ok(begun) => {
                *meeting = Some(begun);
                self.next_step_ns.store(0, Ordering::Relaxed);
                self.step_interval_ns.store(0, Ordering::Relaxed);
                self.set_path(MEETING);
            }
            Err(reason) => {
                drop(meeting);
                self.stay_on_tcp(reason);
            }
        }
    }

    fn meet(&self, fd: BorrowedFd<'_>) {
        // The first steps are taken at once, for an end that sends and receives in turn; later ones seldom, for a receiver may lag megabytes behind.
        let now_ns = time::monotonic_ns();
        let (next_ns, interval_ns) = (&self.next_step_ns, &self.step_interval_ns);
        if now_ns < next_ns.load(Ordering::Relaxed) {
            return;
        }
        let interval = interval_ns.load(Ordering::Relaxed);
        interval_ns.store(
            (interval + interval / 4 + STEP_NS).min(STEP_MAX_NS),
            Ordering::Relaxed,
        );
        next_ns.store(now_ns + interval, Ordering::Relaxed);
        // Somebody else at it will do; and a signal handler must not wait for its own thread.
        let Some(mut meeting) = self.meeting.try_lock() else {
            return;
        };
        let Some(step) = meeting.as_mut().map(|meeting| meeting.step(fd)) else {
            return;
        };
        match step {
            Step::Wait => {}
            Step::Met(mut stream) => {
                *meeting = None;
                handover::label(self, fd, &mut stream);
                if self
                    .flow
                    .replace(Some(Flow::new(stream, &self.record.bells)))
                    .is_ok()
                {
                    self.nodelay
                        .store(sys::socket::nodelay(fd), Ordering::Relaxed);
                    sys::socket::set_nodelay(fd, true);
                    self.set_path(MAPPED);
                    self.note_low_water(fd);
                    if let Some(host) = host() {
                        host.upgraded(fd);
                    }
                    ready::upgraded(fd, self);
                }
            }
            Step::Over(reason) => {
                *meeting = None;
                drop(meeting);
                self.stay_on_tcp(reason);
            }
        }
    }

    /// Whether receiving looks worth a question to the kernel now and then though memory says there is nothing: one of a few times.
    pub(crate) fn is_time_to_ask(&self) -> bool {
        let fruitless = self.fruitless.load(Ordering::Relaxed).wrapping_add(1);
        self.fruitless.store(fruitless, Ordering::Relaxed);
        fruitless.is_multiple_of(ASK_EACH)
    }

    /// Whether the peer has read nothing of what is there for it, during some sends.
    #[inline]
    pub(crate) fn is_time_to_look(&self, flow: &Flow) -> bool {
        let sends = self.unlooked.load(Ordering::Relaxed).wrapping_add(1);
        self.unlooked.store(sends, Ordering::Relaxed);
        sends.is_multiple_of(LOOK_EACH) && flow.sends_on_ring() && {
            let read = flow.stream().tx().read();
            self.read_then.swap(read, Ordering::Relaxed) == read
                && read != flow.stream().tx().tail()
        }
    }

    /// In the child of a fork: no other thread is here.
    pub(crate) fn forget_threads(&self) {
        self.flow.forget_turns();
        self.sleepers.store(0, Ordering::Relaxed);
        self.room_sleepers.store(0, Ordering::Relaxed);
        if !self.is_mapped() {
            // Where there are rings, calls that the parent has under way in the kernel still forbid the switch.
            for count in [&self.native_in, &self.native_out] {
                count.store(0, Ordering::Relaxed);
            }
        }
    }
}

/// A call that gives the program's buffer to the kernel is under way.
#[derive(Debug)]
pub struct Native<'a>(&'a AtomicU32);

impl Drop for Native<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

const YOUNG: u32 = 0;
const MEETING: u32 = 1;
const MAPPED: u32 = 2;
const TCP: u32 = 3;

/// The value of `refs` between the last descriptor and the end.
const CLOSING: u32 = u32::MAX / 2;
/// After so many changes between sending and receiving a connection is not a short one.
const TURNS: u32 = 8;
/// Or after so many bytes.
const BYTES: u64 = 128 << 10;
const ASK_EACH: u32 = 32;
const STREAK: u32 = 4;
/// From one step to the next, by and by.
const STEP_NS: u64 = 200;
const STEP_MAX_NS: u64 = 5_000_000;
const LOOK_EACH: u32 = 16;
const TRIES: u32 = 100_000;
