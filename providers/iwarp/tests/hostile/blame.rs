//! What a VI's owner is told of what its peer does.

use std::thread;

use proto::setup::{Address, Ask, Attributes, DISCRIMINATOR_MAX, MESSAGE_MAX, Message};
use via::{Access, CompletedOp, Descriptor, Fault, Reliability, Vi, ViAttributes, ViConfig};

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

const REFUSED: Option<Fault> = Some(Fault::RdmaProtection);
