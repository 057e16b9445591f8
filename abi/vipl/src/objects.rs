//! What handles name: NICs, VIs, completion queues and connection requests.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::LocalKey;

use sys::fork::Own;
use sys::sync::{AtomicBool, AtomicUsize, Ordering};
use via::name_service::NameService;
use via::provider::{ConnOps, CqId, CqOps, NicOps, ViId, ViOps};
use via::{Error, ErrorCode, PtagId};

use crate::abi_types::PtagHandle;
use crate::errors::{self, ErrorFunction};
use crate::handles::{Handle, Object, Recent, RecentCell, Remembered, Table};

mod directory;

use directory::Directory;

/// A NIC handle.
pub(crate) struct Nic {
    pub(crate) handle: Handle<Self>,
    pub(crate) ops: Arc<dyn NicOps>,
    pub(crate) names: Mutex<Option<NameService>>,
    pub(crate) error_function: Mutex<Option<ErrorFunction>>,
    /// A call for it panicked: what state its objects are in nobody knows.
    failed: AtomicBool,
    vis: Directory,
    children: Mutex<Children>,
}

/// What was made under a NIC handle, other than VIs.
#[derive(Default)]
struct Children {
    cqs: HashMap<CqId, Handle<Cq>>,
    conns: HashSet<Handle<Conn>>,
    closed: bool,
}

impl Nic {
    /// Gives an open NIC its handle.
    pub(crate) fn adopt(ops: Arc<dyn NicOps>) -> Result<Handle<Self>, Error> {
        let adopted = Self::table().insert(|handle| {
            Arc::new(Self {
                handle,
                ops,
                names: Mutex::default(),
                error_function: Mutex::default(),
                failed: AtomicBool::new(false),
                vis: Directory::default(),
                children: Mutex::default(),
            })
        });
        adopted.map(|(handle, _)| handle)
    }

    pub(crate) fn adopt_vi(self: &Arc<Self>, ops: Arc<dyn ViOps>) -> Result<Handle<Vi>, Error> {
        let id = ops.id();
        let (handle, _) = Vi::table().insert(|handle| {
            Arc::new(Vi {
                handle,
                ops,
                nic: Arc::clone(self),
                user_data: AtomicUsize::new(0),
            })
        })?;
        let children = self.children();
        if children.closed {
            drop(children);
            handle.remove();
            return Err(Error::InvalidParameter);
        }
        self.vis.insert(id, handle);
        Ok(handle)
    }

    pub(crate) fn adopt_cq(self: &Arc<Self>, ops: Arc<dyn CqOps>) -> Result<Handle<Cq>, Error> {
        let id = ops.id();
        let nic = Arc::clone(self);
        let (handle, _) = Cq::table().insert(|handle| Arc::new(Cq { handle, ops, nic }))?;
        let mut children = self.children();
        if children.closed {
            drop(children);
            handle.remove();
            return Err(Error::InvalidParameter);
        }
        children.cqs.insert(id, handle);
        Ok(handle)
    }

    pub(crate) fn adopt_conn(
        self: &Arc<Self>,
        ops: Box<dyn ConnOps>,
    ) -> Result<Handle<Conn>, Error> {
        let (handle, _) = Conn::table().insert(|handle| {
            Arc::new(Conn {
                handle,
                ops: Mutex::new(Some(ops)),
                nic: Arc::clone(self),
            })
        })?;
        let mut children = self.children();
        if children.closed {
            drop(children);
            Conn::table().remove(handle);
            return Err(Error::InvalidParameter);
        }
        children.conns.insert(handle);
        Ok(handle)
    }

    /// Takes the handles of all that was made under it out of their tables; no more come.
    pub(crate) fn disown_all(&self) {
        let Children { cqs, conns, .. } = std::mem::replace(
            &mut *self.children(),
            Children {
                closed: true,
                ..Children::default()
            },
        );
        for vi in self.vis.drain() {
            vi.remove();
        }
        for cq in cqs.into_values() {
            cq.remove();
        }
        for conn in conns {
            Conn::table().remove(conn);
        }
    }

    /// The handle of the VI with that id, if it has not been destroyed.
    #[inline]
    pub(crate) fn vi(&self, id: ViId) -> Option<Handle<Vi>> {
        self.vis.find(id)
    }

    /// The handle of the completion queue with that id, if it has not been destroyed.
    pub(crate) fn cq(&self, id: CqId) -> Option<Handle<Cq>> {
        self.children().cqs.get(&id).copied()
    }

