//! Options of a socket of type `SOCK_VIA`: `setsockopt` and `getsockopt`, with Linux's numbers.

use std::time::Duration;

use sys::argument::Family;
use sys::errno::Errno;

use super::SOCK_VIA;
use super::socket::Socket;
use super::stream::Stream;

/// What is kept, to be read back.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kept {
    cork: bool,
    receive_buffer: Option<i32>,
    send_buffer: Option<i32>,
    low_water: Option<i32>,
    peek_offset: Option<usize>,
    says_left: bool,
    only_v6: bool,
    /// How long a connection waits for its first bytes before it is there to be accepted.
    pub(super) deferral: Option<Duration>,
}

impl Kept {
    /// What a stream is to know of it.
    pub(super) fn apply(&self, stream: &Stream) {
        if let Some(bytes) = self.low_water {
            stream.set_low_water(bytes.cast_unsigned());
        }
        if self.peek_offset.is_some() {
            stream.set_peek_offset(self.peek_offset);
        }
    }
}

/// Sets an option to what `value` reads: TCP_NODELAY counts, a TCP_CORK that is drawn, SO_LINGER of no time, SO_RCVTIMEO and SO_SNDTIMEO; what
/// else a TCP socket has, and as the kernel would take it, is kept to be read back and means nothing. Then [`is_of_stand_in`] says whether the descriptor is to be told, too.
///
/// # Errors
/// `ENOPROTOOPT` for other levels; `EINVAL` for a value that is too short, and those of `value` and of TCP.
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
        (SOL_SOCKET, SO_RCVLOWAT) => {
            // As Linux has it: a negative one is no limit.
            let bytes = match number()? {
                ..0 => i32::MAX,
                bytes => bytes.max(1),
            };
            let mut kept = socket.kept();
            kept.low_water = Some(bytes);
            if let Ok(stream) = socket.stream() {
                kept.apply(stream);
            }
        }
        (SOL_SOCKET, SO_PEEK_OFF) => {
            let offset = usize::try_from(number()?).ok();
            socket.kept().peek_offset = offset;
            if let Ok(stream) = socket.stream() {
                stream.set_peek_offset(offset);
            }
        }
        (IPPROTO_TCP, TCP_INQ) => {
            socket.kept().says_left = match number()? {
                0 => false,
                1 => true,
                _ => return Err(Errno::INVAL),
            };
        }
        (IPPROTO_IPV6, IPV6_V6ONLY) if socket.family() == Family::V6 => {
            socket.kept().only_v6 = number()? != 0;
        }
        (IPPROTO_TCP, TCP_DEFER_ACCEPT) => {
            let family = socket.family();
            let mut told = [0; 4];
            let mut options = socket.options();
            options.set(family, level, name, value()?)?;
            // TCP counts in repetitions, and says how long those take.
            options.get(family, level, name, &mut told)?;
            drop(options);
            let seconds = u64::try_from(word(&told, 0)?).unwrap_or(0);
            socket.set_deferral((seconds > 0).then(|| Duration::from_secs(seconds)));
        }
        (SOL_SOCKET, _) => {}
        (IPPROTO_IP | IPPROTO_TCP | IPPROTO_IPV6, _) => {
            let family = socket.family();
            socket.options().set(family, level, name, value()?)?;
        }
        _ => return Err(Errno::NOPROTOOPT),
    }
    Ok(())
}

/// What an option reads, `wanted` bytes of it at most: TCP_INFO, and what there is of it; those of TCP and IP that [`set`] has kept, or as TCP has them unless told;
/// and `int`s, whole: TCP_NODELAY, TCP_CORK, TCP_MAXSEG of a connection, SO_RCVBUF, SO_SNDBUF, SO_TYPE, SO_ERROR, SO_ACCEPTCONN, SO_DOMAIN, SO_PROTOCOL and the like.
///
/// # Errors
/// TCP's.
pub fn get(socket: &Socket, level: i32, name: i32, wanted: usize) -> Result<Vec<u8>, Errno> {
    match number(socket, level, name) {
        Err(Errno::NOPROTOOPT) => {}
        number => return Ok(number?.to_ne_bytes().into()),
    }
    match (level, name) {
        (IPPROTO_TCP, TCP_INFO) => Ok(info(socket).into()),
        (SOL_SOCKET, _) => Err(Errno::NOPROTOOPT),
        _ => {
            let mut value = vec![0; wanted.min(LONGEST)];
            let len = (socket.options()).get(socket.family(), level, name, &mut value)?;
            value.truncate(len);
            Ok(value)
        }
    }
}

