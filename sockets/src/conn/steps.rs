//! Each step of a connection from one state to another, as [its table](connection) has it.

use std::os::fd::BorrowedFd;

use sys::sync::Ordering;

use super::{CLOSED, Conn, MAPPED, MEETING, TCP, YOUNG};
use crate::flow::Flow;
use crate::reason::Reason;
use crate::states::connection::{self, Event, State};
use crate::{share, stat};

impl Conn {
    /// Takes the step that the table has for `event`, if it has one from where the connection stands; false if not. `reason` is why the bytes are on
    /// TCP from then on.
    #[inline(never)]
    pub(super) fn go(&self, event: Event, reason: Option<Reason>) -> bool {
        loop {
            let path = self.path.load(Ordering::SeqCst);
            let from = self.state_at(path);
            let Some(to) = connection::next(from, event) else {
                return false;
            };
            debug_assert!(
                connection::row(from, event).is_some_and(|row| match reason {
                    Some(reason) => row.reasons.contains(&reason),
                    None => row.reasons.is_empty(),
                }),
                "no row for {event:?} in {from:?} for {reason:?}"
            );
            // Before the path: who sees that the bytes are on TCP sees why.
            if let Some(reason) = reason {
                self.note_reason(reason, to);
            }
            let changed =
                self.path
                    .compare_exchange(path, path_of(to), Ordering::SeqCst, Ordering::Relaxed);
            if changed.is_ok() {
                #[cfg(all(test, not(loom)))]
                crate::states::visits::connection(from, event);
                if to != State::Closed {
                    let reason = self.reason.load(Ordering::Relaxed);
                    stat::change(self.record, path_of(to) + 1, reason);
                }
                return true;
            }
        }
    }

    /// Where it stands.
    #[cfg(all(test, not(loom)))]
    pub(super) fn state(&self) -> State {
        self.state_at(self.path.load(Ordering::Acquire))
    }

    fn state_at(&self, path: u32) -> State {
        match path {
            CLOSED => State::Closed,
            YOUNG => State::Young,
            MEETING => State::Meeting,
            MAPPED if self.reason.load(Ordering::Relaxed) == 0 => State::Mapped,
            MAPPED => State::Back,
            _ => State::Tcp,
        }
    }

    fn note_reason(&self, reason: Reason, to: State) {
        let number = u32::from(reason.number());
        if to == State::Back {
            // The first stays.
            let _ = self
                .reason
                .compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
        } else {
            self.reason.store(number, Ordering::Relaxed);
        }
    }

    /// Stays on TCP for good, because of what the program does, unless it is upgraded already.
    pub fn stay_on_tcp(&self, reason: Reason) {
        // Others may get it that nobody counts: it may be on its way to them.
        self.kin.forget();
        self.stay(Event::Stay, reason);
    }

    /// Stays on TCP for good, because it may not leave it, or cannot.
    pub(super) fn refuse(&self, reason: Reason) {
        self.stay(Event::Refuse, reason);
    }

    /// Stays on TCP for good, because the meeting is over.
    pub(super) fn over(&self, reason: Reason) {
        self.stay(Event::Over, reason);
    }

    fn stay(&self, event: Event, reason: Reason) {
        // Held, or who has found the connection young would begin one meanwhile.
        let mut meeting = self.hold_meeting();
        if !self.go(event, Some(reason)) {
            return;
        }
        if let Some(meeting) = &mut meeting {
            drop(meeting.take());
        }
        drop(meeting);
        self.tell_if_wanted(reason);
    }

    /// Notes why a connection that has rings is back on TCP.
    pub(crate) fn note_back(&self, reason: Reason) {
        self.back(Event::GoBack, reason);
    }

    /// Notes why what this end sends is on TCP again.
    pub(crate) fn note_standstill_ended(&self) {
        self.back(Event::Standstill, Reason::Standstill);
    }

    /// Where what this end sends is not on the ring: notes that the other end has called it back, if that is why.
    #[cold]
    pub(crate) fn heed_call_back(&self, flow: &Flow) {
        if flow.was_called_back() {
            self.back(Event::CalledBack, Reason::PeerWentBack);
        }
    }

    fn back(&self, event: Event, reason: Reason) {
        if self.go(event, Some(reason)) {
            self.tell_if_wanted(reason);
        }
    }

    /// The peer wrote into the shared memory what it can not mean: resets the connection, and does without that memory from now on. To be called
    /// outside turns.
    #[cold]
    pub(crate) fn reset_spoilt(&self, fd: BorrowedFd<'_>) {
        self.back(Event::Spoilt, Reason::Corrupt);
        sys::socket::reset_now(fd);
        if !share::is_home() {
            return;
        }
        // Without memory for it, or in a signal handler, the next call finds the same again.
        if let Ok(remains) = Flow::of_reset(&self.record.bells)
            && let Ok(Some(spoilt)) = self.flow.replace(Some(remains))
        {
            spoilt.stream().holders().leave();
        }
    }
}

fn path_of(state: State) -> u32 {
    match state {
        State::Closed => CLOSED,
        State::Young => YOUNG,
        State::Meeting => MEETING,
        State::Mapped | State::Back => MAPPED,
        State::Tcp => TCP,
    }
}
