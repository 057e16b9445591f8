//! A device with a tap, and how its connections come about.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use sys::mem::Memory;
use via::provider::{Export, ViId};
use via::soft::{Ask, Device, Established, Incoming, Pending, Service};
use via::{Capabilities, Error, MemHandle, NetAddress, NicAttributes, ViAttributes};

use super::hold::TappedCqWaiter;
use super::link::TappedLink;
use super::{Route, Tap};

/// A device whose frames pass a [`Tap`]. Taps stack: a tapped device is a device.
///
/// ```
/// # fn main() -> Result<(), via::Error> {
/// use sim::{Fabric, FabricConfig, Tapped, Trace};
/// use via::soft::SoftNic;
///
/// let trace = Trace::new(1000);
/// let device = Tapped::new(Fabric::new(FabricConfig::default()).host().adapter()?, trace.clone());
/// let nic = SoftNic::open(device, via::provider::OpenOptions::default())?;
/// # drop(nic);
/// assert_eq!(trace.text(), "");
/// # Ok(())
/// # }
/// ```
pub struct Tapped<D, T> {
    shared: Arc<Shared<D, T>>,
}

pub(super) struct Shared<D, T> {
    pub(super) device: D,
    pub(super) tap: T,
    began: Instant,
    links: Mutex<u64>,
}

/// A request under way from a tapped device.
pub struct TappedPending<D: Device, T> {
    inner: D::Pending,
    shared: Arc<Shared<D, T>>,
    addresses: (NetAddress, NetAddress),
}

/// A request that arrived at a tapped device.
pub struct TappedIncoming<D: Device, T> {
    inner: D::Incoming,
    shared: Arc<Shared<D, T>>,
    local: NetAddress,
}

impl<D: Device, T: Tap> Tapped<D, T> {
    /// Taps `device`.
    pub fn new(device: D, tap: T) -> Self {
        let began = device.now();
        let shared = Arc::new(Shared {
            device,
            tap,
            began,
            links: Mutex::default(),
        });
        Self { shared }
    }

    fn pending(&self, ask: &Ask, inner: D::Pending) -> TappedPending<D, T> {
        TappedPending {
            inner,
            shared: Arc::clone(&self.shared),
            addresses: (ask.local, ask.remote),
        }
    }
}

impl<D: Device, T: Tap> Shared<D, T> {
    /// What has passed since the device was tapped.
    pub(super) fn elapsed(&self) -> Duration {
        self.device.now().saturating_duration_since(self.began)
    }

    fn link(
        self: &Arc<Self>,
        inner: D::Link,
        addresses: Option<(NetAddress, NetAddress)>,
    ) -> TappedLink<D, T> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let no = *links;
        *links += 1;
        TappedLink::new(inner, Arc::clone(self), Route { no, addresses })
    }
}

impl<D: Device, T: Tap> Device for Tapped<D, T> {
    type Link = TappedLink<D, T>;
    type Incoming = TappedIncoming<D, T>;
    type Pending = TappedPending<D, T>;
    type CqWaiter = TappedCqWaiter<D::CqWaiter>;

    fn attributes(&self) -> &NicAttributes {
        self.shared.device.attributes()
    }

    fn capabilities(&self) -> Capabilities {
        self.shared.device.capabilities()
    }

    fn started(&self, service: Weak<dyn Service>) {
        self.shared.device.started(service);
    }

    fn stop(&self) {
        self.shared.device.stop();
    }

    fn stirred(&self, vi: ViId) {
        self.shared.device.stirred(vi);
    }

    fn now(&self) -> Instant {
        self.shared.device.now()
    }

    fn discover(&self, hops: u64) -> Result<Vec<[u8; 6]>, Error> {
        self.shared.device.discover(hops)
    }

    fn request(&self, ask: &Ask) -> Result<Self::Pending, Error> {
        Ok(self.pending(ask, self.shared.device.request(ask)?))
    }

    fn peer_request(&self, ask: &Ask) -> Result<Self::Pending, Error> {
        Ok(self.pending(ask, self.shared.device.peer_request(ask)?))
    }

    fn listen(
        &self,
        local: &NetAddress,
        deadline: Option<Instant>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Self::Incoming, Error> {
        Ok(TappedIncoming {
            inner: self.shared.device.listen(local, deadline, is_over)?,
            shared: Arc::clone(&self.shared),
            local: *local,
        })
    }

    fn export(&self, attributes: &ViAttributes) -> Result<(Self::Link, Export), Error> {
        let (link, export) = self.shared.device.export(attributes)?;
        Ok((self.shared.link(link, None), export))
    }

    fn import(
        &self,
        attributes: &ViAttributes,
        blob: &[u8],
        fds: Vec<OwnedFd>,
    ) -> Result<Established<Self::Link>, Error> {
        let Established { link, remote } = self.shared.device.import(attributes, blob, fds)?;
        let link = self.shared.link(link, None);
        Ok(Established { link, remote })
    }

    fn cq_waiter(&self) -> io::Result<Self::CqWaiter> {
        Ok(TappedCqWaiter::new(self.shared.device.cq_waiter()?))
    }

    fn attach(
        &self,
        vi: ViId,
        connection: u32,
        link: &Self::Link,
        cq: Option<&Self::CqWaiter>,
    ) -> Result<(), Error> {
        let inner = cq.map(|cq| &cq.inner);
        self.shared
            .device
            .attach(vi, connection, link.inner(), inner)?;
        link.hold().attach(vi, cq);
        Ok(())
    }

    fn detach(&self, vi: ViId, link: &Self::Link, cq: Option<&Self::CqWaiter>) {
        link.hold().attach::<D::CqWaiter>(vi, None);
        let inner = cq.map(|cq| &cq.inner);
        self.shared.device.detach(vi, link.inner(), inner);
    }

    fn revoke(&self, handle: MemHandle, memory: &Memory) {
        self.shared.device.revoke(handle, memory);
    }
}

impl<D: Device, T: Tap> Pending for TappedPending<D, T> {
    type Link = TappedLink<D, T>;

    fn wait(&self, deadline: Option<Instant>) -> Option<Result<Established<Self::Link>, Error>> {
        let outcome = self.inner.wait(deadline)?;
        Some(outcome.map(|Established { link, remote }| Established {
            link: self.shared.link(link, Some(self.addresses)),
            remote,
        }))
    }

    fn cancel(&self) {
        self.inner.cancel();
    }
}

impl<D: Device, T: Tap> Incoming for TappedIncoming<D, T> {
    type Link = TappedLink<D, T>;

    fn remote(&self) -> (NetAddress, ViAttributes) {
        self.inner.remote()
    }

    fn accept(&mut self, attributes: &ViAttributes) -> Result<Self::Link, Error> {
        let link = self.inner.accept(attributes)?;
        let addresses = (self.local, self.inner.remote().0);
        Ok(self.shared.link(link, Some(addresses)))
    }

    fn is_unanswered(&self) -> bool {
        self.inner.is_unanswered()
    }

    fn reject(&mut self) {
        self.inner.reject();
    }

    fn abandon(&mut self) {
        self.inner.abandon();
    }
}
