//! Descriptors that a program must not notice.
//!
//! A library inside somebody's program needs descriptors of its own. They must not take the low numbers that the program expects to get
//! next, nor be closed by its "close everything I did not open". So they live at the top of the range, and the ones there are
//! are known to [`is_hidden`].

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_getfd, fcntl_setfd};

use crate::limits;
use crate::sync::{
    Ordering,
    mapped::{AtomicU32, AtomicU64},
};

/// A descriptor of ours, at a high number, closed on exec unless told otherwise.
///
/// Closing it does not go through the C library: a library that stands in front of `close` would take it for the program's.
#[derive(Debug)]
pub struct Hidden(RawFd);

impl Hidden {
    /// Moves `fd` out of the program's way.
    ///
    /// # Errors
    /// `EMFILE` if there is no number left at the top.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        let low = Raw(fd.into_raw_fd());
        // SAFETY: `low` owns the descriptor until the end of this function.
        let borrowed = unsafe { BorrowedFd::borrow_raw(low.0) };
        Ok(Self::adopt(duplicate_high(borrowed)?))
    }

    /// One that a NIC needs: [`Hidden::if_possible`] after [`hide_those_of_nics`], else where it is and for all to see.
    pub fn of_a_nic(fd: OwnedFd) -> Self {
        match THOSE_OF_NICS.load(Ordering::Relaxed) {
            0 => Self(fd.into_raw_fd()),
            _ => Self::if_possible(fd),
        }
    }

    /// Moves `fd` out of the program's way if there is a number left at the top. Else it stays, and nothing that the program closes or duplicates meets it.
    pub fn if_possible(fd: OwnedFd) -> Self {
        match duplicate_high(fd.as_fd()) {
            Ok(high) => {
                drop(Raw(fd.into_raw_fd()));
                Self::adopt(high)
            }
            Err(_) => Self::adopt(fd),
        }
    }

    /// A duplicate of it that is not hidden, for somebody else. Past the C library, which knows nothing of this one.
    ///
    /// # Errors
    /// The kernel's.
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        Ok(fcntl_dupfd_cloexec(self, 0)?)
    }

    /// Gives it up, where it is.
    #[must_use]
    pub fn into_fd(self) -> OwnedFd {
        let fd = ManuallyDrop::new(self).0;
        mark(fd, false);
        // SAFETY: `self` owned it, and does no more.
        unsafe { OwnedFd::from_raw_fd(fd) }
    }

    /// Takes over a descriptor that is at a high number already, inherited over an exec.
    pub fn adopt(fd: OwnedFd) -> Self {
        let fd = fd.into_raw_fd();
        mark(fd, true);
        Self(fd)
    }

    /// As [`Hidden::adopt`], by number; `None` if nothing is open there.
    pub fn adopt_number(fd: RawFd) -> Option<Self> {
        // SAFETY: a number that is open, of which nobody in this process knows: it came over exec, and is marked as ours from now on.
        crate::socket::is_open(fd).then(|| Self::adopt(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Moves it elsewhere, because the program wants to put its own descriptor at this number.
    ///
    /// # Errors
    /// `EMFILE` if there is no number left.
    pub fn step_aside(&mut self) -> io::Result<()> {
        // SAFETY: `self` owns the descriptor.
        let borrowed = unsafe { BorrowedFd::borrow_raw(self.0) };
        let inherited = !fcntl_getfd(borrowed)?.contains(FdFlags::CLOEXEC);
        let high = fcntl_dupfd_cloexec(borrowed, self.0.saturating_add(1))
            .or_else(|_| duplicate_high(borrowed))?;
        let high = high.into_raw_fd();
        mark(high, true);
        drop(std::mem::replace(self, Self(high)));
        if inherited {
            self.inherit(true)?;
        }
        Ok(())
    }

    /// Whether a program that this one turns into by `exec` inherits it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn inherit(&self, yes: bool) -> io::Result<()> {
        let fd = self.as_fd();
        let flags = fcntl_getfd(fd)?;
        let wanted = if yes {
            flags - FdFlags::CLOEXEC
        } else {
            flags | FdFlags::CLOEXEC
        };
        if wanted != flags {
            fcntl_setfd(fd, wanted)?;
        }
        Ok(())
    }

    /// The descriptor, for a call.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: `self` owns the descriptor as long as it lives.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }
}

impl AsFd for Hidden {
    fn as_fd(&self) -> BorrowedFd<'_> {
        Self::as_fd(self)
    }
}

impl AsRawFd for Hidden {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        mark(self.0, false);
        drop(Raw(self.0));
    }
}

/// Has NICs hide their descriptors from now on, too: this is somebody's program, which knows nothing of them.
#[inline]
pub fn hide_those_of_nics() {
    THOSE_OF_NICS.store(1, Ordering::Relaxed);
}

/// A child of fork has closed one of its parent's.
pub(crate) fn forget(fd: RawFd) {
    mark(fd, false);
}

/// Whether `fd` is one of ours, so that the program's calls must not touch it.
#[inline]
pub fn is_hidden(fd: RawFd) -> bool {
    let Some((word, bit)) = place(fd) else {
        return false;
    };
    BITS.get(word)
        .is_some_and(|bits| bits.load(Ordering::Relaxed) & bit != 0)
}

/// All of them, in order.
pub fn list() -> impl Iterator<Item = u32> {
    (0u32..).zip(&BITS).flat_map(|(word, bits)| {
        let bits = bits.load(Ordering::Relaxed);
        (0..64)
            .filter(move |bit| bits & (1 << bit) != 0)
            .map(move |bit| word * 64 + bit)
    })
}

