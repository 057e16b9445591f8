//! exec and its kin: a process becomes another program.

use std::ffi::{CStr, c_char, c_int};
use std::os::fd::BorrowedFd;

use sockets::handover::departure::before_exec;
use sockets::packet::table::sharing;

use super::environment::suited;
use super::image::{self, Image};
use crate::outcome::keeping_errno;
use crate::real;

type Strings = *const *const c_char;

/// Does what is to be done around an `exec` that returns only if it fails, of what will be `image`.
///
/// # Safety
/// `environment` is a null-terminated array of strings, or null.
unsafe fn departing(
    image: Image,
    environment: Strings,
    exec: impl FnOnce(Strings) -> c_int,
) -> c_int {
    let departure = keeping_errno(|| {
        sharing::before_exec();
        before_exec(image == Image::Followed)
    });
    // SAFETY: by the contract.
    let result = unsafe { suited(image, environment, exec) };
    keeping_errno(|| departure.failed());
    result
}

fn environment() -> Strings {
    // SAFETY: the C library's variable, as its own functions read it.
    unsafe { libc::environ }.cast_const().cast()
}

/// What the program at `path` will be.
pub(super) unsafe fn image_at(path: *const c_char, environment: Strings) -> Image {
    if path.is_null() {
        return Image::Stranger;
    }
    // SAFETY: the program's string and array, as `execve` wants them.
    keeping_errno(|| unsafe { image::of_path(CStr::from_ptr(path), environment) })
}

/// As [`image_at`], for a name that is looked for.
pub(super) unsafe fn image_named(name: *const c_char, environment: Strings) -> Image {
    if name.is_null() {
        return Image::Stranger;
    }
    // SAFETY: as above.
    let name = unsafe { CStr::from_ptr(name) };
    keeping_errno(|| {
        let mut found = Image::Stranger;
        image::search(name, |path| {
            let there = image::is_there(path);
            if there {
                // SAFETY: as above.
                found = unsafe { image::of_path(path, environment) };
            }
            there
        });
        found
    })
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn execve(
    path: *const c_char,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    // SAFETY: the program's own call and its promises, here and below.
    unsafe {
        departing(image_at(path, environment), environment, |environment| {
            real::execve(path, arguments, environment)
        })
    }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn execv(path: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: as above.
    unsafe { execve(path, arguments, environment()) }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn execvp(name: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: as above.
    unsafe { execvpe(name, arguments, environment()) }
}

/// GNU.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn execvpe(
    name: *const c_char,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        departing(image_named(name, environment), environment, |environment| {
            real::execvpe(name, arguments, environment)
        })
    }
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fexecve(
    fd: c_int,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let image = image_in(fd, c"".as_ptr(), environment);
        departing(image, environment, |environment| {
            real::fexecve(fd, arguments, environment)
        })
    }
}

/// Linux.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn execveat(
    directory: c_int,
    path: *const c_char,
    arguments: Strings,
    environment: Strings,
    flags: c_int,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let image = image_in(directory, path, environment);
        departing(image, environment, |environment| {
            real::execveat(directory, path, arguments, environment, flags)
        })
    }
}

unsafe fn image_in(at: c_int, path: *const c_char, environment: Strings) -> Image {
    if path.is_null() || (at < 0 && at != libc::AT_FDCWD) {
        return Image::Stranger;
    }
    // SAFETY: as `execveat` wants them; the number is used for system calls only.
    keeping_errno(|| unsafe {
        image::of_descriptor(
            BorrowedFd::borrow_raw(at),
            CStr::from_ptr(path),
            environment,
        )
    })
}

/// What comes after the null pointer that ends the arguments: the environment, for `execle`.
///
/// # Safety
/// `arguments` is an array of strings, a null pointer, and one more.
unsafe fn after(arguments: Strings) -> Strings {
    let mut at = arguments;
    // SAFETY: by the contract, where this ends.
    unsafe {
        while !(*at).is_null() {
            at = at.add(1);
        }
        (*at.add(1)).cast()
    }
}

macro_rules! one_by_one {
    ($($name:ident $inner:ident ($path:ident, $list:ident) $call:expr;)*) => {$(
        unsafe extern "C-unwind" fn $inner($path: *const c_char, $list: Strings) -> c_int {
            // SAFETY: the code below passes what the program passed.
            unsafe { $call }
        }

        /// POSIX. Rust cannot declare a function of any number of arguments, which come in registers and then on the stack. The registers go where the return
        /// address was, and below: so all are one array, of any length, for which no room is needed. The child of `vfork` has no other.
        #[cfg(all(target_arch = "x86_64", not(test)))]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C-unwind" fn $name() -> c_int {
            std::arch::naked_asm!(
                "pop rax",
                "push r9",
                "push r8",
                "push rcx",
                "push rdx",
                "push rsi",
                "mov rsi, rsp",
                "push rax",
                "call {inner}",
                // It failed. What was pushed, the stack's own arguments aside, goes, and the address where it was.
                "pop rcx",
                "add rsp, 40",
                "push rcx",
                "ret",
                inner = sym $inner,
            )
        }
    )*};
}

one_by_one! {
    execl execl_list (path, list) execve(path, list, environment());
    execlp execlp_list (name, list) execvpe(name, list, environment());
    execle execle_list (path, list) execve(path, list, after(list));
}
