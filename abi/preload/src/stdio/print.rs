//! dprintf, which writes inside the C library.

use std::ffi::{c_char, c_int, c_void};

use crate::outcome::connection;
use crate::{extended, real, send, via_socket};

/// POSIX. A list of arguments is passed by its address, on the processors that we know.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn vdprintf(
    fd: c_int,
    format: *const c_char,
    arguments: *mut c_void,
) -> c_int {
    if is_native(fd) {
        // SAFETY: the program's own call and its promises, here and below.
        return unsafe { real::vdprintf(fd, format, arguments) };
    }
    let mut text: *mut c_char = std::ptr::null_mut();
    // SAFETY: as above; the C library gives the text, which is ours to free.
    unsafe {
        let len = real::vasprintf(&raw mut text, format, arguments);
        let Ok(total) = usize::try_from(len) else {
            return len;
        };
        let mut done = 0;
        while done < total {
            let sent = send::write(fd, text.add(done).cast(), total - done);
            match usize::try_from(sent) {
                Ok(0) | Err(_) => break,
                Ok(sent) => done += sent,
            }
        }
        libc::free(text.cast());
        if done == total { len } else { -1 }
    }
}

fn is_native(fd: c_int) -> bool {
    connection(fd).is_none() && !extended::is(fd) && !via_socket::is(fd)
}

/// glibc, for `_FORTIFY_SOURCE`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __vdprintf_chk(
    fd: c_int,
    flag: c_int,
    format: *const c_char,
    arguments: *mut c_void,
) -> c_int {
    if is_native(fd) {
        // SAFETY: as above.
        return unsafe { real::__vdprintf_chk(fd, flag, format, arguments) };
    }
    // SAFETY: as above.
    unsafe { vdprintf(fd, format, arguments) }
}

macro_rules! with_a_list {
    ($($name:ident named $named:literal list $register:literal $inner:path;)*) => {$(
        /// Makes a list of the arguments, for Rust cannot declare a function of any number of them.
        #[cfg(all(target_arch = "x86_64", not(test)))]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C-unwind" fn $name() -> c_int {
            std::arch::naked_asm!(
                // A thread that is cancelled in the call is unwound through here.
                ".cfi_startproc",
                "sub rsp, 216",
                ".cfi_adjust_cfa_offset 216",
                // As the psABI lays it out: 6 registers for integers, 8 for floating point, and where the rest is.
                "mov [rsp + 32], rdi",
                "mov [rsp + 40], rsi",
                "mov [rsp + 48], rdx",
                "mov [rsp + 56], rcx",
                "mov [rsp + 64], r8",
                "mov [rsp + 72], r9",
                "movaps [rsp + 80], xmm0",
                "movaps [rsp + 96], xmm1",
                "movaps [rsp + 112], xmm2",
                "movaps [rsp + 128], xmm3",
                "movaps [rsp + 144], xmm4",
                "movaps [rsp + 160], xmm5",
                "movaps [rsp + 176], xmm6",
                "movaps [rsp + 192], xmm7",
                concat!("mov dword ptr [rsp], ", $named),
                "mov dword ptr [rsp + 4], 48",
                "lea rax, [rsp + 224]",
                "mov [rsp + 8], rax",
                "lea rax, [rsp + 32]",
                "mov [rsp + 16], rax",
                concat!("mov ", $register, ", rsp"),
                "call {inner}",
                "add rsp, 216",
                ".cfi_adjust_cfa_offset -216",
                "ret",
                ".cfi_endproc",
                inner = sym $inner,
            )
        }
    )*};
}

with_a_list! {
    dprintf named "16" list "rdx" vdprintf;
    __dprintf_chk named "24" list "rcx" __vdprintf_chk;
}
