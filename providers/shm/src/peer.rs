//! What an end of a connection shares with the agent: the socket, the control words, what each end may write of the other.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use proto::setup::{MESSAGE_MAX, Message};
use sys::bell::{FUTEX, SOCKET};
use sys::mem::Memory;
use sys::net::{Conn, Drained, Received, Sent};
use sys::passed::Passed;
use sys::segment::{Control, GRANTS, Wait};
use sys::sync::{AtomicU32, Ordering};
use via::soft::Goodbye;
use via::{MemHandle, RemoteSegment};

use crate::grants::Grants;

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
    /// What the peer was granted.
    pub(crate) grants: Arc<Grants>,
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
            grants: Arc::new(Grants::new(control.clone())),
            control,
            pid: if pid == me { 0 } else { pid },
            changes: AtomicU32::new(0),
            windows: Mutex::default(),
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

    /// Tells the other end that the connection ends. It writes nothing on its own any more.
    pub(crate) fn close(&self, why: Goodbye) {
        self.grants.close();
        self.control.set_state(goodbye_code(why));
        self.control.peer_bell(Wait::Frames).wake();
        self.conn.shutdown();
    }

    /// Reads what the socket says. `asked` is told of the regions that the peer wants to write on its own.
    pub(crate) fn hear(&self, mut asked: impl FnMut(MemHandle)) -> Heard {
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
                    match Message::decode(&bytes[..len]) {
                        Ok(Message::MapRequest { handle }) if !truncated => {
                            asked(MemHandle(handle));
                        }
                        Ok(message) if !truncated => self.learn(message, fds),
                        _ => {}
                    }
                }
            }
        }
        Heard::Something
    }

    /// Asks the peer to let us write a region of its on our own; whether it hears that.
    pub(crate) fn ask_for(&self, handle: MemHandle) -> bool {
        let mut bytes = [0; MESSAGE_MAX];
        let message = Message::MapRequest { handle: handle.0 };
        let sent = self.conn.send(message.encode(&mut bytes), &[]);
        matches!(sent, Ok(Sent::Whole))
    }

    pub(crate) fn windows(&self) -> Vec<Arc<Window>> {
        lock(&self.windows).clone()
    }

    /// The peer lets us write a region of its on our own.
    fn learn(&self, message: Message, fds: Vec<Passed>) {
        let Message::MapReply {
            handle,
            slot,
            value,
            addr,
            len,
            write: true,
            read: _,
        } = message
        else {
            return;
        };
        let memory = fds
            .into_iter()
            .next()
            .and_then(Passed::into_memory)
            .and_then(|fd| Memory::import(fd.into_fd(), usize::try_from(len).ok()?).ok());
        if value != 0 && (memory.is_some() || self.pid != 0) {
            self.add(Window {
                handle: MemHandle(handle),
                slot: slot as usize,
                value,
                addr,
                len,
                memory,
            });
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
