//! `epoll` over connections with rings.
//!
//! The kernel's instance stays the arbiter: it has every member, it says which calls fail, and whoever sleeps, sleeps in it. Here each instance
//! that we see is mirrored ([`Set`]). A member that only the kernel knows is registered there as the program said, and its events are passed on.
//! A connection with rings is *captured*: it is registered once, for input and hang-up, with a token of ours for data. From then on its events
//! are worked out from memory, and changing what it is waited for is no system call.
//!
//! Captured members that were active lately are *hot*: each wait looks at them. Before it sleeps, a wait arms them, and they are cold: their
//! doorbells make the kernel report their tokens, which makes them hot again. Idle connections cost nothing. Most looks at a hot member compare one
//! count (`members/hot.rs`), and after a sleep those are hot again at once that were busy before (`members/rouse.rs`). Of a set with many connections cold
//! members are noted on a board that each wait looks at, and ring only while it sleeps (`members/board.rs`).

use std::os::fd::RawFd;
use std::time::Duration;

use sys::errno::Errno;

pub mod arrival;
mod control;
pub mod departure;
mod fork;
pub mod given;
mod member;
mod members;
mod places;
mod record;
mod set;
#[cfg(test)]
mod tests;
mod wait;

pub use control::{control, modify_without_rings};
pub use fork::{after_fork, before_fork, fork_depth};
pub(crate) use places::adopts;
pub use places::{
    before_close, before_close_range, before_exchange, concerns, created, duplicated, end_left,
    end_left_change, has_any, is_changing, is_reported_by_kernel, known, moved, rang, upgraded,
};
pub use set::Set;
pub use wait::wait;

/// An event, as C has it.
#[cfg_attr(target_arch = "x86_64", repr(C, packed))]
#[cfg_attr(not(target_arch = "x86_64"), repr(C))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Events, and when registering also [`EDGE`] and the like.
    pub events: u32,
    /// The program's.
    pub data: u64,
}

/// The kernel's part in a wait: `epoll_pwait`, with the program's signal mask.
pub trait Waiter {
    /// As `epoll_wait`; no timeout is for ever.
    ///
    /// # Errors
    /// As `epoll_wait`.
    fn wait(&self, events: &mut [Event], timeout: Option<Duration>) -> Result<usize, Errno>;
}

/// What `epoll_ctl` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// `EPOLL_CTL_ADD`.
    Add(Event),
    /// `EPOLL_CTL_DEL`.
    Delete,
    /// `EPOLL_CTL_MOD`.
    Modify(Event),
}

/// What a token is made of: a random number, the same in all processes that share the kernel's instance, and the number of a member.
mod token {
    use std::hash::{BuildHasher, Hasher, RandomState};
    use std::sync::OnceLock;

    use sys::quiet::once;

    /// The data under which the kernel knows a member.
    pub(super) fn of(member: u32) -> u64 {
        prefix() | u64::from(member)
    }

    /// Which member a token stands for; `None` for data of the program.
    #[inline]
    pub(super) fn member(data: u64) -> Option<u32> {
        (data & !MASK == prefix()).then_some((data & MASK) as u32)
    }

    /// Whether there is a token among the first `count` events: of a member that is being captured just now, for one.
    #[inline]
    pub(super) fn any(events: &[super::Event], count: usize) -> bool {
        events
            .iter()
            .take(count)
            .any(|event| member(event.data).is_some())
    }

    /// Has the program's own of the first `count` events be the first; how many they are.
    #[cold]
    pub(super) fn leave_out(events: &mut [super::Event], count: usize) -> usize {
        let mut kept = 0;
        for at in 0..count.min(events.len()) {
            if events
                .get(at)
                .is_some_and(|event| member(event.data).is_none())
            {
                events.swap(kept, at);
                kept += 1;
            }
        }
        kept
    }

    /// Goes on with the tokens of the program before this one; whether this one has none of its own.
    pub(super) fn inherit(prefix: u64) -> bool {
        prefix & MASK == 0 && prefix >> 63 == 1 && *PREFIX.get_or_init(|| prefix) == prefix
    }

    #[inline]
    pub(super) fn prefix() -> u64 {
        // The standard library seeds its hasher from the kernel's random numbers. Never 0, as programs like small data.
        *once(&PREFIX, || {
            (RandomState::new().build_hasher().finish() | 1 << 63) & !MASK
        })
    }

    static PREFIX: OnceLock<u64> = OnceLock::new();
    const MASK: u64 = (1 << 24) - 1;
    pub(super) const MEMBERS_MAX: usize = 1 << 24;
}

/// Where an instance is, as its descriptor.
type Instance = RawFd;

/// Report changes, not states.
pub const EDGE: u32 = 1 << 31;
/// Report once, until modified.
pub const ONCE: u32 = 1 << 30;
/// Of several instances only some need be woken.
pub const EXCLUSIVE: u32 = 1 << 28;
/// Everything that is no event.
const FLAGS: u32 = 0xf << 28;

/// Who does not wait at all has so many idle members looked at.
const FEW: usize = 64;
