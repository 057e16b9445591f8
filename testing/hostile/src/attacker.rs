//! A peer that has the right to be there, and does what it likes.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::thread;

use rustix::io::pwrite;
use sockets::meet::{Meeting, Step};
use sys::stream::{LEN, RING, Size, Stream};
use sys::tcp;
use via::provider::Driver;
use via::window::Windows;

use crate::random::Random;

/// One end of a connection to the victim, in this process, without sovia.
#[derive(Debug)]
pub struct Attacker {
    tcp: TcpStream,
    random: Random,
}

/// One that shares memory with the victim.
#[derive(Debug)]
pub struct Intruder {
    tcp: TcpStream,
    random: Random,
    stream: Stream,
    /// Bytes that were put on TCP and do not come back as an echo.
    bells: u64,
}

impl Attacker {
    /// Connects to the victim and asks for a service.
    ///
    /// # Panics
    /// If the victim does not take it.
    pub fn connect(port: u16, service: u8, seed: u64) -> Self {
        let mut tcp = TcpStream::connect(("127.0.0.1", port)).expect("the victim listens");
        tcp.set_nodelay(true).expect("a TCP socket");
        tcp.write_all(&[service]).expect("the victim reads");
        Self {
            tcp,
            random: Random::new(seed),
        }
    }

    /// The socket.
    pub fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    /// One byte there and back, as the echo services do it. False if the connection is no more.
    pub fn exchange(&mut self) -> bool {
        let byte = [self.random.draw() as u8];
        let mut back = [0];
        self.tcp.write_all(&byte).is_ok() && self.tcp.read_exact(&mut back).is_ok() && back == byte
    }

    /// Does what makes the victim look for its peer, whatever the service, and meets it. `None` if the victim does not come.
    pub fn intrude(mut self, service: u8) -> Option<Intruder> {
        let mut meeting = None;
        for turn in 0..400 {
            if !self.serve_victim(service) {
                return None;
            }
            if turn < 6 {
                continue;
            }
            if meeting.is_none() {
                meeting = Some(Meeting::begin(self.tcp.as_fd(), shm(), Size::DEFAULT).ok()?);
            }
            match meeting.as_mut()?.step(self.tcp.as_fd()) {
                Step::Wait => {}
                Step::Over(_) => return None,
                Step::Met(stream) => return self.settle(service, stream),
            }
        }
        None
    }

    /// The victim finds out in one of its next calls that it has met us too. Until we consent it sends nothing to the ring.
    fn settle(mut self, service: u8, stream: Stream) -> Option<Intruder> {
        for _ in 0..40 {
            if stream.tx().consented() || !self.serve_victim(service) {
                break;
            }
        }
        self.tcp.set_nonblocking(true).ok()?;
        Some(Intruder {
            tcp: self.tcp,
            random: self.random,
            stream,
            bells: 0,
        })
    }

    /// Does what the victim waits for once. False if the connection is no more.
    fn serve_victim(&mut self, service: u8) -> bool {
        match service {
            b'W' => self.tcp.read_exact(&mut [0; 4096]).is_ok(),
            b'R' => self.tcp.write_all(&[7; 4096]).is_ok(),
            _ => self.exchange(),
        }
    }
}

impl Intruder {
    /// The socket.
    pub fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    /// The memory.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Plays by the rules for a while: consents, goes to the ring, and sends some bytes there.
    pub fn behave(&mut self) {
        self.stream.rx().consent();
        let tx = self.stream.tx();
        if tx.consented()
            && tx.to_ring().is_none()
            && let Ok(written) = tcp::written_by(self.tcp.as_fd(), true)
        {
            tx.set_to_ring(written);
        }
        for _ in 0..self.random.below(6) {
            self.send_on_ring();
            self.read_all();
        }
    }

    /// Some bytes on the ring, if it is the ring's turn, with a doorbell.
    pub fn send_on_ring(&mut self) {
        let tx = self.stream.tx();
        if tx.to_ring().is_some() {
            let bytes = [9; 300];
            let some = &bytes[..1 + self.random.below(299) as usize];
            if let Ok((_, bits)) = tx.write(false, || [some].into_iter())
                && bits != 0
            {
                tx.knock();
                self.ring();
            }
        }
    }

    /// A byte on TCP.
    pub fn ring(&mut self) {
        self.bells += 1;
        // If there is no room the victim has enough to read.
        let _ = self.tcp.write(&[7]);
    }

    /// Takes what there is, from wherever.
    pub fn read_all(&mut self) {
        let mut scratch = [0; 8192];
        while matches!(self.tcp.read(&mut scratch), Ok(1..)) {}
        let rx = self.stream.rx();
        let head = rx.head();
        if let Ok(n @ 1..) = rx.peek(head, &mut scratch) {
            rx.take(head, head.wrapping_add(n as u64));
        }
    }

