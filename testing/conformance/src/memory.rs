//! C: protection tags and registered memory.

use std::collections::HashSet;
use std::sync::Arc;

use via::provider::{MemHandle, PtagId};
use via::{
    Access, Error, ErrorCode, Fault, MemAttributes, Memory, Queue, Reliability, RemoteSegment,
    Segment, ViAttributes,
};

use crate::buffer::{Buffer, Kind};
use crate::kit::{
    Must, Pair, Site, assert_fault, each_level, each_reliable_level, open_compat, received,
    refused, sent,
};
use crate::lab::{Host, Lab};
use crate::process::Process;

pub(crate) fn s027_tags_differ(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    assert_ne!(site.tag.id(), site.nic.create_ptag().must().id());
}

pub(crate) fn s028_tags_run_out_and_come_back(lab: &dyn Lab) {
    let nic = Site::open(lab, Host::A).nic;
    let most = nic.attributes().max_ptags as usize;
    let mut tags: Vec<_> = (0..most).map(|_| nic.create_ptag().must()).collect();
    assert_eq!(
        tags.iter().map(via::Ptag::id).collect::<HashSet<_>>().len(),
        most
    );
    refused(nic.create_ptag(), Error::Resource);
    tags.truncate(most - 1);
    tags.push(nic.create_ptag().must());
    refused(nic.create_ptag(), Error::Resource);
}

pub(crate) fn s029_tag_in_use_stays(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    let ops = site.ops();
    let vi = site.vi(Reliability::Unreliable);
    refused(ops.destroy_ptag(site.tag.id()), Error::Resource);
    drop(vi);
    let buffer = Buffer::new(&site, 1);
    refused(ops.destroy_ptag(site.tag.id()), Error::Resource);
    drop(buffer);

    let tag = ops.create_ptag().must();
    let memory = Arc::new(Memory::private(1).must());
    let handle = ops
        .register_mem(Arc::clone(&memory), attributes(tag))
        .must();
    refused(ops.destroy_ptag(tag), Error::Resource);
    // A region moves from one tag to another.
    let moved = attributes(site.tag.id());
    ops.set_mem_attributes(memory.addr(), handle, moved).must();
    ops.destroy_ptag(tag).must();
    refused(ops.destroy_ptag(site.tag.id()), Error::Resource);
    ops.deregister_mem(memory.addr(), handle).must();
}

pub(crate) fn s030_unknown_tag_cannot_be_destroyed(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    refused(site.ops().destroy_ptag(NO_TAG), Error::InvalidPtag);
    let tag = site.ops().create_ptag().must();
    site.ops().destroy_ptag(tag).must();
    refused(site.ops().destroy_ptag(tag), Error::InvalidPtag);
}

pub(crate) fn s031_registers_one_byte(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let one = Memory::private(1).must();
        one.write(0, &[0x5a]).must();
        let one = pair.a.nic.register(one, &pair.a.tag, Access::Local).must();
        let target = Buffer::new(&pair.b, 8);
        pair.vb.post_recv(&target.recv(0..8), 0).must();
        let send = via::Descriptor::send().segment(&one, 0..1);
        pair.va.post_send(&send, 0).must();
        assert_eq!(received(&pair.vb).ok().must().length, 1);
        assert_eq!(target.read(0..1), [0x5a]);
        target.assert_untouched_but(0..1);
    });
}

pub(crate) fn s033_too_large_a_region_is_refused(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    let block = site.nic.attributes().max_register_block_bytes;
    let Some(Ok(memory)) = usize::try_from(block + 1).ok().map(Memory::shared) else {
        println!("this host has no {block} bytes of address space");
        return;
    };
    let register = |memory: Memory| site.nic.register(memory, &site.tag, Access::Local);
    refused(register(memory), Error::Resource);

    let all = site.nic.attributes().max_register_bytes;
    let block = usize::try_from(block).must();
    let most = usize::try_from(all / block as u64).must();
    if most > REGIONS_TRIED {
        println!("{most} regions of the largest size are too many to try");
        return;
    }
    let memory = Arc::new(Memory::shared(block).must());
    let register = || {
        site.nic
            .register(Arc::clone(&memory), &site.tag, Access::Local)
    };
    let mut held: Vec<_> = (0..most).map(|_| register().must()).collect();
    refused(register(), Error::Resource);
    held.pop();
    held.push(register().must());
}

