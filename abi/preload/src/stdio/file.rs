//! A `FILE` whose bytes go through our calls.

use std::ffi::{c_char, c_int, c_void};

use libc::{FILE, size_t, ssize_t};
use sys::sync::Ordering;
use sys::sync::mapped::{AtomicU32, AtomicU64};

use super::Functions;
use crate::{descriptor, receive, send};

/// Makes a `FILE` for a connection; null if there are too many, or there is something wrong with `mode`, which the C library is to say, or it asks for
/// wide characters (`,ccs=`), which such a `FILE` has not.
///
/// # Safety
/// `mode` is a string.
pub(super) unsafe fn open(fd: c_int, mode: *const c_char) -> *mut FILE {
    if mode.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: by the contract.
    let words = unsafe { std::ffi::CStr::from_ptr(mode) }.to_bytes();
    let is_wide = words.windows(WIDE.len()).any(|part| part == WIDE);
    if is_wide || !matches!(words, [b'r' | b'w' | b'a', ..]) {
        return std::ptr::null_mut();
    }
    let Some(place) = FILES.iter().find(|place| {
        let free = place
            .file
            .compare_exchange(0, TAKEN, Ordering::AcqRel, Ordering::Relaxed);
        free.is_ok()
    }) else {
        return std::ptr::null_mut();
    };
    let cookie = std::ptr::without_provenance_mut(fd as usize);
    // SAFETY: the functions take such a cookie.
    let file = unsafe { fopencookie(cookie, mode, FUNCTIONS) };
    if !file.is_null() {
        place.fd.store(fd.cast_unsigned(), Ordering::Relaxed);
        USED.fetch_add(1, Ordering::AcqRel);
    }
    place.file.store(file.addr() as u64, Ordering::Release);
    file
}

/// The descriptor of a `FILE` that is one of these.
pub(super) fn number(file: *mut FILE) -> Option<c_int> {
    find(file).map(|place| place.fd.load(Ordering::Relaxed).cast_signed())
}

/// Has a `FILE` go on with the file `path` in place of its connection: our calls work with any descriptor.
///
/// # Safety
/// The program's own call.
pub(super) unsafe fn reopen(
    path: *const c_char,
    mode: *const c_char,
    file: *mut FILE,
) -> *mut FILE {
    // SAFETY: by the contract, as all below.
    unsafe {
        libc::fflush(file);
        let fd = number(file).filter(|_| !path.is_null() && !mode.is_null());
        let opened = fd.and_then(|fd| Some((fd, flags(mode)?)));
        let Some((fd, flags)) = opened else {
            super::fclose(file);
            crate::outcome::fail(sys::errno::Errno::INVAL);
            return std::ptr::null_mut();
        };
        let new = libc::open(path, flags, 0o666);
        if new < 0 {
            let failed = crate::outcome::errno();
            super::fclose(file);
            crate::outcome::fail(failed);
            return std::ptr::null_mut();
        }
        if new != fd {
            descriptor::dup3(new, fd, flags & libc::O_CLOEXEC);
            descriptor::close(new);
        }
        libc::clearerr(file);
        // The first word of a stream says what may be done with it; that is in the C library's binary interface.
        let state = file.cast::<c_int>();
        *state &= !(NO_READS | NO_WRITES);
        *state |= match flags & libc::O_ACCMODE {
            libc::O_RDONLY => NO_WRITES,
            libc::O_WRONLY => NO_READS,
            _ => 0,
        };
        file
    }
}

/// What `fopen` makes of its mode.
unsafe fn flags(mode: *const c_char) -> Option<c_int> {
    // SAFETY: the program's string.
    let mode = unsafe { std::ffi::CStr::from_ptr(mode) }.to_bytes();
    let (first, rest) = mode.split_first()?;
    let both = rest.contains(&b'+');
    let access = |one| if both { libc::O_RDWR } else { one };
    let flags = match first {
        b'r' => access(libc::O_RDONLY),
        b'w' => access(libc::O_WRONLY) | libc::O_CREAT | libc::O_TRUNC,
        b'a' => access(libc::O_WRONLY) | libc::O_CREAT | libc::O_APPEND,
        _ => return None,
    };
    let cloexec = if rest.contains(&b'e') {
        libc::O_CLOEXEC
    } else {
        0
    };
    Some(flags | cloexec)
}

/// It has been closed.
pub(super) fn forget(file: *mut FILE) {
    if let Some(place) = find(file) {
        place.file.store(0, Ordering::Release);
        USED.fetch_sub(1, Ordering::AcqRel);
    }
}

fn find(file: *mut FILE) -> Option<&'static Place> {
    if file.is_null() || USED.load(Ordering::Acquire) == 0 {
        return None;
    }
    FILES
        .iter()
        .find(|place| place.file.load(Ordering::Acquire) == file.addr() as u64)
}

unsafe extern "C-unwind" fn read(cookie: *mut c_void, buffer: *mut c_char, len: size_t) -> ssize_t {
    // SAFETY: the C library's buffer; here and below.
    unsafe { receive::read(cookie.addr() as c_int, buffer.cast(), len) }
}

/// Returns what was written, less than `len` only after an error.
unsafe extern "C-unwind" fn write(
    cookie: *mut c_void,
    buffer: *const c_char,
    len: size_t,
) -> ssize_t {
    let mut done = 0;
    while done < len {
        // SAFETY: within the buffer.
        let sent =
            unsafe { send::write(cookie.addr() as c_int, buffer.add(done).cast(), len - done) };
        match usize::try_from(sent) {
            Ok(0) | Err(_) => break,
            Ok(sent) => done += sent,
        }
    }
    done as ssize_t
}

/// A connection has no position, which is no error to the C library if the kernel says it; what it was reopened as may have one.
unsafe extern "C-unwind" fn seek(cookie: *mut c_void, position: *mut i64, whence: c_int) -> c_int {
    // SAFETY: the C library's number.
    unsafe {
        let found = libc::lseek(cookie.addr() as c_int, *position, whence);
        if found < 0 {
            return -1;
        }
        *position = found;
        0
    }
}

unsafe extern "C-unwind" fn close(cookie: *mut c_void) -> c_int {
    // SAFETY: the program's own call.
    unsafe { descriptor::close(cookie.addr() as c_int) }
}

unsafe extern "C" {
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, functions: Functions) -> *mut FILE;
}

struct Place {
    /// Its address, 0 if there is none.
    file: AtomicU64,
    fd: AtomicU32,
}

const FUNCTIONS: Functions = Functions {
    read: Some(read),
    write: Some(write),
    seek: Some(seek),
    close: Some(close),
};
const TAKEN: u64 = 1;
/// A character set follows.
const WIDE: &[u8] = b",ccs=";
/// Of the C library's stream.
const NO_READS: c_int = 4;
const NO_WRITES: c_int = 8;
static FILES: [Place; 1024] = [const {
    Place {
        file: AtomicU64::new(0),
        fd: AtomicU32::new(0),
    }
}; 1024];
static USED: AtomicU32 = AtomicU32::new(0);
