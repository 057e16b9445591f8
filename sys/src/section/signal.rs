//! Signals that are put off: blocked from where they met the thread, and queued again, so that the kernel delivers them when the section's end unblocks them.

use std::ffi::{c_int, c_void};

use super::own::{self, ENDS, GOES_ON};
use super::sleep;
use crate::sync::Ordering;

/// A signal has come to this thread, of which the kernel has begun a handler with `info` and `context`. Whether it is put off: then the handler is to return at
/// once, and begins again when the section ends. `restarts` is whether calls go on after it (`SA_RESTART`).
///
/// # Safety
/// The arguments are those of a handler that the kernel called, on this thread.
pub unsafe fn put_off(
    signal: c_int,
    info: *const c_void,
    context: *mut c_void,
    restarts: impl FnOnce() -> bool,
) -> bool {
    let words = own::words();
    if words.depth.load(Ordering::Relaxed) == 0 {
        return false;
    }
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: the kernel's, by the contract; of the mask it has the first 64 bits.
    let mask = unsafe { (&raw mut (*context).uc_sigmask).cast::<u64>() };
    // SAFETY: as above.
    let outside = unsafe { mask.read() };
    set_mask(ALL);
    // Where several came at once the one that began last returns first, and what it found blocked is what another's handler has: the last to come here is the first that came.
    words.mask.store(outside, Ordering::Relaxed);
    words.put_off.store(1, Ordering::Relaxed);
    words.judge(if restarts() { GOES_ON } else { ENDS });
    let (process, thread) = (std::process::id(), gettid());
    let queued = call(
        libc::SYS_rt_tgsigqueueinfo,
        [
            process as usize,
            thread,
            signal as usize,
            info.expose_provenance(),
        ],
    );
    if queued != 0 {
        // No memory to keep what came with it.
        let _ = call(
            libc::SYS_tgkill,
            [process as usize, thread, signal as usize, 0],
        );
    }
    // SAFETY: as above.
    unsafe { mask.write(outside | ALL) };
    // SAFETY: as above.
    let next = unsafe { &mut (*context).uc_mcontext.gregs[libc::REG_RIP as usize] };
    if let Some(awake) = sleep::awake(next.cast_unsigned() as usize) {
        *next = awake as i64;
    }
    true
}

/// What was put off comes before this returns.
pub(super) fn unblock(mask: u64) {
    set_mask(mask);
}

fn set_mask(mask: u64) {
    let address = (&raw const mask).expose_provenance();
    let _ = call(
        libc::SYS_rt_sigprocmask,
        [libc::SIG_SETMASK as usize, address, 0, size_of::<u64>()],
    );
}

fn gettid() -> usize {
    call(libc::SYS_gettid, [0; 4]).cast_unsigned()
}

/// A system call past the C library, which knows not all of them, and has `errno` for the rest.
pub(super) fn call(number: libc::c_long, [a, b, c, d]: [usize; 4]) -> isize {
    let result: isize;
    // SAFETY: signals and futexes; what is written, if anything is, is what the callers pass. The kernel changes no other register.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// All but those of faults, which cannot wait, and the two of the C library's threads (32 and 33).
const ALL: u64 = !(bit(libc::SIGBUS)
    | bit(libc::SIGFPE)
    | bit(libc::SIGILL)
    | bit(libc::SIGSEGV)
    | bit(libc::SIGSYS)
    | bit(libc::SIGTRAP)
    | bit(32)
    | bit(33));

const fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}
