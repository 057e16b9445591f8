//! Sleeping in a section, on a word or on descriptors.
//!
//! Between a look at what was put off and the kernel's sleep a signal may come. Its handler finds the thread there, and has it go on where it does not sleep.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use super::cancel;
use super::cancel::Asleep;
use super::own::{self, ENDS, GOES_ON, Words};
use crate::futex::Wake;
use crate::sync::mapped::AtomicU32 as MappedU32;
use crate::sync::{AtomicU32, Ordering};

/// As [`crate::futex::wait`]; `None`, and nothing done, if this thread is in no section.
pub(crate) fn sleep(word: &MappedU32, expected: u32, timeout: Option<Duration>) -> Option<Wake> {
    let words = own::words();
    if words.depth.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let time = time_of(timeout);
    let word = std::ptr::from_ref(word).expose_provenance();
    let asleep = Asleep::enter_at(word);
    let woken = unless_cancelled(words, || {
        let time = time
            .as_ref()
            .map_or(0, |time| time.as_ptr().expose_provenance());
        // SAFETY: the words are there until it returns, and so is the time, which is a `struct timespec`.
        unsafe {
            sovia_section_sleep(
                &words.put_off,
                libc::SYS_futex,
                word,
                FUTEX_WAIT,
                expected as usize,
                time,
            )
        }
    });
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

/// Sleeps until one of `fds` is ready, something waits for the section's end, or `timeout`; or for no reason. `has_limit` if the call has one, which may be later. `None`,
/// and nothing done, if this thread is in no section; else whether something waits.
pub(super) fn poll(fds: &[PollFd<'_>], timeout: Option<Duration>, has_limit: bool) -> Option<bool> {
    let words = own::words();
    if words.depth.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let bell = cancel::bell();
    let mut entries = fds.to_vec();
    entries.extend(bell.map(|bell| PollFd::from_borrowed_fd(bell, PollFlags::IN)));
    let asleep = Asleep::enter_at(0);
    // The kernel says there what is left of it.
    let mut time = time_of(timeout);
    let woken = unless_cancelled(words, || {
        let time = time
            .as_mut()
            .map_or(0, |time| time.as_mut_ptr().expose_provenance());
        let at = entries.as_mut_ptr().expose_provenance();
        // SAFETY: the words, the time and the entries, which are of `struct pollfd`, are there until it returns. No mask is given.
        unsafe { sovia_section_sleep(&words.put_off, libc::SYS_ppoll, at, entries.len(), time, 0) }
    });
    if asleep.leave() || cancel::cancellations() != words.since.load(Ordering::Relaxed) {
        words.judge(GOES_ON);
        return Some(true);
    }
    let is_put_off = words.put_off.load(Ordering::Relaxed) != 0;
    if is_put_off && has_limit && woken == -INTERRUPTED {
        words.judge(ENDS);
    }
    Some(is_put_off)
}

/// A time that the kernel cannot express is longer than any machine's life.
fn time_of(timeout: Option<Duration>) -> Option<[i64; 2]> {
    let timeout = timeout?;
    let seconds = i64::try_from(timeout.as_secs()).ok()?;
    Some([seconds, timeout.subsec_nanos().into()])
}

/// Sleeps, where no thread has been cancelled since this one was asked.
fn unless_cancelled(words: &Words, sleep: impl FnOnce() -> isize) -> isize {
    if cancel::cancellations() == words.since.load(Ordering::Relaxed) {
        sleep()
    } else {
        -INTERRUPTED
    }
}

/// Where a thread goes on that is at `place`, if it is about to sleep.
pub(super) fn awake(place: usize) -> Option<usize> {
    let (from, to) = (&raw const sovia_section_from, &raw const sovia_section_to);
    let awake = (&raw const sovia_section_awake).addr();
    (from.addr()..to.addr()).contains(&place).then_some(awake)
}

unsafe extern "C" {
    /// That system call, unless `put_off` is not 0: what the kernel returns.
    fn sovia_section_sleep(
        put_off: &AtomicU32,
        number: libc::c_long,
        a: usize,
        b: usize,
        c: usize,
        d: usize,
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
    "mov r11, rdi",
    "mov rax, rsi",
    "mov rdi, rdx",
    "mov rsi, rcx",
    "mov rdx, r8",
    "mov r10, r9",
    "sovia_section_from:",
    "cmp dword ptr [r11], 0",
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
    interrupted = const libc::EINTR,
);

const FUTEX_WAIT: usize = 0;
const INTERRUPTED: isize = libc::EINTR as isize;
const CHANGED: isize = libc::EAGAIN as isize;
const TIMED_OUT: isize = libc::ETIMEDOUT as isize;
