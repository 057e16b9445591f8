//! How libraries find each other. Those that are loaded while the program runs (`dlopen`) find our functions, as those do that it begins with.

use std::ffi::c_char;
#[cfg(all(target_arch = "x86_64", not(test)))]
use std::ffi::{c_int, c_void};

#[cfg(target_arch = "x86_64")]
use sys::sync::mapped::AtomicU64;

#[cfg(target_arch = "x86_64")]
use crate::real;

/// AddressSanitizer's. A program that was built with it ends where its runtime is not the first library, which we are. What it does in the C library's
/// functions it does in those that ours call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn __asan_default_options() -> *const c_char {
    c"verify_asan_link_order=0".as_ptr()
}

/// ThreadSanitizer's. It sees the `memcpy` that ours call, and neither what orders them (atomics, in memory that two processes share) nor where we map and unmap: to
/// it connections that come to lie where others have been race with them. To leave our calls out altogether (`called_from_lib`) would hide from it what pipes and
/// the like order, for we stand before those, too.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn __tsan_default_suppressions() -> *const c_char {
    c"race:libsovia.so\n".as_ptr()
}

/// POSIX. Without `RTLD_DEEPBIND`, by which a library would find the C library's calls before ours (PHP loads its extensions so). The loader looks at
/// who called it, for `$ORIGIN` and `DT_RUNPATH`: so it is jumped to, with the program's return address.
#[cfg(all(target_arch = "x86_64", not(test)))]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn dlopen(path: *const c_char, mode: c_int) -> *mut c_void {
    std::arch::naked_asm!(
        "and esi, {kept}",
        "mov rax, [rip + {next}]",
        "test rax, rax",
        "jnz 2f",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {find}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jz 3f",
        "2: jmp rax",
        // Before glibc 2.34 a program may do without it.
        "3: ret",
        kept = const !libc::RTLD_DEEPBIND,
        next = sym NEXT,
        find = sym find,
    )
}

#[cfg(target_arch = "x86_64")]
extern "C" fn find() -> u64 {
    real::lookup(&NEXT, c"dlopen")
}

#[cfg(target_arch = "x86_64")]
static NEXT: AtomicU64 = AtomicU64::new(0);
