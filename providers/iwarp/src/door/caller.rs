//! Somebody who asks for a connection, and what he is answered.

use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use proto::mpa::Handshake;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use via::soft::{Agent, Ask};
use via::{Error, Reliability, ViAttributes};

use crate::departures::Departures;
use crate::dial::{Answer, step, write_out};
use crate::link::IwarpLink;
use crate::private;
use crate::stream::Stream;
use crate::wire::{Bell, Wire};

/// Somebody who asks.
pub(crate) struct Caller {
    pub(super) tcp: OwnedFd,
    pub(super) handshake: Handshake,
    /// `None` of a stranger, who tells no attributes.
    pub(super) ask: Option<Ask>,
    pub(super) is_peer: bool,
    pub(super) takes_reads: bool,
    pub(crate) from: SocketAddrV4,
}

impl Caller {
    /// His VI; `None` of a stranger's.
    pub(crate) fn attributes(&self) -> Option<ViAttributes> {
        self.ask.as_ref().map(|ask| ask.attributes)
    }

    pub(crate) fn check(&self, ours: &ViAttributes) -> Result<(), Error> {
        match &self.ask {
            Some(ask) => private::fit(ours, &ask.attributes)?,
            // A stranger takes whatever we have, if it is what iWARP is.
            None if ours.reliability == Reliability::Unreliable => {
                return Err(Error::InvalidReliabilityLevel);
            }
            None => {}
        }
        private::suffice(ours, self.takes_reads)
    }

    /// Says yes, by means of what [`Caller::prepare`] has found. [`Error::Timeout`] when the caller has given up.
    pub(crate) fn accept(
        mut self,
        attributes: &ViAttributes,
        agent: &Arc<Agent<Departures>>,
        bell: Bell,
    ) -> Result<IwarpLink, Error> {
        if has_left(&self.tcp) {
            return Err(Error::Timeout);
        }
        let is_ours = self.ask.is_some();
        let said = if is_ours {
            private::accept(attributes)
        } else {
            Vec::new()
        };
        let accepted = self.handshake.accept(&said);
        accepted.map_err(|_| Error::InvalidParameter)?;
        let answer = step(&self.tcp, &mut self.handshake);
        let written = self.handshake.output().is_empty();
        let Ok(Some(Answer::Yes { terms, .. })) = answer else {
            return Err(Error::Timeout);
        };
        if !written {
            return Err(Error::Timeout);
        }
        let stream = Stream::new(terms, is_ours, attributes)?;
        let wire = Wire::with_bell(self.tcp, bell).map_err(|_| Error::Resource)?;
        Ok(IwarpLink::new(Arc::new(wire), &stream, agent))
    }

    /// Gets what a connection needs that may be lacking, before anything is said: the caller who has heard a yes is connected.
    ///
    /// # Errors
    /// [`Error::Resource`]: no descriptor, or no thread. He waits on, and can be accepted later.
    pub(crate) fn prepare(agent: &Arc<Agent<Departures>>) -> Result<Bell, Error> {
        agent.start()?;
        Bell::new().map_err(|_| Error::Resource)
    }

    pub(crate) fn send_away(&mut self, why: Error) {
        let said = if self.ask.is_some() {
            private::refusal(why)
        } else {
            Vec::new()
        };
        // It fits, and was not answered before; a caller who is gone does not miss it.
        if self.handshake.reject(&said).is_ok() {
            write_out(&self.tcp, &mut self.handshake);
        }
    }
}

/// Whether whoever asked has given up.
fn has_left(tcp: &OwnedFd) -> bool {
    let peeked = recv(tcp, &mut [0; 1][..], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    !matches!(peeked, Ok((1.., _)) | Err(Errno::AGAIN | Errno::INTR))
}
