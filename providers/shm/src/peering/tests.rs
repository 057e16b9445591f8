use sys::sync::AtomicUsize;

use super::*;
use crate::connect::{answer, dial, say, to_wire};

static OPEN: AtomicUsize = AtomicUsize::new(0);

#[test]
fn an_offer_that_is_withdrawn_while_its_answer_arrives_is_withdrawn_once() {
    let agent = Agent::<ShmDuties>::new(&OPEN).expect("an agent");
    let ask = ask("a gone", "b gone");
    let mirror = name::offer(&ask.remote, &ask.local, 0);
    let mirror = Listener::bind(&mirror, 1).expect("a name");
    let offer = offer(&agent, &ask).expect("an offer");
    let offers = &agent.duties().offers;
    let calls = offers.table().members.clone();
    let mut calls = calls.into_iter().filter_map(|(id, place)| match place {
        Place::Call(_, conn) => Some((id, conn)),
        _ => None,
    });
    let (id, conn) = calls.next().expect("it has called");
    drop(mirror.accept().expect("a listener").expect("the call"));
    // The agent has looked the call up, and another thread is quicker.
    offer.cancel();
    assert!(offers.table().members.is_empty());
    offers.attend_call(&agent, id, &offer, &conn);
    assert!(offers.table().members.is_empty() && offers.table().points.is_empty());
}

#[test]
fn a_caller_waits_for_what_comes_of_the_call_that_counts() {
    let agent = Agent::<ShmDuties>::new(&OPEN).expect("an agent");
    let (ours, theirs) = (ask("a counts", "b counts"), ask("b counts", "a counts"));
    let offer = Offer::new(&agent, &ours);
    let offers = &agent.duties().offers;
    offers.wait(&agent, &offer).expect("a name");
    let name = |slot| name::offer(&ours.local, &ours.remote, slot);
    let caller = Arc::new(dial(Duration::ZERO, name).expect("it listens"));
    say(
        &caller,
        &proto::setup::Message::PeerRequest(to_wire(&theirs)),
    );
    hear_all(&agent);
    assert!(matches!(answer(&caller), Ok(None)), "it has not called yet");
    offers.seek(&agent, &offer, Duration::ZERO).expect("a name");
    assert!(matches!(answer(&caller), Ok(Some(_))));
    assert!(matches!(offer.wait(Some(Instant::now())), Some(Ok(_))));
}

#[test]
fn who_calls_where_another_was_first_calls_again() {
    let [one, other, first, second] =
        [(); 4].map(|()| Agent::<ShmDuties>::new(&OPEN).expect("an agent"));
    let (lower, higher) = (ask("a first", "b first"), ask("b first", "a first"));
    let agents = [&one, &other, &first, &second];
    let made = [
        (&one, &lower),
        (&other, &lower),
        (&first, &higher),
        (&second, &higher),
    ]
    .map(|(agent, ask)| offer(agent, ask).expect("an offer"));
    // Each step of the dance is one event of an agent.
    for _ in 0..10 {
        agents.into_iter().for_each(hear_all);
    }
    let is_met = |offer: &Arc<Offer>| matches!(offer.wait(Some(Instant::now())), Some(Ok(_)));
    assert!(made.iter().all(is_met));
}

#[test]
fn own_images_of_one_handle_need_nobody() {
    let agent = Agent::<ShmDuties>::new(&OPEN).expect("an agent");
    let ask = ask("own", "own");
    let made: Vec<_> = (0..140)
        .map(|_| offer(&agent, &ask).expect("an offer"))
        .collect();
    let is_met = |offer: &Arc<Offer>| matches!(offer.wait(Some(Instant::now())), Some(Ok(_)));
    assert!(made.iter().all(is_met));
    assert!(agent.duties().offers.table().points.is_empty());
}

/// What the agent's thread, which is not there, would do.
fn hear_all(agent: &Arc<Agent<ShmDuties>>) {
    let offers = &agent.duties().offers;
    let members: Vec<u32> = offers.table().members.keys().copied().collect();
    for id in members {
        offers.hear(agent, id);
    }
}

fn ask(local: &str, remote: &str) -> Ask {
    let address = |name: &str| {
        let name = format!("{name}{}", std::process::id());
        NetAddress::new(name::host_address(), name.as_bytes()).expect("short")
    };
    Ask {
        local: address(local),
        remote: address(remote),
        attributes: ViAttributes::default(),
    }
}
