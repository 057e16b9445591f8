//! The NIC over shared memory.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proto::frame::HEAD_WORDS;
use proto::setup::{MESSAGE_MAX, Message};
use sys::net::{Conn, Received};
use sys::passed::Passed;
use sys::ring::{Cell, Note, Producer, WORDS};
use sys::segment::{Control, Segment, Side, Wait, split};
use via::provider::{Driver, Export};
use via::{Memory, Vi};

use super::{Forger, Host, Lab};

/// Two NIC handles of one process; with a peer program, two processes.
#[derive(Debug)]
pub struct ShmLab {
    peer_program: PathBuf,
}

impl ShmLab {
    /// `peer_program` is `conformance-peer`.
    #[must_use]
    pub fn new(peer_program: &str) -> Self {
        Self {
            peer_program: peer_program.into(),
        }
    }
}

impl Lab for ShmLab {
    fn driver(&self, _: Host) -> &dyn Driver {
        &shm::DRIVER
    }

    fn nowhere(&self) -> [u8; 6] {
        [0x02, 0xff, 0xff, 0xff, 0xff, 0xff]
    }

    fn peer_program(&self) -> Option<&Path> {
        Some(&self.peer_program)
    }

    fn forge(&self, victim: &Vi) -> Option<Box<dyn Forger>> {
        Some(Box::new(ShmForger::new(
            victim.export().expect("an idle VI"),
        )))
    }

    fn excused(&self, number: u16) -> Option<&'static str> {
        match number {
            161..=163 => {
                Some("the medium is the memory of one host: it neither loses, doubles nor changes")
            }
            _ => None,
        }
    }
}

/// The other end of an exported VI, in the hands of someone who keeps to no rule.
pub struct ShmForger {
    /// The whole segment.
    memory: Memory,
    segment: OwnedFd,
    producer: Producer,
    control: Control,
    conn: Conn,
}

impl ShmForger {
    /// Takes the other end of `export`.
    ///
    /// # Panics
    /// When an honest peer could not take it either.
    #[must_use]
    pub fn new(export: Export) -> Self {
        let Ok(Message::Accept { data_len, .. }) = Message::decode(&export.blob) else {
            panic!("an export that nobody could import");
        };
        let [fd, conn] = export.fds.try_into().expect("segment and socket");
        let file = File::from(fd.try_clone().expect("a descriptor"));
        let len = file.metadata().expect("a memfd").len();
        let len = usize::try_from(len).expect("a size of memory");
        let memory = Memory::import(file.into(), len).expect("a sealed memfd");
        let kept = fd.try_clone().expect("a descriptor");
        let segment = Segment::import(fd, data_len as usize).expect("a segment");
        let (producer, _, control) = split(segment, Side::B);
        Self {
            memory,
            segment: kept,
            producer,
            control,
            conn: Conn::try_from(conn).expect("a socket"),
        }
    }

    /// The words beside the rings.
    #[must_use]
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// The segment, to be sent where none belongs.
    #[must_use]
    pub fn segment(&self) -> BorrowedFd<'_> {
        self.segment.as_fd()
    }

    /// Sends `len` bytes, as it says, as a note that says how many of the victim's notes were heard, as far as there is room.
    pub fn send_note(&mut self, len: u32, seq: u32, [low, high]: [u64; 2], heard: u16) {
        let head = u64::from(len) | u64::from(seq) << 32;
        let _sent = self.producer.note(Note([head, low, high]), heard);
    }

    /// Sends bytes through the socket, if there is room and somebody there.
    pub fn say(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
        let _unheard = self.conn.send(bytes, fds);
    }

    /// The next message through the socket, with the first descriptor that came along; `None` when it is closed.
    #[must_use]
    pub fn hear(&self, patience: Duration) -> Option<(Message, Option<OwnedFd>)> {
        let end = Instant::now() + patience;
        let mut bytes = [0; MESSAGE_MAX];
        loop {
            match self.conn.drain(&mut bytes).ok()?.then {
                Received::Packet { len, fds, .. } => {
                    let message = Message::decode(&bytes[..len]).ok()?;
                    return Some((message, fds.into_iter().next().map(Passed::trusted)));
                }
                Received::Nothing if Instant::now() < end => {
                    self.conn.wait_readable(Some(end)).ok()?;
                }
                Received::Nothing | Received::Closed => return None,
            }
        }
    }
}

impl Forger for ShmForger {
    fn reach(&self) -> usize {
        self.memory.len()
    }

    fn scribble(&mut self, at: usize, bytes: &[u8]) {
        let at = at % self.reach();
        let len = bytes.len().min(self.reach() - at);
        self.memory.write(at, &bytes[..len]).expect("within it");
    }

    fn send(&mut self, head: &[u32; HEAD_WORDS], payload: &[u8]) {
        let len = u32::try_from(payload.len()).expect("a short payload");
        let Some(at) = self.producer.reserve(len) else {
            return;
        };
        let written = self.producer.write_bytes(at, 0, payload);
        written.expect("the place was reserved");
        let mut words = [0; WORDS];
        words[..HEAD_WORDS].copy_from_slice(head);
        words[HEAD_WORDS] = at;
        self.producer.publish(Cell(words));
    }

    fn ring(&mut self) {
        for wait in [Wait::Frames, Wait::Room] {
            self.control.peer_bell(wait).wake();
        }
        self.conn.knock();
    }
}
