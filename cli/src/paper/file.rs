//! A file transfer of our own, for what carries no FTP programs: one end reads and sends, the other receives and writes.

use std::fs::{self, File};
use std::io::{BufRead, Read, Write, stdin};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Instant;

use sockets::packet::Waiting;

use super::way::{PacketPipe, Way, listen};
use crate::error::{Context, Error, Result};
use crate::machine;
use crate::netpipe::set_congestion;
use crate::steps::say;

/// What `sovia` is started with, once more.
pub(crate) const COMMAND: &str = "paper-file";

/// One end of bench paper-sovia's own file transfer
#[derive(Debug, clap::Args)]
pub(crate) struct End {
    #[arg(long)]
    way: Way,
    #[arg(long)]
    cpu: usize,
    /// What is sent, or where it goes
    #[arg(long)]
    file: PathBuf,
    #[arg(long)]
    times: u32,
    /// Where the other end listens
    #[arg(long)]
    dial: Option<String>,
}

/// Runs one end. The one that listens says where on its standard output, the other how many seconds each time took.
pub(crate) fn main(end: &End) -> Result<()> {
    machine::pin(end.cpu)?;
    match &end.dial {
        None => end.serve(),
        Some(address) => end.take(address),
    }
}

/// A connection of either kind.
enum Line {
    Tcp(TcpStream),
    Packets(PacketPipe),
}

impl End {
    fn serve(&self) -> Result<()> {
        let mut line = match self.way.variant() {
            None => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("bind")?;
                // What is accepted inherits it.
                set_congestion(&listener)?;
                say(&listener.local_addr().context("getsockname")?.to_string())?;
                Line::Tcp(listener.accept().context("accept")?.0)
            }
            Some(variant) => {
                let (listener, port) = listen(variant, Waiting::Blocking)?;
                say(&port.to_string())?;
                Line::Packets(PacketPipe::accept(listener, BUFFER)?)
            }
        };
        let mut buffer = vec![0; BUFFER];
        for _ in 0..self.times {
            line.take(&mut buffer, 1)?;
            let mut file = File::open(&self.file).context("the file to send")?;
            let bytes = file.metadata().context("the file to send")?.len();
            line.send(&bytes.to_be_bytes())?;
            loop {
                match file.read(&mut buffer).context("the file to send")? {
                    0 => break,
                    n => line.send(buffer.get(..n).unwrap_or_default())?,
                }
            }
        }
        // The other end has all it waits for before the connection goes.
        let _end = stdin().lock().read_line(&mut String::new());
        Ok(())
    }

    fn take(&self, address: &str) -> Result<()> {
        let mut line = match self.way.variant() {
            None => Line::Tcp(TcpStream::connect(address).context("connect")?),
            Some(variant) => {
                let port = address
                    .parse()
                    .map_err(|_| Error::Misuse(format!("no port: {address}")))?;
                Line::Packets(PacketPipe::dial(variant, Waiting::Blocking, port, BUFFER)?)
            }
        };
        let mut buffer = vec![0; BUFFER];
        let mut seconds = Vec::new();
        for _ in 0..self.times {
            if self.file.exists() {
                fs::remove_file(&self.file).context("the file of before")?;
            }
            let start = Instant::now();
            line.send(&[1])?;
            let mut length = [0; 8];
            line.take(&mut length, 8)?;
            let mut left = u64::from_be_bytes(length);
            let mut file = File::create(&self.file).context("the file to write")?;
            while left > 0 {
                let most = usize::try_from(left).unwrap_or(BUFFER).min(BUFFER);
                let n = line.receive(buffer.get_mut(..most).unwrap_or_default())?;
                let bytes = buffer.get(..n).unwrap_or_default();
                file.write_all(bytes).context("the file to write")?;
                left -= n as u64;
            }
            drop(file);
            seconds.push(start.elapsed().as_secs_f64());
        }
        say(&serde_json::to_string(&seconds).context("seconds")?)
    }
}

impl Line {
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes).context("send"),
            Self::Packets(pipe) => pipe.write(bytes),
        }
    }

    /// At least one byte, and no more than there is room for.
    fn receive(&mut self, room: &mut [u8]) -> Result<usize> {
        let got = match self {
            Self::Tcp(stream) => stream.read(room).context("recv")?,
            Self::Packets(pipe) => pipe.read(room)?,
        };
        if got == 0 {
            Err(Error::Closed)
        } else {
            Ok(got)
        }
    }

    fn take(&mut self, room: &mut [u8], bytes: usize) -> Result<()> {
        let mut got = 0;
        while got < bytes {
            got += self.receive(room.get_mut(got..bytes).unwrap_or_default())?;
        }
        Ok(())
    }
}

/// As vsftpd and its clients have it.
const BUFFER: usize = 64 << 10;
