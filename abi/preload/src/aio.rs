//! Asynchronous input and output, as POSIX has it: threads of the C library's read and write, and their calls cannot be seen.

use std::ffi::c_int;

use libc::{aiocb, sigevent};
use sockets::handover::go_back;
use sockets::reason::Reason;

use crate::outcome::{connection, keeping_errno};
use crate::real;

/// The descriptor's connection is TCP's from now on.
fn leave_ring(fd: c_int) {
    keeping_errno(|| {
        if let Some((conn, fd)) = connection(fd) {
            go_back(conn, fd, Reason::RawCalls);
        }
    });
}

macro_rules! posted {
    ($($name:ident)*) => {$(
        /// POSIX.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(block: *mut aiocb) -> c_int {
            // SAFETY: the program's block, or none.
            if let Some(block) = unsafe { block.as_ref() } {
                leave_ring(block.aio_fildes);
            }
            // SAFETY: the program's own call.
            unsafe { real::$name(block) }
        }
    )*};
}

// With 64-bit addresses the block is the same for large files.
posted! { aio_read aio_read64 aio_write aio_write64 }

macro_rules! listed {
    ($($name:ident)*) => {$(
        /// POSIX.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(
            mode: c_int,
            blocks: *const *mut aiocb,
            count: c_int,
            event: *mut sigevent,
        ) -> c_int {
            for at in 0..usize::try_from(count).unwrap_or(0) {
                // SAFETY: so many places are the program's, each with a block or none.
                if let Some(block) = unsafe { blocks.add(at).read().as_ref() } {
                    leave_ring(block.aio_fildes);
                }
            }
            // SAFETY: the program's own call.
            unsafe { real::$name(mode, blocks, count, event) }
        }
    )*};
}

listed! { lio_listio lio_listio64 }
