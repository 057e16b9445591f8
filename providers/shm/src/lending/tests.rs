use std::sync::mpsc;
use std::thread;

use sys::net::Conn;
use sys::segment::{Grant, Segment, Side};
use via::RemoteSegment;
use via::soft::Attention;

use super::*;
use crate::link::{DATA_LEN, ShmLink};
use crate::peer::Window;
use crate::windows::Windows;

/// Both ends of a connection.
struct Ends {
    ours: Arc<Peer>,
    theirs: Arc<Peer>,
}

fn connect() -> Ends {
    let (one, fd) = Segment::create(DATA_LEN).expect("memory");
    let other = Segment::import(fd, DATA_LEN).expect("sealed");
    let (a, b) = Conn::pair().expect("sockets");
    let peer = |segment, side, conn| Arc::clone(ShmLink::new(segment, side, Arc::new(conn)).peer());
    Ends {
        ours: peer(one, Side::A, a),
        theirs: peer(other, Side::B, b),
    }
}

impl Ends {
    fn ask(&self, lending: &Lending, handle: MemHandle) {
        assert!(self.theirs.ask_for(handle));
        self.hear(lending);
    }

    fn hear(&self, lending: &Lending) {
        let _heard = self
            .ours
            .hear(|handle| lending.ask(ViId(1), &self.ours, handle));
    }

    /// What they may write of the region, if anything.
    fn window(&self, handle: MemHandle) -> Option<Arc<Window>> {
        let _heard = self.theirs.hear(|_| {});
        let windows = self.theirs.windows();
        windows.into_iter().find(|window| window.handle == handle)
    }

    fn granted(
        &self,
        lending: &Lending,
        handle: MemHandle,
        exposed: &Exposed<'_>,
    ) -> (Arc<Window>, Grant<'_>) {
        self.ask(lending, handle);
        lending.answer(exposed);
        let window = self.window(handle).expect("granted");
        let grant = self.theirs.control.peer_grant(window.slot);
        (window, grant.expect("a slot"))
    }
}

/// An engine all of whose regions are the one memory.
struct Exposed<'a> {
    memory: Arc<Memory>,
    /// What happens when it is asked.
    meanwhile: &'a (dyn Fn() + Sync),
}

impl Service for Exposed<'_> {
    fn serve(&self, _vi: ViId) -> Attention {
        Attention::Gone
    }

    fn tend(&self, _vi: ViId) -> Attention {
        Attention::Gone
    }

    fn ended(&self, _vi: ViId, _connection: u32, _why: Goodbye) {}

    fn exposed(&self, _vi: ViId, _handle: MemHandle) -> Option<(Arc<Memory>, bool)> {
        (self.meanwhile)();
        Some((Arc::clone(&self.memory), false))
    }
}

fn exposed() -> Exposed<'static> {
    Exposed {
        memory: Arc::new(Memory::shared(4096).expect("memory")),
        meanwhile: &|| {},
    }
}

/// Nobody here is busy for ever.
fn lending() -> Lending {
    Lending {
        patience: Duration::from_secs(60),
        ..Lending::default()
    }
}

/// Whether the window shows the memory.
fn reaches(window: &Window, memory: &Memory) -> bool {
    let mapped = window.memory.as_ref().expect("mapped");
    let now = memory
        .load_u32(0, Ordering::Relaxed)
        .expect("in range")
        .wrapping_add(1);
    mapped
        .store_u32(0, now, Ordering::Relaxed)
        .expect("in range");
    memory.load_u32(0, Ordering::Relaxed) == Ok(now)
}

const ONE: MemHandle = MemHandle(1);
const TWO: MemHandle = MemHandle(2);

#[test]
fn what_was_granted_ends_with_the_connection() {
    let (lending, exposed, ends) = (lending(), exposed(), connect());
    let (window, grant) = ends.granted(&lending, ONE, &exposed);
    assert_eq!(grant.enter(), Some(window.value));
    grant.leave();
    ends.ours.close(Goodbye::Disconnected);
    assert_eq!(grant.enter(), None);
    // It had asked for another before.
    lending.ask(ViId(1), &ends.ours, TWO);
    lending.answer(&exposed);
    let grants = (0..GRANTS).filter_map(|slot| ends.theirs.control.peer_grant(slot));
    assert!(grants.into_iter().all(|grant| grant.enter().is_none()));

    // One that ends from the other side.
    let ends = connect();
    let (_, grant) = ends.granted(&lending, ONE, &exposed);
    lending.part(&ends.ours);
    assert_eq!(grant.enter(), None);
}

#[test]
fn a_region_is_awaited_and_moved_though_its_writer_has_left() {
    let (lending, exposed, ends) = (lending(), exposed(), connect());
    let (window, grant) = ends.granted(&lending, ONE, &exposed);
    assert!(reaches(&window, &exposed.memory));
    grant.enter().expect("granted");
    ends.ours.close(Goodbye::Disconnected);
    lending.part(&ends.ours);
    thread::scope(|scope| {
        let revoking = scope.spawn(|| lending.revoke(Vec::new, ONE, &exposed.memory, None));
        assert!(reaches(&window, &exposed.memory));
        grant.leave();
        revoking.join().expect("no panic");
    });
    assert!(!reaches(&window, &exposed.memory));
}

#[test]
fn a_nic_that_closes_takes_its_memory_back() {
    let (lending, exposed, ends) = (lending(), exposed(), connect());
    let (window, _) = ends.granted(&lending, ONE, &exposed);
    lending.part(&ends.ours);
    lending.end();
    assert!(!reaches(&window, &exposed.memory));
}

