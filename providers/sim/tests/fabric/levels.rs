//! Messages at all three levels, on quiet and on noisy networks.

use via::{Descriptor, Fault, Region, Reliability, Vi, ViState};

use crate::kit::*;

#[test]
fn sends_of_all_sizes_arrive_at_all_levels() {
    for level in Reliability::ALL {
        let pair = Pair::new(Default::default(), level);
        let (from, to) = (pair.a.region(65536), pair.b.region(65536));
        for (n, len) in [0, 1, 1499, 1500, 1501, 32768, 65536]
            .into_iter()
            .enumerate()
        {
            let n = n as u32;
            let sent_bytes = pattern(n, len as usize);
            from.memory().write(0, &sent_bytes).must();
            post_recv(&pair.vb, &to, 0..65536, n.into());
            post_send(&pair.va, &from, 0..len, n);
            let received = received(&pair.vb);
            assert_eq!(received.length, len, "{level}");
            assert_eq!(received.immediate, Some(n));
            assert_eq!(bytes(&to, 0, len as usize), sent_bytes, "{level} {len}");
            assert_eq!(sent(&pair.va).token, u64::from(n));
        }
    }
}

#[test]
fn rdma_writes_and_reads_need_no_receiver() {
    for level in Reliability::ALL {
        let pair = Pair::new(Default::default(), level);
        let (ours, theirs) = (pair.a.region(8192), pair.b.region(8192));
        let written = pattern(1, 5000);
        ours.memory().write(0, &written).must();
        let write = Descriptor::rdma_write(theirs.remote(100)).segment(&ours, 0..5000);
        pair.va.post_send(&write, 1).must();
        sent(&pair.va);
        pair.fabric.sleep(ms(1));
        assert_eq!(bytes(&theirs, 100, 5000), written, "{level}");
        if level.is_reliable() {
            let read = Descriptor::rdma_read(theirs.remote(100)).segment(&ours, 3000..8000);
            pair.va.post_send(&read, 2).must();
            assert_eq!(sent(&pair.va).length, 5000);
            assert_eq!(bytes(&ours, 3000, 5000), written, "{level}");
        }
    }
}

#[test]
fn reliable_reception_waits_for_the_target_only() {
    let pair = Pair::new(Default::default(), Reliability::ReliableReception);
    let (from, to) = (pair.a.region(64), pair.b.region(64));
    post_recv(&pair.vb, &to, 0..64, 0);
    post_send(&pair.va, &from, 0..8, 1);
    assert!(
        drain(|| pair.va.send_done()).is_empty(),
        "it cannot be there yet"
    );
    sent(&pair.va);
    // Nobody has looked at the target meanwhile.
    assert_eq!(drain(|| pair.vb.recv_done()).len(), 1);
}

#[test]
fn reliable_levels_hide_what_the_medium_does() {
    for level in [
        Reliability::ReliableDelivery,
        Reliability::ReliableReception,
    ] {
        let pair = Pair::new(noisy(7, 100_000), level);
        let (from, to) = (pair.a.region(8192), pair.b.region(16 * 8192));
        for n in 0..16 {
            post_recv(&pair.vb, &to, n * 8192..(n + 1) * 8192, n.into());
        }
        for n in 0..2000_u32 {
            let len = 1 + n * 37 % 8192;
            from.memory().write(0, &pattern(n, len as usize)).must();
            post_send(&pair.va, &from, 0..len, n);
            let received = received(&pair.vb);
            assert_eq!(received.immediate, Some(n), "{level}");
            let at = received.token as usize * 8192;
            assert_eq!(bytes(&to, at, len as usize), pattern(n, len as usize));
            let slot = received.token as u32;
            post_recv(&pair.vb, &to, slot * 8192..(slot + 1) * 8192, slot.into());
            sent(&pair.va);
        }
        let counters = pair.fabric.counters();
        for hit in [
            counters.lost,
            counters.duplicated,
            counters.reordered,
            counters.corrupted,
        ] {
            assert!(hit > 100, "{counters:?}");
        }
    }
}

