//! Two ends in every interleaving of what they can do: the bytes that arrive are the bytes that were sent.

use std::cell::RefCell;
use std::io::IoSlice;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::super::*;
use super::actor::{Actor, Deed, Ground, deed};
use super::network::{DELAY_MAX, End, Network};
use crate::kernel::Tcp;
use crate::states::{receiver, sender, visits};

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// An end does something.
    Do(usize, Deed),
    /// Time passes.
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..2usize, deed()).prop_map(|(side, deed)| Step::Do(side, deed)),
        1 => (1..DELAY_MAX).prop_map(Step::Pass),
    ];
    let last = prop_oneof![
        2 => Just(None),
        1 => (0..2usize).prop_map(|side| Some(Step::Do(side, Deed::Close))),
        1 => (0..2usize).prop_map(|side| Some(Step::Do(side, Deed::Die))),
    ];
    // Who goes does so at any instant: what the other does afterwards belongs to the story.
    let steps = prop::collection::vec(step, 1..160);
    (steps, last, any::<prop::sample::Index>()).prop_map(|(mut steps, last, at)| {
        if let Some(last) = last {
            steps.insert(at.index(steps.len()), last);
        }
        steps
    })
}

/// What is known of the end that went first.
#[derive(Clone, Copy, Debug)]
struct Parting {
    side: usize,
    /// All that the other had sent was read.
    in_order: bool,
    /// How often the other had sent.
    sends: u64,
}

fn play<K: Ground>(
    actors: &mut [Actor<K>; 2],
    steps: Vec<Step>,
    pass: impl Fn(u64),
) -> Option<Parting> {
    let mut parting = None;
    for step in steps {
        match step {
            Step::Pass(time) => pass(time),
            Step::Do(side, deed) => {
                let (other, sends) = (actors[1 - side].sent, actors[1 - side].sends);
                let actor = &mut actors[side];
                let in_order =
                    actor.received == other && actor.failed.is_none() && !actor.flow.owes_back();
                actor.act(deed);
                if actor.gone && parting.is_none() {
                    parting = Some(Parting {
                        side,
                        in_order,
                        sends,
                    });
                }
            }
        }
    }
    parting
}

/// Both read all there is, and see an end where there is one.
fn conclude<K: Ground>(
    actors: &mut [Actor<K>; 2],
    parting: Option<Parting>,
    settle: impl Fn(),
) -> Result<(), TestCaseError> {
    check_end(actors, parting, settle)?;
    for actor in actors {
        actor.act(Deed::Close);
    }
    Ok(())
}

fn check_end<K: Ground>(
    actors: &mut [Actor<K>; 2],
    parting: Option<Parting>,
    settle: impl Fn(),
) -> Result<(), TestCaseError> {
    for _ in 0..4000 {
        settle();
        for actor in actors.iter_mut() {
            actor.read_on();
        }
        settle();
        let [a, b] = &*actors;
        if a.stuck || b.stuck {
            return Ok(());
        }
        let all = a.received == b.sent && b.received == a.sent && !a.away && !b.away;
        if (parting.is_none() && all) || (parting.is_some() && a.is_over() && b.is_over()) {
            break;
        }
    }
    if actors.iter().all(|actor| actor.away) {
        // Each moves more to TCP than there is room for, and none reads there: both are reset after five seconds.
        return Ok(());
    }
    let Some(parting) = parting else {
        for side in 0..2 {
            prop_assert_eq!(actors[side].failed, None);
            prop_assert_eq!(actors[side].received, actors[1 - side].sent);
        }
        for side in 0..2 {
            let finished = actors[1 - side].finished;
            actors[side].receive(&[10], Take::Read);
            prop_assert_eq!(
                actors[side].ended,
                finished,
                "an end is seen where there is one"
            );
        }
        return Ok(());
    };
    let (gone, left) = (&actors[parting.side], &actors[1 - parting.side]);
    // An end may lie behind more bytes than there is room for: who goes back does not take them, and is reset after five seconds.
    let waits = left.away;
    prop_assert!(
        left.is_over() || waits,
        "nobody waits for one who is gone: {gone:?}, {left:?}"
    );
    prop_assert!(left.received <= gone.sent);
    let is_silent = left.ended && left.failed.is_none() && left.received < gone.sent;
    prop_assert!(!is_silent, "nothing is lost silently: {gone:?}, {left:?}");
    // A doorbell that asks one who is gone to go back is answered by a reset, too.
    if parting.in_order && left.sends == parting.sends && !left.called {
        // A doorbell unread, or that comes too late, makes a reset of an end, with which what waits to be sent over TCP dies.
        let carried = left.flow.receives_on_ring() && left.flow.sends_on_ring();
        let is_all = left.failed.is_none() && left.received == gone.sent;
        let is_reset = left.failed == Some(Errno::CONNRESET) && !carried;
        prop_assert!(is_all || is_reset, "all was in order: {gone:?}, {left:?}");
    }
    Ok(())
}

impl Ground for End<'_> {
    fn close(&self) {
        End::close(self);
    }

    fn wait(&self) {
        self.wait_for_all();
    }
}

/// Steps, what each end sends before there are rings, and how much room and which delays the network has.
type Story = (Vec<Step>, (u64, u64), usize, Vec<u64>);

