//! What became of a call.

use std::os::fd::{BorrowedFd, RawFd};

use libc::{c_int, ssize_t};
use sockets::conn::Conn;
use sockets::handover::numbers;
use sockets::table;
use sys::errno::Errno;

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome<T> {
    /// Done, with this result.
    Done(T),
    /// The C library's function is to do it.
    NotOurs,
    /// Failed.
    Failed(Errno),
}

impl<T> From<Result<T, Errno>> for Outcome<T> {
    #[inline]
    fn from(result: Result<T, Errno>) -> Self {
        match result {
            Ok(value) => Self::Done(value),
            Err(errno) => Self::Failed(errno),
        }
    }
}

impl<T> Outcome<T> {
    /// What became of it elsewhere, where it is not ours.
    #[inline]
    pub(crate) fn otherwise(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::NotOurs => other(),
            ours => ours,
        }
    }
}

impl Outcome<usize> {
    /// As C returns it.
    #[inline]
    pub(crate) fn or(self, real: impl FnOnce() -> ssize_t) -> ssize_t {
        match self {
            Self::Done(n) => n.cast_signed(),
            Self::NotOurs => real(),
            Self::Failed(errno) => fail(errno),
        }
    }
}

impl Outcome<c_int> {
    /// As C returns it.
    #[inline]
    pub(crate) fn or(self, real: impl FnOnce() -> c_int) -> c_int {
        match self {
            Self::Done(n) => n,
            Self::NotOurs => real(),
            Self::Failed(errno) => fail(errno) as c_int,
        }
    }
}

/// Sets errno and returns -1.
#[cold]
pub(crate) fn fail(errno: Errno) -> ssize_t {
    // SAFETY: the C library's errno of this thread is always there.
    unsafe { *libc::__errno_location() = errno.raw_os_error() };
    -1
}

/// The calling thread's errno.
pub(crate) fn errno() -> Errno {
    // SAFETY: as in `fail`.
    Errno::from_raw_os_error(unsafe { *libc::__errno_location() })
}

/// Runs `act` and leaves errno as it was.
#[inline]
pub(crate) fn keeping_errno<R>(act: impl FnOnce() -> R) -> R {
    // SAFETY: as in `fail`.
    let before = unsafe { *libc::__errno_location() };
    let result = act();
    // SAFETY: as in `fail`.
    unsafe { *libc::__errno_location() = before };
    result
}

/// Has the kernel make a descriptor for the program; once more if the program's limit was reached and ours could make room.
#[inline]
pub(crate) fn with_a_number(make: impl Fn() -> c_int) -> c_int {
    let made = make();
    if made < 0 && errno() == Errno::MFILE && keeping_errno(numbers::give_back) {
        return make();
    }
    made
}

/// The result of a C call, with its errno.
#[inline]
pub(crate) fn checked(returned: ssize_t) -> Result<usize, Errno> {
    usize::try_from(returned).map_err(|_| errno())
}

/// The program's descriptor, if it can be one.
#[inline]
pub(crate) fn borrow<'a>(fd: RawFd) -> Option<BorrowedFd<'a>> {
    // SAFETY: it is only used for system calls in the course of the program's own call with this number; if the program closes it
    // meanwhile they act on what the number then is, or fail, as its own would.
    (fd >= 0).then(|| unsafe { BorrowedFd::borrow_raw(fd) })
}

/// The connection behind a descriptor of the program.
#[inline]
pub(crate) fn connection<'a>(fd: RawFd) -> Option<(&'static Conn, BorrowedFd<'a>)> {
    let fd = borrow(fd)?;
    Some((table::connection(fd)?, fd))
}

/// The same, where one look at the table has had it already.
#[inline]
pub(crate) fn connection_or<'a>(
    noted: Option<&'static Conn>,
    fd: RawFd,
) -> Option<(&'static Conn, BorrowedFd<'a>)> {
    match noted {
        Some(conn) => Some((conn, borrow(fd)?)),
        None => connection(fd),
    }
}

/// The same, if it has rings.
pub(crate) fn with_rings<'a>(fd: RawFd) -> Option<(&'static Conn, BorrowedFd<'a>)> {
    let fd = borrow(fd)?;
    let conn = table::seen(fd).filter(|conn| conn.is_mapped())?;
    Some((conn, fd))
}
