//! What connected VIs cost while nothing happens: memory and CPU, for 1,000 of them and after each
//! has carried a message; and how many connections can be made and ended in a second.
//!
//! `cargo run --release -p shm --example idle`
#![forbid(unsafe_code)]

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use via::{Access, Descriptor, Error, Memory, Nic, Region, Vi, ViConfig};

const PAIRS: usize = 500;
const CYCLES: u32 = 20_000;
const NAME: &[u8] = b"idle example";
/// What the example tells the server that it starts.
const SERVE: &str = "serve";

fn main() {
    if std::env::args().nth(1).as_deref() == Some(SERVE) {
        return serve();
    }
    idle();
    connects();
}

fn idle() {
    let nic = Nic::open(&shm::DRIVER).expect("opens");
    let tag = nic.create_ptag().expect("a tag");
    let memory = Memory::private(4096).expect("memory");
    let buffer = nic
        .register(memory, &tag, Access::Local)
        .expect("registers");
    let before = pss();
    let make = || nic.create_vi(&ViConfig::new(&tag)).expect("a VI");
    let pairs: Vec<(Vi, Vi)> = (0..PAIRS)
        .map(|_| {
            let (a, b) = (make(), make());
            let export = a.export().expect("exports");
            b.import(&export.blob, export.fds).expect("imports");
            (a, b)
        })
        .collect();
    report("connected", before);
    for (a, b) in &pairs {
        exchange(a, b, &buffer);
    }
    report("after a message each way", before);
    // tidy: sleep because the agent is given time to fall asleep
    thread::sleep(Duration::from_millis(200));
    let (start, used) = (Instant::now(), cpu_ticks());
    // tidy: sleep because the cost of doing nothing is what is measured
    thread::sleep(Duration::from_secs(5));
    let busy = cpu_ticks() - used;
    println!(
        "idle for {:.0?}: {busy} ticks of CPU ({:.2} %)",
        start.elapsed(),
        busy as f64 / 5.0
    );
}

fn exchange(a: &Vi, b: &Vi, buffer: &Region) {
    for (from, to) in [(a, b), (b, a)] {
        let room = Descriptor::recv().segment(buffer, 0..64);
        to.post_recv(&room, 0).expect("posts");
        let message = Descriptor::send().segment(buffer, 0..64);
        from.post_send(&message, 0).expect("posts");
        from.send_wait(None).expect("sends");
        to.recv_wait(None).expect("receives");
    }
}

/// A client, this process, and a server, a child of it.
fn connects() {
    let program = std::env::current_exe().expect("a path");
    let mut server = Command::new(program)
        .arg(SERVE)
        .spawn()
        .expect("another process");
    let nic = Nic::open(&shm::DRIVER).expect("opens");
    let tag = nic.create_ptag().expect("a tag");
    let vi = nic.create_vi(&ViConfig::new(&tag)).expect("a VI");
    let remote = nic.address(NAME).expect("short");
    let connect = || {
        while let Err(error) = vi.connect(&remote, &remote, None) {
            assert_eq!(error, Error::NoMatch);
            thread::yield_now();
        }
        vi.disconnect().expect("disconnects");
    };
    connect();
    let start = Instant::now();
    (0..CYCLES).for_each(|_| connect());
    let seconds = start.elapsed().as_secs_f64();
    println!("{:.0} connections a second", f64::from(CYCLES) / seconds);
    let end = server.wait().expect("a child");
    assert!(end.success(), "the server ended with {end}");
}

fn serve() {
    let nic = Nic::open(&shm::DRIVER).expect("opens");
    nic.on_error(|_| ()).expect("a handler");
    let tag = nic.create_ptag().expect("a tag");
    let vi = nic.create_vi(&ViConfig::new(&tag)).expect("a VI");
    let local = nic.address(NAME).expect("short");
    for _ in 0..=CYCLES {
        let mut incoming = nic.connect_wait(&local, None).expect("a request");
        incoming.accept(&vi).expect("accepts");
        while vi.state().expect("alive") == via::ViState::Connected {
            thread::yield_now();
        }
        vi.disconnect().expect("disconnects");
    }
}

fn report(what: &str, before: u64) {
    let grown = pss() - before;
    println!(
        "{what}: {:.1} kB a VI",
        grown as f64 / (2 * PAIRS) as f64 / 1024.0
    );
}

fn pss() -> u64 {
    sys::fds::footprint(None).expect("readable").proportional
}

/// User and system time of this process, in hundredths of a second.
fn cpu_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("readable");
    let fields = stat.rsplit_once(')').expect("a name").1.split_whitespace();
    fields
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<u64>().expect("a number"))
        .sum()
}
