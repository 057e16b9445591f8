//! What a provider under test offers to the suite.

use std::any::Any;
use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

use via::Vi;
use via::provider::Driver;

mod iwarp;
mod shm;
mod sim;

pub use self::iwarp::IwarpLab;
pub use self::shm::{ShmForger, ShmLab};
pub use self::sim::SimLab;

/// A provider under test. Each statement gets a fresh one.
pub trait Lab: Send + Sync {
    /// The device, as the given host has it. Where there is one host, both are it.
    fn driver(&self, host: Host) -> &dyn Driver;

    /// Whether NICs on the two hosts have different addresses.
    fn has_two_hosts(&self) -> bool {
        false
    }

    /// A host address that nothing answers at.
    fn nowhere(&self) -> [u8; 6];

    /// The time in which the provider measures timeouts.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Called over and over by a thread that waits for a condition: lets others go on.
    fn pass(&self) {
        std::thread::yield_now();
    }

    /// One more thread makes calls, until the guard is dropped. Said before the thread begins.
    fn take_part(&self) -> Box<dyn Any + Send> {
        Box::new(())
    }

    /// Makes the medium misbehave from now on; `false` where that is not possible.
    fn inject(&self, faults: Faults) -> bool {
        let _ = faults;
        false
    }

    /// The program that plays the other process, where a connection can reach another process.
    fn peer_program(&self) -> Option<&Path> {
        None
    }

    /// What that program is told before its role: which NIC.
    fn peer_arguments(&self) -> Vec<OsString> {
        Vec::new()
    }

    /// Connects an idle VI to a peer that writes what it likes.
    fn forge(&self, victim: &Vi) -> Option<Box<dyn Forger>> {
        let _ = victim;
        None
    }

    /// Why a statement cannot be tested here.
    fn excused(&self, number: u16) -> Option<&'static str>;
}

/// One of the two hosts of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// Usually the one that asks for the connection and sends.
    A,
    /// Usually the one that waits and receives.
    B,
}

/// How often the medium does what to a frame, in thousandths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// The frame is lost.
    pub drop: u16,
    /// It arrives twice.
    pub duplicate: u16,
    /// It arrives behind later ones.
    pub reorder: u16,
    /// A bit of it arrives wrong.
    pub corrupt: u16,
}

/// A peer that keeps to no rule.
pub trait Forger {
    /// Bytes that it shares with its victim.
    fn reach(&self) -> usize;
    /// Writes shared bytes, at `at` modulo their number.
    fn scribble(&mut self, at: usize, bytes: &[u8]);
    /// Sends a frame with this head, well formed or not, as far as there is room.
    fn send(&mut self, head: &[u32; proto::frame::HEAD_WORDS], payload: &[u8]);
    /// Wakes the victim.
    fn ring(&mut self);
}
