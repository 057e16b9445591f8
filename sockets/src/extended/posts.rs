//! What sockets do not have: registered memory, posted operations, completions.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use proto::extended::{Advert, Frame, Place, Rights};
use sys::double::Sign;
use sys::errno::Errno;
use sys::sync::Ordering;
use via::{Access, Memory};

use super::core::Core;
use super::region::{Parts, Registered};
use super::work::{Receive, To, Work};
use super::{Completion, Region, Remote, Slice, Socket, errno_of};

impl Socket {
    /// Registers memory, whole, and says what the peer may do with it by RDMA. Into a region that the peer may write, large messages come without a copy.
    ///
    /// # Errors
    /// `EINVAL` for what the NIC cannot register, `ENOMEM` over a limit, `ENOTCONN` in a forked child.
    pub fn register(
        &self,
        memory: impl Into<Arc<Memory>>,
        access: Access,
    ) -> Result<Region, Errno> {
        drop(self.inner.locked()?);
        let region = self.inner.nic.register(memory, &self.inner.tag, access);
        Ok(Region(Arc::new(Registered {
            socket: self.inner.id,
            access,
            region: region.map_err(errno_of)?,
        })))
    }

    /// Tells the peer of a region, by a tag of the program's own. It may be reached from now on, as far as its rights go, until [`Socket::withdraw`] and the end of its registration.
    ///
    /// # Errors
    /// `EINVAL` for a region of another socket, `EACCES` for one that the peer may neither read nor write, `ENOBUFS` when the peer has been told of 1024 that were not
    /// withdrawn, `EPIPE` or `ECONNRESET` when nothing more can be said.
    pub fn advertise(&self, region: &Region, tag: u64) -> Result<(), Errno> {
        if region.0.socket != self.inner.id {
            return Err(Errno::INVAL);
        }
        let (read, write) = match region.access() {
            Access::Local => return Err(Errno::ACCESS),
            Access::Read => (true, false),
            Access::Write => (false, true),
            Access::ReadWrite => (true, true),
        };
        let advert = Advert {
            handle: region.handle().0,
            rights: Rights { read, write },
            tag,
            addr: region.0.region.addr(),
            len: region.len() as u64,
        };
        self.inner.locked()?.keep_told(&advert)?;
        self.say(Frame::Advertise(advert))
    }

    /// Tells the peer that a region is to be reached no more. What it has posted before it hears of that is still served while the region is registered; afterwards it ends the connection.
    ///
    /// # Errors
    /// As [`Socket::advertise`].
    pub fn withdraw(&self, region: &Region) -> Result<(), Errno> {
        if region.0.socket != self.inner.id {
            return Err(Errno::INVAL);
        }
        let handle = region.handle().0;
        let mut core = self.inner.locked()?;
        core.told.retain(|(of, _)| *of != handle);
        drop(core);
        self.say(Frame::Withdraw { handle })
    }

    /// The peer's region with that tag, as soon as it tells of it.
    ///
    /// # Errors
    /// `EAGAIN` at `deadline`; `ECONNRESET` or `ESHUTDOWN` if it never will; `EINTR`.
    pub fn remote(&self, tag: u64, deadline: Option<Instant>) -> Result<Remote, Errno> {
        let waiter = super::NEXT.fetch_add(1, Ordering::Relaxed);
        let bed = |core: &Core| core.news_of(waiter);
        let result = self.inner.until(deadline, false, false, bed, |core| {
            let found = core.remotes.iter().rfind(|remote| remote.tag() == tag);
            match (found, core.gone) {
                (Some(remote), _) => Ok(*remote),
                (None, Some(errno)) => Err(errno),
                (None, None) if core.stream.heard_fin => Err(Errno::SHUTDOWN),
                (None, None) => core.await_news(waiter),
            }
        });
        self.inner.forget_news(waiter);
        result
    }

    /// The peer's region with that [number](Remote::id).
    ///
    /// # Errors
    /// `ESTALE` if this socket's peer has not told of it, or has withdrawn it.
    pub fn remote_by_id(&self, id: u32) -> Result<Remote, Errno> {
        let core = self.inner.enter()?;
        let mut remotes = core.remotes.iter();
        let found = remotes.find(|remote| remote.id() == id).copied();
        self.inner.settle(core);
        found.ok_or(Errno::STALE)
    }

