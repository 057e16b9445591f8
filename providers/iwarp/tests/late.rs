//! A Reply that takes its time (I-7). What comes before it is among what hostile peers send.

use std::thread;
use std::time::Duration;

use iwarp::{Config, IwarpDriver};
use via::provider::Timeout;
use via::{Access, Descriptor, Error, Memory, Nic, Ptag, Region, Vi, ViConfig};

struct Site {
    nic: Nic,
    tag: Ptag,
}

impl Site {
    fn new() -> Self {
        let driver = IwarpDriver::new(Config {
            address: "127.0.0.1:0".parse().expect("an address"),
            ..Config::default()
        })
        .expect("a port");
        let nic = Nic::open(&driver).expect("opens");
        nic.on_error(|_| {}).expect("a handler");
        let tag = nic.create_ptag().expect("a tag");
        Self { nic, tag }
    }

    /// A VI with two receives posted into the first half of a region.
    fn vi(&self) -> (Vi, Region) {
        let vi = self.nic.create_vi(&ViConfig::new(&self.tag)).expect("a VI");
        let memory = Memory::private(64).expect("memory");
        let region = self.nic.register(memory, &self.tag, Access::Local);
        let region = region.expect("registers");
        for place in [0..16, 16..32] {
            let room = Descriptor::recv().segment(&region, place);
            vi.post_recv(&room, 1).expect("posts");
        }
        (vi, region)
    }

    fn accept(&self, at: &via::NetAddress, delay: Duration, vi: &Vi) {
        let mut incoming = self.nic.connect_wait(at, LONG).expect("a request");
        thread::sleep(delay); // tidy: sleep because the delay is what is tested
        incoming.accept(vi).expect("accepts");
    }
}

/// Four octets each way.
fn talk(vi: &Vi, region: &Region) {
    vi.post_send(&Descriptor::send().segment(region, 32..36), 2)
        .expect("posts");
    let got = vi.recv_wait(LONG).expect("comes").ok().expect("whole");
    assert_eq!(got.length, 4);
    vi.send_wait(LONG).expect("sent").ok().expect("went well");
}

#[test]
fn i7_neither_end_hangs_however_late_the_reply_is() {
    let (here, there) = (Site::new(), Site::new());
    let at = there.nic.address(b"late").expect("short");
    for delay in DELAYS_MS.map(Duration::from_millis) {
        for asker_first in [true, false] {
            let (asker, asked) = (here.vi(), there.vi());
            thread::scope(|scope| {
                scope.spawn(|| {
                    let from = here.nic.address(b"").expect("short");
                    while let Err(error) = asker.0.connect(&from, &at, LONG) {
                        assert_eq!(error, Error::NoMatch);
                        thread::yield_now();
                    }
                    if !asker_first {
                        asker.0.recv_wait(LONG).expect("comes").ok().expect("whole");
                    }
                    talk(&asker.0, &asker.1);
                });
                there.accept(&at, delay, &asked.0);
                if !asker_first {
                    let greeting = Descriptor::send().segment(&asked.1, 32..36);
                    asked.0.post_send(&greeting, 3).expect("posts");
                    asked
                        .0
                        .send_wait(LONG)
                        .expect("sent")
                        .ok()
                        .expect("went well");
                }
                talk(&asked.0, &asked.1);
            });
        }
    }
}

const DELAYS_MS: [u64; 8] = [0, 1, 2, 5, 10, 20, 35, 50];
const LONG: Timeout = Some(Duration::from_secs(20));
