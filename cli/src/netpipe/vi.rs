//! A Virtual Interface as a [`Pipe`]: NetPIPE-VIA's protocol module.
//!
//! Descriptors of one size, the VI's maximum transfer size, are posted before the connection is made and again as soon as
//! each has been used. Longer messages are cut into fragments. A sender has as many credits as the receiver has descriptors;
//! the receiver gives back half of them at a time with a "continue": a message of no bytes. (The paper gives all of
//! them back at once, so its sender always waits for the round trip; with halves a stream keeps flowing.)

use std::io;

use via::{
    Access, Completion, Descriptor, Done, MemHandle, Memory, NetAddress, Nic, Ptag, Region,
    RemoteSegment, Vi, ViConfig,
};

use super::pipe::{Pipe, Port, Shape};
use super::plan::Wait;
use crate::error::{Context, Result};
use crate::nic::{self, ViContext};

/// One end of a meeting at a discriminator.
pub(crate) struct ViPort {
    nic: Nic,
    tag: Ptag,
    shape: Shape,
    listens: bool,
    address: NetAddress,
}

impl ViPort {
    fn new(shape: Shape, listens: bool, discriminator: &str) -> Result<Self> {
        let nic = nic::open(nic::DEFAULT)?;
        Ok(Self {
            tag: nic.create_ptag().vi("VipCreatePtag")?,
            address: nic.address(discriminator.as_bytes()).vi("discriminator")?,
            nic,
            shape,
            listens,
        })
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
        Self::new(shape, true, &nic::anonymous()?)
    }

    fn dial(shape: Shape, address: &str) -> Result<Self> {
        Self::new(shape, false, address)
    }

    fn address(&self) -> String {
        String::from_utf8_lossy(self.address.discriminator.as_bytes()).into_owned()
    }

