//! The client: offers text to be read, and memory to write it back to.

use std::io::{self, Write};
use std::net::SocketAddrV4;
use std::time::Duration;

use via::{NetAddress, Nic};

use super::Options;
use super::end::{Advert, End};
use crate::error::{Context, Error, Result};
use crate::nic::ViContext;

/// Pings the server at `address` as often as `options` say.
pub(super) fn run(nic: &Nic, end: &End, address: SocketAddrV4, options: &Options) -> Result<()> {
    let local = nic.address(&[]).vi("address")?;
    let remote = NetAddress::new(iwarp::host(address), &[]).vi("address")?;
    let connected = end.vi.connect(&local, &remote, Some(PATIENCE));
    connected.vi("VipConnectRequest")?;
    let mut number = 0;
    while options.count == 0 || number < options.count {
        ping(end, number, options)?;
        number = number.wrapping_add(1);
    }
    end.vi.disconnect().vi("VipDisconnect")
}

fn ping(end: &End, number: u32, options: &Options) -> Result<()> {
    let sent = text(number, options.size as usize);
    let written = end.start.memory().write(0, &sent);
    written.map_err(io::Error::other).context("a ping")?;
    end.send(Advert::of(&end.start))?;
    // It has been read.
    end.recv()?;
    end.send(Advert::of(&end.echo))?;
    // It has been written.
    end.recv()?;
    let mut back = vec![0; sent.len()];
    let read = end.echo.memory().read(0, &mut back);
    read.map_err(io::Error::other).context("a ping")?;
    if options.validate && back != sent {
        return Err(Error::Protocol {
            from: "the server",
            what: "data mismatch".into(),
        });
    }
    if options.verbose {
        let text = back.split(|octet| *octet == 0).next().unwrap_or_default();
        let text = String::from_utf8_lossy(text);
        writeln!(io::stdout(), "ping data: {text}").context("standard output")?;
    }
    Ok(())
}

/// The ping of this number: its name, and letters up to a final NUL.
fn text(number: u32, size: usize) -> Vec<u8> {
    let letters = FIRST..=LAST;
    let turn = number as usize % letters.len();
    let mut text = format!("rdma-ping-{number}: ").into_bytes();
    text.extend(letters.cycle().skip(turn).take(size));
    text.truncate(size);
    if let Some(last) = text.last_mut() {
        *last = 0;
    }
    text
}

const FIRST: u8 = b'A';
const LAST: u8 = b'z';
const PATIENCE: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn pings_look_like_librdmacms() {
        assert_eq!(text(0, 17), b"rdma-ping-0: ABC\0");
        assert_eq!(text(1, 17), b"rdma-ping-1: BCD\0");
        let wraps = text(56, 80);
        assert!(wraps.starts_with(b"rdma-ping-56: yzABC"));
        assert_eq!(text(58, 18), b"rdma-ping-58: ABC\0");
    }
}
