//! The connections of another process, as `/proc` has them.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::plain;

/// The ends of TCP sockets: each one's own address, and its peer's.
#[derive(Debug)]
pub struct Sockets(HashMap<u64, [SocketAddr; 2]>);

impl Sockets {
    /// Those of the network namespace that the process `pid` is in; none, if we may not look.
    pub fn around(pid: u32) -> Self {
        let tables =
            ["tcp", "tcp6"].map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")));
        let tables = tables.iter().flatten();
        Self(
            tables
                .flat_map(|table| table.lines().filter_map(parse))
                .collect(),
        )
    }

    /// The one that is descriptor `fd` of the process `pid`.
    pub fn of(&self, pid: u32, fd: u32) -> Option<[SocketAddr; 2]> {
        let link = fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?;
        let number = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        self.0.get(&number.parse().ok()?).copied()
    }
}

/// `sl local remote state queues timer retransmits uid timeout inode …`
fn parse(line: &str) -> Option<(u64, [SocketAddr; 2])> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let ends = [address(fields.next()?)?, address(fields.next()?)?];
    let inode = fields.nth(6)?.parse().ok()?;
    Some((inode, ends))
}

/// The octets as words of this CPU, in hexadecimal, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| {
        let digits = ip.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut octets = [0; 16];
            for (at, four) in octets.as_chunks_mut().0.iter_mut().enumerate() {
                *four = word(at)?;
            }
            IpAddr::V6(Ipv6Addr::from(octets))
        }
        _ => return None,
    };
    Some(plain(SocketAddr::new(
        ip,
        u16::from_str_radix(port, 16).ok()?,
    )))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn the_ends_of_a_connection_are_found_by_its_descriptor() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(host).expect("a port");
            let near = TcpStream::connect(listener.local_addr().expect("bound")).expect("loopback");
            let pid = std::process::id();
            let fd = near.as_raw_fd().cast_unsigned();
            let ends = [near.local_addr(), near.peer_addr()].map(|end| end.expect("connected"));
            // The kernel writes its table while connections of other tests come and go, and may pass a row over.
            let found = (0..100).find_map(|_| Sockets::around(pid).of(pid, fd));
            assert_eq!(found, Some(ends));
            assert_eq!(Sockets::around(pid).of(pid, u32::MAX), None);
        }
    }

    #[test]
    fn a_row_of_the_kernels_table_is_read() {
        let row = "   1: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0";
        let [local, peer] = ["127.0.0.1:8080", "127.0.0.1:40000"];
        let ends = [local, peer].map(|end| end.parse().expect("an address"));
        assert_eq!(parse(row), Some((4711, ends)));
        let mapped = row.replace("0100007F", "0000000000000000FFFF00000100007F");
        assert_eq!(parse(&mapped), Some((4711, ends)));
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
        for odd in [
            head,
            "",
            "1: 1 2 3",
            "1: 0100007F:1F90 0100007G:9C40 01 0:0 0:0 0 0 0 4711",
        ] {
            assert_eq!(parse(odd), None, "{odd}");
        }
    }
}
