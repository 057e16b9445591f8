//! Bytes of the caller's before and behind one run of memory: what a call for many pieces does, for those who send and receive no others.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::AsFd;

use rustix::io::{Errno, readv};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use super::vector;
use crate::mem::Memory;

/// Bytes that others may change meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Where they are.
    pub memory: &'a Memory,
    /// Where in it they begin.
    pub offset: usize,
    /// How many there are.
    pub len: usize,
}

impl Run<'_> {
    fn vector(&self) -> Result<libc::iovec, Errno> {
        let Self {
            memory,
            offset,
            len,
        } = *self;
        if offset > memory.len() || len > memory.len() - offset {
            return Err(Errno::INVAL);
        }
        Ok(vector(memory.as_ptr().wrapping_add(offset), len))
    }
}

/// Sends `before`, the run and `behind`, without waiting, as far as the socket takes them; how many bytes that was. A peer that is gone raises no signal.
///
/// # Errors
/// `INVAL` if the run does not lie in its memory, `AGAIN`, `INTR`, else the kernel's.
#[inline]
pub fn send_around(
    socket: impl AsFd,
    before: &[u8],
    run: Run<'_>,
    behind: &[u8],
) -> Result<usize, Errno> {
    let bytes = |bytes: &[u8]| vector(bytes.as_ptr().cast_mut(), bytes.len());
    let vectors = [bytes(before), run.vector()?, bytes(behind)];
    // SAFETY: an `IoSlice` is laid out as an `iovec`, and holds no reference but a pointer that only the kernel follows: into a slice that is
    // borrowed until this returns, or into a range that was checked against its memory, which is borrowed as long and so mapped. Racing writes
    // change what is sent, no more.
    let vectors = unsafe { &*(&raw const vectors).cast::<[IoSlice<'_>; 3]>() };
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(socket, vectors, &mut SendAncillaryBuffer::default(), flags)
}

/// Receives into `before`, the run and `behind` from a socket that does not wait; how many bytes came, 0 at the end of the stream.
///
/// # Errors
/// `INVAL` if the run does not lie in its memory or that is not writable, `AGAIN`, `INTR`, else the kernel's.
#[inline]
pub fn receive_around(
    socket: impl AsFd,
    before: &mut [u8],
    run: Run<'_>,
    behind: &mut [u8],
) -> Result<usize, Errno> {
    if !run.memory.writable() {
        return Err(Errno::INVAL);
    }
    let bytes = |bytes: &mut [u8]| vector(bytes.as_mut_ptr(), bytes.len());
    let mut vectors = [bytes(before), run.vector()?, bytes(behind)];
    // SAFETY: as in `send_around`; the slices are borrowed mutably, and the memory is writable and may be written by anybody at any time.
    let vectors = unsafe { &mut *(&raw mut vectors).cast::<[IoSliceMut<'_>; 3]>() };
    // It takes the kernel less than a message's header does, and the socket itself says that nobody waits.
    readv(socket, vectors)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn run(memory: &Memory, offset: usize, len: usize) -> Run<'_> {
        Run {
            memory,
            offset,
            len,
        }
    }

    #[test]
    fn what_is_around_is_in_order() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("sets");
        let memory = Memory::private(8).expect("memory");
        memory.write(0, b"--cde---").expect("in range");
        let sent = send_around(&ours, b"ab", run(&memory, 2, 3), b"f");
        assert_eq!(sent, Ok(6));
        let mut got = [0; 6];
        theirs.read_exact(&mut got).expect("reads");
        assert_eq!(&got, b"abcdef");
        theirs.write_all(b"ABCDE").expect("writes");
        let (mut before, mut behind) = ([0; 2], [0; 9]);
        let came = receive_around(&ours, &mut before, run(&memory, 5, 2), &mut behind);
        assert_eq!(came, Ok(5));
        let mut placed = [0; 8];
        memory.read(0, &mut placed).expect("in range");
        assert_eq!((&before, &placed, behind[0]), (b"AB", b"--cdeCD-", b'E'));
        let none = receive_around(&ours, &mut before, run(&memory, 5, 2), &mut behind);
        assert_eq!(none, Err(Errno::AGAIN));
    }

    #[test]
    fn what_lies_outside_is_out_of_reach() {
        let (ours, _theirs) = UnixStream::pair().expect("a pair");
        let memory = Memory::private(8).expect("memory");
        for outside in [
            run(&memory, 8, 1),
            run(&memory, 0, 9),
            run(&memory, usize::MAX, 2),
        ] {
            let sent = send_around(&ours, b"a", outside, b"b");
            assert_eq!(sent, Err(Errno::INVAL));
            let came = receive_around(&ours, &mut [0], outside, &mut [0]);
            assert_eq!(came, Err(Errno::INVAL));
        }
    }
}
