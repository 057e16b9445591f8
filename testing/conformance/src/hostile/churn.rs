//! Clients that come and go, and die.

use std::ffi::OsStr;
use std::path::Path;

use sys::mem::Memory;
use via::{Access, Descriptor, Done, Error, NetAddress, Nic, Reliability, Vi, ViConfig, ViState};

use crate::Lab;
use crate::buffer::{Buffer, mix, pattern};
use crate::kit::{Must, SOON, Site, await_state, incoming, received};
use crate::lab::Host;
use crate::process::Process;
use crate::robustness::Holdings;

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

/// Of the churn: a message that comes whole is in memory when its send is done.
const LEVEL: Reliability = Reliability::ReliableReception;
const MESSAGES: u64 = 8;
const MESSAGE: u32 = 3000;
