//! One TCP connection of the program, with all its descriptors in this process.

use std::os::fd::BorrowedFd;

use sys::lock::Lock;
use sys::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use sys::turn::Turns;
use sys::wait::{self, Limits, Monotonic, Spinner};

use crate::flow::{Flow, RECEIVE, SEND};
use crate::host::host;
use crate::kernel::Tcp;
use crate::meet::{Meeting, Step};
use crate::reason::Reason;

/// A connection. They live in [`table`](crate::table), and are used again after [`Conn::close`].
#[derive(Debug)]
#[repr(align(128))]
pub struct Conn {
    path: AtomicU32,
    nonblocking: AtomicBool,
    opener: AtomicBool,
    /// Which of several connections, one after the other, this is.
    generation: AtomicU32,
    /// How many descriptors there are.
    refs: AtomicU32,
    reason: AtomicU32,
    origin: AtomicU32,
    forked: AtomicBool,
    /// Calls under way that give the program's buffers to the kernel.
    native_in: AtomicU32,
    native_out: AtomicU32,
    /// Threads asleep until something can be received.
    pub(crate) sleepers: AtomicU32,
    turnarounds: AtomicU32,
    last: AtomicU32,
    fruitless: AtomicU32,
    bytes: [AtomicU64; 2],
    calls: [AtomicU64; 2],
    sleeps: AtomicU64,
    /// What may be waited for less than a byte of: `SO_RCVLOWAT`.
    pub(crate) low_water: AtomicU32,
    meeting: Lock<Option<Meeting>>,
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
    pub(crate) fn new() -> Self {
        let cpus = wait::cpus();
        Self {
            path: AtomicU32::new(YOUNG),
            nonblocking: AtomicBool::new(false),
            opener: AtomicBool::new(false),
            generation: AtomicU32::new(0),
            refs: AtomicU32::new(0),
            reason: AtomicU32::new(0),
            origin: AtomicU32::new(0),
            forked: AtomicBool::new(false),
            native_in: AtomicU32::new(0),
            native_out: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            turnarounds: AtomicU32::new(0),
            last: AtomicU32::new(0),
            fruitless: AtomicU32::new(0),
            bytes: [AtomicU64::new(0), AtomicU64::new(0)],
            calls: [AtomicU64::new(0), AtomicU64::new(0)],
            sleeps: AtomicU64::new(0),
            low_water: AtomicU32::new(1),
            meeting: Lock::new(None),
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
        self.opener
            .store(origin == Origin::Connected, Ordering::Relaxed);
        self.origin.store(origin as u32, Ordering::Relaxed);
        self.forked.store(false, Ordering::Relaxed);
        self.nonblocking
            .store(sys::socket::is_nonblocking(fd), Ordering::Relaxed);
        for count in [&self.native_in, &self.native_out, &self.sleepers] {
            count.store(0, Ordering::Relaxed);
        }
        for count in [&self.turnarounds, &self.last, &self.fruitless] {
            count.store(0, Ordering::Relaxed);
        }
        for count in self.bytes.iter().chain(&self.calls).chain([&self.sleeps]) {
            count.store(0, Ordering::Relaxed);
        }
        self.low_water.store(1, Ordering::Relaxed);
        self.path.store(YOUNG, Ordering::Release);
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
        drop(self.meeting.lock().take());
        // A signal handler that closes what its thread is reading leaves the rings to be unmapped with the place's next user.
        if let Ok(Some(flow)) = self.flow.replace(None) {
            flow.leave(&self.tcp(fd));
        }
        self.path.store(YOUNG, Ordering::Release);
        self.refs.store(0, Ordering::Release);
    }

    /// Where the bytes go.
    pub fn path(&self) -> Path {
        match self.path.load(Ordering::Acquire) {
            YOUNG => Path::Young,
            MEETING => Path::Meeting,
            MAPPED => Path::Mapped,
            _ => Path::Tcp(Reason::from_number(
                self.reason.load(Ordering::Relaxed) as u16
            )),
        }
    }

    /// Whether there are rings.
    #[inline]
    pub fn is_mapped(&self) -> bool {
        self.path.load(Ordering::Acquire) == MAPPED
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

    /// Notes `SO_RCVLOWAT`.
    pub fn set_low_water(&self, bytes: u32) {
        self.low_water.store(bytes.max(1), Ordering::Relaxed);
    }

    /// Notes that another process has the connection too, from a fork before it was upgraded.
    pub fn set_forked(&self) {
        self.forked.store(true, Ordering::Relaxed);
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
        drop(self.meeting.lock().take());
        if !self.is_mapped() {
            self.reason
                .store(u32::from(reason.number()), Ordering::Relaxed);
            self.path.store(TCP, Ordering::Release);
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
        if let (Some(total), Some(calls)) = (self.bytes.get(index), self.calls.get(index)) {
            add(total, bytes as u64);
            add(calls, 1);
        }
    }

    /// Bytes and calls so far.
    pub fn counts(&self, way: Way) -> (u64, u64) {
        let index = way as usize;
        let of =
            |counts: &[AtomicU64; 2]| counts.get(index).map_or(0, |n| n.load(Ordering::Relaxed));
        (of(&self.bytes), of(&self.calls))
    }

    /// Counts a sleep in the kernel.
    pub(crate) fn count_sleep(&self) {
        self.sleeps.fetch_add(1, Ordering::Relaxed);
    }

    /// How often a call slept in the kernel.
    pub fn sleeps(&self) -> u64 {
        self.sleeps.load(Ordering::Relaxed)
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
            .bytes
            .iter()
            .map(|bytes| bytes.load(Ordering::Relaxed))
            .sum();
        if turns < TURNS && bytes < BYTES {
            return;
        }
        let Some(windows) = host().and_then(|host| host.windows()) else {
            return self.stay_on_tcp(Reason::NoNic);
        };
        let mut meeting = self.meeting.lock();
        if self.path.load(Ordering::Acquire) != YOUNG {
            return;
        }
        match Meeting::begin(fd, windows) {
            Ok(begun) => {
                *meeting = Some(begun);
                self.path.store(MEETING, Ordering::Release);
            }
            Err(reason) => {
                drop(meeting);
                self.stay_on_tcp(reason);
            }
        }
    }

    fn meet(&self, fd: BorrowedFd<'_>) {
        // Somebody else at it will do; and a signal handler must not wait for its own thread.
        let Some(mut meeting) = self.meeting.try_lock() else {
            return;
        };
        let Some(step) = meeting.as_mut().map(|meeting| meeting.step(fd)) else {
            return;
        };
        match step {
            Step::Wait => {}
            Step::Met(stream) => {
                *meeting = None;
                if self.flow.replace(Some(Flow::new(stream))).is_ok() {
                    self.path.store(MAPPED, Ordering::SeqCst);
                    if let Some(host) = host() {
                        host.upgraded(fd);
                    }
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

    /// In the child of a fork: no other thread is here.
    pub fn forget_threads(&self) {
        self.flow.forget_turns();
        for count in [&self.native_in, &self.native_out, &self.sleepers] {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// Calls `act` with the flow in turns of both sides.
    pub(crate) fn with_both<R>(&self, act: impl FnOnce(&Flow) -> R) -> Option<R> {
        let receive = self.flow.take(RECEIVE)?;
        let _send = self.flow.take(SEND)?;
        Some(act(&receive))
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