    /// What a protection handle of C names: NULL is the default tag.
    ///
    /// # Errors
    /// [`Error::InvalidPtag`] for what no tag of this NIC handle can be. Whether there is such a tag its provider knows.
    pub(crate) fn ptag(&self, handle: PtagHandle) -> Result<Option<PtagId>, Error> {
        if handle.0 == 0 {
            return Ok(None);
        }
        let ptag = PtagId(handle.0 as u32);
        if self.ptag_handle(Some(ptag)) != handle {
            return Err(Error::InvalidPtag);
        }
        Ok(Some(ptag))
    }

    /// The other way round.
    pub(crate) fn ptag_handle(&self, ptag: Option<PtagId>) -> PtagHandle {
        let serial = self.handle.serial() as usize & PTAG_SERIAL_MASK;
        let upper = PTAG_KIND << PTAG_KIND_SHIFT | serial << PTAG_SERIAL_SHIFT;
        PtagHandle(ptag.map_or(0, |PtagId(id)| upper | id as usize))
    }

    fn children(&self) -> MutexGuard<'_, Children> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A VI.
pub(crate) struct Vi {
    pub(crate) handle: Handle<Self>,
    pub(crate) ops: Arc<dyn ViOps>,
    pub(crate) nic: Arc<Nic>,
    /// The consumer's own pointer.
    pub(crate) user_data: AtomicUsize,
}

impl Vi {
    /// It has been destroyed.
    pub(crate) fn disown(&self) {
        self.nic.vis.remove(self.ops.id());
        self.handle.remove();
    }
}

/// A completion queue.
pub(crate) struct Cq {
    pub(crate) handle: Handle<Self>,
    pub(crate) ops: Arc<dyn CqOps>,
    pub(crate) nic: Arc<Nic>,
}

impl Cq {
    /// It has been destroyed.
    pub(crate) fn disown(&self) {
        self.nic.children().cqs.remove(&self.ops.id());
        self.handle.remove();
    }
}

/// A connection request that arrived.
pub(crate) struct Conn {
    pub(crate) handle: Handle<Self>,
    /// `None` once it has been rejected.
    pub(crate) ops: Mutex<Option<Box<dyn ConnOps>>>,
    pub(crate) nic: Arc<Nic>,
}

impl Conn {
    /// It has been answered.
    pub(crate) fn disown(&self) {
        self.nic.children().conns.remove(&self.handle);
        Self::table().remove(self.handle);
    }
}

impl Object for Nic {
    const KIND: u8 = 8;

    fn table() -> &'static Table<Self> {
        static NICS: Own<Table<Nic>> = Own::new();
        NICS.get()
    }

    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    fn fail(&self) {
        if !self.failed.swap(true, Ordering::Relaxed) {
            errors::raise(self, ErrorCode::Catastrophic);
        }
    }
}

impl Object for Vi {
    const KIND: u8 = 9;

    fn table() -> &'static Table<Self> {
        static VIS: Own<Table<Vi>> = Own::new();
        VIS.get()
    }

    #[inline]
    fn has_failed(&self) -> bool {
        self.nic.has_failed()
    }

    fn fail(&self) {
        self.nic.fail();
    }
}

impl Object for Cq {
    const KIND: u8 = 10;

    fn table() -> &'static Table<Self> {
        static CQS: Own<Table<Cq>> = Own::new();
        CQS.get()
    }

    #[inline]
    fn has_failed(&self) -> bool {
        self.nic.has_failed()
    }

    fn fail(&self) {
        self.nic.fail();
    }
}

impl Object for Conn {
    const KIND: u8 = 11;

    fn table() -> &'static Table<Self> {
        static CONNS: Own<Table<Conn>> = Own::new();
        CONNS.get()
    }

    fn has_failed(&self) -> bool {
        self.nic.has_failed()
    }

    fn fail(&self) {
        self.nic.fail();
    }
}

impl Remembered for Vi {
    #[inline]
    fn recent() -> &'static LocalKey<RecentCell<Self>> {
        thread_local!(static VIS: RecentCell<Vi> = const { RefCell::new(Recent::new()) });
        &VIS
    }
}

impl Remembered for Cq {
    #[inline]
    fn recent() -> &'static LocalKey<RecentCell<Self>> {
        thread_local!(static CQS: RecentCell<Cq> = const { RefCell::new(Recent::new()) });
        &CQS
    }
}

// A protection handle: another kind than the objects have, the serial number of the NIC handle, the id of the tag.
const PTAG_KIND: usize = 12;
const PTAG_KIND_SHIFT: u32 = 60;
const PTAG_SERIAL_SHIFT: u32 = 32;
const PTAG_SERIAL_MASK: usize = (1 << (PTAG_KIND_SHIFT - PTAG_SERIAL_SHIFT)) - 1;
