//! From TCP to the rings.

use std::os::fd::{AsRawFd, BorrowedFd};

use sys::lock::Guard;
use sys::quiet::Quiet;
use sys::stream::Stream;
use sys::sync::Ordering;
use sys::tcp;

use super::{Conn, MEETING, Way, YOUNG, schedule};
use crate::flow::Flow;
use crate::handover::numbers;
use crate::host::{has_threads, host};
use crate::meet::{self, Meeting, Step};
use crate::reason::Reason;
use crate::states::connection::Event;
use crate::{handover, ready, share, stat, table};

impl Conn {
    /// Keeps others from the meeting. Whoever is in the middle of a step ends it soon, unless it is this thread, which a signal interrupted: `None`.
    pub(super) fn hold_meeting(&self) -> Option<Guard<'_, Option<Meeting>>> {
        (0..TRIES).find_map(|_| {
            let meeting = self.meeting.try_lock();
            if meeting.is_none() {
                std::thread::yield_now();
            }
            meeting
        })
    }

    pub(super) fn end_meeting(&self) {
        // A short connection, which never had one, would notice the look.
        if self.path.load(Ordering::SeqCst) != YOUNG
            && let Some(mut meeting) = self.hold_meeting()
        {
            drop(meeting.take());
        }
    }

    /// Another process is about to have the connection, so nothing comes of a meeting that is under way: both ends try anew when one is alone again. A
    /// `guest` has its parent's memory, and cannot install for it what the other end has decided for.
    pub(crate) fn meet_later(&self, guest: bool) {
        let Some(mut meeting) = self.hold_meeting() else {
            return;
        };
        self.comes_again.store(true, Ordering::Relaxed);
        let met = meeting.as_mut().and_then(Meeting::postpone);
        if let Some(stream) = met.filter(|_| !guest) {
            *meeting = None;
            let mut stream = Some(stream);
            table::for_each(|fd, of| {
                if std::ptr::eq(of, self)
                    && let Some(stream) = stream.take()
                {
                    sys::socket::with_borrowed(fd, |fd| self.met(fd, stream));
                }
            });
        }
    }

    /// Whether [`Conn::meet_later`] has seen to the meeting.
    pub(crate) fn meets_later(&self) -> bool {
        let meeting = self.meeting.try_lock();
        meeting.is_some_and(|meeting| meeting.as_ref().is_some_and(Meeting::is_postponed))
    }

    /// In the child of a fork: the meeting is its parent's.
    pub(crate) fn forget_meeting(&self) {
        if let Some(mut meeting) = self.meeting.try_lock() {
            drop(meeting.take());
            drop(meeting);
            if !self.meet_again() {
                self.stay_on_tcp(Reason::GaveUp);
            }
        }
    }

    /// Goes on as a young connection, to meet after eight times as much has been exchanged; false if that was often enough.
    fn meet_again(&self) -> bool {
        let again = self.looks.fetch_add(1, Ordering::Relaxed) < share::LOOKS;
        again && self.go(Event::Miss, None)
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
    pub(super) fn grow(&self, fd: BorrowedFd<'_>, way: Way) {
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
        if self.is_short(turns, bytes) {
            return;
        }
        let number = fd.as_raw_fd();
        if meet::is_crowded(number) {
            // After one of the next calls.
            return;
        }
        numbers::make_room(number);
        let _quiet = Quiet::begin();
        let generation = self.generation();
        if let Some(reason) = self.identify(fd) {
            return self.refuse(reason);
        }
        if let Some(reason) = self.forbidden(fd) {
            return self.refuse(reason);
        }
        // Perhaps the rules were asked only now, or those that ended before it.
        self.heed_kind(fd);
        if self.is_short(turns, bytes) {
            return;
        }
        if let Some(reason) = demanded(fd) {
            return self.refuse(reason);
        }
        let Some(windows) = host().and_then(|host| host.windows()) else {
            return self.refuse(Reason::NoNic);
        };
        if let Some(reason) = handover::all_on_tcp() {
            return self.refuse(reason);
        }
        match share::is_alone(self, fd) {
            Some(true) => {}
            Some(false) => return self.note_others(),
            None => return self.refuse(Reason::SharedWithStranger),
        }
        // Not in the middle of a fork.
        let Ok(Some(_still)) = table::try_freeze() else {
            return;
        };
        let Some(mut meeting) = self.meeting.try_lock() else {
            return;
        };
        if self.path.load(Ordering::Acquire) != YOUNG || self.may_be_shared() {
            return;
        }
        match Meeting::begin(fd, windows, self.longest()) {
            Ok(begun) => {
                stat::name(self.record, begun.ends());
                *meeting = Some(begun);
                self.schedule.begin();
                let is_same = || self.generation() == generation;
                if !(is_same() && self.go(Event::Enough, None) && self.is_open()) {
                    // A signal handler has had it stay on TCP meanwhile, or another thread closes it and saw no meeting, or has closed it.
                    *meeting = None;
                } else if !is_same() {
                    // Closed by another, too, and the place was taken again just before: that one is as young as it was.
                    *meeting = None;
                    self.go(Event::Miss, None);
                }
            }
            Err(reason) => {
                drop(meeting);
                self.refuse(reason);
            }
        }
    }

    /// Goes on as a young connection, and says what it waits for: that the others who may have the socket leave.
    fn note_others(&self) {
        // Held, or the note might come after what another thread has begun meanwhile.
        let Some(_held) = self.meeting.try_lock() else {
            return;
        };
        if self.path.load(Ordering::Acquire) == YOUNG {
            let reason = Reason::SharedWithStranger.number();
            stat::change(self.record, YOUNG + 1, reason.into());
        }
    }

    pub(super) fn meet(&self, fd: BorrowedFd<'_>) {
        if !self.schedule.is_due() {
            return;
        }
        let _quiet = Quiet::begin();
        // Somebody else at it will do; and a signal handler must not wait for its own thread.
        let Some(mut meeting) = self.meeting.try_lock() else {
            return;
        };
        let Some(begun) = meeting.as_mut() else {
            return;
        };
        let offered = begun.offers();
        match begun.step(fd) {
            Step::Wait if begun.offers() != offered => self.schedule.hurry(),
            Step::Wait if self.schedule.is_over() => begun.tire(),
            Step::Wait => {}
            Step::Met(stream) => {
                *meeting = None;
                schedule::came();
                self.met(fd, stream);
            }
            Step::Over(reason) => {
                *meeting = None;
                drop(meeting);
                if reason == Reason::NobodyCame && self.comes_later() {
                    return;
                }
                // One that has left, because its process forked or has become another program, comes again.
                let left = matches!(reason, Reason::PeerLeft | Reason::PeerGaveUp);
                if left || self.comes_again.load(Ordering::Relaxed) {
                    self.comes_again.store(true, Ordering::Relaxed);
                    if self.meet_again() {
                        return;
                    }
                }
                self.over(reason);
            }
        }
    }

    /// Both ends have the stream.
    fn met(&self, fd: BorrowedFd<'_>, mut stream: Stream) {
        handover::label(self, fd, &mut stream);
        if self.install(Flow::new(stream, &self.record.bells)) {
            self.keep_options(fd);
            if !self.go(Event::Meet, None) {
                // A signal handler has had it stay on TCP meanwhile.
                self.restore_options(fd);
                return self.forget_rings();
            }
            if has_threads() {
                self.keep_late_options(fd);
            }
            self.note_low_water(fd);
            if let Some(host) = host() {
                host.upgraded(fd);
            }
            ready::upgraded(fd, self);
        }
    }
}

/// What the program has asked of TCP, in whatever way and before whichever `exec`, that the rings cannot do.
fn demanded(fd: BorrowedFd<'_>) -> Option<Reason> {
    if tcp::is_wrapped(fd) {
        return Some(Reason::NotTcp);
    }
    let option = tcp::is_filtered(fd)
        || tcp::peeks_at_offset(fd)
        || tcp::is_paced(fd)
        || tcp::signals(fd)
        || tcp::stamps_what_is_sent(fd);
    option.then_some(Reason::Option)
}

const TRIES: u32 = 100_000;
