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

/// The arguments of `execl` and its kin, which come one by one: some in registers, the rest on the stack.
struct List {
    arguments: [*const c_char; ARGUMENTS_MAX],
    /// What comes after the null pointer that ends them: the environment, for `execle`.
    after: *const c_char,
}

impl List {
    /// # Safety
    /// `registers` holds those of the caller from the second argument on, `stack` the ones after. A null pointer ends them.
    unsafe fn read(
        registers: *const [*const c_char; REGISTERS],
        stack: *const *const c_char,
    ) -> Option<Self> {
        let argument = |n: usize| {
            // SAFETY: by the contract; nothing is read beyond what comes after the null pointer.
            unsafe {
                if n < REGISTERS {
                    *registers.cast::<*const c_char>().add(n)
                } else {
                    *stack.add(n - REGISTERS)
                }
            }
        };
        let mut list = Self {
            arguments: [std::ptr::null(); ARGUMENTS_MAX],
            after: std::ptr::null(),
        };
        for n in 0..ARGUMENTS_MAX {
            let place = list.arguments.get_mut(n)?;
            *place = argument(n);
            if place.is_null() {
                list.after = argument(n + 1);
                return Some(list);
            }
        }
        None
    }
}

macro_rules! one_by_one {
    ($($name:ident $inner:ident ($path:ident, $list:ident, $environment:ident) $call:expr;)*) => {$(
        unsafe extern "C-unwind" fn $inner($path: *const c_char, registers: *const [*const c_char; REGISTERS], stack: *const *const c_char) -> c_int {
            // SAFETY: the code above passes what the program passed.
            let Some($list) = (unsafe { List::read(registers, stack) }) else {
                return crate::outcome::fail(sys::errno::Errno::TOOBIG) as c_int;
            };
            let $environment: Strings = environment();
            // SAFETY: as above.
            unsafe { $call }
        }

        /// POSIX. Puts the registers that may hold arguments in order, for Rust cannot declare a function of any number of arguments.
        #[cfg(all(target_arch = "x86_64", not(test)))]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C-unwind" fn $name() -> c_int {
            std::arch::naked_asm!(
                "lea rax, [rsp + 8]",
                "sub rsp, 56",
                "mov [rsp], rsi",
                "mov [rsp + 8], rdx",
                "mov [rsp + 16], rcx",
                "mov [rsp + 24], r8",
                "mov [rsp + 32], r9",
                "mov rsi, rsp",
                "mov rdx, rax",
                "call {inner}",
                "add rsp, 56",
                "ret",
                inner = sym $inner,
            )
        }
    )*};
}

one_by_one! {
    execl execl_list (path, list, environment) execve(path, list.arguments.as_ptr(), environment);
    execlp execlp_list (name, list, environment) execvpe(name, list.arguments.as_ptr(), environment);
    execle execle_list (path, list, _environment) execve(path, list.arguments.as_ptr(), list.after.cast());
}

const REGISTERS: usize = 5;
/// On the stack, for the child of `vfork` must not allocate.
const ARGUMENTS_MAX: usize = 4096;
