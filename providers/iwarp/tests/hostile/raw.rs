//! A TCP connection on which anything can be said.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use proto::mpa::{Crc, pad_len};

/// One end of it.
pub(crate) struct Peer {
    tcp: TcpStream,
}

impl Peer {
    /// As soon as somebody listens there.
    pub(crate) fn knock(at: SocketAddrV4) -> Self {
        let began = Instant::now();
        loop {
            match TcpStream::connect(at) {
                Ok(tcp) => {
                    tcp.set_nodelay(true).expect("TCP");
                    tcp.set_read_timeout(Some(PATIENCE)).expect("TCP");
                    return Self { tcp };
                }
                Err(error) => assert!(began.elapsed() < PATIENCE, "{error}"),
            }
            thread::yield_now();
        }
    }

    /// After a startup without private data, with checksums; `markers` is what the NIC asks for.
    pub(crate) fn connect(at: SocketAddrV4, markers: bool) -> Self {
        let mut peer = Self::knock(at);
        peer.send(b"MPA ID Req Frame\x40\x01\0\0");
        peer.reply(markers);
        peer
    }

    /// The Reply to such a Request.
    pub(crate) fn reply(&mut self, markers: bool) {
        let mut reply = [0; 20];
        self.tcp.read_exact(&mut reply).expect("a reply");
        assert_eq!(&reply[..16], b"MPA ID Rep Frame");
        assert_eq!(reply[16] & 0x60, 0x40, "checksums, and no rejection");
        assert_eq!(reply[16] & 0x80 != 0, markers);
        assert_eq!(reply[18..], [0, 0], "strangers get no private data");
    }

    /// After a startup with these words, which are answered in kind.
    pub(crate) fn introduce(at: SocketAddrV4, words: &[u8]) -> Self {
        let mut peer = Self::knock(at);
        let len = (words.len() as u16).to_be_bytes();
        peer.send(&[&b"MPA ID Req Frame\x40\x01"[..], &len, words].concat());
        let mut reply = [0; 20];
        peer.tcp.read_exact(&mut reply).expect("a reply");
        assert_eq!(reply[16] & 0x60, 0x40, "checksums, and no rejection");
        let mut answer = vec![0; usize::from(u16::from_be_bytes([reply[18], reply[19]]))];
        peer.tcp.read_exact(&mut answer).expect("private data");
        peer
    }

    /// Whoever has gone does not hear it.
    pub(crate) fn send(&mut self, octets: &[u8]) {
        let _gone = self.tcp.write_all(octets);
    }

    /// As many octets as are taken, at most `most`.
    pub(crate) fn flood(&mut self, most: usize) {
        self.tcp.set_nonblocking(true).expect("TCP");
        let mut sent = 0;
        while sent < most {
            match self.tcp.write(&[0x5a; 4096]) {
                Ok(n) => sent += n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => break,
            }
        }
        self.tcp.set_nonblocking(false).expect("TCP");
    }

    /// The layer, type and code of the Terminate that comes, after whatever else does.
    pub(crate) fn terminate(&mut self) -> String {
        loop {
            let ulpdu = self.record();
            if ulpdu[..2] == [0x41, 0x47] {
                // Queue 2, message 1, offset 0.
                assert_eq!(ulpdu[6..18], hex("00000002 00000001 00000000"));
                return format!("{:02x}{:02x}", ulpdu[18], ulpdu[19]);
            }
        }
    }

    /// The segment in the next record.
    pub(crate) fn record(&mut self) -> Vec<u8> {
        let [high, low] = self.octets();
        let len = usize::from(u16::from_be_bytes([high, low]));
        let mut ulpdu = vec![0; len + pad_len(len)];
        self.tcp.read_exact(&mut ulpdu).expect("a record");
        let mut covered = vec![high, low];
        covered.extend(&ulpdu);
        assert_eq!(self.octets(), checksum(&covered), "the NIC's own checksum");
        ulpdu.truncate(len);
        ulpdu
    }

    /// Something has come; it is left where it is.
    pub(crate) fn is_answered(&self) {
        let there = self.tcp.peek(&mut [0; 1]);
        assert!(matches!(there, Ok(1)), "{there:?}");
    }

    fn octets<const N: usize>(&mut self) -> [u8; N] {
        let mut octets = [0; N];
        self.tcp
            .read_exact(&mut octets)
            .expect("more of the record");
        octets
    }

    /// FIN, and no reset.
    pub(crate) fn hears_the_end(&mut self) {
        let end = self.tcp.read(&mut [0; 1]);
        assert!(matches!(end, Ok(0)), "{end:?}");
    }
}

/// A record around a segment.
pub(crate) fn fpdu(ulpdu: &[u8]) -> Vec<u8> {
    let mut octets = (ulpdu.len() as u16).to_be_bytes().to_vec();
    octets.extend(ulpdu);
    octets.resize(octets.len() + pad_len(ulpdu.len()), 0);
    seal(&mut octets);
    octets
}

/// Appends the checksum.
pub(crate) fn seal(octets: &mut Vec<u8>) {
    octets.extend(checksum(octets));
}

fn checksum(octets: &[u8]) -> [u8; 4] {
    let mut crc = Crc::new();
    crc.update(octets);
    crc.octets()
}

pub(crate) fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
    let octet = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).expect("ASCII");
        u8::from_str_radix(text, 16).expect("digits")
    };
    digits.chunks(2).map(octet).collect()
}

const PATIENCE: Duration = Duration::from_secs(20);
