//! Every step that a connection can take.

use std::io::IoSlice;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sys::errno::Errno;
use sys::stream::{Side, Size};
use via::provider::Driver;
use via::window::Windows;

use super::*;
use crate::host::{self, Host};
use crate::rules::text::Program;
use crate::rules::{self, Kept};
use crate::share::LOOKS;
use crate::states::connection::{self, Event, State};
use crate::states::visits;
use crate::{ends, handover, io, share, table};

mod lifetimes;
mod once;
mod rounds;
mod standstill;

/// A program that never sleeps.
struct Here;

impl Host for Here {
    fn wait_to_receive(&self, _fd: BorrowedFd<'_>) -> Result<(), Errno> {
        unreachable!("nothing is received")
    }

    fn poll(&self, fd: BorrowedFd<'_>, events: i16, _timeout_ms: i32) -> Result<i16, Errno> {
        Ok(sys::epoll::shows(fd.as_raw_fd(), events.cast_unsigned()).cast_signed())
    }

    fn nap(&self, _fd: BorrowedFd<'_>, _time: Duration) -> Result<(), Errno> {
        unreachable!("nobody waits for room")
    }

    fn restarts(&self) -> bool {
        false
    }

    fn has_threads(&self) -> bool {
        true
    }

    fn windows(&self) -> Option<&'static dyn Windows> {
        shm::DRIVER.windows()
    }

    fn upgraded(&self, _fd: BorrowedFd<'_>) {}

    fn kept_on_tcp(&self, _kept: &Kept<'_>) {}
}

/// A connection both of whose ends are here.
struct Pair {
    sockets: [TcpStream; 2],
    conns: [&'static Conn; 2],
}

impl Pair {
    /// Pairs that end at once are not to have the next ones wait.
    fn young() -> Self {
        let _ = rules::install(RULES, Program::default());
        Self::connected()
    }

    fn connected() -> Self {
        host::install(&Here);
        sys::fork::settle();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let near = TcpStream::connect(listener.local_addr().expect("bound")).expect("loopback");
        let far = listener.accept().expect("the connection").0;
        let conns = [
            table::insert(near.as_fd(), Origin::Connected).expect("a place"),
            table::insert(far.as_fd(), Origin::Accepted).expect("a place"),
        ];
        let pair = Self {
            sockets: [near, far],
            conns,
        };
        assert_eq!(pair.states(), [State::Young; 2]);
        pair
    }

    /// As after so many calls that sent and received in turn.
    fn exchange(&self, end: usize, turns: u32) {
        for turn in 0..turns {
            let way = if turn % 2 == 0 { Way::Out } else { Way::In };
            self.conns[end].advance(self.sockets[end].as_fd(), way);
        }
    }

    fn meeting() -> Self {
        let pair = Self::young();
        pair.exchange(0, ENOUGH);
        assert_eq!(pair.states(), [State::Meeting, State::Young]);
        pair
    }

    fn mapped() -> Self {
        let pair = Self::meeting();
        pair.meet();
        pair
    }

    fn meet(&self) {
        self.meet_after(ENOUGH);
    }

    fn meet_after(&self, turns: u32) {
        for end in (0..2).cycle() {
            self.exchange(end, turns);
            if self.states() == [State::Mapped; 2] {
                return;
            }
        }
    }

    fn states(&self) -> [State; 2] {
        self.conns.map(Conn::state)
    }

    fn close(self) {
        for socket in self.sockets {
            let number = socket.as_raw_fd();
            ends::before_close(number);
            drop(socket);
            ends::closed(number);
        }
    }
}

#[test]
fn every_step_is_taken() {
    Pair::young().close();
    Pair::meeting().close();
    Pair::mapped().close();

    let pair = Pair::young();
    pair.conns[0].refuse(Reason::NoNic);
    assert_eq!(pair.conns[0].path(), Path::Tcp(Reason::NoNic));
    pair.conns[0].stay_on_tcp(Reason::Option);
    assert_eq!(pair.conns[0].path(), Path::Tcp(Reason::Option));
    pair.conns[1].stay_on_tcp(Reason::HandedOver);
    assert_eq!(pair.conns[1].path(), Path::Tcp(Reason::HandedOver));
    pair.close();

    let pair = Pair::meeting();
    pair.conns[0].stay_on_tcp(Reason::GaveUp);
    assert_eq!(pair.conns[0].path(), Path::Tcp(Reason::GaveUp));
    pair.close();
    let pair = Pair::meeting();
    pair.conns[0].over(Reason::NobodyCame);
    assert_eq!(pair.conns[0].path(), Path::Tcp(Reason::NobodyCame));
    pair.close();
    let pair = Pair::meeting();
    pair.conns[0].forget_meeting();
    assert_eq!(pair.conns[0].path(), Path::Young);
    pair.close();

    let pair = Pair::mapped();
    pair.conns[0].stay_on_tcp(Reason::Option);
    assert_eq!(pair.conns[0].path(), Path::Mapped, "it needs the way back");
    pair.conns[0].note_back(Reason::HandedOver);
    pair.conns[0].note_back(Reason::Stdio);
    assert_eq!(pair.conns[0].path(), Path::Tcp(Reason::HandedOver));
    pair.conns[0].drop_rings();
    assert_eq!(pair.conns[0].state(), State::Tcp);
    pair.conns[1].reset_spoilt(pair.sockets[1].as_fd());
    pair.conns[1].reset_spoilt(pair.sockets[1].as_fd());
    assert_eq!(pair.conns[1].path(), Path::Tcp(Reason::Corrupt));
    pair.close();

    who_was_called_back_says_so();
    standstill::who_waits_for_one_that_waits_goes_to_tcp();

    let pair = Pair::young();
    let memory = Stream::memory(Size::LEAST).expect("memfd");
    pair.conns[0].resume(true, Stream::map(memory, Side::A).expect("map"));
    assert_eq!(pair.conns[0].path(), Path::Mapped);
    pair.close();

    let missed = visits::missed("connection", connection::ROWS);
    assert!(missed.is_empty(), "never taken: {missed:#?}");
}

/// The child of a fork in the middle of the last of several meetings said for ever that the ends look for each other.
#[test]
fn who_has_missed_the_other_often_enough_stays_on_tcp() {
    let pair = Pair::meeting();
    let conn = pair.conns[0];
    conn.looks.store(LOOKS, Ordering::Relaxed);
    conn.forget_meeting();
    assert_eq!(conn.path(), Path::Tcp(Reason::GaveUp));
    pair.close();
}

#[test]
fn who_answers_what_comes_does_not_get_a_stream_of_small_messages() {
    let pair = Pair::young();
    let conn = pair.conns[0];
    let brings = |bytes| {
        conn.note_trickle(bytes, 8192);
        conn.trickles()
    };
    assert!((0..15).all(|_| !brings(64)));
    assert!(brings(64) && brings(64));
    // The call of one that does not wait does no more than this.
    conn.count(Way::Out, 1);
    assert!(!conn.trickles());
    assert!((0..15).all(|_| !brings(64)));
    assert!(brings(64));
    assert!(!brings(8192));
    for _ in 0..100 {
        assert!(!brings(64));
        conn.count(Way::Out, 1);
    }
    pair.close();
}

#[test]
fn what_belongs_to_an_answer_is_awaited_as_it_is() {
    let pair = Pair::young();
    let conn = pair.conns[0];
    conn.count(Way::In, pace::UNASKED as usize - 1);
    assert_eq!(conn.awaits(), Awaited::Rest, "of a request");
    conn.count(Way::In, 1);
    assert_eq!(conn.awaits(), Awaited::Anything, "a stream");
    conn.note_answer_on_tcp();
    conn.count(Way::Out, 1);
    assert_eq!(conn.awaits(), Awaited::Answer);
    assert_eq!(conn.awaits(), Awaited::Rest);
    for _ in 0..16 {
        conn.note_trickle(64, 8192);
    }
    assert_eq!(conn.awaits(), Awaited::Anything, "more is let come");
    pair.close();
}

/// A session whose user may not look at the server that began it was said for ever to have exchanged too little.
#[test]
fn who_waits_for_others_to_leave_says_so() {
    let pair = Pair::young();
    let (conn, socket) = (pair.conns[0], &pair.sockets[0]);
    let other = Stranger::with(socket.as_fd());
    conn.set_forked();
    pair.exchange(0, ENOUGH);
    drop(other);
    let shown = conn.record.reason.load(Ordering::Relaxed);
    assert_eq!(shown, u32::from(Reason::SharedWithStranger.number()));
    assert_eq!(conn.path(), Path::Young, "it asks again");
    pair.close();
}

/// A server that forks for each connection, on a host of thousands of processes: of them only the server is looked at.
#[test]
fn who_is_left_by_its_kin_asks_only_about_the_one_that_forked() {
    let pair = Pair::young();
    let (conn, fd) = (pair.conns[0], pair.sockets[0].as_fd());
    // Nobody counted the one, and the other has nothing.
    let (stranger, server) = (Stranger::with(fd), Stranger::with(pair.sockets[1].as_fd()));
    conn.note_fork(Fork {
        pid: server.pid(),
        ..Fork::imminent()
    });
    assert_eq!(conn.kin.is_alone(), Some(false));
    assert_eq!(share::is_alone(conn, fd), Some(false));
    // As where the other has left.
    conn.kin.begin();
    assert_eq!(share::is_alone(conn, fd), Some(true));
    assert!(!conn.may_be_shared());

    // The one that forked has it all the same.
    conn.note_fork(Fork {
        pid: stranger.pid(),
        ..Fork::imminent()
    });
    conn.kin.begin();
    assert_eq!(share::is_alone(conn, fd), Some(false));
    drop(stranger);
    assert_eq!(share::is_alone(conn, fd), Some(true));
    pair.close();
}

/// One that was killed has not said that it leaves, and one that another started has never counted itself.
#[test]
fn what_kin_do_not_say_the_kernel_does() {
    let pair = Pair::young();
    let (conn, fd) = (pair.conns[0], pair.sockets[0].as_fd());
    conn.note_fork(Fork::imminent());
    assert_eq!(conn.kin.is_alone(), Some(false));
    assert_eq!(share::is_alone(conn, fd), Some(true));

    let stranger = Stranger::with(fd);
    conn.note_fork(Fork::imminent());
    conn.stay_on_tcp(Reason::HandedOver);
    assert_eq!(conn.kin.is_alone(), None);
    assert_eq!(share::is_alone(conn, fd), Some(false));
    drop(stranger);
    pair.close();
}

/// A process that has a socket and knows nothing of it.
struct Stranger(Child);

impl Stranger {
    fn with(socket: BorrowedFd<'_>) -> Self {
        let copy = socket.try_clone_to_owned().expect("dup");
        let child = Command::new("sleep")
            .arg("1000")
            .stdin(Stdio::from(copy))
            .spawn();
        Self(child.expect("sleep(1)"))
    }

    fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it is ours");
    }
}

/// The other end said for ever that its bytes go through shared memory.
#[test]
fn who_was_called_back_says_so() {
    let pair = Pair::mapped();
    let [caller, called] = [0, 1].map(|end| (pair.conns[end], pair.sockets[end].as_fd()));
    let send = || {
        let native = |_| unreachable!("there are rings");
        io::send(called.0, called.1, &[IoSlice::new(b"x")], true, native).expect("room");
    };
    std::thread::scope(|scope| {
        let back = scope.spawn(|| handover::go_back(caller.0, caller.1, Reason::HandedOver));
        while !back.is_finished() {
            send();
            std::thread::yield_now();
        }
        assert!(back.join().expect("no panic"), "it was served");
    });
    send();
    assert_eq!(caller.0.path(), Path::Tcp(Reason::HandedOver));
    assert_eq!(called.0.path(), Path::Tcp(Reason::PeerWentBack));
    pair.close();
}

/// What the table has no row for does not happen: what was decided meanwhile stays.
#[test]
fn a_step_that_is_not_in_the_table_is_not_taken() {
    let pair = Pair::young();
    let conn = pair.conns[0];
    assert!(!conn.go(Event::Meet, None));
    conn.stay_on_tcp(Reason::Option);
    assert!(!conn.go(Event::Enough, None));
    assert_eq!(conn.path(), Path::Tcp(Reason::Option));
    pair.close();
}

const ENOUGH: u32 = 8;
const RULES: &str = "2 f turns=8";
