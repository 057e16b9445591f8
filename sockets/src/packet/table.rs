//! Which descriptors are sockets of type `SOCK_VIA`.
//!
//! A socket has a descriptor of the kernel's, so that its number is taken: in the paper of `/dev/null`, here of a stand-in that can be polled.

use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use sys::errno::Errno;
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU32;
use via::provider::Driver;

use super::adapter::{Adapter, Borrow};
use super::socket::Socket;
use super::variant::Variant;

/// Whether this process has, or had, such a socket: all that others pay for them.
#[inline]
pub fn any() -> bool {
    ANY.load(Ordering::Relaxed) != 0
}

/// The socket of a descriptor.
#[inline]
pub fn get(fd: RawFd) -> Option<Arc<Socket>> {
    if !any() {
        return None;
    }
    let sockets = SOCKETS.read().unwrap_or_else(PoisonError::into_inner);
    sockets.get(usize::try_from(fd).ok()?)?.clone()
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
    let place = usize::try_from(descriptor.as_raw_fd()).map_err(|_| Errno::BADF)?;
    let mut sockets = SOCKETS.write().unwrap_or_else(PoisonError::into_inner);
    if sockets.len() <= place {
        sockets.resize(place + 1, None);
    }
    if let Some(entry) = sockets.get_mut(place) {
        *entry = Some(Arc::new(socket));
    }
    OWNER.store(std::process::id(), Ordering::Relaxed);
    ANY.store(1, Ordering::Relaxed);
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
    let sockets = SOCKETS.try_read();
    for socket in sockets.iter().flat_map(|sockets| sockets.iter().flatten()) {
        socket.watch();
    }
}

/// Forgets a descriptor that is about to be closed, and closes its socket. The descriptor is the caller's to close.
pub fn remove(fd: RawFd) -> bool {
    if !any() || is_guest() {
        return false;
    }
    let mut sockets = SOCKETS.write().unwrap_or_else(PoisonError::into_inner);
    let entry = usize::try_from(fd)
        .ok()
        .and_then(|place| sockets.get_mut(place));
    let Some(socket) = entry.and_then(Option::take) else {
        return false;
    };
    // Of duplicates the last one closes it.
    let last = !sockets
        .iter()
        .flatten()
        .any(|other| Arc::ptr_eq(other, &socket));
    drop(sockets);
    if last && is_owner() {
        socket.close();
        let mut closing = CLOSING.lock().unwrap_or_else(PoisonError::into_inner);
        closing.retain(|socket| !socket.is_drained());
        if !socket.is_drained() {
            closing.push(socket);
        }
    }
    true
}

/// `new` is a duplicate of `old` from now on.
pub fn duplicate(old: RawFd, new: RawFd) {
    let (Some(socket), Ok(place)) = (get(old), usize::try_from(new)) else {
        return;
    };
    let mut sockets = SOCKETS.write().unwrap_or_else(PoisonError::into_inner);
    if sockets.len() <= place {
        sockets.resize(place + 1, None);
    }
    if let Some(entry) = sockets.get_mut(place) {
        *entry = Some(socket);
    }
}

/// The process ends: closes everything, and gives peers a moment to take what they have not taken yet.
pub fn finish() {
    if !any() || !is_owner() {
        return;
    }
    let mut sockets = SOCKETS.write().unwrap_or_else(PoisonError::into_inner);
    let mut all: Vec<_> = sockets.iter_mut().filter_map(Option::take).collect();
    drop(sockets);
    all.iter().for_each(|socket| socket.close());
    all.append(&mut CLOSING.lock().unwrap_or_else(PoisonError::into_inner));
    let deadline = Instant::now() + FINISH_TIME;
    while !all.iter().all(|socket| socket.is_drained()) && Instant::now() < deadline {
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
static ANY: AtomicU32 = AtomicU32::new(0);
static SOCKETS: RwLock<Vec<Option<Arc<Socket>>>> = RwLock::new(Vec::new());
/// Closed by the program, with something still to be said.
static CLOSING: Mutex<Vec<Arc<Socket>>> = Mutex::new(Vec::new());
static ADAPTER: Mutex<Option<Arc<Adapter>>> = Mutex::new(None);
static SOURCE: OnceLock<(&'static dyn Driver, Variant, Option<Borrow>)> = OnceLock::new();
/// How long the end of a program waits for peers that do not read.
const FINISH_TIME: Duration = Duration::from_secs(2);
