//! Peers that are no honest iWARP, on real sockets: what each hears, and that nobody else notices.

#[path = "hostile/blame.rs"]
mod blame;
#[path = "hostile/raw.rs"]
mod raw;

use std::collections::{HashMap, HashSet, VecDeque};
use std::thread;
use std::time::{Duration, Instant};

use iwarp::{Config, IwarpDriver};
use via::{Access, Descriptor, Done, Error, Memory, Nic, Ptag, Region, Vi, ViConfig, ViState};

use raw::{Peer, fpdu, hex};

/// A NIC, and on it a VI for a stranger and a pair of honest ones.
struct Site {
    nic: Nic,
    tag: Ptag,
    config: Config,
    honest: [Vi; 2],
    memory: [Region; 2],
}

impl Site {
    fn new(markers: bool) -> Self {
        let driver = IwarpDriver::new(Config {
            address: "127.0.0.1:0".parse().expect("an address"),
            markers,
            ..Config::default()
        })
        .expect("a port");
        let nic = Nic::open(&driver).expect("opens");
        nic.on_error(|_| {}).expect("a handler");
        let tag = nic.create_ptag().expect("a tag");
        let vi = || nic.create_vi(&ViConfig::new(&tag)).expect("a VI");
        let honest = [vi(), vi()];
        let region = || {
            let memory = Memory::private(64).expect("memory");
            nic.register(memory, &tag, Access::Local)
                .expect("registers")
        };
        let memory = [region(), region()];
        let at = nic.address(b"honest").expect("short");
        thread::scope(|scope| {
            scope.spawn(|| meet(&nic, &honest[0], &at));
            let mut incoming = nic.connect_wait(&at, SOON).expect("a request");
            incoming.accept(&honest[1]).expect("accepts");
        });
        let site = Self {
            honest,
            memory,
            tag,
            config: driver.config(),
            nic,
        };
        site.nobody_noticed(0);
        site
    }

    /// A VI that some peer is connected to.
    fn victim(&self) -> Vi {
        let config = ViConfig::new(&self.tag)
            .accept_rdma_write()
            .accept_rdma_read();
        self.nic.create_vi(&config).expect("a VI")
    }

    fn region(&self, access: Access) -> Region {
        let memory = Memory::private(4096).expect("memory");
        self.nic
            .register(memory, &self.tag, access)
            .expect("registers")
    }

    /// Leads a peer that has no private data to `vi`.
    fn let_in(&self, vi: &Vi) -> Peer {
        let at = self.nic.address(b"").expect("short");
        thread::scope(|scope| {
            let peer = scope.spawn(|| Peer::connect(self.config.address, self.config.markers));
            let mut incoming = self.nic.connect_wait(&at, SOON).expect("a request");
            incoming.accept(vi).expect("accepts");
            peer.join().expect("no panic")
        })
    }

    /// The honest ones still talk.
    fn nobody_noticed(&self, round: u8) {
        let [here, there] = &self.honest;
        let [outbox, inbox] = &self.memory;
        outbox.memory().write(0, &[round; 64]).expect("in range");
        let room = Descriptor::recv().segment(inbox, 0..64);
        there.post_recv(&room, 1).expect("posts");
        here.post_send(&Descriptor::send().segment(outbox, 0..64), 2)
            .expect("posts");
        let got = there.recv_wait(SOON).expect("comes").ok().expect("whole");
        assert_eq!(got.length, 64);
        here.send_wait(SOON).expect("sent").ok().expect("went well");
        let mut octets = [0; 64];
        inbox.memory().read(0, &mut octets).expect("in range");
        assert_eq!(octets, [round; 64]);
    }
}

fn meet(nic: &Nic, vi: &Vi, at: &via::NetAddress) {
    let from = nic.address(b"").expect("short");
    while let Err(error) = vi.connect(&from, at, SOON) {
        assert_eq!(error, Error::NoMatch);
        thread::yield_now();
    }
}

