//! Linux siw under an application other than rping (I-5, I-6), where there is a lab: this program runs in a guest once more, as the other end of
//! librdmacm's `ucmatose`, whose server sends so many messages over each of its connections, and then hears as many.

use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use std::{env, fs, thread};

use iwarp::{Config, IwarpDriver};
use via::provider::Timeout;
use via::{Access, Descriptor, Error, Memory, NetAddress, Nic, Region, Vi, ViConfig};

mod lab {
    use super::{in_guests, take_part};

    /// Up to 8 MiB, with and without checksums, either end the server.
    #[test]
    fn i5_messages_of_any_size_both_ways() {
        if take_part() {
            return;
        }
        in_guests("1 1448 65536 1048577 8388608", "0 1", 1, 2);
    }

    /// Sixteen at a time, for ucmatose in a guest of the lab gets completion queues for not many more: 320, or with SOVIA_LONG 10,000.
    #[test]
    fn i6_connections_come_and_go() {
        let is_long = std::env::var_os("SOVIA_LONG").is_some();
        let runs = if is_long { 313 } else { 10 };
        in_guests(&vec!["100"; runs].join(" "), "1", 16, 1);
    }
}

/// Each size, with and without checksums as `crcs` say: so many connections to siw, and then from it.
#[track_caller]
fn in_guests(sizes: &str, crcs: &str, connections: usize, messages: usize) {
    let Some(lab) = env::var_os("SOVIA_LAB") else {
        println!("not run: SOVIA_LAB names no lab (see CONTRIBUTING.md)");
        return;
    };
    let name = format!("sovia-siw-{}-{connections}", std::process::id());
    let share = env::temp_dir().join(name);
    fs::create_dir_all(&share).expect("a folder");
    let this = env::current_exe().expect("a program");
    fs::copy(this, share.join("peer")).expect("a copy");
    let each = format!("n=0; for s in {sizes}; do for crc in {crcs}; do n=$((n + 1))");
    let theirs = format!("-c {connections} -C {messages} -S $s >/dev/null");
    let peer = "--exact lab::i5_messages_of_any_size_both_ways";
    let ours = format!("{connections} {messages} $s $crc\" timeout 100 ./peer {peer} --nocapture");
    // Which runs fail: a line for each, and for each that does not.
    let us = format!(
        "{each}; barrier serves.$n
        {PART}=\"asks 10.99.0.2:7471 {ours}; echo \"asked $n: $?\"; barrier asked.$n; done; done
        {each}; {PART}=\"serves 0.0.0.0:7472 {ours} & server=$!; until {LISTENS}; do kill -0 $server || break; sleep 0.05; done
        barrier waits.$n; barrier served.$n; [ ! -e failed.$n ] || kill $server; wait $server; echo \"served $n: $?\"; done; done"
    );
    let them = format!(
        "{each}; timeout 100 ucmatose -p 7471 {theirs} & barrier serves.$n; wait $!; echo \"siw served $n: $?\"; barrier asked.$n; done; done
        {each}; barrier waits.$n; timeout 100 ucmatose -s guest0 -p 7472 {theirs}; ended=$?; echo \"siw asked $n: $ended\"
        [ $ended = 0 ] || touch failed.$n; barrier served.$n; done; done"
    );
    // It waits to hear first, so as a client it must be asked to say that it is ready.
    let mut run = Command::new(PathBuf::from(lab).join("run"));
    run.args(["-t", "3000", "-p", "peer_to_peer=1", "-s"])
        .arg(&share);
    let output = run.args([us, them]).output().expect("the lab runs");
    fs::remove_dir_all(&share).expect("ours");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    println!("{said}{errors}");
    let runs = sizes.split(' ').count() * crcs.split(' ').count();
    for n in 1..=runs {
        for what in ["asked", "siw served", "siw asked"] {
            let line = format!("| {what} {n}: 0");
            assert!(said.lines().any(|it| it.ends_with(&line)), "no {line:?}");
        }
    }
    assert_eq!(said.matches("took part").count(), 2 * runs);
}

