//! Connections that other processes have, too, or something that we cannot follow: their bytes go through the pair of Unix sockets whose one end is at the
//! program's number, so that plain calls of the kernel's do ([decision 22](../../../docs/decisions/0022-relay.md)).
//!
//! One thread moves them, of the process that has the VI. It sleeps until a pair or a stream has changed. A relay never ends before its connection: nobody
//! knows who else has the descriptor.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sys::relay::{Pair, Watch};
use sys::sync::{AtomicBool, Ordering};
use sys::{fork, quiet};

use self::carry::Relay;
use self::offer::Offer;
use super::fork::patiently;
use super::show::Show;
use super::stream::Stream;
use super::table::{self, Held, sharing};

mod carry;
pub(super) mod follow;
mod leave;
pub mod offer;

/// Begins to relay `stream`, of which the program's descriptors are `numbers`. Whether it is relayed now by this call.
///
/// # Errors
/// The kernel's: no thread or descriptor can be had. Then all is as before.
pub(super) fn begin(stream: &Arc<Stream>, show: &Show, numbers: &[RawFd]) -> io::Result<bool> {
    let (name, watch) = lock().enter()?;
    let bell = Bell::new(name, &watch);
    let mut pair = None;
    let begun = stream.begin_relay(show, || {
        pair = Some(show.open(bell.clone(), || Pair::instead(numbers))?);
        io::Result::Ok(())
    })?;
    let Some((pair, shut)) = pair.zip(begun) else {
        return Ok(false);
    };
    let relay = Arc::new(Relay::new(Arc::clone(stream), pair, bell, shut));
    let added = watch.add(relay.pair(), name);
    lock().relays.insert(name, Arc::clone(&relay));
    if added.is_err() {
        stream.abort();
    }
    // What the program has been shown is there when this returns.
    attend(name, &relay, &watch);
    Ok(true)
}

/// Rings for one relay.
#[derive(Clone, Debug)]
pub(super) struct Bell {
    name: u64,
    rung: Arc<AtomicBool>,
    watch: Arc<Watch>,
}

impl Bell {
    fn new(name: u64, watch: &Arc<Watch>) -> Self {
        Self {
            name,
            rung: Arc::default(),
            watch: Arc::clone(watch),
        }
    }

    /// Its stream has changed. Whoever rings may hold the stream's lock.
    pub(super) fn ring(&self) {
        // Pairs with `hush`: what was changed before is seen by who then looks.
        if !self.rung.swap(true, Ordering::AcqRel) {
            let mut rung = RUNG.lock().unwrap_or_else(PoisonError::into_inner);
            rung.push(self.name);
            drop(rung);
            self.watch.ring();
        }
    }

    /// From now on it rings again.
    fn hush(&self) {
        self.rung.swap(false, Ordering::AcqRel);
    }
}

struct State {
    relays: BTreeMap<u64, Arc<Relay>>,
    offers: BTreeMap<u64, Arc<Offer>>,
    watch: Option<Arc<Watch>>,
    /// The thread is of this generation of forks.
    begun_in: Option<u32>,
    next: u64,
}

impl State {
    /// Another relay, and the thread that moves its bytes.
    fn enter(&mut self) -> io::Result<(u64, Arc<Watch>)> {
        let watch = self.prepare()?;
        self.next += 1;
        Ok((self.next, watch))
    }

    /// The thread runs from now on.
    fn prepare(&mut self) -> io::Result<Arc<Watch>> {
        let generation = fork::generation();
        if self.begun_in != Some(generation) {
            let watch = Arc::new(Watch::new()?);
            let watched = Arc::clone(&watch);
            quiet::spawn("sovia-relay", None, move || run(&watched))?;
            self.watch = Some(watch);
            self.begun_in = Some(generation);
        }
        let watch = self.watch.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::clone(watch))
    }
}

/// Has the thread run, if it may be had.
pub(super) fn prepare() {
    let _ = lock().prepare();
}

/// Has the thread share these, if it runs, and waits until it has done so.
pub(super) fn ask(sockets: Vec<Arc<Held>>) {
    let state = lock();
    let Some(watch) = state.watch.clone() else {
        return;
    };
    drop(state);
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    asked.push(sockets);
    watch.ring();
    // It has nobody to wait for.
    while !asked.is_empty() {
        asked = DONE.wait(asked).unwrap_or_else(PoisonError::into_inner);
    }
}

