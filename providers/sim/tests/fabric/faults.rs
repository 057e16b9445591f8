//! Planned faults of the network, dead hosts, and media that give up.

use proto::frame::HEAD_WORDS;
use sim::{Act, Noise};
use via::soft::{Device, Link};
use via::{Fault, Reliability, ViState};

use crate::kit::*;

#[test]
fn one_packet_struck_is_hidden_at_the_reliable_levels() {
    for act in [Act::Corrupt, Act::Delay(ms(5)), Act::Drop] {
        for nth in 0..4 {
            let pair = Pair::new(Default::default(), Reliability::ReliableReception);
            let (from, to) = (pair.a.region(6000), pair.b.region(6000));
            pair.fabric.strike(&pair.hosts[0], &pair.hosts[1], nth, act);
            let sent_bytes = pattern(1, 6000);
            from.memory().write(0, &sent_bytes).must();
            post_recv(&pair.vb, &to, 0..6000, 0);
            post_send(&pair.va, &from, 0..6000, 1);
            received(&pair.vb);
            sent(&pair.va);
            assert_eq!(bytes(&to, 0, 6000), sent_bytes, "{act:?} {nth}");
            assert!(
                pair.fabric.counters().sent > 5,
                "{act:?} {nth}: no repetition"
            );
        }
    }
}

#[test]
fn one_packet_struck_is_one_message_lost_at_ud() {
    for (act, arrives) in [(Act::Drop, 2), (Act::Corrupt, 2), (Act::Delay(us(100)), 3)] {
        let pair = Pair::new(Default::default(), Reliability::Unreliable);
        let (from, to) = (pair.a.region(64), pair.b.region(64));
        pair.fabric.strike(&pair.hosts[0], &pair.hosts[1], 1, act);
        for n in 0..3 {
            post_recv(&pair.vb, &to, 0..64, n);
            post_send(&pair.va, &from, 0..8, n as u32);
        }
        pair.fabric.sleep(ms(1));
        let came = drain(|| pair.vb.recv_done());
        let came: Vec<_> = came.iter().filter_map(|c| c.immediate).collect();
        assert_eq!(came.len(), arrives, "{act:?}");
        let expected: &[u32] = if arrives == 3 { &[0, 2, 1] } else { &[0, 2] };
        assert_eq!(came, expected, "{act:?}");
    }
}

#[test]
fn a_disconnect_ends_both_ends() {
    for level in Reliability::ALL {
        let pair = Pair::new(Default::default(), level);
        let (from, to) = (pair.a.region(64), pair.b.region(64));
        pair.fabric
            .strike(&pair.hosts[0], &pair.hosts[1], 1, Act::Disconnect);
        for n in 0..3 {
            post_recv(&pair.vb, &to, 0..64, n);
            post_send(&pair.va, &from, 0..8, n as u32);
        }
        pair.fabric.sleep(ms(100));
        assert_eq!(pair.va.state(), Ok(ViState::Error), "{level}");
        assert_eq!(pair.vb.state(), Ok(ViState::Error), "{level}");
    }
}

#[test]
fn a_medium_that_loses_everything_gives_up_within_a_bound() {
    for level in [
        Reliability::ReliableDelivery,
        Reliability::ReliableReception,
    ] {
        let pair = Pair::new(Default::default(), level);
        let (region, to) = (pair.a.region(64), pair.b.region(64));
        post_recv(&pair.vb, &to, 0..64, 0);
        pair.fabric.set_noise(Noise {
            loss_ppm: 1_000_000,
            ..Noise::default()
        });
        post_send(&pair.va, &region, 0..8, 1);
        post_send(&pair.va, &region, 0..8, 2);
        pair.fabric.sleep(ms(1000));
        assert_eq!(pair.va.state(), Ok(ViState::Error), "{level}");
        assert_eq!(pair.vb.state(), Ok(ViState::Error), "{level}");
        let faults: Vec<_> = drain(|| pair.va.send_done())
            .iter()
            .map(|completion| completion.status.fault())
            .collect();
        let expected = match level {
            Reliability::ReliableReception => [Some(Fault::Transport), Some(Fault::Flushed)],
            _ => [None, None],
        };
        assert_eq!(faults, expected, "{level}");
    }
}

#[test]
fn a_cut_that_heals_in_time_is_only_a_delay() {
    let pair = Pair::new(Default::default(), Reliability::ReliableReception);
    let (from, to) = (pair.a.region(64), pair.b.region(64));
    let [a, b] = &pair.hosts;
    pair.fabric.cut(a, b);
    post_recv(&pair.vb, &to, 0..64, 0);
    post_send(&pair.va, &from, 0..8, 1);
    pair.fabric.sleep(ms(2));
    assert!(drain(|| pair.va.send_done()).is_empty());
    pair.fabric.heal(a, b);
    sent(&pair.va);
    assert!(pair.fabric.elapsed() > ms(2));
}

#[test]
fn peers_of_a_dead_host_find_out_and_others_do_not_notice() {
    for level in Reliability::ALL {
        let pair = Pair::new(Default::default(), level);
        let third = Site::new(&pair.fabric.host());
        let (vc, vd) = (third.vi(level), pair.a.vi(level));
        vd.import(&vc.export().must().blob, vec![]).must();
        pair.hosts[1].kill();
        pair.fabric.sleep(ms(1));
        assert_eq!(pair.va.state(), Ok(ViState::Error), "{level}");
        assert_eq!(pair.vb.state(), Ok(ViState::Error), "{level}");
        assert_eq!(vd.state(), Ok(ViState::Connected), "{level}");
        let region = third.region(64);
        post_recv(&vc, &region, 0..64, 0);
        post_send(&vd, &pair.a.region(64), 0..8, 3);
        assert_eq!(received(&vc).immediate, Some(3));
    }
}

#[test]
fn a_goodbye_is_repeated_until_it_is_heard() {
    for level in Reliability::ALL {
        for seed in 0..20 {
            let pair = Pair::new(noisy(seed, 200_000), level);
            let (from, to) = (pair.a.region(64), pair.b.region(64));
            post_recv(&pair.vb, &to, 0..64, 0);
            post_send(&pair.va, &from, 0..8, 1);
            pair.va.disconnect().must();
            pair.fabric.sleep(ms(100));
            assert_eq!(pair.vb.state(), Ok(ViState::Error), "{level} {seed}");
            if level.is_reliable() {
                let came = drain(|| pair.vb.recv_done());
                assert_eq!(
                    came[0].immediate,
                    Some(1),
                    "what was sent before still counts"
                );
            }
        }
    }
}

#[test]
fn a_peer_that_sends_garbage_harms_its_own_connection_only() {
    let pair = Pair::new(Default::default(), Reliability::ReliableDelivery);
    let victim = pair.a.vi(Reliability::ReliableDelivery);
    let region = pair.a.region(64);
    post_recv(&victim, &region, 0..64, 0);
    let attributes = victim.ops().attributes().must();
    let peer = pair.hosts[1].adapter().must();
    let export = victim.export().must();
    let mut link = peer.import(&attributes, &export.blob, vec![]).must().link;
    assert!(link.reserve(0));
    link.commit_raw(&[0xffff_ffff; HEAD_WORDS]);
    pair.fabric.sleep(ms(1));
    assert_eq!(victim.state(), Ok(ViState::Error));
    assert!(link.ended().is_some());
    let to = pair.b.region(64);
    post_recv(&pair.vb, &to, 0..64, 0);
    post_send(&pair.va, &region, 0..8, 4);
    assert_eq!(received(&pair.vb).immediate, Some(4));
}
