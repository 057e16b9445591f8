//! The NIC in virtual time, over a network that misbehaves on demand.

use std::any::Any;
use std::time::{Duration, Instant};

use proto::frame::HEAD_WORDS;
use sim::{Endpoint, Fabric, FabricConfig, Host as SimHost, Noise, Time};
use sys::mem::Memory;
use via::provider::Driver;
use via::soft::{Device, Link};
use via::{Vi, ViAttributes};

use super::{Faults, Forger, Host, Lab};

/// Two hosts on a network of their own.
pub struct SimLab {
    fabric: Fabric,
    a: SimHost,
    b: SimHost,
}

impl SimLab {
    /// `seed` decides which frames suffer.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let fabric = Fabric::new(FabricConfig {
            seed,
            time: Time::Gated { threads: 0 },
            ..FabricConfig::default()
        });
        let (a, b) = (fabric.host(), fabric.host());
        Self { fabric, a, b }
    }
}

impl Lab for SimLab {
    fn driver(&self, host: Host) -> &dyn Driver {
        match host {
            Host::A => &self.a,
            Host::B => &self.b,
        }
    }

    fn has_two_hosts(&self) -> bool {
        true
    }

    fn nowhere(&self) -> [u8; 6] {
        self.fabric.nowhere()
    }

    fn now(&self) -> Instant {
        self.fabric.now()
    }

    fn pass(&self) {
        self.fabric.sleep(PASS);
    }

    fn take_part(&self) -> Box<dyn Any + Send> {
        Box::new(self.fabric.take_part())
    }

    fn inject(&self, faults: Faults) -> bool {
        let ppm = |thousandths: u16| u32::from(thousandths) * 1000;
        self.fabric.set_noise(Noise {
            loss_ppm: ppm(faults.drop),
            duplicate_ppm: ppm(faults.duplicate),
            reorder_ppm: ppm(faults.reorder),
            corrupt_ppm: ppm(faults.corrupt),
        });
        true
    }

    fn forge(&self, victim: &Vi) -> Option<Box<dyn Forger>> {
        let export = victim.export().expect("an idle VI");
        let attributes = victim.ops().attributes().expect("it exists");
        let attributes = ViAttributes {
            ptag: None,
            ..attributes
        };
        let adapter = self.a.adapter().expect("a NIC");
        let established = adapter
            .import(&attributes, &export.blob, export.fds)
            .expect("its own export");
        Some(Box::new(SimForger {
            link: established.link,
            _adapter: adapter,
        }))
    }

    fn excused(&self, number: u16) -> Option<&'static str> {
        match number {
            103 | 206 => {
                Some("the network is within one process: there is none to kill or to stop")
            }
            208 => Some(
                "peers share no memory; garbage on the wire is 162, and well-formed garbage is 209",
            ),
            _ => None,
        }
    }
}

/// The other end of an exported VI, without an engine.
struct SimForger {
    link: Endpoint,
    /// Keeps the host's NIC open.
    _adapter: sim::Adapter,
}

impl Forger for SimForger {
    fn reach(&self) -> usize {
        0
    }

    fn scribble(&mut self, _at: usize, _bytes: &[u8]) {}

    fn send(&mut self, head: &[u32; HEAD_WORDS], payload: &[u8]) {
        let len = u32::try_from(payload.len()).expect("a short payload");
        if !self.link.reserve(len) {
            return;
        }
        let memory = Memory::private(payload.len().max(1)).expect("a page");
        memory.write(0, payload).expect("within it");
        let filled = self.link.fill(0, &memory, 0, payload.len());
        filled.expect("the place was reserved");
        self.link.commit_raw(head);
    }

    fn ring(&mut self) {
        self.link.flush();
    }
}

/// How far a thread that waits for a condition lets time go on at least.
const PASS: Duration = Duration::from_micros(1);
