//! What a device brings to its agent.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sys::poll::Poller;

use super::Agent;
use crate::provider::ViId;
use crate::soft::device::Service;

/// What the agent of one kind of NIC does beside looking after VIs, and how it does that.
pub trait Duties: Default + Send + Sync + 'static {
    /// What the agent keeps of a VI's connection.
    type Connection: Clone + Send + 'static;

    /// The name of the thread.
    const THREAD: &'static str;

    /// Makes the connection's socket a member of `set`, as [`Member::Vi`]. Called, as [`Duties::leave`] is, with the agent's charges locked:
    /// of the agent it may use its set.
    ///
    /// # Errors
    /// The set's.
    fn join(
        &self,
        agent: &Agent<Self>,
        vi: ViId,
        connection: &Self::Connection,
        set: &Arc<Poller>,
    ) -> io::Result<()>;
    /// Takes it out of `set`.
    fn leave(&self, agent: &Agent<Self>, vi: ViId, connection: &Self::Connection, set: &Poller);
    /// Its socket rang: has `service` serve the VI.
    fn hear(&self, vi: ViId, connection: &Self::Connection, service: &dyn Service);
    /// Whether to look again soon at a VI although its owner is away and its link armed.
    fn must_look_again(connection: &Self::Connection) -> bool {
        let _ = connection;
        false
    }

    /// [`Member::Own`] of the agent's set rang.
    fn rang(&self, agent: &Agent<Self>, kind: u16, id: u32, service: &dyn Service);
    /// How long an agent that no VI keeps awake may sleep; `None` is until it is woken.
    fn patience(&self) -> Option<Duration> {
        None
    }
    /// The agent has been awake, and has dealt with what rang.
    fn go_round(&self, agent: &Agent<Self>) {
        let _ = agent;
    }
    /// The NIC closes, and the thread ends.
    fn finish(&self, agent: &Agent<Self>) {
        let _ = agent;
    }
}

/// What a member of the agent's set is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member {
    /// The socket of a VI.
    Vi(ViId),
    /// The set of a completion queue.
    Cq(u32),
    /// Something of the device's: its kind, and its number among them.
    Own(u16, u32),
}

impl Member {
    /// What the set calls it: the kind is in the upper half, the number in the lower.
    #[must_use]
    pub fn token(self) -> u64 {
        let (kind, id) = match self {
            Self::Vi(vi) => (0, vi.0),
            Self::Cq(id) => (1, id),
            Self::Own(kind, id) => (OWN + u64::from(kind), id),
        };
        kind << 32 | u64::from(id)
    }

    /// The member of which the set speaks.
    #[must_use]
    pub fn of(token: u64) -> Self {
        let id = token as u32;
        match token >> 32 {
            0 => Self::Vi(ViId(id)),
            1 => Self::Cq(id),
            kind => Self::Own((kind - OWN) as u16, id),
        }
    }
}

/// The first kind of a device's own.
const OWN: u64 = 2;
