//! `getsockopt` past the C library, for options that rustix does not know.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// Values for which every bit pattern is valid.
///
/// # Safety
/// Integers, and `repr(C)` structures of them without padding.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: an integer.
unsafe impl Plain for u64 {}
// SAFETY: three integers of one size.
unsafe impl Plain for [u32; 3] {}

/// The value of an option; what an older kernel does not know of it is zero.
pub(crate) fn get<T: Plain>(fd: BorrowedFd<'_>, level: i32, name: i32) -> Result<T, Errno> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut len = size_of::<T>() as u32;
    // SAFETY: the kernel writes at most `len` bytes to `value`, which has as many, and the true length to `len`; both outlive the call.
    let rc = unsafe { getsockopt(fd, level, name, value.as_mut_ptr().cast(), &raw mut len) };
    match i32::try_from(rc) {
        // SAFETY: zeroed before and written by the kernel since; all bit patterns are valid (`Plain`).
        Ok(0) => Ok(unsafe { value.assume_init() }),
        Ok(errno) => Err(Errno::from_raw_os_error(-errno)),
        Err(_) => Err(Errno::IO),
    }
}

/// # Safety
/// `value` must have `*len` bytes.
#[cfg(target_arch = "x86_64")]
unsafe fn getsockopt(
    fd: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: *mut u8,
    len: *mut u32,
) -> isize {
    let rc;
    // SAFETY: the kernel's calling convention: it keeps all registers but these. What it writes is the caller's to give.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") libc::SYS_getsockopt as isize => rc,
            in("rdi") fd.as_raw_fd() as isize,
            in("rsi") level as isize,
            in("rdx") name as isize,
            in("r10") value,
            in("r8") len,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack, preserves_flags),
        );
    }
    rc
}

/// # Safety
/// `value` must have `*len` bytes.
#[cfg(target_arch = "aarch64")]
unsafe fn getsockopt(
    fd: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: *mut u8,
    len: *mut u32,
) -> isize {
    let rc;
    // SAFETY: the kernel's calling convention: it keeps all registers but x0. What it writes is the caller's to give.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") libc::SYS_getsockopt as isize,
            inlateout("x0") fd.as_raw_fd() as isize => rc,
            in("x1") level as isize,
            in("x2") name as isize,
            in("x3") value,
            in("x4") len,
            options(nostack, preserves_flags),
        );
    }
    rc
}

/// Through the C library, whose `syscall` our preload library passes on.
///
/// # Safety
/// `value` must have `*len` bytes.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn getsockopt(
    fd: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: *mut u8,
    len: *mut u32,
) -> isize {
    // SAFETY: what the kernel writes is the caller's to give.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_getsockopt,
            fd.as_raw_fd(),
            level,
            name,
            value,
            len,
        )
    };
    if rc == 0 {
        return 0;
    }
    let errno = std::io::Error::last_os_error().raw_os_error();
    -(errno.unwrap_or(libc::EIO) as isize)
}
