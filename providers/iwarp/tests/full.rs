//! Messages of one record to a peer that takes nothing for a while: each completes when the socket has it, and they come in order.

#[path = "hostile/raw.rs"]
#[expect(dead_code, reason = "of what a peer can do this one does little")]
mod raw;

use std::thread;
use std::time::{Duration, Instant};

use iwarp::{Config, IwarpDriver};
use via::{Access, Descriptor, Done, Memory, Nic, ViConfig};

use raw::{Peer, fpdu, hex};

#[test]
fn short_messages_wait_for_room() {
    messages_wait_for_room(|number| 1 + number % 512);
}

/// They are sent from where they lie, and the socket takes part of one.
#[test]
fn so_do_those_that_are_not_short() {
    messages_wait_for_room(|number| 513 + 37 * number % 9000);
}

fn messages_wait_for_room(len: impl Fn(u32) -> u32 + Sync) {
    let driver = IwarpDriver::new(Config {
        address: "127.0.0.1:0".parse().expect("an address"),
        ..Config::default()
    })
    .expect("a port");
    let nic = Nic::open(&driver).expect("opens");
    nic.on_error(|_| {}).expect("a handler");
    let tag = nic.create_ptag().expect("a tag");
    let vi = nic.create_vi(&ViConfig::new(&tag)).expect("a VI");
    let memory = Memory::private(LEN_MAX + 4).expect("memory");
    let pattern: Vec<u8> = (0..LEN_MAX).map(|at| (at / 3) as u8).collect();
    memory.write(0, &pattern).expect("in range");
    let region = nic
        .register(memory, &tag, Access::Local)
        .expect("registers");
    let at = nic.address(b"").expect("short");
    let mut peer = thread::scope(|scope| {
        let peer = scope.spawn(|| Peer::connect(driver.config().address, false));
        let mut incoming = nic.connect_wait(&at, SOON).expect("a request");
        incoming.accept(&vi).expect("accepts");
        peer.join().expect("no panic")
    });
    // A responder may not speak before.
    let behind = LEN_MAX as u32..LEN_MAX as u32 + 4;
    let room = Descriptor::recv().segment(&region, behind);
    vi.post_recv(&room, 0).expect("posts");
    peer.send(&fpdu(&hex("4143 00000000 00000000 00000001 00000000 6869")));
    vi.recv_wait(SOON).expect("comes").ok().expect("whole");

    let (mut sent, mut done) = (0u32, 0u32);
    // Until some are in nobody's hands but the NIC's.
    while sent - done < 100 {
        let message = Descriptor::send().segment(&region, 0..len(sent));
        // What waits reads this memory later: only numbers and lengths tell them apart.
        vi.post_send(&message, sent.into()).expect("posts");
        sent += 1;
        while let Done::Completed(completion) = vi.send_done().expect("alive") {
            assert_eq!(completion.token, u64::from(done));
            completion.ok().expect("went well");
            done += 1;
        }
        assert!(sent < 1 << 20, "the socket takes everything");
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..sent {
                let ulpdu = peer.record();
                assert_eq!(ulpdu[..2], [0x41, 0x43], "a Send");
                assert_eq!(ulpdu[10..14], (number + 1).to_be_bytes(), "in order");
                assert_eq!(ulpdu.len() as u32, 18 + len(number));
                assert!(ulpdu[18..] == pattern[..ulpdu.len() - 18], "whole");
            }
        });
        let began = Instant::now();
        while done < sent {
            if let Done::Completed(completion) = vi.send_done().expect("alive") {
                assert_eq!(completion.token, u64::from(done));
                completion.ok().expect("went well");
                done += 1;
            }
            assert!(began.elapsed() < LONG, "{done} of {sent}");
        }
    });
}

const LEN_MAX: usize = 10_000;
const LONG: Duration = Duration::from_secs(20);
const SOON: via::provider::Timeout = Some(LONG);
