//! Sending from many places with one system call.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use crate::mem::Memory;

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

/// Sends the pieces, one behind the other, without waiting, as far as the socket takes them: at most [`PIECES_MAX`] of them, in at most
/// [`MEMORIES_MAX`] memories. Returns how many bytes that was. Signals do not end it, and a peer that is gone raises none.
///
/// # Errors
/// `InvalidInput` if the first piece does not lie in its memory (a later one ends the gathering), `WouldBlock`, else the kernel's.
pub fn send<'a>(
    socket: impl AsFd,
    pieces: impl IntoIterator<Item = Piece<'a>>,
) -> io::Result<usize> {
    let mut room = [const { MaybeUninit::<libc::iovec>::uninit() }; PIECES_MAX];
    let mut held: [Option<Arc<Memory>>; MEMORIES_MAX] = [const { None }; MEMORIES_MAX];
    let (mut count, mut memories) = (0, 0);
    for (piece, slot) in pieces.into_iter().zip(&mut room) {
        let vector = match piece {
            Piece::Bytes(bytes) => libc::iovec {
                iov_base: bytes.as_ptr().cast_mut().cast(),
                iov_len: bytes.len(),
            },
            Piece::Range {
                memory,
                offset,
                len,
            } => {
                let within = offset <= memory.len() && len <= memory.len() - offset;
                if !within && count == 0 {
                    return Err(io::ErrorKind::InvalidInput.into());
                }
                let start = memory.as_ptr().wrapping_add(offset);
                if !within || !hold(memory, &mut held, &mut memories) {
                    break;
                }
                libc::iovec {
                    iov_base: start.cast(),
                    iov_len: len,
                }
            }
        };
        slot.write(vector);
        count += 1;
    }
    // SAFETY: a message header of zeros is a valid one, without name, control data or vectors.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = room.as_mut_ptr().cast();
    message.msg_iovlen = count as _;
    loop {
        // SAFETY: the first `count` vectors were written. Each names bytes of a slice that is borrowed for 'a, or of a range that was checked
        // against a memory in `held`, which keeps it mapped; the kernel only reads there, and racing writes change what is sent, no more.
        let sent = unsafe {
            libc::sendmsg(
                socket.as_fd().as_raw_fd(),
                &raw const message,
                libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            )
        };
        match usize::try_from(sent) {
            Ok(sent) => return Ok(sent),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

/// Keeps `memory` until the send is over; `false` when there is no room for one more.
fn hold(
    memory: Arc<Memory>,
    held: &mut [Option<Arc<Memory>>; MEMORIES_MAX],
    memories: &mut usize,
) -> bool {
    let last = held[..*memories].last().and_then(Option::as_ref);
    if last.is_some_and(|last| Arc::ptr_eq(last, &memory)) {
        return true;
    }
    let Some(slot) = held.get_mut(*memories) else {
        return false;
    };
    *slot = Some(memory);
    *memories += 1;
    true
}

/// The most pieces of one send.
pub const PIECES_MAX: usize = 256;
/// The most memories that they lie in, counting those again that come again behind another.
pub const MEMORIES_MAX: usize = 64;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::io::Read;
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
