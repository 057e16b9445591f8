//! `sovia vi rping` against itself, over loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::process::{Child, Stdio};

use crate::{command, sovia, text};

/// A server of ours at a port of its own, killed when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).expect("ours");
    }
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

fn serve(port: u16, arguments: &str) -> Server {
    let server = command(&format!("vi rping -s -a 127.0.0.1 -p {port} {arguments}"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server starts");
    Server(server)
}

/// Pings until the server is there.
fn ping(port: u16, arguments: &str) -> std::process::Output {
    loop {
        let output = sovia(&format!("vi rping -c -a 127.0.0.1 -p {port} {arguments}"));
        if !text(&output.stderr).contains("no matching listener") {
            return output;
        }
    }
}

#[test]
fn pings_come_back_whole() {
    let port = free_port();
    let _server = serve(port, "-P");
    for arguments in [
        "-C 3",
        "-C 3 -S 26",
        "-C 3 -S 4097",
        "-C 3 -S 65535",
        "-C 3 -S 65535 --no-crc",
        "-C 3 -S 1000 --markers",
        "-C 3 --mpa 1",
    ] {
        let output = ping(port, &format!("-v -V {arguments}"));
        let stdout = text(&output.stdout);
        assert!(
            output.status.success(),
            "{arguments}: {}",
            text(&output.stderr)
        );
        assert_eq!(stdout.lines().count(), 3, "{arguments}: {stdout}");
        assert!(
            stdout.starts_with("ping data: rdma-ping-0: ABCDEFGHI"),
            "{stdout}"
        );
    }
}

#[test]
fn a_server_ends_with_its_client() {
    let port = free_port();
    let mut server = serve(port, "-v");
    assert!(ping(port, "-C 2").status.success());
    assert!(server.0.wait().expect("it ends").success());
    let stdout = BufReader::new(server.0.stdout.take().expect("asked for"));
    let lines: Vec<_> = stdout.lines().map(|line| line.expect("text")).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines
            .iter()
            .all(|line| line.starts_with("server ping data: rdma-ping-"))
    );
}

#[test]
fn an_end_that_is_killed_is_no_failure_of_the_other() {
    let port = free_port();
    let server = serve(port, "-P -v");
    let mut client = command(&format!("vi rping -c -v -a 127.0.0.1 -p {port}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the client starts");
    let mut line = String::new();
    let mut stdout = BufReader::new(client.stdout.take().expect("asked for"));
    // If it came too early it has ended, and a later one will do.
    while stdout.read_line(&mut line).expect("text") == 0 {
        client.wait().expect("it has ended");
        client = command(&format!("vi rping -c -v -a 127.0.0.1 -p {port}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the client starts");
        stdout = BufReader::new(client.stdout.take().expect("asked for"));
    }
    drop(server);
    let rest = stdout.lines().map_while(Result::ok).last();
    assert!(rest.is_none_or(|line| line.starts_with("ping data: ")));
    let ended = client.wait_with_output().expect("it ends");
    // It says that pings are missing all the same.
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{said}");
    assert!(
        said.contains("the other end closed the connection"),
        "{said}"
    );

    let port = free_port();
    let mut server = serve(port, "-v");
    let mut client = loop {
        let mut client = command(&format!("vi rping -c -v -a 127.0.0.1 -p {port}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the client starts");
        let mut stdout = BufReader::new(client.stdout.take().expect("asked for"));
        line.clear();
        if stdout.read_line(&mut line).expect("text") > 0 {
            break client;
        }
        client.wait().expect("it has ended");
    };
    client.kill().and_then(|()| client.wait()).expect("ours");
    let said = server.0.stdout.take().expect("asked for");
    assert!(BufReader::new(said).lines().count() > 0);
    assert!(server.0.wait().expect("it ends").success());
}

#[test]
fn nobody_there_and_misuse() {
    let port = free_port();
    let refused = sovia(&format!("vi rping -c -a 127.0.0.1 -p {port} -C 1"));
    assert_eq!(
        refused.status.code(),
        Some(255),
        "{}",
        text(&refused.stderr)
    );
    for arguments in [
        "",
        "-c",
        "-s -S 25",
        "-s -S 65536",
        "-c -C -1 -a 127.0.0.1",
        "-c -P -a ::1",
        "-x",
    ] {
        let output = sovia(&format!("vi rping {arguments}"));
        assert_eq!(output.status.code(), Some(22), "{arguments}");
    }
    assert!(sovia("vi rping --help").status.success());
}

#[test]
fn a_rejection_is_a_failure() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let client = command(&format!("vi rping -c -a 127.0.0.1 -p {port} -C 1"))
        .stderr(Stdio::piped())
        .spawn()
        .expect("the client starts");
    let (mut tcp, _) = listener.accept().expect("the client");
    let mut head = [0; 20];
    tcp.read_exact(&mut head).expect("a Request");
    let mut words = vec![0; usize::from(u16::from_be_bytes([head[18], head[19]]))];
    tcp.read_exact(&mut words).expect("private data");
    tcp.write_all(b"MPA ID Rep Frame\x70\x02\0\x04\0\0\0\0")
        .expect("it listens");
    let ended = client.wait_with_output().expect("it ends");
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(255), "{said}");
}

#[test]
fn of_options_given_twice_the_last_counts() {
    let port = free_port();
    let _server = serve(port, "-P -v -v -c -s -C 5");
    let output = ping(port, "-s -c -P -V -V -v -v -C 9 -C 2 -S 30 -S 40");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout).lines().count(), 2);
}

/// Asks for what no server of ours has, as soon as it is there.
pub(crate) fn ask_in_vain(port: u16, discriminator: &[u8]) {
    let driver = iwarp::IwarpDriver::new(iwarp::Config {
        address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0),
        ..iwarp::Config::default()
    });
    let nic = via::Nic::open(&driver.expect("a port")).expect("opens");
    let tag = nic.create_ptag().expect("a tag");
    let config = via::ViConfig::new(&tag).max_transfer_size(4096);
    let vi = nic.create_vi(&config).expect("a VI");
    let at = iwarp::host(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
    let server = via::NetAddress::new(at, discriminator).expect("short");
    let refused = loop {
        match vi.connect(&nic.address(&[]).expect("short"), &server, None) {
            Err(via::Error::NoMatch) => std::thread::yield_now(),
            refused => break refused.err(),
        }
    };
    assert!(refused.is_some());
}

#[test]
fn who_asks_for_something_else_does_not_end_a_server() {
    let port = free_port();
    let _server = serve(port, "-P");
    ask_in_vain(port, &[]);
    assert!(ping(port, "-C 1").status.success());
}

/// Silent strangers and garbage do not keep a client from being served.
#[test]
fn strangers_do_not_disturb() {
    let port = free_port();
    let _server = serve(port, "-P");
    assert!(ping(port, "-C 1").status.success());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let silent: Vec<_> = (0..200)
        .filter_map(|_| TcpStream::connect(address).ok())
        .collect();
    let mut loud = TcpStream::connect(address).expect("it listens");
    loud.write_all(&[0xff; 600]).expect("a little fits");
    assert!(ping(port, "-C 3 -V -S 9999").status.success());
    drop(silent);
}
