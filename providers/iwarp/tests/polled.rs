//! A connection whose owner polls is no member of a set, which whoever sends pays for; and one is again when its owner has gone.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use iwarp::{Config, IwarpDriver};
use via::{Access, Descriptor, Error, Memory, Nic, ViConfig};

/// Sockets of VIs among the members of this process's sets: what the kernel calls data is the VI's number.
fn members() -> usize {
    let sets = fs::read_dir("/proc/self/fdinfo").expect("there");
    let texts = sets.filter_map(|set| fs::read_to_string(set.ok()?.path()).ok());
    let count = |text: String| {
        let data = text.lines().filter_map(|line| line.split("data:").nth(1));
        let tokens = data.filter_map(|data| {
            let token = data.split_whitespace().next()?;
            u64::from_str_radix(token, 16).ok()
        });
        tokens.filter(|&token| token >> 32 == 0).count()
    };
    texts.map(count).sum()
}

#[test]
fn whoever_polls_is_no_member() {
    let driver = IwarpDriver::new(Config {
        address: "127.0.0.1:0".parse().expect("an address"),
        ..Config::default()
    })
    .expect("a port");
    let nic = Nic::open(&driver).expect("opens");
    nic.on_error(|_| {}).expect("a handler");
    let tag = nic.create_ptag().expect("a tag");
    let vis = [0, 1].map(|_| {
        let config = ViConfig::new(&tag).accept_rdma_read();
        nic.create_vi(&config).expect("a VI")
    });
    let regions = [Access::Read, Access::Local].map(|access| {
        let memory = Memory::private(64).expect("memory");
        nic.register(memory, &tag, access).expect("registers")
    });
    for vi in &vis {
        let room = Descriptor::recv().segment(&regions[1], 0..64);
        vi.post_recv(&room, 1).expect("posts");
    }
    let at = nic.address(b"polled").expect("short");
    thread::scope(|scope| {
        scope.spawn(|| {
            let from = nic.address(b"").expect("short");
            while let Err(error) = vis[0].connect(&from, &at, SOON) {
                assert_eq!(error, Error::NoMatch);
                thread::yield_now();
            }
        });
        let mut incoming = nic.connect_wait(&at, SOON).expect("a request");
        incoming.accept(&vis[1]).expect("accepts");
    });
    let began = Instant::now();
    // Twice, for the agent comes and goes.
    for round in 0..2 {
        while members() > 0 {
            for vi in &vis {
                vi.recv_done().expect("alive");
            }
            assert!(began.elapsed() < LONG, "{} in round {round}", members());
        }
        // The owner of the other end does nothing, and its memory is read.
        let read = Descriptor::rdma_read(regions[0].remote(0)).segment(&regions[1], 0..64);
        vis[0].post_send(&read, 2).expect("posts");
        let done = vis[0].send_wait(SOON).expect("is answered");
        assert_eq!(done.ok().expect("went well").length, 64);
    }
}

const LONG: Duration = Duration::from_secs(20);
const SOON: via::provider::Timeout = Some(LONG);