/// Does what a child of `vfork` asks for.
fn answer() {
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    while let Some(sockets) = asked.first().cloned() {
        drop(asked);
        sharing::on_behalf(&sockets);
        asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
        // Others are added at the end meanwhile.
        asked.remove(0);
    }
    DONE.notify_all();
}

fn run(watch: &Watch) {
    loop {
        let mut changed = Vec::new();
        watch.wait(|name| changed.push(name));
        answer();
        follow::noted().iter().for_each(see_to);
        changed.append(&mut RUNG.lock().unwrap_or_else(PoisonError::into_inner));
        for name in changed {
            let state = lock();
            let relay = state.relays.get(&name).cloned();
            let offer = state.offers.get(&name).cloned();
            drop(state);
            if let Some(relay) = relay {
                attend(name, &relay, watch);
            } else if let Some(offer) = offer {
                offer::see_to(name, &offer);
            }
        }
    }
}

/// A stream is to be relayed: its peer leaves it to this process, or something has come that the kernel has calls for. One that the program has not accepted yet
/// asks again. Whether it will be.
pub(super) fn asked(stream: &Arc<Stream>) -> bool {
    let noted = follow::note(stream);
    if noted && let Ok(watch) = lock().prepare() {
        watch.ring();
    }
    noted
}

fn see_to(stream: &Arc<Stream>) {
    let relays = lock().relays.clone();
    match relays.iter().find(|(_, relay)| relay.stream().is(stream)) {
        Some((name, relay)) => attend(*name, relay, &relay.bell().watch),
        None => sharing::on_behalf(&table::of_stream(stream)),
    }
}

fn attend(name: u64, relay: &Relay, watch: &Watch) {
    relay.bell().hush();
    if relay.carry() {
        return;
    }
    watch.remove(relay.pair());
    if let Some(far) = relay.far().get() {
        watch.remove(far);
    }
    let over = lock().relays.remove(&name);
    drop(over);
    leave::told();
}

/// The program ends: what its processes have written is sent, until `deadline`; what others go on to write is lost.
pub(super) fn finish(deadline: Instant) {
    leave::all(deadline);
    loop {
        let relays = lock().relays.clone();
        for (name, relay) in &relays {
            attend(*name, relay, &relay.bell().watch);
        }
        let busy = relays.values().any(|relay| relay.is_busy());
        if !busy || Instant::now() >= deadline {
            return;
        }
        std::thread::yield_now();
    }
}

/// The program becomes another: what it relays goes on without this process.
pub(super) fn leave(deadline: Instant) {
    leave::all(deadline);
}

/// The registry's locks.
pub(super) struct Locks {
    state: MutexGuard<'static, State>,
    rung: MutexGuard<'static, Vec<u64>>,
    asked: MutexGuard<'static, Vec<Vec<Arc<Held>>>>,
    noted: follow::Lock,
}

/// Locks it, for a fork.
pub(super) fn try_lock() -> Option<Locks> {
    Some(Locks {
        state: patiently(|| STATE.try_lock().ok())?,
        rung: patiently(|| RUNG.try_lock().ok())?,
        asked: patiently(|| ASKED.try_lock().ok())?,
        noted: patiently(follow::try_lock)?,
    })
}

/// In the child: the relays are its parent's, whose end shows when nobody else has ours.
pub(super) fn in_child(mut locks: Locks) {
    locks.rung.clear();
    locks.asked.clear();
    for stream in locks.noted.drain(..) {
        std::mem::forget(stream);
    }
    locks.state.watch = None;
    for offer in std::mem::take(&mut locks.state.offers).into_values() {
        offer.pair().close_copy();
        std::mem::forget(offer);
    }
    for relay in std::mem::take(&mut locks.state.relays).into_values() {
        relay.pair().close_copy();
        if let Some(far) = relay.far().get() {
            far.close_copy();
        }
        std::mem::forget(relay);
    }
}

fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

static STATE: Mutex<State> = Mutex::new(State {
    relays: BTreeMap::new(),
    offers: BTreeMap::new(),
    watch: None,
    begun_in: None,
    next: 0,
});
/// What children of `vfork` want to be shared, until it is.
static ASKED: Mutex<Vec<Vec<Arc<Held>>>> = Mutex::new(Vec::new());
static DONE: Condvar = Condvar::new();
/// Whose streams have changed.
static RUNG: Mutex<Vec<u64>> = Mutex::new(Vec::new());

#[cfg(all(test, not(loom)))]
mod tests;
