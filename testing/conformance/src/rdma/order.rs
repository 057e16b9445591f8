//! The order of RDMA writes, none of which is waited for: a provider may have several ways, and none overtakes another.

use via::{Access, Descriptor, Reliability};

use crate::buffer::{Buffer, Kind, mix, pattern};
use crate::kit::{Must, Pair, beside, received, sent, until};
use crate::lab::Lab;

use super::write;

/// Of writes of all lengths to one place the last is what remains.
pub(super) fn later_writes_win(lab: &dyn Lab, level: Reliability, kind: Kind) {
    let pair = Pair::for_rdma(lab, level);
    let source = Buffer::new(&pair.a, 5 * LONG);
    let target = Buffer::with(&pair.b, LONG, kind, Access::Write);
    let mut wanted = target.read(0..LONG);
    for round in 0..200 {
        pair.vb.post_recv(&Descriptor::recv(), round).must();
        for n in 0..5 {
            let seed = round * 5 + u64::from(n);
            let len = LENGTHS[mix(seed, 0) as usize % LENGTHS.len()];
            let range = n * LONG..n * LONG + len;
            source.fill(range.clone(), seed);
            let posted = write(&source, range, target.remote(0));
            pair.va.post_send(&posted, seed).must();
            wanted[..len as usize].copy_from_slice(&pattern(seed, len as usize));
        }
        pair.va.post_send(&Descriptor::send(), 0).must();
        received(&pair.vb).ok().must();
        assert!(target.read(0..LONG) == wanted, "round {round}");
        for _ in 0..6 {
            sent(&pair.va).ok().must();
        }
    }
}

/// Where the last of several writes to a new region has arrived, so have the others.
pub(super) fn a_region_fills_from_the_front(lab: &dyn Lab, level: Reliability, kind: Kind) {
    let pair = Pair::for_rdma(lab, level);
    let source = Buffer::new(&pair.a, LONG);
    for round in 0..50 {
        let target = Buffer::with(&pair.b, LONG, kind, Access::Write);
        source.fill(0..LONG, round);
        let write_all = || {
            for at in (0..LONG).step_by(LONG as usize / 4) {
                let piece = write(&source, at..at + LONG / 4, target.remote(at));
                pair.va.post_send(&piece, at.into()).must();
                sent(&pair.va).ok().must();
            }
        };
        let watch = || {
            let wanted = pattern(round, LONG as usize);
            let end = LONG - 1;
            // The canary may end in the same byte: then there is nothing to wait for.
            if target.read(end..LONG)[0] == wanted[end as usize] {
                return;
            }
            until(lab, "the last byte", || {
                target.read(end..LONG)[0] == wanted[end as usize]
            });
            assert!(target.read(0..LONG) == wanted, "round {round}");
        };
        beside(lab, write_all, watch);
        pair.exchange_empty();
    }
}

const LONG: u32 = 60_000;
/// In a cell, in the ring's data, mapped, and by way of the kernel.
const LENGTHS: [u32; 6] = [8, 200, 300, 4096, 33_000, LONG];
