//! Programs that pass one set to `select` twice. The kernel reads it each time, and writes what it found in the order of its arguments.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;

use libc::fd_set;

use crate::buffers::is_memory;

/// The sets of a call, each in memory of its own.
pub(super) struct Apart {
    given: [*mut fd_set; 3],
    words: usize,
    /// Where the sets are if the program passed one more than once.
    copies: [MaybeUninit<[u64; WORDS_MAX]>; 3],
    is_apart: bool,
}

/// Whether one is passed more than once.
#[inline]
pub(super) fn any_twice([read, write, except]: [*mut fd_set; 3]) -> bool {
    (!read.is_null() && (read == write || read == except)) || (!write.is_null() && write == except)
}

impl Apart {
    /// Those of more descriptors than there is room for stay as they are.
    ///
    /// # Safety
    /// As `select`.
    #[inline]
    pub(super) unsafe fn of(count: c_int, given: [*mut fd_set; 3]) -> Self {
        let mut apart = Self {
            given,
            words: usize::try_from(count).unwrap_or(0).div_ceil(64),
            copies: [const { MaybeUninit::uninit() }; 3],
            is_apart: false,
        };
        if any_twice(given) && apart.words <= WORDS_MAX {
            // SAFETY: by the contract.
            unsafe { apart.copy() };
        }
        apart
    }

    #[cold]
    unsafe fn copy(&mut self) {
        if self
            .given
            .iter()
            .any(|set| !set.is_null() && !is_memory(*set))
        {
            return;
        }
        for (copy, set) in self.copies.iter_mut().zip(self.given) {
            let copy = copy.write([0; WORDS_MAX]);
            if !set.is_null() {
                // SAFETY: by the contract of the caller a set has so many whole words, and there is room for them.
                unsafe { ptr::copy_nonoverlapping(set.cast(), copy.as_mut_ptr(), self.words) };
            }
        }
        self.is_apart = true;
    }

    /// The sets to work with, as long as this one stays where it is.
    #[inline]
    pub(super) fn pointers(&mut self) -> [*mut fd_set; 3] {
        let mut sets = self.given;
        if self.is_apart {
            for (set, copy) in sets.iter_mut().zip(&mut self.copies) {
                if !set.is_null() {
                    *set = copy.as_mut_ptr().cast();
                }
            }
        }
        sets
    }

    /// Writes what was found to where the program looks for it, if the call has succeeded.
    #[inline]
    pub(super) fn end(&self, result: c_int) -> c_int {
        if self.is_apart && result >= 0 {
            for (copy, set) in self.copies.iter().zip(self.given) {
                if !set.is_null() {
                    // SAFETY: as in `copy`.
                    unsafe {
                        ptr::copy_nonoverlapping(
                            copy.as_ptr().cast::<u64>(),
                            set.cast(),
                            self.words,
                        );
                    }
                }
            }
        }
        result
    }
}

/// As many descriptors as the C library's type has room for.
const WORDS_MAX: usize = 16;
