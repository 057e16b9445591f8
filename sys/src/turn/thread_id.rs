//! Which thread this is.

#[cfg(loom)]
use crate::sync::{AtomicUsize, Ordering};

/// A number that no other thread of this process has while this one lives, never 0; it costs one instruction.
#[cfg(all(target_arch = "x86_64", not(loom)))]
#[inline]
pub fn thread_id() -> usize {
    let id: usize;
    // SAFETY: the psABI has the thread control block begin with its own address, which `fs:0` reads.
    unsafe {
        core::arch::asm!("mov {}, fs:0", out(reg) id, options(nostack, readonly, preserves_flags))
    };
    id
}

/// A number that no other thread of this process has while this one lives, never 0; it costs one instruction.
#[cfg(all(target_arch = "aarch64", not(loom)))]
#[inline]
pub fn thread_id() -> usize {
    let id: usize;
    // SAFETY: reads the thread pointer.
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) id, options(nostack, nomem, preserves_flags))
    };
    id
}

/// A number that no other thread of this process has while this one lives, never 0.
#[cfg(not(any(loom, target_arch = "x86_64", target_arch = "aarch64")))]
pub fn thread_id() -> usize {
    std::thread_local!(static HERE: usize = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

/// A number that no other thread of this model has, never 0.
#[cfg(loom)]
pub fn thread_id() -> usize {
    loom::lazy_static! {
        static ref NEXT: AtomicUsize = AtomicUsize::new(2);
    }
    loom::thread_local!(static ID: usize = NEXT.fetch_add(2, Ordering::Relaxed));
    ID.with(|id| *id)
}
