//! How time passes: for threads that wait, that poll, and that nobody has counted.

use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use sim::{Fabric, FabricConfig};
use via::{Descriptor, Error, Reliability, ViConfig};

use crate::kit::*;

#[test]
fn time_stands_still_while_anybody_computes() {
    let fabric = Fabric::new(FabricConfig::default());
    let (go, gone) = channel::<()>();
    let sleeper = fabric.spawn({
        let fabric = fabric.clone();
        move || {
            fabric.sleep(ms(5));
            go.send(()).must();
            fabric.elapsed()
        }
    });
    for _ in 0..1000 {
        thread::yield_now();
        assert_eq!(fabric.elapsed(), Duration::ZERO);
    }
    assert!(gone.try_recv().is_err());
    fabric.sleep(ms(7));
    assert_eq!(gone.recv(), Ok(()));
    assert_eq!(fabric.elapsed(), ms(7));
    assert_eq!(sleeper.join().must(), ms(5));
}

#[test]
fn sleepers_wake_in_the_order_of_their_deadlines() {
    let fabric = Fabric::new(FabricConfig::default());
    let (tell, told) = channel();
    let threads: Vec<_> = [30, 10, 20, 40]
        .map(|at| {
            let (fabric, tell) = (fabric.clone(), tell.clone());
            fabric.clone().spawn(move || {
                fabric.sleep(ms(at));
                tell.send((at, fabric.elapsed())).must();
            })
        })
        .into();
    for thread in threads {
        thread.join().must();
    }
    drop(tell);
    let expected = [10, 20, 30, 40].map(|at| (at, ms(at)));
    assert_eq!(Vec::from_iter(told), expected);
}

#[test]
fn a_wait_in_vain_takes_its_timeout_and_no_time_at_all() {
    let pair = Pair::new(Default::default(), Reliability::ReliableDelivery);
    let region = pair.b.region(64);
    post_recv(&pair.vb, &region, 0..64, 0);
    let began = Instant::now();
    assert_eq!(
        pair.vb.recv_wait(Some(Duration::from_secs(3600))),
        Err(Error::Timeout)
    );
    assert_eq!(pair.fabric.elapsed(), Duration::from_secs(3600));
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn polling_alone_gets_there() {
    for level in Reliability::ALL {
        let pair = Pair::new(Default::default(), level);
        let (from, to) = (pair.a.region(64), pair.b.region(64));
        post_recv(&pair.vb, &to, 0..64, 0);
        post_send(&pair.va, &from, 0..8, 9);
        let came = loop {
            if let Some(completion) = pair.vb.recv_done().must().completion() {
                break completion;
            }
        };
        assert_eq!(came.immediate, Some(9));
        assert!(pair.fabric.elapsed() >= us(10));
        assert!(
            pair.fabric.elapsed() < us(11),
            "{:?}",
            pair.fabric.elapsed()
        );
    }
}

#[test]
fn polling_one_end_is_enough_for_the_other() {
    let pair = Pair::new(Default::default(), Reliability::ReliableReception);
    let (from, to) = (pair.a.region(4096), pair.b.region(4096));
    for n in 0..20 {
        let write = Descriptor::rdma_write(to.remote(0)).segment(&from, 0..4096);
        pair.va.post_send(&write, n).must();
        let began = Instant::now();
        while pair.va.send_done().must().completion().is_none() {
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "nobody serves the target"
            );
        }
    }
}

#[test]
fn two_threads_that_poll_do_not_wait_for_each_other() {
    let fabric = Fabric::new(FabricConfig::default());
    let (a, b) = (Site::new(&fabric.host()), Site::new(&fabric.host()));
    let level = Reliability::ReliableReception;
    let (va, vb) = (a.vi(level), b.vi(level));
    vb.import(&va.export().must().blob, vec![]).must();
    let rounds = 200;
    let echo = fabric.spawn(move || {
        let region = b.region(64);
        for n in 0..rounds {
            post_recv(&vb, &region, 0..64, n);
            while vb.recv_done().must().completion().is_none() {}
            post_send(&vb, &region, 0..8, n as u32);
            while vb.send_done().must().completion().is_none() {}
        }
        vb.disconnect().must();
    });
    let region = a.region(64);
    for n in 0..rounds {
        post_recv(&va, &region, 0..64, n);
        // Its receive may not be posted yet.
        fabric.sleep(us(30));
        post_send(&va, &region, 0..8, n as u32);
        while va.recv_done().must().completion().is_none() {}
        while va.send_done().must().completion().is_none() {}
    }
    echo.join().must();
}

