//! Before another process has a socket of ours: from then on its bytes go through the stand-in.

use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sys::relay::close_number;
use sys::socket::with_borrowed;
use sys::stream::closes_on_exec;
use sys::sync::Ordering;

use super::super::fork::patiently;
use super::super::relay;
use super::{BITS, Held, RELAYED, SOCKETS, bit, get, is_guest};

/// Keeps all others from it.
#[derive(Debug)]
pub struct Lock {
    _sharing: MutexGuard<'static, ()>,
}

/// All of them, before a fork, and no other until that is over.
pub(crate) fn all() -> Option<Lock> {
    let _sharing = patiently(|| SHARING.try_lock().ok())?;
    super::all().iter().for_each(share);
    Some(Lock { _sharing })
}

/// All of them, to be used where we cannot follow.
pub fn everything() {
    if super::any() {
        let _sharing = lock();
        super::all().iter().for_each(share);
    }
}

/// Those that a program inherits that this one starts.
pub fn inherited() {
    if super::any() {
        let _sharing = lock();
        let stays = |fd: &RawFd| with_borrowed(*fd, |fd| !closes_on_exec(fd)) == Some(true);
        for socket in super::all() {
            if numbers(&socket).iter().any(stays) {
                share(&socket);
            }
        }
    }
}

/// That of a descriptor which is about to be given away, or to be used where we cannot follow.
pub fn one(fd: RawFd) {
    if let Some(socket) = get(fd).filter(|socket| socket.is_home()) {
        let _sharing = lock();
        share(&socket);
    }
}

/// Where the kernel has no thread or descriptor left it stays this process's.
fn share(socket: &Arc<Held>) {
    if is_guest() || socket.is_relayed() {
        return;
    }
    if socket.relay(&numbers(socket)).is_err() || !socket.is_relayed() {
        return;
    }
    let sockets = SOCKETS.write().unwrap_or_else(PoisonError::into_inner);
    for (fd, _) in (0..)
        .zip(sockets.iter())
        .filter(|(_, other)| is(other, socket))
    {
        if let (Some((own, bit)), Some((shared, _))) = (bit(&BITS, fd), bit(&RELAYED, fd)) {
            shared.fetch_or(bit, Ordering::Relaxed);
            own.fetch_and(!bit, Ordering::Relaxed);
        }
    }
}

fn is(place: &Option<Arc<Held>>, socket: &Arc<Held>) -> bool {
    place
        .as_ref()
        .is_some_and(|other| Arc::ptr_eq(other, socket))
}

fn numbers(socket: &Arc<Held>) -> Vec<RawFd> {
    let sockets = SOCKETS.read().unwrap_or_else(PoisonError::into_inner);
    let places = (0..)
        .zip(sockets.iter())
        .filter(|(_, other)| is(other, socket));
    places.map(|(fd, _)| fd).collect()
}

/// The process ends: its own descriptors of what is relayed are closed, and what it wrote there is sent.
pub(super) fn finish(deadline: Instant) {
    let relayed = super::all();
    let relayed: Vec<_> = relayed
        .iter()
        .filter(|socket| socket.is_relayed())
        .collect();
    for fd in relayed.iter().flat_map(|socket| numbers(socket)) {
        close_number(fd);
    }
    relay::finish(deadline);
}

fn lock() -> MutexGuard<'static, ()> {
    SHARING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Held by who has sockets shared: one that is half done would be of no use to a child.
static SHARING: Mutex<()> = Mutex::new(());
