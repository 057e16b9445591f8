//! Noticing that this process is a forked child.

use std::io;
use std::sync::OnceLock;

use crate::quiet::once;
use crate::sync::{Ordering, mapped::AtomicU32};

pub use own::{OWN_FDS, Own, OwnFd};

mod own;

/// How many forks lie between the process that first called [`watch`] and this one.
///
/// An object that must not work in a forked child remembers the value it was created under and compares: one relaxed load. The child's
/// only thread is the one that ran the handler, so program order is all the ordering needed.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Starts counting; cheap when done before. Whoever stores a [`generation`] calls this first.
///
/// Covers `fork` of the C library, and so what is built on it. A raw `clone` system call runs no handlers and goes unnoticed;
/// a `vfork` child shares its parent's memory and is, rightly, not counted.
///
/// # Errors
/// `ENOMEM` if the C library could not note the handler.
pub fn watch() -> io::Result<()> {
    static REGISTERED: OnceLock<i32> = OnceLock::new();
    let errno = *once(&REGISTERED, || {
        // SAFETY: the handler is a plain function that lives as long as the program (the C library forgets it when the object that holds
        // it is unloaded), takes nothing, and does atomic operations and system calls, which are async-signal-safe as a fork handler must be.
        unsafe { libc::pthread_atfork(None, None, Some(count)) }
    });
    match errno {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Whether this is the process that [`settle`] was last called in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is.
    Home,
    /// A child with the parent's memory and descriptors, as after `clone` with both flags: all but a thread.
    Sharer,
    /// A child with the parent's memory and descriptors of its own, as after `vfork`: what it changes is the parent's.
    Guest,
    /// A child with a memory of its own, by a way of forking that nobody saw.
    Child,
}

/// The number of this process, not 0.
pub fn here() -> u32 {
    rustix::process::getpid().as_raw_pid().cast_unsigned()
}

/// Where this is. One system call, and one more in a child that has its parent's memory.
pub fn place() -> Place {
    let here = here();
    let home = HOME.load(Ordering::Relaxed);
    if home == here {
        return Place::Home;
    }
    match WIPED.get() {
        Some(Some(Page(page))) if page.load(Ordering::Relaxed) == 0 => Place::Child,
        _ if shares_descriptors(home, here) => Place::Sharer,
        _ => Place::Guest,
    }
}

/// Whether this is [`Place::Home`], as far as can be told without a system call. A child that has its parent's memory, and was made by instructions of the
/// program's own, is mistaken for its parent.
#[inline]
pub fn seems_home() -> bool {
    let has_own_memory =
        || matches!(WIPED.get(), Some(Some(Page(page))) if page.load(Ordering::Relaxed) != 0);
    GUESTS.load(Ordering::Relaxed) == 0 && has_own_memory()
}

/// A child with this process's memory is about to be made: from now on nobody is taken to be at home who does not ask.
pub fn expect_guest() {
    GUESTS.store(1, Ordering::Relaxed);
}

/// Whether two processes have one table of descriptors. A kernel or filter without the call says no, as is right after `vfork`.
fn shares_descriptors(one: u32, other: u32) -> bool {
    // SAFETY: compares, by the numbers of processes.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_FILES, 0, 0) };
    order == 0
}

/// `linux/kcmp.h`.
const KCMP_FILES: libc::c_int = 2;

/// Makes this process the one that [`place`] compares with.
pub fn settle() {
    let here = here();
    HOME.store(here, Ordering::Relaxed);
    // Without quiet: the first call is in our constructor, and the program has no signal handlers before it begins.
    if let Some(Page(page)) = WIPED.get_or_init(Page::new) {
        page.store(1, Ordering::Relaxed);
    }
}

/// A word that is 0 in the child of a fork of any kind.
struct Page(&'static AtomicU32);

impl Page {
    fn new() -> Option<Self> {
        use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
        let len = rustix::param::page_size();
        // SAFETY: a new mapping, which stays for ever; the advice says what becomes of it in a child. Its first word is zero, and valid.
        unsafe {
            let page = mmap_anonymous(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
            .ok()?;
            madvise(page, len, Advice::LinuxWipeOnFork).ok()?;
            Some(Self(&*page.cast()))
        }
    }
}

static HOME: AtomicU32 = AtomicU32::new(0);
/// Whether there may be, or have been, children with this process's memory. On other processors `vfork` is not seen.
static GUESTS: AtomicU32 = AtomicU32::new(!cfg!(target_arch = "x86_64") as u32);
static WIPED: OnceLock<Option<Page>> = OnceLock::new();

extern "C" fn count() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    own::close_inherited();
    // Without one of its own the child would count in its parent's.
    let _ = crate::ledger::part_from_parent();
}

static GENERATION: AtomicU32 = AtomicU32::new(0);
