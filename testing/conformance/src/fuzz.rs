//! What a peer can write, as functions of bytes: they must not panic, hang or grow.
//!
//! `tests/fuzz.rs` replays the files of `corpus/TARGET` and random changes to them; `fuzz/` gives the
//! same functions to a fuzzer.

use std::sync::LazyLock;

use proto::frame::{HEAD_WORDS, Head, Kind as FrameKind};
use proto::setup::{MESSAGE_MAX, Message};
use via::{Access, Descriptor, Done, Nic, Queue, Reliability, Vi};

use crate::Lab;
use crate::buffer::{Buffer, Kind};
use crate::kit::{Log, Must, Site};
use crate::lab::{Forger, Host, ShmForger, ShmLab};

mod ahead;
mod extended;
mod iwarp;
mod seeds;

pub use self::ahead::fuzz_rdmap_ahead;
pub use self::extended::{fuzz_extended, fuzz_extended_socket};
pub use self::iwarp::{fuzz_ddp, fuzz_mpa, fuzz_rdmap};

/// A function of bytes.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The folder of its corpus.
    pub name: &'static str,
    /// The function.
    pub run: fn(&[u8]),
    /// How often it can run in a second.
    pub a_second: u32,
    seeds: fn() -> Vec<(String, Vec<u8>)>,
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self {
            name: "frame",
            run: fuzz_frame,
            a_second: 1_000_000,
            seeds: seeds::frame_seeds,
        },
        Self {
            name: "setup",
            run: fuzz_setup,
            a_second: 1_000_000,
            seeds: seeds::setup_seeds,
        },
        Self {
            name: "link",
            run: fuzz_link,
            a_second: 3_000,
            seeds: seeds::link_seeds,
        },
        Self {
            name: "mpa",
            run: fuzz_mpa,
            a_second: 20_000,
            seeds: iwarp::mpa_seeds,
        },
        Self {
            name: "ddp",
            run: fuzz_ddp,
            a_second: 200_000,
            seeds: iwarp::ddp_seeds,
        },
        Self {
            name: "rdmap",
            run: fuzz_rdmap,
            a_second: 5_000,
            seeds: iwarp::rdmap_seeds,
        },
        Self {
            name: "extended",
            run: fuzz_extended,
            a_second: 200_000,
            seeds: extended::frame_seeds,
        },
        Self {
            name: "extended_socket",
            run: fuzz_extended_socket,
            a_second: 200,
            seeds: extended::socket_seeds,
        },
        Self {
            name: "rdmap_ahead",
            run: fuzz_rdmap_ahead,
            a_second: 200,
            seeds: ahead::seeds,
        },
    ];

    /// What its corpus began with: a name and bytes each.
    #[must_use]
    pub fn seeds(&self) -> Vec<(String, Vec<u8>)> {
        (self.seeds)()
    }
}

