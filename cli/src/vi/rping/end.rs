//! One end of an rping connection: its VI, and what rping keeps in memory.

use std::io;

use via::{Access, Descriptor, MemHandle, Memory, Nic, Region, RemoteSegment, Vi, ViConfig};

use crate::error::{Context, Error, Result};
use crate::nic::ViContext;

/// Whose buffers an end has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Buffers {
    /// One that the server reads, and one that it writes.
    Client,
    /// One that data passes through.
    Server,
}

/// One end of a connection. Dropping it disconnects.
pub(super) struct End {
    // Before the regions: a VI is destroyed before its memory is deregistered.
    pub(super) vi: Vi,
    /// What the server reads: what is pinged. (The server's own is not used.)
    pub(super) start: Region,
    /// What the server writes, or what data passes through at the server.
    pub(super) echo: Region,
    /// One message out, and places for messages in.
    messages: Region,
}

/// rping's only message: memory of the sender's. Of the server's nothing but its arrival counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Advert {
    pub(super) remote: RemoteSegment,
    pub(super) size: u32,
}

impl End {
    pub(super) fn new(nic: &Nic, buffers: Buffers, size: u32) -> Result<Self> {
        let tag = nic.create_ptag().vi("VipCreatePtag")?;
        let config = ViConfig::new(&tag);
        let (config, readable, writable) = match buffers {
            Buffers::Client => (
                config.accept_rdma_read().accept_rdma_write(),
                Access::Read,
                Access::Write,
            ),
            Buffers::Server => (config, Access::Local, Access::Local),
        };
        let region = |bytes: u32, access| {
            let memory = Memory::private(bytes as usize).context("memory")?;
            nic.register(memory, &tag, access).vi("VipRegisterMem")
        };
        let end = Self {
            vi: nic.create_vi(&config).vi("VipCreateVi")?,
            start: region(size, readable)?,
            echo: region(size, writable)?,
            messages: region(MESSAGE_LEN * (SLOTS + 1), Access::Local)?,
        };
        (1..=SLOTS).try_for_each(|slot| end.post_recv(slot))?;
        Ok(end)
    }

    /// Says where `size` bytes of memory are.
    pub(super) fn send(&self, advert: Advert) -> Result<()> {
        let octets = advert.encode();
        let written = self.messages.memory().write(0, &octets);
        written.map_err(io::Error::other).context("a message")?;
        self.carry_out(&Descriptor::send().segment(&self.messages, 0..MESSAGE_LEN))
    }

    /// Waits for the other end's next message.
    pub(super) fn recv(&self) -> Result<Advert> {
        let completion = self.vi.recv_wait(None).vi("VipRecvWait")?.ok()?;
        if completion.length != MESSAGE_LEN {
            return Err(Error::Protocol {
                from: "the other end",
                what: format!("a message of {} bytes", completion.length),
            });
        }
        let slot = completion.token as u32;
        let mut octets = [0; MESSAGE_LEN as usize];
        let read = self
            .messages
            .memory()
            .read((slot * MESSAGE_LEN) as usize, &mut octets);
        read.map_err(io::Error::other).context("a message")?;
        self.post_recv(slot)?;
        Ok(Advert::decode(octets))
    }

    /// Posts it, and waits until it is done.
    pub(super) fn carry_out(&self, descriptor: &Descriptor<'_>) -> Result<()> {
        self.vi.post_send(descriptor, 0).vi("VipPostSend")?;
        self.vi.send_wait(None).vi("VipSendWait")?.ok()?;
        Ok(())
    }

    fn post_recv(&self, slot: u32) -> Result<()> {
        let place = slot * MESSAGE_LEN..(slot + 1) * MESSAGE_LEN;
        let descriptor = Descriptor::recv().segment(&self.messages, place);
        let posted = self.vi.post_recv(&descriptor, slot.into());
        posted.vi("VipPostRecv")
    }
}

impl Advert {
    /// All of `region`.
    pub(super) fn of(region: &Region) -> Self {
        Self {
            remote: region.remote(0),
            size: region.len() as u32,
        }
    }

    fn encode(self) -> [u8; MESSAGE_LEN as usize] {
        let mut octets = [0; MESSAGE_LEN as usize];
        let fields = self.remote.addr.to_be_bytes().into_iter();
        let fields = fields
            .chain(self.remote.handle.0.to_be_bytes())
            .chain(self.size.to_be_bytes());
        for (to, from) in octets.iter_mut().zip(fields) {
            *to = from;
        }
        octets
    }

    fn decode(octets: [u8; MESSAGE_LEN as usize]) -> Self {
        let [addr @ .., a, b, c, d, e, f, g, h] = octets;
        Self {
            remote: RemoteSegment {
                addr: u64::from_be_bytes(addr),
                handle: MemHandle(u32::from_be_bytes([a, b, c, d])),
            },
            size: u32::from_be_bytes([e, f, g, h]),
        }
    }
}

/// Address, key and size, big endian.
const MESSAGE_LEN: u32 = 16;
/// More than the other end may send before it hears from us.
const SLOTS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_advert_is_as_librdmacm_has_it() {
        let advert = Advert {
            remote: RemoteSegment {
                addr: 0x0102_0304_0506_0708,
                handle: MemHandle(0x090a_0b0c),
            },
            size: 0x0d0e_0f10,
        };
        let octets = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
        assert_eq!(advert.encode(), octets);
        assert_eq!(Advert::decode(octets), advert);
    }
}
