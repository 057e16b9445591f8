//! Atomics, fences and cells: core's, or loom's under `cfg(loom)`.
//!
//! The only module of the workspace that names core's atomics, so that whatever is built on it can be model-checked.

use std::time::Duration;

use crate::futex::{self, Wake};

use mapped::{AtomicU32 as MappedU32, AtomicU64 as MappedU64};

/// For statics, which loom's cannot be.
pub use core::sync::atomic::AtomicPtr;
/// Orders what this thread does as its own signal handlers see it.
pub use core::sync::atomic::compiler_fence;
#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(loom)]
pub use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
};

/// Atomics that lie in mapped memory, or in statics. A mapping holds plain integers, so these are core's under loom too.
pub mod mapped {
    pub use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
}

/// Replaces `old` by `new`, atomically as far as this thread and its signal handlers are concerned, and released to other threads; one
/// that only this thread may write at the time. False, and nothing done, if the word holds something else.
#[cfg(all(target_arch = "x86_64", not(loom)))]
#[inline]
pub fn exchange_here(word: &MappedU64, old: u64, new: u64) -> bool {
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
pub fn exchange_here(word: &MappedU64, old: u64, new: u64) -> bool {
    word.compare_exchange(old, new, Ordering::Release, Ordering::Relaxed)
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
    /// As [`AtomicU32::fetch_and`].
    fn fetch_and(&self, bits: u32, order: Ordering) -> u32;
    /// As [`AtomicU32::fetch_add`].
    fn fetch_add(&self, value: u32, order: Ordering) -> u32;
    /// As [`AtomicU32::compare_exchange`], relaxed if it fails: the value found then.
    fn exchange(&self, old: u32, new: u32, order: Ordering) -> Result<u32, u32>;
    /// As [`futex::wait`].
    fn wait(&self, expected: u32, timeout: Option<Duration>) -> Wake;
    /// As [`futex::wake`].
    fn wake(&self, n: u32);
}

/// A 64-bit count. As [`Word`], protocols are written for any.
pub trait Count {
    /// As [`AtomicU64::load`].
    fn load(&self, order: Ordering) -> u64;
    /// As [`AtomicU64::store`].
    fn store(&self, value: u64, order: Ordering);
    /// As [`AtomicU64::fetch_add`].
    fn fetch_add(&self, value: u64, order: Ordering) -> u64;
    /// As [`AtomicU64::compare_exchange`], relaxed if it fails; whether it did it.
    fn exchange(&self, old: u64, new: u64, order: Ordering) -> bool;
    /// As [`exchange_here`].
    fn exchange_here(&self, old: u64, new: u64) -> bool;
}

macro_rules! word {
    ($atomic:ty, $wait:path, $wake:path, $before:expr, $after:expr) => {
        impl Word for $atomic {
            #[inline]
            fn load(&self, order: Ordering) -> u32 {
                $before(order);
                self.load(order)
            }

            #[inline]
            fn store(&self, value: u32, order: Ordering) {
                self.store(value, order);
                $after(order);
            }

            #[inline]
            fn swap(&self, value: u32, order: Ordering) -> u32 {
                let old = self.swap(value, order);
                $after(order);
                old
            }

            #[inline]
            fn fetch_or(&self, bits: u32, order: Ordering) -> u32 {
                let old = self.fetch_or(bits, order);
                $after(order);
                old
            }

            #[inline]
            fn fetch_and(&self, bits: u32, order: Ordering) -> u32 {
                let old = self.fetch_and(bits, order);
                $after(order);
                old
            }

            #[inline]
            fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
                let old = self.fetch_add(value, order);
                $after(order);
                old
            }

            #[inline]
            fn exchange(&self, old: u32, new: u32, order: Ordering) -> Result<u32, u32> {
                let done = self.compare_exchange(old, new, order, Ordering::Relaxed);
                $after(order);
                done
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

macro_rules! count {
    ($atomic:ty, $exchange_here:expr, $before:expr, $after:expr) => {
        impl Count for $atomic {
            #[inline]
            fn load(&self, order: Ordering) -> u64 {
                $before(order);
                self.load(order)
            }

            #[inline]
            fn store(&self, value: u64, order: Ordering) {
                self.store(value, order);
                $after(order);
            }

            #[inline]
            fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
                let old = self.fetch_add(value, order);
                $after(order);
                old
            }

            #[inline]
            fn exchange(&self, old: u64, new: u64, order: Ordering) -> bool {
                let done = self.compare_exchange(old, new, order, Ordering::Relaxed);
                $after(order);
                done.is_ok()
            }

            #[inline]
            fn exchange_here(&self, old: u64, new: u64) -> bool {
                $exchange_here(self, old, new)
            }
        }
    };
}

word!(
    MappedU32,
    futex::wait_mapped,
    futex::wake_mapped,
    as_it_is,
    as_it_is
);
count!(MappedU64, exchange_here, as_it_is, as_it_is);
#[cfg(loom)]
word!(
    AtomicU32,
    futex::wait,
    futex::wake,
    in_one_order,
    in_one_order
);
#[cfg(loom)]
count!(
    AtomicU64,
    |word: &AtomicU64, old, new| word
        .compare_exchange(old, new, Ordering::Release, Ordering::Relaxed)
        .is_ok(),
    in_one_order,
    in_one_order
);

#[inline]
fn as_it_is(_: Ordering) {}

/// Loom takes sequentially consistent accesses for acquire and release, and knows only fences to be more. A fence before each such load
/// and after each such store gives the order that the accesses have among themselves.
#[cfg(loom)]
fn in_one_order(order: Ordering) {
    if order == Ordering::SeqCst {
        fence(Ordering::SeqCst);
    }
}

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
