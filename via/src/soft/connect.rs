//! How VIs connect: the calls above a device's connection manager.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use sys::sync::Ordering;

use super::core::{Attempt, Core};
use super::device::{Ask, Device, Established, Incoming, Pending};
use super::link::Link;
use super::nic::Shared;
use super::vi::SoftVi;
use crate::provider::{ConnOps, Export, Timeout, ViOps};
use crate::{Error, NetAddress, ViAttributes, ViEvent, ViState};

/// `VipConnectWait`.
pub(super) fn wait<D: Device>(
    nic: &Arc<Shared<D>>,
    local: &NetAddress,
    timeout: Timeout,
) -> Result<Box<dyn ConnOps>, Error> {
    nic.check()?;
    if !nic.device.is_local(local.host) {
        return Err(Error::InvalidParameter);
    }
    let is_over = || nic.is_over();
    let heard = nic.device.listen(local, nic.deadline(timeout), &is_over);
    // Closed meanwhile it has no use for a request either, which goes away with a no.
    nic.check()?;
    let incoming = heard?;
    Ok(Box::new(SoftConn {
        nic: Arc::clone(nic),
        incoming: Some(incoming),
    }))
}

/// Takes the other half of an export.
pub(super) fn import<D: Device>(
    nic: &Arc<Shared<D>>,
    vi: &dyn ViOps,
    blob: &[u8],
    fds: Vec<OwnedFd>,
) -> Result<(), Error> {
    let vi = own_vi(nic, vi)?;
    let mut core = vi.enter()?;
    if core.state != ViState::Idle {
        return Err(Error::InvalidState);
    }
    let established = nic.device.import(&core.attributes, blob, fds)?;
    check_match(&core.attributes, &established.remote)?;
    vi.install(&mut core, ViEvent::Accept, established.link)?;
    drop(core);
    vi.heat();
    Ok(())
}

/// A connection request that arrived at a software NIC.
struct SoftConn<D: Device> {
    nic: Arc<Shared<D>>,
    /// `None` once answered.
    incoming: Option<D::Incoming>,
}

impl<D: Device> ConnOps for SoftConn<D> {
    fn remote_address(&self) -> NetAddress {
        match &self.incoming {
            Some(incoming) => incoming.remote().0,
            None => NetAddress {
                host: [0; 6],
                discriminator: crate::Discriminator::default(),
            },
        }
    }

    fn remote_attributes(&self) -> ViAttributes {
        self.incoming
            .as_ref()
            .map_or_else(ViAttributes::default, |incoming| incoming.remote().1)
    }

    fn accept(&mut self, vi: &dyn ViOps) -> Result<(), Error> {
        self.nic.check()?;
        let vi = own_vi(&self.nic, vi)?;
        let incoming = self.incoming.as_mut().ok_or(Error::InvalidParameter)?;
        let mut core = vi.enter()?;
        if core.state != ViState::Idle {
            return Err(Error::InvalidState);
        }
        incoming.check(&core.attributes)?;
        let accepted = incoming.accept(&core.attributes);
        if accepted.is_ok() || !incoming.is_unanswered() {
            self.incoming = None;
        }
        vi.install(&mut core, ViEvent::Accept, accepted?)?;
        drop(core);
        vi.heat();
        Ok(())
    }

    fn is_pending(&self) -> bool {
        self.incoming.is_some()
    }

    fn reject(mut self: Box<Self>) -> Result<(), Error> {
        if self.nic.is_forked() {
            return Err(Error::InvalidParameter);
        }
        let mut incoming = self.incoming.take().ok_or(Error::InvalidParameter)?;
        incoming.reject();
        Ok(())
    }
}

impl<D: Device> Drop for SoftConn<D> {
    fn drop(&mut self) {
        if let Some(incoming) = self.incoming.as_mut().filter(|_| self.nic.is_forked()) {
            incoming.abandon();
        }
    }
}

/// The concrete VI, if it was made under this NIC handle.
fn own_vi<D: Device>(nic: &Arc<Shared<D>>, vi: &dyn ViOps) -> Result<Arc<SoftVi<D>>, Error> {
    let concrete = vi
        .as_any()
        .downcast_ref::<SoftVi<D>>()
        .filter(|vi| Arc::ptr_eq(&vi.nic, nic))
        .ok_or(Error::InvalidParameter)?;
    nic.vi(concrete.id).ok_or(Error::InvalidParameter)
}

pub(super) fn check_match(ours: &ViAttributes, theirs: &ViAttributes) -> Result<(), Error> {
    if ours.reliability != theirs.reliability {
        return Err(Error::InvalidReliabilityLevel);
    }
    if ours.max_transfer_size != theirs.max_transfer_size {
        return Err(Error::InvalidMtu);
    }
    if ours.qos != theirs.qos {
        return Err(Error::InvalidQos);
    }
    Ok(())
}

