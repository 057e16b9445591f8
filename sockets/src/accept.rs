//! Waiting for what comes to a listener.
//!
//! A client that connects goes on at once, and then waits for its answer: what it takes to wake who sleeps in `accept` is its time. So `accept` polls before it
//! sleeps, as calls on connections do.

use std::os::fd::{BorrowedFd, RawFd};
use std::sync::OnceLock;

use sys::quiet::once;
use sys::wait::{Limits, Monotonic, Spinner, cpus};
use sys::{poll, socket};

use crate::odds::Odds;
use crate::{rules, table};

/// Has the kernel do `accept` on `listener`, whose result is a descriptor or negative; before that polls for a while, if it listens for TCP and nothing has
/// come yet.
pub fn patiently(listener: RawFd, accept: impl FnOnce() -> RawFd) -> RawFd {
    if !table::is_listener(listener) || !ODDS.pays() {
        return accept();
    }
    let spinner = once(&SPINNER, spinner);
    // What connections have met, too: beside a hog each policy would lose slices of its own.
    spinner.heed();
    let mut spin = spinner.begin();
    let sleeps = spin.sleeps_at_once();
    let waits = !sleeps && socket::with_borrowed(listener, has_to_wait) == Some(true);
    if !waits {
        if !spin.is_told() {
            ODDS.note(false);
        }
        let fd = accept();
        if sleeps && fd >= 0 {
            spin.hit();
        }
        return fd;
    }
    let mut met = false;
    while !met && spin.again() {
        met = socket::with_borrowed(listener, poll::is_ready) == Some(true);
    }
    ODDS.note(met);
    let fd = accept();
    if fd >= 0 {
        spin.hit();
    }
    fd
}

fn has_to_wait(listener: BorrowedFd<'_>) -> bool {
    !poll::is_ready(listener) && !socket::is_nonblocking(listener)
}

fn spinner() -> Spinner {
    Spinner::with_clock(rules::limited(Limits::SOCKET), cpus(), Monotonic)
}

/// Of all listeners of this process: a server has one, or several that have equal work. Many accept what they have been told of, and would notice the question.
static ODDS: Odds = Odds::poor();
static SPINNER: OnceLock<Spinner> = OnceLock::new();

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::thread;

    use super::*;
    use crate::table;

    fn listener() -> TcpListener {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind");
        table::made(listener.as_raw_fd());
        table::listens(listener.as_raw_fd());
        assert!(table::is_listener(listener.as_raw_fd()));
        listener
    }

    /// Whether one came; it is closed.
    fn accepts(listener: &TcpListener) -> bool {
        let mut accepted = None;
        let fd = patiently(listener.as_raw_fd(), || {
            accepted = listener.accept().ok();
            accepted
                .as_ref()
                .map_or(-1, |(stream, _)| stream.as_raw_fd())
        });
        assert_eq!(fd >= 0, accepted.is_some());
        accepted.is_some()
    }

    #[test]
    fn who_may_not_wait_does_not() {
        let listener = listener();
        listener.set_nonblocking(true).expect("O_NONBLOCK");
        assert!(!accepts(&listener));
    }

    #[test]
    fn what_comes_before_meanwhile_and_after_is_accepted() {
        let listener = listener();
        let address = listener.local_addr().expect("an address");
        let early = TcpStream::connect(address).expect("connect");
        assert!(accepts(&listener));
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..100 {
                    drop(TcpStream::connect(address).expect("connect"));
                }
            });
            assert!((0..100).all(|_| accepts(&listener)));
        });
        drop(early);
    }

    #[test]
    fn what_does_not_listen_is_the_kernels() {
        assert_eq!(patiently(-1, || -7), -7);
    }
}