#[test]
fn all_are_told_before_one_is_waited_for() {
    let (lending, exposed) = (lending(), exposed());
    let ends = [connect(), connect(), connect()];
    let grants = ends.each_ref().map(|ends| {
        let (_, grant) = ends.granted(&lending, ONE, &exposed);
        grant.enter().expect("granted");
        grant
    });
    let peers = || ends.iter().map(|ends| Arc::clone(&ends.ours)).collect();
    thread::scope(|scope| {
        scope.spawn(|| lending.revoke(peers, ONE, &exposed.memory, None));
        while grants.iter().any(|grant| grant.value() != 0) {
            thread::yield_now();
        }
        grants.iter().for_each(Grant::leave);
    });
    assert!(ends.iter().all(|ends| ends.ours.control.state() == 0));
}

#[test]
fn one_that_stays_costs_its_own_connection_only() {
    let lending = Lending {
        patience: Duration::ZERO,
        ..Lending::default()
    };
    let (exposed, ends, other) = (exposed(), connect(), connect());
    let (window, grant) = ends.granted(&lending, ONE, &exposed);
    other.granted(&lending, ONE, &exposed);
    grant.enter().expect("granted");
    let peers = || vec![Arc::clone(&ends.ours), Arc::clone(&other.ours)];
    lending.revoke(peers, ONE, &exposed.memory, None);
    assert_ne!(ends.ours.control.state(), 0);
    assert_eq!(other.ours.control.state(), 0);
    assert!(!reaches(&window, &exposed.memory));
}

#[test]
fn who_asks_while_memory_is_moved_is_answered_afterwards() {
    let (lending, exposed, ends) = (lending(), exposed(), connect());
    let (old, grant) = ends.granted(&lending, ONE, &exposed);
    let late = connect();
    let peers = || {
        // Not in the list. Who looks after it is not held up.
        late.ask(&lending, ONE);
        lending.answer(&exposed);
        assert!(late.window(ONE).is_none());
        vec![Arc::clone(&ends.ours)]
    };
    lending.revoke(peers, ONE, &exposed.memory, Some(&exposed));
    assert_eq!(grant.enter(), None);
    assert!(!reaches(&old, &exposed.memory));
    let new = late.window(ONE).expect("granted afterwards");
    assert!(reaches(&new, &exposed.memory));
}

#[test]
fn nothing_is_moved_while_it_is_being_granted() {
    let (lending, ends) = (lending(), connect());
    let asked = mpsc::channel();
    let meanwhile = || {
        // Whoever revokes waits for it.
        let is_held = matches!(lending.lent.try_lock(), Err(TryLockError::WouldBlock));
        asked.0.send(is_held).expect("is heard");
    };
    let watched = Exposed {
        memory: exposed().memory,
        meanwhile: &meanwhile,
    };
    ends.granted(&lending, ONE, &watched);
    assert_eq!(asked.1.recv(), Ok(true));
}

#[test]
fn regions_of_one_memory_are_taken_back_together_and_may_be_granted_anew() {
    let (lending, exposed, ends) = (lending(), exposed(), connect());
    let (_, one) = ends.granted(&lending, ONE, &exposed);
    let (old, two) = ends.granted(&lending, TWO, &exposed);
    let peers = || vec![Arc::clone(&ends.ours)];
    lending.revoke(peers, ONE, &exposed.memory, Some(&exposed));
    assert_eq!((one.enter(), two.enter()), (None, None));
    let (new, two) = ends.granted(&lending, TWO, &exposed);
    assert_eq!(two.enter(), Some(new.value));
    assert_ne!(new.value, old.value);
    assert!(!reaches(&old, &exposed.memory) && reaches(&new, &exposed.memory));
}

#[test]
fn a_memory_of_two_nics_is_lent_by_one_at_a_time() {
    let (first, second) = (lending(), lending());
    let (exposed, ends, other) = (exposed(), connect(), connect());
    let (window, _) = ends.granted(&first, ONE, &exposed);
    other.ask(&second, ONE);
    second.answer(&exposed);
    // Without its memory: to this process that is no use.
    assert!(other.window(ONE).is_none());
    second.revoke(|| vec![Arc::clone(&other.ours)], ONE, &exposed.memory, None);
    assert!(reaches(&window, &exposed.memory));
    first.revoke(|| vec![Arc::clone(&ends.ours)], ONE, &exposed.memory, None);
    let (window, _) = other.granted(&second, ONE, &exposed);
    assert!(reaches(&window, &exposed.memory));
}

#[test]
fn who_cannot_be_told_is_granted_nothing_and_who_cannot_ask_asks_again() {
    let (lending, exposed, ends) = (lending(), exposed(), connect());
    let fill = |peer: &Peer| while let Ok(Sent::Whole) = peer.conn.send(&[0; 2], &[]) {};
    let mut windows = Windows::default();
    let remote = RemoteSegment {
        addr: exposed.memory.addr(),
        handle: ONE,
    };
    fill(&ends.theirs);
    assert!(!windows.enter(&ends.theirs, remote, 512));
    while ends
        .ours
        .conn
        .wait_readable(Some(Instant::now()))
        .is_ok_and(|more| more)
    {
        ends.hear(&lending);
    }
    assert!(!windows.enter(&ends.theirs, remote, 512));
    fill(&ends.ours);
    ends.hear(&lending);
    assert_eq!(lock(&lending.asks).len(), 1);
    lending.answer(&exposed);
    let grant = ends.theirs.control.peer_grant(0).expect("a slot");
    assert_eq!(grant.value(), 0);
    while ends
        .theirs
        .conn
        .wait_readable(Some(Instant::now()))
        .is_ok_and(|more| more)
    {
        assert!(ends.window(ONE).is_none());
    }
    ends.granted(&lending, ONE, &exposed);
    assert!(windows.enter(&ends.theirs, remote, 512));
}
