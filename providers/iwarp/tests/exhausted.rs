//! No descriptor is left when the other end has said yes. In a file of its own, for the limit is the process's.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use iwarp::{Config, IwarpDriver};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use via::{Error, NetAddress, Nic, ViConfig};

#[test]
fn c48_a_failure_of_our_own_is_told() {
    let driver = IwarpDriver::new(Config {
        crc: false,
        ..Config::default()
    });
    let nic = Nic::open(&driver.expect("a driver")).expect("opens");
    nic.on_error(|_| {}).expect("a handler");
    let tag = nic.create_ptag().expect("a tag");
    let vi = nic.create_vi(&ViConfig::new(&tag)).expect("a VI");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let SocketAddr::V4(at) = listener.local_addr().expect("bound") else {
        panic!("not IPv4");
    };
    let limit = getrlimit(Resource::Nofile);
    let said = thread::scope(|scope| {
        let answering = scope.spawn(|| {
            let (mut tcp, _) = listener.accept().expect("a caller");
            tcp.set_read_timeout(Some(LONG)).expect("TCP");
            let mut head = [0; 20];
            tcp.read_exact(&mut head).expect("a Request");
            let mut words = vec![0; usize::from(u16::from_be_bytes([head[18], head[19]]))];
            tcp.read_exact(&mut words).expect("private data");
            // What is open stays so.
            let none = Rlimit {
                current: Some(0),
                ..limit
            };
            setrlimit(Resource::Nofile, none).expect("less is always allowed");
            tcp.write_all(b"MPA ID Rep Frame\x10\x02\0\x04\x80\x01\x80\x01")
                .expect("it waits");
            let mut said = Vec::new();
            tcp.read_to_end(&mut said).expect("FIN, and no reset");
            said
        });
        let to = NetAddress::new(iwarp::host(at), b"").expect("short");
        let failed = vi.connect(&nic.address(b"").expect("short"), &to, Some(LONG));
        let said = answering.join().expect("no panic");
        setrlimit(Resource::Nofile, limit).expect("no more than before");
        assert_eq!(failed.err(), Some(Error::Resource));
        said
    });
    // One record, a Terminate: layer 2, type 0, code 5.
    assert_eq!(said[2..4], [0x41, 0x47], "{said:02x?}");
    assert_eq!(said[20..22], [0x20, 0x05], "{said:02x?}");
    assert_eq!(said.len(), 2 + 22 + 4, "{said:02x?}");
}

const LONG: Duration = Duration::from_secs(20);