/// How many there are.
pub fn count() -> usize {
    COUNT.load(Ordering::Relaxed) as usize
}

/// How many more there may be, about, where the program has descriptors up to `fd`: as many numbers are free above that, unless it has some of them.
pub fn left_above(fd: RawFd) -> usize {
    let from = base().max(fd.saturating_add(1));
    let room = end().saturating_sub(from).max(0).unsigned_abs() as usize;
    room.saturating_sub(count())
}

/// The least number at which they live: in the upper half of what the soft limit allows, and no higher than [`BASE_MAX`]. The limit is asked for at first use, and
/// again where it may have changed ([`ask_again`]).
pub fn base() -> RawFd {
    let end = end();
    (end - end / 2).min(BASE_MAX)
}

/// All numbers are below this, as far as we know.
pub fn end() -> RawFd {
    // Not a `OnceLock`: a signal handler may come in between, and two who both ask first get the same.
    match END.load(Ordering::Relaxed) {
        0 => ask_for_end(),
        known => known.cast_signed(),
    }
}

/// Asks for the limit, which the program may have changed; whether ours have another [`base`] or [`end`] now.
pub fn ask_again() -> bool {
    let before = END.load(Ordering::Relaxed).cast_signed();
    ask_for_end() != before
}

#[cold]
fn ask_for_end() -> RawFd {
    let limit = limits::soft(libc::RLIMIT_NOFILE).map_or(LIMIT_MAX, |limit| limit.min(LIMIT_MAX));
    let end = u32::try_from(limit).unwrap_or(1).max(1);
    END.store(end, Ordering::Relaxed);
    end.cast_signed()
}

/// A duplicate at a high number, which is not hidden yet.
///
/// # Errors
/// `EMFILE` if there is no number left at the top.
pub(crate) fn duplicate_high(fd: BorrowedFd<'_>) -> rustix::io::Result<OwnedFd> {
    let made = fcntl_dupfd_cloexec(fd, base());
    if matches!(made, Err(Errno::INVAL | Errno::MFILE)) && ask_again() {
        return fcntl_dupfd_cloexec(fd, base());
    }
    made
}

fn mark(fd: RawFd, hidden: bool) {
    let Some((word, bit)) = place(fd) else {
        return;
    };
    let Some(bits) = BITS.get(word) else {
        return;
    };
    if hidden {
        let before = bits.fetch_or(bit, Ordering::Relaxed);
        COUNT.fetch_add(u32::from(before & bit == 0), Ordering::Relaxed);
    } else {
        let before = bits.fetch_and(!bit, Ordering::Relaxed);
        COUNT.fetch_sub(u32::from(before & bit != 0), Ordering::Relaxed);
    }
}

fn place(fd: RawFd) -> Option<(usize, u64)> {
    let fd = usize::try_from(fd).ok()?;
    Some((fd / 64, 1 << (fd % 64)))
}

/// Closes without the C library.
pub(crate) struct Raw(pub(crate) RawFd);

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: its maker gave the descriptor up to it.
        unsafe { rustix::io::close(self.0) };
    }
}

/// What the kernel allows by default (`fs.nr_open`).
const LIMIT_MAX: u64 = 1 << 20;

/// The kernel's table of descriptors has room up to the highest, in powers of two, and each fork copies it: at half of a million it would take 4 MB. Few programs
/// have so many of their own.
pub const BASE_MAX: RawFd = 4096;

/// Whether [`hide_those_of_nics`] was called.
static THOSE_OF_NICS: AtomicU32 = AtomicU32::new(0);

/// 0 before the first use.
static END: AtomicU32 = AtomicU32::new(0);

/// How many bits are set.
static COUNT: AtomicU32 = AtomicU32::new(0);

static BITS: [AtomicU64; (LIMIT_MAX / 64) as usize] =
    [const { AtomicU64::new(0) }; (LIMIT_MAX / 64) as usize];

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_up_or_duplicated_is_hidden_no_more() {
        let fd = OwnedFd::from(std::fs::File::open("/dev/null").expect("there"));
        let hidden = Hidden::if_possible(fd);
        assert!(hidden.as_raw_fd() >= base() && is_hidden(hidden.as_raw_fd()));
        let duplicate = hidden.duplicate().expect("a number");
        assert!(!is_hidden(duplicate.as_raw_fd()));
        let fd = hidden.into_fd();
        assert!(fd.as_raw_fd() >= base() && !is_hidden(fd.as_raw_fd()));
    }

    #[test]
    fn a_hidden_descriptor_is_high_and_known_and_keeps_its_heirs() {
        let fd = OwnedFd::from(std::fs::File::open("/dev/null").expect("there"));
        let mut hidden = Hidden::new(fd).expect("a number");
        let first = hidden.as_raw_fd();
        assert!(first >= base() && is_hidden(first) && base() <= BASE_MAX);
        assert!(left_above(0) > 0 && left_above(end() - 1) == 0 && left_above(RawFd::MAX) == 0);
        assert!(list().any(|fd| fd.cast_signed() == first));
        hidden.inherit(true).expect("set");
        hidden.step_aside().expect("another number");
        let second = hidden.as_raw_fd();
        assert!(second != first && is_hidden(second) && !is_hidden(first));
        assert!(
            !fcntl_getfd(hidden.as_fd())
                .expect("open")
                .contains(FdFlags::CLOEXEC)
        );
        drop(hidden);
        assert!(!is_hidden(second) && !is_hidden(-1));
    }
}