pub(crate) fn s034_regions_run_out_and_come_back(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    let most = site.nic.attributes().max_register_regions;
    let memory = Arc::new(Memory::private(1).must());
    let register = || {
        site.nic
            .register(Arc::clone(&memory), &site.tag, Access::Local)
    };
    let mut held: Vec<_> = (0..most).map(|_| register().must()).collect();
    refused(register(), Error::Resource);
    held.pop();
    held.push(register().must());
    refused(register(), Error::Resource);
}

pub(crate) fn s035_handle_zero_names_nothing(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    let memory = Arc::new(Memory::private(64).must());
    let register = || {
        site.nic
            .register(Arc::clone(&memory), &site.tag, Access::Local)
            .must()
    };
    let mut kept = Vec::new();
    for round in 0..20_000 {
        let region = register();
        assert_ne!(region.handle(), MemHandle(0));
        if round % 100 == 0 {
            kept.push(region);
        }
    }
    refused(
        site.ops().query_mem(memory.addr(), MemHandle(0)),
        Error::InvalidParameter,
    );
}

pub(crate) fn s036_one_range_has_many_handles(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let source = Buffer::new(&pair.a, 64);
        source.fill(0..64, 36);
        let memory = Arc::clone(source.region().memory());
        let second = pair
            .a
            .nic
            .register(memory, &pair.a.tag, Access::Local)
            .must();
        assert_ne!(source.handle(), second.handle());
        drop(second);

        let target = Buffer::new(&pair.b, 64);
        pair.vb.post_recv(&target.recv(0..64), 0).must();
        pair.va.post_send(&source.send(0..64), 0).must();
        assert_eq!(received(&pair.vb).ok().must().length, 64);
        target.assert_holds(0..64, 36);
    });
}

pub(crate) fn s037_unknown_tag_registers_nothing(lab: &dyn Lab) {
    let (a, b) = Site::two(lab);
    let memory = || Arc::new(Memory::private(64).must());
    let register = |tag| a.ops().register_mem(memory(), attributes(tag));
    refused(register(NO_TAG), Error::InvalidPtag);
    let gone = a.ops().create_ptag().must();
    a.ops().destroy_ptag(gone).must();
    refused(register(gone), Error::InvalidPtag);
    refused(
        a.nic.register(memory(), &b.tag, Access::Local),
        Error::InvalidPtag,
    );

    let buffer = Buffer::new(&a, 1);
    let addr = buffer.region().addr();
    let set = a
        .ops()
        .set_mem_attributes(addr, buffer.handle(), attributes(NO_TAG));
    refused(set, Error::InvalidPtag);
}

pub(crate) fn s038_rdma_read_right_needs_rdma_read(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    let memory = Memory::private(64).must();
    let registered = site.nic.register(memory, &site.tag, Access::Read);
    if site.nic.attributes().rdma_read.bits() == 0 {
        refused(registered, Error::InvalidRdmaRead);
    } else {
        println!("this NIC has RDMA read: the right is granted");
        registered.must();
    }
}

pub(crate) fn s039_region_without_tag_is_for_old_programs(lab: &dyn Lab) {
    let memory = || Arc::new(Memory::private(64).must());
    let strict = Site::open(lab, Host::A);
    let untagged = MemAttributes::default();
    refused(
        strict.ops().register_mem(memory(), untagged),
        Error::InvalidPtag,
    );

    let compat = open_compat(lab);
    let memory = memory();
    let handle = compat.register_mem(Arc::clone(&memory), untagged).must();
    assert_eq!(compat.query_mem(memory.addr(), handle), Ok(untagged));
    compat.close();
}