/// What is to be done in a guest; elsewhere nothing.
fn take_part() -> bool {
    let Ok(part) = env::var(PART) else {
        return false;
    };
    let words: Vec<_> = part.split(' ').collect();
    let [role, address, connections, messages, size, crc] = words[..] else {
        panic!("{part}");
    };
    let number = |word: &str| word.parse::<u32>().expect("a number");
    let address: SocketAddrV4 = address.parse().expect("an address");
    let serves = role == "serves";
    let anywhere = SocketAddrV4::new(std::net::Ipv4Addr::UNSPECIFIED, 0);
    let driver = IwarpDriver::new(Config {
        address: if serves { address } else { anywhere },
        crc: crc == "1",
        ..Config::default()
    });
    let nic = Nic::open(&driver.expect("a port")).expect("opens");
    nic.on_error(|_| {}).expect("a handler");
    let (messages, size) = (number(messages), number(size));
    let ends: Vec<_> = (0..number(connections))
        .map(|_| End::new(&nic, messages, size))
        .collect();
    let local = nic.address(b"").expect("short");
    thread::scope(|scope| {
        for end in &ends {
            if serves {
                // The port is open while somebody waits.
                scope.spawn(|| {
                    let mut incoming = nic.connect_wait(&local, LONG).expect("a request");
                    incoming.accept(&end.vi).expect("accepts");
                });
                continue;
            }
            let to = NetAddress::new(iwarp::host(address), b"").expect("short");
            while let Err(error) = end.vi.connect(&local, &to, LONG) {
                assert_eq!(error, Error::NoMatch);
            }
        }
    });
    if serves {
        ends.iter().for_each(End::send);
        ends.iter().for_each(End::hear);
        ends.iter()
            .for_each(|end| end.vi.disconnect().expect("connected"));
    } else {
        ends.iter().for_each(End::hear);
        ends.iter().for_each(End::send);
        // Then the server disconnects, which gives back what is posted.
        for end in &ends {
            let ended = end.vi.recv_wait(LONG).expect("ends");
            assert!(ended.ok().is_err(), "one message too many");
        }
    }
    println!("took part");
    true
}

struct End {
    // Before the region: a VI is destroyed before its memory is deregistered.
    vi: Vi,
    region: Region,
    messages: u32,
    size: u32,
}

impl End {
    fn new(nic: &Nic, messages: u32, size: u32) -> Self {
        let tag = nic.create_ptag().expect("a tag");
        let config = ViConfig::new(&tag).max_transfer_size(size);
        let vi = nic.create_vi(&config).expect("a VI");
        let memory = Memory::private(size as usize).expect("memory");
        let region = nic.register(memory, &tag, Access::Local).expect("room");
        for _ in 0..=messages {
            let room = Descriptor::recv().segment(&region, 0..size);
            vi.post_recv(&room, 1).expect("posts");
        }
        Self {
            vi,
            region,
            messages,
            size,
        }
    }

    fn send(&self) {
        for _ in 0..self.messages {
            let message = Descriptor::send().segment(&self.region, 0..self.size);
            self.vi.post_send(&message, 2).expect("posts");
        }
        for _ in 0..self.messages {
            let sent = self.vi.send_wait(LONG).expect("ends");
            sent.ok().expect("it went");
        }
    }

    fn hear(&self) {
        for _ in 0..self.messages {
            let got = self.vi.recv_wait(LONG).expect("comes").ok();
            assert_eq!(got.expect("whole").length, self.size);
        }
    }
}

const PART: &str = "SOVIA_SIW_PART";
/// Our server listens at 7472. It is not asked by connecting: librdmacm's client takes a port without asking TCP, and `rdma_connect` fails with
/// `EADDRINUSE` (one run of 16 in fifty) where an earlier probe has left that port in TIME-WAIT.
const LISTENS: &str = "grep -q ':1D30 00000000:0000 0A' /proc/net/tcp";
const LONG: Timeout = Some(Duration::from_secs(60));
