//! Which descriptors are sockets of type `SOCK_VIA`.
//!
//! A socket has a descriptor of the kernel's, so that its number is taken: in the paper of `/dev/null`, here of a stand-in that can be polled.

use std::cell::Cell;
use std::net::SocketAddrV4;
use std::ops::Deref;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockWriteGuard};
use std::time::{Duration, Instant};

use sys::argument::Family;
use sys::errno::Errno;
use sys::fork::Place;
use sys::sync::Ordering;
use sys::sync::mapped::{AtomicU32, AtomicU64};
use via::provider::Driver;

use super::adapter::{Adapter, Borrow};
use super::fork::patiently;
use super::relay;
use super::socket::Socket;
use super::stream::Stream;
use super::variant::Variant;

mod dissolve;
pub mod sharing;

pub use dissolve::dissolve;

/// Whether this process has, or had, such a socket: all that others pay for them.
#[inline]
pub fn any() -> bool {
    ANY.load(Ordering::Relaxed) != 0
}

/// A socket with all its descriptors, and the calls on it that are under way. The last of them closes it, as the kernel does.
#[derive(Debug)]
pub struct Held {
    socket: Socket,
    /// The process that made it, as a generation of forks.
    home: u32,
}

impl Held {
    /// Whether it is this process's: a child of fork can only close it.
    #[inline]
    pub fn is_home(&self) -> bool {
        self.home == sys::fork::generation()
    }
}

impl Deref for Held {
    type Target = Socket;

    fn deref(&self) -> &Socket {
        &self.socket
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Others may have what is relayed; the pair tells when nobody does.
        if !self.is_home() || !has_table() {
            return;
        }
        if self.socket.is_relayed() {
            if self.socket.is_offered() {
                // A peer that is told of the close is refused after it.
                relay::offer::look();
            }
            return;
        }
        self.socket.close();
        if let Ok(stream) = self.socket.stream() {
            leave(stream);
        }
    }
}

/// A stream has been closed: the end of the process waits for what the NIC has not taken yet.
pub(super) fn leave(stream: &Arc<Stream>) {
    let mut closing = CLOSING.lock().unwrap_or_else(PoisonError::into_inner);
    closing.retain(|stream| !stream.is_drained());
    if !stream.is_drained() {
        closing.push(Arc::clone(stream));
    }
}

/// Whether calls on a descriptor are those of a socket of type `SOCK_VIA`. Takes no lock: a NIC closes descriptors of its own wherever it is.
#[inline]
pub fn is(fd: RawFd) -> bool {
    any() && has(&BITS, fd)
}

/// Whether it is one whose bytes go through the stand-in: calls that move some are the kernel's.
#[inline]
pub fn is_relayed(fd: RawFd) -> bool {
    any() && has(&RELAYED, fd)
}

#[inline]
fn has(bits: &'static [AtomicU64], fd: RawFd) -> bool {
    bit(bits, fd).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
}

/// The socket whose calls those on a descriptor are.
#[inline]
pub fn get(fd: RawFd) -> Option<Arc<Held>> {
    if is(fd) { find(fd) } else { None }
}

/// The socket of a descriptor, though it may be relayed.
#[inline]
pub fn known(fd: RawFd) -> Option<Arc<Held>> {
    if is(fd) || is_relayed(fd) {
        find(fd)
    } else {
        None
    }
}

#[inline]
fn find(fd: RawFd) -> Option<Arc<Held>> {
    let sockets = SOCKETS.read().unwrap_or_else(PoisonError::into_inner);
    sockets.get(usize::try_from(fd).ok()?)?.clone()
}

