//! What the VI layer costs over the bare ring: 8 bytes back and forth, and 64 KiB one way.
//!
//! `cargo run --release -p shm --example pingpong`, beside `-p sys --example ring_pingpong`.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::process::Command;
use std::time::Instant;
use std::{env, thread};

use sys::sync::{AtomicU64, Ordering};
use sys::wait::pause;
use via::{Access, Descriptor, Done, Memory, Nic, Region, Vi, ViConfig};

struct End {
    vi: Vi,
    buffer: Region,
    /// Where the next receive goes.
    slot: Cell<u32>,
    nic: Nic,
}

fn pair(len: usize) -> (End, End) {
    let (a, b) = (End::new(len), End::new(len));
    let export = a.vi.export().expect("exports");
    b.vi.import(&export.blob, export.fds).expect("imports");
    (a, b)
}

impl End {
    fn new(len: usize) -> Self {
        let nic = Nic::open(&shm::DRIVER).expect("opens");
        // The end that closes first is the other's loss of the connection, and no news.
        nic.on_error(|_| {}).expect("sets");
        let tag = nic.create_ptag().expect("a tag");
        let config = ViConfig::new(&tag).max_transfer_size(1 << 20);
        let vi = nic.create_vi(&config).expect("a VI");
        let memory = Memory::private(len).expect("memory");
        memory.write(0, &vec![1; len]).expect("in range");
        let buffer = nic
            .register(memory, &tag, Access::Local)
            .expect("registers");
        let slot = Cell::new(0);
        Self {
            vi,
            buffer,
            slot,
            nic,
        }
    }

    fn post_recv(&self, len: u32) {
        let slot = self.slot.get();
        self.slot.set((slot + 1) % SLOTS);
        let start = if len <= SLOT { slot * SLOT } else { 0 };
        let room = Descriptor::recv().segment(&self.buffer, start..start + len);
        self.vi.post_recv(&room, 0).expect("posts");
    }

    fn receive(&self) {
        while self.vi.recv_done().expect("alive") == Done::NotDone {
            pause();
        }
    }

    fn send(&self, len: u32) {
        let message = Descriptor::send().segment(&self.buffer, 0..len);
        self.vi.post_send(&message, 0).expect("posts");
    }

    fn sent(&self) {
        while self.vi.send_done().expect("alive") == Done::NotDone {
            pause();
        }
    }
}

/// Two processes, each on a CPU of its own: in one, what belongs to the two ends would lie side by side, and cost what no two programs pay.
fn ping_pong(len: u32, cpus: [usize; 2], blocks: u32) {
    let a = End::new(1 << 20);
    let meeting = std::process::id().to_string();
    let address = a.nic.address(meeting.as_bytes()).expect("an address");
    let mut other = Command::new(env::current_exe().expect("this program"))
        .args(["answer", &meeting, &len.to_string()])
        .args([cpus[1].to_string(), (TURNS * blocks).to_string()])
        .spawn()
        .expect("starts");
    sys::host::pin(cpus[0]).expect("pins");
    (0..PREPOSTED).for_each(|_| a.post_recv(len));
    let mut incoming = a.nic.connect_wait(&address, None).expect("is asked");
    incoming.accept(&a.vi).expect("connects");
    let turn = || {
        a.send(len);
        a.sent();
        a.post_recv(len);
        a.receive();
    };
    let block = |_| {
        let start = Instant::now();
        (0..TURNS).for_each(|_| turn());
        start.elapsed().as_nanos() / u128::from(TURNS) / 2
    };
    let mut blocks: Vec<u128> = (0..blocks).map(block).collect();
    blocks.sort_unstable();
    println!(
        "{len:7} bytes one way: best {} ns, a quarter {} ns, median {} ns",
        blocks[0],
        blocks[blocks.len() / 4],
        blocks[blocks.len() / 2]
    );
    other.wait().expect("ends");
}

/// The other process.
fn answer(meeting: &str, len: u32, cpu: usize, turns: u32) {
    sys::host::pin(cpu).expect("pins");
    let b = End::new(1 << 20);
    (0..PREPOSTED).for_each(|_| b.post_recv(len));
    let local = b.nic.address(&[]).expect("an address");
    let address = b.nic.address(meeting.as_bytes()).expect("an address");
    while b.vi.connect(&local, &address, None).is_err() {
        thread::yield_now();
    }
    for _ in 0..turns {
        b.receive();
        b.send(len);
        b.sent();
        b.post_recv(len);
    }
}

/// The code alone: one thread is both ends.
fn alone(len: u32) {
    let (a, b) = pair(1 << 20);
    let mut best = u128::MAX;
    for _ in 0..BLOCKS {
        let start = Instant::now();
        for _ in 0..TURNS {
            b.post_recv(len);
            a.send(len);
            a.sent();
            b.receive();
        }
        best = best.min(start.elapsed().as_nanos() * 10 / u128::from(TURNS));
    }
    println!("{len:7} bytes alone: {}.{} ns", best / 10, best % 10);
}

fn stream(len: u32, cpus: [usize; 2]) {
    let (a, b) = pair(1 << 20);
    let messages = (2u64 << 30) / u64::from(len);
    let credits = AtomicU64::new(WINDOW);
    for _ in 0..WINDOW {
        b.post_recv(len);
    }
    let start = Instant::now();
    thread::scope(|scope| {
        let credits = &credits;
        scope.spawn(move || {
            sys::host::pin(cpus[1]).expect("pins");
            for _ in 0..messages {
                b.receive();
                b.post_recv(len);
                credits.fetch_add(1, Ordering::Release);
            }
        });
        sys::host::pin(cpus[0]).expect("pins");
        for sent in 0..messages {
            while credits.load(Ordering::Acquire) <= sent {
                pause();
            }
            a.send(len);
            a.sent();
        }
    });
    let rate = messages as f64 * f64::from(len) / start.elapsed().as_secs_f64() / 1e9;
    println!("{len:7} bytes stream: {rate:.1} GB/s");
}

fn main() {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let number = |text: &str| text.parse().expect("a number");
    if let [what, meeting, len, cpu, turns] = &arguments[..]
        && what == "answer"
    {
        return answer(meeting, number(len), number(cpu) as usize, number(turns));
    }
    let affinity = sys::host::affinity().expect("an affinity");
    let cpus = [affinity[0], *affinity.get(1).unwrap_or(&affinity[0])];
    alone(8);
    if arguments == ["alone"] {
        return (0..20).for_each(|_| alone(8));
    }
    if arguments == ["8"] {
        return (0..5).for_each(|_| ping_pong(8, cpus, BLOCKS));
    }
    for len in [8, 64, 1024, 4096] {
        ping_pong(len, cpus, BLOCKS);
    }
    for len in [4096, 16384, 65536, 262_144, 1 << 20] {
        stream(len, cpus);
    }
}

const TURNS: u32 = 2000;
const BLOCKS: u32 = 200;
const PREPOSTED: u32 = 4;
const SLOTS: u32 = 15;
/// An odd number of lines apart, or they would compete for the same few places of the cache.
const SLOT: u32 = 4096 + 64;
const WINDOW: u64 = 64;
