//! The unwinder, loaded when it is first needed.
//!
//! What we are made with calls it: for a panic, which is a bug of ours, and in our frames where the program unwinds through them, as where a thread is cancelled in a
//! call. Linked to, `libgcc_s.so.1` would be loaded, bound and begun in each program: half of the 0.37 ms by which the start of one took longer. So these
//! functions are here, seen by nobody else, and go on in that library: where the program unwinds it is there already.

use std::arch::global_asm;
use std::ffi::CStr;

use sys::sync::Ordering;
use sys::sync::mapped::AtomicU64;

use crate::outcome::keeping_errno;

/// Defines functions of these names, and numbers in [`FOUND`]. Each leaves its caller's frame as it is: the unwinder begins there.
macro_rules! unwinder {
    ($($number:literal $name:literal)*) => {
        const NAMES: [&CStr; LEN] = [$(match CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!("a name"),
        }),*];

        global_asm!(
            ".pushsection .text.sovia_unwind,\"ax\",@progbits",
            $(
                concat!(".globl ", $name),
                concat!(".hidden ", $name),
                concat!(".type ", $name, ", @function"),
                concat!($name, ":"),
                concat!("mov r11, [rip + {found} + 8 * ", $number, "]"),
                "test r11, r11",
                "jz 2f",
                "jmp r11",
                concat!("2: push ", $number),
                "jmp 3f",
                concat!(".size ", $name, ", . - ", $name),
            )*
            "3:",
            "push rdi",
            "push rsi",
            "push rdx",
            "push rcx",
            "push r8",
            "push r9",
            "mov rdi, [rsp + 48]",
            "call {find}",
            "mov r11, rax",
            "pop r9",
            "pop r8",
            "pop rcx",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            "lea rsp, [rsp + 8]",
            "jmp r11",
            ".popsection",
            found = sym FOUND,
            find = sym find,
        );
    };
}

unwinder! {
    0 "_Unwind_Backtrace"
    1 "_Unwind_DeleteException"
    2 "_Unwind_GetDataRelBase"
    3 "_Unwind_GetIP"
    4 "_Unwind_GetIPInfo"
    5 "_Unwind_GetLanguageSpecificData"
    6 "_Unwind_GetRegionStart"
    7 "_Unwind_GetTextRelBase"
    8 "_Unwind_RaiseException"
    9 "_Unwind_Resume"
    10 "_Unwind_SetGR"
    11 "_Unwind_SetIP"
}

/// Where the one with that number is. Without it nothing can go on.
extern "C" fn find(number: usize) -> u64 {
    let found = keeping_errno(|| {
        // SAFETY: loads a library of the system's, which stays, and asks for one of its functions.
        unsafe {
            let library = libc::dlopen(c"libgcc_s.so.1".as_ptr(), libc::RTLD_NOW);
            NAMES.get(number).map_or(std::ptr::null_mut(), |name| {
                libc::dlsym(library, name.as_ptr())
            })
        }
    });
    if found.is_null() {
        std::process::abort();
    }
    let at = found.expose_provenance() as u64;
    if let Some(place) = FOUND.get(number) {
        place.store(at, Ordering::Relaxed);
    }
    at
}

static FOUND: [AtomicU64; LEN] = [const { AtomicU64::new(0) }; LEN];

const LEN: usize = 12;
