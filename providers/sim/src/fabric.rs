//! A network of simulated hosts, and the time that they share.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use via::Error;
use via::provider::{Driver, NicOps, OpenOptions};
use via::soft::SoftNic;

use crate::adapter::Adapter;
use crate::config::{FabricConfig, Noise};
use crate::core::Core;
use crate::event::{EndKey, Event, HostNo};
use crate::fault::Act;
use crate::medium::Counters;
use crate::state::State;
use crate::trace::Trace;

/// A network of simulated hosts. Clones are the same network.
///
/// The same seed gives the same run, to the last line of the [trace](Fabric::trace), as long as one
/// thread uses it.
#[derive(Clone)]
pub struct Fabric {
    core: Arc<Core>,
}

/// A simulated host, and the driver of its NICs.
#[derive(Clone)]
pub struct Host {
    fabric: Fabric,
    no: HostNo,
}

/// A thread that virtual time waits for, until it is dropped.
#[must_use]
pub struct Participant {
    core: Arc<Core>,
    no: u64,
}

/// A thread begun by [`Fabric::spawn`].
pub struct Spawned<T> {
    core: Arc<Core>,
    no: u64,
    thread: thread::JoinHandle<T>,
}

impl Fabric {
    /// A network without hosts.
    #[must_use]
    pub fn new(config: FabricConfig) -> Self {
        Self {
            core: Core::new(config),
        }
    }

    /// Adds a host. All its NICs have its address.
    #[must_use]
    pub fn host(&self) -> Host {
        Host {
            fabric: self.clone(),
            no: self.core.act(|state| state.medium.add_host()),
        }
    }

    /// An address of no host.
    #[must_use]
    pub fn nowhere(&self) -> [u8; 6] {
        HostNo(0).address()
    }

    /// The time by which NICs of this fabric measure timeouts.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.core.now()
    }

    /// Virtual time since the beginning.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.core.act(|state| state.medium.now)
    }

    /// Waits, and so lets happen what happens meanwhile.
    pub fn sleep(&self, time: Duration) {
        let until = self.now() + time;
        // Nothing is looked for, so it ends when the time is over.
        let _nothing: Option<()> = self.core.wait(Some(until), |_| None);
    }

    /// Counts one more thread: gated time stands still while it computes. To be called before the
    /// thread begins, the guard to be dropped when it ends.
    pub fn take_part(&self) -> Participant {
        Participant {
            core: Arc::clone(&self.core),
            no: self.core.act(|state| state.join()),
        }
    }

    /// Begins a thread that takes part.
    pub fn spawn<T: Send + 'static>(&self, run: impl FnOnce() -> T + Send + 'static) -> Spawned<T> {
        let part = self.take_part();
        let no = part.no;
        let thread = thread::spawn(move || {
            let _part = part;
            run()
        });
        let core = Arc::clone(&self.core);
        Spawned { core, no, thread }
    }

    /// Runs what may block outside the fabric: the calling thread, which takes part, does not
    /// count meanwhile. When all others wait, time goes on without it.
    pub fn outside<T>(&self, run: impl FnOnce() -> T) -> T {
        self.core.act(|state| state.gate.leave());
        let _back = Rejoin(&self.core);
        run()
    }

    /// Changes what goes wrong from now on.
    pub fn set_noise(&self, noise: Noise) {
        self.core.act(|state| state.medium.noise = noise);
    }

    /// Plans `act` for the packet from one host to another after the next `nth`. Below the reliable
    /// levels it is repaired by retransmission.
    pub fn strike(&self, from: &Host, to: &Host, nth: u64, act: Act) {
        self.core
            .act(|state| state.medium.strike([from.no, to.no], nth, act));
    }

    /// From now on nothing passes between the two hosts.
    pub fn cut(&self, one: &Host, other: &Host) {
        self.core
            .act(|state| state.medium.cut([one.no, other.no], true));
    }

    /// Ends a [cut](Fabric::cut).
    pub fn heal(&self, one: &Host, other: &Host) {
        self.core
            .act(|state| state.medium.cut([one.no, other.no], false));
    }

    /// The packets so far.
    #[must_use]
    pub fn trace(&self) -> Trace {
        self.core.act(|state| state.medium.trace.clone())
    }

    /// How many packets met which fate so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.core.act(|state| state.medium.counters)
    }
}

impl Host {
    /// The host part of its addresses.
    #[must_use]
    pub fn address(&self) -> [u8; 6] {
        self.no.address()
    }

    /// The device behind a NIC of this host, for what wraps or bypasses the engine.
    ///
    /// # Errors
    /// [`Error::Resource`] when the host is dead or too many NICs are open.
    pub fn adapter(&self) -> Result<Adapter, Error> {
        Adapter::new(&self.fabric.core, self.no)
    }

    /// The host dies: nothing that it sends from now on leaves, and its peers find out.
    pub fn kill(&self) {
        self.fabric.core.act(|state| {
            state.medium.kill(self.no);
            let noticed = state.medium.now + state.medium.config.latency;
            for (&conn, ends) in &state.conns {
                for side in (0..2).filter(|&side| ends.ends[side].host == self.no) {
                    let dead = EndKey { conn, side };
                    let ours = via::soft::Goodbye::Transport;
                    let theirs = via::soft::Goodbye::Died;
                    let (to, why) = (dead, ours);
                    state.medium.at(state.medium.now, Event::Ended { to, why });
                    let (to, why) = (dead.other(), theirs);
                    state.medium.at(noticed, Event::Ended { to, why });
                }
            }
        });
    }
}

impl Driver for Host {
    fn name(&self) -> &'static str {
        crate::NAME
    }

    fn open(&self, options: OpenOptions) -> Result<Arc<dyn NicOps>, Error> {
        SoftNic::open(self.adapter()?, options)
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        self.core.act(|state| state.leave(self.no));
    }
}

impl<T> Spawned<T> {
    /// Waits in the fabric for its end.
    ///
    /// # Errors
    /// What it panicked with.
    pub fn join(self) -> thread::Result<T> {
        let gone = |state: &mut State| (!state.takes_part(self.no)).then_some(());
        let _gone = self.core.wait(None, gone);
        self.thread.join()
    }
}

struct Rejoin<'a>(&'a Arc<Core>);

impl Drop for Rejoin<'_> {
    fn drop(&mut self) {
        self.0.act(|state| state.gate.join());
    }
}
