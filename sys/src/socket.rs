//! What the kernel says of a descriptor that may be a socket. System calls only, none through the C library.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{BorrowedFd, RawFd};
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, ioctl};
use rustix::net::sockopt::{
    Timeout, set_socket_linger, socket_domain, socket_protocol, socket_timeout, socket_type,
};
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, getpeername, ipproto, socket_with,
};

/// Whether `fd` is a TCP socket, over IPv4 or IPv6.
pub fn is_tcp(fd: BorrowedFd<'_>) -> bool {
    matches!(
        socket_domain(fd),
        Ok(AddressFamily::INET | AddressFamily::INET6)
    ) && socket_type(fd) == Ok(SocketType::STREAM)
        && has_protocol_tcp(fd)
}

/// Whether `fd` is a TCP socket, or a raw one for TCP's packets.
pub fn has_protocol_tcp(fd: BorrowedFd<'_>) -> bool {
    socket_protocol(fd) == Ok(Some(ipproto::TCP))
}

/// Whether this thread may take that port of IPv4, which it does not: the kernel says so before it says that a socket has one.
pub fn may_take_port(port: u16) -> bool {
    let at = |port| SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
    let refused = || {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
        bind(&socket, &at(0))?;
        bind(&socket, &at(port))
    };
    refused() != Err(Errno::ACCESS)
}

/// Whether `fd` is a connected socket.
pub fn is_connected(fd: BorrowedFd<'_>) -> bool {
    getpeername(fd).is_ok()
}

/// Whether `O_NONBLOCK` is set; false if it cannot be asked.
pub fn is_nonblocking(fd: BorrowedFd<'_>) -> bool {
    nonblocking(fd).unwrap_or(false)
}

/// Whether `O_NONBLOCK` is set.
///
/// # Errors
/// The kernel's.
pub fn nonblocking(fd: BorrowedFd<'_>) -> Result<bool, Errno> {
    fcntl_getfl(fd).map(|flags| flags.contains(OFlags::NONBLOCK))
}

/// `SO_SNDTIMEO` in milliseconds, at least 1; -1 for none.
pub fn send_timeout_ms(fd: BorrowedFd<'_>) -> i32 {
    millis(socket_timeout(fd, Timeout::Send).ok().flatten())
}

/// `SO_RCVTIMEO` in milliseconds, at least 1; -1 for none.
pub fn receive_timeout_ms(fd: BorrowedFd<'_>) -> i32 {
    millis(socket_timeout(fd, Timeout::Recv).ok().flatten())
}

/// `TCP_NODELAY`.
pub fn nodelay(fd: BorrowedFd<'_>) -> bool {
    rustix::net::sockopt::tcp_nodelay(fd).unwrap_or(false)
}

/// Sets `TCP_NODELAY`.
pub fn set_nodelay(fd: BorrowedFd<'_>, on: bool) {
    let _ = rustix::net::sockopt::set_tcp_nodelay(fd, on);
}

/// `TCP_CORK`; false if it cannot be asked.
pub fn cork(fd: BorrowedFd<'_>) -> bool {
    rustix::net::sockopt::tcp_cork(fd).unwrap_or(false)
}

/// Sets `TCP_CORK`, if it can be set.
pub fn set_cork(fd: BorrowedFd<'_>, on: bool) {
    let _ = rustix::net::sockopt::set_tcp_cork(fd, on);
}

/// `SO_RCVLOWAT` in bytes, at least 1.
pub fn low_water(fd: BorrowedFd<'_>) -> u32 {
    crate::tcp::get(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT).map_or(1, |bytes: u32| bytes.max(1))
}

/// Sets `SO_RCVLOWAT`.
pub fn set_low_water(fd: BorrowedFd<'_>, bytes: u32) {
    // Fails only for what is no socket.
    let _ = crate::tcp::set(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes);
}

/// Has the connection reset when its last descriptor is closed.
pub fn reset_on_close(fd: BorrowedFd<'_>) {
    // Fails only for what is no socket, which has no connection to reset.
    let _ = set_socket_linger(fd, Some(Duration::ZERO));
}

/// `SO_LINGER`, if it is on.
pub fn linger(fd: BorrowedFd<'_>) -> Option<Duration> {
    rustix::net::sockopt::socket_linger(fd).ok().flatten()
}

/// Sets `SO_LINGER`.
pub fn set_linger(fd: BorrowedFd<'_>, linger: Option<Duration>) {
    let _ = set_socket_linger(fd, linger);
}