fn ended(vi: &Vi) {
    let began = Instant::now();
    while vi.state().expect("a VI") == ViState::Connected {
        assert!(began.elapsed() < Duration::from_secs(20), "it goes on");
        thread::yield_now();
    }
}

/// What a peer sends, and the code of the Terminate that it hears.
struct Offence {
    name: &'static str,
    octets: Vec<u8>,
    code: &'static str,
    /// Whether there is a receive for a message.
    room: bool,
}

/// `foreign` is of another protection tag than the VI.
fn offences(read: &Region, write: &Region, foreign: &Region) -> Vec<Offence> {
    let offence = |name, ulpdu: &str, code| Offence {
        name,
        octets: fpdu(&hex(ulpdu)),
        code,
        room: true,
    };
    let (theirs, there) = (
        format!("{:08x}", foreign.remote(0).handle.0),
        foreign.remote(0).addr,
    );
    let (stag, to) = (
        format!("{:08x}", write.remote(0).handle.0),
        write.remote(0).addr,
    );
    let (source, at) = (
        format!("{:08x}", read.remote(0).handle.0),
        read.remote(0).addr,
    );
    let before = to - 4;
    let over = to + 4094;
    let request = |stag: &str, to: u64, len: u32| {
        format!(
            "4141 00000000 00000001 00000001 00000000 00000007 0000000000000000 {len:08x} {stag} {to:016x}"
        )
    };
    let send = "4143 00000000 00000000 00000001 00000000";
    let mut spoilt = fpdu(&hex(&format!("{send} 6869")));
    spoilt[21] ^= 4;
    let mut reads = Vec::new();
    for msn in 1..=64 {
        // Of no octets, so that nothing but their number is wrong; the first is not answered before all have been looked at.
        let ulpdu = format!(
            "4141 00000000 00000001 {msn:08x} 00000000 00000007 0000000000000000 00000000 00000000 0000000000000000"
        );
        reads.extend(fpdu(&hex(&ulpdu)));
    }
    vec![
        Offence {
            name: "a wrong checksum (C-52)",
            octets: spoilt,
            code: "2002",
            room: true,
        },
        Offence {
            name: "more reads than the IRD (C-110)",
            octets: reads,
            code: "1202",
            room: true,
        },
        offence(
            "an unknown opcode (C-96)",
            "414c 00000000 00000000 00000001 00000000",
            "0206",
        ),
        offence(
            "another version of RDMAP (C-95)",
            "4183 00000000 00000000 00000001 00000000",
            "0205",
        ),
        offence(
            "another version of DDP (C-78)",
            "4043 00000000 00000000 00000001 00000000",
            "1206",
        ),
        offence(
            "a queue that is none (C-84)",
            "4143 00000000 00000004 00000001 00000000",
            "1201",
        ),
        offence(
            "the wrong number (C-86)",
            "4143 00000000 00000000 00000002 00000000",
            "1203",
        ),
        Offence {
            room: false,
            ..offence(
                "a message that nothing is posted for (C-85)",
                &format!("{send} 6869"),
                "1202",
            )
        },
        offence(
            "an offset beyond the receive (C-87)",
            "4143 00000000 00000000 00000001 00001000 68",
            "1204",
        ),
        offence(
            "another version of DDP, tagged (C-78)",
            &format!("c240 {stag} {to:016x} 68"),
            "1104",
        ),
        offence(
            "a tagged message that is none (C-97)",
            &format!("c143 {stag} {to:016x} 68"),
            "0206",
        ),
        offence(
            "a message on the queue of requests (C-98)",
            "4143 00000000 00000001 00000001 00000000 0000",
            "0206",
        ),
        offence(
            "a request that is too short (C-109)",
            "4141 00000000 00000001 00000001 00000000 0000",
            "02ff",
        ),
        offence(
            "a write to a region of another tag (C-81)",
            &format!("c140 {theirs} {there:016x} 6869"),
            "1102",
        ),
        offence(
            "a read of a region of another tag (C-107)",
            &request(&theirs, there, 4),
            "0103",
        ),
        offence(
            "a read that wraps (C-107)",
            &request(&source, u64::MAX - 3, 8),
            "0104",
        ),
        offence(
            "an invalidation of an STag that is none (C-101)",
            "4144 00badbad 00000000 00000001 00000000 68",
            "0209",
        ),
        offence(
            "an invalidation in another tag (C-101)",
            &format!("4144 {theirs} 00000000 00000001 00000000 68"),
            "0109",
        ),
        // C-100 does not apply: a region of VIPL's is its owner's to take back.
        offence(
            "an invalidation of what the peer may write",
            &format!("4144 {stag} 00000000 00000001 00000000 68"),
            "0209",
        ),
        offence(
            "an ULPDU shorter than its header (C-67)",
            "41430000",
            "1000",
        ),
        offence(
            "a write to an STag that is none (C-79)",
            &format!("c140 00badbad {to:016x} 68"),
            "1100",
        ),
        offence(
            "a write before the region (C-80)",
            &format!("c140 {stag} {before:016x} 6869"),
            "1101",
        ),
        offence(
            "a write beyond its end (C-80)",
            &format!("c140 {stag} {over:016x} 68696a"),
            "1101",
        ),
        offence(
            "a write that wraps (C-82)",
            &format!("c140 {stag} fffffffffffffffc 0102030405060708"),
            "1103",
        ),
        offence(
            "a write where one may only read (C-83)",
            &format!("c140 {source} {at:016x} 68"),
            "1100",
        ),
        offence(
            "a read of an STag that is none (C-106)",
            &request("00badbad", to, 4),
            "0100",
        ),
        offence(
            "a read beyond the end (C-107)",
            &request(&source, at, 4097),
            "0101",
        ),
        offence(
            "a read where one may only write (C-107)",
            &request(&stag, to, 4),
            "0102",
        ),
        offence(
            "a read response that nobody asked for (C-111)",
            "c142 00000007 0000000000000000 68",
            "0206",
        ),
    ]
}

