//! What the agent of this NIC does itself: it sees ended connections off, and closes doors at which nobody waits any more.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sys::poll::Poller;
use via::provider::ViId;
use via::soft::{Agent, Duties, Member, Service};

use crate::departure::Departure;
use crate::door;
use crate::wire::Wire;

/// The connections that are on their way out, and the doors.
#[derive(Default)]
pub(crate) struct Departures {
    connections: Mutex<HashMap<u32, Departure>>,
    /// Each once, and when it is to be closed.
    doors: Mutex<HashMap<SocketAddrV4, Instant>>,
}

impl Duties for Departures {
    type Connection = Arc<Wire>;

    const THREAD: &'static str = "iwarp-agent";

    fn join(
        &self,
        _agent: &Agent<Self>,
        vi: ViId,
        wire: &Arc<Wire>,
        set: &Arc<Poller>,
    ) -> io::Result<()> {
        wire.join(Arc::clone(set), Member::Vi(vi).token())
    }

    fn leave(&self, _agent: &Agent<Self>, _vi: ViId, wire: &Arc<Wire>, _set: &Poller) {
        wire.leave();
    }

    fn hear(&self, vi: ViId, wire: &Arc<Wire>, service: &dyn Service) {
        wire.rang();
        service.serve(vi);
    }

    fn must_look_again(wire: &Arc<Wire>) -> bool {
        wire.is_unheard() || wire.is_unwatched()
    }

    fn rang(&self, agent: &Agent<Self>, _kind: u16, id: u32, _service: &dyn Service) {
        self.depart(agent, id);
    }

    /// Until the first departure has taken too long, or a door is to be closed.
    fn patience(&self) -> Option<Duration> {
        let departure = self.departures().values().map(Departure::until).min();
        let door = self.doors().values().copied().min();
        let first = departure.into_iter().chain(door).min()?;
        Some(first.saturating_duration_since(Instant::now()))
    }

    /// Ends the departures that take too long, and closes the doors whose time has come.
    fn go_round(&self, agent: &Agent<Self>) {
        let now = Instant::now();
        let due = self
            .doors()
            .extract_if(|_, until| *until <= now)
            .collect::<Vec<_>>();
        for (at, _) in due {
            door::close(at, false);
        }
        self.departures().retain(|_, departure| {
            let keep = departure.until() > now;
            if !keep {
                let removed = agent.set().remove(departure.wire().tcp());
                debug_assert!(removed.is_ok(), "added before");
            }
            keep
        });
    }

    /// A moment for those who are just saying good-bye.
    fn finish(&self, agent: &Agent<Self>) {
        let doors = std::mem::take(&mut *self.doors());
        for at in doors.into_keys() {
            door::close(at, true);
        }
        let end = Instant::now() + LAST_MOMENT;
        let mut events = Vec::new();
        while !self.departures().is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            let waited = agent.set().wait(&mut events, Some(left));
            if waited.is_err() || left.is_zero() {
                break;
            }
            for event in &events {
                if let Member::Own(_, id) = Member::of(event.token) {
                    self.depart(agent, id);
                }
            }
        }
        self.departures().clear();
    }
}

impl Departures {
    /// Writes `last`, says FIN, and waits a while for the peer's.
    pub(crate) fn see_off(&self, agent: &Arc<Agent<Self>>, wire: &Arc<Wire>, last: Vec<u8>) {
        let mut departure = Departure::new(Arc::clone(wire), last);
        // One that no VI ever had may be the first that the agent hears of. Without an agent the connection ends as it is.
        if departure.go_on() || agent.is_stopping() || agent.start().is_err() {
            return;
        }
        let id = agent.next_id();
        let mut departures = self.departures();
        // Without a place in the set the connection ends as it is.
        let added = agent
            .set()
            .add(wire.tcp().as_fd(), token(id), departure.interest());
        if added.is_ok() {
            departures.insert(id, departure);
            drop(departures);
            agent.rouse();
        }
    }

    fn depart(&self, agent: &Agent<Self>, id: u32) {
        let mut departures = self.departures();
        let Some(departure) = departures.get_mut(&id) else {
            return;
        };
        let over = departure.go_on();
        let tcp = departure.wire().tcp();
        if over {
            let removed = agent.set().remove(tcp);
            debug_assert!(removed.is_ok(), "added before");
            departures.remove(&id);
        } else {
            let modified = agent.set().modify(tcp, token(id), departure.interest());
            debug_assert!(modified.is_ok(), "added before");
        }
    }

    /// Closes the door at `at` then, if nobody waits there; whether it can.
    pub(crate) fn close_door(
        &self,
        agent: &Arc<Agent<Self>>,
        at: SocketAddrV4,
        until: Instant,
    ) -> bool {
        if agent.is_stopping() || agent.start().is_err() {
            return false;
        }
        self.doors().insert(at, until);
        agent.rouse();
        // One that ends may have looked before.
        !agent.is_stopping()
    }

    fn departures(&self) -> MutexGuard<'_, HashMap<u32, Departure>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn doors(&self) -> MutexGuard<'_, HashMap<SocketAddrV4, Instant>> {
        self.doors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A departure is the one kind of member that the agent has of its own.
fn token(id: u32) -> u64 {
    Member::Own(0, id).token()
}

/// How long a NIC that closes waits for the ends of its connections.
const LAST_MOMENT: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::thread;

    use sys::mem::Memory;
    use sys::sync::AtomicUsize;
    use via::MemHandle;
    use via::soft::{Attention, Goodbye};

    use super::*;

    /// An engine without VIs.
    struct Bare;

    impl Service for Bare {
        fn serve(&self, _vi: ViId) -> Attention {
            Attention::Gone
        }

        fn tend(&self, _vi: ViId) -> Attention {
            Attention::Gone
        }

        fn ended(&self, _vi: ViId, _connection: u32, _why: Goodbye) {}

        fn exposed(&self, _vi: ViId, _handle: MemHandle) -> Option<(Arc<Memory>, bool)> {
            None
        }
    }

    #[test]
    fn a_connection_that_no_vi_had_is_seen_off() {
        static OPEN: AtomicUsize = AtomicUsize::new(0);
        let agent = Agent::<Departures>::new(&OPEN).expect("an agent");
        let service: Arc<dyn Service> = Arc::new(Bare);
        agent.set_service(Arc::downgrade(&service));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("listens");
        let (ours, _) = listener.accept().expect("the peer");
        let wire = Arc::new(Wire::new(ours.into()).expect("TCP"));
        agent.duties().see_off(&agent, &wire, Vec::new());
        peer.shutdown(Shutdown::Write).expect("connected");
        let started = Instant::now();
        while !agent.duties().departures().is_empty() {
            assert!(started.elapsed().as_secs() < 10, "nobody sees it off");
            thread::yield_now();
        }
        agent.stop();
    }
}