/// Whether urgent data stays in the stream (`SO_OOBINLINE`).
pub fn urgent_inline(fd: BorrowedFd<'_>) -> bool {
    rustix::net::sockopt::socket_oobinline(fd).unwrap_or(false)
}

/// Sets `SO_OOBINLINE`.
pub fn set_urgent_inline(fd: BorrowedFd<'_>, on: bool) {
    let _ = rustix::net::sockopt::set_socket_oobinline(fd, on);
}

/// Whether `SO_ZEROCOPY` is set.
pub fn zero_copies(fd: BorrowedFd<'_>) -> bool {
    crate::tcp::get::<u32>(fd, libc::SOL_SOCKET, libc::SO_ZEROCOPY).is_ok_and(|on| on != 0)
}

/// Whether each message says how much is left (`TCP_INQ`).
pub fn says_what_is_left(fd: BorrowedFd<'_>) -> bool {
    crate::tcp::get::<u32>(fd, libc::IPPROTO_TCP, libc::TCP_INQ).is_ok_and(|on| on != 0)
}

/// Resets a connection at once, whoever has it.
pub fn reset_now(fd: BorrowedFd<'_>) {
    if rustix::net::connect_unspec(fd).is_err() {
        reset_on_close(fd);
        let _ = rustix::net::shutdown(fd, rustix::net::Shutdown::Both);
    }
}

/// `shutdown` of what is received, of what is sent, or both.
///
/// # Errors
/// As `shutdown`.
pub fn shut(fd: BorrowedFd<'_>, reading: bool, writing: bool) -> Result<(), Errno> {
    use rustix::net::Shutdown;
    let how = match (reading, writing) {
        (false, false) => return Ok(()),
        (true, false) => Shutdown::Read,
        (false, true) => Shutdown::Write,
        (true, true) => Shutdown::Both,
    };
    rustix::net::shutdown(fd, how)
}

/// Takes the error that the next call would tell (`SO_ERROR`).
pub fn forget_error(fd: BorrowedFd<'_>) {
    let _ = rustix::net::sockopt::socket_error(fd);
}

/// `shutdown(SHUT_WR)`; a connection that is gone has nothing to shut.
pub fn finish(fd: BorrowedFd<'_>) {
    let _ = rustix::net::shutdown(fd, rustix::net::Shutdown::Write);
}

/// Whether the next byte is the urgent one, or was (`SIOCATMARK`).
pub fn is_at_mark(fd: BorrowedFd<'_>) -> bool {
    // SAFETY: the kernel stores an int.
    let asked = unsafe { ioctl(fd, Getter::<SIOCATMARK, libc::c_int>::new()) };
    asked.is_ok_and(|at| at != 0)
}

/// Which socket a descriptor is, if it is one. Two of the same are duplicates.
pub fn inode(fd: BorrowedFd<'_>) -> Option<u64> {
    let stat = rustix::fs::fstat(fd).ok()?;
    let is_socket = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_socket();
    is_socket.then_some(stat.st_ino)
}

/// The number by which the kernel knows a socket: no other has it until the host boots again.
pub fn cookie(fd: BorrowedFd<'_>) -> Option<u64> {
    rustix::net::sockopt::socket_cookie(fd).ok()
}

/// Whether there is a descriptor of this number.
pub fn is_open(fd: RawFd) -> bool {
    with_borrowed(fd, |fd| rustix::io::fcntl_getfd(fd).is_ok()).unwrap_or(false)
}

/// Calls `act` with a descriptor of the program, if the number can be one. If it is none, or somebody closes it meanwhile, system
/// calls with it fail, or act on what the number has become.
#[inline]
pub fn with_borrowed<R>(fd: RawFd, act: impl FnOnce(BorrowedFd<'_>) -> R) -> Option<R> {
    // SAFETY: not -1, and used for system calls only, as this function says.
    (fd >= 0).then(|| act(unsafe { BorrowedFd::borrow_raw(fd) }))
}

/// `asm-generic/sockios.h`.
const SIOCATMARK: Opcode = 0x8905;

fn millis(timeout: Option<Duration>) -> i32 {
    timeout.map_or(-1, |timeout| {
        // Up: who waits for less than the program asked for would find the time not over.
        i32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_is_shortened() {
        let millis = |nanos| millis(Some(Duration::from_nanos(nanos)));
        assert_eq!([1, 1_000_000, 1_900_000].map(millis), [1, 1, 2]);
        assert_eq!(super::millis(None), -1);
    }
}
