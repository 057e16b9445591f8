//! Writing into the peer's regions without its help.

use std::sync::Arc;

use sys::mem::{Memory, OutOfRange, StoreChoice};
use sys::sync::Ordering;
use via::RemoteSegment;

use crate::peer::{Peer, Window};

/// The peer's regions that may be written directly.
#[derive(Default)]
pub(crate) struct Windows {
    known: Vec<Arc<Window>>,
    changes: u32,
    /// The last region asked for: once is enough.
    asked: Option<RemoteSegment>,
    /// The kernel does not let us write the peer's memory.
    process_denied: bool,
    /// Plain or streaming stores, by what they cost here and now.
    stores: StoreChoice,
    /// The range being written.
    entered: Option<(Arc<Window>, u64)>,
}

impl Windows {
    /// The window for `remote`, asked for if there is none yet.
    fn window(&mut self, peer: &Peer, remote: RemoteSegment, len: u32) -> Option<Arc<Window>> {
        let changes = peer.changes.load(Ordering::Acquire);
        if changes != self.changes {
            self.changes = changes;
            self.known = peer.windows();
            self.asked = None;
        }
        let known = self
            .known
            .iter()
            .find(|window| window.handle == remote.handle);
        match known {
            Some(window) => {
                window.reach(remote, len)?;
                Some(Arc::clone(window))
            }
            None => {
                let asked = self.asked.map(|asked| asked.handle);
                if asked != Some(remote.handle) && peer.ask_for(remote.handle) {
                    // Without an answer the frames' way is taken for good.
                    self.asked = Some(remote);
                }
                None
            }
        }
    }

    /// As [`via::soft::Link::enter`].
    pub(crate) fn enter(&mut self, peer: &Peer, remote: RemoteSegment, len: u32) -> bool {
        if len < DIRECT_MIN {
            return false;
        }
        let Some(window) = self.window(peer, remote, len) else {
            return false;
        };
        let by_kernel = window.memory.is_none();
        if by_kernel && (self.process_denied || len < PROCESS_MIN) {
            return false;
        }
        let Some(grant) = peer.control.peer_grant(window.slot) else {
            return false;
        };
        match grant.enter() {
            Some(value) if value == window.value => {
                let offset = remote.addr - window.addr;
                self.entered = Some((window, offset));
                true
            }
            Some(_) => {
                grant.leave();
                self.known.retain(|known| known.handle != remote.handle);
                false
            }
            None => {
                // Taken back; it may be granted anew.
                self.known.retain(|known| known.handle != remote.handle);
                self.asked = None;
                false
            }
        }
    }

    /// As [`via::soft::Link::put`].
    pub(crate) fn put(
        &mut self,
        peer: &Peer,
        at: u32,
        from: &Memory,
        offset: usize,
        len: usize,
    ) -> Result<(), OutOfRange> {
        let (window, start) = self.entered.as_ref().ok_or(OutOfRange)?;
        let to = start + u64::from(at);
        match &window.memory {
            Some(memory) => {
                let to = usize::try_from(to).map_err(|_| OutOfRange)?;
                self.stores.copy(len, |store| {
                    Memory::copy(memory, to, from, offset, len, store)
                })
            }
            None if peer.write(window.addr + to, from, offset, len) => Ok(()),
            None => {
                self.process_denied = true;
                Err(OutOfRange)
            }
        }
    }

    /// As [`via::soft::Link::leave`].
    pub(crate) fn leave(&mut self, peer: &Peer) {
        if let Some((window, _)) = self.entered.take()
            && let Some(grant) = peer.control.peer_grant(window.slot)
        {
            grant.leave();
        }
    }
}

/// Below this a frame in the ring is faster than entering a grant.
const DIRECT_MIN: u32 = 256;
/// Below this the ring, two copies and no system call, is faster than the kernel's one copy.
const PROCESS_MIN: u32 = 32 * 1024;
