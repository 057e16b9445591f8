//! Boards: bits in shared memory with which many senders tell one receiver which of its connections has something.
//!
//! A doorbell costs its sender and its receiver a system call each, and a look at a connection a line that is in no near cache. A receiver of thousands
//! of connections that are used in turn can afford neither. So a process that has many lends its peers a board. It has *leaves*, one for each set of
//! connections, and a leaf has a bit for each member, and above the bits a summary of a few lines, which is all that the receiver polls.
//!
//! Which bit is a connection's says the word with which its receiver [arms](crate::stream::Rx::arm_at): a [`Place`]. Who finds it there notes it, and
//! rings the doorbell only if the leaf says that its set sleeps.
//!
//! # Trust
//!
//! Whoever has the board can set any bit, or clear it, and say that a set sleeps or not. So it goes to processes of the same user only, who may do
//! worse to each other. A bit too many costs its receiver a look.

use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use crate::hidden::Hidden;
use crate::lock::{Guard, Lock};
use crate::mem::{Mapping, memfd};
use crate::quiet::Quiet;
use crate::sync::{Ordering, mapped::AtomicU32};
use crate::turn::Busy;

pub use leaf::{Leaf, Place};
pub use post::Post;

use layout::{LEN, Pages};
use post::Peers;

mod layout;
mod leaf;
#[cfg(all(test, loom))]
mod model;
mod post;
mod protocol;
#[cfg(all(test, not(loom)))]
mod tests;

/// Which board it is: the number of its inode, which no two that there are at a time have in common, for all sealed memory files are of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id(NonZeroU64);

/// Makes this process's board, if it has none; whether it has one now.
pub fn make() -> bool {
    let _quiet = Quiet::begin();
    lock().is_some_and(|mut boards| {
        if boards.own.is_none() {
            boards.own = Own::new();
        }
        boards.own.is_some()
    })
}

/// Calls `act` with this process's board, to be lent to a peer; `None` if there is none.
pub fn lend<R>(act: impl FnOnce(Id, BorrowedFd<'_>) -> R) -> Option<R> {
    if MADE.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let boards = lock()?;
    let own = boards.own.as_ref()?;
    Some(act(own.id, own.fd.as_fd()))
}

/// Maps the board that a peer has lent, once for all of its connections. `None` if it is none, or there are too many, or in a signal handler that came
/// into the same.
pub fn admit(fd: &Hidden) -> Option<Post> {
    lock()?.peers.admit(fd.as_fd())
}

/// A leaf of this process's board for a set; `None` if there is none.
pub fn claim() -> Option<Leaf> {
    let _quiet = Quiet::begin();
    let mut boards = lock()?;
    let own = boards.own.as_mut()?;
    let index = own.taken.trailing_ones();
    let leaf = own.pages.leaves.get(index as usize)?;
    own.taken |= 1 << index;
    leaf.words().begin();
    Some(Leaf::new(own.id, index, leaf))
}

/// A set does without its leaf from now on.
pub fn give_back(leaf: Leaf) {
    let _quiet = Quiet::begin();
    // Who sleeps on it, or on whose behalf it says so for ever, goes on relying on that.
    if !leaf.sleeps()
        && let Some(mut boards) = lock()
        && let Some(own) = &mut boards.own
        && own.id == leaf.board()
    {
        own.taken &= !(1 << leaf.index());
    }
}

/// In the child of a fork: the board is its parent's, whose peers write to it.
pub fn part_from_parent() {
    if let Some(mut boards) = lock() {
        boards.own = None;
        MADE.store(0, Ordering::Relaxed);
    }
}

/// Moves the board's descriptor away from `number`, if it is there.
pub fn step_aside(number: RawFd) {
    if MADE.load(Ordering::Relaxed) != 0
        && let Some(mut boards) = lock()
        && let Some(own) = &mut boards.own
        && own.fd.as_raw_fd() == number
        && own.fd.step_aside().is_err()
    {
        // There is no other number. What was lent goes on, and nothing is lent any more.
        boards.own = None;
        MADE.store(0, Ordering::Relaxed);
    }
}

/// Keeps the boards as they are, over a fork.
pub struct Still {
    _boards: Guard<'static, Boards>,
}

/// Nobody changes anything until the result is dropped; nothing is to be given back if this thread is at it, and a signal handler came in between.
///
/// # Errors
/// Another thread is just at it.
pub fn hold() -> Result<Option<Still>, Busy> {
    match BOARDS.try_lock_own() {
        Some(boards) => Ok(Some(Still { _boards: boards })),
        None if BOARDS.is_own() => Ok(None),
        None => Err(Busy),
    }
}

/// What this process has of boards.
struct Boards {
    own: Option<Own>,
    peers: Peers,
}

struct Own {
    fd: Hidden,
    id: Id,
    pages: &'static Pages,
    /// A bit for each leaf that has a set.
    taken: u64,
}

impl Own {
    fn new() -> Option<Self> {
        let fd = Hidden::new(memfd::create_as(NAME, LEN).ok()?).ok()?;
        let id = Id::of(fd.as_fd())?;
        let mapping = std::mem::ManuallyDrop::new(Mapping::shared(fd.as_fd(), LEN).ok()?);
        // SAFETY: the mapping is page-aligned, as long as the pages, consists of atomics, and is never unmapped.
        let pages = unsafe { &*mapping.start().cast::<Pages>() };
        MADE.store(1, Ordering::Relaxed);
        Some(Self {
            fd,
            id,
            pages,
            taken: 0,
        })
    }
}

impl Id {
    fn of(fd: BorrowedFd<'_>) -> Option<Self> {
        NonZeroU64::new(rustix::fs::fstat(fd).ok()?.st_ino).map(Self)
    }
}

/// Bounded: it may be taken by the thread that a signal handler came into.
fn lock() -> Option<Guard<'static, Boards>> {
    (0..TRIES).find_map(|_| {
        let boards = BOARDS.try_lock_own();
        if boards.is_none() {
            std::thread::yield_now();
        }
        boards
    })
}

static BOARDS: Lock<Boards> = Lock::new(Boards {
    own: None,
    peers: Peers::NONE,
});
/// Whether this process has a board: most have none, and need not lock.
static MADE: AtomicU32 = AtomicU32::new(0);

const NAME: &str = "sovia-board";
const TRIES: u32 = 1000;
