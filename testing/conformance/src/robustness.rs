//! P: threads, processes, nonsense.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::Mutex;

use proto::frame::{HEAD_WORDS, Head, Kind as FrameKind};
use via::provider::{CqId, MemHandle, PtagId, ViId};
use via::{
    Access, Descriptor, Error, MemAttributes, Queue, Reliability, Vi, ViAttributes, ViState,
};

use crate::buffer::{Buffer, Kind, mix, pattern};
use crate::kit::{
    Must, Pair, SOON, Site, beside, connect, crowd, each_level, each_reliable_level, fresh_name,
    incoming, received, refused, sent,
};
use crate::lab::{Host, Lab};
use crate::process::Process;
use crate::vi::plain;

pub(crate) fn s202_sixteen_threads_on_one_queue(lab: &dyn Lab) {
    each_reliable_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let cq = b.nic.create_cq(1024).must();
        let pairs: Vec<(Vi, Vi)> = (0..THREADS)
            .map(|_| {
                let server = b.nic.create_vi(&b.config(level).recv_cq(&cq)).must();
                let client = a.vi(level);
                for token in 0..EACH {
                    server.post_recv(&Descriptor::recv(), token).must();
                }
                connect((&a, &client), (&b, &server));
                (client, server)
            })
            .collect();
        let servers: HashMap<ViId, &Vi> = pairs.iter().map(|(_, vi)| (vi.id(), vi)).collect();
        let seen: Mutex<HashMap<ViId, Vec<u64>>> = Mutex::default();
        let send = |client: &Vi| {
            for token in 0..EACH {
                client.post_send(&Descriptor::send(), token).must();
                sent(client).ok().must();
            }
        };
        let receive = || {
            for _ in 0..EACH {
                let entry = cq.wait(SOON).must();
                let done = servers[&entry.vi].recv_done().must().completion().must();
                let token = done.ok().must().token;
                seen.lock().must().entry(entry.vi).or_default().push(token);
            }
        };
        let jobs = pairs.iter().flat_map(|(client, _)| {
            let jobs: [Box<dyn FnOnce() + Send>; 2] =
                [Box::new(move || send(client)), Box::new(receive)];
            jobs
        });
        crowd(lab, jobs);
        assert_eq!(cq.done(), Ok(None));
        let seen = seen.into_inner().must();
        assert_eq!(seen.len(), THREADS);
        for mut tokens in seen.into_values() {
            tokens.sort_unstable();
            assert!(tokens.into_iter().eq(0..EACH));
        }
    });
}

pub(crate) fn s203_two_threads_post_to_one_queue(lab: &dyn Lab) {
    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        for queue in [Queue::Recv, Queue::Send] {
            let vi = if queue == Queue::Send {
                &pair.va
            } else {
                &pair.vb
            };
            if queue == Queue::Send {
                (0..2 * MESSAGES).for_each(|t| pair.vb.post_recv(&Descriptor::recv(), t).must());
            }
            let post = |first: u64| {
                for token in 0..MESSAGES {
                    vi.ops()
                        .post(queue, &Descriptor::send(), first + token)
                        .must();
                }
            };
            beside(lab, || post(0), || post(MESSAGES));
            if queue == Queue::Recv {
                (0..2 * MESSAGES).for_each(|t| pair.va.post_send(&Descriptor::send(), t).must());
            }
            let drain = |vi: &Vi, queue| -> Vec<u64> {
                let next = |_| crate::kit::next(vi, queue).ok().must().token;
                (0..2 * MESSAGES).map(next).collect()
            };
            let mut tokens = drain(vi, queue);
            // In the order of each thread, and all of them.
            for first in [0, MESSAGES] {
                let ours = tokens
                    .iter()
                    .filter(|token| (first..first + MESSAGES).contains(token));
                assert!(ours.copied().eq(first..first + MESSAGES));
            }
            tokens.sort_unstable();
            assert!(tokens.into_iter().eq(0..2 * MESSAGES));
            match queue {
                Queue::Recv => drain(&pair.va, Queue::Send),
                Queue::Send => drain(&pair.vb, Queue::Recv),
            };
        }
    });
}

