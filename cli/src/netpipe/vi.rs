//! A Virtual Interface as a [`Pipe`](super::pipe::Pipe): NetPIPE-VIA's protocol module.
//!
//! Descriptors of one size, the VI's maximum transfer size, are posted before the connection is made and again as soon as
//! each has been used. Longer messages are cut into fragments. A sender has as many credits as the receiver has descriptors;
//! the receiver gives back half of them at a time with a "continue": a message of no bytes. (The paper gives all of
//! them back at once, so its sender always waits for the round trip; with halves a stream keeps flowing.)

use std::io;
use std::rc::Rc;

use via::{Access, Memory, NetAddress, Nic, Ptag, Region, Vi, ViConfig};

use super::pipe::{Port, Shape};
use crate::error::{Context, Error, Result};
use crate::nic::{self, Medium, ViContext};
use pipe::{TARGET_BYTES, ViPipe};

pub(crate) mod pipe;

/// One end of a meeting at a discriminator.
pub(crate) struct ViPort {
    nic: Nic,
    tag: Ptag,
    shape: Shape,
    listens: bool,
    address: NetAddress,
    /// What is sent, and where the peer's RDMA writes go: of all VIs together, because they take turns.
    memory: Option<[Rc<Region>; 2]>,
}

impl ViPort {
    /// At the other end's host; our own if it is ours to listen.
    fn new(shape: Shape, host: Option<[u8; 6]>, discriminator: &str) -> Result<Self> {
        let nic = shape.medium.open(shape.wait == super::plan::Wait::Block)?;
        let listens = host.is_none();
        let host = host.unwrap_or_else(|| nic.attributes().local_address);
        Ok(Self {
            tag: nic.create_ptag().vi("VipCreatePtag")?,
            address: NetAddress::new(host, discriminator.as_bytes()).vi("discriminator")?,
            nic,
            shape,
            listens,
            memory: None,
        })
    }

    /// Another maximum transfer size, of the pipes that are opened from now on.
    pub(crate) fn set_mtu(&mut self, mtu: u32) {
        self.shape.mtu = Some(mtu);
    }

    fn config(&self, mtu: u32) -> ViConfig<'_> {
        ViConfig::new(&self.tag)
            .max_transfer_size(mtu)
            .accept_rdma_write()
    }

    fn connect(&self, vi: &Vi) -> Result<()> {
        nic::connect(&self.nic, vi, &self.address, self.listens)
    }
}

impl Port for ViPort {
    type Pipe = ViPipe;

    fn listen(shape: Shape) -> Result<Self> {
        Self::new(shape, None, &nic::anonymous()?)
    }

    fn dial(shape: Shape, address: &str) -> Result<Self> {
        let parts = || {
            let (host, discriminator) = address.split_once('/')?;
            let host = host.split(':').map(|octet| u8::from_str_radix(octet, 16));
            let host: Vec<_> = host.collect::<Result<_, _>>().ok()?;
            Some((host.try_into().ok()?, discriminator))
        };
        let (host, discriminator) = parts().ok_or_else(|| Error::Protocol {
            from: "the listening side",
            what: format!("VI address {address:?}"),
        })?;
        Self::new(shape, Some(host), discriminator)
    }

    fn address(&self) -> String {
        self.address.to_string()
    }

    fn open(&mut self) -> Result<ViPipe> {
        let limit = self.nic.attributes().max_transfer_size;
        let mtu = self.shape.mtu.unwrap_or(MTU_DEFAULT).min(limit);
        let vi = self.nic.create_vi(&self.config(mtu)).vi("VipCreateVi")?;
        let [outgoing, target] = self.memory()?;
        let slots = Slots::fitting(mtu, self.shape.medium);
        let incoming = self.region(slots.bytes(), Access::Local)?;
        let mut pipe = ViPipe::new(vi, self.shape, slots, incoming, outgoing, target)?;
        self.connect(pipe.vi())?;
        pipe.trade_targets()?;
        Ok(pipe)
    }

    fn knock(&mut self) -> Result<()> {
        let vi = self
            .nic
            .create_vi(&self.config(MTU_DEFAULT))
            .vi("VipCreateVi")?;
        self.connect(&vi)?;
        vi.disconnect().vi("VipDisconnect")
    }
}

impl ViPort {
    fn memory(&mut self) -> Result<[Rc<Region>; 2]> {
        if let Some(memory) = &self.memory {
            return Ok(memory.clone());
        }
        let bytes = self.shape.bytes_max.max(TARGET_BYTES);
        let outgoing = Rc::new(self.region(bytes, Access::Local)?);
        let target = Rc::new(self.region(bytes, Access::Write)?);
        Ok(self.memory.insert([outgoing, target]).clone())
    }

    fn region(&self, bytes: usize, access: Access) -> Result<Region> {
        let memory = Memory::shared(bytes).context("memfd")?;
        // Every page is to be there before the clock runs.
        memory
            .write(0, &vec![1; bytes])
            .map_err(io::Error::other)
            .context("fresh memory")?;
        self.nic
            .register(memory, &self.tag, access)
            .vi("VipRegisterMem")
    }
}

/// Where messages arrive: `count` places of the maximum transfer size.
#[derive(Clone, Copy)]
struct Slots {
    mtu: u32,
    count: u32,
    /// From one slot to the next; an odd number of cache lines, or the first bytes of all slots would compete for the same
    /// few places of the cache.
    stride: u32,
}

/// How many receives a VI of that maximum transfer size has.
pub(crate) fn receives(mtu: u32, medium: Medium) -> usize {
    Slots::fitting(mtu, medium).count as usize
}

impl Slots {
    fn fitting(mtu: u32, medium: Medium) -> Self {
        let lines = mtu.div_ceil(LINE) | 1;
        let bytes = match medium {
            Medium::Shm => SLOT_BYTES,
            // As TCP's own buffers hold, for a stream that waits for "continue" where TCP flows is slower for no other reason.
            Medium::Iwarp { .. } => 4 * SLOT_BYTES,
        };
        let count = (bytes / mtu).clamp(SLOTS_MIN, SLOTS_MAX) + RESERVED;
        Self {
            mtu,
            count,
            stride: lines * LINE,
        }
    }

    fn bytes(self) -> usize {
        self.count as usize * self.stride as usize
    }

    /// Descriptors that data may use; of the others one may be spent, and two are for "continue" messages.
    fn window(self) -> u32 {
        self.count - RESERVED
    }

    /// How many descriptors one "continue" gives back.
    fn batch(self) -> u32 {
        self.window() / 2
    }
}

/// Maximum transfer size where none is asked for; what a VI has that does not ask either.
pub(crate) const MTU_DEFAULT: u32 = 64 << 10;

const SLOT_BYTES: u32 = 1 << 20;
const SLOTS_MIN: u32 = 4;
const SLOTS_MAX: u32 = 64;
const RESERVED: u32 = 3;
const LINE: u32 = 64;