fn story() -> impl Strategy<Value = Story> {
    let delays = prop::collection::vec(0..DELAY_MAX, 1..20);
    (
        steps(),
        (0..3000u64, 0..3000u64),
        1000..200_000usize,
        delays,
    )
}

fn in_virtual_time((steps, early, capacity, delays): Story) -> Result<(), TestCaseError> {
    let network = Network::new(capacity, delays);
    let mut actors = Actor::both([network.end(0), network.end(1)]);
    actors[0].send_early(early.0);
    actors[1].send_early(early.1);
    let parting = play(&mut actors, steps, |time| network.pass(time));
    conclude(&mut actors, parting, || network.settle())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn in_virtual_time_what_arrives_is_what_was_sent(story in story()) {
        in_virtual_time(story)?;
    }
}

/// The tables of both directions have no row that nothing takes.
#[test]
fn every_transition_is_made() {
    // What is rare in a story.
    super::a_doorbell_goes_only_where_no_data_goes();
    super::a_doorbell_goes_nowhere_once_tcp_has_ended();
    super::who_shuts_down_while_unread_bytes_move_to_tcp_says_so_behind_them();
    let mut runner = TestRunner::deterministic();
    for _ in 0..STORIES_MAX {
        let story = story().new_tree(&mut runner).expect("a story").current();
        in_virtual_time(story).expect("it holds");
        if missed().is_empty() {
            return;
        }
    }
    panic!("never made: {:#?}", missed());
}

/// The rows that no test of this process has made.
fn missed() -> Vec<String> {
    let sender = visits::missed("sender", sender::ROWS);
    let receiver = visits::missed("receiver", receiver::ROWS);
    let sender = sender.iter().map(|row| format!("{row:?}"));
    sender
        .chain(receiver.iter().map(|row| format!("{row:?}")))
        .collect()
}

/// The kernel's own.
struct Loopback {
    fd: RefCell<Option<OwnedFd>>,
    opener: bool,
}

impl Loopback {
    fn both() -> [Self; 2] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let first = TcpStream::connect(listener.local_addr().expect("a name")).expect("connect");
        let (second, _) = listener.accept().expect("accept");
        [(first, true), (second, false)].map(|(stream, opener)| {
            // What is sent comes at once.
            stream.set_nodelay(true).expect("an option");
            Self {
                fd: RefCell::new(Some(stream.into())),
                opener,
            }
        })
    }

    /// As the kernel answers for a descriptor, and `gone` where there is none.
    fn with<R>(&self, gone: R, act: impl FnOnce(Tcp<'_>) -> R) -> R {
        match &*self.fd.borrow() {
            Some(fd) => act(Tcp {
                fd: fd.as_fd(),
                opener: self.opener,
            }),
            None => gone,
        }
    }
}

impl Kernel for Loopback {
    fn send(&self, bytes: &[u8]) -> Result<usize, Errno> {
        self.with(Err(Errno::BADF), |tcp| tcp.send(bytes))
    }

    fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> Result<usize, Errno> {
        self.with(Err(Errno::BADF), |tcp| tcp.send_pieces(pieces))
    }

    fn recv(&self, into: &mut [u8]) -> Result<usize, Errno> {
        self.with(Err(Errno::BADF), |tcp| tcp.recv(into))
    }

    fn peek(&self, into: &mut [u8]) -> Result<usize, Errno> {
        self.with(Err(Errno::BADF), |tcp| tcp.peek(into))
    }

    fn peek_pieces(&self, into: &mut [IoSliceMut<'_>]) -> Result<usize, Errno> {
        self.with(Err(Errno::BADF), |tcp| tcp.peek_pieces(into))
    }

    fn linger(&self) -> Option<Duration> {
        self.with(None, |tcp| tcp.linger())
    }

    fn set_linger(&self, linger: Option<Duration>) {
        self.with((), |tcp| tcp.set_linger(linger));
    }

    fn reset_now(&self) {
        self.with((), |tcp| tcp.reset_now());
    }

    fn finish(&self) {
        self.with((), |tcp| tcp.finish());
    }

    fn has_finished(&self) -> bool {
        self.with(true, |tcp| tcp.has_finished())
    }

    fn has_ended(&self) -> bool {
        self.with(true, |tcp| tcp.has_ended())
    }

    fn written(&self) -> Result<u64, Errno> {
        self.with(Err(Errno::BADF), |tcp| tcp.written())
    }

    fn taken(&self) -> Result<u64, Errno> {
        self.with(Err(Errno::BADF), |tcp| tcp.taken())
    }

    fn queued(&self) -> Result<usize, Errno> {
        self.with(Err(Errno::BADF), |tcp| tcp.queued())
    }
}

impl Ground for Loopback {
    fn close(&self) {
        drop(self.fd.borrow_mut().take());
    }

    /// What is sent over loopback is there.
    fn wait(&self) {}
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn over_the_kernels_tcp_what_arrives_is_what_was_sent(
        steps in steps(),
        early in (0..3000u64, 0..3000u64),
    ) {
        let mut actors = Actor::both(Loopback::both());
        actors[0].send_early(early.0);
        actors[1].send_early(early.1);
        let parting = play(&mut actors, steps, |_| std::thread::yield_now());
        conclude(&mut actors, parting, std::thread::yield_now)?;
    }
}

/// Some 1500 have them all.
const STORIES_MAX: u32 = 40_000;
