//! How a connection begins and ends in this process.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;

use sys::fork::OwnFd;
use sys::kin::Kin;
use sys::ledger;
use sys::lock::Lock;
use sys::sync::mapped::AtomicU64;
use sys::sync::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use sys::turn::Turns;
use sys::wait::{self, Limits, Monotonic, Spinner};

use super::asleep::Sleepers;
use super::native::UnderWay;
use super::option::{LOW_WATER_UNKNOWN, first_low_water};
use super::schedule::Schedule;
use super::standstill::Standstill;
use super::{CLOSED, Conn, Origin, Way};
use crate::reason::Reason;
use crate::states::connection::Event;
use crate::{epoll, handover, rules, share, stat};

impl Conn {
    /// For the place `index`, which is also that of its record in the ledger.
    pub(crate) fn new(index: usize) -> Self {
        let cpus = wait::cpus();
        Self {
            path: AtomicU32::new(CLOSED),
            waits: AtomicU32::new(0),
            connecting: AtomicBool::new(false),
            signals: AtomicBool::new(false),
            opener: AtomicBool::new(false),
            generation: AtomicU32::new(0),
            refs: AtomicU32::new(0),
            reason: AtomicU32::new(0),
            origin: AtomicU32::new(0),
            forked: AtomicBool::new(false),
            fork_pid: AtomicU32::new(0),
            fork_ticks: AtomicU64::new(0),
            kin: Kin::default(),
            at_fork: AtomicU32::new(0),
            lent: AtomicU32::new(0),
            cookie: AtomicU64::new(0),
            looks: AtomicU32::new(0),
            comes_again: AtomicBool::new(false),
            entered: AtomicU32::new(0),
            native_in: UnderWay::new(),
            native_out: UnderWay::new(),
            sleepers: Sleepers::default(),
            room_sleepers: Sleepers::default(),
            pollers: Sleepers::default(),
            kept: Lock::new(None),
            turnarounds: AtomicU32::new(0),
            last: AtomicU32::new(0),
            enough: AtomicU32::new(0),
            many: AtomicU64::new(0),
            kind: AtomicU32::new(0),
            longest: AtomicUsize::new(0),
            fruitless: AtomicU32::new(0),
            asked_ms: AtomicU32::new(0),
            rule: AtomicU32::new(0),
            record: ledger::record(index),
            idle_since: AtomicU32::new(0),
            idle_tail: AtomicU64::new(0),
            low_water: AtomicU32::new(LOW_WATER_UNKNOWN),
            left: AtomicU32::new(0),
            meeting: Lock::new(None),
            schedule: Schedule::new(),
            standstill: Standstill::default(),
            closing: AtomicBool::new(false),
            streak: AtomicU32::new(0),
            answered: AtomicBool::new(false),
            trickle: AtomicU32::new(0),
            emptied: AtomicU32::new(0),
            watched: AtomicUsize::new(0),
            flow: Turns::new(),
            memory: Spinner::with_clock(rules::limited(Limits::MEMORY), cpus, Monotonic),
            socket: Spinner::with_clock(rules::limited(Limits::SOCKET), cpus, Monotonic),
            gather: Spinner::with_clock(rules::limited(GATHER), cpus, Monotonic),
        }
    }

