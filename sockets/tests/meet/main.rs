//! Two ends of a TCP connection look for each other: honest ones, strangers, dying ones, and ones that run out of things.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sockets::meet::{Meeting, STEPS_MAX, Step};
use sockets::reason::Reason;
use sys::stream::{Size, Stream};
use via::provider::Driver;
use via::window::Windows;

mod death;
mod injection;
mod peer;
mod scarcity;
mod strangers;
mod together;
mod users;

/// One connection and how far its ends are.
struct Ends {
    tcp: [TcpStream; 2],
    meetings: [Option<Meeting>; 2],
    outcomes: [Option<Outcome>; 2],
    /// What each would have.
    sizes: [Size; 2],
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one of them a test")]
enum Outcome {
    Met(Stream),
    Over(Reason),
}

impl Ends {
    fn new() -> Self {
        Self::over("127.0.0.1:0", "127.0.0.1")
    }

    fn over(listen: &str, connect: &str) -> Self {
        let listener = TcpListener::bind(listen).expect("bind");
        let port = listener.local_addr().expect("address").port();
        let opener = TcpStream::connect((connect, port)).expect("connect");
        let (acceptor, _) = listener.accept().expect("accept");
        Self::of(opener, acceptor)
    }

    fn of(opener: TcpStream, acceptor: TcpStream) -> Self {
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        made.push(ports(&opener));
        Self {
            tcp: [opener, acceptor],
            meetings: [None, None],
            outcomes: [None, None],
            sizes: [Size::DEFAULT; 2],
        }
    }

    /// One end, and the socket of the other for another process.
    fn half(self) -> (Self, TcpStream) {
        let [ours, theirs] = self.tcp;
        // Its place is taken by one with which no call is made.
        let holder = ours.try_clone().expect("dup");
        let mut half = Self::of(ours, holder);
        half.outcomes[1] = Some(Outcome::Over(Reason::HandedOver));
        (half, theirs)
    }

    /// One call of end `end`: it begins, or takes a step, or has its outcome.
    fn go(&mut self, end: usize, windows: &'static dyn Windows) {
        if self.outcomes[end].is_some() {
            return;
        }
        let fd = self.tcp[end].as_fd();
        let Some(meeting) = &mut self.meetings[end] else {
            match Meeting::begin(fd, windows, self.sizes[end]) {
                Ok(meeting) => self.meetings[end] = Some(meeting),
                Err(reason) => self.outcomes[end] = Some(Outcome::Over(reason)),
            }
            return;
        };
        self.outcomes[end] = match meeting.step(fd) {
            Step::Wait => return,
            Step::Met(stream) => Some(Outcome::Met(stream)),
            Step::Over(reason) => Some(Outcome::Over(reason)),
        };
        self.meetings[end] = None;
    }

    /// Both in turn, until both have an outcome.
    fn finish(&mut self, windows: &'static dyn Windows) {
        for _ in 0..=STEPS_MAX + 1 {
            self.go(0, windows);
            self.go(1, windows);
        }
        assert!(
            self.outcomes.iter().all(Option::is_some),
            "steps are bounded"
        );
    }

    fn reason(&self, end: usize) -> Option<Reason> {
        match &self.outcomes[end] {
            Some(Outcome::Over(reason)) => Some(*reason),
            _ => None,
        }
    }

    fn streams(&self) -> Option<[&Stream; 2]> {
        match &self.outcomes {
            [Some(Outcome::Met(one)), Some(Outcome::Met(other))] => Some([one, other]),
            _ => None,
        }
    }

    /// The TCP connection is as it was: nothing came over it, and it works.
    fn assert_untouched(&mut self) {
        for end in 0..2 {
            let message = [end as u8; 3];
            self.tcp[end].write_all(&message).expect("write");
            let mut into = [9; 8];
            let len = self.tcp[1 - end].read(&mut into).expect("read");
            assert_eq!(&into[..len], message);
        }
    }
}

/// These tests count this process's descriptors, so they run one after another.
fn alone() -> Alone {
    static ONE: Mutex<()> = Mutex::new(());
    let turn = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // The first use of a thing may open something for good.
    let _ = sys::hidden::base();
    Alone {
        descriptors: open_count(),
        _turn: turn,
    }
}

/// Nothing may be left when it ends.
struct Alone {
    descriptors: usize,
    _turn: MutexGuard<'static, ()>,
}

impl Drop for Alone {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(open_count(), self.descriptors, "descriptors are left");
            assert_eq!(sys::hidden::count(), 0, "hidden descriptors are left");
            let made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
            let left: Vec<_> = made.iter().filter_map(|&ports| find_name(ports)).collect();
            assert!(left.is_empty(), "names are left: {left:?}");
        }
    }
}

fn open_count() -> usize {
    sys::fds::open_count().expect("/proc")
}

/// The name at which the ends of `tcp` meet, learnt as an attacker would: by looking who comes.
fn name_of(tcp: &TcpStream) -> String {
    let meeting = Meeting::begin(tcp.as_fd(), shm(), Size::DEFAULT).expect("begin");
    let name = find_name(ports(tcp)).expect("everybody sees it");
    assert!(meeting.give_up().is_none());
    name
}

/// The name of the connection with these ports, if it is taken.
fn find_name(ports: [u16; 2]) -> Option<String> {
    // Others may have names there that are no text.
    let table = fs::read("/proc/net/unix").expect("/proc");
    let table = String::from_utf8_lossy(&table);
    let [one, other] = ports.map(|port| format!("{port:04x}"));
    let mut names = table
        .lines()
        .filter_map(|line| line.rsplit_once(" @sovia1-"));
    let is_ours = |name: &str| {
        let mut addresses = name.rsplit('-');
        let ports = [addresses.next(), addresses.next()].map(Option::unwrap_or_default);
        ports[0].ends_with(&one) && ports[1].ends_with(&other)
            || ports[0].ends_with(&other) && ports[1].ends_with(&one)
    };
    names
        .find(|(_, name)| is_ours(name))
        .map(|(_, name)| format!("sovia1-{name}"))
}

fn ports(tcp: &TcpStream) -> [u16; 2] {
    let addresses = [tcp.local_addr(), tcp.peer_addr()];
    addresses.map(|address| address.expect("address").port())
}

/// The connections of this process so far, by their ports.
static MADE: Mutex<Vec<[u16; 2]>> = Mutex::new(Vec::new());

fn shm() -> &'static dyn Windows {
    shm::DRIVER.windows().expect("shm lends memory")
}
