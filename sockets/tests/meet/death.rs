//! The other end is killed, at each step.

use std::env;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};

use super::*;

/// A process that has one end, and calls when it is told to.
struct Peer {
    child: Child,
    orders: UnixStream,
}

impl Peer {
    fn new(tcp: TcpStream) -> Self {
        let path = env::temp_dir().join(format!("sovia-meet-death-{}", std::process::id()));
        let listener = UnixListener::bind(&path).expect("bind");
        let child = Command::new(env::current_exe().expect("this program"))
            .args(["--exact", "death::the_other_end", "--nocapture"])
            .env(ORDERS, &path)
            .stdin(Stdio::from(OwnedFd::from(tcp)))
            .stdout(Stdio::null())
            .spawn()
            .expect("spawn");
        let (orders, _) = listener.accept().expect("accept");
        fs::remove_file(&path).expect("remove");
        Self { child, orders }
    }

    /// Has it call once; whether it has an outcome.
    fn go(&mut self) -> bool {
        self.orders.write_all(b"g").expect("write");
        let mut answer = [0];
        self.orders.read_exact(&mut answer).expect("read");
        answer == *b"!"
    }

    fn kill(mut self) {
        self.child.kill().expect("kill");
        self.child.wait().expect("wait");
    }
}

#[test]
fn the_other_end_dies_after_any_call() {
    let _alone = alone();
    let mut met = 0;
    for ours_first in [true, false] {
        for calls in 0..5 {
            let mut ends = Ends::new();
            let theirs = ends.tcp[1].try_clone().expect("dup");
            let [ours, other] = ends.tcp;
            drop(other);
            // A place holder: no call is made with it.
            let holder = ours.try_clone().expect("dup");
            ends.tcp = [ours, holder];
            ends.outcomes[1] = Some(Outcome::Over(Reason::HandedOver));
            let mut peer = Peer::new(theirs);
            for _ in 0..calls {
                if ours_first {
                    ends.go(0, shm());
                    peer.go();
                } else {
                    peer.go();
                    ends.go(0, shm());
                }
            }
            peer.kill();
            ends.finish(shm());
            met += usize::from(ends.reason(0).is_none());
            // That the other end is dead, TCP tells.
            let end = ends.tcp[0].read(&mut [0; 8]);
            let gone = end.as_ref().map_err(io::Error::kind);
            assert!(
                matches!(gone, Ok(0) | Err(io::ErrorKind::ConnectionReset)),
                "{end:?}"
            );
        }
    }
    assert!(met > 0, "a peer of enough calls meets");
}

#[test]
fn the_other_end() {
    let Some(path) = env::var_os(ORDERS) else {
        println!("skipped: it is a process that the_other_end_dies_after_any_call starts");
        return;
    };
    let mut orders = UnixStream::connect(path).expect("connect");
    let tcp = io::stdin().as_fd().try_clone_to_owned().expect("dup");
    let tcp = TcpStream::from(tcp);
    let mut ends = Ends {
        tcp: [tcp.try_clone().expect("dup"), tcp],
        meetings: [None, None],
        outcomes: [None, None],
    };
    let mut order = [0];
    while orders.read_exact(&mut order).is_ok() {
        ends.go(0, shm());
        let answer = if ends.outcomes[0].is_some() {
            b"!"
        } else {
            b"."
        };
        orders.write_all(answer).expect("write");
    }
}

const ORDERS: &str = "SOVIA_MEET_ORDERS";
