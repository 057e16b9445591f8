//! What `sockets` asks of the program that it is in, and the start of everything.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use sockets::host::Host;
use sockets::rules::Kept;
use sys::errno::Errno;
use via::window::Windows;

use crate::outcome::{checked, keeping_errno};
use crate::poll::timespec_of;
use crate::{real, rules};

/// The program. Whatever becomes of a wait, the call that waits may succeed, and says nothing by `errno` then.
struct Program;

impl Host for Program {
    fn wait_to_receive(&self, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        let mut byte = 0u8;
        keeping_errno(|| {
            // SAFETY: one byte of room. The C library's own call, so that a thread asleep here can be cancelled.
            let received =
                unsafe { real::recv(fd.as_raw_fd(), (&raw mut byte).cast(), 1, libc::MSG_PEEK) };
            checked(received).map(drop)
        })
    }

    fn poll(&self, fd: BorrowedFd<'_>, events: i16, timeout_ms: i32) -> Result<i16, Errno> {
        let mut entry = libc::pollfd {
            fd: fd.as_raw_fd(),
            events,
            revents: 0,
        };
        keeping_errno(|| {
            // SAFETY: one entry.
            let ready = unsafe { real::poll(&raw mut entry, 1, timeout_ms) };
            checked(ready as isize).map(|_| entry.revents)
        })
    }

    fn nap(&self, fd: BorrowedFd<'_>, time: Duration) -> Result<(), Errno> {
        let mut entry = libc::pollfd {
            fd: fd.as_raw_fd(),
            events: 0,
            revents: 0,
        };
        let time = timespec_of(time);
        keeping_errno(|| {
            let ready =
                // SAFETY: one entry, a time, and the signal mask as it is.
                unsafe { real::ppoll(&raw mut entry, 1, &raw const time, std::ptr::null()) };
            checked(ready as isize).map(drop)
        })
    }

    fn restarts(&self) -> bool {
        // Which signal it was nobody tells; so it must be true of all that have handlers, and may come to this thread.
        // SAFETY: plain data, for which zeros are valid.
        let mut blocked: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: asks which are blocked.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut blocked) };
        let goes_on = |signal| {
            // SAFETY: filled above.
            if unsafe { libc::sigismember(&raw const blocked, signal) } == 1 {
                return true;
            }
            // SAFETY: plain data, for which zeros are valid.
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            // SAFETY: asks what is installed.
            let known = unsafe { real::sigaction(signal, std::ptr::null(), &raw mut action) } == 0;
            let handled = known
                && action.sa_sigaction != libc::SIG_DFL
                && action.sa_sigaction != libc::SIG_IGN;
            !handled || action.sa_flags & libc::SA_RESTART != 0
        };
        // Those of the C library's own say EINVAL.
        keeping_errno(|| (1..=libc::SIGRTMAX()).all(goes_on))
    }

    fn has_threads(&self) -> bool {
        !sys::alone::is_alone()
    }

    fn windows(&self) -> Option<&'static dyn Windows> {
        via::provider::Driver::windows(&shm::DRIVER)
    }

    fn upgraded(&self, fd: BorrowedFd<'_>) {
        keeping_errno(|| trace(fd));
    }

    fn kept_on_tcp(&self, kept: &Kept<'_>) {
        keeping_errno(|| rules::tell(kept));
    }
}

/// Read at the start: some programs clear their environment.
static TRACE: std::sync::OnceLock<Option<std::ffi::OsString>> = std::sync::OnceLock::new();

/// Tests ask for a line per upgraded connection, so that none passes on TCP by mistake.
fn trace(fd: BorrowedFd<'_>) {
    use std::io::Write;
    let Some(path) = TRACE.get().and_then(Option::as_ref) else {
        return;
    };
    let file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path);
    if let Ok(mut file) = file {
        let _ = file.write_all(format!("upgraded {}\n", fd.as_raw_fd()).as_bytes());
    }
}

/// Before the program begins, and before there is a connection.
pub(crate) fn start() {
    sys::alone::find();
    TRACE.get_or_init(|| std::env::var_os("SOVIA_TRACE_UPGRADE"));
    sockets::host::install(&Program);
    rules::install();
    crate::via_socket::begin();
}
