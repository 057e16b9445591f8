//! Holding frames back: whoever sleeps until they come has to wake by himself.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use via::provider::ViId;
use via::soft::{CqWaiter, Waiter};

/// Until when a link holds a frame back; shared with those who sleep on it.
#[derive(Clone, Default)]
pub(super) struct Hold {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    until: Option<Instant>,
    /// The VI, and the list of the completion queue that it reports to.
    owner: Option<(ViId, List)>,
}

/// The VIs of a completion queue whose links hold something back.
#[derive(Clone, Default)]
struct List {
    held: Arc<Mutex<Vec<(ViId, Instant)>>>,
}

/// Sleeps on a tapped link.
#[derive(Clone)]
pub struct TappedWaiter<W> {
    pub(super) inner: W,
    pub(super) hold: Hold,
}

/// Sleeps on a completion queue of a tapped device.
pub struct TappedCqWaiter<C> {
    pub(super) inner: C,
    list: List,
}

impl Hold {
    pub(super) fn begin(&self, until: Instant) {
        let mut inner = self.lock();
        inner.until = inner.until.max(Some(until));
        inner.enlist();
    }

    /// Whether something is held at `now`; what was is over.
    pub(super) fn is_on(&self, now: impl FnOnce() -> Instant) -> bool {
        let mut inner = self.lock();
        let Some(until) = inner.until else {
            return false;
        };
        let on = now() < until;
        if !on {
            inner.strike_off();
            inner.until = None;
        }
        on
    }

    pub(super) fn attach<C>(&self, vi: ViId, cq: Option<&TappedCqWaiter<C>>) {
        let mut inner = self.lock();
        inner.strike_off();
        inner.owner = cq.map(|cq| (vi, cq.list.clone()));
        inner.enlist();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn enlist(&self) {
        if let (Some((vi, list)), Some(until)) = (&self.owner, self.until) {
            list.lock().push((*vi, until));
        }
    }

    fn strike_off(&self) {
        if let Some((vi, list)) = &self.owner {
            list.lock().retain(|(held, _)| held != vi);
        }
    }
}

impl List {
    fn lock(&self) -> MutexGuard<'_, Vec<(ViId, Instant)>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> TappedCqWaiter<C> {
    pub(super) fn new(inner: C) -> Self {
        let list = List::default();
        Self { inner, list }
    }
}

impl<W: Waiter> Waiter for TappedWaiter<W> {
    fn sleep(&self, ticket: u32, deadline: Option<Instant>) {
        let until = self.hold.lock().until;
        self.inner.sleep(ticket, earlier(deadline, until));
    }

    fn wake(&self) {
        self.inner.wake();
    }
}

impl<C: CqWaiter> CqWaiter for TappedCqWaiter<C> {
    fn sleep(&self, deadline: Option<Instant>, rung: &mut Vec<ViId>) {
        let until = self.list.lock().iter().map(|(_, until)| *until).min();
        self.inner.sleep(earlier(deadline, until), rung);
        // It may be too early for some: then they are still on the list next time.
        rung.extend(self.list.lock().iter().map(|(vi, _)| *vi));
    }

    fn wake(&self) {
        self.inner.wake();
    }
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}
