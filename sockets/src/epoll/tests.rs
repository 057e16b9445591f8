use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use super::member::{Member, What};
use super::members::Members;
use super::*;
use crate::conn::Origin;
use crate::reason::Reason;

/// Nothing is asked of it in these tests.
struct Silent;

impl Waiter for Silent {
    fn wait(&self, _: &mut [Event], _: Option<Duration>) -> Result<usize, Errno> {
        Ok(0)
    }
}

fn member(fd: RawFd, data: u64) -> Member {
    Member::new(fd, What::Other, Event { events: 1, data })
}

#[test]
fn a_token_is_told_from_data_of_the_program() {
    for index in [0, 1, 77, (1 << 24) - 1] {
        assert_eq!(token::member(token::of(index)), Some(index));
    }
    for data in [0, 5, u64::from(u32::MAX), 0x7fff_ffff_ffff] {
        assert_eq!(token::member(data), None);
    }
}

#[test]
fn the_programs_events_stay_and_tokens_go() {
    let mut members = Members::default();
    let mut events = [7, token::of(3), 8, token::of(0)].map(|data| Event { events: 1, data });
    assert_eq!(members.hear(&mut events, 4), 2);
    assert_eq!({ events[0].data }, 7);
    assert_eq!({ events[1].data }, 8);
}

#[test]
fn places_of_members_are_used_again() {
    let mut members = Members::default();
    for fd in 900_000..900_003 {
        let index = members.reserve(fd).expect("memory");
        members.insert(index, member(fd, 1));
    }
    let middle = members.index_of(900_001).expect("a member");
    members.remove(middle);
    assert_eq!(members.index_of(900_001), None);
    assert_eq!(members.reserve(900_005), Ok(middle));
    members.insert(middle, member(900_005, 1));
    assert_eq!(members.index_of(900_005), Some(middle));
    members.clear();
}

#[test]
fn a_kernel_that_fills_the_buffer_has_had_its_turn() {
    let mut members = Members::default();
    members.kernel_had(true, false, true);
    assert!(!members.kernel_is_due(true));
    assert!(members.kernel_is_due(true));
}

/// Says these.
struct Says<const COUNT: usize>([u64; COUNT]);

impl<const COUNT: usize> Waiter for Says<COUNT> {
    fn wait(&self, events: &mut [Event], _: Option<Duration>) -> Result<usize, Errno> {
        for (place, data) in events.iter_mut().zip(self.0) {
            *place = Event { events: 1, data };
        }
        Ok(COUNT)
    }
}

/// Where the thread has the set already, as one has that a signal interrupts.
#[test]
fn a_handler_is_told_of_no_token() {
    sys::fork::settle();
    let flags = rustix::event::epoll::CreateFlags::CLOEXEC;
    let kernels = rustix::event::epoll::create(flags).expect("a set");
    let instance = created(kernels.as_raw_fd());
    let mut events = [Event { events: 0, data: 0 }; 4];
    let now = Some(Duration::ZERO);
    let set = known(instance).expect("created");
    let interrupted = set.enter().expect("free");
    let mixed = Says([token::of(3), 7, token::of(0), 8]);
    assert_eq!(wait(instance, &mut events, now, &mixed), Ok(2));
    assert_eq!(events.map(|event| event.data)[..2], [7, 8]);
    let tokens = Says([token::of(1)]);
    assert_eq!(wait(instance, &mut events, now, &tokens), Err(Errno::INTR));
    drop(interrupted);
    crate::ends::before_close(instance);
    drop(kernels);
    crate::ends::closed(instance);
}

/// The kernel's instance, and one end of a connection whose other end waits at its listener.
fn set_and_connection() -> (OwnedFd, TcpListener, TcpStream) {
    sys::fork::settle();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let near = TcpStream::connect(listener.local_addr().expect("bound")).expect("loopback");
    let kernels = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC);
    (kernels.expect("a set"), listener, near)
}