/// Makes `fd` a descriptor of that socket, or of none, in one step. What it was: to be dropped without a lock, which may close it.
fn swap(fd: RawFd, socket: Option<Arc<Held>>) -> Option<Arc<Held>> {
    let (own, shared) = (bit(&BITS, fd)?, bit(&RELAYED, fd)?);
    let place = usize::try_from(fd).ok()?;
    let mut sockets = SOCKETS.write().unwrap_or_else(PoisonError::into_inner);
    if sockets.len() <= place {
        sockets.resize(place + 1, None);
    }
    let relayed = socket.as_ref().map(|socket| socket.is_relayed());
    for ((word, bit), is) in [(own, Some(false)), (shared, Some(true))] {
        if relayed == is {
            word.fetch_or(bit, Ordering::Relaxed);
        } else {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
    }
    let replaced = std::mem::replace(sockets.get_mut(place)?, socket)?;
    let mut others = sockets.iter().flatten();
    if !others.any(|other| Arc::ptr_eq(other, &replaced)) && replaced.is_home() && has_table() {
        replaced.conceal();
    }
    Some(replaced)
}

fn bit(bits: &'static [AtomicU64], fd: RawFd) -> Option<(&'static AtomicU64, u64)> {
    let fd = usize::try_from(fd).ok()?;
    Some((bits.get(fd / 64)?, 1 << (fd % 64)))
}

/// The NIC of this process; opened at the first call, and again in a child of fork.
///
/// # Errors
/// As [`Adapter::open`].
pub fn adapter() -> Result<Arc<Adapter>, Errno> {
    let mut adapter = ADAPTER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(open) = adapter.as_ref().filter(|adapter| !adapter.is_closed()) {
        return Ok(Arc::clone(open));
    }
    let (driver, variant, borrow) = SOURCE.get().ok_or(Errno::NETDOWN)?;
    let open = Adapter::open(*driver, *variant, *borrow)?;
    *adapter = Some(Arc::clone(&open));
    Ok(open)
}

/// Says where [`adapter`] opens it; the first call counts.
pub fn install(driver: &'static dyn Driver, variant: Variant, borrow: Option<Borrow>) {
    let _ = SOURCE.set((driver, variant, borrow));
}

/// Whether [`install`] was called.
pub fn is_installed() -> bool {
    SOURCE.get().is_some()
}

/// Makes a socket.
///
/// # Errors
/// As [`Adapter::open`]; `EMFILE`.
pub fn create(family: Family) -> Result<RawFd, Errno> {
    insert(Socket::of(family, &adapter()?)).map_err(|(errno, _)| errno)
}

/// Gives a socket a descriptor.
///
/// # Errors
/// `EMFILE` and the like, with the socket. `ENETDOWN` in a child with its parent's memory, as after `vfork`, whose sockets these are not, and in a thread whose descriptors are its own.
pub(super) fn insert(mut socket: Socket) -> Result<RawFd, (Errno, Box<Socket>)> {
    if is_visitor() || is_apart() {
        return Err((Errno::NETDOWN, Box::new(socket)));
    }
    let descriptor = match socket.expose() {
        Ok(descriptor) => descriptor,
        Err(error) => {
            let errno = error.raw_os_error();
            let errno = errno.map_or(Errno::MFILE, Errno::from_raw_os_error);
            return Err((errno, Box::new(socket)));
        }
    };
    socket.set_number(descriptor.as_raw_fd().cast_unsigned());
    let home = sys::fork::generation();
    // In this order, for `is_visitor`.
    OWNER.store(std::process::id(), Ordering::Relaxed);
    HOME.store(home, Ordering::Release);
    ANY.store(1, Ordering::Release);
    let held = Arc::new(Held { socket, home });
    drop(swap(descriptor.as_raw_fd(), Some(Arc::clone(&held))));
    if let Ok(stream) = held.stream()
        && stream.wants_relay()
    {
        relay::asked(stream);
    }
    Ok(descriptor.into_raw_fd())
}

/// `fd` has been accepted from a `listener` that several processes have: a connection between those ends, which the listener's process relays.
pub fn taken(listener: &Held, fd: RawFd, ends: [SocketAddrV4; 2]) {
    let socket = listener.taken_from(ends);
    let home = listener.home;
    drop(swap(fd, Some(Arc::new(Held { socket, home }))));
}

/// Somebody polls `fd`, if it is one of ours.
#[inline]
pub fn watch(fd: RawFd) {
    if let Some(socket) = get(fd).filter(|socket| socket.is_home()) {
        socket.watch();
    }
}

/// Somebody polls many descriptors.
#[inline]
pub fn watch_all() {
    if !any() {
        return;
    }
    for socket in all() {
        socket.watch();
    }
}

/// The sockets of this process, and not those that its parent had.
fn all() -> Vec<Arc<Held>> {
    let sockets = SOCKETS.read().unwrap_or_else(PoisonError::into_inner);
    let ours = sockets.iter().flatten().filter(|socket| socket.is_home());
    ours.cloned().collect()
}

/// The sockets of a stream, of which there is one or none.
pub(super) fn of_stream(stream: &Stream) -> Vec<Arc<Held>> {
    let mut sockets = all();
    sockets.retain(|socket| matches!(socket.stream(), Ok(its) if stream.is(its)));
    sockets
}

/// Forgets a descriptor that is about to be closed, or replaced. To be dropped when it has been, which closes its socket if nobody else has it.
#[must_use = "the socket is closed when the descriptor is"]
#[inline]
pub fn remove(fd: RawFd) -> Option<Arc<Held>> {
    if any() { remove_there(fd) } else { None }
}

fn remove_there(fd: RawFd) -> Option<Arc<Held>> {
    if (!is(fd) && !is_relayed(fd)) || is_guest() {
        return None;
    }
    swap(fd, None)
}

/// `new` is about to be replaced by a duplicate of `old`, and counts as one from now on, so that no call in between meets the stand-in.
/// What it was is to be dropped when it has been replaced, as after [`remove`]; where that fails it is nothing of ours.
#[must_use = "the socket is closed when the descriptor is"]
pub fn replace(old: RawFd, new: RawFd) -> Option<Arc<Held>> {
    match known(old) {
        Some(socket) if !is_guest() => swap(new, Some(socket)),
        _ => remove(new),
    }
}

/// Forgets all from `first` to `last`, as [`remove`].
#[must_use = "the sockets are closed when the descriptors are"]
pub fn remove_range(first: u32, last: u32) -> Vec<Arc<Held>> {
    if !any() {
        return Vec::new();
    }
    let sockets = SOCKETS.read().unwrap_or_else(PoisonError::into_inner);
    let count = u32::try_from(sockets.len()).unwrap_or(u32::MAX);
    drop(sockets);
    (first..count.min(last.saturating_add(1)))
        .filter_map(|fd| remove(fd.cast_signed()))
        .collect()
}

/// `new` is a duplicate of `old` from now on. What it was before was closed by ways that we did not see.
pub fn duplicate(old: RawFd, new: RawFd) {
    if old != new {
        drop(replace(old, new));
    }
}

/// The process ends: closes everything, and gives peers a moment to take what they have not taken yet.
#[inline]
pub fn finish() {
    if any() {
        finish_all();
    }
}

fn finish_all() {
    if !is_owner() {
        return;
    }
    let mut streams = Vec::new();
    let deadline = Instant::now() + FINISH_TIME;
    sharing::finish(deadline);
    for socket in all().iter().filter(|socket| !socket.is_relayed()) {
        // Calls of other threads may be under way.
        socket.close();
        streams.extend(socket.stream().ok().map(Arc::clone));
    }
    let mut closing = CLOSING.lock().unwrap_or_else(PoisonError::into_inner);
    streams.append(&mut closing);
    drop(closing);
    while !streams.iter().all(|stream| stream.is_drained()) && Instant::now() < deadline {
        std::thread::yield_now();
    }
}

/// The table's locks.
pub(super) struct Locks {
    _sockets: RwLockWriteGuard<'static, Vec<Option<Arc<Held>>>>,
    _closing: MutexGuard<'static, Vec<Arc<Stream>>>,
    _adapter: MutexGuard<'static, Option<Arc<Adapter>>>,
}

/// Locks the table, for a fork.
pub(super) fn try_lock() -> Option<Locks> {
    Some(Locks {
        _sockets: patiently(|| SOCKETS.try_write().ok())?,
        _closing: patiently(|| CLOSING.try_lock().ok())?,
        _adapter: patiently(|| ADAPTER.try_lock().ok())?,
    })
}

/// This is a child of fork: what its parent has closed is the parent's to finish.
pub(super) fn part_from_parent() {
    if let Ok(mut closing) = CLOSING.try_lock() {
        closing.clear();
    }
}

fn is_owner() -> bool {
    OWNER.load(Ordering::Relaxed) == std::process::id()
}

/// Whether this is a child with its parent's memory, as after `vfork`.
fn is_visitor() -> bool {
    // Whoever sees what another thread has just stored of the first socket, of the process or of a child of fork, sees its owner, too: that is looked at last.
    ANY.load(Ordering::Acquire) != 0
        && HOME.load(Ordering::Acquire) == sys::fork::generation()
        && !is_owner()
}

/// Whether it is one that has descriptors of its own, or such a thread: what it does to them is no concern of the table's.
fn is_guest() -> bool {
    is_apart() || (is_visitor() && sys::fork::place() != Place::Sharer)
}

/// This thread has descriptors of its own from now on.
fn part() {
    APART.with(|apart| apart.set(true));
}

fn is_apart() -> bool {
    APART.with(Cell::get)
}

/// Whether the descriptors of this process are those of the table: it is the owner, or has that one's memory and descriptors, as after `clone` with both flags.
fn has_table() -> bool {
    is_owner() || (is_visitor() && !is_guest())
}

thread_local! {
    static APART: Cell<bool> = const { Cell::new(false) };
}

/// The process whose sockets these are; a child of fork has copies that it can only close.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// The same, as a generation of forks.
static HOME: AtomicU32 = AtomicU32::new(0);
static ANY: AtomicU32 = AtomicU32::new(0);
static SOCKETS: RwLock<Vec<Option<Arc<Held>>>> = RwLock::new(Vec::new());
/// One bit for each descriptor that the kernel gives out by default (`fs.nr_open`). Untouched pages cost nothing.
static BITS: [AtomicU64; 1 << 14] = [const { AtomicU64::new(0) }; 1 << 14];
/// The same for sockets that are relayed.
static RELAYED: [AtomicU64; 1 << 14] = [const { AtomicU64::new(0) }; 1 << 14];
/// Closed by the program, with something still to be said.
static CLOSING: Mutex<Vec<Arc<Stream>>> = Mutex::new(Vec::new());
static ADAPTER: Mutex<Option<Arc<Adapter>>> = Mutex::new(None);
static SOURCE: OnceLock<(&'static dyn Driver, Variant, Option<Borrow>)> = OnceLock::new();
/// How long the end of a program waits for peers that do not read.
pub(super) const FINISH_TIME: Duration = Duration::from_secs(2);
