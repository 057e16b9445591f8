//! The same from `/proc/net/tcp`, where netlink is forbidden. It takes as long as the table, so there is a limit.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str;

use rustix::ffi::CStr;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::Owner;
use crate::hidden::Hidden;
use crate::tcp::{Identity, netns};

pub(in crate::tcp) fn look_up(of: &Identity) -> Result<Owner, Errno> {
    look_up_within(of, LIMIT)
}

pub(in crate::tcp) fn look_up_within(of: &Identity, limit: usize) -> Result<Owner, Errno> {
    let flags = SocketFlags::CLOEXEC;
    let here = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
    if netns(Hidden::adopt(here).as_fd())? != of.netns {
        return Err(Errno::XDEV);
    }
    // The kernel writes the table anew for each read, so while other connections come and go a row may be passed over.
    let mut found = look_once(of, limit);
    for _ in 1..LOOKS {
        if found != Err(Errno::NOENT) {
            break;
        }
        found = look_once(of, limit);
    }
    found
}

fn look_once(of: &Identity, limit: usize) -> Result<Owner, Errno> {
    if of.peer.is_ipv4()
        && let Ok(owner) = search(c"/proc/thread-self/net/tcp", of, limit)
    {
        return Ok(owner);
    }
    // A socket of IPv6 with a mapped address stands in that table.
    search(c"/proc/thread-self/net/tcp6", of, limit)
}

fn search(path: &CStr, of: &Identity, limit: usize) -> Result<Owner, Errno> {
    let table = Hidden::adopt(open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?);
    let wide = path.to_bytes().ends_with(b"6");
    let (peer, local) = (Place::new(of.peer, wide), Place::new(of.local, wide));
    let mut buffer = [0; 4096];
    let (mut have, mut read) = (0, 0);
    while read < limit {
        let free = buffer.get_mut(have..).ok_or(Errno::IO)?;
        let len = retry_on_intr(|| rustix::io::read(table.as_fd(), &mut *free))?;
        if len == 0 {
            return Err(Errno::NOENT);
        }
        (have, read) = (have + len, read + len);
        let filled = buffer.get(..have).unwrap_or_default();
        let mut used = 0;
        for line in filled.split_inclusive(|&byte| byte == b'\n') {
            if line.last() != Some(&b'\n') {
                break;
            }
            if let Some(owner) = parse(line, peer.text(), local.text()) {
                return Ok(owner);
            }
            used += line.len();
        }
        buffer.copy_within(used..have, 0);
        have -= used;
    }
    Err(Errno::NOENT)
}

/// `sl local remote state queues timer retransmits uid timeout inode …`
fn parse(line: &[u8], local: &[u8], remote: &[u8]) -> Option<Owner> {
    let mut fields = line
        .split(u8::is_ascii_whitespace)
        .filter(|field| !field.is_empty());
    let ours = fields.nth(1)? == local && fields.next()? == remote && fields.next()? == b"01";
    if !ours {
        return None;
    }
    let uid = str::from_utf8(fields.nth(3)?).ok()?.parse().ok()?;
    let inode = str::from_utf8(fields.nth(1)?).ok()?.parse().ok()?;
    Some(Owner { inode, uid })
}

/// An address and port as the tables have it: the octets as words of this CPU, in hexadecimal.
struct Place {
    text: [u8; 40],
    len: usize,
}

impl Place {
    fn new(address: SocketAddr, wide: bool) -> Self {
        let mut place = Self {
            text: [0; 40],
            len: 0,
        };
        match address.ip() {
            IpAddr::V4(v4) if !wide => place.words(&v4.octets()),
            IpAddr::V4(v4) => place.words(&Ipv4Addr::to_ipv6_mapped(&v4).octets()),
            IpAddr::V6(v6) => place.words(&v6.octets()),
        }
        place.put(format_args!(":{:04X}", address.port()));
        place
    }

    fn words(&mut self, octets: &[u8]) {
        for word in octets.as_chunks().0 {
            self.put(format_args!("{:08X}", u32::from_ne_bytes(*word)));
        }
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        let mut rest = self.text.get_mut(self.len..).unwrap_or_default();
        let free = rest.len();
        // Four words of eight digits and a port of five: it fits.
        let fits = rest.write_fmt(text);
        debug_assert!(fits.is_ok());
        self.len += free - rest.len();
    }

    fn text(&self) -> &[u8] {
        self.text.get(..self.len).unwrap_or_default()
    }
}

const LOOKS: u32 = 8;
/// Bytes of a table that are read: some 7,000 connections.
const LIMIT: usize = 1 << 20;