pub(crate) fn s040_deregisters_only_what_is_registered(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    let buffer = Buffer::new(&site, 4096);
    let other = Buffer::new(&site, 64);
    let (addr, handle) = (buffer.region().addr(), buffer.handle());
    let refuse = |addr, handle| {
        refused(
            site.ops().deregister_mem(addr, handle),
            Error::InvalidParameter,
        );
    };
    refuse(addr + 1, handle);
    refuse(addr + 4096, handle);
    refuse(0, handle);
    refuse(addr, MemHandle(0));
    refuse(addr, MemHandle(!handle.0));
    refuse(addr, other.handle());
    assert!(site.ops().query_mem(addr, handle).is_ok());
    site.ops()
        .query_mem(addr + 1, handle)
        .expect_err("not its address");

    let memory = Arc::new(Memory::private(64).must());
    let tagged = attributes(site.tag.id());
    let gone = site.ops().register_mem(Arc::clone(&memory), tagged).must();
    site.ops().deregister_mem(memory.addr(), gone).must();
    refuse(memory.addr(), gone);
}

pub(crate) fn s041_deregistered_memory_is_not_sent(lab: &dyn Lab) {
    for kind in Kind::BOTH {
        each_level(lab, |level| {
            let pair = Pair::new(lab, level);
            let source = Buffer::with(&pair.a, 64, kind, Access::Local);
            let stale = source.segment(0..64);
            drop(source);
            let target = Buffer::new(&pair.b, 64);
            pair.vb.post_recv(&target.recv(0..64), 0).must();
            pair.va
                .post_send(&via::Descriptor::send().raw_segment(stale), 41)
                .must();
            assert_fault(sent(&pair.va), 41, Fault::Protection);
            pair.assert_survives_only(level);
            target.assert_untouched();
        });
    }
}

pub(crate) fn s042_query_tells_what_was_set(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    let second = site.nic.create_ptag().must();
    let memory = Arc::new(Memory::shared(4096).must());
    let reads = site.nic.attributes().rdma_read.bits() != 0;
    let ops = site.ops();
    for first in variants(site.tag.id(), reads) {
        let handle = ops.register_mem(Arc::clone(&memory), first).must();
        assert_eq!(ops.query_mem(memory.addr(), handle), Ok(first));
        for changed in variants(second.id(), reads) {
            ops.set_mem_attributes(memory.addr(), handle, changed)
                .must();
            assert_eq!(ops.query_mem(memory.addr(), handle), Ok(changed));
        }
        let wrong = ops.set_mem_attributes(memory.addr() + 1, handle, first);
        refused(wrong, Error::InvalidParameter);
        ops.deregister_mem(memory.addr(), handle).must();
        refused(
            ops.query_mem(memory.addr(), handle),
            Error::InvalidParameter,
        );
        let late = ops.set_mem_attributes(memory.addr(), handle, first);
        refused(late, Error::InvalidParameter);
    }
}

pub(crate) fn s043_revoked_right_stops_the_next_write(lab: &dyn Lab) {
    for kind in Kind::BOTH {
        each_level(lab, |level| {
            let pair = Pair::for_rdma(lab, level);
            let source = Buffer::new(&pair.a, 256);
            source.fill(0..256, 43);
            let target = Buffer::with(&pair.b, 256, kind, Access::Write);
            let write = || {
                via::Descriptor::rdma_write(target.remote(0)).raw_segment(source.segment(0..256))
            };
            pair.va.post_send(&write(), 0).must();
            sent(&pair.va).ok().must();
            pair.exchange_empty();
            target.assert_holds(0..256, 43);

            target.region().set_access(Access::Local).must();
            target.reset();
            pair.va.post_send(&write(), 1).must();
            pair.b
                .errors
                .wait_for(lab, ErrorCode::RdmawProt, pair.vb.id());
            target.assert_untouched();
            pair.assert_survives_only(level);
        });
    }
}

