//! What a program sees of its descriptors by reading directories: without ours.

use std::ffi::{CStr, c_char, c_int, c_void};

use libc::{DIR, dirent, dirent64, size_t, ssize_t};
use sockets::packet::table;
use sys::hidden;

use crate::outcome::keeping_errno;
use crate::real;

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn readdir(directory: *mut DIR) -> *mut dirent {
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
pub unsafe extern "C-unwind" fn readdir64(directory: *mut DIR) -> *mut dirent64 {
    // SAFETY: as above.
    unsafe {
        next(
            directory,
            || real::readdir64(directory),
            |entry| (*entry).d_name.as_ptr(),
        )
    }
}

macro_rules! copied {
    ($($name:ident $entry:ty;)*) => {$(
        /// POSIX, long ago.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(directory: *mut DIR, entry: *mut $entry, result: *mut *mut $entry) -> c_int {
            loop {
                // SAFETY: the program's own call, here and below.
                let error = unsafe { real::$name(directory, entry, result) };
                // SAFETY: without an error it has been written.
                if error != 0 || unsafe { (*result).is_null() } {
                    return error;
                }
                // SAFETY: an entry's name is a string.
                let ours = number(unsafe { CStr::from_ptr((*entry).d_name.as_ptr()) })
                    // SAFETY: the program's directory.
                    .is_some_and(|fd| is_ours(fd, || unsafe { libc::dirfd(directory) }));
                if !ours {
                    return error;
                }
            }
        }
    )*};
}

copied! {
    readdir_r dirent;
    readdir64_r dirent64;
}

/// Linux.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn getdents64(
    directory: c_int,
    into: *mut c_void,
    len: size_t,
) -> ssize_t {
    // SAFETY: the program's own call.
    unsafe {
        listed(directory, into.cast(), || {
            real::getdents64(directory, into, len)
        })
    }
}

/// Carries out a call that writes entries to `into`, and says how many bytes are left of them without ours.
///
/// # Safety
/// The call writes `struct linux_dirent64`, one after the other, as many bytes as it says.
pub(crate) unsafe fn listed(
    directory: c_int,
    into: *mut u8,
    mut call: impl FnMut() -> ssize_t,
) -> ssize_t {
    loop {
        let written = call();
        let Ok(len @ 1..) = usize::try_from(written) else {
            return written;
        };
        // SAFETY: so much has just been written there.
        let entries = unsafe { std::slice::from_raw_parts_mut(into, len) };
        let left = drop_ours(directory, entries);
        // None at all would be the end of the directory.
        if left != 0 {
            return left.cast_signed();
        }
    }
}

/// Moves entries together that are not ours, and returns how many bytes they have.
fn drop_ours(directory: c_int, entries: &mut [u8]) -> usize {
    let (mut from, mut to) = (0, 0);
    while let Some(entry) = entries.get(from..) {
        let Some(&[low, high]) = entry.get(LENGTH_AT..LENGTH_AT + 2) else {
            break;
        };
        let len = usize::from(u16::from_ne_bytes([low, high]));
        let name = entry.get(NAME_AT..len);
        if len == 0 {
            break;
        }
        let name = name.and_then(|name| CStr::from_bytes_until_nul(name).ok());
        let ours = name
            .and_then(number)
            .is_some_and(|fd| is_ours(fd, || directory));
        if !ours {
            entries.copy_within(from..from + len, to);
            to += len;
        }
        from += len;
    }
    to
}

// `linux/dirent.h`: an inode and an offset come first.
const LENGTH_AT: usize = 16;
const NAME_AT: usize = 19;

macro_rules! scanned {
    ($($name:ident($($at:ident)?);)*) => {$(
        /// POSIX, and glibc's other names.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(
            $($at: c_int,)?
            path: *const c_char,
            list: *mut *mut *mut dirent,
            filter: *const c_void,
            order: *const c_void,
        ) -> c_int {
            let directory = libc::AT_FDCWD;
            $(let directory = if true { $at } else { directory };)?
            // SAFETY: the program's own call. With 64-bit addresses an entry is the same for large files.
            let found = unsafe { real::$name($($at,)? path, list, filter, order) };
            let Ok(count @ 1..) = usize::try_from(found) else {
                return found;
            };
            // SAFETY: so many entries have just been allocated.
            unsafe { sift(directory, path, *list, count) }
        }
    )*};
}

scanned! {
    scandir();
    scandir64();
    scandirat(at);
    scandirat64(at);
}

/// Frees what is ours of `count` entries.
unsafe fn sift(at: c_int, path: *const c_char, list: *mut *mut dirent, count: usize) -> c_int {
    let mut left = 0;
    for index in 0..count {
        // SAFETY: by the caller's contract, here and below.
        let entry = unsafe { *list.add(index) };
        // SAFETY: as above; a name is a string.
        let ours = number(unsafe { CStr::from_ptr((*entry).d_name.as_ptr()) })
            .is_some_and(|fd| may_be_ours(fd) && keeping_errno(|| is_list(at, path)));
        // SAFETY: as above; each is an allocation of its own.
        unsafe {
            if ours {
                libc::free(entry.cast());
            } else {
                *list.add(left) = entry;
                left += 1;
            }
        }
    }
    left as c_int
}

/// Whether there is a directory of this process's descriptors at a path.
fn is_list(at: c_int, path: *const c_char) -> bool {
    // SAFETY: the program's string; opened for nothing but its name, and closed.
    unsafe {
        let fd = libc::openat(at, path, libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC);
        let is = fd >= 0 && lists_descriptors(fd);
        real::close(fd);
        is
    }
}

fn number(name: &CStr) -> Option<c_int> {
    name.to_str().ok()?.parse().ok()
}

/// Also if it has been closed since it was listed: threads of a NIC may be at it.
fn may_be_ours(fd: c_int) -> bool {
    let closed = || table::any() && fd >= hidden::base() && !sys::socket::is_open(fd);
    hidden::is_hidden(fd) || closed()
}

fn is_ours(fd: c_int, directory: impl FnOnce() -> c_int) -> bool {
    may_be_ours(fd) && keeping_errno(|| lists_descriptors(directory()))
}

unsafe fn next<E>(
    directory: *mut DIR,
    read: impl Fn() -> *mut E,
    name: impl Fn(*mut E) -> *const c_char,
) -> *mut E {
    loop {
        let entry = read();
        if entry.is_null() {
            return entry;
        }
        // SAFETY: as the callers say.
        let ours = number(unsafe { CStr::from_ptr(name(entry)) })
            // SAFETY: the program's directory.
            .is_some_and(|fd| is_ours(fd, || unsafe { libc::dirfd(directory) }));
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
