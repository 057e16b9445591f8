//! Peers that keep to no rule, and peers that die.
//!
//! The attacks are carried out by `conformance-peer`, a process of its own; the checks are made by
//! the process that it attacks, over shared memory.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proto::frame::{HEAD_WORDS, Head, Kind as FrameKind};
use proto::setup::{MESSAGE_MAX, Message, VERSION};
use sys::mem::Memory;
use sys::net::{Conn, Listener, Received};
use via::provider::Export;
use via::{
    Access, Descriptor, Done, Error, NetAddress, Nic, Queue, Reliability, Vi, ViConfig, ViState,
};

use crate::Lab;
use crate::buffer::{Buffer, Kind, mix, pattern};
use crate::kit::{
    Must, Pair, SOON, Site, await_state, beside, fresh_name, incoming, received, request, sent,
    until,
};
use crate::lab::{Forger, Host, ShmForger};
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
        match self.vi.send_done().must() {
            Done::NotDone => {}
            Done::Completed(_) | Done::Empty => {
                self.vi.post_send(&self.source.send(0..SLOT), 0).must();
            }
        }
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
        32..48 => {
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
fn message(seed: u64, step: u64, handle: u32) -> Message {
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

/// A process says nonsense to whoever waits or offers at an address, and honest clients come between.
///
/// # Panics
/// When they are not served.
pub fn withstand_nonsense_at_the_door(lab: &dyn Lab, clients: u64) {
    let (a, b) = Site::two(lab);
    let to = b.fresh_address();
    let from = a.fresh_address();
    let program = lab.peer_program().must();
    let doors = [door("wait", &[&to]), door("peer", &[&from, &to])];
    let callers = doors.map(|door| Process::start(program, "pester", &[OsStr::new(&door)]));
    for round in 0..clients {
        let level = Reliability::ALL[(round % 3) as usize];
        let (va, vb) = (a.vi(level), b.vi(level));
        let (asked, ()) = beside(
            lab,
            || request(lab, &**va.ops(), &from, &to, SOON),
            || incoming(b.ops(), &to).accept(&**vb.ops()).must(),
        );
        asked.must();
        let (pa, pb) = (a.vi(level), b.vi(level));
        pa.ops().peer_request(&from, &to, SOON).must();
        pb.ops().peer_request(&to, &from, SOON).must();
        pa.ops().peer_wait().must();
        pb.ops().peer_wait().must();
        for (one, other) in [(&va, &vb), (&pa, &pb)] {
            other.post_recv(&Descriptor::recv(), round).must();
            one.post_send(&Descriptor::send(), round).must();
            assert_eq!(received(other).ok().must().token, round);
        }
    }
    callers.into_iter().for_each(Process::end);
}

/// The socket of an address, as providers/shm names it.
fn door(kind: &str, addresses: &[&NetAddress]) -> String {
    let hex = |address: &&NetAddress| -> String {
        let bytes = address.host.iter().chain(address.discriminator.as_bytes());
        bytes.map(|byte| format!("{byte:02x}")).collect()
    };
    let addresses: Vec<String> = addresses.iter().map(hex).collect();
    format!("sovia-via-{VERSION}/{kind}/{}/0", addresses.join("/"))
}

/// The attacker of [`withstand_nonsense_at_the_door`], until `over`.
///
/// # Panics
/// When this host lacks something.
pub fn pester(door: &str, over: &AtomicBool) {
    let null = File::open("/dev/null").must();
    let mut silent = Vec::new();
    for round in 0.. {
        if over.load(Ordering::Acquire) {
            return;
        }
        let Ok(conn) = Conn::connect(door.as_bytes()) else {
            std::thread::yield_now();
            continue;
        };
        let random = |index| mix(round, index);
        let mut bytes = [0; MESSAGE_MAX];
        let message = message(round, 0, 1).encode(&mut bytes).to_vec();
        let garbage = pattern(round, 1 + random(0) as usize % MESSAGE_MAX);
        let fds = [null.as_fd()];
        // Whether anybody hears it is not our concern.
        match random(1) % 4 {
            0 => drop(conn.send(&garbage, &[])),
            1 => drop(conn.send(&message, &fds)),
            2 => silent.push(conn),
            _ => {}
        }
        if silent.len() > 8 {
            silent.clear();
        }
    }
}

/// Processes connect, send and disconnect, and some are killed at it.
///
/// # Panics
/// When a message is lost or changed, a death goes unnoticed, or something is left over.
pub fn churn(lab: &dyn Lab, connects: u64, kills: u64) {
    let site = Site::open(lab, Host::B);
    let to = site.fresh_address();
    let program = lab.peer_program().must();
    // What is made once is made by the first ones.
    serve_honest(&site, &to, program, 20);
    let before = Holdings::now();
    serve_honest(&site, &to, program, connects - kills);
    for round in 0..kills {
        serve_and_kill(&site, &to, program, round);
    }
    Holdings::now().assert_no_more_than(&before);
}

fn serve_honest(site: &Site<'_>, to: &NetAddress, program: &Path, connects: u64) {
    let client = client(program, to, connects);
    for _ in 0..connects {
        let vi = site.vi(LEVEL);
        let inbox = Inbox::new(site, &vi);
        incoming(site.ops(), to).accept(&**vi.ops()).must();
        (0..MESSAGES).for_each(|number| inbox.take(number));
        await_state(site.lab, &vi, ViState::Error);
    }
    client.end();
}

fn serve_and_kill(site: &Site<'_>, to: &NetAddress, program: &Path, round: u64) {
    let random = |index| mix(0xdead << 32 | round, index);
    let mut client = client(program, to, u64::MAX);
    if random(0) % 8 == 0 {
        // Maybe before it has begun.
        (0..random(1) % 5000).for_each(|_| site.lab.pass());
        return client.kill();
    }
    for _ in 0..random(1) % 3 {
        let vi = site.vi(LEVEL);
        let inbox = Inbox::new(site, &vi);
        incoming(site.ops(), to).accept(&**vi.ops()).must();
        (0..MESSAGES).for_each(|number| inbox.take(number));
    }
    let vi = site.vi(LEVEL);
    let inbox = Inbox::new(site, &vi);
    let mut request = incoming(site.ops(), to);
    if random(0) % 4 == 1 {
        client.kill();
        match request.accept(&**vi.ops()) {
            Ok(()) => {}
            Err(Error::Timeout) => return,
            Err(error) => panic!("accepting the dead: {error}"),
        }
    } else {
        request.accept(&**vi.ops()).must();
        (0..random(2) % 2000).for_each(|_| std::hint::spin_loop());
        client.kill();
    }
    // What came whole is right, and all else is flushed.
    await_state(site.lab, &vi, ViState::Error);
    for number in 0.. {
        match vi.recv_done().must() {
            Done::Completed(done) if done.ok().is_ok() => inbox.check(number),
            Done::Completed(_) => {}
            Done::NotDone => panic!("not flushed"),
            Done::Empty => break,
        }
    }
}

fn client(program: &Path, to: &NetAddress, connects: u64) -> Process {
    let name = to.discriminator.as_bytes();
    let name = std::str::from_utf8(name).must();
    let connects = connects.to_string();
    Process::start(program, "churn", &[OsStr::new(name), OsStr::new(&connects)])
}

/// Receives for all messages of a client.
struct Inbox<'v> {
    vi: &'v Vi,
    buffer: Buffer,
}

impl<'v> Inbox<'v> {
    fn new(site: &Site<'_>, vi: &'v Vi) -> Self {
        let buffer = Buffer::new(site, MESSAGES as u32 * MESSAGE);
        for number in 0..MESSAGES {
            let at = number as u32 * MESSAGE;
            let receive = buffer.recv(at..at + MESSAGE);
            vi.post_recv(&receive, number).must();
        }
        Self { vi, buffer }
    }

    fn take(&self, number: u64) {
        assert_eq!(received(self.vi).ok().must().token, number);
        self.check(number);
    }

    fn check(&self, number: u64) {
        let at = number as u32 * MESSAGE;
        self.buffer.assert_holds(at..at + MESSAGE, number);
    }
}

/// The client of [`churn`].
///
/// # Panics
/// When it is not served.
pub fn connect_over_and_over(nic: &Nic, name: &str, connects: u64) {
    let tag = nic.create_ptag().must();
    let memory = Memory::shared(MESSAGES as usize * MESSAGE as usize).must();
    for number in 0..MESSAGES {
        let message = pattern(number, MESSAGE as usize);
        memory
            .write(number as usize * MESSAGE as usize, &message)
            .must();
    }
    let region = nic.register(memory, &tag, Access::Local).must();
    let to = nic.address(name.as_bytes()).must();
    for _ in 0..connects {
        let vi = nic
            .create_vi(&ViConfig::new(&tag).reliability(LEVEL))
            .must();
        loop {
            match vi.connect(&to, &to, SOON) {
                Ok(_) => break,
                Err(Error::NoMatch) => std::thread::yield_now(),
                Err(error) => panic!("connecting: {error}"),
            }
        }
        for number in 0..MESSAGES {
            let at = number as u32 * MESSAGE;
            let send = Descriptor::send().segment(&region, at..at + MESSAGE);
            vi.post_send(&send, number).must();
        }
        for _ in 0..MESSAGES {
            vi.send_wait(SOON).must().ok().must();
        }
    }
}

/// A peer that was let into a region keeps its mapping when it may not any more.
///
/// # Panics
/// When it still reaches the region.
pub fn keep_a_mapping(lab: &dyn Lab) {
    type End = fn(&Site<'_>, &via::Region);
    let ends: [End; 3] = [
        |site, region| {
            site.ops()
                .deregister_mem(region.addr(), region.handle())
                .must()
        },
        |_, region| region.set_access(Access::Local).must(),
        |site, region| {
            let other = site.nic.create_ptag().must();
            let attributes = via::MemAttributes {
                ptag: Some(other.id()),
                enable_rdma_write: true,
                enable_rdma_read: false,
            };
            let (addr, handle) = (region.addr(), region.handle());
            site.ops()
                .set_mem_attributes(addr, handle, attributes)
                .must();
            // The tag is in use as long as the region is.
            std::mem::forget(other);
        },
    ];
    for level in Reliability::ALL {
        for (nth, end) in ends.iter().enumerate() {
            for stays in [false, true] {
                println!(
                    "{level}, end {nth}, {}",
                    if stays { "stays in" } else { "outside" }
                );
                keep_one(lab, level, *end, stays);
            }
        }
    }
}

fn keep_one(lab: &dyn Lab, level: Reliability, end: fn(&Site<'_>, &via::Region), stays: bool) {
    let site = Site::open(lab, Host::B);
    let config = site.config(level).accept_rdma_write();
    let vi = site.nic.create_vi(&config).must();
    let allocate = || Arc::new(Memory::shared(LEN).must());
    let (memory, other) = (allocate(), allocate());
    memory.write(0, &pattern(1, LEN)).must();
    let region = site
        .nic
        .register(Arc::clone(&memory), &site.tag, Access::Write)
        .must();
    let other = site.nic.register(other, &site.tag, Access::Write).must();
    let forger = ShmForger::new(vi.export().must());

    let (fd, slot) = ask_for(&forger, region.handle().0);
    let mapping = Memory::import(fd, LEN).must();
    mapping.write(7, b"granted").must();
    let mut wanted = pattern(1, LEN);
    wanted[7..14].copy_from_slice(b"granted");
    assert!(all_of(&memory) == wanted, "it is not the region");

    if stays {
        forger
            .control()
            .peer_grant(slot as usize)
            .must()
            .enter()
            .must();
    }
    end(&site, &region);
    mapping.write(0, &pattern(2, LEN)).must();
    assert!(all_of(&memory) == wanted, "the mapping still reaches it");
    if stays {
        // Whoever does not leave is thrown out.
        await_state(lab, &vi, ViState::Error);
    } else {
        // It is not let in again: the next answer is to another question.
        ask(&forger, region.handle().0);
        ask_for(&forger, other.handle().0);
    }
    vi.disconnect().must();
    // What the region ends with it ends once.
    if site
        .ops()
        .query_mem(region.addr(), region.handle())
        .is_err()
    {
        std::mem::forget(region);
    }
}

fn ask(forger: &ShmForger, handle: u32) {
    let mut bytes = [0; MESSAGE_MAX];
    forger.say(Message::MapRequest { handle }.encode(&mut bytes), &[]);
}

fn answer(forger: &ShmForger) -> (Message, Option<OwnedFd>) {
    forger.hear(SOON.must()).must()
}

fn ask_for(forger: &ShmForger, region: u32) -> (OwnedFd, u32) {
    ask(forger, region);
    match answer(forger) {
        (
            Message::MapReply {
                handle,
                slot,
                write: true,
                ..
            },
            Some(fd),
        ) if handle == region => (fd, slot),
        other => panic!("{other:?} instead of the region"),
    }
}

fn all_of(memory: &Memory) -> Vec<u8> {
    let mut bytes = vec![0; memory.len()];
    memory.read(0, &mut bytes).must();
    bytes
}

fn accept(lab: &dyn Lab, listener: &Listener) -> Conn {
    let mut conn = None;
    until(lab, "the attacker", || {
        conn = listener.accept().must();
        conn.is_some()
    });
    conn.must()
}

/// Of the churn: a message that comes whole is in memory when its send is done.
const LEVEL: Reliability = Reliability::ReliableReception;
const MESSAGES: u64 = 8;
const MESSAGE: u32 = 3000;
const RECEIVES: u32 = 8;
const SLOT: u32 = 256;
const LEN: usize = 10_000;
