//! Peers that write garbage wherever they can, while others are served.

use std::fs::File;
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};

use hostile::attacker::{Attacker, Intruder, name_of, shm};
use hostile::is_long;
use hostile::random::Random;
use hostile::victim::Victim;
use proto::meet::{MESSAGE_MAX, Message, Terms};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::pipe::pipe;
use sockets::reason::Reason;
use sockets::stat::{self, Path};
use sys::net::{Conn, Listener};
use sys::stream;

#[test]
fn garbage_harms_nobody_else() {
    let rounds = if is_long() { 40_000 } else { 1000 };
    withstand(b"EETTPPBBRW", rounds);
}

/// Where processes share connections, the peer can pretend that one of them has its turn.
#[test]
fn garbage_harms_no_process_that_forks() {
    let rounds = if is_long() { 4000 } else { 100 };
    withstand(b"FETPB", rounds);
}

fn withstand(services: &[u8], rounds: u64) {
    let mut victim = Victim::start();
    let mut kept: Vec<Intruder> = Vec::new();
    let mut intruded = 0;
    for seed in 0..rounds {
        let mut random = Random::new(seed);
        let service = random.one_of(services);
        let attacker = Attacker::connect(victim.port(), service, seed);
        if let Some(mut intruder) = attacker.intrude(service) {
            intruded += 1;
            if random.below(4) != 0 {
                intruder.behave();
            }
            match random.below(3) {
                0 => intruder.hammer(60),
                1 => (0..4).for_each(|_| intruder.attack()),
                _ => (0..80).for_each(|_| intruder.attack()),
            }
            // Some stay for a while, and are at it again.
            if random.below(4) == 0 {
                kept.push(intruder);
            } else {
                intruder.leave();
            }
        }
        for intruder in &mut kept {
            intruder.attack();
        }
        if kept.len() > 8 {
            kept.remove(random.below(8) as usize).leave();
        }
        if seed % 50 == 0 {
            victim.assert_serves();
        }
    }
    drop(kept);
    victim.assert_serves();
    println!("{intruded} of {rounds} connections had memory to attack");
    assert!(intruded > rounds / 2);
    victim.end(rounds as u32 / 50);
}

/// The victim hands the socket on, for which it needs the peer, who does not do his part.
#[test]
fn garbage_on_the_way_back_harms_nobody_else() {
    let rounds = if is_long() { 200 } else { 16 };
    let mut victim = Victim::start();
    let mut kept = Vec::new();
    for seed in 0..rounds {
        let attacker = Attacker::connect(victim.port(), b'A', seed);
        if let Some(mut intruder) = attacker.intrude(b'A') {
            intruder.behave();
            kept.push(intruder);
        }
        victim.assert_serves();
    }
    for _ in 0..300 {
        kept.iter_mut().for_each(Intruder::attack);
    }
    victim.assert_serves();
    drop(kept);
    victim.end(2);
}

#[test]
fn a_spoilt_connection_is_reset_alone_and_says_why() {
    let mut victim = Victim::start();
    let attacker = Attacker::connect(victim.port(), b'K', 1);
    let intruder = attacker.intrude(b'K').expect("the victim comes");
    intruder.stream().rx().consent();
    let tx = intruder.stream().tx();
    wait_until(|| tx.consented());
    let written = sys::tcp::written_by(intruder.tcp().as_fd(), true).expect("TCP counts");
    tx.set_to_ring(written);
    // The tail of what it sends, further on than there is a ring.
    let far = (stream::RING as u64 + 1).to_le_bytes();
    let shown = intruder.stream().shown_at();
    (intruder.stream())
        .with_fd(|fd| rustix::io::pwrite(fd, &far, shown))
        .expect("open")
        .expect("sealed against no write");
    rustix::net::send(intruder.tcp(), &[7], rustix::net::SendFlags::NOSIGNAL).expect("a doorbell");
    wait_until(|| path_of(&victim, intruder.tcp()) == Some(Path::Tcp(Reason::Corrupt)));
    let end = sys::tcp::recv_dontwait(intruder.tcp().as_fd(), &mut [0; 8]);
    assert_eq!(end, Err(sys::errno::Errno::CONNRESET));
    victim.assert_serves();
    victim.let_go();
    victim.end(0);
}