#[test]
fn each_offence_has_its_answer_and_ends_its_own_connection_only() {
    let site = Site::new(false);
    let (read, write) = (site.region(Access::Read), site.region(Access::Write));
    let other = site.nic.create_ptag().expect("a tag");
    let memory = Memory::private(4096).expect("memory");
    let foreign = site.nic.register(memory, &other, Access::ReadWrite);
    let foreign = foreign.expect("registers");
    let inbox = site.region(Access::Local);
    for (round, offence) in (1..).zip(offences(&read, &write, &foreign)) {
        let Offence {
            name,
            octets,
            code,
            room,
        } = offence;
        let vi = site.victim();
        if room {
            let place = Descriptor::recv().segment(&inbox, 0..64);
            vi.post_recv(&place, 1).expect("posts");
        }
        let mut peer = site.let_in(&vi);
        // Before the first good record a responder says nothing.
        peer.send(&fpdu(&hex("c140 00000001 0000000000000000")));
        peer.send(&octets);
        // It polls as little as it likes: the agent answers.
        assert_eq!(peer.terminate(), code, "{name}");
        // The end is in good order, with everything that came unread behind the offence.
        peer.hears_the_end();
        ended(&vi);
        site.nobody_noticed(round);
        vi.disconnect().expect("lets go");
    }
    for region in [&write, &foreign] {
        let mut octets = vec![0; 4096];
        region.memory().read(0, &mut octets).expect("in range");
        assert!(
            octets.iter().all(|&octet| octet == 0),
            "something was written"
        );
    }
}

