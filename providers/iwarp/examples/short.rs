//! What a short message costs the CPU: there and back between two VIs, or two TCP sockets, of one thread, so that nobody waits for anybody.
//!
//! `cargo run --release -p iwarp --example short`, or `-- CRC 4 1000` for a thousand messages of one way, `-- CRC 0 1000` for as many looks that find nothing.
//! What one way takes more than TCP is the work of both ends: `valgrind --tool=callgrind` counts its instructions, as the difference of two numbers of messages.
#![forbid(unsafe_code)]

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::time::Instant;
use std::{env, thread};

use iwarp::{Config, IwarpDriver};
use via::{Access, Descriptor, Done, Error, Memory, Nic, Ptag, Region, Vi, ViConfig};

/// What carries a message from one end to the other, and back.
trait Pair {
    fn carry(&mut self, from: usize, len: usize);

    /// Looks whether something has come, which has not.
    fn look(&mut self, at: usize);
}

struct Tcp([TcpStream; 2], Vec<u8>);

impl Tcp {
    fn new(len: usize) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listens");
        let address = listener.local_addr().expect("an address");
        let here = TcpStream::connect(address).expect("connects");
        let ends = [here, listener.accept().expect("accepts").0];
        for end in &ends {
            end.set_nodelay(true).expect("sets");
            end.set_nonblocking(true).expect("sets");
        }
        Self(ends, vec![1; len])
    }
}

impl Pair for Tcp {
    fn carry(&mut self, from: usize, len: usize) {
        let Self(ends, message) = self;
        let sent = ends[from].write(&message[..len]).expect("sends");
        assert_eq!(sent, len);
        let mut come = 0;
        while come < len {
            match ends[1 - from].read(&mut message[come..len]) {
                Ok(n) => come += n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn look(&mut self, at: usize) {
        let Self(ends, message) = self;
        let read = ends[at].read(message);
        assert!(read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock));
    }
}

struct Vis {
    ends: [Vi; 2],
    regions: [Region; 2],
    _tag: Ptag,
    _nic: Nic,
}

impl Vis {
    fn new(crc: bool, len: usize) -> Self {
        let driver = IwarpDriver::new(Config {
            address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0),
            crc,
            ..Config::default()
        })
        .expect("a port");
        let nic = Nic::open(&driver).expect("opens");
        nic.on_error(|_| {}).expect("sets");
        let tag = nic.create_ptag().expect("a tag");
        let vi = |_| nic.create_vi(&ViConfig::new(&tag)).expect("a VI");
        let ends = [0, 1].map(vi);
        let regions = [0, 1].map(|_| {
            let memory = Memory::private(2 * len).expect("memory");
            memory.write(0, &vec![1; 2 * len]).expect("in range");
            nic.register(memory, &tag, Access::Local)
                .expect("registers")
        });
        // More than one, so that none is posted to an empty queue, which would look for messages first.
        for (vi, region) in ends.iter().zip(&regions) {
            (0..4).for_each(|_| post_recv(vi, region, len));
        }
        let at = nic.address(b"short").expect("an address");
        let from = nic.address(b"").expect("an address");
        thread::scope(|scope| {
            scope.spawn(|| {
                while let Err(error) = ends[0].connect(&from, &at, None) {
                    assert_eq!(error, Error::NoMatch);
                    thread::yield_now();
                }
            });
            let mut incoming = nic.connect_wait(&at, None).expect("is asked");
            incoming.accept(&ends[1]).expect("connects");
        });
        Self {
            ends,
            regions,
            _tag: tag,
            _nic: nic,
        }
    }
}

fn post_recv(vi: &Vi, region: &Region, len: usize) {
    let room = Descriptor::recv().segment(region, len as u32..2 * len as u32);
    vi.post_recv(&room, 0).expect("posts");
}

impl Pair for Vis {
    fn carry(&mut self, from: usize, len: usize) {
        let (sender, receiver) = (&self.ends[from], &self.ends[1 - from]);
        let message = Descriptor::send().segment(&self.regions[from], 0..len as u32);
        sender.post_send(&message, 0).expect("posts");
        let Done::Completed(_) = sender.send_done().expect("alive") else {
            panic!("it has not left");
        };
        let came = loop {
            if let Done::Completed(came) = receiver.recv_done().expect("alive") {
                break came;
            }
        };
        assert_eq!(came.ok().expect("a message").length as usize, len);
        post_recv(receiver, &self.regions[1 - from], len);
    }

    fn look(&mut self, at: usize) {
        assert_eq!(self.ends[at].recv_done().expect("alive"), Done::NotDone);
    }
}

/// Nanoseconds one way, or for a look.
fn measure(pair: &mut dyn Pair, len: usize, messages: usize) -> f64 {
    let start = Instant::now();
    for message in 0..messages {
        match len {
            0 => pair.look(message % 2),
            _ => pair.carry(message % 2, len),
        }
    }
    start.elapsed().as_nanos() as f64 / messages as f64
}

fn pair(way: &str, len: usize) -> Box<dyn Pair> {
    match way {
        "TCP" => Box::new(Tcp::new(len)),
        "plain" => Box::new(Vis::new(false, len)),
        "CRC" => Box::new(Vis::new(true, len)),
        _ => panic!("TCP, plain or CRC"),
    }
}

fn main() {
    let cpus = sys::host::affinity().expect("an affinity");
    sys::host::pin(cpus[cpus.len() - 1]).expect("pins");
    let arguments: Vec<_> = env::args().skip(1).collect();
    if let [way, len, messages] = &arguments[..] {
        let [len, messages] = [len, messages].map(|text| text.parse::<usize>().expect("a number"));
        let mut pair = pair(way, len.max(1));
        return println!("{:.0}", measure(&mut *pair, len, messages));
    }
    for len in [4, 64, 1024, 4096] {
        let mut pairs = WAYS.map(|way| pair(way, len));
        let mut best = [f64::INFINITY; WAYS.len()];
        for _ in 0..ROUNDS {
            for (pair, best) in pairs.iter_mut().zip(&mut best) {
                *best = best.min(measure(&mut **pair, len, MESSAGES));
            }
        }
        for (way, ns) in WAYS.iter().zip(best) {
            println!(
                "{len:5} octets, {way:5} {ns:6.0} ns one way, TCP {:+.0}",
                ns - best[0]
            );
        }
    }
}

const WAYS: [&str; 3] = ["TCP", "plain", "CRC"];
const ROUNDS: usize = 20;
const MESSAGES: usize = 5_000;
