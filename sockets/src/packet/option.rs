//! Options of a socket of type `SOCK_VIA`: `setsockopt` and `getsockopt`, with Linux's numbers.

use sys::errno::Errno;

use super::SOCK_VIA;
use super::socket::Socket;

/// What is kept, to be read back.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kept {
    cork: bool,
    receive_buffer: Option<i32>,
    send_buffer: Option<i32>,
}

/// Sets an option to what `value` reads: TCP_NODELAY counts, a TCP_CORK that is drawn, SO_LINGER of no time, SO_RCVTIMEO and SO_SNDTIMEO; what
/// else a TCP socket has is accepted and means nothing. Then [`is_of_stand_in`] says whether the descriptor is to be told, too.
///
/// # Errors
/// `ENOPROTOOPT` for other levels; `EINVAL` for a value that is too short, and those of `value`.
pub fn set<'a>(
    socket: &Socket,
    level: i32,
    name: i32,
    value: impl Fn() -> Result<&'a [u8], Errno>,
) -> Result<(), Errno> {
    let number = || word(value()?, 0);
    match (level, name) {
        (IPPROTO_TCP, TCP_NODELAY) => socket.set_nodelay(number()? != 0),
        (IPPROTO_TCP, TCP_CORK) => {
            let on = number()? != 0;
            socket.kept().cork = on;
            if let (false, Ok(stream)) = (on, socket.stream()) {
                stream.release();
            }
        }
        (SOL_SOCKET, SO_RCVBUF) => socket.kept().receive_buffer = Some(number()?),
        (SOL_SOCKET, SO_SNDBUF) => socket.kept().send_buffer = Some(number()?),
        (SOL_SOCKET, SO_LINGER) => {
            // A `struct linger`: whether, and for how many seconds.
            let linger = value()?;
            let (on, seconds) = (word(linger, 0)?, word(linger, 1)?);
            socket.set_resets(on != 0 && seconds == 0);
        }
        (SOL_SOCKET, SO_RCVTIMEO | SO_SNDTIMEO) => socket.set_timed(),
        (SOL_SOCKET | IPPROTO_IP | IPPROTO_TCP, _) => {}
        _ => return Err(Errno::NOPROTOOPT),
    }
    Ok(())
}

/// TCP_NODELAY, TCP_CORK, SO_RCVBUF, SO_SNDBUF, SO_TYPE, SO_ERROR, SO_ACCEPTCONN, SO_DOMAIN, SO_PROTOCOL.
///
/// # Errors
/// `ENOPROTOOPT` for any other.
pub fn get(socket: &Socket, level: i32, name: i32) -> Result<i32, Errno> {
    Ok(match (level, name) {
        (IPPROTO_TCP, TCP_NODELAY) => socket.nodelay().into(),
        (IPPROTO_TCP, TCP_CORK) => socket.kept().cork.into(),
        (SOL_SOCKET, SO_RCVBUF) => doubled(socket.kept().receive_buffer),
        (SOL_SOCKET, SO_SNDBUF) => doubled(socket.kept().send_buffer),
        (SOL_SOCKET, SO_TYPE) => SOCK_VIA,
        (SOL_SOCKET, SO_ERROR) => socket.take_error().map_or(0, Errno::raw_os_error),
        (SOL_SOCKET, SO_DOMAIN) => AF_INET,
        (SOL_SOCKET, SO_PROTOCOL) => 0,
        (SOL_SOCKET, SO_ACCEPTCONN) => socket.is_listening().into(),
        _ => return Err(Errno::NOPROTOOPT),
    })
}

/// Whether the descriptor keeps the option: it is a socket of the kernel's, and what is not ours is read back from there. Its buffers are how it
/// shows that there is room.
#[must_use]
pub fn is_of_stand_in(level: i32, name: i32) -> bool {
    level == SOL_SOCKET
        && !matches!(
            name,
            SO_SNDBUF | SO_RCVBUF | SO_SNDBUFFORCE | SO_RCVBUFFORCE
        )
}

/// The `int` at that place of a value.
fn word(value: &[u8], place: usize) -> Result<i32, Errno> {
    let word = value.as_chunks().0.get(place).ok_or(Errno::INVAL)?;
    Ok(i32::from_ne_bytes(*word))
}

/// As Linux answers: twice what it was told, for what it keeps besides, and no less than its least.
fn doubled(told: Option<i32>) -> i32 {
    told.map_or(BUFFER, |size| {
        size.clamp(BUFFER_LEAST / 2, BUFFER).saturating_mul(2)
    })
}

const IPPROTO_IP: i32 = 0;
const IPPROTO_TCP: i32 = 6;
const TCP_NODELAY: i32 = 1;
const TCP_CORK: i32 = 3;
const SOL_SOCKET: i32 = 1;
const SO_TYPE: i32 = 3;
const SO_ERROR: i32 = 4;
const SO_SNDBUF: i32 = 7;
const SO_RCVBUF: i32 = 8;
const SO_LINGER: i32 = 13;
const SO_RCVTIMEO: i32 = 20;
const SO_SNDTIMEO: i32 = 21;
const SO_SNDBUFFORCE: i32 = 32;
const SO_RCVBUFFORCE: i32 = 33;
const SO_ACCEPTCONN: i32 = 30;
const SO_PROTOCOL: i32 = 38;
const SO_DOMAIN: i32 = 39;
const AF_INET: i32 = 2;
/// A window of the largest packets.
const BUFFER: i32 = 1 << 20;
const BUFFER_LEAST: i32 = 4608;