fn number(socket: &Socket, level: i32, name: i32) -> Result<i32, Errno> {
    Ok(match (level, name) {
        (IPPROTO_TCP, TCP_NODELAY) => socket.nodelay().into(),
        (IPPROTO_TCP, TCP_CORK) => socket.kept().cork.into(),
        (SOL_SOCKET, SO_RCVBUF) => doubled(socket.kept().receive_buffer),
        (SOL_SOCKET, SO_SNDBUF) => doubled(socket.kept().send_buffer),
        (SOL_SOCKET, SO_RCVLOWAT) => socket.kept().low_water.unwrap_or(1),
        (SOL_SOCKET, SO_PEEK_OFF) => {
            let offset = match socket.stream() {
                Ok(stream) => stream.peek_offset(),
                Err(_) => socket.kept().peek_offset,
            };
            offset.map_or(-1, |offset| i32::try_from(offset).unwrap_or(i32::MAX))
        }
        (IPPROTO_TCP, TCP_INQ) => socket.kept().says_left.into(),
        (IPPROTO_TCP, TCP_MAXSEG) if let (_, mtu @ 1..) = socket.state_of_tcp() => {
            mtu.cast_signed()
        }
        (SOL_SOCKET, SO_TYPE) => SOCK_VIA,
        (SOL_SOCKET, SO_ERROR) => socket.take_error().map_or(0, Errno::raw_os_error),
        (IPPROTO_IPV6, IPV6_V6ONLY) if socket.family() == Family::V6 => {
            socket.kept().only_v6.into()
        }
        (SOL_SOCKET, SO_DOMAIN) => match socket.family() {
            Family::V4 => AF_INET,
            Family::V6 => AF_INET6,
        },
        (SOL_SOCKET, SO_PROTOCOL) => 0,
        (SOL_SOCKET, SO_ACCEPTCONN) => socket.is_listening().into(),
        _ => return Err(Errno::NOPROTOOPT),
    })
}

/// TCP_INFO, as the first version of `struct tcp_info` has it, with what there is of it: the state, and how much a packet carries.
fn info(socket: &Socket) -> [u8; INFO_LEN] {
    let mut info = [0; INFO_LEN];
    let (state, mtu) = socket.state_of_tcp();
    if let Some(place) = info.first_mut() {
        *place = state;
    }
    for at in [SND_MSS, RCV_MSS] {
        if let Some(place) = info.get_mut(at..at + 4) {
            place.copy_from_slice(&mtu.to_ne_bytes());
        }
    }
    info
}

/// Whether a child of `fork` may ask for it: what kind of socket that is, and what no lock is in the way of.
#[must_use]
pub fn is_of_the_kind(level: i32, name: i32) -> bool {
    level == SOL_SOCKET && matches!(name, SO_TYPE | SO_DOMAIN | SO_PROTOCOL)
        || (level, name) == (IPPROTO_TCP, TCP_NODELAY)
}

/// What is left to be read after a message, where the program has asked for that with each (`TCP_INQ`): the end counts as a byte, as in the kernel.
#[must_use]
pub fn left(socket: &Socket) -> Option<i32> {
    if !socket.kept().says_left {
        return None;
    }
    let stream = socket.stream().ok()?;
    let bytes = i32::try_from(stream.readable()).unwrap_or(i32::MAX);
    Some(bytes.saturating_add(stream.has_ended().into()))
}

/// Whether the descriptor keeps the option: it is a socket of the kernel's, and what is not ours is read back from there. Its buffers are how it
/// shows that there is room.
#[must_use]
pub fn is_of_stand_in(level: i32, name: i32) -> bool {
    level == SOL_SOCKET
        && !matches!(
            name,
            SO_SNDBUF | SO_RCVBUF | SO_SNDBUFFORCE | SO_RCVBUFFORCE | SO_RCVLOWAT | SO_PEEK_OFF
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

/// Options of more bytes are told as much of.
const LONGEST: usize = 1024;
const IPPROTO_IP: i32 = 0;
const IPPROTO_TCP: i32 = 6;
const IPPROTO_IPV6: i32 = 41;
const IPV6_V6ONLY: i32 = 26;
const TCP_NODELAY: i32 = 1;
const TCP_MAXSEG: i32 = 2;
const TCP_CORK: i32 = 3;
const TCP_DEFER_ACCEPT: i32 = 9;
const TCP_INFO: i32 = 11;
const TCP_INQ: i32 = 36;
const SOL_SOCKET: i32 = 1;
const SO_TYPE: i32 = 3;
const SO_ERROR: i32 = 4;
const SO_SNDBUF: i32 = 7;
const SO_RCVBUF: i32 = 8;
const SO_LINGER: i32 = 13;
const SO_RCVLOWAT: i32 = 18;
const SO_RCVTIMEO: i32 = 20;
const SO_SNDTIMEO: i32 = 21;
const SO_SNDBUFFORCE: i32 = 32;
const SO_RCVBUFFORCE: i32 = 33;
const SO_ACCEPTCONN: i32 = 30;
const SO_PROTOCOL: i32 = 38;
const SO_DOMAIN: i32 = 39;
const SO_PEEK_OFF: i32 = 42;
const AF_INET: i32 = 2;
const AF_INET6: i32 = 10;
/// `struct tcp_info` until Linux 3.15; those who ask for more are told how much there is.
const INFO_LEN: usize = 104;
const SND_MSS: usize = 16;
const RCV_MSS: usize = 20;
/// A window of the largest packets.
const BUFFER: i32 = 1 << 20;
const BUFFER_LEAST: i32 = 4608;
