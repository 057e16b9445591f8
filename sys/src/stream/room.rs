//! How much of the address space streams may take, where that has a limit.

use crate::limits;
use crate::mem::parted_bytes;

/// Whether one more stream, of `len` bytes, leaves the program's limit (RLIMIT_AS) to the program, which without us has no such memory in it.
pub fn leaves_room(len: usize) -> bool {
    limits::soft(libc::RLIMIT_AS).is_none_or(|most| parted_bytes() + len as u64 <= most / PART)
}

/// Whether a program that this one becomes, which has its limit, has room for this library and for the streams that there are. Else it would run without the library, or
/// could not map a stream, and lose the connection.
pub fn fits_in_the_next() -> bool {
    limits::soft(libc::RLIMIT_AS).is_none_or(|most| parted_bytes() + NEXT <= most)
}

/// Streams take one in so many bytes.
pub const PART: u64 = 4;

/// For a program and this library with its tables.
const NEXT: u64 = 128 << 20;
