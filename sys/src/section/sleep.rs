//! Sleeping in a section.
//!
//! Between a look at what was put off and the kernel's sleep a signal may come. Its handler finds the thread there, and has it go on where it does not sleep.

use std::time::Duration;

use super::cancel;
use super::cancel::Asleep;
use super::own::{self, ENDS, GOES_ON};
use crate::futex::Wake;
use crate::sync::mapped::AtomicU32 as MappedU32;
use crate::sync::{AtomicU32, Ordering};

/// As [`crate::futex::wait`]; `None`, and nothing done, if this thread is in no section.
pub(crate) fn sleep(word: &MappedU32, expected: u32, timeout: Option<Duration>) -> Option<Wake> {
    let words = own::words();
    if words.depth.load(Ordering::Relaxed) == 0 {
        return None;
    }
    // A time that the kernel cannot express is longer than any machine's life.
    let seconds = timeout.and_then(|time| i64::try_from(time.as_secs()).ok());
    let time = timeout.zip(seconds);
    let time = time.map(|(time, seconds)| [seconds, time.subsec_nanos().into()]);
    let asleep = Asleep::enter(word);
    let woken = if cancel::cancellations() == words.since.load(Ordering::Relaxed) {
        let time = time.as_ref().map_or(std::ptr::null(), |time| time.as_ptr());
        // SAFETY: the words are there until it returns, and so is the time, which is a `struct timespec`.
        unsafe { sovia_section_sleep(&words.put_off, word, expected, time) }
    } else {
        -INTERRUPTED
    };
    let is_asked = asleep.leave() || cancel::cancellations() != words.since.load(Ordering::Relaxed);
    Some(match -woken {
        _ if is_asked => {
            words.judge(GOES_ON);
            Wake::Interrupted
        }
        CHANGED => Wake::Changed,
        TIMED_OUT => Wake::TimedOut,
        INTERRUPTED => {
            // As the kernel has it: no sleep that has a limit goes on.
            if timeout.is_some() {
                words.judge(ENDS);
            }
            Wake::Interrupted
        }
        _ => Wake::Woken,
    })
}

/// Where a thread goes on that is at `place`, if it is about to sleep.
pub(super) fn awake(place: usize) -> Option<usize> {
    let (from, to) = (&raw const sovia_section_from, &raw const sovia_section_to);
    let awake = (&raw const sovia_section_awake).addr();
    (from.addr()..to.addr()).contains(&place).then_some(awake)
}

unsafe extern "C" {
    /// `FUTEX_WAIT`, unless `put_off` is not 0: what the kernel returns.
    fn sovia_section_sleep(
        put_off: &AtomicU32,
        word: &MappedU32,
        expected: u32,
        time: *const i64,
    ) -> isize;
    static sovia_section_from: u8;
    static sovia_section_to: u8;
    static sovia_section_awake: u8;
}

// A system call that a handler has restarted begins again at its instruction, and one that has returned goes on behind it.
core::arch::global_asm!(
    ".pushsection .text.sovia_section_sleep, \"ax\", @progbits",
    // A test may have this crate twice.
    ".weak sovia_section_sleep",
    ".weak sovia_section_from",
    ".weak sovia_section_to",
    ".weak sovia_section_awake",
    ".hidden sovia_section_sleep",
    ".hidden sovia_section_from",
    ".hidden sovia_section_to",
    ".hidden sovia_section_awake",
    ".type sovia_section_sleep, @function",
    "sovia_section_sleep:",
    ".cfi_startproc",
    "mov r8, rdi",
    "mov rdi, rsi",
    "xor esi, esi",
    "mov r10, rcx",
    "mov eax, {futex}",
    "sovia_section_from:",
    "cmp dword ptr [r8], 0",
    "jne sovia_section_awake",
    "syscall",
    "sovia_section_to:",
    "ret",
    "sovia_section_awake:",
    "mov rax, -{interrupted}",
    "ret",
    ".cfi_endproc",
    ".size sovia_section_sleep, . - sovia_section_sleep",
    ".popsection",
    futex = const libc::SYS_futex,
    interrupted = const libc::EINTR,
);

const INTERRUPTED: isize = libc::EINTR as isize;
const CHANGED: isize = libc::EAGAIN as isize;
const TIMED_OUT: isize = libc::ETIMEDOUT as isize;
