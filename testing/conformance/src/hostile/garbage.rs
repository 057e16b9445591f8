//! Garbage in all that a peer reaches.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use proto::frame::{HEAD_WORDS, Head, Kind as FrameKind};
use proto::setup::{MESSAGE_MAX, Message};
use sys::net::{Conn, Listener, Received};
use sys::passed::Passed;
use via::provider::Export;
use via::{Access, Done, Queue, Reliability, Vi};

use crate::Lab;
use crate::buffer::{Buffer, Kind, mix, pattern};
use crate::kit::{Must, Pair, fresh_name, received, sent, until};
use crate::lab::{Forger, ShmForger};
use crate::process::Process;
use crate::robustness::Holdings;

/// A process writes garbage to everything that it reaches, over one connection after the other.
///
/// # Panics
/// When that harms more than these connections.
pub fn withstand_garbage(lab: &dyn Lab, connections: u64, steps: u64) {
    let control_name = format!("conformance/{}", fresh_name());
    let listener = Listener::bind(control_name.as_bytes(), 1).must();
    let program = lab.peer_program().must();
    let attacker = Process::start(
        program,
        "garbage",
        &[OsStr::new(&control_name), OsStr::new(&steps.to_string())],
    );
    let control = accept(lab, &listener);
    let mut before = None;
    for round in 0..connections {
        if round == connections / 10 {
            before = Some(Holdings::now());
        }
        let level = Reliability::ALL[(round % 3) as usize];
        let pair = Pair::for_rdma(lab, level);
        let grounds = Grounds::new(&pair, level);
        let Export { blob, fds } = grounds.vi.export().must();
        let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
        control.send(&blob, &fds).must();
        // Every other one is left to the agent.
        let attends = round % 2 == 0;
        let mut exchanged = 0;
        until(lab, "the attack to end", || {
            if attends {
                grounds.work();
            }
            exchange(&pair, round << 32 | exchanged);
            exchanged += 1;
            match control.recv(&mut [0; 8]).must() {
                Received::Nothing => false,
                Received::Packet { .. } => true,
                Received::Closed => panic!("the attacker ended"),
            }
        });
        pair.assert_connected();
        grounds.check();
    }
    drop(control);
    attacker.end();
    Holdings::now().assert_no_more_than(&before.must());
}

/// What the attacks are aimed at, and what is beside it.
struct Grounds {
    vi: Vi,
    target: Buffer,
    source: Buffer,
    /// Open to RDMA writes of any peer of the tag.
    open: [Buffer; 2],
    /// Registered with the same tag, and no right.
    secret: [Buffer; 2],
    /// Open to peers of another tag.
    foreign: Buffer,
    _tag: via::Ptag,
}

impl Grounds {
    fn new(pair: &Pair<'_>, level: Reliability) -> Self {
        let site = &pair.b;
        let config = site.config(level).accept_rdma_write();
        let tag = site.nic.create_ptag().must();
        let vi = site.nic.create_vi(&config).must();
        let grounds = Self {
            target: Buffer::new(site, RECEIVES * SLOT),
            source: Buffer::new(site, SLOT),
            open: Kind::BOTH.map(|kind| Buffer::with(site, 5000, kind, Access::Write)),
            secret: Kind::BOTH.map(|kind| Buffer::with(site, 5000, kind, Access::Local)),
            foreign: Buffer::under(site, &tag, 5000, Kind::Shared, Access::Write),
            vi,
            _tag: tag,
        };
        (0..RECEIVES).for_each(|token| grounds.receive(token));
        grounds
    }

    fn receive(&self, token: u32) {
        let at = token * SLOT;
        let receive = self.target.recv(at..at + SLOT);
        self.vi.post_recv(&receive, token.into()).must();
    }

    /// What an application does: takes off what completed, and posts more.
    fn work(&self) {
        if let Done::Completed(done) = self.vi.recv_done().must() {
            self.receive(u32::try_from(done.token).must());
        }
        // Long and short ones in turn: those in cells, and those that can be notes.
        let turn = match self.vi.send_done().must() {
            Done::NotDone => return,
            Done::Completed(done) => 1 - done.token,
            Done::Empty => 0,
        };
        let len = [SLOT, 8][turn as usize];
        self.vi.post_send(&self.source.send(0..len), turn).must();
    }

    fn check(&self) {
        self.vi.disconnect().must();
        for queue in [Queue::Send, Queue::Recv] {
            while let Done::Completed(_) = self.vi.ops().done(queue).must() {}
            assert_eq!(self.vi.ops().is_empty(queue), Ok(true));
        }
        self.target.assert_untouched_but(0..RECEIVES * SLOT);
        self.source.assert_untouched();
        self.secret.iter().for_each(Buffer::assert_untouched);
        self.foreign.assert_untouched();
        // What may be written as a whole may hold anything.
        let [shared, private] = &self.open;
        assert_eq!(shared.len(), private.len());
    }
}

