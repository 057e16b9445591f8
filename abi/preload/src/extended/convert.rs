//! Turning a connected TCP socket into an extended one, in place.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sockets::extended::Socket;
use sockets::reason::Reason;
use sockets::{ends, epoll, table};
use sys::errno::Errno;
use sys::fork::Own;
use sys::sync::{AtomicBool, Ordering};
use via::provider::Driver;
use via::{Error, Nic};

use super::Extended;
use crate::outcome::{borrow, checked};
use crate::real;

/// `SOVIA_VI_MODE`.
pub(crate) const VI_MODE: c_int = 1;
/// `SOVIA_IWARP_MODE`.
pub(crate) const IWARP_MODE: c_int = 2;

/// Converts `fd`, when the other end asks too.
pub(crate) fn convert(fd: RawFd, mode: c_int) -> Result<(), Errno> {
    if super::is(fd) {
        return Err(Errno::ALREADY);
    }
    could_be_converted(fd)?;
    let borrowed = borrow(fd).ok_or(Errno::BADF)?;
    if !sys::socket::is_connected(borrowed) {
        return Err(Errno::NOTCONN);
    }
    sys::fork::watch().map_err(|_| Errno::NOMEM)?;
    let alone = table::connection(borrowed).is_none_or(|conn| {
        conn.stay_on_tcp(Reason::Option);
        !conn.is_mapped() && conn.has_one_descriptor()
    });
    if !alone {
        return Err(Errno::BUSY);
    }
    let timeout = u64::try_from(sys::socket::receive_timeout_ms(borrowed)).ok();
    let deadline = sys::time::deadline(Some(timeout.unwrap_or(PATIENCE_MS)));
    let patient = !sys::socket::is_nonblocking(borrowed);
    let tcp = aside(borrowed)?;
    let converted = match mode {
        IWARP_MODE => over_iwarp(&tcp, deadline),
        _ => over_shm(&tcp, deadline),
    };
    let socket = match converted {
        Ok(socket) => socket,
        Err(errno) => {
            // The NIC may have changed what the two descriptors share.
            set_nonblocking(tcp.as_fd(), !patient);
            return Err(errno);
        }
    };
    // Another thread may have closed it meanwhile, and its number be another file's: that one stays.
    if sys::socket::inode(borrowed) != sys::socket::inode(tcp.as_fd()) {
        return Err(Errno::BADF);
    }
    for name in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
        copy_timeout(borrowed, socket.face(), name);
    }
    // To the program the number is what it was; to us the connection behind it has gone from there.
    epoll::before_exchange(fd);
    ends::before_close(fd);
    // SAFETY: two numbers; the first is open.
    let placed = unsafe { real::dup3(socket.face().as_raw_fd(), fd, libc::O_CLOEXEC) };
    checked(placed as isize)?;
    if !patient {
        set_nonblocking(socket.face(), true);
    }
    at_exit_once();
    socket.set_number(fd);
    super::insert(
        fd,
        Arc::new(Extended {
            socket,
            mode,
            tcp,
            regions: Mutex::new(BTreeMap::new()),
        }),
    );
    Ok(())
}

/// Whether the option is one of that descriptor's.
///
/// # Errors
/// `EBADF`, `ENOTSOCK`; `EOPNOTSUPP` for what is not TCP.
pub(super) fn could_be_converted(fd: RawFd) -> Result<(), Errno> {
    let fd = borrow(fd).ok_or(Errno::BADF)?;
    if !sys::socket::is_open(fd.as_raw_fd()) {
        return Err(Errno::BADF);
    }
    if !is_socket(fd) {
        return Err(Errno::NOTSOCK);
    }
    if !sys::socket::is_tcp(fd) {
        return Err(Errno::OPNOTSUPP);
    }
    Ok(())
}

