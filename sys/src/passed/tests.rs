use std::io::{ErrorKind, IoSlice, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg, sockopt};

use super::*;
use crate::net::{Conn, Listener};
use crate::rendezvous::{Arrival, Caller, Place, Received, arrive};
use crate::sync::{Ordering, mapped::AtomicU32};

/// A connection whose end waits in vain when it is closed, and the other end.
struct Lingering {
    end: TcpStream,
    _other: TcpStream,
}

impl Lingering {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let end = TcpStream::connect(listener.local_addr().expect("bound")).expect("connect");
        let (other, _) = listener.accept().expect("accept");
        end.set_nonblocking(true).expect("set");
        let full = loop {
            if let Err(error) = (&end).write(&[0; 1 << 16]) {
                break error.kind();
            }
        };
        assert_eq!(full, ErrorKind::WouldBlock);
        sockopt::set_socket_linger(&end, Some(LINGER)).expect("set");
        Self { end, _other: other }
    }

    /// Passes it, and keeps it no more.
    fn go(self, through: impl AsFd, bytes: &[u8], times: usize) -> TcpStream {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = [self.end.as_fd(); 8];
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds[..times])));
        let flags = SendFlags::DONTWAIT;
        sendmsg(through, &[IoSlice::new(bytes)], &mut control, flags).expect("room");
        self._other
    }
}

/// What `act` does must not wait for what lingers.
fn at_once(act: impl FnOnce()) {
    let began = Instant::now();
    act();
    let took = began.elapsed();
    assert!(took < LINGER, "{took:?}");
}

fn name() -> Vec<u8> {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let nth = TAKEN.fetch_add(1, Ordering::Relaxed);
    format!("sovia-passed-{}-{nth}", std::process::id()).into_bytes()
}

fn place(name: &[u8]) -> Place {
    match arrive(name, 4) {
        Ok(Arrival::First(place)) => place,
        other => panic!("{other:?}"),
    }
}

fn call(name: &[u8]) -> Caller {
    match arrive(name, 4) {
        Ok(Arrival::Second(caller)) => caller,
        other => panic!("{other:?}"),
    }
}

/// What `act` makes in a thread of another user; `None` if this one may not be another.
fn as_another_user<T: Send>(act: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| {
        let there = scope.spawn(|| {
            // SAFETY: changes the effective user of this thread only, which ends with `act`.
            let changed = unsafe { libc::syscall(libc::SYS_setresuid, -1, NOBODY, -1) };
            (changed == 0).then(act)
        });
        there.join().expect("no panic")
    })
}

#[test]
fn what_is_not_wanted_does_not_linger() {
    let name = name();
    let place = place(&name);
    let caller = call(&name);
    let met = place.accept().expect("accept").expect("it has come");
    let mut others = Vec::new();
    for count in [1, 3, 5] {
        others.push(Lingering::new().go(&caller, b"hello", count));
        at_once(|| {
            let received = met.recv(&mut [0; 8]);
            assert!(matches!(received, Ok(Received::Packet { whole, .. }) if whole == (count < 4)));
        });
    }
    let (ours, theirs) = Conn::pair().expect("sockets");
    for count in [1, 8] {
        others.push(Lingering::new().go(&theirs, b"hello", count));
        at_once(|| drop(ours.recv(&mut [0; 8]).expect("a packet")));
        // A doorbell.
        others.push(Lingering::new().go(&theirs, &[7], count));
        at_once(|| assert_eq!(ours.drain(&mut [0; 8]).expect("a bell").knocks, 1));
    }
}

#[test]
fn what_a_stranger_sent_and_nobody_received_does_not_linger() {
    let name = name();
    let place = place(&name);
    let strangers = || (call(&name), call(&name));
    let Some((first, second)) = as_another_user(strangers) else {
        println!("this user cannot be another");
        return;
    };
    let met = place.accept().expect("accept").expect("one has come");
    let mut others = Vec::new();
    for caller in [&first, &second] {
        // Behind what is like the end.
        sendmsg(
            caller,
            &[],
            &mut SendAncillaryBuffer::default(),
            SendFlags::DONTWAIT,
        )
        .expect("an empty packet");
        others.push(Lingering::new().go(caller, b"", 1));
        others.push(Lingering::new().go(caller, b"hello", 8));
    }
    at_once(|| drop(met));
    assert_eq!(first.send(b"more", &[]), Err(rustix::io::Errno::PIPE));
    at_once(|| drop(place));
}

