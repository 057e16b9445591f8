//! The user's rules: where they come from, and how he is told.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{Cursor, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{FileType, Stat, fstat};
use sockets::rules::{self, Kept, text};
use sys::offer::offer;
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU32;

/// Reads the rules at the start: some programs clear their environment.
pub(crate) fn install() {
    let stderr = stderr().and_then(|fd| fstat(fd).ok());
    let _ = STDERR.set(stderr);
    let Some(text) = env::var_os(VARIABLE).map(OsString::into_vec) else {
        return;
    };
    // Kept as long as the process, like the environment that it is from.
    let text = String::from_utf8(text).unwrap_or_default().leak();
    let invoked = Path::new(OsStr::from_bytes(rustix::param::linux_execfn().to_bytes()));
    let [executable, invoked] = [env::current_exe(), std::path::absolute(invoked)]
        .map(|path| path.unwrap_or_default().into_os_string().into_vec().leak() as &[u8]);
    let program = text::Program {
        executable,
        invoked,
    };
    if !rules::install(text, program) {
        say(format_args!(
            "sovia: {VARIABLE} is not understood, so all connections stay on TCP (reason 80 off); sovia and libsovia.so are of different versions, perhaps"
        ));
    }
}

/// Says that a connection is on TCP though a rule says always.
pub(crate) fn tell(kept: &Kept<'_>) {
    let Kept {
        local,
        peer,
        reason,
        file,
        line,
    } = kept;
    match TOLD.fetch_add(1, Ordering::Relaxed) {
        0..TOLD_MAX => say(format_args!(
            "sovia: {local} to {peer} is on TCP (reason {} {reason}), though {file}:{line} says always",
            reason.number()
        )),
        TOLD_MAX => say(format_args!(
            "sovia: more connections are on TCP though {file} says always: sovia stat shows them"
        )),
        _ => {}
    }
}

/// One write, without allocating, or none where it would be waited for or would end the program. Only to what was standard error at the start: a program may have something else by that number now.
fn say(line: std::fmt::Arguments<'_>) {
    let mut text = [b'\n'; LINE_MAX];
    let mut cursor = Cursor::new(text.get_mut(..LINE_MAX - 1).unwrap_or_default());
    // What does not fit is left out.
    let _ = cursor.write_fmt(line);
    let len = usize::try_from(cursor.position()).unwrap_or(0) + 1;
    let same = |now: &Stat, then: &Stat| {
        (now.st_dev, now.st_ino) == (then.st_dev, then.st_ino)
            && FileType::from_raw_mode(now.st_mode) != FileType::Socket
    };
    if let Some(fd) = stderr()
        && let (Some(Some(then)), Ok(now)) = (STDERR.get(), fstat(fd))
        && same(&now, then)
        && let Some(text) = text.get(..len)
    {
        offer(fd, text);
    }
}

fn stderr() -> Option<BorrowedFd<'static>> {
    // SAFETY: 2 is not -1. If it is closed the calls on it say so.
    Some(unsafe { BorrowedFd::borrow_raw(libc::STDERR_FILENO) })
}

static STDERR: OnceLock<Option<Stat>> = OnceLock::new();
static TOLD: AtomicU32 = AtomicU32::new(0);

/// As `sovia run` writes it: [`sockets::rules::text`].
const VARIABLE: &str = "SOVIA_RULES";
/// Of which there may be as many as connections.
const TOLD_MAX: u32 = 100;
const LINE_MAX: usize = 512;