    /// Posts a send of one message: the slices, one after the other, for the peer's oldest posted receive, and waits for that if need be, though the caller does not.
    ///
    /// # Errors
    /// `EINVAL` for a region of another socket or too many slices, `EMSGSIZE`, `EAGAIN` when [`OUTSTANDING_MAX`](super::OUTSTANDING_MAX) are posted or not taken, `EPIPE` after
    /// [`Socket::shutdown`] or the end of the connection. Nothing is posted then. The completion tells `EMSGSIZE` if the receive is too small (which then waits for the next), and what became of the connection.
    pub fn post_send(&self, slices: &[Slice], id: u64) -> Result<(), Errno> {
        self.post(slices, To::Receive, id)
    }

    /// Posts a receive of one message, which is scattered to the slices.
    ///
    /// # Errors
    /// As [`Socket::post_send`]; `ESHUTDOWN` when the peer has ended its direction, `EFAULT` for memory that cannot be written.
    pub fn post_recv(&self, slices: &[Slice], id: u64) -> Result<(), Errno> {
        can_be_written(slices)?;
        let parts = Parts::new(slices, self.inner.id)?;
        let direct = parts.are_open() && parts.len() > 0;
        // Without a look at what has come: who posts many looks at what became of them.
        let mut core = self.inner.locked()?;
        if core.gone.is_some() {
            return Err(Errno::PIPE);
        }
        if core.stream.heard_fin {
            return Err(Errno::SHUTDOWN);
        }
        core.done.admit()?;
        let receive = Receive {
            id,
            parts,
            direct,
            got: 0,
        };
        if let Some(place) = core.guessed_place(&receive) {
            core.vi.expect_write(place);
        }
        core.receives.push_back(receive);
        core.pump();
        self.inner.settle(core);
        Ok(())
    }

    /// Posts an RDMA write: the slices, one after the other, to the peer's region from `offset` on. The peer's program is not told; what is sent afterwards arrives after it.
    ///
    /// # Errors
    /// As [`Socket::post_send`]; `EFAULT` beyond the region's end, `EACCES` if it may not be written, `EINVAL` for one of another connection, `ESTALE` after it was withdrawn.
    pub fn post_write(
        &self,
        slices: &[Slice],
        remote: &Remote,
        offset: u64,
        id: u64,
    ) -> Result<(), Errno> {
        if !remote.is_writable() {
            return Err(Errno::ACCESS);
        }
        let place = self.place(slices, remote, offset)?;
        self.post(slices, To::Memory(place), id)
    }

    /// Posts an RDMA read: the peer's region from `offset` on, scattered to the slices. The peer's program has no part in it.
    ///
    /// # Errors
    /// As [`Socket::post_write`]; `EACCES` if it may not be read.
    pub fn post_read(
        &self,
        slices: &[Slice],
        remote: &Remote,
        offset: u64,
        id: u64,
    ) -> Result<(), Errno> {
        if !remote.is_readable() {
            return Err(Errno::ACCESS);
        }
        can_be_written(slices)?;
        let place = self.place(slices, remote, offset)?;
        self.post(slices, To::Here(place), id)
    }

    /// Takes the oldest completion, if there is one.
    ///
    /// # Errors
    /// `ENOTCONN` in a forked child.
    pub fn completion(&self) -> Result<Option<Completion>, Errno> {
        let mut core = self.inner.locked()?;
        if core.done.is_empty() {
            core.progress();
        }
        let completion = core.done.pop();
        core.show();
        self.inner.settle(core);
        Ok(completion)
    }

