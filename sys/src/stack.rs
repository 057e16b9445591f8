//! Where this thread's stack is.

use std::ops::Range;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::read;

use crate::turn::thread_id;

/// An address in the frame of who calls.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn frame() -> usize {
    let here: usize;
    // SAFETY: reads the stack pointer.
    unsafe {
        core::arch::asm!("mov {}, rsp", out(reg) here, options(nostack, nomem, preserves_flags));
    };
    here
}

/// An address in the frame of who calls.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn frame() -> usize {
    let here = 0u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}

/// Whether a jump to a frame at `target` leaves one at `frame` for good. Said only of the stack that the thread was made with, and of the one that it has
/// for handlers: on others there are coroutines, to whose frames a jump may come back.
///
/// Allocates nothing, and asks the kernel only for what looks as if it was left.
#[cold]
pub fn is_left(frame: usize, target: usize) -> bool {
    let handlers = handlers();
    match (handlers.contains(&frame), handlers.contains(&target)) {
        (true, true) => frame < target,
        (false, true) => false,
        (true, false) => own(target).is_some(),
        (false, false) => frame < target && own(frame).is_some_and(|stack| stack.contains(&target)),
    }
}

/// The stack that the thread has for handlers; empty if it has none.
fn handlers() -> Range<usize> {
    let mut stack = libc::stack_t {
        ss_sp: std::ptr::null_mut(),
        ss_flags: 0,
        ss_size: 0,
    };
    // SAFETY: only asks; the answer goes to a value of ours.
    let asked = unsafe { libc::sigaltstack(std::ptr::null(), &raw mut stack) };
    if asked != 0 || stack.ss_flags & libc::SS_DISABLE != 0 {
        return 0..0;
    }
    let start = stack.ss_sp.addr();
    start..start.saturating_add(stack.ss_size)
}

/// The memory in which `address` lies, if it is the stack that this thread was made with: that of the first thread has a name, and at the upper end of
/// any other's lies its control block.
fn own(address: usize) -> Option<Range<usize>> {
    let file = open(
        "/proc/self/maps",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .ok()?;
    let mut buffer = [0; 4096];
    let mut line = [0; LINE];
    let mut len = 0;
    loop {
        let n = read(&file, &mut buffer).ok().filter(|n| *n > 0)?;
        for byte in buffer.get(..n)? {
            if *byte != b'\n' {
                // The end of a long path says nothing.
                if let Some(place) = line.get_mut(len) {
                    *place = *byte;
                    len += 1;
                }
                continue;
            }
            let text = line.get(..len)?;
            len = 0;
            if let Some(range) = range(text)
                && range.contains(&address)
            {
                let own = text.ends_with(b"[stack]") || range.contains(&thread_id());
                return own.then_some(range);
            }
        }
    }
}

/// Of a line as `7ffc1000-7ffc2000 rw-p ...`.
fn range(line: &[u8]) -> Option<Range<usize>> {
    let text = line.split(|byte| *byte == b' ').next()?;
    let (start, end) = str::from_utf8(text).ok()?.split_once('-')?;
    let hex = |text| usize::from_str_radix(text, 16).ok();
    Some(hex(start)?..hex(end)?)
}

const LINE: usize = 128;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_left_by_a_jump_to_one_above_it_on_the_same_stack() {
        #[inline(never)]
        fn within(outer: usize) {
            let here = frame();
            assert!(is_left(here, outer));
            assert!(!is_left(outer, here));
            assert!(!is_left(here, here));
        }
        let both = || {
            within(frame());
            let elsewhere = vec![0u8; 1 << 16];
            let heap = elsewhere.as_ptr().addr();
            for (one, other) in [(heap, heap + 4096), (heap, frame()), (frame(), heap)] {
                assert!(!is_left(one, other));
            }
        };
        both();
        std::thread::spawn(both).join().expect("no panic");
    }
}
