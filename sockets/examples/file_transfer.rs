//! Zero-copy file transfer: the sender posts the memory that holds the file, the receiver the memory where it wants it; the NIC moves it from the one to the
//! other, without a socket's buffer between. The length goes ahead as plain bytes of the same connection.
//!
//! ```text
//! cargo run --example file_transfer -- vi|iwarp FILE COPY
//! ```

use std::error::Error;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use sockets::extended::Socket;
use via::{Access, Memory, Nic};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mode, file, copy] = &arguments[..] else {
        return Err("usage: file_transfer vi|iwarp FILE COPY".into());
    };
    println!("{} bytes", run(mode, file.as_ref(), copy.as_ref())?);
    Ok(())
}

/// Copies a file over a connection within this host; its length.
pub(crate) fn run(mode: &str, file: &Path, copy: &Path) -> Outcome<u32> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let at = listener.local_addr()?;
    thread::scope(|scope| {
        let sender = scope.spawn(|| give(&convert(mode, TcpStream::connect(at)?)?, file));
        let taken = take(&convert(mode, listener.accept()?.0)?, copy)?;
        sender.join().map_err(|_| "the sender panicked")??;
        Ok(taken)
    })
}

fn give(socket: &Socket, file: &Path) -> Outcome<()> {
    let bytes = fs::read(file)?;
    socket.write(&(bytes.len() as u64).to_le_bytes())?;
    let memory = Memory::private(bytes.len())?;
    memory.write(0, &bytes)?;
    let region = socket.register(memory, Access::Local)?;
    socket.post_send(&[region.whole()?], 1)?;
    socket.wait(soon())?.result?;
    Ok(())
}

fn take(socket: &Socket, copy: &Path) -> Outcome<u32> {
    let mut length = [0; 8];
    let mut got = 0;
    while got < length.len() {
        match socket.read(&mut length[got..])? {
            0 => return Err("the sender has gone".into()),
            n => got += n,
        }
    }
    let memory = Memory::private(usize::try_from(u64::from_le_bytes(length))?)?;
    // What the peer may write comes straight to its place.
    let region = socket.register(memory, Access::Write)?;
    socket.post_recv(&[region.whole()?], 1)?;
    let moved = socket.wait(soon())?.result?;
    let mut bytes = vec![0; moved as usize];
    region.memory().read(0, &mut bytes)?;
    fs::write(copy, bytes)?;
    Ok(moved)
}

fn convert(mode: &str, tcp: TcpStream) -> Outcome<Socket> {
    if mode != "iwarp" {
        return Ok(Socket::meet(tcp.into(), &Nic::open(&shm::DRIVER)?, soon())?);
    }
    let nic = Nic::open(&iwarp::DRIVER)?;
    Ok(Socket::in_place(tcp.into(), &nic, |vi, tcp, opener| {
        let role = if opener {
            iwarp::Role::Initiator
        } else {
            iwarp::Role::Responder
        };
        iwarp::over(vi, tcp, role, &iwarp::DRIVER.config(), soon())
    })?)
}

fn soon() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(20))
}
