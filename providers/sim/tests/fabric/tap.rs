//! Devices with a tap on their frames.

use sim::{Act, Direction, Fabric, FabricConfig, Faults, Tapped, Trace};
use via::{Reliability, Vi, ViState};

use crate::kit::*;

struct TappedPair {
    va: Vi,
    vb: Vi,
    a: Site,
    b: Site,
    fabric: Fabric,
    trace: Trace,
    faults: Faults,
}

/// Taps the sender's device: the trace sees what the faults leave over.
fn tapped(level: Reliability) -> TappedPair {
    let fabric = Fabric::new(FabricConfig::default());
    let (trace, faults) = (Trace::new(1000), Faults::new());
    let device = fabric.host().adapter().must();
    let a = Site::with(Tapped::new(
        Tapped::new(device, trace.clone()),
        faults.clone(),
    ));
    let b = Site::new(&fabric.host());
    let (va, vb) = (a.vi(level), b.vi(level));
    vb.import(&va.export().must().blob, vec![]).must();
    TappedPair {
        va,
        vb,
        a,
        b,
        fabric,
        trace,
        faults,
    }
}

#[test]
fn a_trace_shows_every_frame() {
    let pair = tapped(Reliability::ReliableReception);
    let (from, to) = (pair.a.region(64), pair.b.region(64));
    post_recv(&pair.vb, &to, 0..64, 0);
    post_send(&pair.va, &from, 0..8, 2);
    sent(&pair.va);
    assert_eq!(
        pair.trace.text(),
        "\
\x20     0.000 #0 > Send seq 1 0+8/8 imm 0x2
     40.000 #0 < Ack seq 1 0+0/0
"
    );
}

#[test]
fn a_frame_dropped_above_the_medium_is_not_repaired() {
    let pair = tapped(Reliability::Unreliable);
    let (from, to) = (pair.a.region(64), pair.b.region(64));
    pair.faults.plan(Direction::Sent, 1, Act::Drop);
    for n in 0..3 {
        post_recv(&pair.vb, &to, 0..64, n);
        post_send(&pair.va, &from, 0..8, n as u32);
    }
    pair.fabric.sleep(ms(1));
    let came = drain(|| pair.vb.recv_done());
    let came: Vec<_> = came.iter().filter_map(|c| c.immediate).collect();
    assert_eq!(came, [0, 2]);
    assert_eq!(pair.faults.pending(), 0);
}

#[test]
fn corruption_above_the_checksum_shows() {
    for direction in [Direction::Sent, Direction::Received] {
        let pair = tapped(Reliability::ReliableDelivery);
        let (ours, theirs) = (pair.a.region(64), pair.b.region(64));
        pair.faults.plan(direction, 0, Act::Corrupt);
        let (from, to, source, target) = match direction {
            Direction::Sent => (&pair.va, &pair.vb, &ours, &theirs),
            Direction::Received => (&pair.vb, &pair.va, &theirs, &ours),
        };
        source.memory().write(0, b"payload").must();
        post_recv(to, target, 0..64, 0);
        post_send(from, source, 0..7, 1);
        received(to);
        assert_eq!(bytes(target, 0, 7), b"qayload", "{direction:?}");
    }
}

#[test]
fn a_delay_is_time_that_passes() {
    for direction in [Direction::Sent, Direction::Received] {
        let pair = tapped(Reliability::ReliableDelivery);
        let (ours, theirs) = (pair.a.region(64), pair.b.region(64));
        pair.faults.plan(direction, 0, Act::Delay(ms(3)));
        let (from, to, source, target) = match direction {
            Direction::Sent => (&pair.va, &pair.vb, &ours, &theirs),
            Direction::Received => (&pair.vb, &pair.va, &theirs, &ours),
        };
        for n in 0..3 {
            post_recv(to, target, 0..64, n);
            post_send(from, source, 0..7, n as u32);
        }
        for _ in 0..3 {
            sent(from);
        }
        for n in 0..3 {
            assert_eq!(received(to).immediate, Some(n));
        }
        let took = pair.fabric.elapsed();
        assert!((ms(3)..ms(4)).contains(&took), "{direction:?}: {took:?}");
    }
}

#[test]
fn a_disconnect_breaks_both_ends() {
    for direction in [Direction::Sent, Direction::Received] {
        let pair = tapped(Reliability::ReliableReception);
        let (from, to) = (pair.a.region(64), pair.b.region(64));
        pair.faults.plan(direction, 0, Act::Disconnect);
        post_recv(&pair.vb, &to, 0..64, 0);
        post_send(&pair.va, &from, 0..8, 1);
        let outcome = pair.va.send_wait(SOON).must();
        assert!(outcome.status.fault().is_some(), "{direction:?}");
        pair.fabric.sleep(ms(1));
        assert_eq!(pair.va.state(), Ok(ViState::Error), "{direction:?}");
        assert_eq!(pair.vb.state(), Ok(ViState::Error), "{direction:?}");
    }
}