    fn open(&mut self) -> Result<ViPipe> {
        let limit = self.nic.attributes().max_transfer_size;
        let mtu = self.shape.mtu.unwrap_or(MTU_DEFAULT).min(limit);
        let vi = self.nic.create_vi(&self.config(mtu)).vi("VipCreateVi")?;
        let slots = Slots::fitting(mtu);
        let bytes = self.shape.bytes_max.max(ADDR_BYTES + HANDLE_BYTES);
        let target = self.region(bytes, Access::Write)?;
        let mut pipe = ViPipe {
            outgoing: self.region(bytes, Access::Local)?,
            incoming: self.region(slots.bytes(), Access::Local)?,
            peer_target: target.remote(0),
            target,
            vi,
            wait: self.shape.wait,
            yielding: self.shape.yielding,
            mtu,
            slots,
            credits: slots.window(),
            owed: 0,
            unsent: 0,
            spent: None,
            arrived: 0,
        };
        for slot in 0..slots.count {
            pipe.post_recv(slot)?;
        }
        self.connect(&pipe.vi)?;
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
    count: u32,
    /// From one slot to the next; an odd number of cache lines, or the first bytes of all slots would compete for the same
    /// few places of the cache.
    stride: u32,
}

impl Slots {
    fn fitting(mtu: u32) -> Self {
        let lines = mtu.div_ceil(LINE) | 1;
        let count = (SLOT_BYTES / mtu).clamp(SLOTS_MIN, SLOTS_MAX) + RESERVED;
        Self {
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

pub(crate) struct ViPipe {
    // Before the regions: a VI is destroyed before its memory is deregistered.
    vi: Vi,
    outgoing: Region,
    incoming: Region,
    /// Where the peer's RDMA writes go.
    target: Region,
    peer_target: RemoteSegment,
    wait: Wait,
    yielding: bool,
    mtu: u32,
    slots: Slots,
    /// Fragments that may be sent before the next "continue".
    credits: u32,
    /// Fragments received since our last "continue".
    owed: u32,
    /// Posted sends that have not completed.
    unsent: u32,
    /// A slot that has been used and is not posted again yet: that can wait until there is nothing better to do.
    spent: Option<u32>,
    /// Bytes that have come and that nobody has asked for yet.
    arrived: usize,
}

impl ViPipe {
    /// Each end tells the other where it may write.
    fn trade_targets(&mut self) -> Result<()> {
        let RemoteSegment { addr, handle } = self.target.remote(0);
        let ours = self.outgoing.memory();
        ours.write(0, &addr.to_ne_bytes())
            .map_err(io::Error::other)
            .context("address")?;
        ours.write(ADDR_BYTES, &handle.0.to_ne_bytes())
            .map_err(io::Error::other)
            .context("handle")?;
        let (mut addr, mut handle) = ([0; ADDR_BYTES], [0; HANDLE_BYTES]);
        self.send(addr.len() + handle.len())?;
        self.recv(addr.len() + handle.len())?;
        // The first message is in the first slot.
        let theirs = self.incoming.memory();
        theirs
            .read(0, &mut addr)
            .map_err(io::Error::other)
            .context("address")?;
        theirs
            .read(ADDR_BYTES, &mut handle)
            .map_err(io::Error::other)
            .context("handle")?;
        self.peer_target = RemoteSegment {
            addr: u64::from_ne_bytes(addr),
            handle: MemHandle(u32::from_ne_bytes(handle)),
        };
        Ok(())
    }

    fn post_recv(&self, slot: u32) -> Result<()> {
        let start = slot * self.slots.stride;
        let descriptor = Descriptor::recv().segment(&self.incoming, start..start + self.mtu);
        self.vi
            .post_recv(&descriptor, u64::from(slot))
            .vi("VipPostRecv")
    }

    /// Posts the fragment that begins at `offset` of a message of `len` bytes; where the next begins.
    fn post_fragment(&mut self, offset: usize, len: usize) -> Result<usize> {
        let end = len.min(offset + self.mtu as usize);
        let descriptor = Descriptor::send().segment(&self.outgoing, offset as u32..end as u32);
        self.post_send(&descriptor)?;
        self.unsent += 1;
        self.credits -= 1;
        Ok(end)
    }

    /// The caller counts it as unsent.
    fn post_send(&self, descriptor: &Descriptor<'_>) -> Result<()> {
        self.vi.post_send(descriptor, 0).vi("VipPostSend")
    }

    fn repost(&mut self) -> Result<()> {
        match self.spent.take() {
            Some(slot) => self.post_recv(slot),
            None => Ok(()),
        }
    }

    /// Waits for a message or fragment, and takes it. While it is under way the last one's slot is posted again.
    #[inline]
    fn take(&mut self) -> Result<()> {
        self.repost()?;
        let completion = match self.wait {
            Wait::Poll => loop {
                if let Done::Completed(completion) = self.vi.recv_done().vi("VipRecvDone")? {
                    break completion;
                }
                self.relax();
            },
            Wait::Block | Wait::Adaptive => self.vi.recv_wait(None).vi("VipRecvWait")?,
        };
        self.taken(completion)
    }

    fn taken(&mut self, completion: Completion) -> Result<()> {
        let completion = completion.ok()?;
        self.repost()?;
        self.spent = Some(completion.token as u32);
        if completion.length == 0 {
            self.credits += self.slots.batch();
            return Ok(());
        }
        self.arrived += completion.length as usize;
        self.owed += 1;
        if self.owed == self.slots.batch() {
            self.owed = 0;
            self.repost()?;
            self.post_send(&Descriptor::send())?;
            self.unsent += 1;
        }
        Ok(())
    }

    /// Waits until no more than `unsent` sends are under way.
    #[inline]
    fn reap(&mut self, unsent: u32) -> Result<()> {
        while self.unsent > unsent {
            let completion = match self.wait {
                Wait::Poll => match self.vi.send_done().vi("VipSendDone")? {
                    Done::Completed(completion) => completion,
                    Done::NotDone | Done::Empty => {
                        self.relax();
                        continue;
                    }
                },
                Wait::Block | Wait::Adaptive => self.vi.send_wait(None).vi("VipSendWait")?,
            };
            self.sent(completion)?;
        }
        Ok(())
    }

    fn sent(&mut self, completion: Completion) -> Result<()> {
        completion.ok()?;
        self.unsent -= 1;
        Ok(())
    }

    #[inline]
    fn relax(&self) {
        if self.yielding {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

impl Pipe for ViPipe {
    #[inline]
    fn send(&mut self, len: usize) -> Result<()> {
        let mut offset = 0;
        while offset < len {
            while self.credits == 0 {
                self.take()?;
            }
            offset = self.post_fragment(offset, len)?;
            self.reap(UNSENT_MAX)?;
        }
        self.reap(0)
    }

    #[inline]
    fn recv(&mut self, len: usize) -> Result<()> {
        while self.arrived < len {
            self.take()?;
        }
        self.arrived -= len;
        Ok(())
    }

    fn exchange(&mut self, len: usize) -> Result<()> {
        let mut offset = 0;
        while offset < len || self.arrived < len || self.unsent > 0 {
            let mut moved = false;
            if offset < len && self.credits > 0 && self.unsent < UNSENT_MAX {
                offset = self.post_fragment(offset, len)?;
                moved = true;
            }
            if let Done::Completed(completion) = self.vi.recv_done().vi("VipRecvDone")? {
                self.taken(completion)?;
                moved = true;
            }
            if let Done::Completed(completion) = self.vi.send_done().vi("VipSendDone")? {
                self.sent(completion)?;
                moved = true;
            }
            if moved {
                continue;
            }
            match self.wait {
                Wait::Poll => self.relax(),
                // Nothing of ours can leave before the peer says "continue", or all has left.
                Wait::Block | Wait::Adaptive if offset < len || self.arrived < len => {
                    self.take()?
                }
                Wait::Block | Wait::Adaptive => self.reap(0)?,
            }
        }
        self.arrived -= len;
        Ok(())
    }

    fn write(&mut self, len: usize) -> Result<()> {
        let mut offset = 0;
        while offset < len {
            let end = len.min(offset + self.mtu as usize);
            let remote = RemoteSegment {
                addr: self.peer_target.addr + offset as u64,
                ..self.peer_target
            };
            let descriptor =
                Descriptor::rdma_write(remote).segment(&self.outgoing, offset as u32..end as u32);
            self.post_send(&descriptor)?;
            self.unsent += 1;
            self.reap(UNSENT_MAX)?;
            offset = end;
        }
        self.reap(0)
    }

    /// Nothing to do: that is what one-sided means.
    fn absorb(&mut self, _: usize) -> Result<()> {
        Ok(())
    }
}

/// Maximum transfer size where none is asked for; what a VI has that does not ask either.
pub(crate) const MTU_DEFAULT: u32 = 64 << 10;

const SLOT_BYTES: u32 = 1 << 20;
const SLOTS_MIN: u32 = 4;
const SLOTS_MAX: u32 = 64;
const RESERVED: u32 = 3;
const UNSENT_MAX: u32 = 16;
const LINE: u32 = 64;
const ADDR_BYTES: usize = size_of::<u64>();
const HANDLE_BYTES: usize = size_of::<u32>();