    /// Takes the place for a new connection, if it is free.
    pub(crate) fn claim(&self) -> bool {
        self.refs
            .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Begins as the connection behind `fd`, with one descriptor.
    pub(crate) fn open(&self, fd: BorrowedFd<'_>, origin: Origin, nonblocking: bool) {
        self.generation.fetch_add(1, Ordering::Relaxed);
        let opener = match origin {
            Origin::Connected => true,
            Origin::Accepted => false,
            Origin::Inherited => sys::tcp::is_opener(fd).unwrap_or(false),
        };
        self.opener.store(opener, Ordering::Relaxed);
        self.origin.store(origin as u32, Ordering::Relaxed);
        self.forked.store(false, Ordering::Relaxed);
        self.fork_ticks.store(0, Ordering::Relaxed);
        self.kin.forget();
        self.lent.store(0, Ordering::Relaxed);
        self.connecting.store(false, Ordering::Relaxed);
        self.cookie.store(0, Ordering::Relaxed);
        self.waits.store(u32::from(nonblocking), Ordering::Relaxed);
        self.signals.store(false, Ordering::Relaxed);
        self.comes_again.store(false, Ordering::Relaxed);
        self.sleepers.forget();
        self.room_sleepers.forget();
        self.pollers.forget();
        for under_way in [&self.native_in, &self.native_out] {
            under_way.forget();
        }
        for count in [
            &self.turnarounds,
            &self.last,
            &self.fruitless,
            &self.asked_ms,
        ] {
            count.store(0, Ordering::Relaxed);
        }
        for count in [
            &self.at_fork,
            &self.looks,
            &self.entered,
            &self.reason,
            &self.rule,
        ] {
            count.store(0, Ordering::Relaxed);
        }
        let number = fd.as_raw_fd().cast_unsigned();
        stat::begin(self.record, number, origin, None);
        if origin == Origin::Inherited {
            self.note_ends(fd);
        }
        self.idle_since.store(0, Ordering::Relaxed);
        self.idle_tail.store(0, Ordering::Relaxed);
        self.low_water
            .store(first_low_water(origin), Ordering::Relaxed);
        self.forget_what_it_says();
        self.standstill.end();
        self.memory.heed();
        self.socket.heed();
        self.gather.heed();
        self.heed_program();
        self.trickle.store(0, Ordering::Relaxed);
        self.go(Event::Open, None);
        // What was there before may have rings.
        if origin != Origin::Inherited
            && let Some(reason) = self.forbidden(fd)
        {
            self.refuse(reason);
        }
        if epoll::given::keeps(fd.as_raw_fd()) {
            self.refuse(Reason::Sets);
        }
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
        matches!(self.refs.load(Ordering::SeqCst), 1..CLOSING)
    }

    /// One descriptor more.
    pub(crate) fn refer(&self) {
        self.refs.fetch_add(1, Ordering::AcqRel);
    }

    /// One descriptor less; true if it was the last. The place stays taken until [`Conn::close`].
    pub(crate) fn release(&self) -> bool {
        // Before the look of `end_meeting`.
        let before = self
            .refs
            .fetch_update(Ordering::SeqCst, Ordering::Acquire, |refs| {
                Some(if refs <= 1 { CLOSING } else { refs - 1 })
            });
        matches!(before, Ok(0 | 1))
    }

    /// Ends the connection as far as this process goes: `fd` is its last descriptor and about to be closed.
    pub fn close(&self, fd: BorrowedFd<'_>) {
        let generation = self.generation();
        self.end_meeting();
        let kept = self.others_sleep() && self.keep(fd).is_ok();
        if kept {
            self.closing.store(true, Ordering::SeqCst);
            // The number may be another file's at once. One that left its call by a jump stirs for ever.
            for _ in 0..YIELDS {
                if !self.sleepers.others_stir() && !self.room_sleepers.others_stir() {
                    break;
                }
                std::thread::yield_now();
            }
            // They go on, though the number is gone, as in the kernel: the last of them ends it, or has, and the place may be another's.
            if self.others_sleep()
                || self.generation() != generation
                || !self.closing.swap(false, Ordering::SeqCst)
            {
                return;
            }
        }
        if self.is_mapped() {
            handover::finish_serving(self, fd);
            // A signal handler that closes what its thread is reading leaves the rings to be unmapped with those of the place's next user.
            if let Ok(Some(flow)) = self.flow.replace(None) {
                flow.leave(&self.tcp(fd), self.is_quiet(Way::Out));
            }
        }
        if kept {
            drop(self.kept.lock().take());
        }
        self.leave_kin();
        self.note_lifetime();
        self.go(Event::Close, None);
        stat::end(self.record);
        self.refs.store(0, Ordering::Release);
    }

    /// After a sleep: ends the connection if another thread closed it meanwhile and nobody else sleeps.
    pub(crate) fn end_if_closed(&self) {
        if self.others_sleep() || !self.closing.swap(false, Ordering::SeqCst) {
            return;
        }
        let kept = self.kept.lock().take();
        if let Some(fd) = &kept
            && self.is_mapped()
        {
            handover::finish_serving(self, fd.as_fd());
        }
        if let (Ok(Some(flow)), Some(fd)) = (self.flow.replace(None), &kept) {
            flow.leave(&self.tcp(fd.as_fd()), self.is_quiet(Way::Out));
        }
        self.leave_kin();
        self.note_lifetime();
        self.go(Event::Close, None);
        stat::end(self.record);
        self.refs.store(0, Ordering::Release);
    }

    /// Whether another thread closed it while this one slept.
    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        // After one's own sleep has ended: who closes looks for sleepers after it has said so.
        self.closing.load(Ordering::SeqCst)
    }

