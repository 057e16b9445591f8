//! A table that others read while its owner does something else: the owner advertises it, and answers nobody. The reader finds the row of a key by the hash, and
//! reads it by RDMA.
//!
//! ```text
//! cargo run --example key_value -- vi|iwarp
//! ```

use std::error::Error;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use sockets::extended::Socket;
use via::{Access, Memory, Nic};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Bytes of a row: a key, and its value.
const ROW: usize = 64;
const KEY: usize = 16;
const ROWS: usize = 4096;
/// What the two programs call the table.
const TAG: u64 = 0x74_6162_6c65;

fn main() -> Outcome<()> {
    let mode = std::env::args().nth(1).unwrap_or_default();
    println!("100 keys, {} reads", run(&mode)?);
    Ok(())
}

/// Looks a hundred keys up over a connection within this host; how many reads that took.
pub(crate) fn run(mode: &str) -> Outcome<u32> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let at = listener.local_addr()?;
    thread::scope(|scope| {
        let owner = scope.spawn(|| own(&convert(mode, TcpStream::connect(at)?)?));
        let reads = look_up(&convert(mode, listener.accept()?.0)?)?;
        owner.join().map_err(|_| "the owner panicked")??;
        Ok(reads)
    })
}

fn own(socket: &Socket) -> Outcome<()> {
    let memory = Memory::private(ROWS * ROW)?;
    for number in 0..100 {
        let key = padded::<KEY>(&format!("key{number}"));
        let mut at = place(&key);
        let mut there = [0; KEY];
        loop {
            memory.read(at * ROW, &mut there)?;
            if there[0] == 0 {
                break;
            }
            at = (at + 1) % ROWS;
        }
        memory.write(at * ROW, &key)?;
        memory.write(
            at * ROW + KEY,
            &padded::<{ ROW - KEY }>(&format!("value {number}")),
        )?;
    }
    let table = socket.register(memory, Access::Read)?;
    socket.advertise(&table, TAG)?;
    // All that the owner does from here on: it sleeps until the other end closes.
    socket.read(&mut [0])?;
    Ok(())
}

fn look_up(socket: &Socket) -> Outcome<u32> {
    let table = socket.remote(TAG, soon())?;
    let row = socket.register(Memory::private(ROW)?, Access::Local)?;
    let mut reads = 0;
    for number in 0..100 {
        let key = padded::<KEY>(&format!("key{number}"));
        let mut at = place(&key);
        let mut bytes = [0; ROW];
        loop {
            socket.post_read(&[row.whole()?], &table, (at * ROW) as u64, number)?;
            socket.wait(soon())?.result?;
            reads += 1;
            row.memory().read(0, &mut bytes)?;
            if bytes[0] == 0 || bytes[..KEY] == key {
                break;
            }
            at = (at + 1) % ROWS;
        }
        if bytes[KEY..] != padded::<{ ROW - KEY }>(&format!("value {number}")) {
            return Err(format!("key{number} has another value").into());
        }
    }
    Ok(reads)
}

fn place(key: &[u8; KEY]) -> usize {
    let octets = key.iter().take_while(|&&octet| octet != 0);
    let hash = octets.fold(0x811c_9dc5_u32, |hash, &octet| {
        (hash ^ u32::from(octet)).wrapping_mul(0x0100_0193)
    });
    hash as usize % ROWS
}

fn padded<const LEN: usize>(text: &str) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
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
