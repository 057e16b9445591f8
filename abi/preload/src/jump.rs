//! longjmp and its kin, by which a signal handler may leave a call in its middle.
//!
//! Where a jump goes is in the program's `jmp_buf`, which glibc makes unreadable with a secret of the process. That is learnt from a buffer whose stack pointer
//! is known. Everything else about a jump is the C library's.

use std::ffi::{c_int, c_void};

use sockets::left;
use sys::section;

use crate::outcome::keeping_errno;
use crate::real;

/// Before a jump: ends what it leaves in its middle.
///
/// # Safety
/// `env` was filled by `setjmp`.
#[inline]
unsafe fn before(env: *const c_void) {
    if left::may_leave() || section::is_in() {
        // SAFETY: by the contract.
        keeping_errno(|| unsafe { leave(env) });
    }
}

#[cold]
unsafe fn leave(env: *const c_void) {
    if let Some(secret) = secret() {
        // SAFETY: by the callers' contract it is as long as glibc's.
        let word = unsafe { env.cast::<usize>().add(STACK).read_unaligned() };
        let target = revealed(word) ^ secret;
        left::before_jump(target);
        section::end_left(target);
    }
}

/// What is mixed into the stack pointer; `None` if this is not glibc's way.
fn secret() -> Option<usize> {
    let [one, other] = [known(), deeper()].map(|(sp, word)| revealed(word) ^ sp);
    (one == other).then_some(one)
}

/// In another frame, so that what is learnt there is not the same by chance.
#[inline(never)]
fn deeper() -> (usize, usize) {
    let frame = std::hint::black_box([0usize; 8]);
    let known = known();
    std::hint::black_box(&frame);
    known
}

/// A stack pointer, and what `setjmp` makes of it. Nobody jumps there.
#[inline(always)]
fn known() -> (usize, usize) {
    let mut buffer = [0usize; BUFFER];
    let sp = filled(&mut buffer);
    (sp, buffer.get(STACK).copied().unwrap_or_default())
}

/// Has `setjmp` fill a buffer; the stack pointer that it saw.
#[inline(always)]
fn filled(buffer: &mut [usize; BUFFER]) -> usize {
    let sp: usize;
    // SAFETY: a call of the C library's with a buffer that is longer than its own; it returns once.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "mov r12, rsp",
            "call {setjmp}",
            setjmp = sym _setjmp,
            in("rdi") buffer.as_mut_ptr(),
            out("r12") sp,
            clobber_abi("C"),
        );
    }
    // SAFETY: the same.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(
            "mov x20, sp",
            "bl {setjmp}",
            setjmp = sym _setjmp,
            in("x0") buffer.as_mut_ptr(),
            out("x20") sp,
            clobber_abi("C"),
        );
    }
    // Elsewhere it is not known where a jump goes: what two calls give does not agree.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        sp = std::ptr::from_mut(buffer).addr();
    }
    sp
}

/// A word of the buffer, but for the secret.
fn revealed(word: usize) -> usize {
    if cfg!(target_arch = "x86_64") {
        word.rotate_right(17)
    } else {
        word
    }
}

/// Which word of the buffer is the stack pointer.
const STACK: usize = if cfg!(target_arch = "aarch64") { 13 } else { 6 };
/// Words of a `jmp_buf`, and more.
const BUFFER: usize = 64;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
unsafe extern "C" {
    fn _setjmp(env: *mut c_void) -> c_int;
}

macro_rules! jumps {
    ($($(#[$attribute:meta])* fn $name:ident;)*) => {$(
        $(#[$attribute])*
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(env: *mut c_void, value: c_int) -> c_int {
            // SAFETY: the program's own call, and its buffer.
            unsafe {
                before(env);
                real::$name(env, value)
            }
        }
    )*};
}

jumps! {
    /// C.
    fn longjmp;
    /// BSD.
    fn _longjmp;
    /// POSIX.
    fn siglongjmp;
    /// glibc, for programs built with `_FORTIFY_SOURCE`.
    fn __longjmp_chk;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_jump_goes_is_found_out() {
        let secret = secret().expect("glibc");
        let (sp, word) = known();
        assert_eq!(revealed(word) ^ secret, sp);
    }
}
