//! Who owns an end of a connection, by the kernel's account.

use std::net::{IpAddr, SocketAddr};

use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::{Identity, netns};
use crate::hidden::Hidden;

pub(super) mod table;

/// Who owns a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The socket's number among the sockets of this host. The kernel counts them with 32 bits.
    pub inode: u32,
    /// Who called `socket` or `accept`, as our user namespace names him.
    pub uid: u32,
}

/// Who owns the other end of an established connection, if that is in this process's network namespace. Five system calls, or a table to read
/// where a sandbox forbids them.
///
/// # Errors
/// `ENOENT` if there is no such socket, `EXDEV` if the connection is in another namespace; what the kernel says if it does not tell.
pub fn owner(of: &Identity) -> Result<Owner, Errno> {
    match ask(of) {
        // No netlink in a sandbox, or a kernel without inet_diag.
        Err(Errno::AFNOSUPPORT | Errno::PROTONOSUPPORT | Errno::PERM | Errno::ACCESS) => {
            table::look_up(of)
        }
        answer => answer,
    }
}

/// Whether our user namespace has a name for every user, as the first one has; in others, all whom it has no name for look like the user 65534.
pub fn every_user_has_a_name() -> bool {
    use rustix::fs::{Mode, OFlags, open};
    let mut text = [0; 64];
    let read = open(
        "/proc/self/uid_map",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map(Hidden::adopt)
    .and_then(|file| rustix::io::read(file.as_fd(), &mut text));
    let Some(Ok(line)) = read.ok().and_then(|n| text.get(..n)).map(str::from_utf8) else {
        return false;
    };
    line.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}

/// The id that stands for all whom our user namespace has no name for, so that two of them look the same.
pub const NOBODY: u32 = 65534;

/// `sock_diag(7)`: one request for one socket.
pub(super) fn ask(of: &Identity) -> Result<Owner, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let diag = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        flags,
        Some(netlink::SOCK_DIAG),
    )?;
    let diag = Hidden::adopt(diag);
    if netns(diag.as_fd())? != of.netns {
        return Err(Errno::XDEV);
    }
    let kernel = SocketAddrNetlink::new(0, 0);
    rustix::net::sendto(diag.as_fd(), &request(of), SendFlags::NOSIGNAL, &kernel)?;
    let mut answer = [0; 1024];
    let (len, _) = rustix::net::recv(diag.as_fd(), &mut answer, RecvFlags::DONTWAIT)?;
    read(answer.get(..len).unwrap_or(&answer))
}

/// `nlmsghdr` and `inet_diag_req_v2`, for the socket whose local address is the peer's.
fn request(of: &Identity) -> [u8; REQUEST] {
    let mut bytes = [0; REQUEST];
    let mut at = 0;
    let mut put = |part: &[u8]| {
        if let Some(place) = bytes.get_mut(at..at + part.len()) {
            place.copy_from_slice(part);
        }
        at += part.len();
    };
    put(&(REQUEST as u32).to_ne_bytes());
    put(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(&NLM_F_REQUEST.to_ne_bytes());
    put(&[0; 8]);
    let family = if of.peer.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    put(&[family as u8, libc::IPPROTO_TCP as u8, 0, 0]);
    put(&ESTABLISHED.to_ne_bytes());
    put(&of.peer.port().to_be_bytes());
    put(&of.local.port().to_be_bytes());
    put(&octets(of.peer));
    put(&octets(of.local));
    put(&of.interface.to_ne_bytes());
    // INET_DIAG_NOCOOKIE.
    put(&[0xff; 8]);
    bytes
}

fn read(answer: &[u8]) -> Result<Owner, Errno> {
    let kind = answer.get(4..6).ok_or(Errno::IO)?;
    if kind == NLMSG_ERROR.to_ne_bytes() {
        let errno = word(answer, HEADER)?.cast_signed();
        return Err(Errno::from_raw_os_error(
            errno.checked_neg().unwrap_or(libc::EIO),
        ));
    }
    let state = answer.get(HEADER + 1).ok_or(Errno::IO)?;
    if kind != SOCK_DIAG_BY_FAMILY.to_ne_bytes() || *state != TCP_ESTABLISHED {
        return Err(Errno::NOENT);
    }
    Ok(Owner {
        uid: word(answer, HEADER + UID)?,
        inode: word(answer, HEADER + UID + 4)?,
    })
}

fn word(bytes: &[u8], at: usize) -> Result<u32, Errno> {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    Ok(u32::from_ne_bytes(four.ok_or(Errno::IO)?))
}

fn octets(address: SocketAddr) -> [u8; 16] {
    match address.ip() {
        IpAddr::V4(v4) => {
            let [a, b, c, d] = v4.octets();
            [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        }
        IpAddr::V6(v6) => v6.octets(),
    }
}

const HEADER: usize = 16;
const REQUEST: usize = HEADER + 56;
/// In `inet_diag_msg`: four bytes, the 48 of the socket's id, and three words before it.
const UID: usize = 64;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const TCP_ESTABLISHED: u8 = 1;
const ESTABLISHED: u32 = 1 << TCP_ESTABLISHED;
