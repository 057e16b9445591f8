//! Which descriptors are sockets of type `SOCK_VIA`.
//!
//! A socket has a descriptor of the kernel's, so that its number is taken: in the paper of `/dev/null`, here of a stand-in that can be polled.

use std::ops::Deref;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use sys::errno::Errno;
use sys::sync::Ordering;
use sys::sync::mapped::{AtomicU32, AtomicU64};
use via::provider::Driver;

use super::adapter::{Adapter, Borrow};
use super::socket::Socket;
use super::stream::Stream;
use super::variant::Variant;

/// Whether this process has, or had, such a socket: all that others pay for them.
#[inline]
pub fn any() -> bool {
    ANY.load(Ordering::Relaxed) != 0
}

/// A socket with all its descriptors, and the calls on it that are under way. The last of them closes it, as the kernel does.
#[derive(Debug)]
pub struct Held(Socket);

impl Deref for Held {
    type Target = Socket;

    fn deref(&self) -> &Socket {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !is_owner() {
            return;
        }
        self.0.close();
        let mut closing = CLOSING.lock().unwrap_or_else(PoisonError::into_inner);
        closing.retain(|stream| !stream.is_drained());
        if let Ok(stream) = self.0.stream()
            && !stream.is_drained()
        {
            closing.push(Arc::clone(stream));
        }
    }
}

/// Whether a descriptor is a socket of type `SOCK_VIA`. Takes no lock: a NIC closes descriptors of its own wherever it is.
#[inline]
pub fn is(fd: RawFd) -> bool {
    any() && bit(fd).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
}

/// The socket of a descriptor.
#[inline]
pub fn get(fd: RawFd) -> Option<Arc<Held>> {
    if !is(fd) {
        return None;
    }
    let sockets = SOCKETS.read().unwrap_or_else(PoisonError::into_inner);
    sockets.get(usize::try_from(fd).ok()?)?.clone()
}

fn put(fd: RawFd, socket: Arc<Held>) {
    let Ok(place) = usize::try_from(fd) else {
        return;
    };
    let mut sockets = SOCKETS.write().unwrap_or_else(PoisonError::into_inner);
    if sockets.len() <= place {
        sockets.resize(place + 1, None);
    }
    if let (Some(entry), Some((word, bit))) = (sockets.get_mut(place), bit(fd)) {
        *entry = Some(socket);
        word.fetch_or(bit, Ordering::Relaxed);
    }
}

fn bit(fd: RawFd) -> Option<(&'static AtomicU64, u64)> {
    let fd = usize::try_from(fd).ok()?;
    Some((BITS.get(fd / 64)?, 1 << (fd % 64)))
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

/// Makes a socket.
///
/// # Errors
/// As [`Adapter::open`]; `EMFILE`.
pub fn create() -> Result<RawFd, Errno> {
    insert(Socket::new(&adapter()?))
}

/// Gives a socket a descriptor.
///
/// # Errors
/// `EMFILE` and the like; the socket is closed then.
pub fn insert(mut socket: Socket) -> Result<RawFd, Errno> {
    let descriptor = match socket.expose() {
        Ok(descriptor) => descriptor,
        Err(error) => {
            socket.close();
            return Err(error
                .raw_os_error()
                .map_or(Errno::MFILE, Errno::from_raw_os_error));
        }
    };
    OWNER.store(std::process::id(), Ordering::Relaxed);
    HOME.store(sys::fork::generation(), Ordering::Relaxed);
    ANY.store(1, Ordering::Relaxed);
    put(descriptor.as_raw_fd(), Arc::new(Held(socket)));
    Ok(descriptor.into_raw_fd())
}

/// Somebody polls `fd`, if it is one of ours.
#[inline]
pub fn watch(fd: RawFd) {
    if let Some(socket) = get(fd) {
        socket.watch();
    }
}

/// Somebody polls many descriptors.
#[inline]
pub fn watch_all() {
    if !any() {
        return;
    }
    // Who is making one adds it afterwards; it is watched with the next call.
    let sockets: Vec<_> = match SOCKETS.try_read() {
        Ok(sockets) => sockets.iter().flatten().cloned().collect(),
        Err(_) => return,
    };
    for socket in sockets {
        socket.watch();
    }
}

/// Forgets a descriptor that is about to be closed, or replaced. To be dropped when it has been, which closes its socket if nobody else has it.
#[must_use = "the socket is closed when the descriptor is"]
pub fn remove(fd: RawFd) -> Option<Arc<Held>> {
    if !is(fd) || is_guest() {
        return None;
    }
    let mut sockets = SOCKETS.write().unwrap_or_else(PoisonError::into_inner);
    let (word, bit) = bit(fd)?;
    word.fetch_and(!bit, Ordering::Relaxed);
    let socket = sockets.get_mut(usize::try_from(fd).ok()?)?.take()?;
    let mut others = sockets.iter().flatten();
    if !others.any(|other| Arc::ptr_eq(other, &socket)) && is_owner() {
        socket.conceal();
    }
    Some(socket)
}

/// Whether the sockets are this process's: a child of fork can only close them.
#[inline]
pub fn is_home() -> bool {
    HOME.load(Ordering::Relaxed) == sys::fork::generation()
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

/// `new` is a duplicate of `old` from now on.
pub fn duplicate(old: RawFd, new: RawFd) {
    if let Some(socket) = get(old) {
        put(new, socket);
    }
}

/// The process ends: closes everything, and gives peers a moment to take what they have not taken yet.
pub fn finish() {
    if !any() || !is_owner() {
        return;
    }
    let sockets = SOCKETS.read().unwrap_or_else(PoisonError::into_inner);
    let all: Vec<_> = sockets.iter().flatten().cloned().collect();
    drop(sockets);
    let mut streams = std::mem::take(&mut *CLOSING.lock().unwrap_or_else(PoisonError::into_inner));
    for socket in &all {
        // Calls of other threads may be under way.
        socket.close();
        streams.extend(socket.stream().ok().map(Arc::clone));
    }
    let deadline = Instant::now() + FINISH_TIME;
    while !streams.iter().all(|stream| stream.is_drained()) && Instant::now() < deadline {
        std::thread::yield_now();
    }
}

fn is_owner() -> bool {
    OWNER.load(Ordering::Relaxed) == std::process::id()
}

/// Whether this is a child with its parent's memory, as after `vfork`: what it does to descriptors is no concern of the table's.
fn is_guest() -> bool {
    let adapter = ADAPTER.lock().unwrap_or_else(PoisonError::into_inner);
    !is_owner() && adapter.as_ref().is_some_and(|adapter| !adapter.is_closed())
}

/// The process whose sockets these are; a child of fork has copies that it can only close.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// The same, as a generation of forks.
static HOME: AtomicU32 = AtomicU32::new(0);
static ANY: AtomicU32 = AtomicU32::new(0);
static SOCKETS: RwLock<Vec<Option<Arc<Held>>>> = RwLock::new(Vec::new());
/// One bit for each descriptor that the kernel gives out by default (`fs.nr_open`). Untouched pages cost nothing.
static BITS: [AtomicU64; 1 << 14] = [const { AtomicU64::new(0) }; 1 << 14];
/// Closed by the program, with something still to be said.
static CLOSING: Mutex<Vec<Arc<Stream>>> = Mutex::new(Vec::new());
static ADAPTER: Mutex<Option<Arc<Adapter>>> = Mutex::new(None);
static SOURCE: OnceLock<(&'static dyn Driver, Variant, Option<Borrow>)> = OnceLock::new();
/// How long the end of a program waits for peers that do not read.
const FINISH_TIME: Duration = Duration::from_secs(2);
