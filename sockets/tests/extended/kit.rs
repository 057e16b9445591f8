//! Pairs of extended sockets.

use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use sockets::extended::{Completion, Region, Socket};
use sys::errno::Errno;
use via::{Access, Memory, Nic};

/// The NICs that they are tested over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Shm,
    Iwarp,
}

pub(crate) const ALL: [Over; 2] = [Over::Shm, Over::Iwarp];

pub(crate) fn soon() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(20))
}

/// The ends of a TCP connection: who opened it, and who accepted.
pub(crate) fn tcp() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let here = TcpStream::connect(listener.local_addr().expect("bound")).expect("there");
    (here, listener.accept().expect("connected").0)
}

impl Over {
    pub(crate) fn convert(self, tcp: OwnedFd, until: Option<Instant>) -> Result<Socket, Errno> {
        match self {
            Self::Shm => {
                let nic = Nic::open(&shm::DRIVER).expect("opens");
                Socket::meet(tcp, &nic, until)
            }
            Self::Iwarp => {
                let nic = Nic::open(&iwarp::DRIVER).expect("opens");
                nic.on_error(|_| {}).expect("a handler");
                Socket::in_place(tcp, &nic, |vi, tcp, opener| {
                    let role = if opener {
                        iwarp::Role::Initiator
                    } else {
                        iwarp::Role::Responder
                    };
                    iwarp::over(vi, tcp, role, &iwarp::DRIVER.config(), until)
                })
            }
        }
    }

    /// Two ends that have both asked.
    pub(crate) fn pair(self) -> (Socket, Socket) {
        let (here, there) = tcp();
        self.both(here, there)
    }

    pub(crate) fn both(self, here: TcpStream, there: TcpStream) -> (Socket, Socket) {
        thread::scope(|scope| {
            let other = scope.spawn(|| self.convert(there.into(), soon()));
            let one = self.convert(here.into(), soon()).expect("converts");
            (one, other.join().expect("no panic").expect("converts"))
        })
    }
}

pub(crate) fn region(socket: &Socket, len: usize, access: Access) -> Region {
    let memory = Memory::private(len).expect("memory");
    socket.register(memory, access).expect("registers")
}

pub(crate) fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251 + seed) as u8).collect()
}

pub(crate) fn fill(region: &Region, bytes: &[u8]) {
    region.memory().write(0, bytes).expect("in range");
}

pub(crate) fn held(region: &Region, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    region.memory().read(0, &mut bytes).expect("in range");
    bytes
}

/// The next completion, which is of the operation `id`.
pub(crate) fn wait(socket: &Socket, id: u64) -> Completion {
    let completion = socket.wait(soon()).expect("a completion");
    assert_eq!(completion.id, id, "{completion:?}");
    completion
}
