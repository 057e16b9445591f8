//! What a program sees of its descriptors by reading directories: without ours.

use std::ffi::{CStr, c_int};

use libc::{DIR, dirent, dirent64};
use sys::hidden;

use crate::outcome::keeping_errno;
use crate::real;

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn readdir(directory: *mut DIR) -> *mut dirent {
    // SAFETY: the program's own call, here and below. An entry's name is a string.
    unsafe {
        next(
            directory,
            || real::readdir(directory),
            |entry| (*entry).d_name.as_ptr(),
        )
    }
}

/// glibc, for large files.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn readdir64(directory: *mut DIR) -> *mut dirent64 {
    // SAFETY: as above.
    unsafe {
        next(
            directory,
            || real::readdir64(directory),
            |entry| (*entry).d_name.as_ptr(),
        )
    }
}

unsafe fn next<E>(
    directory: *mut DIR,
    read: impl Fn() -> *mut E,
    name: impl Fn(*mut E) -> *const libc::c_char,
) -> *mut E {
    loop {
        let entry = read();
        if entry.is_null() {
            return entry;
        }
        // SAFETY: as the callers say.
        let number = unsafe { CStr::from_ptr(name(entry)) };
        let number: Option<c_int> = number.to_str().ok().and_then(|name| name.parse().ok());
        let ours = number.is_some_and(|fd| {
            // SAFETY: the program's directory.
            hidden::is_hidden(fd)
                && keeping_errno(|| lists_descriptors(unsafe { libc::dirfd(directory) }))
        });
        if !ours {
            return entry;
        }
    }
}

/// Whether a directory is that of this process's descriptors, by whichever of its names.
fn lists_descriptors(directory: c_int) -> bool {
    let mut target = [0u8; 64];
    let link = format_link(directory);
    // SAFETY: a string, and room of that length.
    let len = unsafe {
        libc::readlink(
            link.as_ptr().cast(),
            target.as_mut_ptr().cast(),
            target.len(),
        )
    };
    let Some(path) = usize::try_from(len).ok().and_then(|len| target.get(..len)) else {
        return false;
    };
    let Some(rest) = path.strip_prefix(b"/proc/") else {
        return false;
    };
    let me = std::process::id();
    let mut parts = rest.split(|byte| *byte == b'/');
    let pid: Option<u32> = parts
        .next()
        .and_then(|pid| std::str::from_utf8(pid).ok())
        .and_then(|pid| pid.parse().ok());
    let last = parts.next_back();
    pid == Some(me) && matches!(last, Some(b"fd" | b"fdinfo"))
}

/// `/proc/self/fd/N`, without allocation.
fn format_link(fd: c_int) -> [u8; 32] {
    use std::io::Write;
    let mut link = [0; 32];
    // It fits, with a zero at its end.
    let _ = write!(link.as_mut_slice(), "/proc/self/fd/{fd}");
    link
}