pub(crate) fn s044_handles_of_others_are_refused(lab: &dyn Lab) {
    each_reliable_level(lab, |level| {
        let pair = Pair::new(lab, level);
        let other = Site::open(lab, Host::A);
        let foreign = Buffer::new(&other, 64);
        let query = pair
            .a
            .ops()
            .query_mem(foreign.region().addr(), foreign.handle());
        refused(query, Error::InvalidParameter);
        let send = via::Descriptor::send().raw_segment(foreign.segment(0..64));
        pair.va.post_send(&send, 44).must();
        assert_fault(sent(&pair.va), 44, Fault::Protection);
        pair.assert_broken();
    });

    let (a, b) = Site::two(lab);
    let cq = a.nic.create_cq(16).must();
    let attributes = ViAttributes {
        ptag: Some(b.tag.id()),
        ..ViAttributes::default()
    };
    let bound = b.ops().create_vi(attributes, Some(cq.id()), None);
    refused(bound.map(drop), Error::InvalidParameter);
    foreign_vi_is_not_accepted(lab);

    if lab.peer_program().is_some() {
        another_process_is_refused(lab);
    }
}

/// What another process registered is nothing to calls about memory here, nothing to send or to receive into, and no place to write to.
fn another_process_is_refused(lab: &dyn Lab) {
    let mut process = Process::of(lab, "register", &[]);
    let told = process.line();
    let (addr, handle) = told.split_once(' ').must();
    let (addr, handle) = (addr.parse().must(), MemHandle(handle.parse().must()));
    each_reliable_level(lab, |level| {
        let segment = Segment {
            addr,
            handle,
            len: 64,
        };
        let pair = Pair::for_rdma(lab, level);
        let ops = pair.a.ops();
        let invalid = Error::InvalidParameter;
        refused(ops.query_mem(addr, handle), invalid);
        refused(ops.deregister_mem(addr, handle), invalid);
        let ours = attributes(pair.a.tag.id());
        refused(ops.set_mem_attributes(addr, handle, ours), invalid);
        let send = via::Descriptor::send().raw_segment(segment);
        pair.va.post_send(&send, 1).must();
        assert_fault(sent(&pair.va), 1, Fault::Protection);
        pair.assert_broken();

        let pair = Pair::for_rdma(lab, level);
        let recv = via::Descriptor::recv().raw_segment(segment);
        pair.vb.post_recv(&recv, 2).must();
        let ours = Buffer::new(&pair.a, 64);
        pair.va.post_send(&ours.send(0..64), 3).must();
        assert_fault(received(&pair.vb), 2, Fault::Protection);
        pair.assert_broken();

        let pair = Pair::for_rdma(lab, level);
        let ours = Buffer::new(&pair.a, 64);
        let write = via::Descriptor::rdma_write(RemoteSegment { addr, handle });
        let write = write.raw_segment(ours.segment(0..64));
        pair.va.post_send(&write, 4).must();
        pair.assert_broken();
    });
    process.end();
}

fn foreign_vi_is_not_accepted(lab: &dyn Lab) {
    let (a, b) = Site::two(lab);
    let other = Site::open(lab, Host::B);
    let (va, foreign) = (
        a.vi(Reliability::Unreliable),
        other.vi(Reliability::Unreliable),
    );
    let to = b.fresh_address();
    let (asked, ()) = crate::kit::beside(
        lab,
        || crate::kit::request(lab, &**va.ops(), &to, &to, crate::kit::SOON),
        || {
            let mut incoming = crate::kit::incoming(b.ops(), &to);
            refused(incoming.accept(&**foreign.ops()), Error::InvalidParameter);
            incoming.reject().must();
        },
    );
    refused(asked, Error::Reject);
    assert_eq!(foreign.ops().is_empty(Queue::Send), Ok(true));
}

fn attributes(tag: PtagId) -> MemAttributes {
    MemAttributes {
        ptag: Some(tag),
        ..MemAttributes::default()
    }
}

fn variants(tag: PtagId, reads: bool) -> impl Iterator<Item = MemAttributes> {
    let flags = [(false, false), (true, false), (false, true), (true, true)];
    let offered = flags.into_iter().filter(move |(_, read)| reads || !read);
    offered.map(move |(write, read)| MemAttributes {
        ptag: Some(tag),
        enable_rdma_write: write,
        enable_rdma_read: read,
    })
}

/// Never created by any test.
pub(crate) const NO_TAG: PtagId = PtagId(u32::MAX - 7);
const REGIONS_TRIED: usize = 65536;