/// The head of a frame.
///
/// # Panics
/// When a head that was understood is not what it was understood as.
pub fn fuzz_frame(bytes: &[u8]) {
    let mut words = [0; HEAD_WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    if let Ok(head) = Head::decode(&words) {
        assert_eq!(Head::decode(&head.encode()), Ok(head));
        let _last = head.is_last();
    }
}

/// A setup message.
///
/// # Panics
/// When a message that was understood is not what it was understood as.
pub fn fuzz_setup(bytes: &[u8]) {
    if let Ok(message) = Message::decode(bytes) {
        let mut again = [0; MESSAGE_MAX];
        assert_eq!(Message::decode(message.encode(&mut again)), Ok(message));
    }
}

/// Operations of a hostile peer on the segment and the socket of a live VI, and of its owner.
///
/// # Panics
/// When they harm more than the connection.
pub fn fuzz_link(bytes: &[u8]) {
    let mut input = Input(bytes);
    let level = Reliability::ALL[usize::from(input.byte()) % 3];
    let ground = Ground::new(level);
    let export = ground.vi.export().must();
    let mut forger = ShmForger::new(export);
    while !input.0.is_empty() {
        act(&mut input, &mut forger, &ground);
    }
    ground.end();
}

fn act(input: &mut Input<'_>, forger: &mut ShmForger, ground: &Ground) {
    match input.byte() % 14 {
        0 => {
            let at = input.word() as usize;
            let len = input.byte();
            forger.scribble(at, input.take(len.into()));
        }
        1 => {
            let words = [(); HEAD_WORDS].map(|()| input.word());
            let len = input.byte();
            forger.send(&words, input.take(len.into()));
        }
        2 => {
            let head = input.head(ground);
            forger.send(&head.encode(), &vec![0x66; head.len.min(4096) as usize]);
        }
        3 => forger.ring(),
        4 => {
            let len = usize::from(input.byte()) % MESSAGE_MAX;
            let message = input.take(len);
            if !message.is_empty() {
                forger.say(message, &[]);
            }
        }
        5 => {
            let message = Message::MapRequest {
                handle: ground.handle(input.byte()),
            };
            forger.say(message.encode(&mut [0; MESSAGE_MAX]), &[]);
        }
        6 => {
            let message = Message::MapReply {
                handle: input.byte().into(),
                slot: input.byte().into(),
                value: input.byte().into(),
                addr: input.word().into(),
                len: input.word().into(),
                write: true,
                read: false,
            };
            let fds = [forger.segment()];
            let with = usize::from(input.byte() % 2);
            forger.say(message.encode(&mut [0; MESSAGE_MAX]), &fds[..with]);
        }
        7 => forger.control().set_state(input.word()),
        8 => {
            if let Some(grant) = forger.control().peer_grant(input.byte().into()) {
                let _value = grant.enter();
            }
        }
        9 => ground.receive(),
        10 => ground.send(200),
        11 => ground.write(input.byte(), input.byte()),
        12 => {
            let len = input.word();
            let [seq, heard] = [(); 2].map(|()| input.byte());
            forger.send_note(len, seq.into(), [0x66; 2], heard.into());
        }
        // One that can be a note.
        _ => ground.send(8),
    }
}

/// A live VI, and what is beside it.
struct Ground {
    vi: Vi,
    target: Buffer,
    source: Buffer,
    open: Buffer,
    secret: Buffer,
}

impl Ground {
    fn new(level: Reliability) -> Self {
        let site = &*SITE;
        let config = site.config(level).accept_rdma_write();
        let ground = Self {
            vi: site.nic.create_vi(&config).must(),
            target: Buffer::new(site, 256),
            source: Buffer::new(site, 256),
            open: Buffer::with(site, 256, Kind::Shared, Access::Write),
            secret: Buffer::new(site, 256),
        };
        (0..4).for_each(|_| ground.post_recv());
        ground
    }

    fn post_recv(&self) {
        let receive = self.target.recv(0..self.target.len());
        self.vi.post_recv(&receive, 0).must();
    }

    fn receive(&self) {
        if let Done::Completed(_) = self.vi.recv_done().must() {
            self.post_recv();
        }
    }

    fn send(&self, len: u32) {
        while let Done::Completed(_) = self.vi.send_done().must() {}
        // A peer that takes nothing fills the queue: that is its right.
        let _full = self.vi.post_send(&self.source.send(0..len), 1);
    }

    /// An RDMA write to a region that the peer may have named.
    fn write(&self, handle: u8, at: u8) {
        let remote = via::RemoteSegment {
            addr: at.into(),
            handle: via::MemHandle(handle.into()),
        };
        let write = Descriptor::rdma_write(remote).raw_segment(self.source.segment(0..256));
        while let Done::Completed(_) = self.vi.send_done().must() {}
        let _full = self.vi.post_send(&write, 2);
    }

    /// Handles that there are, and one that there is not.
    fn handle(&self, which: u8) -> u32 {
        let handles = [&self.open, &self.secret, &self.target].map(|buffer| buffer.handle().0);
        let which = usize::from(which) % (handles.len() + 1);
        handles.get(which).copied().unwrap_or_default()
    }

    fn end(self) {
        self.vi.disconnect().must();
        for queue in [Queue::Send, Queue::Recv] {
            while let Done::Completed(_) = self.vi.ops().done(queue).must() {}
            assert_eq!(self.vi.ops().is_empty(queue), Ok(true));
        }
        self.target.assert_untouched_but(0..self.target.len());
        self.source.assert_untouched();
        self.secret.assert_untouched();
    }
}

/// Bytes to be taken off from the front; then zeros.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (front, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        front
    }

    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    fn word(&mut self) -> u32 {
        let mut word = [0; 4];
        let bytes = self.take(4);
        word[..bytes.len()].copy_from_slice(bytes);
        u32::from_le_bytes(word)
    }

    /// A well-formed head, whose every field is the peer's choice.
    fn head(&mut self, ground: &Ground) -> Head {
        let kinds = KINDS[usize::from(self.byte()) % KINDS.len()];
        let [len, more, offset] = [(); 3].map(|()| u32::from(self.byte()));
        Head {
            len,
            msg_len: len + more,
            offset,
            handle: ground.handle(self.byte()),
            addr: ground
                .open
                .addr(0)
                .wrapping_add_signed(i64::from(self.byte().cast_signed())),
            ..Head::bare(kinds, self.byte().into())
        }
    }
}

const KINDS: [FrameKind; 7] = [
    FrameKind::Send,
    FrameKind::RdmaWrite,
    FrameKind::ReadRequest,
    FrameKind::ReadResponse,
    FrameKind::Ack,
    FrameKind::Refused,
    FrameKind::Disconnect,
];

/// One NIC for all runs; nobody keeps its errors.
static SITE: LazyLock<Site<'static>> = LazyLock::new(|| {
    let lab: &'static dyn Lab = &*LAB;
    let nic = Nic::open(lab.driver(Host::B)).must();
    nic.on_error(|_| {}).must();
    Site {
        lab,
        tag: nic.create_ptag().must(),
        nic,
        errors: Log::default(),
    }
});
static LAB: LazyLock<ShmLab> = LazyLock::new(|| ShmLab::new(""));
