use sys::sync::AtomicUsize;

use super::*;

static OPEN: AtomicUsize = AtomicUsize::new(0);

#[test]
fn an_offer_that_is_withdrawn_while_its_answer_arrives_is_withdrawn_once() {
    let agent = Agent::<ShmDuties>::new(&OPEN).expect("an agent");
    let address = |letter: char| {
        let name = format!("{letter}{}", std::process::id());
        NetAddress::new(name::host_address(), name.as_bytes()).expect("short")
    };
    let ask = Ask {
        local: address('a'),
        remote: address('b'),
        attributes: ViAttributes::default(),
    };
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
