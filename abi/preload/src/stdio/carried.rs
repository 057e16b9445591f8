//! What is in a stream's buffer, on its way to another stream.

use std::ffi::{c_char, c_int};
use std::ptr;

use libc::FILE;

use super::standard::Buffering;

unsafe extern "C" {
    fn __fpurge(stream: *mut FILE);
    fn ftrylockfile(stream: *mut FILE) -> c_int;
    fn funlockfile(stream: *mut FILE);
    fn fwide(stream: *mut FILE, mode: c_int) -> c_int;
}

/// How a stream of the C library's begins, which is in its binary interface: macros of its headers have worked on it.
#[repr(C)]
struct Head {
    state: c_int,
    unread: *mut c_char,
    unread_end: *mut c_char,
    read_base: *mut c_char,
    unwritten: *mut c_char,
    unwritten_end: *mut c_char,
    write_end: *mut c_char,
    buffer: *mut c_char,
    buffer_end: *mut c_char,
    /// Where the buffer's own `unread` is while what was put back is read.
    saved: *mut c_char,
    backup: *mut c_char,
    saved_end: *mut c_char,
}

/// Whether its buffer has wide characters.
///
/// # Safety
/// Null, or a stream.
pub(super) unsafe fn is_wide(stream: *mut FILE) -> bool {
    // SAFETY: by the contract.
    !stream.is_null() && unsafe { fwide(stream, 0) } > 0
}

/// Has `to` go on as `from`, whose descriptor has become, or is about to become, another file: natively a stream knows nothing of that. So nothing is
/// written, and nothing that was read is lost; and an error or an end that was met stays. What a thread is in the middle of is left to it.
///
/// # Safety
/// Each null, or a stream.
pub(super) unsafe fn carry(from: *mut FILE, to: *mut FILE) {
    if from.is_null() || to.is_null() {
        return;
    }
    // SAFETY: streams, by the contract, which this thread alone uses meanwhile.
    unsafe {
        if ftrylockfile(from) != 0 {
            return;
        }
        if ftrylockfile(to) == 0 {
            carry_text(from, to);
            carry_input(from, to);
            __fpurge(from);
            let said = (*from.cast::<Head>()).state & SAID;
            let state = &raw mut (*to.cast::<Head>()).state;
            *state = *state & !SAID | said;
            funlockfile(to);
        }
        funlockfile(from);
    }
}

/// What was not written yet, with as much room as it had.
unsafe fn carry_text(from: *mut FILE, to: *mut FILE) {
    let (source, target) = (from.cast::<Head>(), to.cast::<Head>());
    // SAFETY: streams that are locked, here and below.
    unsafe {
        let buffering = Buffering::of(to);
        if buffering == Buffering::None {
            return;
        }
        // Whole lines may be in it since before it passed them on by line. And this way there is a buffer.
        libc::setvbuf(to, ptr::null_mut(), libc::_IOFBF, 0);
        let size = distance((*source).buffer, (*source).buffer_end);
        if distance((*target).buffer, (*target).buffer_end) < size {
            enlarge(to, size);
        }
        let len = distance((*source).unwritten, (*source).unwritten_end);
        for at in 0..len {
            let byte = *(*source).unwritten.add(at);
            libc::fputc(c_int::from(byte.cast_unsigned()), to);
        }
        if buffering == Buffering::ByLine {
            buffering.set(to);
        }
        if buffering == Buffering::ByLine && len > 0 {
            // As the C library has it, so that the next character is looked at.
            (*target).write_end = (*target).unwritten_end;
        }
    }
}

/// It keeps what it gets for as long as there is a stream: the standard ones are for good, and each grows to the largest that it has followed.
unsafe fn enlarge(stream: *mut FILE, size: usize) {
    // SAFETY: as above; nobody frees the new buffer.
    unsafe {
        let buffer = libc::malloc(size);
        if !buffer.is_null() {
            libc::setvbuf(stream, buffer.cast(), libc::_IOFBF, size);
        }
    }
}

/// What was read and the program has not taken: it is put back, from its end on.
unsafe fn carry_input(from: *mut FILE, to: *mut FILE) {
    let source = from.cast::<Head>();
    // SAFETY: as above.
    unsafe {
        let next = ((*source).unread, (*source).unread_end);
        let rest = ((*source).saved, (*source).saved_end);
        let parts = match (*source).state & IN_BACKUP {
            0 => [next].into_iter().chain(None),
            _ => [rest].into_iter().chain(Some(next)),
        };
        for (start, end) in parts {
            for at in (0..distance(start, end)).rev() {
                libc::ungetc(c_int::from((*start.add(at)).cast_unsigned()), to);
            }
        }
    }
}

fn distance(start: *mut c_char, end: *mut c_char) -> usize {
    end.addr().saturating_sub(start.addr())
}

/// An end and an error.
const SAID: c_int = 0x10 | 0x20;
const IN_BACKUP: c_int = 0x100;
