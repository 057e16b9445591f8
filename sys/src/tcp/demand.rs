//! What a program may have asked of TCP that no memory can do for it. A system call a question.

use std::os::fd::BorrowedFd;

use super::option::{get, len};

/// Whether the kernel encrypts, or otherwise wraps, what goes over the connection (`TCP_ULP`). TLS without keys does neither: libraries ask for it at
/// once, and for most connections that is all.
pub fn is_wrapped(fd: BorrowedFd<'_>) -> bool {
    let Ok(name) = get::<u32>(fd, libc::IPPROTO_TCP, libc::TCP_ULP) else {
        return false;
    };
    // The name's first four bytes, zero where there is none.
    match &name.to_ne_bytes() {
        [0, ..] => false,
        // To who asks for no more than the head of the keys it is refused where there are none yet.
        b"tls\0" => [TLS_TX, TLS_RX]
            .iter()
            .any(|keys| get::<u32>(fd, libc::SOL_TLS, *keys).is_ok()),
        _ => true,
    }
}

/// Whether a program of the socket's (`SO_ATTACH_FILTER`, `SO_ATTACH_BPF`) says what is received.
pub fn is_filtered(fd: BorrowedFd<'_>) -> bool {
    match len(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER) {
        Ok(instructions) => instructions != 0,
        // One that was compiled elsewhere cannot be shown.
        Err(errno) => errno == rustix::io::Errno::ACCESS,
    }
}

/// Whether a peek begins where the last one ended (`SO_PEEK_OFF`).
pub fn peeks_at_offset(fd: BorrowedFd<'_>) -> bool {
    get::<u32>(fd, libc::SOL_SOCKET, libc::SO_PEEK_OFF)
        .is_ok_and(|offset| offset.cast_signed() >= 0)
}

/// Whether what is sent is held back to a rate (`SO_MAX_PACING_RATE`).
pub fn is_paced(fd: BorrowedFd<'_>) -> bool {
    get::<u32>(fd, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE).is_ok_and(|rate| rate != u32::MAX)
}

/// Whether the kernel is asked for the times at which what is sent leaves (`SO_TIMESTAMPING`).
pub fn stamps_what_is_sent(fd: BorrowedFd<'_>) -> bool {
    get::<u32>(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPING)
        .is_ok_and(|flags| flags & STAMPS_SENT != 0)
}

/// Whether the kernel is to say by signals that something comes, or that there is room (`O_ASYNC`).
pub fn signals(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fcntl_getfl(fd).is_ok_and(|flags| flags.bits() & libc::O_ASYNC.cast_unsigned() != 0)
}

/// Those of the flags of `SO_TIMESTAMPING` that are about what is sent (`SOF_TIMESTAMPING_TX_…`).
pub const STAMPS_SENT: u32 = libc::SOF_TIMESTAMPING_TX_HARDWARE
    | libc::SOF_TIMESTAMPING_TX_SOFTWARE
    | libc::SOF_TIMESTAMPING_TX_SCHED
    | libc::SOF_TIMESTAMPING_TX_ACK
    | TX_COMPLETION;
/// Linux 6.15.
const TX_COMPLETION: u32 = 1 << 18;
// `linux/tls.h`.
const TLS_TX: i32 = 1;
const TLS_RX: i32 = 2;