    /// Whether another thread has taken its last descriptor away, and not yet decided what becomes of it.
    pub(crate) fn is_about_to_close(&self) -> bool {
        self.descriptors() == CLOSING && !self.is_closing()
    }

    /// This process has it no more. The child of a `vfork` that nobody saw would say that of its parent.
    fn leave_kin(&self) {
        if self.kin.is_counted() {
            if share::is_home() {
                self.kin.leave();
            } else {
                self.kin.forget();
            }
        }
    }

    fn others_sleep(&self) -> bool {
        self.sleepers.others() || self.room_sleepers.others()
    }

    fn keep(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let kept = OwnFd::duplicate_of(fd)?;
        *self.kept.lock() = Some(Arc::new(kept));
        Ok(())
    }

    /// What a thread that slept goes on with, where another closed the program's descriptor meanwhile: that number may be another socket's by now.
    pub(crate) fn kept(&self) -> Option<Arc<OwnFd>> {
        self.kept.lock().clone()
    }

    /// Ends the connection as far as this process goes, where its last descriptor has gone by ways that we did not see.
    pub(crate) fn abandon(&self) {
        self.end_meeting();
        if let Ok(Some(flow)) = self.flow.replace(None) {
            flow.stream().holders().leave();
        }
        self.note_lifetime();
        self.go(Event::Close, None);
        stat::end(self.record);
        self.refs.store(0, Ordering::Release);
    }

    /// In the child of a fork, of one that lives on for other threads after its descriptor was closed: it is their process's alone, and what was kept
    /// for them is [closed](OwnFd) here.
    #[cold]
    pub(crate) fn forget_kept(&self) {
        // For a handler's own call that it comes back to.
        self.generation.fetch_add(1, Ordering::Relaxed);
        self.closing.store(false, Ordering::Relaxed);
        let Some(mut kept) = self.kept.try_lock() else {
            // Who had the lock is not here: nobody else can have the place.
            return;
        };
        if sys::turn::is_in_turn() {
            // That call may be using the rings.
            return;
        }
        drop(kept.take());
        drop(kept);
        self.forget_threads();
        drop(self.flow.replace(None));
        self.kin.forget();
        self.learn_nothing();
        self.go(Event::Close, None);
        stat::end(self.record);
        self.refs.store(0, Ordering::Release);
    }

    /// In the child of a fork: no other thread is here.
    pub(crate) fn forget_threads(&self) {
        self.flow.forget_turns();
        self.sleepers.forget();
        self.room_sleepers.forget();
        self.pollers.forget();
        if !self.is_mapped() {
            // Where there are rings, calls that the parent has under way in the kernel still forbid the switch.
            for under_way in [&self.native_in, &self.native_out] {
                under_way.forget();
            }
        }
    }
}

/// The value of `refs` between the last descriptor and the end.
const CLOSING: u32 = u32::MAX / 2;

/// So long others are waited for who may be about to sleep on a number.
const YIELDS: u32 = 10_000;

/// For how long small messages may come together in the kernel before they are taken.
pub(super) const GATHER: Limits = Limits {
    pause_ns: 15_000,
    yield_ns: 0,
    far_ns: 0,
};
