//! Asynchronous input and output: as POSIX has it, threads of the C library's read and write, and as Linux has it, the kernel does. Neither can be seen.

use std::ffi::{c_int, c_long};

use libc::{aiocb, sigevent};
use sockets::handover::go_back;
use sockets::reason::Reason;

use crate::buffers::is_memory;
use crate::outcome::{connection, keeping_errno};
use crate::{real, via_socket};

/// The descriptor's connection is TCP's from now on.
fn leave_ring(fd: c_int) {
    via_socket::share(fd);
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
        pub unsafe extern "C-unwind" fn $name(block: *mut aiocb) -> c_int {
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
        pub unsafe extern "C-unwind" fn $name(
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

/// Before the kernel is handed blocks of its own kind, to read, write or wait.
///
/// # Safety
/// The program's `count` pointers to such blocks, as `io_submit` wants them.
pub(crate) unsafe fn before_submit(count: c_long, blocks: *const *const Block) {
    if !is_memory(blocks) {
        return;
    }
    for at in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: by the contract.
        if let Some(block) = unsafe { blocks.add(at).read().as_ref() } {
            leave_ring(block.fd.cast_signed());
        }
    }
}

/// libaio. It makes its system calls by instructions of its own, and says the error's number below zero.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn io_submit(
    context: usize,
    count: c_long,
    blocks: *const *const Block,
) -> c_int {
    // Not by its own function: it may be a library that only its user knows of.
    let call = libc::SYS_io_submit;
    // SAFETY: the program's own call, here and below.
    unsafe { before_submit(count, blocks) };
    let mut errno = 0;
    let submitted = keeping_errno(|| {
        // SAFETY: as above.
        let submitted = unsafe {
            real::syscall(
                call,
                context,
                count.cast_unsigned() as usize,
                blocks.expose_provenance(),
                0,
                0,
                0,
            )
        };
        if submitted < 0 {
            errno = crate::outcome::errno().raw_os_error();
        }
        submitted
    });
    if submitted < 0 {
        -errno
    } else {
        submitted as c_int
    }
}

/// `struct iocb` of `linux/aio_abi.h`, as far as we read it.
#[repr(C)]
pub struct Block {
    data: u64,
    key_and_flags: [u32; 2],
    operation: u16,
    priority: i16,
    fd: u32,
}

const _: () = assert!(std::mem::offset_of!(Block, fd) == 20);