#[test]
fn a_completion_queue_waits_for_many() {
    let fabric = Fabric::new(FabricConfig::default());
    let (a, b) = (Site::new(&fabric.host()), Site::new(&fabric.host()));
    let cq = b.nic.create_cq(64).must();
    let region = b.region(64);
    let pairs: Vec<_> = (0..10)
        .map(|n| {
            let va = a.vi(Reliability::ReliableDelivery);
            let config = ViConfig::new(&b.tag).accept_rdma_write().recv_cq(&cq);
            let vb = b.nic.create_vi(&config).must();
            vb.import(&va.export().must().blob, vec![]).must();
            post_recv(&vb, &region, 0..64, n);
            (va, vb)
        })
        .collect();
    assert_eq!(cq.wait(Some(ms(5))), Err(Error::Timeout));
    let began = fabric.elapsed();
    let from = a.region(64);
    for (va, vb) in pairs.iter().rev() {
        post_send(va, &from, 0..8, 1);
        let entry = cq.wait(SOON).must();
        assert_eq!(entry.vi, vb.id());
        assert!(vb.recv_done().must().completion().is_some());
    }
    let took = fabric.elapsed() - began;
    assert!((us(100)..us(110)).contains(&took), "{took:?}");
}

#[test]
fn a_line_takes_its_time() {
    let config = FabricConfig {
        bandwidth_bps: Some(8_000_000),
        ..FabricConfig::default()
    };
    let pair = Pair::new(config, Reliability::ReliableDelivery);
    let (from, to) = (pair.a.region(30_000), pair.b.region(30_000));
    post_recv(&pair.vb, &to, 0..30_000, 0);
    post_send(&pair.va, &from, 0..30_000, 1);
    received(&pair.vb);
    // A byte each microsecond, twenty frames with 62 bytes around each.
    assert_eq!(pair.fabric.elapsed(), us(30_000 + 20 * 62 + 10));
}

#[test]
fn free_time_needs_no_counting() {
    for level in Reliability::ALL {
        let fabric = Fabric::new(free());
        let (a, b) = (Site::new(&fabric.host()), Site::new(&fabric.host()));
        let from = a.nic.address(b"client").must();
        let to = b.nic.address(b"server").must();
        let server = thread::spawn(move || {
            let vi = b.vi(level);
            let region = b.region(64);
            for n in 0..100 {
                post_recv(&vi, &region, 0..64, n);
            }
            b.nic.connect_wait(&to, SOON).must().accept(&vi).must();
            let came: Vec<_> = (0..100).map(|_| received(&vi).immediate.must()).collect();
            came
        });
        let vi = a.vi(level);
        while vi.connect(&from, &to, SOON).is_err() {
            thread::yield_now();
        }
        let region = a.region(64);
        for n in 0..100 {
            post_send(&vi, &region, 0..8, n);
            sent(&vi);
        }
        assert_eq!(server.join().must(), Vec::from_iter(0..100), "{level}");
    }
}

#[test]
fn free_time_does_not_end_a_wait_early() {
    let pair = Pair::new(free(), Reliability::ReliableDelivery);
    let region = pair.b.region(64);
    post_recv(&pair.vb, &region, 0..64, 0);
    let began = Instant::now();
    assert_eq!(pair.vb.recv_wait(Some(ms(50))), Err(Error::Timeout));
    assert!(began.elapsed() >= ms(50));
}

#[test]
fn in_free_time_nobody_has_to_look() {
    let pair = Pair::new(free(), Reliability::ReliableDelivery);
    let (from, to) = (pair.a.region(64), pair.b.region(64));
    from.memory().write(0, b"landed").must();
    let write = Descriptor::rdma_write(to.remote(0)).segment(&from, 0..6);
    pair.va.post_send(&write, 1).must();
    let began = Instant::now();
    // The target only looks at its memory.
    while bytes(&to, 0, 6) != b"landed" {
        assert!(began.elapsed() < Duration::from_secs(20));
        thread::yield_now();
    }
}

#[test]
fn the_driver_of_the_process_opens_and_closes() {
    let threads = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    let (a, b) = (Site::new(&sim::DRIVER), Site::new(&sim::DRIVER));
    assert_eq!(a.nic.attributes(), b.nic.attributes());
    let (va, vb) = (
        a.vi(Reliability::ReliableReception),
        b.vi(Reliability::ReliableReception),
    );
    vb.import(&va.export().must().blob, vec![]).must();
    let (from, to) = (a.region(64), b.region(64));
    let write = Descriptor::rdma_write(to.remote(0)).segment(&from, 0..64);
    va.post_send(&write, 1).must();
    sent(&va);
    assert!(threads() > 0);
}
