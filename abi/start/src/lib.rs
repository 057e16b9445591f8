//! What this process was started with and Rust's runtime changes before `main`, for the program that it becomes.
//!
//! The runtime ignores `SIGPIPE`, opens `/dev/null` in place of standard descriptors that are closed, and has what [`Command`] runs take `SIGPIPE` by
//! default. A crate of its own, because what it has run before `main` is for programs of ours, and not for those that our libraries are loaded into.
#![allow(
    unsafe_code,
    reason = "only C can be called before main, and between a command and the program"
)]

use std::ffi::{CStr, OsStr, c_char};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::ptr;
use std::sync::OnceLock;

/// As it was before the runtime came.
#[derive(Debug)]
struct Start {
    ignores_sigpipe: bool,
    /// Standard input, output and error.
    closed: [bool; 3],
}

/// Has what `command` becomes, run by [`CommandExt::exec`], begin with `SIGPIPE` and standard descriptors as this process did. Changes of the command's own
/// to these descriptors are not meant to go with it.
pub fn hand_on(command: &mut Command) {
    let Some(start) = START.get() else {
        return;
    };
    // SAFETY: it calls nothing but `signal` and `fcntl`, which are async-signal-safe, and allocates nothing.
    unsafe { command.pre_exec(|| start.restore()) };
}

/// The path by which this program was run, which the kernel tells where there is no `/proc`, too; `None` if it does not.
pub fn path() -> Option<&'static Path> {
    // SAFETY: it reads a table that is there from the start.
    let path = unsafe { libc::getauxval(libc::AT_EXECFN) };
    let path = ptr::with_exposed_provenance::<c_char>(usize::try_from(path).ok()?);
    if path.is_null() {
        return None;
    }
    // SAFETY: a string that the kernel has put above the stack, where it stays.
    let path = unsafe { CStr::from_ptr(path) };
    Some(Path::new(OsStr::from_bytes(path.to_bytes())))
}

impl Start {
    fn now() -> Self {
        Self {
            ignores_sigpipe: is_ignored(libc::SIGPIPE),
            closed: [0, 1, 2].map(is_closed),
        }
    }

    fn restore(&self) -> io::Result<()> {
        if self.ignores_sigpipe {
            // SAFETY: no code of ours runs for a signal that is ignored.
            if unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) } == libc::SIG_ERR {
                return Err(io::Error::last_os_error());
            }
        }
        for (fd, _) in (0..).zip(self.closed).filter(|(_, closed)| *closed) {
            // What is open there for us is closed to the program. SAFETY: it changes a flag of a descriptor, if that is open.
            if unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }
}

fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: it sets nothing, and writes to `action` only.
    unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all zeros are a value of it, too.
    let action = unsafe { action.assume_init() };
    action.sa_sigaction == libc::SIG_IGN
}

fn is_closed(fd: libc::c_int) -> bool {
    // SAFETY: it asks for a flag of a descriptor, if that is open.
    unsafe { libc::fcntl(fd, libc::F_GETFD) < 0 }
}

extern "C" fn note() {
    START.get_or_init(Start::now);
}

static START: OnceLock<Start> = OnceLock::new();

// SAFETY: the C library calls what stands in this section before `main`, with arguments that may be left unread, when all that it does itself is done;
// `note` makes two system calls and needs nothing of Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_path_is_known_without_asking() {
        let path = path().expect("the kernel says it");
        let own = std::env::current_exe().expect("/proc");
        assert_eq!(path.canonicalize().expect("there"), own);
    }
}
