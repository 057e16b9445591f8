//! What an end of a connection shares with the agent: the socket, the control words, the grants.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use proto::setup::{MESSAGE_MAX, Message};
use sys::bell::{FUTEX, SOCKET};
use sys::mem::Memory;
use sys::net::{Conn, Drained, Received};
use sys::segment::{Control, GRANTS, Wait};
use sys::sync::{AtomicU32, Ordering};
use via::provider::ViId;
use via::soft::{Goodbye, Service};
use via::{MemHandle, RemoteSegment};

/// The parts of a connection that more than one thread uses.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) conn: Arc<Conn>,
    pub(crate) control: Control,
    /// The process at the other end; 0 if it cannot be seen from here or is this one.
    pub(crate) pid: u32,
    /// Counts changes of `windows`.
    pub(crate) changes: AtomicU32,
    windows: Mutex<Vec<Arc<Window>>>,
    /// What the peer was granted, by slot.
    granted: Mutex<[Option<MemHandle>; GRANTS]>,
    /// The value of the next grant: none is used twice.
    last_grant: AtomicU32,
}

/// A region of the peer that this end may write on its own, for as long as its grant holds.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) handle: MemHandle,
    pub(crate) slot: usize,
    /// What the grant must say.
    pub(crate) value: u32,
    pub(crate) addr: u64,
    pub(crate) len: u64,
    /// The region's memory, if it can be mapped; otherwise the kernel copies.
    pub(crate) memory: Option<Memory>,
}

impl Window {
    /// Where the range begins in the region, if all of it lies there.
    pub(crate) fn reach(&self, remote: RemoteSegment, len: u32) -> Option<u64> {
        let offset = remote.addr.checked_sub(self.addr)?;
        let end = offset.checked_add(u64::from(len))?;
        (end <= self.len).then_some(offset)
    }
}

/// What became of the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It rang, or said something that has been dealt with.
    Something,
    /// The other end is closed.
    Closed,
}

impl Peer {
    pub(crate) fn new(conn: Arc<Conn>, control: Control) -> Self {
        let me = std::process::id();
        let pid = conn.peer().map_or(0, |peer| peer.pid);
        Self {
            conn,
            control,
            pid: if pid == me { 0 } else { pid },
            changes: AtomicU32::new(0),
            windows: Mutex::default(),
            granted: Mutex::default(),
            last_grant: AtomicU32::new(1),
        }
    }

    /// Wakes whoever sleeps at the other end for `wait`.
    pub(crate) fn knock(&self, wait: Wait) {
        let bits = self.control.peer_bell(wait).knock();
        if bits & FUTEX != 0 {
            // Whatever it sleeps for, it sleeps on this word.
            self.control.peer_bell(Wait::Frames).wake();
        }
        if bits & SOCKET != 0 {
            self.conn.knock();
        }
    }

    /// Tells the other end that the connection ends.
    pub(crate) fn close(&self, why: Goodbye) {
        self.control.set_state(goodbye_code(why));
        self.control.peer_bell(Wait::Frames).wake();
        self.conn.shutdown();
    }

    /// Reads what the socket says, and answers the peer's questions.
    pub(crate) fn hear(&self, vi: ViId, service: &dyn Service) -> Heard {
        let mut bytes = [0; MESSAGE_MAX];
        for _ in 0..PACKETS_A_TIME {
            let Ok(Drained { then, .. }) = self.conn.drain(&mut bytes) else {
                return Heard::Closed;
            };
            match then {
                Received::Nothing => break,
                Received::Closed => return Heard::Closed,
                Received::Packet {
                    len,
                    fds,
                    truncated,
                } => {
                    // What cannot be read is not answered: the peer only deprives itself.
                    if let (false, Ok(message)) = (truncated, Message::decode(&bytes[..len])) {
                        self.answer(vi, service, message, fds);
                    }
                }
            }
        }
        Heard::Something
    }

    /// Asks the peer to let us write a region of its on our own.
    pub(crate) fn ask_for(&self, handle: MemHandle) -> io::Result<()> {
        let mut bytes = [0; MESSAGE_MAX];
        let message = Message::MapRequest { handle: handle.0 };
        self.conn.send(message.encode(&mut bytes), &[])?;
        Ok(())
    }

    pub(crate) fn windows(&self) -> Vec<Arc<Window>> {
        lock(&self.windows).clone()
    }

    /// Takes back what was granted of a region; returns whether anything was.
    fn revoke(&self, handle: MemHandle) -> bool {
        let mut granted = lock(&self.granted);
        let mut any = false;
        for (slot, place) in granted.iter_mut().enumerate() {
            if *place != Some(handle) {
                continue;
            }
            any = true;
            *place = None;
            let Some(grant) = self.control.grant(slot) else {
                continue;
            };
            grant.revoke();
            let patience = Instant::now() + BUSY_MAX;
            while grant.is_busy() {
                if Instant::now() > patience {
                    // It hangs in the middle of a write, or pretends to: its connection ends here.
                    self.close(Goodbye::Broken);
                    break;
                }
                std::thread::yield_now();
            }
        }
        any
    }