#[test]
fn what_a_stranger_sent_a_nic_does_not_linger() {
    let name = name();
    let listener = Listener::bind(&name, 4).expect("bind");
    let strangers = || [(); 2].map(|()| Conn::connect(&name).expect("connect"));
    let Some(strangers) = as_another_user(strangers) else {
        println!("this user cannot be another");
        return;
    };
    let met = listener.accept().expect("accept").expect("one has come");
    let others = strangers
        .each_ref()
        .map(|conn| Lingering::new().go(conn, b"hello", 8));
    at_once(|| drop(met));
    at_once(|| drop(listener));
    drop(others);
}

/// Unix sockets, which are closed with what lies in their queues.
#[test]
fn what_lies_in_what_was_passed_does_not_linger() {
    let (ours, theirs) = Conn::pair().expect("sockets");
    let (one, other) = UnixStream::pair().expect("sockets");
    let (inner, outer) = UnixStream::pair().expect("sockets");
    let address = SocketAddr::from_abstract_name(name()).expect("a name");
    let listener = UnixListener::bind_addr(&address).expect("bind");
    let waiting = UnixStream::connect_addr(&address).expect("connect");
    let mut others = vec![
        Lingering::new().go(&inner, b"a", 3),
        Lingering::new().go(&waiting, b"b", 1),
    ];
    pass(&one, &[outer.as_fd(), listener.as_fd()]);
    drop((outer, listener));
    others.push(Lingering::new().go(&one, b"c", 8));
    pass(&theirs, &[other.as_fd()]);
    drop(other);
    at_once(|| drop(ours.recv(&mut [0; 8]).expect("a packet")));
}

#[test]
fn what_was_passed_is_what_it_is_taken_for() {
    let (ours, theirs) = Conn::pair().expect("sockets");
    let null = std::fs::File::open("/dev/null").expect("open");
    let path = crate::tcp::witness(null.as_fd()).expect("a name");
    let memory = crate::window::create("sovia-test-of-passing", 4096).expect("memory");
    let (stream, _other) = UnixStream::pair().expect("sockets");
    let (packets, _other) = Conn::pair().expect("sockets");
    let all = [
        null.as_fd(),
        path.as_fd(),
        memory.as_fd(),
        stream.as_fd(),
        packets.as_fd(),
    ];
    let all = || all.map(|fd| passed(&ours, &theirs, fd));
    let paths = all().map(|it| it.into_path().is_some());
    assert_eq!(paths, [false, true, false, false, false]);
    let memories = all().map(|it| it.into_memory().is_some());
    assert_eq!(memories, [false, false, true, false, false]);
    let exports = all().map(|it| it.into_export().is_some());
    assert_eq!(exports, [false, false, true, false, true]);
    let pipes = all().map(|it| it.into_pipe().is_some());
    assert_eq!(pipes, [false, false, false, true, false]);
}

/// In a process of its own, in a user namespace where nobody has a name.
#[test]
fn nobody_takes_nobody_for_himself() {
    const INSIDE: &str = "SOVIA_TEST_NOBODY";
    if std::env::var_os(INSIDE).is_some() {
        assert_eq!(rustix::process::geteuid().as_raw(), crate::tcp::NOBODY);
        let (ours, _theirs) = Conn::pair().expect("sockets");
        assert!(!ours.is_of_this_user());
        return;
    }
    let program = std::env::current_exe().expect("this program");
    let output = std::process::Command::new("unshare")
        .arg("--user")
        .arg(program)
        .args(["--exact", "passed::tests::nobody_takes_nobody_for_himself"])
        .env(INSIDE, "1")
        .output();
    match output {
        Ok(output) if String::from_utf8_lossy(&output.stderr).starts_with("unshare:") => {
            println!("no user namespaces here");
        }
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(_) => println!("no unshare here"),
    }
}

/// `fd`, once through a connection.
fn passed(ours: &Conn, theirs: &Conn, fd: BorrowedFd<'_>) -> Passed {
    pass(theirs, &[fd]);
    match ours.recv(&mut [0; 8]) {
        Ok(crate::net::Received::Packet { mut fds, .. }) => fds.remove(0),
        other => panic!("{other:?}"),
    }
}

fn pass(through: &impl AsFd, fds: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
    let bytes = [IoSlice::new(b"passed")];
    sendmsg(through, &bytes, &mut control, SendFlags::DONTWAIT).expect("room");
}

const LINGER: Duration = Duration::from_secs(60);
const NOBODY: libc::c_long = 65534;