    /// One act of malice.
    pub fn attack(&mut self) {
        match self.random.below(32) {
            0..=11 => {
                // The words, wherever they are: aligned, one or all of a line.
                let at = self.random.below(WORDS / 8) * 8;
                self.write_word(at);
            }
            12..=15 => {
                let at = self.random.below(WORDS / 64) * 64;
                for word in 0..1 + self.random.below(6) {
                    self.write_word(at + word * 8);
                }
            }
            16 | 17 => {
                let len = 1 + self.random.below(64) as usize;
                let at = self.random.below((LEN - 64) as u64);
                let bytes: Vec<u8> = (0..len).map(|_| self.random.draw() as u8).collect();
                self.write(at, &bytes);
            }
            18 => self.write(0, &[0xff; 4096]),
            19..=22 => self.ring(),
            23 => {
                let _ = self.tcp.write(&[0x55; 700]);
            }
            24..=26 => self.read_all(),
            27..=29 => self.send_on_ring(),
            // The victim's turn.
            _ => thread::yield_now(),
        }
    }

    /// Writes one value at all words again and again, with doorbells in between, `times` times.
    pub fn hammer(&mut self, times: u32) {
        let at = self.random.below(WORDS / 8) * 8;
        for _ in 0..times {
            self.write_word(at);
            if self.random.below(8) == 0 {
                self.ring();
            }
        }
    }

    fn write_word(&mut self, at: u64) {
        let ring = RING as u64;
        let far = self.random.draw();
        let tails = [self.stream.tx().tail(), self.stream.rx().head()];
        let near = self.random.one_of(&tails);
        let value = match self.random.below(16) {
            0 => 0,
            1 => 1,
            2 => 3,
            3 => u64::MAX,
            4 => 1 << 62,
            5 => near.wrapping_add(self.random.below(2 * ring)),
            6 => near.wrapping_sub(self.random.below(2 * ring)),
            7 => near.wrapping_add(ring + 1),
            8 => near.wrapping_add(ring),
            9 => u64::from(std::process::id()),
            10 => far >> self.random.below(64),
            11 => near.wrapping_add(1),
            12 => self.random.below(4096),
            13 => 1 << self.random.below(64),
            14 => near,
            _ => far,
        };
        let half = self.random.below(3) == 0;
        let bytes = value.to_le_bytes();
        self.write(at, if half { &bytes[..4] } else { &bytes });
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        // Sealed against another size, so there is a place for it.
        let _ = self.stream.with_fd(|fd| pwrite(fd, bytes, at));
    }

    /// Leaves, in one of the ways in which one can leave.
    pub fn leave(mut self) {
        match self.random.below(4) {
            0 => sys::socket::reset_on_close(self.tcp.as_fd()),
            1 => {
                let _ = self.tcp.shutdown(std::net::Shutdown::Write);
            }
            _ => {}
        }
    }
}

/// The name at which the ends of `tcp` meet, learnt as anybody can: by looking who comes.
///
/// # Panics
/// If there is none.
pub fn name_of(tcp: &TcpStream) -> String {
    let meeting = Meeting::begin(tcp.as_fd(), shm(), Size::DEFAULT).expect("a local connection");
    // Others may have names there that are no text.
    let table = fs::read("/proc/net/unix").expect("/proc");
    let table = String::from_utf8_lossy(&table);
    let ports = [tcp.local_addr(), tcp.peer_addr()];
    let ports = ports.map(|address| format!("{:04x}", address.expect("connected").port()));
    let is_ours = |name: &&str| {
        let mut addresses = name.rsplit('-');
        let ends = [addresses.next(), addresses.next()].map(Option::unwrap_or_default);
        ends.iter()
            .all(|end| ports.iter().any(|port| end.ends_with(port)))
    };
    let names = table
        .lines()
        .filter_map(|line| line.rsplit_once(" @").map(|(_, name)| name));
    let name = names
        .filter(|name| name.starts_with("sovia1-"))
        .find(is_ours);
    let name = name.expect("we have it").to_owned();
    assert!(meeting.give_up().is_none(), "nobody else came");
    name
}

/// Whether an error says that the connection is no more.
pub fn is_gone(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof
    )
}

/// Memory as honest peers have it.
///
/// # Panics
/// Without shared memory there is nothing to attack.
pub fn shm() -> &'static dyn Windows {
    shm::DRIVER.windows().expect("shm lends memory")
}

/// The page of cursors and flags.
const WORDS: u64 = 13 * 64;