/// Whoever does not wait for the Reply, however late that is, is heard behind it.
#[test]
fn i7_records_may_come_before_the_reply() {
    let site = Site::new(false);
    let at = site.nic.address(b"").expect("short");
    for delay_ms in [0, 1, 2, 5, 10, 20, 35, 50] {
        let (vi, region) = (site.victim(), site.region(Access::Local));
        let room = Descriptor::recv().segment(&region, 0..32);
        vi.post_recv(&room, 1).expect("posts");
        thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let mut peer = Peer::knock(site.config.address);
                let mut octets = b"MPA ID Req Frame\x40\x01\0\0".to_vec();
                octets.extend(fpdu(&hex("c140 00000001 0000000000000000")));
                octets.extend(fpdu(&hex(
                    "4143 00000000 00000000 00000001 00000000 70696e67",
                )));
                peer.send(&octets);
                peer.reply(false);
                let answer = peer.record();
                assert_eq!(answer[..2], [0x41, 0x43], "a Send");
                assert_eq!(answer.len(), 18 + 5);
            });
            let mut incoming = site.nic.connect_wait(&at, SOON).expect("a request");
            thread::sleep(Duration::from_millis(delay_ms)); // tidy: sleep because the delay is what is tested
            incoming.accept(&vi).expect("accepts");
            let got = vi.recv_wait(SOON).expect("comes").ok().expect("whole");
            assert_eq!(got.length, 4);
            let answer = Descriptor::send().segment(&region, 32..37);
            vi.post_send(&answer, 2).expect("posts");
            asking.join().expect("no panic");
        });
    }
}

/// An STag is good for every connection of its protection tag that may use it, and for no other.
#[test]
fn c138_domains_do_not_mix() {
    let site = Site::new(false);
    let other = site.nic.create_ptag().expect("a tag");
    let tags = [&site.tag, &other];
    let regions = tags.map(|tag| {
        let memory = Memory::private(4096).expect("memory");
        let region = site.nic.register(memory, tag, Access::ReadWrite);
        region.expect("registers")
    });
    let mut round = 0;
    // Two connections in each domain, to each domain's region, which they write and read.
    for (at, tag) in tags.into_iter().cycle().take(4).enumerate() {
        for (of, region) in regions.iter().enumerate() {
            for write in [true, false] {
                round += 1;
                let config = ViConfig::new(tag).accept_rdma_write().accept_rdma_read();
                let vi = site.nic.create_vi(&config).expect("a VI");
                let mut peer = site.let_in(&vi);
                let (stag, to) = (region.remote(0).handle.0, region.remote(0).addr);
                let is_at_home = at % 2 == of;
                if write {
                    peer.send(&fpdu(&hex(&format!(
                        "c140 {stag:08x} {to:016x} {round:02x}"
                    ))));
                }
                // Behind a write it is answered when that has been carried out.
                let request = format!(
                    "4141 00000000 00000001 00000001 00000000 00000007 0000000000000000 00000001 {stag:08x} {to:016x}"
                );
                peer.send(&fpdu(&hex(&request)));
                if is_at_home {
                    let answer = peer.record();
                    assert_eq!(answer[..14], hex("c142 00000007 0000000000000000"));
                    let mut there = [0];
                    region.memory().read(0, &mut there).expect("in range");
                    assert_eq!(answer[14..], there);
                    assert_eq!(there[0] == round, write, "{at} {of}");
                } else {
                    let code = if write { "1102" } else { "0103" };
                    assert_eq!(peer.terminate(), code, "{at} {of}");
                    peer.hears_the_end();
                    ended(&vi);
                    let mut there = [0];
                    region.memory().read(0, &mut there).expect("in range");
                    assert_ne!(there[0], round, "it was written all the same");
                }
                site.nobody_noticed(round);
            }
        }
    }
}

/// Half of a handle is the number of a place; the other half is random for each place.
#[test]
fn c139_successive_stags_are_no_sequence() {
    let site = Site::new(false);
    let mut live = VecDeque::new();
    let mut seen = HashSet::new();
    let mut steps = HashMap::<u32, u32>::new();
    let mut last = 0;
    for _ in 0..10_000 {
        let region = site.region(Access::Local);
        let stag = region.remote(0).handle.0;
        *steps.entry(stag.wrapping_sub(last)).or_default() += 1;
        last = stag;
        assert!(seen.insert(stag), "{stag:08x} twice");
        live.push_back(region);
        if live.len() > 1000 {
            // Its place is taken again, by another handle.
            drop(live.pop_front());
        }
    }
    let often = steps.values().max();
    assert!(often < Some(&20), "one step {often:?} times of 10000");
}