#[test]
fn the_kernel_is_not_told_again_what_it_has() {
    let (kernels, _listener, near) = set_and_connection();
    let (instance, fd) = (created(kernels.as_raw_fd()), near.as_raw_fd());
    let change = |events| control(instance, fd, Change::Modify(Event { events, data: 9 }));
    let member = Event { events: 5, data: 9 };
    assert_eq!(control(instance, fd, Change::Add(member)), Ok(()));
    assert_eq!(change(1), Ok(()));
    // What the kernel says tells whether it is asked.
    sys::epoll::delete(instance, fd).expect("a member");
    assert_eq!(change(1), Ok(()));
    assert_eq!(change(5), Err(Errno::NOENT));
    sys::epoll::add(instance, fd, EDGE | 1, 9).expect("no member");
    assert_eq!(change(EDGE | 1), Ok(()));
    sys::epoll::delete(instance, fd).expect("a member");
    assert_eq!(change(EDGE | 1), Err(Errno::NOENT), "an edge is told anew");

    // After a jump nobody knows.
    sys::epoll::add(instance, fd, 1, 9).expect("no member");
    assert_eq!(change(1), Ok(()));
    let set = known(instance).expect("created");
    set.enter().expect("free").mend();
    sys::epoll::delete(instance, fd).expect("a member");
    assert_eq!(change(1), Err(Errno::NOENT));

    for number in [fd, instance] {
        crate::ends::before_close(number);
    }
    drop((near, kernels));
    for number in [fd, instance] {
        crate::ends::closed(number);
    }
}

#[test]
fn what_has_no_rings_is_changed_by_the_short_way() {
    let (kernels, _listener, near) = set_and_connection();
    let (instance, fd) = (created(kernels.as_raw_fd()), near.as_raw_fd());
    let change = |events| modify_without_rings(instance, fd, Event { events, data: 9 });
    assert_eq!(change(5), None, "no member, and no connection");
    let conn = crate::table::insert(near.as_fd(), Origin::Connected).expect("a place");
    let member = Event { events: 1, data: 9 };
    assert_eq!(control(instance, fd, Change::Add(member)), Ok(()));
    assert_eq!(change(1), None, "as it is");
    assert_eq!(change(5), Some(Ok(())), "it may leave TCP later");
    conn.stay_on_tcp(Reason::Option);
    assert_eq!(change(1), Some(Ok(())));
    assert_eq!(change(5), Some(Ok(())));
    assert_eq!(change(5), None, "as it is now");
    assert_eq!(change(EXCLUSIVE | 1), Some(Err(Errno::INVAL)));
    assert_eq!(change(5), None, "as it still is");
    assert_eq!(change(ONCE | 1), Some(Ok(())));
    assert_eq!(change(ONCE | 1), Some(Ok(())), "once more");
    assert_eq!(change(5), Some(Ok(())));
    let duplicated = near.try_clone().expect("a descriptor");
    let duplicate = duplicated.as_raw_fd();
    crate::ends::duplicated(fd, duplicate);
    assert_eq!(
        modify_without_rings(instance, duplicate, member),
        None,
        "another number"
    );
    sys::epoll::delete(instance, fd).expect("a member");
    assert_eq!(change(1), Some(Err(Errno::NOENT)));

    for number in [fd, duplicate, instance] {
        crate::ends::before_close(number);
    }
    drop((near, kernels));
    drop(duplicated);
    for number in [fd, duplicate, instance] {
        crate::ends::closed(number);
    }
}

#[test]
fn what_lives_on_by_an_unknown_number_is_the_kernels() {
    for is_seen in [true, false] {
        sys::fork::settle();
        let kernels = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC)
            .expect("a set");
        let (near, mut far) = UnixStream::pair().expect("descriptors");
        let (instance, fd) = (created(kernels.as_raw_fd()), near.as_raw_fd());
        let event = Event { events: 1, data: 9 };
        let set = known(instance).expect("created");
        if is_seen {
            assert_eq!(control(instance, fd, Change::Add(event)), Ok(()));
        } else {
            sys::epoll::add(instance, fd, 1, 9).expect("no member");
        }
        let twin = near.try_clone().expect("a descriptor");
        crate::ends::before_close(fd);
        drop(near);
        crate::ends::closed(fd);
        assert!(!set.is_ready(instance));
        far.write_all(b"x").expect("room");
        assert!(set.is_ready(instance));
        assert!(set.is_ready(instance), "it is told again");
        drop(twin);
        assert!(!set.is_ready(instance));
        crate::ends::before_close(instance);
        drop(kernels);
        crate::ends::closed(instance);
    }
}