fn over_shm(tcp: &OwnedFd, deadline: Option<Instant>) -> Result<Socket, Errno> {
    let nic = nic(&SHM, &shm::DRIVER)?;
    Socket::meet(again(tcp)?, &nic, deadline)
}

fn over_iwarp(tcp: &OwnedFd, deadline: Option<Instant>) -> Result<Socket, Errno> {
    let borrowed = tcp.as_fd();
    if !sys::tcp::is_opener(borrowed)? {
        await_request(borrowed, deadline)?;
    }
    let nic = nic(&IWARP, &iwarp::DRIVER)?;
    Socket::in_place(again(tcp)?, &nic, |vi, tcp, opener| {
        let role = if opener {
            iwarp::Role::Initiator
        } else {
            iwarp::Role::Responder
        };
        iwarp::over(vi, tcp, role, &iwarp::DRIVER.config(), deadline)
    })
}

/// Looks, without taking a byte, until a whole MPA request is there: a peer that does not ask does not lose what it says, nor one that does
/// not come to the end of it.
fn await_request(tcp: BorrowedFd<'_>, deadline: Option<Instant>) -> Result<(), Errno> {
    let mut seen = [0; REQUEST_MAX];
    loop {
        // Before the look: what came before the end is seen.
        let has_ended = sys::poll::is_half_closed(tcp);
        let n = match sys::tcp::recv_peek(tcp, &mut seen) {
            Ok(0) => return Err(Errno::NOTCONN),
            Ok(n) => n,
            Err(Errno::AGAIN) => 0,
            Err(errno) => return Err(errno),
        };
        let seen = seen.get(..n).unwrap_or_default();
        let key_len = n.min(KEY.len());
        if seen.get(..key_len) != KEY.get(..key_len) {
            return Err(Errno::BUSY);
        }
        if is_whole(seen) {
            return Ok(());
        }
        if has_ended {
            return Err(Errno::NOTCONN);
        }
        if sys::time::expired(deadline) {
            return Err(Errno::TIMEDOUT);
        }
        if n > 0 {
            // tidy: sleep because `poll` shows what is there, and the rest is on its way.
            std::thread::sleep(LOOK_AGAIN);
            continue;
        }
        sys::poll::wait_readable([tcp], deadline).map_err(|_| Errno::NOMEM)?;
    }
}

/// Whether a request that begins so is there to its end. One that is longer than any is left to the startup, which says no.
fn is_whole(seen: &[u8]) -> bool {
    let Some([high, low]) = seen.get(HEAD_LEN - 2..HEAD_LEN) else {
        return false;
    };
    let private_len = usize::from(u16::from_be_bytes([*high, *low]));
    seen.len() >= (HEAD_LEN + private_len).min(REQUEST_MAX)
}

/// The NIC of this process, opened when it is first needed.
fn nic(place: &Own<Mutex<Option<Nic>>>, driver: &dyn Driver) -> Result<Nic, Errno> {
    let place = place.get();
    let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(nic) = &*place {
        return Ok(nic.clone());
    }
    let nic = Nic::open(driver).map_err(|error| match error {
        Error::Resource => Errno::NOMEM,
        _ => Errno::OPNOTSUPP,
    })?;
    // What goes wrong the completions and the calls tell.
    let _ = nic.on_error(|_| {});
    *place = Some(nic.clone());
    Ok(nic)
}

/// A duplicate out of the program's way.
fn aside(fd: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    // SAFETY: numbers only.
    let high = unsafe {
        real::fcntl(
            fd.as_raw_fd(),
            libc::F_DUPFD_CLOEXEC,
            std::ptr::without_provenance_mut(sys::hidden::base().cast_unsigned() as usize),
        )
    };
    checked(high as isize).map_err(|_| Errno::MFILE)?;
    // SAFETY: the kernel has just made it, for us.
    Ok(unsafe { OwnedFd::from_raw_fd(high) })
}

fn again(fd: &OwnedFd) -> Result<OwnedFd, Errno> {
    aside(fd.as_fd())
}

