//! Faulting in memory of the C caller, whatever he says that is there.

use std::{iter::StepBy, ops::Range, ptr};

use rustix::{
    io::Errno,
    mm::{Advice, madvise},
    param::page_size,
};

/// Faults in the whole pages of `range`, whose contents stay as they are. Says whether all of them may be written; `None` where one of them
/// may not even be read.
pub(super) fn populate(range: &Range<usize>) -> Option<bool> {
    match advise(range, Advice::LinuxPopulateWrite) {
        Ok(()) => Some(true),
        Err(Errno::INVAL) if !knows(range.start) => touch(range),
        Err(_) => {
            let read = advise(range, Advice::LinuxPopulateRead);
            read.is_ok().then_some(false)
        }
    }
}

fn advise(range: &Range<usize>, advice: Advice) -> Result<(), Errno> {
    let start = ptr::with_exposed_provenance_mut(range.start);
    loop {
        // SAFETY: populating only faults pages in; it changes no contents and fails on what is not mapped.
        match unsafe { madvise(start, range.len(), advice) } {
            Err(Errno::INTR | Errno::AGAIN) => {}
            result => return result,
        }
    }
}

/// Whether the kernel is from 5.14 or later: to others the advice itself is invalid, not only what it is about. `page` is the start of any.
fn knows(page: usize) -> bool {
    advise(&(page..page), Advice::LinuxPopulateWrite) != Err(Errno::INVAL)
}

/// As [`populate`], page by page, by operations on a futex that wake nobody: they are the system calls that touch a word as an atomic
/// instruction would, so that what another thread writes meanwhile is not lost, and that fail where the instruction would raise a signal.
pub(super) fn touch(range: &Range<usize>) -> Option<bool> {
    let pages = || -> StepBy<Range<usize>> { range.clone().step_by(page_size()) };
    if pages().all(|page| operate(libc::FUTEX_WAKE_OP, page)) {
        return Some(true);
    }
    pages()
        .all(|page| operate(libc::FUTEX_CMP_REQUEUE, page))
        .then_some(false)
}

/// `FUTEX_WAKE_OP` adds nothing to the word at `page`, `FUTEX_CMP_REQUEUE` compares it with 0. Whether it is there.
fn operate(operation: libc::c_int, page: usize) -> bool {
    let own = 0_u32;
    let own = &raw const own;
    let there: *const u32 = ptr::with_exposed_provenance(page);
    let (first, second, argument) = match operation {
        libc::FUTEX_WAKE_OP => (own, there, ADD_NOTHING),
        _ => (there, own, 0),
    };
    // SAFETY: `own` outlives the call, which sleeps nowhere; the kernel validates `page`, and writes there what is there already, in one step.
    let done = unsafe {
        libc::syscall(
            libc::SYS_futex,
            first,
            operation | libc::FUTEX_PRIVATE_FLAG,
            0_usize,
            0_usize,
            second,
            argument,
        )
    };
    // It is not 0.
    done >= 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN)
}

/// `FUTEX_OP_ADD` of 0. Whoever sleeps on the word is woken if it was less than 0, and looks again.
const ADD_NOTHING: u32 = (libc::FUTEX_OP_ADD as u32) << 28 | (libc::FUTEX_OP_CMP_LT as u32) << 24;
