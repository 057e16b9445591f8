//! Opening a NIC and making things with it.

use std::fmt;
use std::sync::Arc;

use sys::mem::Memory;

use crate::provider::{Driver, MemHandle, NicOps, OpenOptions, PtagId, Timeout};
use crate::{
    AsyncError, Capabilities, Cq, Error, Incoming, MemAttributes, NetAddress, NicAttributes,
    RemoteSegment, Vi, ViConfig,
};

/// An open VI NIC (`VipOpenNic`).
///
/// Tags, regions, VIs and completion queues belong to the NIC that made them and keep it open.
#[derive(Clone)]
pub struct Nic {
    pub(crate) ops: Arc<dyn NicOps>,
}

impl Nic {
    /// Opens a device.
    ///
    /// # Errors
    /// [`Error::Resource`] when the process has opened it too often or the host lacks something.
    pub fn open(driver: &dyn Driver) -> Result<Self, Error> {
        Self::open_with(
            driver,
            OpenOptions {
                strict: true,
                ..OpenOptions::default()
            },
        )
    }

    /// As [`Nic::open`], in another way.
    ///
    /// # Errors
    /// As [`Nic::open`].
    pub fn open_with(driver: &dyn Driver, options: OpenOptions) -> Result<Self, Error> {
        let ops = driver.open(options)?;
        Ok(Self { ops })
    }

    /// The table of operations underneath.
    #[must_use]
    pub fn ops(&self) -> &Arc<dyn NicOps> {
        &self.ops
    }

    /// Name, address and limits.
    #[must_use]
    pub fn attributes(&self) -> &NicAttributes {
        self.ops.attributes()
    }

    /// What the NIC does itself, and how.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.ops.capabilities()
    }

    /// This NIC's address with the given discriminator.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] when the discriminator is too long.
    pub fn address(&self, discriminator: &[u8]) -> Result<NetAddress, Error> {
        NetAddress::new(self.attributes().local_address, discriminator)
    }

    /// Makes a protection tag.
    ///
    /// # Errors
    /// [`Error::Resource`] at the limit.
    pub fn create_ptag(&self) -> Result<Ptag, Error> {
        let id = self.ops.create_ptag()?;
        Ok(Ptag(Arc::new(PtagInner {
            nic: Arc::clone(&self.ops),
            id,
        })))
    }

    /// Registers `memory`, whole, under `tag`.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for no bytes, [`Error::Resource`] over a limit,
    /// [`Error::InvalidPtag`] for a tag of another NIC, [`Error::InvalidRdmaRead`].
    pub fn register(
        &self,
        memory: impl Into<Arc<Memory>>,
        tag: &Ptag,
        access: Access,
    ) -> Result<Region, Error> {
        self.owns(tag)?;
        let memory = memory.into();
        let handle = self
            .ops
            .register_mem(Arc::clone(&memory), access.attributes(tag))?;
        Ok(Region {
            tag: tag.clone(),
            memory,
            handle,
        })
    }

    /// Makes a VI, idle.
    ///
    /// # Errors
    /// [`Error::Resource`] at the limit, and a code for each attribute that the NIC does not offer.
    pub fn create_vi(&self, config: &ViConfig<'_>) -> Result<Vi, Error> {
        self.owns(config.tag)?;
        Vi::create(&self.ops, config)
    }

    /// Makes a completion queue for `entries` entries.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for none, [`Error::Resource`] over a limit.
    pub fn create_cq(&self, entries: u32) -> Result<Cq, Error> {
        Ok(Cq {
            ops: self.ops.create_cq(entries)?,
        })
    }

    /// Waits for a connection request to `local` (`VipConnectWait`).
    ///
    /// # Errors
    /// [`Error::Timeout`]; [`Error::InvalidParameter`] when the host part is not this NIC's.
    pub fn connect_wait(&self, local: &NetAddress, timeout: Timeout) -> Result<Incoming, Error> {
        Ok(Incoming(self.ops.connect_wait(local, timeout)?))
    }

    /// The host parts of the addresses of NICs within `hops` of this one, its own first.
    ///
    /// # Errors
    /// [`Error::NotSupported`] as [`Capabilities::discovers`] says.
    pub fn discover(&self, hops: u64) -> Result<Vec<[u8; 6]>, Error> {
        self.ops.discover(hops)
    }

    /// Has `handler` called for asynchronous errors, on a thread of the NIC.
    ///
    /// # Errors
    /// [`Error::Resource`] when that thread cannot be made.
    pub fn on_error(
        &self,
        handler: impl Fn(&AsyncError) + Send + Sync + 'static,
    ) -> Result<(), Error> {
        self.ops.set_error_handler(Some(Arc::new(handler)))
    }

    fn owns(&self, tag: &Ptag) -> Result<(), Error> {
        if Arc::ptr_eq(&self.ops, &tag.0.nic) {
            Ok(())
        } else {
            Err(Error::InvalidPtag)
        }
    }
}

