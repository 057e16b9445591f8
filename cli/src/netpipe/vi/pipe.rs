use std::io;
use std::rc::Rc;

use via::{Completion, Descriptor, Done, MemHandle, Region, RemoteSegment, Vi};

use super::Slots;
use crate::error::{Context, Result};
use crate::netpipe::pipe::{Pipe, Shape};
use crate::netpipe::plan::Wait;
use crate::nic::{Medium, ViContext};

/// A connected VI with its memory.
pub(crate) struct ViPipe {
    // Before the regions: a VI is destroyed before its memory is deregistered.
    vi: Vi,
    outgoing: Rc<Region>,
    incoming: Region,
    /// Where the peer's RDMA writes go.
    target: Rc<Region>,
    peer_target: RemoteSegment,
    wait: Wait,
    rest: Rest,
    slots: Slots,
    /// Fragments that may be sent before the next "continue".
    credits: u32,
    /// Fragments received since our last "continue", and whether the next is due: it is sent when there is nothing better to do, for the answer to what has
    /// just come is waited for.
    owed: u32,
    due: bool,
    /// Posted sends that have not completed.
    unsent: u32,
    /// A slot that has been used and is not posted again yet: that can wait until there is nothing better to do.
    spent: Option<u32>,
    /// Bytes that have come and that nobody has asked for yet.
    arrived: usize,
}

/// What one who polls does between two looks.
#[derive(Clone, Copy)]
enum Rest {
    Yield,
    Pause,
    /// A look is a system call, as of a socket that is polled.
    None,
}

impl Rest {
    fn of(shape: Shape) -> Self {
        match shape.medium {
            _ if shape.yielding => Self::Yield,
            Medium::Shm => Self::Pause,
            Medium::Iwarp { .. } => Self::None,
        }
    }
}

impl ViPipe {
    /// Posts all receive descriptors; `vi` is to be connected afterwards.
    pub(super) fn new(
        vi: Vi,
        shape: Shape,
        slots: Slots,
        incoming: Region,
        outgoing: Rc<Region>,
        target: Rc<Region>,
    ) -> Result<Self> {
        let pipe = Self {
            vi,
            outgoing,
            incoming,
            peer_target: target.remote(0),
            target,
            wait: shape.wait,
            rest: Rest::of(shape),
            slots,
            credits: slots.window(),
            owed: 0,
            due: false,
            unsent: 0,
            spent: None,
            arrived: 0,
        };
        (0..slots.count).try_for_each(|slot| pipe.post_recv(slot))?;
        Ok(pipe)
    }

    pub(super) fn vi(&self) -> &Vi {
        &self.vi
    }

    /// Each end tells the other where it may write.
    pub(super) fn trade_targets(&mut self) -> Result<()> {
        let RemoteSegment { addr, handle } = self.target.remote(0);
        let ours = self.outgoing.memory();
        ours.write(0, &addr.to_ne_bytes())
            .map_err(io::Error::other)
            .context("address")?;
        ours.write(ADDR_BYTES, &handle.0.to_ne_bytes())
            .map_err(io::Error::other)
            .context("handle")?;
        let (mut addr, mut handle) = ([0; ADDR_BYTES], [0; HANDLE_BYTES]);
        self.send(TARGET_BYTES)?;
        self.recv(TARGET_BYTES)?;
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
        let descriptor = Descriptor::recv().segment(&self.incoming, start..start + self.slots.mtu);
        self.vi
            .post_recv(&descriptor, u64::from(slot))
            .vi("VipPostRecv")
    }

    /// Posts the fragment that begins at `offset` of a message of `len` bytes; where the next begins.
    fn post_fragment(&mut self, offset: usize, len: usize) -> Result<usize> {
        let end = len.min(offset + self.slots.mtu as usize);
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
        self.give_back()?;
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
            self.due = true;
        }
        Ok(())
    }

    fn give_back(&mut self) -> Result<()> {
        if std::mem::take(&mut self.due) {
            self.repost()?;
            self.post_send(&Descriptor::send())?;
            self.unsent += 1;
            self.reap(UNSENT_MAX)?;
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
        match self.rest {
            Rest::Yield => std::thread::yield_now(),
            Rest::Pause => std::hint::spin_loop(),
            Rest::None => {}
        }
    }
}

impl Pipe for ViPipe {
    #[inline]
    fn send(&mut self, len: usize) -> Result<()> {
        self.post(len)?;
        self.reap(0)
    }

    #[inline]
    fn post(&mut self, len: usize) -> Result<()> {
        let mut offset = 0;
        while offset < len {
            while self.credits == 0 {
                self.take()?;
            }
            offset = self.post_fragment(offset, len)?;
            self.reap(UNSENT_MAX)?;
        }
        Ok(())
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
                self.give_back()?;
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
            let end = len.min(offset + self.slots.mtu as usize);
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

/// Sends that may be under way before the next waits for one of them.
const UNSENT_MAX: u32 = 16;
const ADDR_BYTES: usize = size_of::<u64>();
const HANDLE_BYTES: usize = size_of::<u32>();
pub(super) const TARGET_BYTES: usize = ADDR_BYTES + HANDLE_BYTES;