pub(crate) fn s204_nonsense_is_refused(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    let buffer = Buffer::new(&site, 4096);
    let cq = site.nic.create_cq(8).must();
    let vi = site
        .nic
        .create_vi(&site.config(Reliability::Unreliable).recv_cq(&cq))
        .must();
    let (addr, handle) = (buffer.region().addr(), buffer.handle());
    let ops = site.ops();
    let invalid = Error::InvalidParameter;
    for round in 0..5000 {
        let random = |index| mix(round, index);
        let number = random(0) as u32;
        let fits = [handle.0, site.tag.id().0, cq.id().0, vi.id().0].contains(&number);
        if fits {
            continue;
        }
        let (wrong, tag) = (MemHandle(number), PtagId(number));
        for at in [addr, random(1), 0] {
            refused(ops.query_mem(at, wrong), invalid);
            refused(ops.deregister_mem(at, wrong), invalid);
            let attributes = MemAttributes {
                ptag: Some(site.tag.id()),
                ..Default::default()
            };
            refused(ops.set_mem_attributes(at, wrong, attributes), invalid);
        }
        if random(1) != addr {
            refused(ops.query_mem(random(1), handle), invalid);
            refused(ops.deregister_mem(random(1), handle), invalid);
        }
        refused(ops.destroy_ptag(tag), Error::InvalidPtag);
        let foreign = ViAttributes {
            ptag: Some(tag),
            ..plain(&site)
        };
        refused(
            ops.create_vi(foreign, None, None).map(drop),
            Error::InvalidPtag,
        );
        let unbound = ops.create_vi(plain(&site), Some(CqId(number)), Some(cq.id()));
        refused(unbound.map(drop), invalid);
        let junk = pattern(round, (random(2) % 200) as usize);
        let imported = ops.import(&**vi.ops(), &junk, Vec::new());
        assert!(matches!(
            imported,
            Err(Error::InvalidParameter | Error::NotSupported)
        ));
    }
    // Nothing has changed.
    assert_eq!(vi.state(), Ok(ViState::Idle));
    assert_eq!(ops.query_mem(addr, handle).must().ptag, Some(site.tag.id()));
    assert_eq!(cq.done(), Ok(None));
    buffer.assert_untouched();
}

pub(crate) fn s206_signals_do_not_end_a_wait(lab: &dyn Lab) {
    for role in ["wait-vi", "wait-cq", "wait-connect", "wait-peer"] {
        let process = Process::of(lab, role, &[OsStr::new(WAIT_MS)]);
        times_out_in_spite_of_signals(process, role);
    }

    // The other end of a send stands still, so that nothing acknowledges it.
    let name = fresh_name();
    let name = OsStr::new(&name);
    let mut process = Process::of(lab, "wait-send", &[name, OsStr::new(WAIT_MS)]);
    let level = Reliability::ReliableReception.bits().to_string();
    let mut peer = Process::of(lab, "connect", &[name, OsStr::new(&level)]);
    assert_eq!(peer.line(), "connected");
    assert_eq!(process.line(), "connected");
    peer.stop(lab);
    process.tell();
    times_out_in_spite_of_signals(process, "wait-send");

    // A request arrives, and nobody answers it.
    let site = Site::open(lab, Host::B);
    let at = site.fresh_address();
    let name = String::from_utf8(at.discriminator.as_bytes().to_vec()).must();
    let arguments = [OsStr::new(&name), OsStr::new(WAIT_MS)];
    let process = Process::of(lab, "request", &arguments);
    let _unanswered = incoming(site.ops(), &at);
    times_out_in_spite_of_signals(process, "request");
}

#[track_caller]
fn times_out_in_spite_of_signals(mut process: Process, role: &str) {
    assert_eq!(process.line(), "waiting");
    process.stop_and_continue(200);
    assert_eq!(process.line(), "timeout", "{role}");
    process.end();
}

pub(crate) fn s207_nothing_is_left_over(lab: &dyn Lab) {
    let cycle = |round: u64| {
        let pair = Pair::for_rdma(lab, Reliability::ReliableDelivery);
        let source = Buffer::new(&pair.a, 5000);
        let target = Buffer::with(&pair.b, 5000, Kind::Shared, Access::Write);
        source.fill(0..5000, round);
        pair.vb.post_recv(&target.recv(0..5000), 0).must();
        pair.va.post_send(&source.send(0..5000), 0).must();
        received(&pair.vb).ok().must();
        sent(&pair.va).ok().must();
        let write = Descriptor::rdma_write(target.remote(0)).raw_segment(source.segment(0..100));
        pair.va.post_send(&write, 1).must();
        sent(&pair.va).ok().must();
        let (a, b) = (pair.a.nic.clone(), pair.b.nic.clone());
        drop((source, target));
        drop(pair);
        a.ops().close();
        b.ops().close();
    };
    // Once what is made only once has been made.
    (0..100).for_each(cycle);
    let before = Holdings::now();
    (100..1100).for_each(cycle);
    let after = Holdings::now();
    after.assert_no_more_than(&before);
}

/// What this process holds.
#[derive(Debug)]
pub(crate) struct Holdings {
    descriptors: usize,
    threads: usize,
    bytes: u64,
}

impl Holdings {
    pub(crate) fn now() -> Self {
        Self {
            descriptors: sys::fds::open_count().must(),
            threads: sys::fds::thread_count().must(),
            bytes: sys::fds::footprint(None).must().resident,
        }
    }