impl fmt::Debug for Nic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Nic").field(&self.attributes().name).finish()
    }
}

/// A protection tag: VIs reach only memory of their own tag.
///
/// It is destroyed when the last clone, VI and region of it are gone.
#[derive(Clone)]
pub struct Ptag(Arc<PtagInner>);

struct PtagInner {
    nic: Arc<dyn NicOps>,
    id: PtagId,
}

impl Ptag {
    /// The tag's id within its NIC.
    #[must_use]
    pub fn id(&self) -> PtagId {
        self.0.id
    }
}

impl Drop for PtagInner {
    fn drop(&mut self) {
        let destroyed = self.nic.destroy_ptag(self.id);
        debug_assert!(
            destroyed.is_ok() || self.nic.is_closed() || std::thread::panicking(),
            "a tag outlives what uses it"
        );
    }
}

impl fmt::Debug for Ptag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ptag").field(&self.0.id.0).finish()
    }
}

/// What a peer may do with a region by RDMA. The owner's own sends and receives need no right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    Local,
    /// Read it.
    Read,
    /// Write it.
    Write,
    /// Read and write it.
    ReadWrite,
}

impl Access {
    fn attributes(self, tag: &Ptag) -> MemAttributes {
        MemAttributes {
            ptag: Some(tag.id()),
            enable_rdma_write: matches!(self, Self::Write | Self::ReadWrite),
            enable_rdma_read: matches!(self, Self::Read | Self::ReadWrite),
        }
    }
}

/// Registered memory (`VipRegisterMem`); dropping it ends the registration.
///
/// The NIC and, by RDMA, peers may change the bytes at any time: they are copied in and out,
/// through [`Region::memory`], never borrowed.
pub struct Region {
    tag: Ptag,
    memory: Arc<Memory>,
    handle: MemHandle,
}

impl Region {
    /// The bytes.
    #[must_use]
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Where the region begins.
    #[must_use]
    #[inline]
    pub fn addr(&self) -> u64 {
        self.memory.addr()
    }

    /// Bytes.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Never: regions have at least one byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The handle that descriptors, and peers for RDMA, name it by.
    #[must_use]
    #[inline]
    pub fn handle(&self) -> MemHandle {
        self.handle
    }

    /// What to tell a peer so that it can reach the byte at `offset` by RDMA.
    #[must_use]
    pub fn remote(&self, offset: u64) -> RemoteSegment {
        RemoteSegment {
            addr: self.addr() + offset,
            handle: self.handle,
        }
    }

    /// Changes what peers may do from now on.
    ///
    /// # Errors
    /// [`Error::InvalidRdmaRead`] where the NIC has none.
    pub fn set_access(&self, access: Access) -> Result<(), Error> {
        let attributes = access.attributes(&self.tag);
        let nic = &self.tag.0.nic;
        nic.set_mem_attributes(self.addr(), self.handle, attributes)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let nic = &self.tag.0.nic;
        let deregistered = nic.deregister_mem(self.memory.addr(), self.handle);
        debug_assert!(
            deregistered.is_ok() || nic.is_closed() || std::thread::panicking(),
            "a region is deregistered once"
        );
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region")
            .field("handle", &self.handle.0)
            .field("addr", &self.addr())
            .field("len", &self.len())
            .finish()
    }
}
