//! Answers Prometheus' scrapes, from this host only.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::{Source, prometheus};
use crate::error::{Context, Error, Result};

/// Listens at `address` (`9464`, `127.0.0.1:9464`, `[::1]:9464`) and answers one request after the other, until it is ended.
pub(super) fn serve(address: &str, source: &mut Source) -> Result<()> {
    let listener = TcpListener::bind(parse(address)?).context("listening")?;
    let at = listener.local_addr().context("listening")?;
    println!("http://{at}/metrics");
    loop {
        let (stream, _) = listener.accept().context("accepting")?;
        let text = prometheus::text(&source.look()?);
        if let Err(error) = answer(stream, &text) {
            eprintln!("sovia: a scrape: {error}");
        }
    }
}

fn parse(address: &str) -> Result<SocketAddr> {
    let parsed = match address.parse::<u16>() {
        Ok(port) => Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)),
        Err(_) => address.parse().ok(),
    };
    let Some(parsed) = parsed else {
        return Err(Error::Misuse(format!(
            "--listen: {address} is no PORT, nor ADDRESS:PORT"
        )));
    };
    if !parsed.ip().is_loopback() {
        return Err(Error::Misuse(format!(
            "--listen: {address} is not of the loopback; who talks to whom is nobody else's business"
        )));
    }
    Ok(parsed)
}

/// Whatever is asked for, this is the answer. Nobody is waited for longer than a second at a time.
fn answer(mut stream: TcpStream, text: &str) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = [0; REQUEST_MAX];
    let mut len = 0;
    while !request.get(..len).is_some_and(is_whole) {
        let rest = request.get_mut(len..).unwrap_or_default();
        match stream.read(rest)? {
            0 => return Err(ErrorKind::InvalidData.into()),
            n => len += n,
        }
    }
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )
}

/// Its head, that is: scrapes have no body.
fn is_whole(request: &[u8]) -> bool {
    request.windows(4).any(|window| window == b"\r\n\r\n")
}

const PATIENCE: Duration = Duration::from_secs(1);
const REQUEST_MAX: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_loopback_is_listened_at() {
        let parsed = |text| parse(text).map(|address| address.to_string());
        assert!(parsed("9464").is_ok_and(|address| address == "127.0.0.1:9464"));
        assert!(parsed("[::1]:80").is_ok_and(|address| address == "[::1]:80"));
        for refused in ["0.0.0.0:80", "10.0.0.1:80", "host:80", "70000", ""] {
            assert!(parsed(refused).is_err(), "{refused}");
        }
    }
}
