//! Two VIs of one process, through the whole NIC.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use via::provider::Received;
use via::{
    Access, Descriptor, Done, Fault, Memory, Nic, Ptag, Queue, Region, Reliability, Vi, ViConfig,
    ViState,
};

const SOON: Option<Duration> = Some(Duration::from_secs(10));

struct End {
    nic: Nic,
    tag: Ptag,
    vi: Vi,
}

fn end(level: Reliability) -> End {
    let nic = Nic::open(&shm::DRIVER).expect("opens");
    let tag = nic.create_ptag().expect("a tag");
    let config = ViConfig::new(&tag)
        .reliability(level)
        .max_transfer_size(8 << 20)
        .accept_rdma_write();
    let config = match level {
        Reliability::Unreliable => config,
        _ => config.accept_rdma_read(),
    };
    let vi = nic.create_vi(&config).expect("a VI");
    End { nic, tag, vi }
}

fn connect(name: &[u8], level: Reliability) -> (End, End) {
    connect_as(name, level, |_| {})
}

/// After the accepting end has been prepared.
fn connect_as(name: &[u8], level: Reliability, prepare: impl FnOnce(&End)) -> (End, End) {
    let (a, b) = (end(level), end(level));
    prepare(&b);
    let address = b.nic.address(name).expect("short");
    let from = a.nic.address(b"client").expect("short");
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut incoming = b.nic.connect_wait(&address, SOON).expect("a request");
            assert_eq!(incoming.remote_address(), from);
            incoming.accept(&b.vi).expect("accepts");
        });
        let started = Instant::now();
        loop {
            match a.vi.connect(&from, &address, SOON) {
                Ok(_) => break,
                Err(via::Error::NoMatch) if started.elapsed().as_secs() < 10 => thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
    });
    (a, b)
}

fn region(end: &End, memory: Memory, access: Access) -> Region {
    end.nic
        .register(memory, &end.tag, access)
        .expect("registers")
}

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len)
        .map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed))
        .collect()
}

fn contents(region: &Region) -> Vec<u8> {
    let mut bytes = vec![0; region.len()];
    region.memory().read(0, &mut bytes).expect("in range");
    bytes
}

#[test]
fn messages_of_all_sizes_at_all_levels() {
    for level in Reliability::ALL {
        let (a, b) = connect(format!("sizes {level}").as_bytes(), level);
        for len in [0, 1, 19, 20, 21, 4096, 32768, 32769, 1 << 20, 8 << 20] {
            let from = region(
                &a,
                Memory::private(len.max(1)).expect("memory"),
                Access::Local,
            );
            let to = region(
                &b,
                Memory::private(len.max(1)).expect("memory"),
                Access::Local,
            );
            let sent = pattern(len.max(1), len as u8);
            from.memory().write(0, &sent).expect("in range");
            let room = Descriptor::recv().segment(&to, 0..len as u32);
            b.vi.post_recv(&room, 7).expect("posts");
            let message = Descriptor::send()
                .segment(&from, 0..len as u32)
                .immediate(9);
            a.vi.post_send(&message, 8).expect("posts");
            let waiting = thread::scope(|scope| {
                let sending = scope.spawn(|| a.vi.send_wait(SOON).expect("sends"));
                let received = b.vi.recv_wait(SOON).expect("receives");
                (sending.join().expect("no panic"), received)
            });
            assert_eq!(waiting.0.ok().expect("sent").token, 8);
            let received = waiting.1.ok().expect("received");
            assert_eq!((received.token, received.length as usize), (7, len));
            assert_eq!(received.immediate, Some(9));
            assert_eq!(contents(&to)[..len], sent[..len]);
        }
    }
}

#[test]
fn rdma_reaches_its_place_by_every_way() {
    for level in [
        Reliability::ReliableDelivery,
        Reliability::ReliableReception,
    ] {
        let (a, b) = connect(format!("rdma {level}").as_bytes(), level);
        for memory in [Memory::private, Memory::shared] {
            let len = 1 << 20;
            let from = region(&a, Memory::private(len).expect("memory"), Access::Local);
            let to = region(&b, memory(len).expect("memory"), Access::ReadWrite);
            for round in 0..20u8 {
                let sent = pattern(len, round);
                from.memory().write(0, &sent).expect("in range");
                b.vi.post_recv(&Descriptor::recv(), 1).expect("posts");
                let write = Descriptor::rdma_write(to.remote(0))
                    .segment(&from, 0..len as u32)
                    .immediate(u32::from(round));
                a.vi.post_send(&write, 2).expect("posts");
                let received = b.vi.recv_wait(SOON).expect("told").ok().expect("placed");
                assert_eq!(received.immediate, Some(u32::from(round)));
                assert_eq!(contents(&to), sent);
                a.vi.send_wait(SOON).expect("ends").ok().expect("written");
                let back = region(&a, Memory::private(len).expect("memory"), Access::Local);
                let read = Descriptor::rdma_read(to.remote(0)).segment(&back, 0..len as u32);
                a.vi.post_send(&read, 3).expect("posts");
                // Nobody looks after the target: its agent answers.
                a.vi.send_wait(SOON).expect("ends").ok().expect("read");
                assert_eq!(contents(&back), sent);
            }
            // A region that is gone is written no more, whatever way it was reached.
            let (remote, shared) = (to.remote(0), Arc::clone(to.memory()));
            drop(to);
            shared.write(0, &[0x55; 64]).expect("in range");
            let write = Descriptor::rdma_write(remote).segment(&from, 0..512);
            a.vi.post_send(&write, 4).expect("posts");
            let mut now = [0; 64];
            let _outcome = a.vi.send_wait(SOON).expect("ends");
            shared.read(0, &mut now).expect("in range");
            assert_eq!(now, [0x55; 64]);
            let started = Instant::now();
            while b.vi.state().expect("alive") != ViState::Error {
                assert!(
                    started.elapsed().as_secs() < 10,
                    "the refusal breaks the connection"
                );
            }
            let (again_a, again_b) = (&a, &b);
            again_a.vi.disconnect().expect("disconnects");
            again_b.vi.disconnect().expect("disconnects");
            while let Ok(Done::Completed(_)) = again_b.vi.recv_done() {}
            reconnect(again_a, again_b);
        }
    }
}