    #[track_caller]
    pub(crate) fn assert_no_more_than(&self, before: &Self) {
        println!("{before:?} before, {self:?} after");
        assert!(self.descriptors <= before.descriptors + OTHERS);
        assert!(self.threads <= before.threads + OTHERS);
        assert!(self.bytes <= before.bytes + BYTES);
    }
}

pub(crate) fn s208_garbage_harms_its_own_connection_only(lab: &dyn Lab) {
    each_level(lab, |level| {
        for round in 0..40 {
            let pair = Pair::for_rdma(lab, level);
            let victim = victim(&pair, level);
            let (target, secret) = arm(&pair, &victim);
            let mut forger = lab.forge(&victim).must();
            let reach = forger.reach() as u64;
            for step in 0..300 {
                let at = (mix(round, 2 * step) % reach) as usize;
                let len = 1 + mix(round, 2 * step + 1) as usize % 64;
                forger.scribble(at, &pattern(round << 32 | step, len));
                if step % 16 == 0 {
                    forger.ring();
                    victim.recv_done().must();
                    pair.exchange_empty();
                }
            }
            target.assert_untouched_but(0..2048);
            secret.assert_untouched();
            victim.disconnect().must();
        }
    });
}

pub(crate) fn s209_forged_frames_stay_on_their_connection(lab: &dyn Lab) {
    each_level(lab, |level| {
        for forged in forgeries() {
            let pair = Pair::for_rdma(lab, level);
            let victim = victim(&pair, level);
            let (target, secret) = arm(&pair, &victim);
            let mut forger = lab.forge(&victim).must();
            for head in [forged, forged] {
                forger.send(&head, &[0x66; 64]);
                forger.ring();
                victim.recv_done().must();
            }
            pair.exchange_empty();
            pair.assert_connected();
            target.assert_untouched_but(0..2048);
            secret.assert_untouched();
            victim.disconnect().must();
        }
    });
}

fn victim(pair: &Pair<'_>, level: Reliability) -> Vi {
    let config = pair.b.config(level).accept_rdma_write();
    pair.b.nic.create_vi(&config).must()
}

/// Posts receives that a forger may fill, beside memory that it may not.
fn arm(pair: &Pair<'_>, victim: &Vi) -> (Buffer, Buffer) {
    let target = Buffer::new(&pair.b, 4096);
    for token in 0..8 {
        let at = u32::try_from(token).must() * 256;
        victim.post_recv(&target.recv(at..at + 256), token).must();
    }
    (target, Buffer::new(&pair.b, 4096))
}

/// Frames that no honest peer sends, or not now.
fn forgeries() -> Vec<[u32; HEAD_WORDS]> {
    let honest = Head {
        len: 64,
        msg_len: 64,
        ..Head::bare(FrameKind::Send, 0)
    };
    let mut heads = Vec::new();
    for seq in [1, 7, u32::MAX / 2, u32::MAX] {
        heads.push(Head { seq, ..honest }.encode());
        heads.push(Head::bare(FrameKind::Ack, seq).encode());
        heads.push(
            Head {
                offset: 1,
                ..Head::bare(FrameKind::Refused, seq)
            }
            .encode(),
        );
        heads.push(
            Head {
                kind: FrameKind::ReadResponse,
                seq,
                ..honest
            }
            .encode(),
        );
    }
    for len in [65, 4096, u32::MAX - 1, u32::MAX] {
        heads.push(Head { len, ..honest }.encode());
        heads.push(
            Head {
                msg_len: len,
                ..honest
            }
            .encode(),
        );
        heads.push(
            Head {
                offset: len,
                ..honest
            }
            .encode(),
        );
        heads.push(
            Head {
                kind: FrameKind::RdmaWrite,
                handle: len,
                addr: u64::from(len),
                ..honest
            }
            .encode(),
        );
        let request = Head {
            msg_len: len,
            handle: len,
            ..Head::bare(FrameKind::ReadRequest, 0)
        };
        heads.push(request.encode());
    }
    heads.push(
        Head {
            placed: true,
            ..honest
        }
        .encode(),
    );
    for word in 0..HEAD_WORDS {
        let mut broken = honest.encode();
        broken[word] ^= 0x8000_0080;
        heads.push(broken);
    }
    heads
}

const THREADS: usize = 16;
/// Of each thread. In virtual time whatever happens wakes all who sleep, and they yield: beside others that want the CPUs 100 took two minutes.
const EACH: u64 = 30;
const MESSAGES: u64 = 300;
const WAIT_MS: &str = "500";
/// Descriptors and threads that come and go with the test harness.
const OTHERS: usize = 20;
/// A page a cycle would be more.
const BYTES: u64 = 3 << 20;
