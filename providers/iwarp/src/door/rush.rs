//! Callers who come while whoever waits for them is busy with another, or about to wait again.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use via::{Error, NetAddress};

use super::caller::Caller;
use super::{Waiter, answers_to};

/// Who may come again soon, and who waits for that.
#[derive(Default)]
pub(super) struct Rush {
    /// Addresses at which somebody waited who has had a caller, and until when he may come for the next.
    lately: Vec<(NetAddress, Instant)>,
    /// In order of arrival, each until he is told that there is nobody.
    callers: VecDeque<(Caller, Instant)>,
}

impl Rush {
    /// A waiter has gone with his caller. Until when he may come again.
    pub(super) fn handle_gone(&mut self, address: NetAddress) -> Instant {
        let until = Instant::now() + LINGER;
        self.lately.retain(|(other, _)| *other != address);
        if self.lately.len() < LATELY_MAX {
            self.lately.push((address, until));
        }
        until
    }

    /// Keeps a caller for whom there is nobody right now, or hands him back where nobody is to be expected either.
    pub(super) fn keep(&mut self, caller: Caller, waiting: &VecDeque<Waiter>) -> Option<Caller> {
        let clients_of = waiting.iter().filter(|waiter| waiter.peer.is_none());
        let lately = self.lately.iter().map(|(address, _)| address);
        let is_expected = clients_of
            .map(|waiter| &waiter.address)
            .chain(lately)
            .any(|address| is_for(&caller, address));
        if caller.is_peer || !is_expected || self.callers.len() >= CALLERS_MAX {
            return Some(caller);
        }
        self.callers.push_back((caller, Instant::now() + LINGER));
        None
    }

    /// The first who may be led to one who waits for clients at `address`.
    pub(super) fn take(&mut self, address: &NetAddress) -> Option<Caller> {
        let index = self
            .callers
            .iter()
            .position(|(caller, _)| is_for(caller, address))?;
        self.callers.remove(index).map(|(caller, _)| caller)
    }

    /// When [`Rush::go_on`] has something to do.
    pub(super) fn until(&self) -> Option<Instant> {
        self.callers.front().map(|(_, until)| *until)
    }

    /// Forgets who was expected in vain, and sends away who has waited too long.
    pub(super) fn go_on(&mut self) {
        let now = Instant::now();
        self.lately.retain(|(_, until)| *until > now);
        while self.callers.front().is_some_and(|(_, until)| *until <= now) {
            if let Some((mut caller, _)) = self.callers.pop_front() {
                caller.send_away(Error::NoMatch);
            }
        }
    }

    /// Whoever waited comes for no other caller.
    pub(super) fn expect_nobody(&mut self) {
        self.lately.clear();
    }

    /// Whether anybody may still come for a caller.
    pub(super) fn is_open(&self) -> bool {
        !self.lately.is_empty()
    }
}

impl Drop for Rush {
    fn drop(&mut self) {
        for (caller, _) in &mut self.callers {
            caller.send_away(Error::NoMatch);
        }
    }
}

/// Whether one who waits for clients at `address` may have him.
fn is_for(caller: &Caller, address: &NetAddress) -> bool {
    !caller.is_peer
        && caller
            .ask
            .as_ref()
            .is_none_or(|ask| answers_to(address, &ask.remote))
}

/// How long one who waits again may take, and how long he is waited for.
pub(super) const LINGER: Duration = Duration::from_millis(500);
const LATELY_MAX: usize = 64;
/// Each holds a descriptor.
const CALLERS_MAX: usize = 64;
