//! Atomics, fences and cells: core's, or loom's under `cfg(loom)`.
//!
//! The only module of the workspace that names core's atomics, so that whatever is built on it can be model-checked.

use std::time::Duration;

use crate::futex::{self, Wake};

use mapped::AtomicU32 as MappedU32;

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(loom)]
pub use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
};

/// Atomics that lie in mapped memory. A mapping holds plain integers, so these are core's under loom too.
pub mod mapped {
    pub use core::sync::atomic::{AtomicU32, AtomicU64};
}

/// Replaces `old` by `new`, atomically as far as this thread and its signal handlers are concerned, and released to other threads; one
/// that only this thread may write at the time. False, and nothing done, if the word holds something else.
#[cfg(all(target_arch = "x86_64", not(loom)))]
#[inline]
pub fn exchange_here(word: &mapped::AtomicU64, old: u64, new: u64) -> bool {
    let done: u8;
    // SAFETY: the reference makes the word valid, and an instruction is atomic towards signals of its own thread. Stores of this
    // architecture are releases. Without the lock prefix it costs a fifth.
    unsafe {
        core::arch::asm!(
            "cmpxchg qword ptr [{word}], {new}",
            "sete {done}",
            word = in(reg) word.as_ptr(),
            new = in(reg) new,
            done = lateout(reg_byte) done,
            inout("rax") old => _,
            options(nostack),
        );
    }
    done != 0
}

/// Replaces `old` by `new`, atomically as far as this thread and its signal handlers are concerned, and released to other threads; one
/// that only this thread may write at the time. False, and nothing done, if the word holds something else.
#[cfg(not(all(target_arch = "x86_64", not(loom))))]
#[inline]
pub fn exchange_here(word: &mapped::AtomicU64, old: u64, new: u64) -> bool {
    word.compare_exchange(
        old,
        new,
        core::sync::atomic::Ordering::Release,
        core::sync::atomic::Ordering::Relaxed,
    )
    .is_ok()
}

/// A 32-bit word on which one can sleep. Protocols are written for any `Word`: they run on mapped ones and loom checks its own.
pub trait Word {
    /// As [`AtomicU32::load`].
    fn load(&self, order: Ordering) -> u32;
    /// As [`AtomicU32::store`].
    fn store(&self, value: u32, order: Ordering);
    /// As [`AtomicU32::swap`].
    fn swap(&self, value: u32, order: Ordering) -> u32;
    /// As [`AtomicU32::fetch_or`].
    fn fetch_or(&self, bits: u32, order: Ordering) -> u32;
    /// As [`AtomicU32::fetch_add`].
    fn fetch_add(&self, value: u32, order: Ordering) -> u32;
    /// As [`futex::wait`].
    fn wait(&self, expected: u32, timeout: Option<Duration>) -> Wake;
    /// As [`futex::wake`].
    fn wake(&self, n: u32);
}

macro_rules! word {
    ($atomic:ty, $wait:path, $wake:path) => {
        impl Word for $atomic {
            #[inline]
            fn load(&self, order: Ordering) -> u32 {
                self.load(order)
            }

            #[inline]
            fn store(&self, value: u32, order: Ordering) {
                self.store(value, order);
            }

            #[inline]
            fn swap(&self, value: u32, order: Ordering) -> u32 {
                self.swap(value, order)
            }

            #[inline]
            fn fetch_or(&self, bits: u32, order: Ordering) -> u32 {
                self.fetch_or(bits, order)
            }

            #[inline]
            fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
                self.fetch_add(value, order)
            }

            #[inline]
            fn wait(&self, expected: u32, timeout: Option<Duration>) -> Wake {
                $wait(self, expected, timeout)
            }

            #[inline]
            fn wake(&self, n: u32) {
                $wake(self, n);
            }
        }
    };
}

word!(MappedU32, futex::wait_mapped, futex::wake_mapped);
#[cfg(loom)]
word!(AtomicU32, futex::wait, futex::wake);

/// A cell that is reached through raw pointers, with loom's interface.
#[cfg(not(loom))]
#[derive(Debug, Default)]
pub struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    /// A cell that holds `value`.
    pub const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    /// Calls `read` with a pointer that may be read through.
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Calls `write` with a pointer that may be written through, if the caller is alone with the cell.
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
