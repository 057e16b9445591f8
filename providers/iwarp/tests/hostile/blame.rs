//! What a VI's owner is told of what its peer does.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use proto::setup::{Address, Ask, Attributes, DISCRIMINATOR_MAX, MESSAGE_MAX, Message};
use via::{
    Access, CompletedOp, Descriptor, ErrorCode, Fault, Memory, Reliability, Vi, ViAttributes,
    ViConfig,
};

use super::raw::{Peer, fpdu, hex};
use super::{SOON, Site};

impl Site {
    /// Leads a peer that says it is one of ours to `vi`.
    fn let_one_of_ours_in(&self, vi: &Vi, level: Reliability) -> Peer {
        let attributes = ViAttributes::default();
        let nobody = Address {
            host: [0; 6],
            discriminator_len: 0,
            discriminator: [0; DISCRIMINATOR_MAX],
        };
        let ask = Ask {
            local: nobody,
            remote: Address {
                host: iwarp::host(self.config.address),
                ..nobody
            },
            attributes: Attributes {
                reliability: level.bits(),
                enable_rdma_write: false,
                enable_rdma_read: false,
                max_transfer_size: attributes.max_transfer_size,
                qos: attributes.qos,
            },
        };
        let mut room = [0; MESSAGE_MAX];
        let words = Message::Request(ask).encode(&mut room);
        let at = self.nic.address(b"").expect("short");
        thread::scope(|scope| {
            let peer = scope.spawn(|| Peer::introduce(self.config.address, words));
            let mut incoming = self.nic.connect_wait(&at, SOON).expect("a request");
            incoming.accept(vi).expect("accepts");
            peer.join().expect("no panic")
        })
    }
}

/// Its length comes with the immediate data, and is the peer's word.
#[test]
fn a_write_is_no_longer_than_what_was_written() {
    let site = Site::new(false);
    let (inbox, open) = (site.region(Access::Local), site.region(Access::Write));
    let (stag, to) = (open.remote(0).handle.0, open.remote(0).addr);
    for level in [Reliability::Unreliable, Reliability::ReliableDelivery] {
        let closed = ViConfig::new(&site.tag).reliability(level);
        let takes = closed.accept_rdma_write();
        for (config, written, told, fault) in [
            (closed, "", 0xffff_fff0, REFUSED),
            (takes, "", 1, REFUSED),
            (takes, "01020304", 5, REFUSED),
            (takes, "01020304", 4, None),
            (closed, "", 0, None),
        ] {
            let vi = site.nic.create_vi(&config).expect("a VI");
            for token in 1..=2 {
                let room = Descriptor::recv().segment(&inbox, 0..64);
                vi.post_recv(&room, token).expect("posts");
            }
            let mut peer = site.let_one_of_ours_in(&vi, level);
            peer.send(&fpdu(&hex(&format!("c140 {stag:08x} {to:016x} {written}"))));
            for (msn, told) in [(1, told), (2, 1)] {
                let ulpdu =
                    format!("4148 00000000 00000000 {msn:08x} 00000000 {told:08x} 0000abcd");
                peer.send(&fpdu(&hex(&ulpdu)));
                let end = vi.recv_wait(SOON).expect("ends");
                let what = format!("{level}, {written:?}, {told:#x}");
                // What was written before one message is not told of by the next.
                let fault = if msn == 2 { REFUSED } else { fault };
                assert_eq!(end.status.op(), CompletedOp::RemoteRdmaWrite, "{what}");
                assert_eq!(end.status.fault(), fault, "{what}");
                assert_eq!(end.length, if fault.is_none() { told } else { 0 });
                if fault.is_some() && level.is_reliable() {
                    assert_eq!(peer.terminate(), "02ff");
                    peer.hears_the_end();
                    break;
                }
            }
            site.nobody_noticed(told as u8);
        }
    }
}