fn reconnect(a: &End, b: &End) {
    let address = b.nic.address(b"again").expect("short");
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut incoming = b.nic.connect_wait(&address, SOON).expect("a request");
            incoming.accept(&b.vi).expect("accepts");
        });
        while let Err(error) = a.vi.connect(&address, &address, SOON) {
            assert_eq!(error, via::Error::NoMatch);
            thread::yield_now();
        }
    });
}

#[test]
fn an_exported_end_connects_elsewhere() {
    let (a, b) = (
        end(Reliability::ReliableDelivery),
        end(Reliability::ReliableDelivery),
    );
    let export = a.vi.export().expect("exports");
    b.vi.import(&export.blob, export.fds).expect("imports");
    let to = region(&b, Memory::private(8).expect("memory"), Access::Local);
    let from = region(&a, Memory::private(8).expect("memory"), Access::Local);
    from.memory().write(0, b"exported").expect("in range");
    b.vi.post_recv(&Descriptor::recv().segment(&to, 0..8), 0)
        .expect("posts");
    a.vi.post_send(&Descriptor::send().segment(&from, 0..8), 0)
        .expect("posts");
    assert_eq!(b.vi.recv_wait(SOON).expect("comes").length, 8);
    assert_eq!(contents(&to), b"exported");
    drop(a.vi);
    let started = Instant::now();
    while b.vi.state().expect("alive") != ViState::Error {
        assert!(
            started.elapsed().as_secs() < 10,
            "the peer's end is noticed"
        );
    }
}

/// What comes next, copied if it can be: its bytes and immediate data.
fn next(b: &End, slots: &Region, room: usize) -> (Vec<u8>, Option<u32>) {
    let mut into = vec![0; room];
    match b.vi.receive(&mut into, SOON).expect("connected") {
        Received::Copied { length, immediate } => {
            into.truncate(length as usize);
            (into, immediate)
        }
        Received::Posted(done) => {
            let completion = done.completion().expect("waited").ok().expect("whole");
            let mut bytes = vec![0; completion.length as usize];
            let start = completion.token as usize * SLOT as usize;
            slots.memory().read(start, &mut bytes).expect("in range");
            (bytes, completion.immediate)
        }
    }
}

const SLOT: u32 = 32 << 10;

fn slots(end: &End, count: u32) -> Region {
    let memory = Memory::private((count * SLOT) as usize).expect("memory");
    region(end, memory, Access::Local)
}

fn post(end: &End, slots: &Region, slot: u32) {
    let descriptor = Descriptor::recv().segment(slots, slot * SLOT..(slot + 1) * SLOT);
    end.vi.post_recv(&descriptor, slot.into()).expect("posts");
}

#[test]
fn copied_messages_and_posted_ones_keep_their_order() {
    let (a, b) = connect(b"copied", Reliability::ReliableDelivery);
    // For each message one: the agent may be there first. And one that stays.
    let places = slots(&b, 6);
    (0..6).for_each(|slot| post(&b, &places, slot));
    let from = region(&a, Memory::private(64).expect("memory"), Access::Local);
    let bytes = |len: usize| pattern(len, len as u8);
    assert_eq!(a.vi.send_copied(&bytes(4), Some(1)), Ok(true));
    from.memory().write(0, &bytes(64)).expect("in range");
    let posted = Descriptor::send().segment(&from, 0..64).immediate(2);
    a.vi.post_send(&posted, 0).expect("posts");
    assert_eq!(a.vi.send_copied(&[], Some(3)), Ok(true));
    assert_eq!(a.vi.send_copied(&bytes(32 << 10), None), Ok(true));
    assert_eq!(a.vi.send_copied(&bytes(5), Some(5)), Ok(true));
    // What does not fit goes where it was to go without all this, and what follows stays behind it.
    for (len, immediate, room) in [
        (4, Some(1), 4),
        (64, Some(2), 64),
        (0, Some(3), 0),
        (32 << 10, None, 100),
        (5, Some(5), 100),
    ] {
        assert_eq!(next(&b, &places, room), (bytes(len), immediate));
    }
    assert_eq!(
        b.vi.receive(&mut [0; 9], Some(Duration::ZERO)),
        Ok(Received::Posted(Done::NotDone))
    );
    // Larger than a frame, or than the VI moves: only by a descriptor, which says what is wrong.
    assert_eq!(a.vi.send_copied(&bytes((32 << 10) + 1), None), Ok(false));
}

