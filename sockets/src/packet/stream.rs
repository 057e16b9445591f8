//! A byte stream over a VI.
//!
//! Packets are taken in by whoever waits, in the course of its own call, unless there is a handler thread (SOVIA_HANDLER). What has come stays in the
//! buffer that it came into until the program has read it; then the buffer's descriptor is posted again, and that is what is acknowledged: so the window bounds
//! what a peer can make us keep. Small messages are copied into buffers of ours; larger ones are sent from where they are, if the NIC
//! gains by it, and the call ends when the NIC has them. Over a NIC that copies there are no such buffers on the way: it copies from the program's memory, and
//! into it where the program waits for what comes.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use proto::packet::{WAKEUP_LEN, Wakeup};
use sys::lock::{Guard, Lock};
use sys::sync::mapped::AtomicU32;
use sys::sync::{AtomicBool, Ordering};
use via::{Descriptor, Region, Vi};

use self::inner::Inner;
use super::adapter::Adapter;
use super::wait::Changed;
use crate::conn::Origin;
use crate::stat::{self, Tally};

mod begin;
pub(super) mod combine;
mod end;
mod flow;
mod hand_over;
mod inner;
mod low_water;
mod post;
mod receive;
pub mod relay;
mod room;
mod send;
mod stash;
mod urgent;
mod wait;
mod watch;

pub use begin::Identity;
pub(super) use begin::Patience;

/// One end of a connection.
pub struct Stream {
    // Before the regions: a VI is destroyed before its memory is deregistered.
    vi: Vi,
    incoming: Region,
    outgoing: Region,
    adapter: Arc<Adapter>,
    /// The host that has asked for it, as the NIC knows; `None` where this end has asked.
    origin: Option<Ipv4Addr>,
    /// From one buffer to the next.
    stride: u32,
    mtu: u32,
    begun: Instant,
    inner: Lock<Inner>,
    /// A packet was taken in, or the stream ended.
    moved: Changed,
    /// Whether somebody polls.
    watched: AtomicBool,
    /// SO_RCVLOWAT.
    low_water: AtomicU32,
    /// A thread that waits in the NIC for one of its queues is to look at what has changed here.
    rung: [AtomicBool; 2],
    /// Somebody who has the lock breaks the connection, and waits for the NIC's notify functions to end.
    losing: AtomicBool,
}

impl Stream {
    /// Who the peer said it is, if it has said so yet; its address is one that it can have.
    pub fn peer(&self) -> Option<Wakeup> {
        self.lock().peer
    }

    /// The program has it now: others may see it, at these ends.
    pub(super) fn tell(&self, origin: Origin, ends: Option<[SocketAddr; 2]>) {
        let nic = &self.adapter.nic.attributes().name;
        let tally = Tally::begin(stat::Kind::Packet, nic, origin, ends);
        self.lock().tally = tally;
    }

    /// The program knows it by that descriptor.
    pub(super) fn set_number(&self, fd: u32) {
        self.lock().tally.set_number(fd);
    }

    /// Whether the peer's first packet has come.
    pub(super) fn is_met(&self) -> bool {
        let mut inner = self.lock();
        if inner.peer.is_none() {
            self.take_in(&mut inner);
        }
        inner.peer.is_some()
    }

    /// TCP_NODELAY: holds nothing back from now on, or as the version does.
    pub fn set_nodelay(&self, nodelay: bool) {
        let mut inner = self.lock();
        let delays = !nodelay && inner.shown.is_none();
        let delay = self.adapter.variant.combine.filter(|_| delays);
        inner.combiner.set_delay(delay);
        if nodelay {
            self.flush_now(&mut inner);
        }
    }

    /// Bytes that have come and have not been read.
    pub fn readable(&self) -> usize {
        let mut inner = self.lock();
        while self.take_in(&mut inner) {}
        inner.readable()
    }

    /// Bytes of the largest packet that both ends can take.
    pub(super) fn largest(&self) -> u32 {
        self.lock().talk.mtu()
    }

    /// Sends what waits to be combined, as far as the window allows.
    pub fn release(&self) {
        self.flush_now(&mut self.lock());
    }

    /// Bytes that wait to be combined with others.
    pub fn held(&self) -> usize {
        self.lock().combiner.held() as usize
    }

    /// What is left to be sent, or to be acknowledged where the peer has room for no more: of a packet that has left no more is known than that it has a byte.
    pub fn outstanding(&self) -> usize {
        let mut inner = self.lock();
        while self.take_in(&mut inner) {}
        let is_full = inner.talk.sends() && inner.talk.window() == 0;
        let packets = match inner.peer {
            Some(peer) if is_full => peer.settings.window,
            _ => 0,
        };
        (inner.combiner.held() + packets) as usize
    }

    fn post_recv(&self, slot: u32) -> Result<(), via::Error> {
        let start = slot * self.stride;
        let descriptor = Descriptor::recv().segment(&self.incoming, start..start + self.mtu);
        self.vi.post_recv(&descriptor, slot.into())
    }

    fn lock(&self) -> Guard<'_, Inner> {
        self.inner.lock()
    }

    /// The lock, for a notify function of the NIC; `None` if the connection is being broken by who has it: he waits for the function to end.
    fn lock_unless_losing(&self) -> Option<Guard<'_, Inner>> {
        let mut tries = 0u32;
        loop {
            if let Some(inner) = self.inner.try_lock() {
                return Some(inner);
            }
            if self.losing.load(Ordering::Acquire) {
                return None;
            }
            tries += 1;
            if tries < YIELDS {
                thread::yield_now();
            } else {
                thread::sleep(NAP);
            }
        }
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stream").field(&self.vi).finish()
    }
}

/// Who waits for the lock in a notify function yields so often, then naps.
const YIELDS: u32 = 100;
const NAP: Duration = Duration::from_micros(50);

const _: () = assert!(WAKEUP_LEN <= 64);
