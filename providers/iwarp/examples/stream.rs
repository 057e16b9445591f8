//! What records cost a stream: messages one way through a VI, beside the same octets through TCP that polls.
//!
//! `cargo run --release -p iwarp --example stream -- 65536`, or `-- CRC 65536` for five runs of one way. A receiver of either kind has as many
//! buffers, and takes turns between them.
#![forbid(unsafe_code)]

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::process::{Child, Command};
use std::time::Instant;
use std::{env, thread};

use iwarp::{Config, IwarpDriver};
use rustix::net::sockopt;
use sys::wait::pause;
use via::{Access, Descriptor, Done, Memory, NetAddress, Nic, Ptag, Region, Vi, ViConfig};

/// One measuring: what carries the octets, and how many in each message.
#[derive(Clone, Copy)]
struct Run {
    way: usize,
    len: usize,
}

impl Run {
    fn messages(self) -> usize {
        (TOTAL / self.len).max(100)
    }

    fn config(self) -> Option<Config> {
        let (_, records) = WAYS[self.way];
        let (crc, markers) = records?;
        Some(Config {
            address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0),
            crc,
            markers,
            congestion: Some(CONGESTION),
            ..Config::default()
        })
    }

    /// Has another process send to `meeting`.
    fn sender(self, meeting: &str, cpu: usize) -> Child {
        Command::new(env::current_exe().expect("this program"))
            .args(["send", &self.way.to_string(), &self.len.to_string()])
            .args([meeting, &cpu.to_string()])
            .spawn()
            .expect("starts")
    }

    /// GB/s.
    fn receive(self, cpus: [usize; 2]) -> f64 {
        sys::host::pin(cpus[0]).expect("pins");
        match self.config() {
            None => self.receive_tcp(cpus[1]),
            Some(config) => self.receive_vi(config, cpus[1]),
        }
    }

    fn rate(self, since: Instant) -> f64 {
        (self.messages() * self.len) as f64 / since.elapsed().as_secs_f64() / 1e9
    }

    fn receive_tcp(self, cpu: usize) -> f64 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listens");
        let meeting = listener.local_addr().expect("an address").to_string();
        let mut other = self.sender(&meeting, cpu);
        let mut tcp = listener.accept().expect("accepts").0;
        tcp.set_nonblocking(true).expect("sets");
        let mut slots = vec![vec![1; self.len]; SLOTS];
        let mut take = |slot: &mut Vec<u8>| {
            let mut come = 0;
            while come < self.len {
                match tcp.read(&mut slot[come..]) {
                    Ok(n) => come += n,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => panic!("{error}"),
                }
            }
        };
        slots.iter_mut().for_each(&mut take);
        let start = Instant::now();
        for message in 0..self.messages() {
            take(&mut slots[message % SLOTS]);
        }
        let rate = self.rate(start);
        other.wait().expect("ends");
        rate
    }

    fn receive_vi(self, config: Config, cpu: usize) -> f64 {
        let end = End::new(config, SLOTS * self.len);
        let meeting = String::from("stream");
        let address = end.nic.address(meeting.as_bytes()).expect("an address");
        let post = |slot: usize| {
            let place = (slot * self.len) as u32..((slot + 1) * self.len) as u32;
            let descriptor = Descriptor::recv().segment(&end.region, place);
            end.vi.post_recv(&descriptor, slot as u64).expect("posts");
        };
        (0..SLOTS).for_each(post);
        let host = end.nic.attributes().local_address;
        let host: Vec<String> = host.iter().map(u8::to_string).collect();
        let mut other = self.sender(&format!("{}/{meeting}", host.join(".")), cpu);
        let mut incoming = end.nic.connect_wait(&address, None).expect("is asked");
        incoming.accept(&end.vi).expect("connects");
        let take = |slot| {
            let came = loop {
                match end.vi.recv_done().expect("alive") {
                    Done::Completed(came) => break came,
                    _ => pause(),
                }
            };
            assert_eq!(came.ok().expect("a message").length as usize, self.len);
            post(slot);
            if slot % BATCH == BATCH - 1 {
                end.vi.post_send(&Descriptor::send(), 0).expect("posts");
                while end.vi.send_done().expect("alive") == Done::NotDone {}
            }
        };
        (0..SLOTS).for_each(take);
        let start = Instant::now();
        (0..self.messages()).for_each(|message| take(message % SLOTS));
        let rate = self.rate(start);
        other.wait().expect("ends");
        rate
    }

    fn send(self, meeting: &str, cpu: usize) {
        sys::host::pin(cpu).expect("pins");
        match self.config() {
            None => self.send_tcp(meeting),
            Some(config) => self.send_vi(config, meeting),
        }
    }

    fn send_tcp(self, meeting: &str) {
        let mut tcp = TcpStream::connect(meeting).expect("connects");
        tcp.set_nodelay(true).expect("sets");
        sockopt::set_tcp_congestion(&tcp, CONGESTION).expect("sets");
        tcp.set_nonblocking(true).expect("sets");
        let message = vec![1; self.len];
        for _ in 0..SLOTS + self.messages() {
            let mut rest = &message[..];
            while !rest.is_empty() {
                match tcp.write(rest) {
                    Ok(n) => rest = &rest[n..],
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }

    fn send_vi(self, config: Config, meeting: &str) {
        let end = End::new(config, self.len);
        let (host, name) = meeting.split_once('/').expect("an address");
        let host: Vec<u8> = host
            .split('.')
            .map(|o| o.parse().expect("octets"))
            .collect();
        let host = host.try_into().expect("six octets");
        let address = NetAddress::new(host, name.as_bytes()).expect("an address");
        let local = end.nic.address(&[]).expect("an address");
        let room = || end.vi.post_recv(&Descriptor::recv(), 0).expect("posts");
        (0..2 * SLOTS / BATCH).for_each(|_| room());
        while end.vi.connect(&local, &address, None).is_err() {
            thread::yield_now();
        }
        let message = || Descriptor::send().segment(&end.region, 0..self.len as u32);
        let mut unsent = 0;
        let reap = |unsent: &mut usize, most: usize| {
            while *unsent > most {
                match end.vi.send_done().expect("alive") {
                    Done::Completed(sent) => {
                        sent.ok().expect("is sent");
                        *unsent -= 1;
                    }
                    _ => pause(),
                }
            }
        };
        let mut credits = SLOTS;
        for _ in 0..SLOTS + self.messages() {
            while credits == 0 {
                match end.vi.recv_done().expect("alive") {
                    Done::Completed(_) => {
                        credits += BATCH;
                        room();
                    }
                    _ => pause(),
                }
            }
            credits -= 1;
            end.vi.post_send(&message(), 0).expect("posts");
            unsent += 1;
            reap(&mut unsent, UNSENT);
        }
        reap(&mut unsent, 0);
    }
}

struct End {
    vi: Vi,
    region: Region,
    _tag: Ptag,
    nic: Nic,
}

impl End {
    fn new(config: Config, bytes: usize) -> Self {
        let driver = IwarpDriver::new(config).expect("a port");
        let driver: &'static IwarpDriver = Box::leak(Box::new(driver));
        let nic = Nic::open(driver).expect("opens");
        // The end that closes first is the other's loss of the connection, and no news.
        nic.on_error(|_| {}).expect("sets");
        let tag = nic.create_ptag().expect("a tag");
        let config = ViConfig::new(&tag).max_transfer_size(1 << 20);
        let vi = nic.create_vi(&config).expect("a VI");
        let memory = Memory::private(bytes).expect("memory");
        memory.write(0, &vec![1; bytes]).expect("in range");
        let region = nic
            .register(memory, &tag, Access::Local)
            .expect("registers");
        Self {
            vi,
            region,
            _tag: tag,
            nic,
        }
    }
}

fn main() {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let number = |text: &str| text.parse().expect("a number");
    if let [what, way, len, meeting, cpu] = &arguments[..]
        && what == "send"
    {
        let (way, len) = (number(way), number(len));
        return Run { way, len }.send(meeting, number(cpu));
    }
    let affinity = sys::host::affinity().expect("an affinity");
    let cpus = [affinity[0], *affinity.get(1).unwrap_or(&affinity[0])];
    let named = |name: &String| WAYS.iter().position(|way| way.0 == name);
    if let [name, len] = &arguments[..]
        && let Some(way) = named(name)
    {
        let len = number(len);
        let rates = (0..5).map(|_| Run { way, len }.receive(cpus));
        return rates.for_each(|rate| println!("{rate:.2}"));
    }
    let lens = match &arguments[..] {
        [] => vec![16 << 10, 64 << 10, 256 << 10, 1 << 20],
        lens => lens.iter().map(|len| number(len)).collect(),
    };
    for len in lens {
        let mut rates = [const { Vec::new() }; WAYS.len()];
        for _ in 0..ROUNDS {
            for (way, rates) in rates.iter_mut().enumerate() {
                rates.push(Run { way, len }.receive(cpus));
            }
        }
        let medians = rates.map(|mut rates| {
            rates.sort_by(f64::total_cmp);
            rates[ROUNDS / 2]
        });
        for ((name, _), rate) in WAYS.iter().zip(medians) {
            let share = rate / medians[0];
            println!("{len:8} octets, {name:12} {rate:6.2} GB/s  {share:.2} x");
        }
    }
}

/// Whether with checksums, and with markers.
const WAYS: [(&str, Option<(bool, bool)>); 5] = [
    ("TCP", None),
    ("plain", Some((false, false))),
    ("CRC", Some((true, false))),
    ("markers", Some((false, true))),
    ("CRC, markers", Some((true, true))),
];
const CONGESTION: &str = "cubic";
const TOTAL: usize = 1 << 30;
const SLOTS: usize = 32;
/// How much room the receiver tells of at a time: a message that finds none ends the connection (VIA, reliable delivery).
const BATCH: usize = SLOTS / 2;
const UNSENT: usize = 15;
const ROUNDS: usize = 7;
