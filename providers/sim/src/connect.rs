//! Requests under way, as the engine holds them.

use std::sync::Arc;
use std::time::Instant;

use via::soft::{Established, Incoming, Pending};
use via::{Error, NetAddress, ViAttributes};

use crate::adapter::NicNo;
use crate::core::Core;
use crate::endpoint::Endpoint;
use crate::event::HostNo;
use crate::meet::{Answer, RequestNo};

/// A request that this side made.
pub struct Offer {
    core: Arc<Core>,
    no: RequestNo,
}

/// A request that arrived here.
pub struct Call {
    core: Arc<Core>,
    no: RequestNo,
    host: HostNo,
    remote: (NetAddress, ViAttributes),
}

impl Offer {
    pub(crate) fn new(core: &Arc<Core>, no: RequestNo) -> Self {
        let core = Arc::clone(core);
        Self { core, no }
    }
}

impl Pending for Offer {
    type Link = Endpoint;

    fn wait(&self, deadline: Option<Instant>) -> Option<Result<Established<Endpoint>, Error>> {
        let answer = self.core.wait(deadline, |state| state.outcome(self.no))?;
        Some(match answer {
            Answer::Yes { end, remote } => Ok(Established {
                link: Endpoint::new(&self.core, end),
                remote,
            }),
            Answer::No(error) => Err(error),
        })
    }

    fn cancel(&self) {
        self.core.act(|state| state.cancel(self.no));
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        if !self.core.is_inherited() {
            self.core.act(|state| state.forget(self.no));
        }
    }
}

impl Call {
    pub(crate) fn listen(
        core: &Arc<Core>,
        nic: NicNo,
        host: HostNo,
        local: &NetAddress,
        deadline: Option<Instant>,
    ) -> Result<Self, Error> {
        let listen = core.act(|state| state.listen(nic, *local));
        let called = core.wait(deadline, |state| state.take_call(listen));
        let called = called.or_else(|| {
            core.act(|state| {
                let called = state.take_call(listen);
                state.unlisten(listen);
                called
            })
        });
        let (no, ask) = called.ok_or(Error::Timeout)??;
        Ok(Self {
            core: Arc::clone(core),
            no,
            host,
            remote: (ask.local, ask.attributes),
        })
    }
}

impl Incoming for Call {
    type Link = Endpoint;

    fn remote(&self) -> (NetAddress, ViAttributes) {
        self.remote
    }

    fn accept(&mut self, attributes: &ViAttributes) -> Result<Endpoint, Error> {
        let (no, host) = (self.no, self.host);
        let key = self.core.act(|state| state.accept(no, host, attributes))?;
        Ok(Endpoint::new(&self.core, key))
    }

    fn reject(&mut self) {
        self.core.act(|state| state.reject(self.no, self.host));
    }
}
