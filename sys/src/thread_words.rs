//! Words of each thread, which it and its signal handlers reach without a call.

/// Has `$words(me)` give the `$type` of the thread `me`, which calls: all zero at first, and there as long as the thread is. `$symbol` is its name for the linker.
///
/// What `std` offers costs a call, and in a handler of a library that was loaded late may allocate.
macro_rules! thread_words {
    ($visible:vis fn $words:ident($me:ident) -> $type:ty as $symbol:literal) => {
        /// Those of the thread
        #[doc = concat!("`", stringify!($me), "`, which calls.")]
        #[inline]
        $visible fn $words($me: usize) -> &'static $type {
            let offset: usize;
            // SAFETY: reads where the linker has put the symbol below, as seen from the thread control block, which never changes.
            unsafe {
                core::arch::asm!(
                    concat!("mov {}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                    out(reg) offset,
                    options(pure, nomem, nostack, preserves_flags)
                );
            };
            let words = std::ptr::with_exposed_provenance::<$type>($me.wrapping_add(offset));
            // SAFETY: as long as the type and as aligned, zero at first, and there as long as the thread is. Nobody keeps the reference for longer.
            unsafe { &*words }
        }

        core::arch::global_asm!(
            concat!(".pushsection .tbss.", $symbol, ", \"awT\", @nobits"),
            // A test may have this crate twice.
            concat!(".weak ", $symbol),
            concat!(".hidden ", $symbol),
            concat!(".type ", $symbol, ", @object"),
            concat!(".size ", $symbol, ", {len}"),
            ".p2align 6",
            concat!($symbol, ":"),
            ".zero {len}",
            ".popsection",
            len = const size_of::<$type>(),
        );
        const _: () = assert!(align_of::<$type>() <= 64);
    };
}

pub(crate) use thread_words;
