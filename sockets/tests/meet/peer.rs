//! A process that has the other end, and calls when it is told to.

use std::env;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::*;

pub(crate) struct Peer {
    child: Child,
    orders: UnixStream,
}

impl Peer {
    /// One that has inherited `tcp`.
    pub(crate) fn with(tcp: TcpStream) -> Self {
        let mut command = Self::command();
        command.stdin(Stdio::from(OwnedFd::from(tcp)));
        Self::start(command).expect("spawn")
    }

    /// The same, of another user.
    pub(crate) fn of_user_with(uid: u32, tcp: TcpStream) -> io::Result<Self> {
        let mut command = Self::command();
        command.uid(uid).stdin(Stdio::from(OwnedFd::from(tcp)));
        Self::start(command)
    }

    /// One of another user that connects to `address` itself.
    pub(crate) fn of_user(uid: u32, address: SocketAddr) -> io::Result<Self> {
        let mut command = Self::command();
        command.uid(uid).stdin(Stdio::null());
        command.env(ADDRESS, address.to_string());
        Self::start(command)
    }

    fn command() -> Command {
        let mut command = Command::new(env::current_exe().expect("this program"));
        command.args(["--exact", "peer::the_other_end", "--nocapture"]);
        command.env(ORDERED, "1").stdout(Stdio::null());
        command
    }

    fn start(mut command: Command) -> io::Result<Self> {
        // A test program says nothing there.
        let (orders, theirs) = UnixStream::pair()?;
        let child = command.stderr(Stdio::from(OwnedFd::from(theirs))).spawn()?;
        Ok(Self { child, orders })
    }

    /// Has it call once; `m` if it has met, `o` if it is over, else `.`.
    pub(crate) fn go(&mut self) -> u8 {
        self.orders.write_all(b"g").expect("write");
        let mut answer = [0];
        self.orders.read_exact(&mut answer).expect("read");
        answer[0]
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It is ours, and has not been waited for.
        self.child.kill().expect("kill");
        self.child.wait().expect("wait");
    }
}

#[test]
fn the_other_end() {
    if env::var_os(ORDERED).is_none() {
        println!("skipped: it is a process that other tests start");
        return;
    }
    let orders = io::stderr().as_fd().try_clone_to_owned().expect("dup");
    let mut orders = UnixStream::from(orders);
    let tcp = match env::var(ADDRESS) {
        Ok(address) => TcpStream::connect(address).expect("connect"),
        Err(_) => io::stdin()
            .as_fd()
            .try_clone_to_owned()
            .expect("dup")
            .into(),
    };
    let mut ends = Ends::of(tcp.try_clone().expect("dup"), tcp);
    let mut order = [0];
    while orders.read_exact(&mut order).is_ok() {
        ends.go(0, shm());
        let answer = match ends.outcomes[0] {
            Some(Outcome::Met(_)) => b'm',
            Some(Outcome::Over(_)) => b'o',
            None => b'.',
        };
        orders.write_all(&[answer]).expect("write");
    }
}

const ADDRESS: &str = "SOVIA_MEET_ADDRESS";
const ORDERED: &str = "SOVIA_MEET_ORDERED";