/// A message there, and its echo back.
fn exchange(pair: &Pair<'_>, seed: u64) {
    let len = 1 + (mix(seed, 0) % 3000) as u32;
    let (source, target) = (Buffer::new(&pair.a, len), Buffer::new(&pair.b, len));
    source.fill(0..len, seed);
    pair.vb.post_recv(&target.recv(0..len), 1).must();
    pair.va.post_send(&source.send(0..len), 2).must();
    assert_eq!(received(&pair.vb).ok().must().length, len);
    target.assert_holds(0..len, seed);
    sent(&pair.va).ok().must();
}

/// The attacker of [`withstand_garbage`]: takes exports from the socket `control`.
///
/// # Panics
/// When the exports are not what an honest peer could take.
pub fn write_garbage(control: &str, steps: u64) {
    let control = Conn::connect(control.as_bytes()).must();
    let mut bytes = [0; MESSAGE_MAX];
    let mut seed = 0;
    loop {
        control.wait_readable(None).must();
        match control.recv(&mut bytes).must() {
            Received::Nothing => {}
            Received::Closed => return,
            Received::Packet { len, fds, .. } => {
                let blob = bytes[..len].to_vec();
                let fds = fds.into_iter().map(Passed::trusted).collect();
                let mut forger = ShmForger::new(Export { blob, fds });
                (0..steps).for_each(|step| attack(&mut forger, seed, step));
                seed += 1;
                drop(forger);
                control.send(b"done", &[]).must();
            }
        }
    }
}

/// One act of malice.
fn attack(forger: &mut ShmForger, seed: u64, step: u64) {
    let random = |index| mix(seed << 32 | step, index);
    let small = random(1) % 9;
    match random(0) % 64 {
        0..20 => {
            let len = 1 + random(2) as usize % 64;
            forger.scribble(random(3) as usize, &pattern(random(4), len));
        }
        // The words and the cells, rather than the data.
        20..32 => {
            let len = 1 + random(2) as usize % 8;
            let at = random(3) as usize % (4 * 4096);
            forger.scribble(at, &pattern(random(4), len));
        }
        32..40 => {
            let len = (random(2) % 20) as u32;
            let words = [random(3), random(4)];
            forger.send_note(len, (random(5) % 4) as u32, words, (random(6) % 4) as u16);
        }
        40..48 => {
            let payload = pattern(random(2), random(3) as usize % 300);
            forger.send(&head(seed, step, payload.len() as u32), &payload);
        }
        48..54 => forger.ring(),
        54..58 => {
            let garbage = pattern(random(2), 1 + random(3) as usize % MESSAGE_MAX);
            forger.say(&garbage, &[]);
        }
        58..62 => {
            let message = message(seed, step, small as u32);
            let mut bytes = [0; MESSAGE_MAX];
            let bytes = message.encode(&mut bytes);
            let null = File::open("/dev/null").must();
            match random(5) % 4 {
                0 => forger.say(bytes, &[]),
                1 => forger.say(bytes, &[null.as_fd()]),
                2 => forger.say(bytes, &[forger.segment()]),
                _ => forger.say(bytes, &[forger.segment(), null.as_fd()]),
            }
        }
        62 => {
            if let Some(grant) = forger.control().peer_grant(small as usize) {
                // Into somebody's memory, and never out.
                let _value = grant.enter();
            }
        }
        _ if step.is_multiple_of(32) => forger.control().set_state(random(2) as u32),
        _ => {}
    }
}

/// A head that is nearly right.
fn head(seed: u64, step: u64, len: u32) -> [u32; HEAD_WORDS] {
    let random = |index: u64| mix(seed << 32 | step, 100 + index);
    let kinds = [
        FrameKind::Send,
        FrameKind::RdmaWrite,
        FrameKind::ReadRequest,
        FrameKind::ReadResponse,
        FrameKind::Ack,
        FrameKind::Refused,
    ];
    let kind = kinds[random(0) as usize % kinds.len()];
    let mut words = Head {
        len,
        msg_len: len,
        handle: (random(1) % 9) as u32,
        addr: random(2),
        ..Head::bare(kind, (random(3) % 4) as u32)
    }
    .encode();
    if random(4) % 2 == 0 {
        words[random(5) as usize % HEAD_WORDS] ^= 1 << (random(6) % 32);
    }
    words
}

/// A well-formed message that means nothing here.
pub(super) fn message(seed: u64, step: u64, handle: u32) -> Message {
    let random = |index: u64| mix(seed << 32 | step, 200 + index);
    match random(0) % 4 {
        0 => Message::Reject,
        1 | 2 => Message::MapRequest { handle },
        _ => Message::MapReply {
            handle,
            slot: (random(1) % 40) as u32,
            value: random(2) as u32,
            addr: random(3),
            len: random(4) >> (random(5) % 64),
            write: random(6) % 2 == 0,
            read: random(7) % 2 == 0,
        },
    }
}

fn accept(lab: &dyn Lab, listener: &Listener) -> Conn {
    let mut conn = None;
    until(lab, "the attacker", || {
        conn = listener.accept().must();
        conn.is_some()
    });
    conn.must()
}

const RECEIVES: u32 = 8;
const SLOT: u32 = 256;
