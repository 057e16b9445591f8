//! Before another process has a socket of ours: from then on its bytes go through the stand-in.

use std::os::fd::{BorrowedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use sys::fds;
use sys::quiet::program_has_others;
use sys::relay::close_number;
use sys::socket::{inode, with_borrowed};
use sys::stream::closes_on_exec;
use sys::sync::Ordering;

use super::super::fork::patiently;
use super::super::relay;
use super::{BITS, FINISH_TIME, Held, RELAYED, SOCKETS, bit, get, is_owner, is_visitor};

/// Keeps all others from it.
#[derive(Debug)]
pub struct Lock {
    _sharing: MutexGuard<'static, ()>,
}

/// All of them, before a fork, and no other until that is over.
pub(crate) fn all() -> Option<Lock> {
    let lock = try_lock()?;
    for socket in super::all() {
        share(&socket);
        offer(&socket);
    }
    Some(lock)
}

/// None of them.
pub(crate) fn try_lock() -> Option<Lock> {
    let _sharing = patiently(|| SHARING.try_lock().ok())?;
    Some(Lock { _sharing })
}

/// All of them, to be used where we cannot follow.
pub fn everything() {
    if super::any() {
        let _sharing = lock();
        super::all().iter().for_each(share);
    }
}

/// All of them, and listeners: this thread is to have a table of descriptors of its own, by whose numbers it is to mean other files than the others do. Calls are the kernel's from now on, which tells
/// the tables apart, and what this thread closes is open here. Where it is the program's only thread nobody else means anything by those numbers, and all is as before.
pub fn part_thread() {
    if !program_has_others() {
        return;
    }
    if super::any() {
        let _sharing = lock();
        for socket in super::all() {
            share(&socket);
            offer(&socket);
        }
    }
    super::part();
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

/// Before a child of `vfork` is made, which can start no thread of ours.
pub fn before_vfork() {
    if super::any() && !is_visitor() {
        relay::prepare();
    }
}

/// Before this process becomes another program: all of them, with which others go on. Before a child of `vfork` does: those that it keeps open, at whatever number. Its parent's thread does it, for the child has descriptors of its own.
pub fn before_exec() {
    if super::any() && is_owner() {
        everything();
        return relay::leave(Instant::now() + FINISH_TIME);
    }
    if !super::any() || !is_visitor() {
        return;
    }
    let mut open = Vec::new();
    // What cannot be listed is not shared.
    let _ = fds::each(|fd| {
        let kept = |fd: BorrowedFd<'_>| !closes_on_exec(fd);
        if with_borrowed(fd, kept) == Some(true) {
            open.extend(with_borrowed(fd, inode).flatten());
        }
    });
    let mut sockets = super::all();
    sockets.retain(|socket| socket.inode().is_some_and(|inode| open.contains(&inode)));
    if !sockets.is_empty() {
        relay::ask(sockets);
    }
}

/// This process's calls can go on with what a peer leaves to it.
#[inline]
pub fn allow_to_follow() {
    relay::follow::allow();
}

/// For another thread.
pub(in crate::packet) fn on_behalf(sockets: &[Arc<Held>]) {
    let _sharing = lock();
    sockets.iter().for_each(share);
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
    if is_visitor() || socket.is_relayed() {
        return;
    }
    if socket.relay(&numbers(socket)).is_err() || !socket.is_relayed() {
        return;
    }
    note_relayed(socket);
}

/// A listener: the child accepts, too.
fn offer(socket: &Arc<Held>) {
    if !is_visitor() && !socket.is_relayed() && socket.offer().is_ok() && socket.is_relayed() {
        note_relayed(socket);
    }
}

fn note_relayed(socket: &Arc<Held>) {
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

/// The descriptors of a socket.
pub(in crate::packet) fn numbers(socket: &Arc<Held>) -> Vec<RawFd> {
    let sockets = SOCKETS.read().unwrap_or_else(PoisonError::into_inner);
    let places = (0..)
        .zip(sockets.iter())
        .filter(|(_, other)| is(other, socket));
    places.map(|(fd, _)| fd).collect()
}

/// The process ends: its own descriptors of what is relayed are closed, and what it wrote there is sent.
pub(super) fn finish(deadline: Instant) {
    let sockets = SOCKETS.read().unwrap_or_else(PoisonError::into_inner);
    let ours = |socket: &Arc<Held>| socket.is_home() && socket.is_relayed();
    for (fd, socket) in (0..).zip(sockets.iter()) {
        if socket.as_ref().is_some_and(ours) {
            close_number(fd);
        }
    }
    drop(sockets);
    relay::finish(deadline);
}

fn lock() -> MutexGuard<'static, ()> {
    SHARING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Held by who has sockets shared: one that is half done would be of no use to a child.
static SHARING: Mutex<()> = Mutex::new(());
