//! Members of sets that get rings while they wait to be asked for again.

use std::os::fd::{OwnedFd, RawFd};

use super::*;
use crate::epoll::{self, Change, EDGE, Event, ONCE, Waiter};
use crate::ready::{RDHUP, READ, WRITE};

/// An instance of the kernel's, which the program looks at without waiting.
struct Instance(OwnedFd);

impl Waiter for Instance {
    fn wait(&self, events: &mut [Event], _timeout: Option<Duration>) -> Result<usize, Errno> {
        let mut count = 0;
        let mut places = events.iter_mut();
        sys::epoll::take(self.0.as_raw_fd(), |events, data| {
            let place = places.next().expect("one member");
            *place = Event { events, data };
            count += 1;
        });
        Ok(count)
    }
}

impl Instance {
    fn new() -> Self {
        let flags = rustix::event::epoll::CreateFlags::CLOEXEC;
        let kernels = rustix::event::epoll::create(flags).expect("an instance");
        epoll::created(kernels.as_raw_fd());
        Self(kernels)
    }

    fn asks(&self, fd: RawFd, events: u32, change: impl FnOnce(Event) -> Change) {
        let events = events | EDGE | ONCE;
        let event = Event { events, data: 9 };
        epoll::control(self.0.as_raw_fd(), fd, change(event)).expect("a change");
    }

    fn close(self) {
        let number = self.0.as_raw_fd();
        ends::before_close(number);
        drop(self);
        ends::closed(number);
    }

    fn told(&self) -> Option<u32> {
        let mut events = [Event { events: 0, data: 0 }];
        let at_once = Some(Duration::ZERO);
        let told = epoll::wait(self.0.as_raw_fd(), &mut events, at_once, self).expect("a set");
        (told == 1).then_some(events[0].events)
    }
}

/// It was never told: what was changed counted as known, as what is there when rings come does.
#[test]
fn who_asks_for_room_when_there_are_rings_is_told_of_it() {
    let (pair, set) = (Pair::meeting(), Instance::new());
    let fd = pair.sockets[0].as_raw_fd();
    set.asks(fd, READ, Change::Add);
    pair.meet();
    pair.begin_rings();
    pair.fill(0);
    assert_eq!(pair.take(1, 1), 1);
    set.asks(fd, WRITE, Change::Modify);
    pair.drain(1);
    assert_eq!(set.told(), Some(WRITE));
    assert_eq!(set.told(), None, "once");
    set.asks(fd, WRITE, Change::Modify);
    assert_eq!(set.told(), Some(WRITE));
    set.close();
    pair.close();
}

/// The peer says it in memory, and rings with a byte, of which the kernel tells nobody who waits for ends alone.
#[test]
fn who_asked_for_the_end_alone_before_there_were_rings_is_told_of_it() {
    let (pair, set) = (Pair::meeting(), Instance::new());
    let fd = pair.sockets[0].as_raw_fd();
    set.asks(fd, RDHUP, Change::Add);
    pair.meet();
    pair.begin_rings();
    assert_eq!(set.told(), None);
    let shut = ends::shutdown(pair.conns[1], pair.sockets[1].as_fd(), WRITING);
    assert_eq!(shut, Ok(true));
    assert_eq!(set.told(), Some(RDHUP));
    assert_eq!(set.told(), None, "once");
    set.asks(fd, RDHUP, Change::Modify);
    assert_eq!(set.told(), Some(RDHUP));
    set.close();
    pair.close();
}

/// `SHUT_WR`.
const WRITING: i32 = 1;