impl<D: Device> SoftVi<D> {
    /// `VipConnectRequest`.
    pub(super) fn request(
        &self,
        local: &NetAddress,
        remote: &NetAddress,
        timeout: Timeout,
    ) -> Result<ViAttributes, Error> {
        let deadline = self.nic.deadline(timeout);
        let (number, ask) = {
            let mut core = self.enter()?;
            if timeout == Some(Duration::ZERO) {
                return Err(Error::InvalidParameter);
            }
            if !core.step(ViEvent::Request) {
                return Err(Error::InvalidState);
            }
            let number = self.attempts.fetch_add(1, Ordering::Relaxed) + 1;
            core.attempt = Attempt::Client {
                number,
                pending: None,
            };
            (number, ask(&core, local, remote))
        };
        let pending = self.nic.device.request(&ask).map(Arc::new);
        let outcome = match &pending {
            Ok(pending) => match self.begin_waiting(number, pending) {
                true => pending.wait(deadline).unwrap_or(Err(Error::Timeout)),
                false => Err(Error::InvalidState),
            },
            Err(error) => Err(*error),
        };
        let mut core = self.lock();
        let current = matches!(&core.attempt, Attempt::Client { number: n, .. } if *n == number);
        if !current {
            // Disconnected meanwhile; a link that came all the same goes with `outcome`.
            return Err(Error::InvalidState);
        }
        core.attempt = Attempt::None;
        match outcome {
            Ok(established) => {
                let remote = established.remote;
                self.install(&mut core, ViEvent::Established, established.link)?;
                drop(core);
                self.heat();
                Ok(remote)
            }
            Err(error) => {
                if let Ok(pending) = &pending {
                    pending.cancel();
                }
                core.step(ViEvent::RequestFailed);
                Err(error)
            }
        }
    }

    /// Makes the request cancellable; `false` if it was cancelled already.
    fn begin_waiting(&self, number: u32, started: &Arc<D::Pending>) -> bool {
        let mut core = self.lock();
        match &mut core.attempt {
            Attempt::Client { number: n, pending } if *n == number => {
                *pending = Some(Arc::clone(started));
                true
            }
            _ => false,
        }
    }

    /// `VipConnectPeerRequest`.
    pub(super) fn offer(
        &self,
        local: &NetAddress,
        remote: &NetAddress,
        timeout: Timeout,
    ) -> Result<(), Error> {
        let mut core = self.enter()?;
        if timeout == Some(Duration::ZERO) || !self.nic.device.is_local(local.host) {
            return Err(Error::InvalidParameter);
        }
        if core.state != ViState::Idle {
            return Err(Error::InvalidState);
        }
        let pending = self.nic.device.peer_request(&ask(&core, local, remote))?;
        core.step(ViEvent::Request);
        core.attempt = Attempt::Peer {
            pending: Arc::new(pending),
            deadline: self.nic.deadline(timeout),
        };
        Ok(())
    }

    /// `VipConnectPeerDone`, or with `block` `VipConnectPeerWait`.
    pub(super) fn offer_outcome(&self, block: bool) -> Result<Option<ViAttributes>, Error> {
        let (pending, deadline) = {
            let core = self.enter()?;
            match &core.attempt {
                Attempt::Peer { pending, deadline } => (Arc::clone(pending), *deadline),
                Attempt::None | Attempt::Client { .. } => return Err(Error::InvalidState),
            }
        };
        let until = if block {
            deadline
        } else {
            Some(self.nic.device.now())
        };
        let outcome = pending.wait(until);
        let mut core = self.lock();
        let current =
            matches!(&core.attempt, Attempt::Peer { pending: p, .. } if Arc::ptr_eq(p, &pending));
        if !current {
            return Err(Error::InvalidState);
        }
        let outcome = match outcome {
            None if !self.nic.expired(deadline) => return Ok(None),
            None => Err(Error::Timeout),
            // Another thread has taken the outcome, and is about to come here with it.
            Some(Err(Error::InvalidState)) => return Err(Error::InvalidState),
            Some(outcome) => outcome,
        };
        core.attempt = Attempt::None;
        match outcome {
            Ok(Established { link, remote }) => {
                self.install(&mut core, ViEvent::Established, link)?;
                drop(core);
                self.heat();
                Ok(Some(remote))
            }
            Err(error) => {
                pending.cancel();
                core.step(ViEvent::RequestFailed);
                Err(error)
            }
        }
    }

    pub(super) fn export_end(&self) -> Result<Export, Error> {
        let mut core = self.enter()?;
        if core.state != ViState::Idle {
            return Err(Error::InvalidState);
        }
        let (link, export) = self.nic.device.export(&core.attributes)?;
        self.install(&mut core, ViEvent::Accept, link)?;
        drop(core);
        self.heat();
        Ok(export)
    }

    /// The connection is there.
    pub(super) fn install(
        &self,
        core: &mut Core<D>,
        event: ViEvent,
        link: D::Link,
    ) -> Result<(), Error> {
        core.connection = core.connection.wrapping_add(1);
        let attached = self
            .nic
            .device
            .attach(self.id, core.connection, &link, self.sleep_cq());
        if let Err(error) = attached {
            core.step(ViEvent::RequestFailed);
            return Err(error);
        }
        core.step(event);
        core.link = Some(link);
        self.idle.wake();
        if D::Link::MESSAGES {
            self.begin_messages(core);
        }
        Ok(())
    }

    /// Its completion queues look at it from now on.
    pub(super) fn heat(&self) {
        if let Some(me) = self.nic.vi(self.id) {
            for cq in self.bound_cqs() {
                cq.heat(&me);
            }
        }
    }
}

fn ask<D: Device>(core: &Core<D>, local: &NetAddress, remote: &NetAddress) -> Ask {
    Ask {
        local: *local,
        remote: *remote,
        attributes: core.attributes,
    }
}
