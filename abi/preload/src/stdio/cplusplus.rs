//! The streams of C++.

use std::ffi::CStr;

use sys::quiet::Quiet;

/// Whether there are some that hold on to `stdin`, `stdout` and `stderr` as those were when they were made: before this call, or, of what the program was started
/// with, before this library began. Older versions of libstdc++ make theirs with the first source that asks for them, which is after that.
pub(super) fn hold_on(since_the_start: bool) -> bool {
    has(LIBCXX_COUT) || has(LIBSTDCXX_COUT) && (!since_the_start || has(LIBSTDCXX_BEGINS_FIRST))
}

fn has(name: &CStr) -> bool {
    // The linker has a lock, which a handler must not leave.
    let _quiet = Quiet::begin();
    // SAFETY: looks a name up.
    !unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.is_null()
}

/// `std::cout`.
const LIBSTDCXX_COUT: &CStr = c"_ZSt4cout";
/// The same, in the version of its names that it has had so far.
const LIBCXX_COUT: &CStr = c"_ZNSt3__14coutE";
/// `std::ios_base_library_init`, from GCC 13 on.
const LIBSTDCXX_BEGINS_FIRST: &CStr = c"_ZSt21ios_base_library_initv";
