//! A stranger that accepts, and then looks at what was sent only when more comes, as Linux siw may.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use iwarp::{Config, IwarpDriver};
use proto::mpa::{Crc, pad_len};
use via::{Access, Descriptor, Memory, NetAddress, Nic, ViConfig};

/// How the owner of the VI waits for the answer.
#[derive(Clone, Copy, Debug)]
enum Waits {
    OnTheVi,
    OnItsQueue,
    /// Not at all, until it is there.
    Elsewhere,
}

fn record(tcp: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 2];
    tcp.read_exact(&mut length).expect("a record");
    let len = usize::from(u16::from_be_bytes(length));
    let mut rest = vec![0; len + pad_len(len) + 4];
    tcp.read_exact(&mut rest).expect("the rest of it");
    rest.truncate(len);
    rest
}

/// Lets a caller in: revision 1, checksums.
fn let_in(listener: &TcpListener) -> TcpStream {
    let (mut tcp, _) = listener.accept().expect("a caller");
    tcp.set_read_timeout(LONG).expect("TCP");
    let mut head = [0; 20];
    tcp.read_exact(&mut head).expect("a Request");
    let mut private = vec![0; usize::from(u16::from_be_bytes([head[18], head[19]]))];
    tcp.read_exact(&mut private).expect("private data");
    tcp.write_all(b"MPA ID Rep Frame\x40\x01\0\0")
        .expect("a listener");
    tcp
}

/// Takes a Send, waits for a sign of life, and only then answers. What the sign was.
fn stranger(listener: &TcpListener) -> (Vec<u8>, TcpStream) {
    let mut tcp = let_in(listener);
    assert_eq!(record(&mut tcp)[..2], [0x41, 0x43], "a Send");
    let sign = record(&mut tcp);
    let mut answer = vec![0, 22, 0x41, 0x43];
    answer.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
    answer.extend(b"pong");
    let mut crc = Crc::new();
    crc.update(&answer);
    answer.extend(crc.octets());
    tcp.write_all(&answer).expect("a listener");
    (sign, tcp)
}

fn asks_once(waits: Waits) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let driver = IwarpDriver::new(Config {
        enhanced: false,
        ..Config::default()
    });
    let nic = Nic::open(&driver.expect("a driver")).expect("opens");
    nic.on_error(|_| {}).expect("a handler");
    let tag = nic.create_ptag().expect("a tag");
    let cq = nic.create_cq(8).expect("a queue");
    let config = match waits {
        Waits::OnItsQueue => ViConfig::new(&tag).recv_cq(&cq),
        Waits::OnTheVi | Waits::Elsewhere => ViConfig::new(&tag),
    };
    let vi = nic.create_vi(&config).expect("a VI");
    let memory = Memory::private(64).expect("memory");
    let region = nic
        .register(memory, &tag, Access::Local)
        .expect("registers");
    vi.post_recv(&Descriptor::recv().segment(&region, 0..32), 1)
        .expect("posts");
    let std::net::SocketAddr::V4(at) = listener.local_addr().expect("bound") else {
        panic!("not IPv4");
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| stranger(&listener));
        let to = NetAddress::new(iwarp::host(at), b"").expect("short");
        vi.connect(&nic.address(b"").expect("short"), &to, LONG)
            .expect("accepts");
        vi.post_send(&Descriptor::send().segment(&region, 32..36), 2)
            .expect("posts");
        let (sign, mut tcp) = match waits {
            Waits::Elsewhere => {
                let said = other.join().expect("no panic");
                vi.recv_wait(LONG).expect("comes").ok().expect("whole");
                said
            }
            Waits::OnTheVi => {
                vi.recv_wait(LONG).expect("comes").ok().expect("whole");
                other.join().expect("no panic")
            }
            Waits::OnItsQueue => {
                cq.wait(LONG).expect("comes");
                other.join().expect("no panic")
            }
        };
        // An RDMA Write of no octets, to STag 1.
        assert_eq!(
            sign,
            [0xc1, 0x40, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
            "{waits:?}"
        );
        // And no more of them.
        vi.disconnect().expect("was connected");
        let mut rest = Vec::new();
        tcp.read_to_end(&mut rest).expect("the end");
        assert_eq!(rest, [0; 0], "{waits:?}");
    });
}

#[test]
fn is_nudged_while_the_owner_waits() {
    asks_once(Waits::OnTheVi);
    asks_once(Waits::OnItsQueue);
}

#[test]
fn is_nudged_while_nobody_calls() {
    asks_once(Waits::Elsewhere);
}

/// What the socket did not take goes when there is room, though nobody calls and nothing comes.
#[test]
fn goes_on_when_a_slow_reader_has_made_room() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let driver = IwarpDriver::new(Config {
        enhanced: false,
        ..Config::default()
    });
    let nic = Nic::open(&driver.expect("a driver")).expect("opens");
    nic.on_error(|_| {}).expect("a handler");
    let tag = nic.create_ptag().expect("a tag");
    let cq = nic.create_cq(1024).expect("a queue");
    let config = ViConfig::new(&tag).recv_cq(&cq);
    let vi = nic.create_vi(&config).expect("a VI");
    let memory = Memory::private(LEN as usize).expect("memory");
    let region = nic
        .register(memory, &tag, Access::Local)
        .expect("registers");
    let std::net::SocketAddr::V4(at) = listener.local_addr().expect("bound") else {
        panic!("not IPv4");
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| let_in(&listener));
        let to = NetAddress::new(iwarp::host(at), b"").expect("short");
        vi.connect(&nic.address(b"").expect("short"), &to, LONG)
            .expect("accepts");
        let mut tcp = other.join().expect("no panic");
        // Somebody is to be called, so the agent has the connection.
        via::provider::CqOps::notify(&**cq.ops(), Box::new(|_| {})).expect("asks");
        for token in 0..COUNT {
            let message = Descriptor::send().segment(&region, 0..LEN);
            vi.post_send(&message, token).expect("posts");
        }
        // tidy: sleep because the agent looks at a VI that was just in use for some milliseconds, which hides what is tested.
        thread::sleep(Duration::from_millis(200));
        let mut payload = 0;
        while payload < COUNT * u64::from(LEN) {
            payload += record(&mut tcp).len() as u64 - 18;
        }
        assert_eq!(payload, COUNT * u64::from(LEN));
    });
}

const LEN: u32 = 60_000;
/// Far more than a socket takes.
const COUNT: u64 = 1000;
const LONG: Option<Duration> = Some(Duration::from_secs(20));