fn set_nonblocking(fd: BorrowedFd<'_>, on: bool) {
    let mut on = c_int::from(on);
    // SAFETY: an int of ours.
    unsafe { real::ioctl(fd.as_raw_fd(), libc::FIONBIO, (&raw mut on).cast()) };
}

/// How long calls on the stand-in wait: as long as on the socket.
fn copy_timeout(from: BorrowedFd<'_>, to: BorrowedFd<'_>, name: c_int) {
    let mut time = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    let mut len = size_of::<libc::timeval>() as libc::socklen_t;
    let place: *mut libc::c_void = (&raw mut time).cast();
    // SAFETY: a timeval of ours, and its size.
    unsafe {
        if real::getsockopt(
            from.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            place,
            &raw mut len,
        ) == 0
        {
            real::setsockopt(to.as_raw_fd(), libc::SOL_SOCKET, name, place, len);
        }
    }
}

fn is_socket(fd: BorrowedFd<'_>) -> bool {
    let mut kind: c_int = 0;
    let mut len = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: an int of ours, and its size.
    let asked = unsafe {
        real::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TYPE,
            (&raw mut kind).cast(),
            &raw mut len,
        )
    };
    asked == 0
}

fn at_exit_once() {
    // Not a `Once`, which a forked child could find begun for ever.
    static ASKED: AtomicBool = AtomicBool::new(false);
    if !ASKED.swap(true, Ordering::Relaxed) {
        // SAFETY: a plain function of this library, which is never unloaded. Without it what was sent last may be lost.
        unsafe { libc::atexit(super::at_exit) };
    }
}

// A forked child cannot use what its parent has opened, nor close it.
static SHM: Own<Mutex<Option<Nic>>> = Own::new();
static IWARP: Own<Mutex<Option<Nic>>> = Own::new();
/// How long the other end has to ask, where `SO_RCVTIMEO` does not say.
const PATIENCE_MS: u64 = 5000;
/// A peer that has said half a request is looked at so often.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// How an MPA request begins (RFC 5044, section 7.1.1).
const KEY: [u8; 16] = *b"MPA ID Req Frame";
/// Key, flags, revision and the length of the private data.
const HEAD_LEN: usize = 20;
/// With the most private data.
const REQUEST_MAX: usize = HEAD_LEN + 512;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    /// A connection whose opener has said this.
    fn pair(said: &[u8]) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut opener =
            TcpStream::connect(listener.local_addr().expect("bound")).expect("listens");
        let (tcp, _) = listener.accept().expect("the opener");
        opener.write_all(said).expect("connected");
        (tcp, opener)
    }

    /// All but its last two octets.
    const PART: &[u8] = b"MPA ID Req Frame\x40\x01\0\x04ab";

    #[test]
    fn half_a_request_is_left_where_it_is() {
        for part in [PART, &PART[..16], &PART[..3]] {
            let (mut tcp, opener) = pair(part);
            let soon = Some(Instant::now() + Duration::from_millis(20));
            assert_eq!(await_request(tcp.as_fd(), soon), Err(Errno::TIMEDOUT));
            opener.shutdown(Shutdown::Write).expect("connected");
            assert_eq!(await_request(tcp.as_fd(), None), Err(Errno::NOTCONN));
            let mut said = Vec::new();
            tcp.read_to_end(&mut said).expect("connected");
            assert_eq!(said, part);
        }
    }

    #[test]
    fn a_whole_request_is_one_before_the_end_too() {
        let (tcp, mut opener) = pair(PART);
        opener.write_all(b"cd").expect("connected");
        opener.shutdown(Shutdown::Write).expect("connected");
        assert_eq!(await_request(tcp.as_fd(), None), Ok(()));
        let (tcp, _opener) = pair(b"plain");
        assert_eq!(await_request(tcp.as_fd(), None), Err(Errno::BUSY));
    }
}
