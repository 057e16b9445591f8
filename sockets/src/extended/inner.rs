//! What the calls of a socket have in common: whoever calls moves what can be moved, and somebody goes on when he has left.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sys::errno::Errno;
use sys::sync::AtomicBool;
use sys::wait::Spinner;
use via::provider::{CqOps, Timeout};
use via::{Nic, Ptag};

use super::core::Core;
use super::events::Events;
use crate::host::goes_on;
use crate::stat::Tally;

/// What all that has to do with a socket has in common.
pub(super) struct Inner {
    pub(super) id: u64,
    /// Which process it belongs to.
    pub(super) home: u32,
    // Before the NIC's things: the VI ends first.
    pub(super) core: Mutex<Core>,
    pub(super) cq: Arc<dyn CqOps>,
    pub(super) nic: Nic,
    pub(super) tag: Ptag,
    /// Where the program polls; the same as the core's.
    pub(super) face: OwnedFd,
    /// The TCP connection, where the VI has left it to us.
    pub(super) tcp: Option<OwnedFd>,
    /// Whether the core has been told that somebody polls the descriptors.
    pub(super) watched: AtomicBool,
    pub(super) events: Events,
    pub(super) spinner: Spinner,
}

impl Inner {
    /// The state, with everything moved that can be.
    pub(super) fn enter(&self) -> Result<MutexGuard<'_, Core>, Errno> {
        let mut core = self.locked()?;
        core.progress();
        Ok(core)
    }

    /// Whether this is no child, forked since.
    pub(super) fn is_home(&self) -> bool {
        sys::fork::generation() == self.home
    }

    pub(super) fn locked(&self) -> Result<MutexGuard<'_, Core>, Errno> {
        if !self.is_home() {
            return Err(Errno::NOTCONN);
        }
        Ok(self.core.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// At the end of a call: sees to it that somebody is woken by what comes. Who has nobody to wake goes on when the owner has left, as
    /// the [deputy](Self::stand_in).
    pub(super) fn settle(self: &Arc<Self>, mut core: MutexGuard<'_, Core>) {
        self.events.look(&core);
        let needed = core.watched || core.sleepers > 0 || self.events.are_wanted();
        if core.gone.is_some() || !needed || std::mem::replace(&mut core.armed, true) {
            return;
        }
        drop(core);
        let weak = Arc::downgrade(self);
        let asked = self.cq.notify(Box::new(move |_| {
            if let Some(inner) = weak.upgrade() {
                inner.stand_in(true);
            }
        }));
        if asked.is_err()
            && let Ok(mut core) = self.locked()
        {
            core.armed = false;
        }
    }

    /// Goes on in the owner's place; `was_asked` if the NIC calls because it was asked to.
    pub(super) fn stand_in(self: &Arc<Self>, was_asked: bool) {
        let Ok(mut core) = self.locked() else {
            return;
        };
        // With what was asked for yet: its entry is not in the queue. Once more for what the NIC gathers until its owner looks again.
        core.progress();
        core.progress();
        core.armed &= !was_asked;
        self.settle(core);
    }

    /// `of_stream`: for a call that sends or receives bytes. Calls `attempt` until it answers something else than `EAGAIN`, polling and then asleep on `bed`: what is told with the lock held.
    pub(super) fn until<T>(
        self: &Arc<Self>,
        deadline: Option<Instant>,
        to_write: bool,
        of_stream: bool,
        bed: impl Fn(&Core) -> Option<OwnedFd>,
        mut attempt: impl FnMut(&mut Core) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let mut spin = self.spinner.begin();
        loop {
            let mut core = self.enter()?;
            let result = attempt(&mut core);
            if !matches!(result, Err(Errno::AGAIN)) {
                self.settle(core);
                spin.hit();
                return result;
            }
            let more = core.more;
            drop(core);
            if sys::time::expired(deadline) {
                return Err(Errno::AGAIN);
            }
            if more || spin.again() {
                continue;
            }
            let slept = self.sleep(deadline, to_write, of_stream, &bed, &mut attempt);
            self.locked()?.sleepers -= 1;
            match slept {
                Some(Err(errno)) => return Err(errno),
                Some(Ok(value)) => return Ok(value),
                None => {}
            }
        }
    }

    /// One sleep of one more sleeper. `None` after it.
    fn sleep<T>(
        self: &Arc<Self>,
        deadline: Option<Instant>,
        to_write: bool,
        of_stream: bool,
        bed: &impl Fn(&Core) -> Option<OwnedFd>,
        attempt: &mut impl FnMut(&mut Core) -> Result<T, Errno>,
    ) -> Option<Result<T, Errno>> {
        // Asked first, looked at once more afterwards: what comes between wakes the handler.
        match self.locked() {
            Ok(mut core) => {
                core.sleepers += 1;
                self.settle(core);
            }
            Err(errno) => return Some(Err(errno)),
        }
        let mut core = match self.enter() {
            Ok(core) => core,
            Err(errno) => return Some(Err(errno)),
        };
        let result = attempt(&mut core);
        let fd = bed(&core);
        self.settle(core);
        if !matches!(result, Err(Errno::AGAIN)) {
            return Some(result);
        }
        let fd = fd.as_ref().map_or_else(|| self.face.as_fd(), AsFd::as_fd);
        match sys::double::sleep(fd, to_write, deadline) {
            Ok(_) => None,
            // As the kernel has it of `recv` and `send`, and not of what waits for events.
            Err(errno) if of_stream => goes_on(errno, deadline.is_some()).err().map(Err),
            Err(errno) => Some(Err(errno)),
        }
    }

    /// The call `waiter` waits no more.
    pub(super) fn forget_news(&self, waiter: u64) {
        if let Ok(mut core) = self.locked() {
            core.news.retain(|(of, _)| *of != waiter);
        }
    }

    pub(super) fn close(&self, until: Option<Instant>, resets: bool) {
        let Ok(mut core) = self.locked() else {
            return;
        };
        core.is_closed = true;
        for work in std::mem::take(&mut core.pending) {
            core.done.push(work.id, work.op(), Err(Errno::CANCELED));
        }
        core.progress();
        // As over TCP: the peer is not to take for the end of it what was not read. What was sent goes all the same.
        core.stream.wants_fin |= !resets && core.stream.unread_bytes == 0;
        core.progress();
        while !core.is_flushed() && !sys::time::expired(until) {
            drop(core);
            let pause: Timeout = Some(PAUSE);
            // A completion, or a grant; what it was `progress` finds.
            let _ = self.cq.wait(pause);
            match self.enter() {
                Ok(entered) => core = entered,
                Err(_) => return,
            }
        }
        core.lose(Errno::CONNRESET);
        core.show();
        core.tally = Tally::default();
        drop(core);
        if let Some(tcp) = &self.tcp {
            sys::socket::finish(tcp.as_fd());
        }
    }
}

const PAUSE: Duration = Duration::from_millis(20);