/// A completion queue that nobody empties, and receives that nobody posts, are the affair of their connection.
#[test]
fn c140_what_one_connection_uses_up_is_its_own() {
    let site = Site::new(false);
    let cq = site.nic.create_cq(1).expect("a queue");
    let vi = || {
        let config = ViConfig::new(&site.tag).recv_cq(&cq);
        site.nic.create_vi(&config).expect("a VI")
    };
    let (full, dry) = (vi(), vi());
    let inbox = site.region(Access::Local);
    let send = |peer: &mut Peer, msn: u32| {
        let ulpdu = format!("4143 00000000 00000000 {msn:08x} 00000000 6869");
        peer.send(&fpdu(&hex(&ulpdu)));
    };
    for _ in 0..8 {
        let room = Descriptor::recv().segment(&inbox, 0..64);
        full.post_recv(&room, 1).expect("posts");
    }
    let mut peers = [site.let_in(&full), site.let_in(&dry)];
    for msn in 1..=8 {
        send(&mut peers[0], msn);
        site.nobody_noticed(msn as u8);
    }
    send(&mut peers[1], 1);
    assert_eq!(peers[1].terminate(), "1202");
    peers[1].hears_the_end();
    ended(&dry);
    site.nobody_noticed(9);
    // Nothing of the first one's was lost.
    let (began, mut come) = (Instant::now(), 0);
    while come < 8 {
        if let Ok(Done::Completed(got)) = full.recv_done() {
            assert_eq!(got.ok().expect("whole").length, 2);
            come += 1;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{come} of 8");
    }
    assert_eq!(full.state(), Ok(ViState::Connected));
}

#[test]
fn a_message_too_long_for_its_receive() {
    let site = Site::new(false);
    let (vi, inbox) = (site.victim(), site.region(Access::Local));
    let room = Descriptor::recv().segment(&inbox, 0..4);
    vi.post_recv(&room, 1).expect("posts");
    let mut peer = site.let_in(&vi);
    peer.send(&fpdu(&hex(
        "4143 00000000 00000000 00000001 00000000 0102030405",
    )));
    assert_eq!(peer.terminate(), "1205");
    peer.hears_the_end();
    ended(&vi);
    site.nobody_noticed(1);
}

#[test]
fn a_wrong_marker() {
    let site = Site::new(true);
    let vi = site.victim();
    let mut peer = site.let_in(&vi);
    // A write of no octets, behind the marker with which the stream begins.
    let mut good = hex("00000000 000e c140 00000001 0000000000000000");
    raw::seal(&mut good);
    // A message of 600, whose marker at 512 does not point to its beginning at 24.
    let mut octets = hex("026a 4143 00000000 00000000 00000001 00000000");
    octets.resize(2 + 18 + 600, 0x68);
    octets.splice(512 - good.len()..512 - good.len(), hex("000001e4"));
    raw::seal(&mut octets);
    peer.send(&[good, octets].concat());
    assert_eq!(peer.terminate(), "2003");
    peer.hears_the_end();
    ended(&vi);
    site.nobody_noticed(1);
}

#[test]
fn peers_that_stop_in_the_middle() {
    let site = Site::new(false);
    let whole = fpdu(&hex("4143 00000000 00000000 00000001 00000000 6869"));
    for (round, come) in (1..).zip([1, 2, 3, 20, whole.len() - 1]) {
        let (vi, inbox) = (site.victim(), site.region(Access::Local));
        let room = Descriptor::recv().segment(&inbox, 0..64);
        vi.post_recv(&room, 1).expect("posts");
        let mut peer = site.let_in(&vi);
        peer.send(&whole[..come]);
        site.nobody_noticed(round);
        assert_eq!(
            vi.state(),
            Ok(ViState::Connected),
            "{come} octets are no offence"
        );
        drop(peer);
        ended(&vi);
        let told = vi.recv_wait(SOON).expect("ends");
        assert!(told.ok().is_err(), "{come} octets are no message");
        site.nobody_noticed(round);
    }
}

#[test]
fn what_is_announced_is_not_what_is_held() {
    let site = Site::new(false);
    let vis: Vec<_> = (0..64).map(|_| site.victim()).collect();
    let before = resident();
    let mut peers = Vec::new();
    for (at, vi) in vis.iter().enumerate() {
        let mut peer = site.let_in(vi);
        // The longest record there can be, all of it but for its end, and as much again behind it as the sockets take.
        peer.send(&[0xff, 0xff, 0x41, 0x43]);
        peer.flood(1 << 20);
        site.nobody_noticed(at as u8);
        peers.push(peer);
    }
    let grown = resident().saturating_sub(before);
    // A ring each and a little; the sockets are the kernel's.
    assert!(grown < (64 * 256) << 10, "{} kB for 64 peers", grown >> 10);
    drop(peers);
    vis.iter().for_each(ended);
    site.nobody_noticed(99);
}

/// Their answers are copied, for the checksum: no more of them than a peer takes.
#[test]
fn what_a_peer_asks_for_is_not_held_for_it() {
    const LEN: u32 = 16 << 20;
    let site = Site::new(false);
    let memory = Memory::private(LEN as usize).expect("memory");
    let source = site
        .nic
        .register(memory, &site.tag, Access::Read)
        .expect("registers");
    // Pages that are there before the peers ask.
    let octets = vec![1; LEN as usize];
    source.memory().write(0, &octets).expect("in range");
    drop(octets);
    let (stag, to) = (source.remote(0).handle.0, source.remote(0).addr);
    let vis: Vec<_> = (0..64).map(|_| site.victim()).collect();
    let before = resident();
    let mut peers = Vec::new();
    for (at, vi) in vis.iter().enumerate() {
        let mut peer = site.let_in(vi);
        for msn in 1..=8 {
            let request = format!(
                "4141 00000000 00000001 {msn:08x} 00000000 00000007 0000000000000000 {LEN:08x} {stag:08x} {to:016x}"
            );
            peer.send(&fpdu(&hex(&request)));
        }
        peer.is_answered();
        site.nobody_noticed(at as u8);
        peers.push(peer);
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < (64 * 320) << 10, "{} kB for 64 peers", grown >> 10);
    drop(peers);
    vis.iter().for_each(ended);
    site.nobody_noticed(99);
}

#[test]
fn callers_that_say_nothing_keep_nobody_out() {
    let site = Site::new(false);
    let at = site.nic.address(b"guest").expect("short");
    let vis = [site.victim(), site.victim()];
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut incoming = site.nic.connect_wait(&at, SOON).expect("a request");
            incoming.accept(&vis[1]).expect("accepts");
        });
        let mut crowd = Vec::new();
        for n in 0..400 {
            let mut peer = Peer::knock(site.config.address);
            match n % 4 {
                0 => {}
                1 => peer.send(b"GET / HTTP/1.1\r\n\r\n"),
                2 => peer.send(b"MPA ID Req Fra"),
                // More private data than there may be.
                _ => peer.send(b"MPA ID Req Frame\x40\x01\xff\xff"),
            }
            crowd.push(peer);
        }
        meet(&site.nic, &vis[0], &at);
        waiting.join().expect("no panic");
        site.nobody_noticed(1);
        // All of them have been sent away, or are when their time is over.
        drop(crowd);
    });
    assert_eq!(vis[0].state(), Ok(ViState::Connected));
}

/// Octets of this process in memory.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kilobytes
        .and_then(|text| text.trim().parse::<usize>().ok())
        .expect("a number")
        << 10
}

const SOON: via::provider::Timeout = Some(Duration::from_secs(20));
