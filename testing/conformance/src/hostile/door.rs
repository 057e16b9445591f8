//! Nonsense said to who waits or offers.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use proto::setup::{MESSAGE_MAX, VERSION};
use sys::net::Conn;
use via::{Descriptor, NetAddress, Reliability};

use super::garbage::message;
use crate::Lab;
use crate::buffer::{mix, pattern};
use crate::kit::{Must, SOON, Site, beside, incoming, received, request};
use crate::process::Process;

/// A process says nonsense to whoever waits or offers at an address, and honest clients come between.
///
/// # Panics
/// When they are not served.
pub fn withstand_nonsense_at_the_door(lab: &dyn Lab, clients: u64) {
    let (a, b) = Site::two(lab);
    let to = b.fresh_address();
    let from = a.fresh_address();
    let program = lab.peer_program().must();
    let doors = [door("wait", &to, None), door("peer", &from, Some(&to))];
    let offering = a.vi(Reliability::Unreliable);
    offering.ops().peer_request(&from, &to, SOON).must();
    // Under another name nobody would hear what is said there.
    drop(Conn::connect(doors[1].as_bytes()).must());
    offering.disconnect().must();
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

/// The socket of an address, or of one's offers to another, as providers/shm names it.
fn door(kind: &str, address: &NetAddress, to: Option<&NetAddress>) -> String {
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    let to = to.map(|to| hex(to.discriminator.as_bytes()) + "/");
    format!(
        "sovia-via-{VERSION}/{kind}/{}{}/{}0",
        hex(&address.host),
        hex(address.discriminator.as_bytes()),
        to.unwrap_or_default()
    )
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