    /// Takes the oldest completion, waiting for one.
    ///
    /// # Errors
    /// `EAGAIN` at `deadline`, `EINTR`. When there will be none any more: `ESHUTDOWN` if the peer ended the connection, `ECONNRESET` if it was lost, `EPROTO`,
    /// `ECANCELED` if it was closed here.
    pub fn wait(&self, deadline: Option<Instant>) -> Result<Completion, Errno> {
        let mut core = self.inner.locked()?;
        if let Some(completion) = core.done.pop() {
            core.show();
            self.inner.settle(core);
            return Ok(completion);
        }
        drop(core);
        let bed = |core: &Core| sign(core.bed.as_ref());
        self.inner.until(deadline, false, false, bed, |core| {
            let taken = core.done.pop();
            core.show();
            match (taken, core.gone) {
                (Some(completion), _) => Ok(completion),
                (None, None) => wait_for(&mut core.bed),
                (None, Some(_)) if core.is_closed => Err(Errno::CANCELED),
                (None, Some(Errno::CONNRESET)) if core.stream.heard_fin => Err(Errno::SHUTDOWN),
                (None, Some(errno)) => Err(errno),
            }
        })
    }

    /// A descriptor that is readable while there are completions, for `poll` and `epoll`; the end of the connection it does not show. From the first call on the NIC looks after the connection while nobody calls.
    ///
    /// # Errors
    /// `EMFILE`; `ENOTCONN` in a forked child.
    pub fn completion_fd(&self) -> Result<OwnedFd, Errno> {
        self.watch();
        let mut core = self.inner.enter()?;
        let _waits: Result<(), Errno> = wait_for(&mut core.sign);
        core.show();
        let fd = sign(core.sign.as_ref());
        self.inner.settle(core);
        fd.ok_or(Errno::MFILE)
    }

    fn say(&self, frame: Frame<'static>) -> Result<(), Errno> {
        let mut core = self.inner.enter()?;
        if let Some(errno) = core.gone {
            return Err(errno);
        }
        if core.stream.wants_fin {
            return Err(Errno::PIPE);
        }
        core.to_say.push_back(frame);
        core.pump();
        self.inner.settle(core);
        Ok(())
    }

    fn place(&self, slices: &[Slice], remote: &Remote, offset: u64) -> Result<Place, Errno> {
        if remote.socket != self.inner.id {
            return Err(Errno::INVAL);
        }
        let len = Parts::new(slices, self.inner.id)?.len();
        if len == 0 {
            return Err(Errno::INVAL);
        }
        let fits = offset
            .checked_add(u64::from(len))
            .is_some_and(|end| end <= remote.len());
        if !fits {
            return Err(Errno::FAULT);
        }
        let core = self.inner.enter()?;
        let known = core.remotes.iter().any(|known| known == remote);
        if !known && core.gone.is_none() {
            return Err(Errno::STALE);
        }
        Ok(Place {
            // Checked when it was told that its end is a number.
            addr: remote.advert.addr.wrapping_add(offset),
            handle: remote.advert.handle,
            len,
        })
    }

    fn post(&self, slices: &[Slice], to: To, id: u64) -> Result<(), Errno> {
        let parts = Parts::new(slices, self.inner.id)?;
        // As of a receive.
        let mut core = self.inner.locked()?;
        if core.gone.is_some() || core.stream.wants_fin {
            return Err(Errno::PIPE);
        }
        core.done.admit()?;
        core.pending.push_back(Work {
            id,
            parts,
            to,
            begun: 0,
        });
        core.pump();
        if core.pending.is_empty() {
            core.show();
        } else {
            // What it waits for may be there.
            core.progress();
        }
        self.inner.settle(core);
        Ok(())
    }
}

/// What comes into memory that cannot be written would end the connection.
fn can_be_written(slices: &[Slice]) -> Result<(), Errno> {
    let is_writable = |slice: &Slice| slice.len() == 0 || slice.region.memory().writable();
    if slices.iter().all(is_writable) {
        Ok(())
    } else {
        Err(Errno::FAULT)
    }
}

fn sign(sign: Option<&Sign>) -> Option<OwnedFd> {
    sign?.fd().try_clone_to_owned().ok()
}

/// Sees to it that there is something to sleep on.
fn wait_for<T>(sign: &mut Option<Sign>) -> Result<T, Errno> {
    if sign.is_none() {
        *sign = Some(Sign::new().map_err(|_| Errno::MFILE)?);
    }
    Err(Errno::AGAIN)
}