/// What was refused for want of a right, or of a receive, is told as that, and nothing else is.
#[test]
fn a_violation_is_not_told_as_what_it_was_not() {
    let site = Site::new(false);
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let note = move |error: &via::AsyncError| heard.lock().expect("no panic").push(error.code);
    site.nic.on_error(note).expect("a handler");
    let other = site.nic.create_ptag().expect("a tag");
    let memory = Memory::private(4096).expect("memory");
    let foreign = site.nic.register(memory, &other, Access::ReadWrite);
    let foreign = foreign.expect("registers");
    let inbox = site.region(Access::Local);
    let (stag, to) = (foreign.remote(0).handle.0, foreign.remote(0).addr);
    let request = |msn: u32, len: u32| {
        fpdu(&hex(&format!(
            "4141 00000000 00000001 {msn:08x} 00000000 00000007 0000000000000000 {len:08x} {stag:08x} {to:016x}"
        )))
    };
    let tagged = |control: &str| {
        fpdu(&hex(&format!(
            "{control} {stag:08x} {to:016x} 0102030405060708"
        )))
    };
    let send = |control: &str| {
        fpdu(&hex(&format!(
            "{control} {stag:08x} 00000000 00000001 00000000 68"
        )))
    };
    let reads: Vec<u8> = (1..=64).flat_map(|msn| request(msn, 0)).collect();
    let (write_prot, read_prot) = (Some(ErrorCode::RdmawProt), Some(ErrorCode::RdmarProt));
    for (what, octets, code, error) in [
        ("a write", tagged("c140"), "1102", write_prot),
        ("a read", request(1, 4), "0103", read_prot),
        ("an invalidation", send("4144"), "0109", None),
        ("a write of another DDP", tagged("c040"), "1104", None),
        ("an answer of another DDP", tagged("c042"), "1104", None),
        ("more reads than agreed", reads, "1202", None),
    ] {
        let vi = site.victim();
        let room = Descriptor::recv().segment(&inbox, 0..64);
        vi.post_recv(&room, 1).expect("posts");
        let mut peer = site.let_in(&vi);
        peer.send(&fpdu(&hex(NOTHING)));
        peer.send(&octets);
        assert_eq!(peer.terminate(), code, "{what}");
        assert_eq!(until_lost(&told), error.as_slice(), "{what}");
    }
    // The answer to a read of ours brings more than was asked for.
    let vi = site.nic.create_vi(&ViConfig::new(&site.tag)).expect("a VI");
    let mut peer = site.let_in(&vi);
    peer.send(&fpdu(&hex(NOTHING)));
    let read = Descriptor::rdma_read(foreign.remote(0)).segment(&inbox, 0..4);
    vi.post_send(&read, 1).expect("posts");
    let asked = peer.record();
    assert_eq!(asked[..2], [0x41, 0x41], "a Read Request");
    let answer = [&hex("c142")[..], &asked[18..30], &[0x68; 5]].concat();
    peer.send(&fpdu(&answer));
    assert_eq!(peer.terminate(), "1101");
    assert_eq!(until_lost(&told), []);
    let end = vi.send_wait(SOON).expect("ends");
    assert_eq!(end.status.fault(), Some(Fault::Transport));
}

/// What the peer says that it cannot take is what was sent as that, and not what only looks like it.
#[test]
fn a_terminate_is_for_what_it_echoes() {
    let level = Reliability::ReliableReception;
    let site = Site::new(false);
    let outbox = site.region(Access::Local);
    // Never looked at here: it is the peer's.
    let there = outbox.remote(0);
    let sent = || Descriptor::send().segment(&outbox, 0..4);
    let written = || Descriptor::rdma_write(there).segment(&outbox, 0..4);
    let answer = hex("c142 00000007 0000000000000000");
    for (what, descriptor, code, echoed, fault) in [
        (
            "a send",
            sent(),
            "1202",
            Echo::First,
            Fault::RemoteDescriptor,
        ),
        (
            "the read behind it",
            sent(),
            "1202",
            Echo::Behind,
            Fault::Flushed,
        ),
        (
            "a send, and not how",
            sent(),
            "1202",
            Echo::None,
            Fault::RemoteDescriptor,
        ),
        (
            "a write",
            written(),
            "1100",
            Echo::First,
            Fault::RdmaProtection,
        ),
        (
            "the answer to a read",
            written(),
            "1100",
            Echo::Other(&answer),
            Fault::Flushed,
        ),
    ] {
        let config = ViConfig::new(&site.tag).reliability(level);
        let vi = site.nic.create_vi(&config).expect("a VI");
        let mut peer = site.let_one_of_ours_in(&vi, level);
        peer.send(&fpdu(&hex(NOTHING)));
        vi.post_send(&descriptor, 1).expect("posts");
        let (first, behind) = (peer.record(), peer.record());
        assert_eq!(behind[..2], [0x41, 0x41], "a Read Request");
        let echoed = match echoed {
            Echo::None => &[],
            Echo::First => &first[..first.len() - 4],
            Echo::Behind => &behind[..18],
            Echo::Other(header) => header,
        };
        let mut ulpdu = hex("4147 00000000 00000002 00000001 00000000");
        ulpdu.extend(hex(code));
        ulpdu.extend(hex(if echoed.is_empty() {
            "0000"
        } else {
            "4000 0000"
        }));
        ulpdu.extend(echoed);
        peer.send(&fpdu(&ulpdu));
        let end = vi.send_wait(SOON).expect("ends");
        assert_eq!(end.status.fault(), Some(fault), "{what}");
    }
}

/// The header that a Terminate brings back.
enum Echo<'a> {
    None,
    /// Of what the descriptor says.
    First,
    /// Of the Read behind that, by which it is confirmed.
    Behind,
    Other(&'a [u8]),
}

/// What was told until a connection was lost.
fn until_lost(told: &Mutex<Vec<ErrorCode>>) -> Vec<ErrorCode> {
    let began = Instant::now();
    loop {
        let mut told = told.lock().expect("no panic");
        if told.last() == Some(&ErrorCode::ConnLost) {
            told.pop();
            return std::mem::take(&mut *told);
        }
        drop(told);
        assert!(Some(began.elapsed()) < SOON, "it goes on");
        thread::yield_now();
    }
}

const NOTHING: &str = "c140 00000001 0000000000000000";
const REFUSED: Option<Fault> = Some(Fault::RdmaProtection);