    fn answer(&self, vi: ViId, service: &dyn Service, message: Message, fds: Vec<OwnedFd>) {
        match message {
            Message::MapRequest { handle } => self.grant(vi, service, MemHandle(handle)),
            Message::MapReply {
                handle,
                slot,
                value,
                addr,
                len,
                write: true,
                read: _,
            } => {
                let slot = slot as usize;
                let memory = fds
                    .into_iter()
                    .next()
                    .and_then(|fd| Memory::import(fd, usize::try_from(len).ok()?).ok());
                if value != 0 && (memory.is_some() || self.pid != 0) {
                    self.add(Window {
                        handle: MemHandle(handle),
                        slot,
                        value,
                        addr,
                        len,
                        memory,
                    });
                }
            }
            _ => {}
        }
    }

    fn add(&self, window: Window) {
        let mut windows = lock(&self.windows);
        windows.retain(|known| known.handle != window.handle && known.slot != window.slot);
        if windows.len() < GRANTS {
            windows.push(Arc::new(window));
            self.changes.fetch_add(1, Ordering::Release);
        }
    }

    /// Lets the peer write a region on its own, if it may write all of it anyway.
    fn grant(&self, vi: ViId, service: &dyn Service, handle: MemHandle) {
        let _still = lock(&MOVES);
        let Some((memory, read)) = service.exposed(vi, handle) else {
            return;
        };
        let mut granted = lock(&self.granted);
        if granted.contains(&Some(handle)) {
            return;
        }
        let Some(slot) = granted.iter().position(Option::is_none) else {
            return;
        };
        let Some(grant) = self.control.grant(slot) else {
            return;
        };
        granted[slot] = Some(handle);
        drop(granted);
        let fd = memory.try_clone_fd().ok();
        let value = self.last_grant.fetch_add(1, Ordering::Relaxed).max(1);
        grant.offer(value);
        let message = Message::MapReply {
            handle: handle.0,
            slot: slot as u32,
            value,
            addr: memory.addr(),
            len: memory.len() as u64,
            write: true,
            read,
        };
        let mut bytes = [0; MESSAGE_MAX];
        let fds: Vec<_> = fd.iter().map(AsFd::as_fd).collect();
        if self.conn.send(message.encode(&mut bytes), &fds).is_err() {
            self.revoke(handle);
        }
    }
}

/// Takes back what `peers` were granted of a region, and what a hostile one may have kept.
pub(crate) fn revoke(peers: impl Iterator<Item = Arc<Peer>>, handle: MemHandle, memory: &Memory) {
    let _still = lock(&MOVES);
    let mut granted = false;
    for peer in peers {
        granted |= peer.revoke(handle);
    }
    if granted && memory.try_clone_fd().is_ok() {
        // It keeps its mapping: from here on of other pages than ours.
        let moved = memory.unshare();
        debug_assert!(moved.is_ok(), "there is memory for a copy");
    }
}

/// A goodbye as the state word of a segment: the reason in the low byte, above it 24 bits of the
/// number of a refused message.
fn goodbye_code(why: Goodbye) -> u32 {
    match why {
        Goodbye::Disconnected => 1,
        Goodbye::Broken | Goodbye::Died | Goodbye::Transport => 2,
        Goodbye::Refused { seq, refusal } => (REFUSED | refusal as u32) | seq << 8,
    }
}

/// The goodbye in a peer's state word; `last` is the number of the last message that we sent.
pub(crate) fn goodbye(code: u32, last: u32) -> Option<Goodbye> {
    match code & 0xff {
        0 => None,
        1 => Some(Goodbye::Disconnected),
        reason if reason & REFUSED != 0 => {
            let refusal = proto::frame::Refusal::from_code(reason & !REFUSED);
            let back = last.wrapping_sub(code >> 8) & 0x00ff_ffff;
            Some(refusal.map_or(Goodbye::Broken, |refusal| Goodbye::Refused {
                seq: last.wrapping_sub(back),
                refusal,
            }))
        }
        _ => Some(Goodbye::Broken),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const REFUSED: u32 = 0x10;
const PACKETS_A_TIME: u32 = 32;
/// How long a peer may be busy in a region that it has been told to leave.
const BUSY_MAX: Duration = Duration::from_millis(100);

/// Whoever grants regions, or takes them back and moves their memory, has this: what is granted is where the region is, and allowed when it is offered.
static MOVES: Mutex<()> = Mutex::new(());

#[cfg(test)]
mod tests {
    use proto::frame::Refusal;

    use super::*;

    #[test]
    fn goodbyes_survive_the_state_word() {
        assert_eq!(goodbye(0, 9), None);
        for why in [Goodbye::Disconnected, Goodbye::Broken] {
            assert_eq!(goodbye(goodbye_code(why), 9), Some(why));
        }
        for (seq, last) in [(1, 1), (5, 9), (0x00ff_fffe, 0x0100_0003), (u32::MAX, 2)] {
            let why = Goodbye::Refused {
                seq,
                refusal: Refusal::Protection,
            };
            assert_eq!(goodbye(goodbye_code(why), last), Some(why));
        }
    }

    #[test]
    fn any_state_word_is_some_goodbye() {
        for code in 1..=u32::from(u16::MAX) {
            if code & 0xff != 0 {
                assert!(goodbye(code, 0).is_some());
            }
        }
    }
}
