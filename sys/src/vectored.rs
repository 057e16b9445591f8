//! Sending from many places, and receiving into many, with one system call.
//!
//! By system calls and not by the C library's functions: in a program under `libsovia.so` those are the library's own, which would take the
//! NIC's connection for one of the program's, and move it to shared memory behind the NIC's back.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, recvmsg, sendmsg,
};

use crate::mem::Memory;

mod around;

pub use around::{Run, receive_around, send_around};

/// One of the places that a send gathers from.
#[derive(Debug)]
pub enum Piece<'a> {
    /// Bytes of the caller's.
    Bytes(&'a [u8]),
    /// Bytes that others may change meanwhile.
    Range {
        /// Where they are.
        memory: Arc<Memory>,
        /// Where in it they begin.
        offset: usize,
        /// How many there are.
        len: usize,
    },
}

/// One of the places that a receive scatters to.
#[derive(Debug)]
pub enum Room<'a> {
    /// Bytes of the caller's.
    Bytes(&'a mut [u8]),
    /// Bytes that others may change meanwhile.
    Range {
        /// Where they are.
        memory: Arc<Memory>,
        /// Where in it they begin.
        offset: usize,
        /// How many there are.
        len: usize,
    },
}

/// Sends the pieces, one behind the other, without waiting, as far as the socket takes them: at most [`PIECES_MAX`] of them, in at most
/// [`MEMORIES_MAX`] memories. Returns how many bytes that was. Signals do not end it, and a peer that is gone raises none.
///
/// # Errors
/// `InvalidInput` if the first piece does not lie in its memory (a later one ends the gathering), `WouldBlock`, else the kernel's.
pub fn send<'a>(
    socket: impl AsFd,
    pieces: impl IntoIterator<Item = Piece<'a>>,
) -> io::Result<usize> {
    let mut vectors = [const { MaybeUninit::uninit() }; PIECES_MAX];
    let mut held = Held::default();
    let mut count = 0;
    for (piece, slot) in pieces.into_iter().zip(&mut vectors) {
        let vector = match piece {
            Piece::Bytes(bytes) => vector(bytes.as_ptr().cast_mut(), bytes.len()),
            Piece::Range {
                memory,
                offset,
                len,
            } => match held.range(memory, offset, len) {
                Some(vector) => vector,
                None if count == 0 => return Err(io::ErrorKind::InvalidInput.into()),
                None => break,
            },
        };
        slot.write(vector);
        count += 1;
    }
    // SAFETY: the first `count` vectors were written. An `IoSlice` is laid out as an `iovec`, and holds no reference but a
    // pointer that only the kernel follows: into a slice that is borrowed for 'a, or into a range that was checked against a memory in `held`,
    // which keeps it mapped. Racing writes change what is sent, no more.
    let vectors =
        unsafe { std::slice::from_raw_parts(vectors.as_ptr().cast::<IoSlice<'_>>(), count) };
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    restarting(|| sendmsg(&socket, vectors, &mut SendAncillaryBuffer::default(), flags))
}

/// Receives into the rooms, one behind the other, without waiting; limits as for [`send`]. Returns how many bytes came, 0 at the end of the stream.
/// Signals do not end it.
///
/// # Errors
/// `InvalidInput` if there is no room, or the first is not writable memory (a later one ends the scattering), `WouldBlock`, else the kernel's.
pub fn receive<'a>(
    socket: impl AsFd,
    rooms: impl IntoIterator<Item = Room<'a>>,
) -> io::Result<usize> {
    let mut vectors = [const { MaybeUninit::uninit() }; ROOMS_MAX];
    let mut held = Held::default();
    let mut count = 0;
    for (room, slot) in rooms.into_iter().zip(&mut vectors) {
        let vector = match room {
            Room::Bytes(bytes) => vector(bytes.as_mut_ptr(), bytes.len()),
            Room::Range {
                memory,
                offset,
                len,
            } => match held
                .range(memory, offset, len)
                .filter(|_| held.is_writable())
            {
                Some(vector) => vector,
                None if count == 0 => return Err(io::ErrorKind::InvalidInput.into()),
                None => break,
            },
        };
        slot.write(vector);
        count += 1;
    }
    if count == 0 {
        // The kernel would say what it says at the end of the stream.
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: as in `send`; the slices are borrowed mutably, and memory in `held` is writable and may be written by anybody at any time.
    let vectors = unsafe {
        std::slice::from_raw_parts_mut(vectors.as_mut_ptr().cast::<IoSliceMut<'_>>(), count)
    };
    restarting(|| {
        let control = &mut RecvAncillaryBuffer::default();
        recvmsg(&socket, vectors, control, RecvFlags::DONTWAIT).map(|message| message.bytes)
    })
}

fn vector(start: *mut u8, len: usize) -> libc::iovec {
    libc::iovec {
        iov_base: start.cast(),
        iov_len: len,
    }
}

/// What a call moved, made again after a signal.
fn restarting(mut call: impl FnMut() -> rustix::io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result.map_err(io::Error::from),
        }
    }
}

/// Memories that are kept until a call is over.
struct Held {
    memories: [Option<Arc<Memory>>; MEMORIES_MAX],
    count: usize,
}

impl Default for Held {
    fn default() -> Self {
        Self {
            memories: [const { None }; MEMORIES_MAX],
            count: 0,
        }
    }
}

impl Held {
    /// A range of `memory`, which is kept; `None` when it does not lie within or there is no room for one more.
    fn range(&mut self, memory: Arc<Memory>, offset: usize, len: usize) -> Option<libc::iovec> {
        if offset > memory.len() || len > memory.len() - offset {
            return None;
        }
        let start = memory.as_ptr().wrapping_add(offset);
        if !self.last().is_some_and(|last| Arc::ptr_eq(last, &memory)) {
            *self.memories.get_mut(self.count)? = Some(memory);
            self.count += 1;
        }
        Some(vector(start, len))
    }

    fn last(&self) -> Option<&Arc<Memory>> {
        self.memories.get(self.count.checked_sub(1)?)?.as_ref()
    }

    /// Whether the memory of the last range may be written.
    fn is_writable(&self) -> bool {
        self.last().is_some_and(|last| last.writable())
    }
}

/// The most pieces of one send.
pub const PIECES_MAX: usize = 256;
/// The most rooms of one receive.
pub const ROOMS_MAX: usize = 64;
/// The most memories that they lie in, counting those again that come again behind another.
pub const MEMORIES_MAX: usize = 16;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn pieces_come_in_order() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        let memory = Arc::new(Memory::private(8).expect("memory"));
        memory.write(0, b"bcdefghi").expect("in range");
        let range = |offset, len| Piece::Range {
            memory: Arc::clone(&memory),
            offset,
            len,
        };
        let pieces = [
            Piece::Bytes(b"a"),
            range(0, 3),
            Piece::Bytes(b"-"),
            range(5, 3),
        ];
        assert_eq!(send(&ours, pieces).expect("sends"), 8);
        let mut got = [0; 8];
        theirs.read_exact(&mut got).expect("reads");
        assert_eq!(&got, b"abcd-ghi");
    }

    #[test]
    fn rooms_are_filled_in_order() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        let memory = Arc::new(Memory::private(8).expect("memory"));
        let range = |offset, len| Room::Range {
            memory: Arc::clone(&memory),
            offset,
            len,
        };
        let (mut first, mut last) = ([0; 1], [0; 4]);
        theirs.write_all(b"abcd-gh").expect("writes");
        let rooms = [
            Room::Bytes(&mut first),
            range(4, 3),
            Room::Bytes(&mut []),
            Room::Bytes(&mut last),
        ];
        assert_eq!(receive(&ours, rooms).expect("receives"), 7);
        let mut placed = [0; 8];
        memory.read(0, &mut placed).expect("in range");
        assert_eq!(
            (&first, &placed, &last[..3]),
            (b"a", b"\0\0\0\0bcd\0", &b"-gh"[..])
        );
        let empty = receive(&ours, [range(0, 8)]).expect_err("nothing more");
        assert_eq!(empty.kind(), io::ErrorKind::WouldBlock);
        for outside in [range(8, 1), range(0, 9), range(usize::MAX, 2)] {
            let refused = receive(&ours, [outside]).expect_err("outside");
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        }
        drop(theirs);
        assert_eq!(receive(&ours, [range(0, 8)]).expect("the end"), 0);
    }

    #[test]
    fn what_lies_outside_is_not_sent() {
        let (ours, _theirs) = UnixStream::pair().expect("a pair");
        let memory = Arc::new(Memory::private(8).expect("memory"));
        let outside = |offset, len| Piece::Range {
            memory: Arc::clone(&memory),
            offset,
            len,
        };
        for piece in [outside(8, 1), outside(0, 9), outside(usize::MAX, 2)] {
            let refused = send(&ours, [piece]).expect_err("outside");
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        }
        let behind = [Piece::Bytes(b"ab"), outside(4, 5), Piece::Bytes(b"c")];
        assert_eq!(send(&ours, behind).expect("sends"), 2);
    }

    #[test]
    fn only_so_many_go_at_a_time() {
        let (ours, _theirs) = UnixStream::pair().expect("a pair");
        let bytes = (0..PIECES_MAX + 9).map(|_| Piece::Bytes(b"x"));
        assert_eq!(send(&ours, bytes).expect("sends"), PIECES_MAX);
        let many = (0..MEMORIES_MAX + 9).map(|_| Piece::Range {
            memory: Arc::new(Memory::private(1).expect("memory")),
            offset: 0,
            len: 1,
        });
        assert_eq!(send(&ours, many).expect("sends"), MEMORIES_MAX);
    }
}
