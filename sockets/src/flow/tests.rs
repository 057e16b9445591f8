//! Two ends over TCP: a model of it in virtual time, and the kernel's.

use std::time::Duration;

use super::*;
use crate::states::sender::State;
use actor::{Actor, Deed};
use network::{End, Network};

mod actor;
mod beside;
mod network;
mod property;

static BELLS: AtomicU64 = AtomicU64::new(0);

/// Sends until there is no room, and says that it would sleep for some.
fn fill(end: &mut Actor<End<'_>>) {
    end.flow.consent(&end.kernel);
    while end.flow.unread() < actor::RING as u64 {
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
    receiver.receive(&[actor::RING], Take::Read);
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
fn who_takes_nothing_is_looked_at() {
    let network = Network::new(1000, Vec::new());
    let [mut asker, mut answerer] = Actor::both([network.end(0), network.end(1)]);
    asker.flow.consent(&asker.kernel);
    answerer.flow.consent(&answerer.kernel);
    // How often it is time to look at who takes what he is asked, or answers, or says nothing.
    let mut looks = |takes: bool, says: usize, heard: usize| {
        let mut looks = 0;
        for _ in 0..100 {
            looks += u32::from(asker.flow.is_time_to_look());
            asker.send(1);
            if takes {
                answerer.receive(&[1000], Take::Read);
            }
            (0..says).for_each(|_| answerer.send(1));
            (0..heard).for_each(|_| asker.receive(&[1], Take::Read));
        }
        looks
    };
    assert_eq!(looks(true, 1, 1), 0);
    assert_eq!(looks(true, 0, 0), 0);
    // He says more than is taken, and then no more: he may be dead while there is still something to hear of him.
    assert_eq!(looks(true, 3, 1), 0);
    assert!((4..=6).contains(&looks(false, 0, 1)));
    assert!((4..=6).contains(&looks(false, 0, 0)));
}

#[test]
fn a_doorbell_goes_only_where_no_data_goes() {
    for &state in State::ALL {
        let network = Network::new(1000, Vec::new());
        let [mut payer, mut sender] = Actor::both([network.end(0), network.end(1)]);
        payer.receive(&[1], Take::Read);
        sender.send(1);
        payer.receive(&[1], Take::Read);
        if !matches!(state, State::Before | State::Called) {
            sender.flow.consent(&sender.kernel);
        }
        let call_back = || sender.flow.call_back(&sender.kernel, true).expect("room");
        match state {
            State::Before | State::Invited => {}
            State::Called => call_back(),
            State::Ring => payer.send(1),
            State::Recalled => {
                payer.send(1);
                call_back();
            }
            State::Serving => {
                payer.send(5000);
                call_back();
                payer.send(1);
            }
            State::After => {
                payer.send(1);
                payer.act(Deed::LeaveRing);
            }
        }
        assert_eq!(payer.flow.sender(), state);
        while sender.flow.unread() < actor::RING as u64 {
            sender.send(100_000);
        }
        assert_eq!(sender.flow.arm_send(), Ok(true));
        payer.receive(&[actor::RING], Take::Read);
        payer.act(Deed::PayBell);
        let owes = matches!(state, State::Before | State::Called);
        assert_eq!(payer.flow.owes_bell(), owes, "{state:?}");
    }
}

#[test]
fn a_doorbell_goes_nowhere_once_tcp_has_ended() {
    let network = Network::new(1000, Vec::new());
    let [mut payer, mut sender] = Actor::both([network.end(0), network.end(1)]);
    payer.receive(&[1], Take::Read);
    fill(&mut sender);
    payer.receive(&[actor::RING], Take::Read);
    sender.kernel.reset_now();
    payer.act(Deed::PayBell);
    assert_eq!(payer.flow.sender(), State::Invited);
    assert!(payer.flow.owes_bell());
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
fn who_shuts_down_while_unread_bytes_move_to_tcp_says_so_behind_them() {
    let network = Network::new(1000, Vec::new());
    let [mut sender, mut receiver] = Actor::both([network.end(0), network.end(1)]);
    receiver.flow.consent(&receiver.kernel);
    sender.send(1500);
    receiver.act(Deed::CallBack);
    // As much as TCP has room for, the doorbell included.
    sender.act(Deed::Send(1));
    assert_eq!(sender.flow.sender(), State::Serving);
    receiver.read_on();
    receiver.receive(&[800], Take::Read);
    sender.act(Deed::Finish);
    assert_eq!(sender.flow.sender(), State::After);
    for _ in 0..3 {
        receiver.receive(&[1000], Take::Read);
    }
    assert_eq!((receiver.received, receiver.ended), (1501, true));
}

#[test]
fn who_is_killed_while_unread_bytes_move_to_tcp_is_reset() {
    for linger in [None, Some(Duration::from_secs(3))] {
        let network = Network::new(1000, Vec::new());
        let [mut sender, mut receiver] = Actor::both([network.end(0), network.end(1)]);
        receiver.flow.consent(&receiver.kernel);
        sender.send(1500);
        sender.kernel.set_linger(linger);
        receiver.act(Deed::CallBack);
        sender.act(Deed::Send(1));
        assert_eq!(sender.flow.sender(), State::Serving);
        assert!(sender.kernel.resets_on_close());
        // Once all is there, the connection lingers as the program has it.
        receiver.read_on();
        receiver.receive(&[800], Take::Read);
        sender.act(Deed::Send(1));
        assert_eq!(sender.flow.sender(), State::After);
        assert_eq!(sender.kernel.linger(), linger);
    }
}

/// One that has shut down its side goes back alone, so that TCP ends: whose bytes are on the ring owes them to its heirs, and must not die in order.
#[test]
fn who_is_killed_before_unread_bytes_move_to_tcp_that_has_ended_is_reset() {
    let network = Network::new(1000, Vec::new());
    let [mut sender, mut receiver] = Actor::both([network.end(0), network.end(1)]);
    sender.flow.consent(&sender.kernel);
    receiver.flow.consent(&receiver.kernel);
    receiver.send(1);
    sender.receive(&[1], Take::Read);
    sender.send(800);
    for deed in [Deed::Finish, Deed::CallBack, Deed::GoAlone] {
        receiver.act(deed);
    }
    assert!(!receiver.away && sender.kernel.has_ended());
    sender.act(Deed::ArmReceive);
    sender.act(Deed::Die);
    receiver.receive(&[800], Take::Read);
    assert_eq!(receiver.failed, Some(Errno::CONNRESET));
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

/// Both ends on the ring, with all that was sent read, and the second rung once.
fn rung(network: &Network) -> [Actor<End<'_>>; 2] {
    let [mut first, mut second] = Actor::both([network.end(0), network.end(1)]);
    for round in 0..3 {
        second.receive(&[10], Take::Read);
        if round == 2 {
            second.act(Deed::ArmReceive);
        }
        first.send(10);
        second.receive(&[10], Take::Read);
        first.receive(&[10], Take::Read);
        second.send(10);
        first.receive(&[10], Take::Read);
    }
    assert!(first.flow.sends_on_ring() && second.flow.sends_on_ring());
    assert_eq!(second.received, 30);
    [first, second]
}

#[test]
fn who_is_killed_with_a_doorbell_unread_has_ended_in_order() {
    let network = Network::new(1000, Vec::new());
    let [mut first, mut second] = rung(&network);
    second.act(Deed::Die);
    assert!(first.kernel.is_reset());
    first.act(Deed::ArmReceive);
    first.receive(&[10], Take::Read);
    assert!(first.ended);
}

/// As by `ss -K`: what the other end had to say may be missing, so this is no end of it.
#[test]
fn what_somebody_else_resets_is_told_to_both_ends() {
    for closes in [false, true] {
        let network = Network::new(1000, Vec::new());
        let [mut first, mut second] = rung(&network);
        // Takes the doorbell.
        second.act(Deed::ArmReceive);
        second.kernel.reset_now();
        second.kernel.tell(Errno::CONNABORTED);
        second.act(Deed::ArmReceive);
        if closes {
            second.act(Deed::Close);
        }
        first.act(Deed::ArmReceive);
        first.receive(&[10], Take::Read);
        assert_eq!(first.failed, Some(Errno::CONNRESET));
        second.receive(&[10], Take::Read);
        assert_eq!(second.failed, (!closes).then_some(Errno::CONNABORTED));
    }
}

#[test]
fn who_has_urgent_data_before_the_ring_consents_behind_it() {
    let network = Network::new(1000, Vec::new());
    let [mut sender, mut receiver] = Actor::both([network.end(0), network.end(1)]);
    sender.send(1);
    receiver.kernel.set_mark(true);
    receiver.flow.consent(&receiver.kernel);
    sender.send(1);
    assert_eq!(sender.flow.sender(), State::Before);
    receiver.kernel.set_mark(false);
    receiver.receive(&[2], Take::Read);
    sender.send(1);
    assert_eq!(sender.flow.sender(), State::Ring);
    receiver.receive(&[2], Take::Read);
    assert_eq!(receiver.received, 3);
}

#[test]
fn who_closes_with_an_urgent_byte_unread_says_no_orderly_end_in_memory() {
    let network = Network::new(1000, Vec::new());
    let [mut first, mut second] = rung(&network);
    second.act(Deed::ArmReceive);
    first.act(Deed::LeaveRing);
    second.receive(&[10], Take::Read);
    first.kernel.send(&[1]).expect("room");
    second.kernel.set_mark(true);
    second.act(Deed::Close);
    first.act(Deed::ArmReceive);
    first.receive(&[10], Take::Read);
    assert_eq!(first.failed, Some(Errno::CONNRESET));
}

#[test]
fn what_is_sent_to_an_end_that_is_shut_both_ways_the_kernel_answers() {
    let network = Network::new(1000, Vec::new());
    let [mut first, mut second] = rung(&network);
    second.act(Deed::ArmReceive);
    first.send(10);
    second.send(10);
    // With two calls as with one.
    second.flow.shut_read();
    let to_shut = second.flow.end_of_tcp(&second.kernel, [true, false], false);
    assert_eq!(to_shut, [true, false]);
    assert!(!first.flow.stream().peer_deaf());
    let in_memory = second.flow.finish(&second.kernel, true);
    assert_eq!(in_memory, Ok(true));
    let to_shut = second.flow.end_of_tcp(&second.kernel, [false, true], true);
    assert_eq!(to_shut, [false, true]);
    second.kernel.shut();
    // No doorbell, which would be answered, too.
    assert!(!first.kernel.is_reset());
    assert_eq!(first.flow.arm_send(), Ok(false), "nobody waits for room");
    first.send(5);
    assert_eq!(first.flow.unread(), 10, "that came before");
    assert!(first.kernel.is_reset());
    first.receive(&[100], Take::Read);
    assert_eq!(first.received, second.sent);
    first.receive(&[1], Take::Read);
    assert!(first.is_over());
    second.receive(&[100], Take::Read);
    assert_eq!(second.received, 40);
    second.receive(&[1], Take::Read);
    assert_eq!(second.failed, Some(Errno::CONNRESET));
}

/// Who looks for more than lies on one side of a move sees what is on the other, too.
#[test]
fn a_look_goes_on_where_the_direction_moves() {
    let network = Network::new(1000, Vec::new());
    let [mut sender, mut receiver] = Actor::both([network.end(0), network.end(1)]);
    let shows = |receiver: &Actor<End<'_>>, most: usize| {
        let mut room = vec![0; most];
        let mut into = [IoSliceMut::new(&mut room)];
        let shown = receiver
            .flow
            .receive(&receiver.kernel, &mut into, Take::Peek);
        let counted = receiver
            .flow
            .receive(&receiver.kernel, &mut [], Take::Count(most));
        assert_eq!(shown, counted);
        let shown = shown.expect("bytes");
        let is_right = |(at, found): (u64, &u8)| *found == actor::byte(at);
        assert!(
            (receiver.received..)
                .zip(room.iter().take(shown))
                .all(is_right)
        );
        shown
    };
    sender.send(4);
    receiver.flow.consent(&receiver.kernel);
    sender.flow.consent(&sender.kernel);
    sender.send(8);
    assert!(sender.flow.sends_on_ring());
    assert_eq!(shows(&receiver, 3), 3);
    assert_eq!(shows(&receiver, 6), 6);
    assert_eq!(shows(&receiver, 100), 12);
    receiver.receive(&[4], Take::Read);
    receiver.receive(&[1], Take::Read);
    assert_eq!(shows(&receiver, 100), 8 - 1);
    // A doorbell, and behind it what the sender has to say on TCP.
    assert_eq!(receiver.flow.arm_receive(&receiver.kernel), Ok(false));
    sender.send(2);
    sender.act(Deed::LeaveRing);
    sender.send(20);
    assert!(!sender.flow.sends_on_ring());
    assert_eq!(shows(&receiver, 8), 8);
    assert_eq!(shows(&receiver, 100), 7 + 2 + 20);
    receiver.receive(&[100], Take::Read);
    receiver.receive(&[100], Take::Read);
    assert_eq!(receiver.received, 4 + 8 + 2 + 20);
}
