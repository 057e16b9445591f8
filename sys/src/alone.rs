//! Exchanges that keep other threads out only where there are any.
//!
//! A locked instruction waits for all stores before it, some of which are to lines that a peer has just read. A process with one thread needs none among
//! its own: it and its signal handlers see whole instructions. The C library knows whether there is one, and says so (`__libc_single_threaded`, since glibc 2.32)
//! until just before the first other thread begins; what was taken without a lock is seen by that thread, for whatever makes it is ordered before it. (But for a handler
//! that makes the first thread between this look and the exchange behind it: a few instructions, once in a process.)
//!
//! See [decision 45](../../docs/decisions/0045-one-thread.md).

use std::ffi::c_char;

use crate::sync::mapped::AtomicU32 as MappedU32;
use crate::sync::{AtomicPtr, AtomicUsize, Ordering, fence};

/// Has the C library say whether there is one thread. Until then each exchange is a locked one.
///
/// To be called before there are others: by the time the program begins.
#[inline]
pub fn find() {
    // A program may have a copy of it: then this is that one, which all that may begin a thread clear.
    let word = (&raw const __libc_single_threaded).cast_mut();
    // Not if others are expected already: a constructor of the program's may have come first.
    let _ = WORD.compare_exchange(UNKNOWN, word, Ordering::Relaxed, Ordering::Relaxed);
}

unsafe extern "C" {
    /// glibc, since 2.32.
    static __libc_single_threaded: c_char;
}

/// From now on there may be threads that the C library does not know of.
pub fn expect_others() {
    WORD.store(SEVERAL, Ordering::Relaxed);
}

/// As if the C library said that this is the only thread.
///
/// # Safety
/// It is, until [`expect_others`].
pub unsafe fn believe() {
    static ALONE: c_char = 1;
    WORD.store((&raw const ALONE).cast_mut(), Ordering::Relaxed);
}

/// Whether this is the only thread of its process.
#[inline]
pub fn is_alone() -> bool {
    // SAFETY: our own byte or the C library's, which is there as long as we are. It is written by this thread alone while it is not 0.
    unsafe { WORD.load(Ordering::Relaxed).read_volatile() != 0 }
}

/// Between two polls of memory that a peer writes, at each of which something is exchanged: takes the time that a locked one takes.
///
/// Else the processor reads ahead, and what it has read is thrown away when the peer writes: 64 B there and back take 8 to 20 ns more.
#[inline]
pub fn slow_down() {
    if cfg!(all(target_arch = "x86_64", not(loom))) && is_alone() {
        fence(Ordering::SeqCst);
    }
}

/// 0 where there are several threads, or may be.
static WORD: AtomicPtr<c_char> = AtomicPtr::new(UNKNOWN);
/// Before [`find`].
const UNKNOWN: *mut c_char = (&raw const ZEROES[0]).cast_mut();
/// After [`expect_others`].
const SEVERAL: *mut c_char = (&raw const ZEROES[1]).cast_mut();
static ZEROES: [c_char; 2] = [0; 2];

/// Words of a process's own memory. Other processes are not kept out.
pub trait Exchange {
    /// What the word holds.
    type Value;

    /// As `compare_exchange`, acquired and released where others are kept out: the value before.
    ///
    /// # Errors
    /// The value that is there, if it is not `old`.
    fn exchange(&self, old: Self::Value, new: Self::Value) -> Result<Self::Value, Self::Value>;
}

macro_rules! exchange {
    ($word:ty, $value:ty, $size:literal, $register:literal) => {
        impl Exchange for $word {
            type Value = $value;

            #[inline(always)]
            fn exchange(&self, old: $value, new: $value) -> Result<$value, $value> {
                #[cfg(all(target_arch = "x86_64", not(loom)))]
                if is_alone() {
                    let before: $value;
                    // SAFETY: the reference makes the word valid, no other thread has it, and an instruction is atomic towards signals of its own thread.
                    unsafe {
                        core::arch::asm!(
                            concat!("cmpxchg ", $size, " ptr [{word}], {new", $register, "}"),
                            word = in(reg) self.as_ptr(),
                            new = in(reg) new,
                            inout("rax") old => before,
                            options(nostack),
                        );
                    }
                    return if before == old { Ok(before) } else { Err(before) };
                }
                self.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire)
            }
        }
    };
}

exchange!(AtomicUsize, usize, "qword", "");
exchange!(MappedU32, u32, "dword", ":e");