#[test]
fn a_copied_message_wakes_who_sleeps_for_it() {
    let (a, b) = connect(b"copied, asleep", Reliability::ReliableDelivery);
    // The agent may be there first: then a descriptor is used.
    let turn = |end: &End| {
        let places = slots(end, ROUNDS);
        (0..ROUNDS).for_each(|slot| post(end, &places, slot));
        places
    };
    let (ours, theirs) = (turn(&a), turn(&b));
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..ROUNDS {
                assert_eq!(next(&b, &theirs, 4), (b"ask".to_vec(), Some(n)));
                assert_eq!(b.vi.send_copied(&n.to_le_bytes(), None), Ok(true));
            }
        });
        for n in 0..ROUNDS {
            assert_eq!(a.vi.send_copied(b"ask", Some(n)), Ok(true));
            assert_eq!(next(&a, &ours, 4), (n.to_le_bytes().to_vec(), None));
        }
    });
}

const ROUNDS: u32 = 100;

#[test]
fn a_message_without_a_receive_waits_where_that_was_asked_for() {
    let (a, b) = connect_as(b"held", Reliability::ReliableDelivery, |end| {
        assert_eq!(end.vi.hold_back(), Ok(()));
    });
    let mut sent = 0u32;
    while a.vi.send_copied(&pattern(1000, sent as u8), Some(sent)) == Ok(true) {
        sent += 1;
    }
    assert!(sent > 0);
    // The agent has been there too.
    assert_eq!(b.vi.state(), Ok(ViState::Connected));
    let places = slots(&b, 1);
    // In turns without a descriptor, and by one.
    for n in 0..sent {
        let room = if n % 2 == 0 { 1000 } else { 0 };
        if room == 0 {
            post(&b, &places, 0);
        }
        assert_eq!(next(&b, &places, room), (pattern(1000, n as u8), Some(n)));
    }
    assert_eq!(a.vi.send_copied(b"room again", None), Ok(true));
    assert_eq!(b.vi.hold_back(), Err(via::Error::InvalidState));
}

#[test]
fn what_is_held_back_outlives_its_sender() {
    let level = Reliability::ReliableDelivery;
    let (a, b) = connect_as(b"held to the end", level, |end| {
        assert_eq!(end.vi.hold_back(), Ok(()));
    });
    let other = |end: &End| end.nic.create_vi(&ViConfig::new(&end.tag)).expect("a VI");
    let (a2, b2) = (other(&a), other(&b));
    let export = a2.export().expect("exports");
    b2.import(&export.blob, export.fds).expect("imports");
    let places = slots(&b, 2);
    b2.post_recv(&Descriptor::recv().segment(&places, 0..8), 0)
        .expect("posts");
    let (say, hear) = mpsc::channel();
    let told = Box::new(move |_| say.send(()).expect("somebody hears"));
    b2.ops().notify(Queue::Recv, told).expect("will be called");
    for n in 0..4 {
        assert_eq!(a.vi.send_copied(&pattern(1000, n), None), Ok(true));
    }
    a.vi.disconnect().expect("disconnects");
    // Who tells of this has seen the end.
    assert_eq!(a2.send_copied(b"over", None), Ok(true));
    hear.recv().expect("called");

    let long = region(&b, Memory::private(4 << 20).expect("memory"), Access::Local);
    let unheard = Descriptor::send().segment(&long, 0..4 << 20);
    b.vi.post_send(&unheard, 9).expect("posts");
    let flushed = b.vi.send_wait(SOON).expect("ends");
    assert_eq!(flushed.ok(), Err(Fault::Flushed));
    assert_eq!(next(&b, &places, 1000).0, pattern(1000, 0));
    post(&b, &places, 1);
    assert_eq!(next(&b, &places, 0).0, pattern(1000, 1));
    assert_eq!(b.vi.state(), Ok(ViState::Connected));
    assert_eq!(next(&b, &places, 1000).0, pattern(1000, 2));
    assert_eq!(next(&b, &places, 1000).0, pattern(1000, 3));
    assert_eq!(
        b.vi.receive(&mut [0; 9], SOON),
        Ok(Received::Posted(Done::Empty))
    );
    assert_eq!(b.vi.state(), Ok(ViState::Error));
    b.vi.disconnect().expect("disconnects");
    reconnect(&a, &b);
}
