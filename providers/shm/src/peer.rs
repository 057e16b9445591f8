//! What an end of a connection shares with the agent: the socket, the control words, what each end may write of the other.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use proto::setup::{MESSAGE_MAX, Message};
use sys::bell::{FUTEX, SOCKET};
use sys::hidden::Hidden;
use sys::mem::Memory;
use sys::net::{Conn, Drained, Received, Sent};
use sys::passed::Passed;
use sys::poll::is_ready;
use sys::process_vm;
use sys::segment::{Control, GRANTS, Wait};
use sys::sync::{AtomicU32, Ordering};
use via::soft::Goodbye;
use via::{MemHandle, RemoteSegment};

use crate::device::REGION_MAX;
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
    /// The regions that the peer has been asked for, and has not answered.
    asked: Mutex<Vec<MemHandle>>,
    /// The process at the other end, if the kernel may write to it for us.
    process: OnceLock<Option<Hidden>>,
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
            asked: Mutex::default(),
            process: OnceLock::new(),
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
        // Before the answer can come.
        self.expect(handle);
        let sent = self.conn.send(message.encode(&mut bytes), &[]);
        matches!(sent, Ok(Sent::Whole))
    }

    /// Writes to the peer's memory by the kernel; whether all of it was.
    pub(crate) fn write(&self, to: u64, from: &Memory, offset: usize, len: usize) -> bool {
        // A process that has died makes way for another with its number.
        let lives = self.process().is_some_and(|it| !is_ready(it.as_fd()));
        lives && process_vm::write(self.pid, to, from, offset, len).is_ok_and(|n| n == len)
    }

    /// The process to whose memory the kernel writes for us, at an address of its choice and with our rights. One of another user may have become, by `exec`, a program to which
    /// we may write and it may not.
    fn process(&self) -> Option<&Hidden> {
        let process = self.process.get_or_init(|| {
            let is_harmless = self.pid != 0 && self.conn.is_of_this_user();
            let pidfd = is_harmless.then(|| self.conn.peer_pidfd().ok());
            pidfd.flatten().map(Hidden::of_a_nic)
        });
        process.as_ref()
    }

    fn expect(&self, handle: MemHandle) {
        let mut asked = lock(&self.asked);
        asked.retain(|other| *other != handle);
        if asked.len() == ASKED_MAX {
            asked.remove(0);
        }
        asked.push(handle);
    }

    /// Whether it was asked for, once.
    fn is_answer(&self, handle: MemHandle) -> bool {
        let mut asked = lock(&self.asked);
        let before = asked.len();
        asked.retain(|other| *other != handle);
        asked.len() < before
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
        if len > REGION_MAX || !self.is_answer(MemHandle(handle)) {
            return;
        }
        let memory = fds
            .into_iter()
            .next()
            .and_then(Passed::into_memory)
            .and_then(|fd| Memory::import(fd.into_fd(), usize::try_from(len).ok()?).ok());
        if value != 0 && (memory.is_some() || self.process().is_some()) {
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
/// Of more regions that were asked for and not answered, what comes late is not taken.
const ASKED_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use proto::frame::Refusal;
    use sys::segment::{Segment, Side};

    use super::*;

    /// This process's end, and the socket of whoever plays the other, which is this process.
    fn peer() -> (Peer, Conn) {
        let (ours, theirs) = Conn::pair().expect("sockets");
        let (segment, _fd) = Segment::create(crate::link::DATA_LEN).expect("memory");
        let (_, _, control) = sys::segment::split(segment, Side::A);
        (Peer::new(Arc::new(ours), control), theirs)
    }

    fn reply(theirs: &Conn, handle: u32, len: u64, memory: Option<&Memory>) {
        let message = Message::MapReply {
            handle,
            slot: 0,
            value: 1,
            addr: 1 << 40,
            len,
            write: true,
            read: false,
        };
        let fd = memory.map(|memory| memory.try_clone_fd().expect("a number"));
        let fds: Vec<_> = fd.iter().map(AsFd::as_fd).collect();
        let sent = theirs.send(message.encode(&mut [0; MESSAGE_MAX]), &fds);
        assert_eq!(sent.expect("there is room"), Sent::Whole);
    }

    #[test]
    fn a_region_that_was_not_asked_for_is_not_taken() {
        let (peer, theirs) = peer();
        let memory = Memory::shared(4096).expect("memory");
        let hear = || {
            reply(&theirs, 7, 4096, Some(&memory));
            assert_eq!(peer.hear(|_| ()), Heard::Something);
            peer.windows().len()
        };
        assert_eq!(hear(), 0);
        assert!(peer.ask_for(MemHandle(8)));
        assert_eq!(hear(), 0);
        assert!(peer.ask_for(MemHandle(7)));
        assert_eq!([hear(), hear()], [1, 1]);
    }

    #[test]
    fn a_region_longer_than_there_are_is_not_mapped() {
        let (peer, theirs) = peer();
        let len = 2 * REGION_MAX;
        let memory = Memory::shared(usize::try_from(len).expect("64 bits")).expect("it is sparse");
        for (len, expected) in [(len, 0), (REGION_MAX, 1)] {
            assert!(peer.ask_for(MemHandle(7)));
            reply(&theirs, 7, len, Some(&memory));
            assert_eq!(peer.hear(|_| ()), Heard::Something);
            assert_eq!(peer.windows().len(), expected);
        }
    }

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
