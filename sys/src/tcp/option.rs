//! `getsockopt` and `setsockopt` past the C library, for options that rustix does not know.

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
// SAFETY: two integers of one size.
unsafe impl Plain for [u32; 2] {}
// SAFETY: three integers of one size.
unsafe impl Plain for [u32; 3] {}

/// The value of an option; what an older kernel does not know of it is zero.
pub(crate) fn get<T: Plain>(fd: BorrowedFd<'_>, level: i32, name: i32) -> Result<T, Errno> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut len = size_of::<T>() as u32;
    let (at, len) = (
        value.as_mut_ptr().cast(),
        (&raw mut len).expose_provenance(),
    );
    // SAFETY: the kernel writes at most `len` bytes to `value`, which has as many, and the true length to `len`; both outlive the call.
    checked(unsafe { call(libc::SYS_getsockopt, fd, level, name, at, len) })?;
    // SAFETY: zeroed before and written by the kernel since; all bit patterns are valid (`Plain`).
    Ok(unsafe { value.assume_init() })
}

/// How much there is of an option that has no fixed length.
pub(crate) fn len(fd: BorrowedFd<'_>, level: i32, name: i32) -> Result<u32, Errno> {
    let mut len = 0u32;
    let at = (&raw mut len).expose_provenance();
    // SAFETY: there is room for nothing, so the kernel writes nothing but the length, which outlives the call.
    checked(unsafe {
        call(
            libc::SYS_getsockopt,
            fd,
            level,
            name,
            std::ptr::null_mut(),
            at,
        )
    })?;
    Ok(len)
}

/// Sets an option.
pub(crate) fn set<T: Plain>(
    fd: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: T,
) -> Result<(), Errno> {
    let mut value = value;
    let (at, len) = ((&raw mut value).cast(), size_of::<T>());
    // SAFETY: the kernel reads `len` bytes of `value`, which has as many and outlives the call.
    checked(unsafe { call(libc::SYS_setsockopt, fd, level, name, at, len) })
}

fn checked(rc: isize) -> Result<(), Errno> {
    match i32::try_from(rc) {
        Ok(0) => Ok(()),
        Ok(errno) => Err(Errno::from_raw_os_error(-errno)),
        Err(_) => Err(Errno::IO),
    }
}

/// # Safety
/// `value` must have the bytes that `len` says, or that the word at the address `len` says, as `number` has it.
#[cfg(target_arch = "x86_64")]
unsafe fn call(
    number: libc::c_long,
    fd: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: *mut u8,
    len: usize,
) -> isize {
    let rc;
    // SAFETY: the kernel's calling convention: it keeps all registers but these. What it reads and writes is the caller's to give.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => rc,
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
/// As above.
#[cfg(target_arch = "aarch64")]
unsafe fn call(
    number: libc::c_long,
    fd: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: *mut u8,
    len: usize,
) -> isize {
    let rc;
    // SAFETY: the kernel's calling convention: it keeps all registers but x0. What it reads and writes is the caller's to give.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number as isize,
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
/// As above.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn call(
    number: libc::c_long,
    fd: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: *mut u8,
    len: usize,
) -> isize {
    // SAFETY: what the kernel reads and writes is the caller's to give.
    let rc = unsafe { libc::syscall(number, fd.as_raw_fd(), level, name, value, len) };
    if rc == 0 {
        return 0;
    }
    let errno = std::io::Error::last_os_error().raw_os_error();
    -(errno.unwrap_or(libc::EIO) as isize)
}
