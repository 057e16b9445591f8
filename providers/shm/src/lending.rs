//! Letting peers write regions on their own, and taking that back.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};

use proto::setup::{MESSAGE_MAX, Message};
use sys::mem::Memory;
use sys::net::Sent;
use sys::segment::GRANTS;
use sys::sync::{AtomicU64, Ordering};
use via::MemHandle;
use via::provider::ViId;
use via::soft::{Goodbye, Service};

use crate::grants::{Granted, Grants, Slots};
use crate::peer::Peer;

/// What one NIC handle lends.
pub(crate) struct Lending {
    /// What the memory knows this NIC as.
    id: u64,
    /// Whoever grants regions, or takes them back and moves their memory, has this: what is granted is where the region is, and allowed when it is
    /// offered. The lock of a VI comes behind it. What it guards is the memory whose memfd peers were given, by its address.
    lent: Mutex<HashMap<u64, Weak<Memory>>>,
    /// What peers have asked for and nobody has looked at yet.
    asks: Mutex<Vec<Ask>>,
    /// Connections that ended in the middle of a write.
    parted: Mutex<Vec<Parted>>,
    /// How long a peer may be busy in a region that it has been told to leave.
    patience: Duration,
}

struct Ask {
    vi: ViId,
    peer: Arc<Peer>,
    handle: MemHandle,
}

struct Parted {
    grants: Arc<Grants>,
    slots: Slots,
    until: Instant,
}

impl Default for Lending {
    fn default() -> Self {
        Self {
            id: LAST_ID.fetch_add(1, Ordering::Relaxed),
            lent: Mutex::default(),
            asks: Mutex::default(),
            parted: Mutex::default(),
            patience: BUSY_MAX,
        }
    }
}

impl Lending {
    /// The peer connected to `vi` asks to write a region on its own; [`Lending::answer`] follows.
    pub(crate) fn ask(&self, vi: ViId, peer: &Arc<Peer>, handle: MemHandle) {
        let mut asks = lock(&self.asks);
        // An honest one asks for each region once.
        let its = asks.iter().filter(|ask| Arc::ptr_eq(&ask.peer, peer));
        if its.count() < GRANTS {
            asks.push(Ask {
                vi,
                peer: Arc::clone(peer),
                handle,
            });
        }
    }

    /// Answers who has asked, unless memory is being moved: whoever moves it answers afterwards.
    pub(crate) fn answer(&self, service: &dyn Service) {
        while !lock(&self.asks).is_empty() {
            let mut lent = match self.lent.try_lock() {
                Ok(lent) => lent,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            let asks = std::mem::take(&mut *lock(&self.asks));
            for ask in asks {
                self.grant(&mut lent, &ask, service);
            }
        }
    }

    /// Lets the peer write a region on its own, if it may write all of it anyway.
    fn grant(&self, lent: &mut HashMap<u64, Weak<Memory>>, ask: &Ask, service: &dyn Service) {
        let Ask { vi, peer, handle } = ask;
        let Some((memory, read)) = service.exposed(*vi, *handle) else {
            return;
        };
        let granted = Granted {
            handle: *handle,
            addr: memory.addr(),
        };
        let Some((slot, value)) = peer.grants.offer(granted) else {
            return;
        };
        // Without it the kernel copies, to wherever the region is.
        let fd = memory.lend(self.id).ok();
        if fd.is_some() {
            lent.insert(memory.addr(), Arc::downgrade(&memory));
        }
        let message = Message::MapReply {
            handle: handle.0,
            slot: slot as u32,
            value,
            addr: memory.addr(),
            len: memory.len() as u64,
            write: true,
            read,
        };
        if !say(peer, &message, fd.as_ref()) {
            // It never hears of it, so it is not busy there.
            let _unused = peer.grants.retract(|other| *other == granted);
        }
    }

    /// A connection ends, and with it what its peer was granted.
    pub(crate) fn part(&self, peer: &Peer) {
        let slots = peer.grants.close();
        let mut parted = lock(&self.parted);
        let now = Instant::now();
        parted.retain(|parted| parted.is_busy() && now < parted.until);
        let parting = Parted {
            grants: Arc::clone(&peer.grants),
            slots,
            until: now + self.patience,
        };
        if parting.is_busy() {
            parted.push(parting);
        }
    }

    /// Takes back what peers were granted of a region, and what a hostile one may have kept. `peers` lists the connections there are.
    pub(crate) fn revoke(
        &self,
        peers: impl FnOnce() -> Vec<Arc<Peer>>,
        handle: MemHandle,
        memory: &Memory,
        service: Option<&dyn Service>,
    ) {
        let mut lent = lock(&self.lent);
        let moves = lent.remove(&memory.addr()).is_some();
        let ends =
            |granted: &Granted| granted.handle == handle || moves && granted.addr == memory.addr();
        // Who connects later is granted what there is then. All are told before one is waited for.
        let told: Vec<_> = peers()
            .into_iter()
            .map(|peer| (peer.grants.retract(ends), peer))
            .collect();
        let until = Instant::now() + self.patience;
        for (slots, peer) in told {
            if !wait(&peer.grants, slots, until) {
                // It hangs in the middle of a write, or pretends to: its connection ends here.
                peer.close(Goodbye::Broken);
            }
        }
        self.await_parted();
        if moves {
            // They keep their mappings: from here on of other pages than ours.
            withdraw(memory);
        }
        drop(lent);
        if let Some(service) = service {
            self.answer(service);
        }
    }

    /// The NIC closes, after its connections: takes everything back.
    pub(crate) fn end(&self) {
        let mut lent = lock(&self.lent);
        lock(&self.asks).clear();
        self.await_parted();
        for memory in lent.drain().filter_map(|(_, memory)| memory.upgrade()) {
            // Nobody else's: it goes.
            if Arc::strong_count(&memory) > 1 {
                withdraw(&memory);
            }
        }
    }

    fn await_parted(&self) {
        // Their connections are over; and who pretends has only the mapping, which is about to be worth nothing.
        let parted = std::mem::take(&mut *lock(&self.parted));
        for Parted {
            grants,
            slots,
            until,
        } in parted
        {
            let _left = wait(&grants, slots, until);
        }
    }
}

impl Parted {
    fn is_busy(&self) -> bool {
        self.grants.is_busy(self.slots)
    }
}

/// What others have mapped of it is no longer this memory.
fn withdraw(memory: &Memory) {
    // It fails only where there is no memory for a copy: whoever was granted this one then reaches it on (docs/limitations.md).
    let _left = memory.unshare();
}

/// Waits until nothing is under way in these slots; `false` if there is at the end of the patience.
fn wait(grants: &Grants, slots: Slots, until: Instant) -> bool {
    while grants.is_busy(slots) {
        if Instant::now() > until {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

/// Whether the peer will hear it.
fn say(peer: &Peer, message: &Message, fd: Option<&OwnedFd>) -> bool {
    let mut bytes = [0; MESSAGE_MAX];
    let fds: Vec<_> = fd.into_iter().map(AsFd::as_fd).collect();
    let sent = peer.conn.send(message.encode(&mut bytes), &fds);
    matches!(sent, Ok(Sent::Whole))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

static LAST_ID: AtomicU64 = AtomicU64::new(0);
const BUSY_MAX: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests;
