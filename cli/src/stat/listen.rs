//! Answers Prometheus' scrapes, from this host only.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::{Source, prometheus};
use crate::error::{Context, Error, Result};
use crate::output::complain;

/// Listens at `address` (`9464`, `127.0.0.1:9464`, `[::1]:9464`) and answers one request after the other, until it is ended.
pub(super) fn serve(address: &str, source: &mut Source) -> Result<()> {
    let listener = TcpListener::bind(parse(address)?).map_err(|source| Error::File {
        path: format!("--listen {address}"),
        source,
    })?;
    let at = listener.local_addr().context("listening")?;
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "http://{at}/metrics")
        .and_then(|()| stdout.flush())
        .context("standard output")?;
    drop(stdout);
    // What cannot be looked at is told at each scrape.
    if let Ok(look) = source.look() {
        source.warn(look.processes.is_empty());
    }
    let mut complaints = Complaints::default();
    loop {
        // What goes wrong once need not the next time, and whoever scrapes comes again.
        if let Err(error) = serve_one(&listener, source)
            && let Some(others) = complaints.next(Instant::now())
        {
            match others {
                0 => complain(format_args!("a scrape: {error}")),
                _ => complain(format_args!("a scrape: {error} (and {others} before it)")),
            }
        }
    }
}

/// Why a scrape was not answered.
#[derive(Debug, thiserror::Error)]
enum Unanswered {
    #[error("the client sent no request within a second")]
    Silent,
    #[error("the client ended before it had sent a request")]
    Gone,
    #[error("the client's request has no end")]
    Endless,
    #[error("the client did not take the answer within a second")]
    Untaken,
    #[error(transparent)]
    Ours(#[from] Error),
}

/// Everybody on this host can have us complain, as often as he likes.
#[derive(Debug, Default)]
struct Complaints {
    last: Option<Instant>,
    /// What nobody was told since.
    kept: u32,
}

impl Complaints {
    /// How many were not told before this one; `None` if this one is not to be either.
    fn next(&mut self, now: Instant) -> Option<u32> {
        if self.last.is_some_and(|last| now < last + QUIET) {
            self.kept = self.kept.saturating_add(1);
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.kept))
    }
}

fn serve_one(listener: &TcpListener, source: &mut Source) -> Result<(), Unanswered> {
    let accepted = listener.accept();
    // No descriptor is free, for instance: another try at once would find none either.
    let (stream, _) = accepted
        .inspect_err(|_| thread::sleep(PAUSE))
        .context("accepting")?;
    let text = prometheus::text(&source.look()?);
    answer(&stream, &text)
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

/// Whatever is asked for, this is the answer. Nobody is waited for longer than a second in all, for others wait meanwhile.
fn answer(stream: &TcpStream, text: &str) -> Result<(), Unanswered> {
    let mut stream = Hurried {
        stream,
        until: Instant::now() + PATIENCE,
    };
    let mut request = [0; REQUEST_MAX];
    let mut len = 0;
    while !request.get(..len).is_some_and(is_whole) {
        let rest = request.get_mut(len..).unwrap_or_default();
        let room = rest.len();
        match stream.read(rest) {
            Ok(0) if room == 0 => return Err(Unanswered::Endless),
            Ok(0) => return Err(Unanswered::Gone),
            Ok(n) => len += n,
            Err(error) if is_late(&error) => {
                return Err(Unanswered::Silent);
            }
            Err(error) => return Err(error).context("reading a request")?,
        }
    }
    let written = write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    match written {
        Err(error) if is_late(&error) => Err(Unanswered::Untaken),
        written => Ok(written.context("answering")?),
    }
}

/// As Linux says it of a time-out, and as we do.
fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// A connection on which all that is waited for together has an end.
struct Hurried<'a> {
    stream: &'a TcpStream,
    until: Instant,
}

impl Hurried<'_> {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(ErrorKind::TimedOut.into()),
            false => Ok(Some(left)),
        }
    }
}

impl Read for Hurried<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for Hurried<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Its head, that is: scrapes have no body.
fn is_whole(request: &[u8]) -> bool {
    request.windows(4).any(|window| window == b"\r\n\r\n")
}

const PATIENCE: Duration = Duration::from_secs(1);
/// From one complaint to the next.
const QUIET: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(100);
const REQUEST_MAX: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_come_once_in_a_while() {
        let mut complaints = Complaints::default();
        let start = Instant::now();
        assert_eq!(complaints.next(start), Some(0));
        for second in 1..60 {
            let now = start + Duration::from_secs(second);
            assert_eq!(complaints.next(now), None, "{second}");
        }
        assert_eq!(complaints.next(start + QUIET), Some(59));
        assert_eq!(complaints.next(start + 3 * QUIET), Some(0));
    }

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
