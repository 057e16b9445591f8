//! The same seed, the same run.

use std::fmt::Write;

use via::Reliability;

use crate::kit::*;

/// A conversation over a noisy network, and everything that can be seen of it.
fn transcript(seed: u64, level: Reliability) -> String {
    let pair = Pair::new(noisy(seed, 80_000), level);
    let (from, to) = (pair.a.region(4096), pair.b.region(4096));
    let mut text = String::new();
    for n in 0..100 {
        for (here, there, region, target) in [
            (&pair.va, &pair.vb, &from, &to),
            (&pair.vb, &pair.va, &to, &from),
        ] {
            post_recv(there, target, 0..4096, 0);
            post_send(here, region, 0..n * 40, n);
            pair.fabric.sleep(us(200));
            let came = drain(|| there.recv_done());
            let left = drain(|| here.send_done());
            let at = pair.fabric.elapsed();
            writeln!(text, "{at:?} {} {}", came.len(), left.len()).must();
        }
    }
    let shown = (pair.fabric.counters(), pair.va.state(), pair.vb.state());
    writeln!(text, "{shown:?}\n{}", pair.fabric.trace()).must();
    text
}

fn assert_same(one: &str, other: &str) {
    for (n, (one, other)) in one.lines().zip(other.lines()).enumerate() {
        assert_eq!(one, other, "line {n}");
    }
    assert_eq!(one.len(), other.len());
}

#[test]
fn a_seed_repeats_itself_to_the_last_byte() {
    for level in Reliability::ALL {
        let first = transcript(11, level);
        assert_same(&first, &transcript(11, level));
        assert!(
            first != transcript(12, level),
            "{level}: chance has no part in it"
        );
    }
}

#[test]
fn blocking_waits_repeat_themselves_too() {
    let run = || {
        let pair = Pair::new(noisy(5, 80_000), Reliability::ReliableReception);
        let (from, to) = (pair.a.region(16384), pair.b.region(16384));
        for n in 0..200 {
            post_recv(&pair.vb, &to, 0..16384, n);
            post_send(&pair.va, &from, 0..16384, n as u32);
            received(&pair.vb);
            sent(&pair.va);
        }
        pair.fabric.trace().text()
    };
    let first = run();
    assert!(first.lines().count() > 4000);
    assert_same(&first, &run());
}

#[test]
fn a_capture_reads_like_one() {
    let pair = Pair::new(Default::default(), Reliability::ReliableDelivery);
    let region = pair.a.region(4096);
    let target = pair.b.region(4096);
    pair.fabric
        .strike(&pair.hosts[0], &pair.hosts[1], 1, sim::Act::Drop);
    post_recv(&pair.vb, &target, 0..4096, 0);
    post_send(&pair.va, &region, 0..2000, 0xabc);
    received(&pair.vb);
    pair.va.disconnect().must();
    pair.fabric.sleep(ms(1));
    assert_eq!(
        pair.fabric.trace().text(),
        "\
\x20     0.000 host1 > host2 c1 data 0 [Send seq 1 0+1500/2000 imm 0xabc] ack 0
      0.000 host1 > host2 c1 data 1 [Send seq 1 1500+500/2000 imm 0xabc] ack 0: dropped
     10.000 host2 > host1 c1 ack 1
     80.000 host1 > host2 c1 data 1 [Send seq 1 1500+500/2000 imm 0xabc] ack 0
     90.000 host2 > host1 c1 ack 2
     90.000 host1 > host2 c1 data 2 [close Disconnected] ack 0
    100.000 host2 > host1 c1 ack 3
"
    );
}
