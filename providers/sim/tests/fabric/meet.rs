//! The connection manager.

use std::time::Duration;

use sim::{Fabric, FabricConfig, Time};
use via::{Error, NetAddress, Reliability, ViState};

use crate::kit::*;

fn two(threads: usize) -> (Fabric, Site, Site) {
    let fabric = Fabric::new(FabricConfig {
        time: Time::Gated { threads },
        ..FabricConfig::default()
    });
    let sites = (Site::new(&fabric.host()), Site::new(&fabric.host()));
    (fabric, sites.0, sites.1)
}

fn addresses(a: &Site, b: &Site) -> (NetAddress, NetAddress) {
    (
        a.nic.address(b"client").must(),
        b.nic.address(b"server").must(),
    )
}

#[test]
fn nobody_waiting_is_told_within_a_round_trip() {
    let (fabric, a, b) = two(1);
    let (from, to) = addresses(&a, &b);
    let vi = a.vi(Reliability::ReliableDelivery);
    assert_eq!(vi.connect(&from, &to, None), Err(Error::NoMatch));
    assert_eq!(fabric.elapsed(), us(20));
    assert_eq!(vi.state(), Ok(ViState::Idle));
    let nowhere = NetAddress::new(fabric.nowhere(), b"server").must();
    assert_eq!(vi.connect(&from, &nowhere, None), Err(Error::NotReachable));
}

#[test]
fn hosts_that_are_there_are_found() {
    let fabric = Fabric::new(FabricConfig::default());
    let hosts = [fabric.host(), fabric.host(), fabric.host()];
    let sites = [0, 1, 2].map(|host: usize| Site::new(&hosts[host]));
    let [a, b, c] = [0, 1, 2].map(|site: usize| sites[site].nic.attributes().local_address);
    assert_eq!(sites[1].nic.discover(0), Ok(vec![b]));
    assert_eq!(sites[1].nic.discover(1), Ok(vec![b, a, c]));
    hosts[0].kill();
    assert_eq!(sites[1].nic.discover(u64::MAX), Ok(vec![b, c]));
}

#[test]
fn timeouts_take_as_long_as_they_say_and_no_time_at_all() {
    let (fabric, a, b) = two(1);
    let (_, to) = addresses(&a, &b);
    let day = Duration::from_secs(86_400);
    let waited = b.nic.connect_wait(&to, Some(day));
    assert!(matches!(waited, Err(Error::Timeout)));
    assert_eq!(fabric.elapsed(), day);
    assert!(matches!(
        b.nic.connect_wait(&to, Some(Duration::ZERO)),
        Err(Error::Timeout)
    ));
}

#[test]
fn a_client_and_a_server_meet_on_two_threads() {
    for level in Reliability::ALL {
        let (fabric, a, b) = two(1);
        let (from, to) = addresses(&a, &b);
        let server = fabric.spawn(move || {
            let vi = b.vi(level);
            let mut incoming = b.nic.connect_wait(&to, SOON).must();
            assert_eq!(incoming.remote_address(), from);
            let region = b.region(64);
            post_recv(&vi, &region, 0..64, 0);
            incoming.accept(&vi).must();
            received(&vi).immediate
        });
        let vi = a.vi(level);
        while vi.connect(&from, &to, SOON).is_err() {}
        post_send(&vi, &a.region(64), 0..8, 77);
        sent(&vi);
        assert_eq!(server.join().must(), Some(77));
        assert!(fabric.elapsed() < ms(1), "{:?}", fabric.elapsed());
    }
}

#[test]
fn waiters_are_served_oldest_first_and_may_refuse() {
    let (fabric, a, b) = two(1);
    let (from, to) = addresses(&a, &b);
    let b = std::sync::Arc::new(b);
    let waiters: Vec<_> = (0..3)
        .map(|n| {
            let b = std::sync::Arc::clone(&b);
            let thread = fabric.spawn(move || {
                let incoming = b.nic.connect_wait(&to, SOON).must();
                incoming.reject().must();
                n
            });
            // It is in the queue before the next begins.
            fabric.sleep(us(1));
            thread
        })
        .collect();
    let vi = a.vi(Reliability::ReliableDelivery);
    for waiter in waiters {
        assert_eq!(vi.connect(&from, &to, SOON), Err(Error::Reject));
        waiter.join().must();
    }
    assert_eq!(vi.connect(&from, &to, SOON), Err(Error::NoMatch));
}

