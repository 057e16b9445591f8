use std::cell::Cell;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use super::select::{self, Sets};
use super::*;
use crate::conn::Origin;
use crate::ready::{IN, OUT};
use crate::table;

/// The kernel.
struct Plain;

impl Poller for Plain {
    fn poll(&self, fds: &mut [PollFd], _timeout: Option<Duration>) -> Result<usize, Errno> {
        let mut ready = 0;
        for entry in fds {
            entry.revents = sys::epoll::shows(entry.fd, entry.events.cast_unsigned()).cast_signed();
            ready += usize::from(entry.revents != 0);
        }
        Ok(ready)
    }
}

/// One that always says that something woke it, and never what: a doorbell of which nothing is left, say.
#[derive(Default)]
struct Restless {
    asked_at_the_end: Cell<u32>,
}

impl Poller for Restless {
    fn poll(&self, _fds: &mut [PollFd], timeout: Option<Duration>) -> Result<usize, Errno> {
        if timeout == Some(Duration::ZERO) {
            let asked = self.asked_at_the_end.get() + 1;
            self.asked_at_the_end.set(asked);
            assert!(asked < 100_000, "the time is over");
        }
        Ok(1)
    }
}

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let near = TcpStream::connect(listener.local_addr().expect("bound")).expect("loopback");
    let far = listener.accept().expect("the connection").0;
    (near, far)
}

fn entry(fd: RawFd, events: u32) -> PollFd {
    PollFd {
        fd,
        events: revents(events),
        revents: -1,
    }
}

#[test]
fn a_connection_without_rings_is_the_kernels() {
    let (near, mut far) = pair();
    sys::socket::with_borrowed(near.as_raw_fd(), |fd| table::insert(fd, Origin::Connected));
    let mut fds = [entry(near.as_raw_fd(), IN | OUT), entry(-1, IN)];
    let now = Some(Duration::ZERO);
    assert_eq!(poll(&mut fds, now, &Plain), Ok(1));
    assert_eq!(bits(fds[0].revents), OUT);
    assert_eq!(fds[1].revents, 0);
    far.write_all(b"x").expect("room");
    let mut byte = [0; 1];
    near.peek(&mut byte).expect("it comes");
    assert_eq!(poll(&mut fds, now, &Plain), Ok(1));
    assert_eq!(bits(fds[0].revents), IN | OUT);
    crate::ends::before_close(near.as_raw_fd());
}

#[test]
fn select_clears_what_is_not_ready_and_counts_each_set() {
    let (near, _far) = pair();
    let (other, mut partner) = pair();
    partner.write_all(b"x").expect("room");
    other.peek(&mut [0; 1]).expect("it comes");
    let (a, b) = (near.as_raw_fd(), other.as_raw_fd());
    let words = a.max(b) as usize / 64 + 1;
    let set = |fds: &[RawFd]| {
        let mut set = vec![0u64; words];
        for fd in fds {
            set[*fd as usize / 64] |= 1 << (fd % 64);
        }
        set
    };
    let (mut read, mut write, mut except) = (set(&[a, b]), set(&[b]), set(&[a]));
    let mut sets = Sets {
        read: &mut read,
        write: &mut write,
        except: &mut except,
    };
    let count = a.max(b) + 1;
    assert_eq!(
        select::select(&mut sets, count, Some(Duration::ZERO), &Plain),
        Ok(2)
    );
    assert_eq!((read, write, except), (set(&[b]), set(&[b]), set(&[])));
}

#[test]
fn who_is_woken_for_nothing_waits_no_longer_than_he_would() {
    let (near, _far) = pair();
    let mut fds = [entry(near.as_raw_fd(), IN)];
    let found = survey(&fds);
    let soon = Some(Duration::from_millis(1));
    let ready = mixed(&mut fds, &mut [NONE], soon, &Restless::default(), &found);
    assert_eq!(ready, Ok(0));
}
