//! Mappings that outlive the right to them.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use proto::setup::{MESSAGE_MAX, Message};
use sys::mem::Memory;
use via::{Access, Reliability, ViState};

use crate::Lab;
use crate::buffer::pattern;
use crate::kit::{Must, SOON, Site, await_state};
use crate::lab::{Host, ShmForger};

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
            for then in [Then::Outside, Then::StaysIn, Then::Left] {
                println!("{level}, end {nth}, {then:?}");
                keep_one(lab, level, *end, then);
            }
        }
    }
}

/// Where the peer is when its right ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// Not writing.
    Outside,
    /// Writing, as it says, and goes on.
    StaysIn,
    /// Not connected any more.
    Left,
}

fn keep_one(lab: &dyn Lab, level: Reliability, end: fn(&Site<'_>, &via::Region), then: Then) {
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

    let grant = forger.control().peer_grant(slot as usize);
    match then {
        Then::Outside => {}
        Then::StaysIn => {
            grant.must().enter().must();
        }
        Then::Left => {
            vi.disconnect().must();
            assert_eq!(grant.must().enter(), None, "the grant outlives it");
        }
    }
    end(&site, &region);
    mapping.write(0, &pattern(2, LEN)).must();
    assert!(all_of(&memory) == wanted, "the mapping still reaches it");
    match then {
        Then::Outside => {
            // It is not let in again: the next answer is to another question.
            ask(&forger, region.handle().0);
            ask_for(&forger, other.handle().0);
            vi.disconnect().must();
        }
        Then::StaysIn => {
            // Whoever does not leave is thrown out.
            await_state(lab, &vi, ViState::Error);
            vi.disconnect().must();
        }
        Then::Left => {}
    }
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

const LEN: usize = 10_000;