#[test]
fn unreliable_delivery_loses_and_does_nothing_else() {
    let pair = Pair::new(noisy(3, 50_000), Reliability::Unreliable);
    let (from, to) = (pair.a.region(4096), pair.b.region(64 * 4096));
    for n in 0..64 {
        post_recv(&pair.vb, &to, n * 4096..(n + 1) * 4096, n.into());
    }
    let mut came = vec![];
    for n in 0..2000_u32 {
        let len = 4 + n * 31 % 4000;
        from.memory().write(0, &pattern(n, len as usize)).must();
        post_send(&pair.va, &from, 0..len, n);
        sent(&pair.va);
        pair.fabric.sleep(us(50));
        for completion in drain(|| pair.vb.recv_done()) {
            let completion = completion.ok().must();
            let n = completion.immediate.must();
            let (at, len) = (completion.token as usize * 4096, completion.length as usize);
            assert_eq!(len as u32, 4 + n * 31 % 4000);
            assert_eq!(bytes(&to, at, len), pattern(n, len));
            came.push(n);
            let slot = completion.token as u32;
            post_recv(&pair.vb, &to, slot * 4096..(slot + 1) * 4096, slot.into());
        }
    }
    let mut once = came.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), came.len(), "a message came twice");
    assert!((1000..2000).contains(&came.len()), "{} came", came.len());
    assert_eq!(pair.va.state(), Ok(ViState::Connected));
    assert_eq!(pair.vb.state(), Ok(ViState::Connected));
}

#[test]
fn a_full_window_holds_the_sender_back() {
    for level in Reliability::ALL {
        let pair = Pair::new(Default::default(), level);
        let (from, to) = (pair.a.region(1 << 18), pair.b.region(1 << 18));
        // 175 frames each, far beyond the window of 64.
        let vi = |site: &Site| {
            let config = via::ViConfig::new(&site.tag)
                .reliability(level)
                .max_transfer_size(1 << 18);
            site.nic.create_vi(&config).must()
        };
        let (va, vb) = (vi(&pair.a), vi(&pair.b));
        vb.import(&va.export().must().blob, vec![]).must();
        let sent_bytes = pattern(9, 1 << 18);
        from.memory().write(0, &sent_bytes).must();
        for n in 0..4 {
            post_recv(&vb, &to, 0..1 << 18, n);
            post_send(&va, &from, 0..1 << 18, n as u32);
        }
        for n in 0..4 {
            assert_eq!(received(&vb).immediate, Some(n));
            sent(&va);
        }
        assert_eq!(bytes(&to, 0, 1 << 18), sent_bytes, "{level}");
    }
}

#[test]
fn a_missing_receive_breaks_reliable_connections_only() {
    for level in Reliability::ALL {
        let pair = Pair::new(Default::default(), level);
        let region = pair.a.region(64);
        post_send(&pair.va, &region, 0..8, 1);
        let outcome = pair.va.send_wait(SOON).must().status.fault();
        pair.fabric.sleep(ms(1));
        let states = [pair.va.state().must(), pair.vb.state().must()];
        match level {
            Reliability::Unreliable => assert_eq!(states, [ViState::Connected; 2]),
            _ => assert_eq!(states, [ViState::Error; 2], "{level}"),
        }
        let expected = (level == Reliability::ReliableReception).then_some(Fault::RemoteDescriptor);
        assert_eq!(outcome, expected, "{level}");
    }
}

#[test]
fn both_directions_at_full_load_make_progress() {
    for level in Reliability::ALL {
        let pair = Pair::new(Default::default(), level);
        let most = pair.a.nic.attributes().max_descriptors_per_queue;
        let (here, there) = (pair.a.region(700), pair.b.region(700));
        for token in 0..most.into() {
            post_recv(&pair.va, &here, 0..700, token);
            post_recv(&pair.vb, &there, 0..700, token);
        }
        let drive = |vi: &Vi, region: &Region| {
            for token in 0..most {
                post_send(vi, region, 0..700, token);
            }
            for _ in 0..most {
                sent(vi);
            }
        };
        std::thread::scope(|scope| {
            let part = pair.fabric.take_part();
            let other = scope.spawn(|| {
                let _part = part;
                drive(&pair.vb, &there);
            });
            drive(&pair.va, &here);
            pair.fabric.outside(|| other.join().must());
        });
    }
}
