//! Copying straight from and to the memory of another process, with a single copy and without its help.
//!
//! The kernel allows it to whoever may ptrace the other process; Yama's `ptrace_scope` and containers often say no. The remote
//! address may be anything: the kernel checks it against the other process's mappings.

use std::io;
use std::ptr;

use crate::mem::Memory;

/// Copies up to `len` bytes at `remote_addr` of the process `pid` to `offset` of `to`; says how many.
///
/// Fewer than `len` means that the remote pages end there, or became unreadable meanwhile. Not atomic: the other process may be writing.
///
/// # Errors
/// `PermissionDenied` (`EPERM`) if the kernel does not let us; `ESRCH` for no such process; `EFAULT` if not even the first byte is readable
/// there; `InvalidInput` if `to` is not writable or the range lies outside it.
pub fn read(
    pid: u32,
    remote_addr: u64,
    to: &Memory,
    offset: usize,
    len: usize,
) -> io::Result<usize> {
    if !to.writable() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    transfer(
        libc::SYS_process_vm_readv,
        pid,
        remote_addr,
        local(to, offset, len)?,
    )
}

/// Copies up to `len` bytes at `offset` of `from` to `remote_addr` of the process `pid`; says how many.
///
/// # Errors
/// As [`read`], the directions exchanged; any `from` will do.
pub fn write(
    pid: u32,
    remote_addr: u64,
    from: &Memory,
    offset: usize,
    len: usize,
) -> io::Result<usize> {
    transfer(
        libc::SYS_process_vm_writev,
        pid,
        remote_addr,
        local(from, offset, len)?,
    )
}

/// A range of our own memory that a borrowed [`Memory`] keeps mapped.
struct Local<'a> {
    memory: &'a Memory,
    offset: usize,
    len: usize,
}

fn local(memory: &Memory, offset: usize, len: usize) -> io::Result<Local<'_>> {
    match offset.checked_add(len) {
        Some(end) if end <= memory.len() => Ok(Local {
            memory,
            offset,
            len,
        }),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn transfer(call: libc::c_long, pid: u32, remote_addr: u64, local: Local<'_>) -> io::Result<usize> {
    let local_addr = local.memory.addr() + local.offset as u64;
    let mut done = 0;
    while done < local.len {
        let ours = window(
            ptr::with_exposed_provenance_mut,
            local_addr,
            done,
            local.len,
        )?;
        let theirs = window(ptr::without_provenance_mut, remote_addr, done, local.len)?;
        // SAFETY: `ours` lies within `local.memory`, as `local` checked, which is borrowed and so stays mapped; a `Memory` is only accessed through
        // raw pointers and atomics, so that the kernel may write to it as another process might. `theirs` is not ours to dereference: the kernel validates it.
        let moved = unsafe {
            libc::syscall(
                call,
                pid,
                &raw const ours,
                1usize,
                &raw const theirs,
                1usize,
                0usize,
            )
        };
        match usize::try_from(moved) {
            Ok(0) => break,
            Ok(moved) => done += moved,
            Err(_) => {
                let error = io::Error::last_os_error();
                match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    _ if done > 0 => break,
                    _ => return Err(error),
                }
            }
        }
    }
    Ok(done)
}

/// The part from `done` on of `len` bytes at `addr`.
fn window(
    pointer: fn(usize) -> *mut libc::c_void,
    addr: u64,
    done: usize,
    len: usize,
) -> io::Result<libc::iovec> {
    let start = addr
        .checked_add(done as u64)
        .ok_or(io::ErrorKind::InvalidInput)?;
    Ok(libc::iovec {
        iov_base: pointer(start as usize),
        iov_len: len - done,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_outside_the_memory_is_refused() {
        let memory = Memory::private(4096).expect("memory");
        let pid = std::process::id();
        for (offset, len) in [(4096, 1), (1, 4096), (usize::MAX, 2)] {
            let refused = read(pid, memory.addr(), &memory, offset, len).expect_err("outside");
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        }
        assert_eq!(
            read(pid, memory.addr(), &memory, 4096, 0).expect("nothing"),
            0
        );
    }

    #[test]
    fn an_address_that_is_not_mapped_is_a_fault() {
        let memory = Memory::private(4096).expect("memory");
        let fault = read(std::process::id(), 8, &memory, 0, 16).expect_err("page 0");
        assert_eq!(fault.raw_os_error(), Some(libc::EFAULT));
    }

    #[test]
    fn a_copy_stops_where_the_remote_pages_end() {
        let copy = Memory::private(3 * 4096).expect("memory");
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh mapping of three pages, of which the last is then taken away; nothing else refers to them.
        let pages = unsafe {
            let pages = libc::mmap(ptr::null_mut(), 3 * 4096, libc::PROT_READ, flags, -1, 0);
            assert_ne!(pages, libc::MAP_FAILED);
            assert_eq!(
                libc::mprotect(pages.byte_add(2 * 4096), 4096, libc::PROT_NONE),
                0
            );
            pages
        };
        let got =
            read(std::process::id(), pages as u64 + 96, &copy, 0, 3 * 4096).expect("two pages");
        assert_eq!(got, 2 * 4096 - 96);
        // SAFETY: the mapping made above, used by nobody.
        assert_eq!(unsafe { libc::munmap(pages, 3 * 4096) }, 0);
    }
}
