//! What the agent of this NIC does itself: it hears what peers ask and offer, and watches them die.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sys::hidden::Hidden;
use sys::poll::{Interest, Poller};
use via::provider::ViId;
use via::soft::{Agent, Duties, Goodbye, Member, Service};

use crate::lending::Lending;
use crate::peer::{Heard, Peer};
use crate::peering::Offers;

/// What the agent does beside looking after VIs.
#[derive(Default)]
pub(crate) struct ShmDuties {
    pub(crate) offers: Offers,
    pub(crate) lending: Lending,
    processes: Mutex<HashMap<u32, Process>>,
}

/// A VI's connection.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) peer: Arc<Peer>,
    /// Which of the VI's connections it is.
    pub(crate) no: u32,
}

/// A process at the other end of some connections.
struct Process {
    pidfd: Hidden,
    vis: HashMap<ViId, u32>,
}

impl Duties for ShmDuties {
    type Connection = Connection;

    const THREAD: &'static str = "shm-agent";

    fn join(
        &self,
        agent: &Agent<Self>,
        vi: ViId,
        connection: &Connection,
        set: &Arc<Poller>,
    ) -> io::Result<()> {
        let token = Member::Vi(vi).token();
        set.add(&connection.peer.conn, token, Interest::Read)?;
        self.watch_process(agent, vi, connection);
        Ok(())
    }

    fn leave(&self, agent: &Agent<Self>, vi: ViId, connection: &Connection, set: &Poller) {
        self.lending.part(&connection.peer);
        self.forget_process(agent, connection.peer.pid, vi);
        let removed = set.remove(&connection.peer.conn);
        debug_assert!(removed.is_ok(), "joined before");
    }

    fn hear(&self, vi: ViId, connection: &Connection, service: &dyn Service) {
        let peer = &connection.peer;
        let heard = peer.hear(|handle| self.lending.ask(vi, peer, handle));
        self.lending.answer(service);
        service.serve(vi);
        if heard == Heard::Closed {
            service.ended(vi, connection.no, Goodbye::Died);
        }
    }

    fn rang(&self, agent: &Agent<Self>, kind: u16, id: u32, service: &dyn Service) {
        match kind {
            PROCESS => {
                let vis = bury(&mut self.processes(), agent, id);
                for (vi, connection) in vis {
                    service.ended(vi, connection, Goodbye::Died);
                }
            }
            OFFER => self.offers.hear(agent, id),
            _ => {}
        }
    }
}

impl ShmDuties {
    /// Its death ends the connection, even while a child of its holds the socket open.
    fn watch_process(&self, agent: &Agent<Self>, vi: ViId, connection: &Connection) {
        let Connection { peer, no } = connection;
        if peer.pid == 0 {
            return;
        }
        let mut processes = self.processes();
        if let Some(process) = processes.get_mut(&peer.pid) {
            process.vis.insert(vi, *no);
            return;
        }
        // Without a pidfd the closing socket alone tells.
        let Ok(pidfd) = peer.conn.peer_pidfd() else {
            return;
        };
        let pidfd = Hidden::of_a_nic(pidfd);
        let token = Member::Own(PROCESS, peer.pid).token();
        if agent.set().add(&pidfd, token, Interest::Read).is_ok() {
            let vis = HashMap::from([(vi, *no)]);
            processes.insert(peer.pid, Process { pidfd, vis });
        }
    }

    fn forget_process(&self, agent: &Agent<Self>, pid: u32, vi: ViId) {
        let mut processes = self.processes();
        let Some(process) = processes.get_mut(&pid) else {
            return;
        };
        process.vis.remove(&vi);
        if process.vis.is_empty() {
            bury(&mut processes, agent, pid);
        }
    }

    fn processes(&self) -> MutexGuard<'_, HashMap<u32, Process>> {
        self.processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets a process; the VIs connected to it, and which of their connections that is.
fn bury(
    processes: &mut HashMap<u32, Process>,
    agent: &Agent<ShmDuties>,
    pid: u32,
) -> HashMap<ViId, u32> {
    let Some(process) = processes.remove(&pid) else {
        return HashMap::new();
    };
    let removed = agent.set().remove(&process.pidfd);
    debug_assert!(removed.is_ok(), "added before");
    process.vis
}

/// The agent's own members: processes, by their number, and what belongs to offers.
const PROCESS: u16 = 0;
pub(crate) const OFFER: u16 = 1;
