//! RDMA writes that are said to be in their place.

use proto::frame::{Head, Kind as FrameKind};
use via::{Access, CompletedOp, Fault, Reliability, ViConfig, ViState};

use crate::Lab;
use crate::buffer::{Buffer, Kind};
use crate::kit::{Must, Site, await_state, received};
use crate::lab::{Forger, Host, ShmForger};

/// A peer tells of writes that it may not have made.
///
/// # Panics
/// When one of them is believed.
pub fn doubt_what_is_told(lab: &dyn Lab) {
    for level in Reliability::ALL {
        let site = Site::open(lab, Host::B);
        let (closed, open) = (site.config(level), site.config(level).accept_rdma_write());
        let memory = |access| Buffer::with(&site, 4096, Kind::Private, access);
        let (local, write) = (memory(Access::Local), memory(Access::Write));
        for (name, config, to, len, fault) in [
            ("a VI that takes none", closed, &write, 16, REFUSED),
            ("a region that takes none", open, &local, 16, REFUSED),
            ("more than the region", open, &write, 0xffff_fff0, REFUSED),
            ("one that may be", open, &write, 16, None),
            ("nothing", closed, &local, 0, None),
        ] {
            println!("{level}, {name}");
            let told = Head {
                immediate: Some(0xabcd),
                placed: true,
                msg_len: len,
                handle: to.handle().0,
                addr: to.addr(0),
                ..Head::bare(FrameKind::RdmaWrite, 1)
            };
            tell(&site, &config, &told, |vi| {
                let end = received(vi);
                assert_eq!(end.status.op(), CompletedOp::RemoteRdmaWrite);
                assert_eq!(end.status.fault(), fault);
                assert_eq!(end.length, if fault.is_none() { len } else { 0 });
            });
        }
        // A send is for a receive, and nobody but its receiver puts it there.
        let told = Head {
            placed: true,
            msg_len: 16,
            ..Head::bare(FrameKind::Send, 1)
        };
        tell(&site, &open, &told, |vi| {
            await_state(lab, vi, ViState::Error);
            assert_eq!(received(vi).status.fault(), Some(Fault::Flushed));
        });
    }
}

/// Sends this head to a VI that has a receive.
fn tell(site: &Site<'_>, config: &ViConfig<'_>, told: &Head, check: impl FnOnce(&via::Vi)) {
    let vi = site.nic.create_vi(config).must();
    let inbox = Buffer::new(site, 64);
    vi.post_recv(&inbox.recv(0..64), 1).must();
    let mut forger = ShmForger::new(vi.export().must());
    forger.send(&told.encode(), &[]);
    forger.ring();
    check(&vi);
    inbox.assert_untouched();
    vi.disconnect().must();
}

const REFUSED: Option<Fault> = Some(Fault::RdmaProtection);