#[test]
fn who_gave_up_cannot_be_accepted() {
    let (fabric, a, b) = two(1);
    let (from, to) = addresses(&a, &b);
    let pause = fabric.clone();
    let server = fabric.spawn(move || {
        let vi = b.vi(Reliability::ReliableDelivery);
        let mut incoming = b.nic.connect_wait(&to, SOON).must();
        pause.sleep(ms(20));
        (incoming.accept(&vi), vi.state())
    });
    fabric.sleep(us(1));
    let vi = a.vi(Reliability::ReliableDelivery);
    assert_eq!(vi.connect(&from, &to, Some(ms(10))), Err(Error::Timeout));
    assert_eq!(
        server.join().must(),
        (Err(Error::Timeout), Ok(ViState::Idle))
    );
}

#[test]
fn peers_meet_in_either_order_on_one_thread() {
    let (fabric, a, b) = two(1);
    let (at_a, at_b) = addresses(&a, &b);
    for swap in [false, true] {
        let (va, vb) = (
            a.vi(Reliability::ReliableReception),
            b.vi(Reliability::ReliableReception),
        );
        let offers: [&dyn Fn(); 2] = [
            &|| va.ops().peer_request(&at_a, &at_b, SOON).must(),
            &|| vb.ops().peer_request(&at_b, &at_a, SOON).must(),
        ];
        offers[usize::from(swap)]();
        assert_eq!(va.ops().peer_done().unwrap_or(None), None);
        fabric.sleep(ms(1));
        offers[usize::from(!swap)]();
        va.ops().peer_wait().must();
        vb.ops().peer_wait().must();
        let region = b.region(64);
        post_recv(&vb, &region, 0..64, 0);
        post_send(&va, &a.region(64), 0..8, 5);
        assert_eq!(received(&vb).immediate, Some(5));
    }
}

#[test]
fn peers_that_differ_are_both_told() {
    let (_fabric, a, b) = two(1);
    let (at_a, at_b) = addresses(&a, &b);
    let (va, vb) = (
        a.vi(Reliability::ReliableReception),
        b.vi(Reliability::ReliableDelivery),
    );
    va.ops().peer_request(&at_a, &at_b, SOON).must();
    vb.ops().peer_request(&at_b, &at_a, SOON).must();
    assert_eq!(va.ops().peer_wait(), Err(Error::InvalidReliabilityLevel));
    assert_eq!(vb.ops().peer_wait(), Err(Error::InvalidReliabilityLevel));
}

#[test]
fn a_peer_alone_times_out_or_is_cancelled() {
    let (fabric, a, b) = two(1);
    let (at_a, at_b) = addresses(&a, &b);
    let vi = a.vi(Reliability::ReliableDelivery);
    vi.ops().peer_request(&at_a, &at_b, Some(ms(30))).must();
    assert_eq!(vi.ops().peer_wait(), Err(Error::Timeout));
    assert_eq!(fabric.elapsed(), ms(30));
    vi.ops().peer_request(&at_a, &at_b, None).must();
    vi.disconnect().must();
    assert_eq!(vi.state(), Ok(ViState::Idle));
    assert_eq!(vi.ops().peer_done(), Err(Error::InvalidState));
}

#[test]
fn an_export_is_good_for_one_import() {
    let (_fabric, a, b) = two(1);
    let (va, vb, vc) = (
        a.vi(Reliability::ReliableDelivery),
        b.vi(Reliability::ReliableDelivery),
        b.vi(Reliability::ReliableDelivery),
    );
    let blob = va.export().must().blob;
    let other = b.vi(Reliability::ReliableReception);
    assert_eq!(
        other.import(&blob, vec![]),
        Err(Error::InvalidReliabilityLevel)
    );
    for at in 0..blob.len() {
        let mut wrong = blob.clone();
        wrong[at] ^= 0x10;
        assert_eq!(
            vb.import(&wrong, vec![]),
            Err(Error::InvalidParameter),
            "{at}"
        );
    }
    vb.import(&blob, vec![]).must();
    assert_eq!(vc.import(&blob, vec![]), Err(Error::InvalidParameter));
    let region = b.region(64);
    post_recv(&vb, &region, 0..64, 0);
    post_send(&va, &a.region(64), 0..8, 6);
    assert_eq!(received(&vb).immediate, Some(6));
}

#[test]
fn an_export_that_was_withdrawn_cannot_be_imported() {
    let (_fabric, a, b) = two(1);
    let va = a.vi(Reliability::ReliableDelivery);
    let blob = va.export().must().blob;
    va.disconnect().must();
    let vb = b.vi(Reliability::ReliableDelivery);
    assert_eq!(vb.import(&blob, vec![]), Err(Error::InvalidParameter));
}
