//! Doorbells that several sleep on.

use super::actor::Actor;
use super::network::{End, Network};
use crate::flow::Take;
use crate::kernel::Kernel;

/// One that sends on the ring, and one that has taken all that was sent and sleeps.
fn asleep(network: &Network) -> [Actor<End<'_>>; 2] {
    let [mut sender, mut receiver] = Actor::both([network.end(0), network.end(1)]);
    receiver.flow.consent(&receiver.kernel);
    sender.send(1);
    network.settle();
    receiver.receive(&[1], Take::Read);
    assert_eq!(receiver.flow.arm_beside_others(&receiver.kernel), Ok(true));
    [sender, receiver]
}

#[test]
fn a_doorbell_stays_until_what_it_rang_for_is_taken() {
    let network = Network::new(1000, Vec::new());
    let [mut sender, mut receiver] = asleep(&network);
    sender.send(2);
    network.settle();
    assert_eq!(receiver.kernel.queued(), Ok(1), "it rings");
    for left in [2, 1] {
        // Who sleeps on it, too, has not got up yet.
        assert_eq!(receiver.flow.arm_beside_others(&receiver.kernel), Ok(false));
        assert_eq!(
            receiver.flow.drain_beside_others(&receiver.kernel),
            Ok(true)
        );
        assert_eq!(receiver.kernel.queued(), Ok(1), "{left} bytes are there");
        assert!(!receiver.flow.took_bell());
        receiver.receive(&[1], Take::Read);
    }
    assert_eq!(receiver.flow.arm_beside_others(&receiver.kernel), Ok(true));
    assert_eq!(receiver.kernel.queued(), Ok(0));
    assert!(receiver.flow.took_bell());
}

#[test]
fn a_doorbell_for_the_end_stays() {
    let network = Network::new(1000, Vec::new());
    let [sender, receiver] = asleep(&network);
    sender.flow.finish(&sender.kernel, true).expect("sound");
    network.settle();
    assert_eq!(
        receiver.flow.drain_beside_others(&receiver.kernel),
        Ok(true)
    );
    assert!(receiver.kernel.queued().expect("counted") > 0);
}