/// What a squatter at the meeting's name says to the victim, and what `sovia stat` shows for it.
#[test]
fn squatters_cost_the_upgrade_and_no_more() {
    let mut victim = Victim::start();
    let accept = accept(stream::LEN).encode(&mut [0; MESSAGE_MAX]).to_vec();
    let mut later = accept.clone();
    later[4] += 1;
    let answers: [(Option<Vec<u8>>, Reason); 4] = [
        (None, Reason::Silent),
        (Some(b"what?".to_vec()), Reason::Garbage),
        (Some(later), Reason::Version),
        (Some(accept), Reason::FalseProof),
    ];
    for (seed, (answer, reason)) in (0..).zip(answers) {
        let other = Attacker::connect(victim.port(), b'B', seed);
        let memory = shm().create(stream::LEN).expect("memory");
        let fds = [other.tcp().as_fd(), memory.as_fd()];
        squat(&victim, seed, reason, |call, _| {
            if let Some(answer) = &answer {
                call.send(answer, &fds).expect("the victim listens");
            }
        });
    }
    victim.assert_serves();
    victim.end(0);
}

/// The peer itself, with a true proof, and memory that can be made smaller, is smaller, is no memory, or is not there.
#[test]
fn memory_that_is_none_costs_the_upgrade_and_no_more() {
    let mut victim = Victim::start();
    let of_len = |len: usize| shm().create(len).expect("memory");
    let unsealed = memfd_create("unsealed", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING);
    let unsealed = unsealed.expect("memory");
    ftruncate(&unsealed, stream::LEN as u64).expect("of this length");
    let zeros = File::open("/dev/zero").expect("every system has it");
    let memories: [(Option<OwnedFd>, usize, Reason); 9] = [
        (Some(unsealed), stream::LEN, Reason::BadMemory),
        (
            Some(of_len(stream::LEN / 2)),
            stream::LEN,
            Reason::BadMemory,
        ),
        (
            Some(of_len(2 * stream::LEN)),
            stream::LEN,
            Reason::BadMemory,
        ),
        (Some(of_len(4096)), stream::LEN, Reason::BadMemory),
        (Some(zeros.into()), stream::LEN, Reason::BadMemory),
        (
            Some(pipe().expect("a pipe").0),
            stream::LEN,
            Reason::BadMemory,
        ),
        (None, stream::LEN, Reason::BadMemory),
        (Some(of_len(stream::LEN)), stream::LEN + 1, Reason::Layout),
        (Some(of_len(stream::LEN)), 0, Reason::Layout),
    ];
    for (seed, (memory, told, reason)) in (0..).zip(memories) {
        let accept = accept(told).encode(&mut [0; MESSAGE_MAX]).to_vec();
        squat(&victim, seed, reason, |call, tcp| {
            let witness = sys::tcp::witness(tcp.as_fd()).expect("it is ours");
            let fds = [Some(witness.as_fd()), memory.as_ref().map(AsFd::as_fd)];
            let fds: Vec<_> = fds.into_iter().flatten().collect();
            call.send(&accept, &fds).expect("the victim listens");
        });
    }
    victim.assert_serves();
    victim.end(0);
}

/// Takes the name at which the victim looks for its peer, has `answer` answer each of its calls, until `sovia stat` shows `reason`. The connection goes on.
fn squat(victim: &Victim, seed: u64, reason: Reason, answer: impl Fn(&Conn, &TcpStream)) {
    let mut attacker = Attacker::connect(victim.port(), b'B', seed);
    let name = name_of(attacker.tcp());
    let listener = Listener::bind(name.as_bytes(), 16).expect("the name is free");
    let mut calls: Vec<Conn> = Vec::new();
    while path_of(victim, attacker.tcp()) != Some(Path::Tcp(reason)) {
        assert!(attacker.exchange(), "{reason}: TCP is as it was");
        while let Some(call) = listener.accept().expect("accept") {
            answer(&call, attacker.tcp());
            calls.push(call);
        }
    }
    assert!(attacker.exchange());
}

/// Memory of so many bytes has been made.
fn accept(memory_len: usize) -> Message {
    Message::Accept(Terms {
        layout: stream::VERSION,
        features: 0,
        memory_len: memory_len as u64,
    })
}

/// The victim's end of a connection, in `sovia stat`.
fn path_of(victim: &Victim, tcp: &TcpStream) -> Option<Path> {
    let ours = tcp.local_addr().expect("connected");
    let lines = stat::connections(victim.id()).expect("a process of ours");
    let line = lines?.into_iter().find(|line| line.peer == ours)?;
    Some(line.path)
}

/// Looks again and again; the test runner ends a test that takes too long.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        std::thread::yield_now();
    }
}
