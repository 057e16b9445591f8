//! Windows and acknowledgements.

use proto::packet::{BadSettings, Kind, Settings, WINDOW_MAX};

use crate::rig::Pair;

fn settings(window: u32, threshold: u32) -> Settings {
    Settings::new(window, threshold, 1024).unwrap()
}

#[test]
fn the_paper_s_numbers() {
    let paper = Settings::default();
    assert_eq!((paper.window, paper.threshold), (32, 16));
    // P = w + w/t + 1.
    assert_eq!((paper.pre_posted(), paper.slots()), (35, 36));
    assert_eq!(settings(1, 1).pre_posted(), 3);
}

#[test]
fn a_window_is_never_zero_nor_a_threshold_beyond_it() {
    assert_eq!(Settings::new(0, 1, 1024), Err(BadSettings::Window));
    assert_eq!(
        Settings::new(WINDOW_MAX + 1, 1, 1024),
        Err(BadSettings::Window)
    );
    assert_eq!(Settings::new(4, 5, 1024), Err(BadSettings::Threshold));
    assert_eq!(Settings::new(4, 0, 1024), Err(BadSettings::Threshold));
    assert_eq!(Settings::new(4, 4, 1), Err(BadSettings::Mtu));
}

#[test]
fn nothing_is_sent_to_a_peer_of_whom_nothing_is_known() {
    let mut pair = Pair::new([settings(4, 2); 2]);
    assert!(!pair.send(0, b"x"));
    pair.deliver_all();
    assert!(pair.send(0, b"x"));
}

#[test]
fn a_full_window_holds_the_sender_until_the_receiver_reads() {
    let mut pair = Pair::woken(settings(8, 4));
    // The WAKEUP is one of the eight, and not acknowledged yet.
    for n in 0..7 {
        assert!(pair.send(0, &[n]));
    }
    assert!(!pair.send(0, b"x"));
    pair.deliver_all();
    assert!(!pair.send(0, b"x"), "what was not read is not acknowledged");
    // The WAKEUP and three more are four.
    for _ in 0..3 {
        pair.read(1);
    }
    pair.deliver_all();
    assert_eq!(pair.ends[1].sent, [Kind::Wakeup, Kind::Ack]);
    assert_eq!(pair.ends[0].talk.window(), 4);
}

#[test]
fn acknowledgements_ride_on_data() {
    let mut pair = Pair::woken(settings(8, 4));
    for _ in 0..50 {
        assert!(pair.send(0, b"ping"));
        pair.deliver_all();
        pair.read(1);
        assert!(pair.send(1, b"pong"));
        pair.deliver_all();
        pair.read(0);
    }
    assert!(!pair.ends[0].sent.contains(&Kind::Ack));
    assert!(!pair.ends[1].sent.contains(&Kind::Ack));
}

#[test]
fn without_delay_each_packet_is_acknowledged() {
    let mut pair = Pair::woken(settings(1, 1));
    for _ in 0..3 {
        assert!(pair.send(0, b"x") && !pair.send(0, b"y"));
        pair.deliver_all();
        pair.read(1);
        pair.deliver_all();
    }
    let acks = pair.ends[1].sent.iter().filter(|&&kind| kind == Kind::Ack);
    // One more for the WAKEUP.
    assert_eq!(acks.count(), 4);
}

#[test]
fn ends_may_differ() {
    let mut pair = Pair::new([settings(1, 1), settings(8, 8)]);
    pair.deliver_all();
    for _ in 0..7 {
        assert!(pair.send(0, b"x"));
    }
    assert!(!pair.send(0, b"x"));
    assert!(pair.send(1, b"y") && !pair.send(1, b"y"));
}

#[test]
fn the_worst_case_fills_the_queue_and_no_more() {
    // All that can be on its way at once: a window, an ACK for each threshold, FIN and FINACK.
    let mut pair = Pair::woken(Settings::default());
    // The WAKEUPs are acknowledged beside data that is read: the first's with it, the second's on the first's data.
    for (at, packets) in [(0, 15), (1, 16)] {
        for _ in 0..packets {
            assert!(pair.send(at, b"x"));
        }
        pair.deliver_all();
        while pair.read(1 - at) {}
        pair.deliver_all();
    }
    assert_eq!([0, 1].map(|at| pair.ends[at].talk.window()), [32; 2]);
    // Our window to the peer, and the peer's to us, which we read: two ACKs.
    for _ in 0..32 {
        assert!(pair.send(1, b"y"));
    }
    while pair.deliver(0).unwrap().is_some() {}
    while pair.read(0) {}
    while pair.send(0, b"x") {}
    pair.close(1);
    while pair.deliver(0).unwrap().is_some() {}
    pair.close(0);
    let inbox = &pair.ends[1].inbox;
    assert_eq!(inbox.len() as u32, Settings::default().slots());
    pair.deliver_all();
}

#[test]
fn without_a_window_nothing_is_counted_nor_acknowledged() {
    let mut pair = Pair::woken(Settings::without_window(1024).unwrap());
    for n in 0..200 {
        assert!(pair.send(0, &[n]));
    }
    loop {
        pair.deliver_all();
        if !pair.read(1) {
            break;
        }
    }
    assert_eq!(pair.ends[1].taken.len(), 200);
    assert_eq!(pair.ends[1].sent, [Kind::Wakeup]);
}

#[test]
fn one_end_may_have_a_window_and_the_other_none() {
    let mut pair = Pair::new([settings(2, 1), Settings::without_window(1024).unwrap()]);
    pair.deliver_all();
    let sent = |pair: &mut Pair, from| (0..5).filter(|n| pair.send(from, &[*n])).count();
    assert_eq!([sent(&mut pair, 0), sent(&mut pair, 1)], [5, 2]);
}

#[test]
fn what_could_not_be_sent_counts_as_before() {
    let mut pair = Pair::woken(settings(4, 2));
    let talk = &mut pair.ends[0].talk;
    let (window, packet) = (talk.window(), talk.take_window().unwrap());
    talk.put_back(packet);
    assert_eq!((talk.window(), talk.take_window()), (window, Some(packet)));
}
