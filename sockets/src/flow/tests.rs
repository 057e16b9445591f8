//! Two ends over TCP: a model of it in virtual time, and the kernel's.

use super::*;
use actor::Actor;
use network::{End, Network};

mod actor;
mod network;
mod property;

static BELLS: AtomicU64 = AtomicU64::new(0);

/// Sends until there is no room, and says that it would sleep for some.
fn fill(end: &mut Actor<End<'_>>) {
    end.flow.consent(&end.kernel);
    while end.flow.unread() < sys::stream::RING as u64 {
        end.send(100_000);
    }
    assert_eq!(end.flow.arm_send(), Ok(true));
}

#[test]
fn a_bell_that_cannot_go_now_is_owed() {
    let network = Network::new(1000, Vec::new());
    let [mut sender, mut receiver] = Actor::both([network.end(0), network.end(1)]);
    receiver.flow.consent(&receiver.kernel);
    fill(&mut sender);
    receiver.receive(&[sys::stream::RING], Take::Read);
    assert!(receiver.flow.owes_bell());
    // Another thread is in the middle of a send on TCP.
    receiver
        .flow
        .pay_bell(&receiver.kernel, false)
        .expect("sound");
    assert_eq!(receiver.kernel.put(), 0);
    receiver
        .flow
        .pay_bell(&receiver.kernel, true)
        .expect("sound");
    assert_eq!(receiver.kernel.put(), 1, "the doorbell");
    assert!(!receiver.flow.owes_bell());
}

#[test]
fn who_goes_back_wakes_whom_it_can_wake_no_more() {
    let network = Network::new(1000, Vec::new());
    let [mut sender, mut receiver] = Actor::both([network.end(0), network.end(1)]);
    receiver.flow.consent(&receiver.kernel);
    sender.flow.consent(&sender.kernel);
    receiver.send(1);
    fill(&mut sender);
    assert!(sender.flow.can_be_rung());
    receiver
        .flow
        .leave_ring(&receiver.kernel)
        .expect("on the ring");
    assert_eq!(receiver.kernel.put(), 1, "the doorbell");
    assert!(!sender.flow.can_be_rung());
}

#[test]
fn a_bell_that_is_refused_is_told_after_the_bytes_and_at_both_ends() {
    let network = Network::new(1000, Vec::new());
    let [mut sender, mut receiver] = Actor::both([network.end(0), network.end(1)]);
    receiver.flow.consent(&receiver.kernel);
    sender.flow.consent(&sender.kernel);
    sender.send(3);
    receiver.receive(&[3], Take::Read);
    assert_eq!(receiver.flow.arm_receive(&receiver.kernel), Ok(true));
    sender.kernel.refuse(Errno::NOMEM);
    // Told that it failed, a program would send the same again.
    sender.send(5);
    assert_eq!(sender.sent, 8);
    assert!(sender.kernel.is_reset());
    receiver.receive(&[5], Take::Read);
    assert_eq!(receiver.received, 8);
    // Who has read everything would take a reset for the death of one that was killed, and that for an orderly end.
    receiver.flow.note_error(Errno::CONNRESET);
    for end in [&sender, &receiver] {
        assert_eq!(end.flow.kernel_end(), Some(Some(Errno::CONNRESET)));
    }
}