#[test]
fn a_set_in_another_lives_as_long_as_one_of_its_numbers() {
    sys::fork::settle();
    let flags = rustix::event::epoll::CreateFlags::CLOEXEC;
    let [outer, inner] = [(); 2].map(|()| rustix::event::epoll::create(flags).expect("a set"));
    let twin = inner.try_clone().expect("a descriptor");
    let [at, number, other] = [&outer, &inner, &twin].map(AsRawFd::as_raw_fd);
    created(at);
    created(number);
    crate::ends::duplicated(number, other);
    let event = Event { events: 1, data: 9 };
    assert_eq!(control(at, number, Change::Add(event)), Ok(()));
    let [set, set_in_it] = [at, number].map(|fd| known(fd).expect("created"));
    let has_it = || set.enter().expect("free").set_at(0).is_some();
    let close = |fd: OwnedFd| {
        let number = fd.as_raw_fd();
        crate::ends::before_close(number);
        drop(fd);
        crate::ends::closed(number);
    };
    close(inner);
    assert!(has_it() && set.is_in_memory());
    assert_eq!(places::memberships(number), 0);
    assert_eq!(places::memberships(other), 1);
    assert!(std::ptr::eq(set_in_it, known(other).expect("a duplicate")));
    let (near, mut far) = UnixStream::pair().expect("descriptors");
    let add = control(other, near.as_raw_fd(), Change::Add(event));
    assert_eq!(add, Ok(()));
    assert!(!set.is_ready(at));
    far.write_all(b"x").expect("room");
    assert!(set.is_ready(at));
    close(twin);
    assert!(!has_it() && !set.is_ready(at));
    assert_eq!(places::memberships(other), 0);
    close(outer);
}

#[test]
fn a_duplicate_is_not_what_had_its_number() {
    let (kernels, _listener, near) = set_and_connection();
    let instance = created(kernels.as_raw_fd());
    // A number that nothing else of this process gets.
    let at = |fd| rustix::io::fcntl_dupfd_cloexec(fd, 800).expect("a descriptor");
    let member = at(near.as_fd());
    let fd = member.as_raw_fd();
    let event = Event { events: 1, data: 9 };
    assert_eq!(control(instance, fd, Change::Add(event)), Ok(()));
    assert_eq!(places::memberships(fd), 1);
    // Where nobody sees it.
    drop(member);
    let (one, _other) = UnixStream::pair().expect("descriptors");
    let twin = at(one.as_fd());
    let number = twin.as_raw_fd();
    assert_eq!(number, fd);
    crate::ends::duplicated(one.as_raw_fd(), number);
    assert_eq!(places::memberships(number), 0);
    let set = known(instance).expect("created");
    assert_eq!(set.enter().expect("free").index_of(number), None);
    crate::ends::before_close(instance);
    drop(kernels);
    crate::ends::closed(instance);
}

#[test]
fn what_is_no_set_fails_as_the_kernel_says() {
    let (mut near, far) = UnixStream::pair().expect("descriptors");
    near.write_all(b"x").expect("room");
    let event = Event { events: 1, data: 9 };
    let add = control(far.as_raw_fd(), near.as_raw_fd(), Change::Add(event));
    assert_eq!(add, Err(Errno::INVAL));
    assert_eq!(
        control(far.as_raw_fd(), -1, Change::Delete),
        Err(Errno::BADF)
    );
    let mut events = [event; 1];
    assert_eq!(wait(far.as_raw_fd(), &mut events, None, &Silent), Ok(0));
}
