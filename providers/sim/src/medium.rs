//! What lies between hosts: time, and all that goes wrong on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use via::soft::Goodbye;

use crate::config::{FabricConfig, Noise};
use crate::event::{Agenda, EndKey, Event, HostNo};
use crate::fate::{Fate, Lot};
use crate::fault::Act;
use crate::packet::Packet;
use crate::random::Random;
use crate::trace::Trace;

/// Which way a packet goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    pub(crate) to: EndKey,
    pub(crate) hosts: [HostNo; 2],
}

/// One direction of a connection.
#[derive(Debug)]
pub(crate) struct Path {
    random: Random,
    /// When the line is free again.
    free_at: Duration,
    /// When the last packet that was not held up arrives.
    last_due: Duration,
}

/// How a message of the connection manager fares.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Passage {
    Arrives(Duration),
    /// Its sender gives up at this time.
    Hopeless(Duration),
}

/// How many packets met which fate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Were sent, retransmissions included.
    pub sent: u64,
    /// Were lost.
    pub lost: u64,
    /// Arrived twice.
    pub duplicated: u64,
    /// Were held up so that others overtook them.
    pub reordered: u64,
    /// Had a bit changed.
    pub corrupted: u64,
}

pub(crate) struct Medium {
    pub(crate) config: FabricConfig,
    pub(crate) now: Duration,
    pub(crate) noise: Noise,
    pub(crate) trace: Trace,
    pub(crate) counters: Counters,
    agenda: Agenda,
    hosts: Vec<bool>,
    cuts: BTreeSet<[HostNo; 2]>,
    strikes: Vec<Strike>,
    /// Packets so far, by direction.
    traffic: BTreeMap<[HostNo; 2], u64>,
    /// Decides about the messages of connection managers.
    random: Random,
}

/// What is planned for one packet.
#[derive(Debug)]
struct Strike {
    hosts: [HostNo; 2],
    nth: u64,
    act: Act,
}

impl Medium {
    pub(crate) fn new(config: FabricConfig) -> Self {
        Self {
            config,
            now: Duration::ZERO,
            noise: config.noise,
            trace: Trace::new(config.trace_max),
            counters: Counters::default(),
            agenda: Agenda::default(),
            hosts: Vec::new(),
            cuts: BTreeSet::new(),
            strikes: Vec::new(),
            traffic: BTreeMap::new(),
            random: Random::new(config.seed, CONTROL),
        }
    }

    pub(crate) fn add_host(&mut self) -> HostNo {
        self.hosts.push(true);
        HostNo(self.hosts.len() as u16)
    }

    /// Whether the host is there; `None` if it never was.
    pub(crate) fn is_alive(&self, host: HostNo) -> Option<bool> {
        let index = usize::from(host.0).checked_sub(1)?;
        self.hosts.get(index).copied()
    }

    /// The other hosts that are there.
    pub(crate) fn others(&self, host: HostNo) -> Vec<HostNo> {
        let numbered = (1..).map(HostNo).zip(&self.hosts);
        let there = numbered.filter(|(no, alive)| **alive && *no != host);
        there.map(|(no, _)| no).collect()
    }

    pub(crate) fn kill(&mut self, host: HostNo) {
        if let Some(index) = usize::from(host.0).checked_sub(1)
            && let Some(alive) = self.hosts.get_mut(index)
        {
            *alive = false;
            self.note(format_args!("{host} dies"));
        }
    }

    pub(crate) fn cut(&mut self, hosts: [HostNo; 2], apart: bool) {
        for way in [hosts, [hosts[1], hosts[0]]] {
            if apart {
                self.cuts.insert(way);
            } else {
                self.cuts.remove(&way);
            }
        }
    }

    pub(crate) fn strike(&mut self, hosts: [HostNo; 2], nth: u64, act: Act) {
        let sent = self.traffic.get(&hosts).copied().unwrap_or(0);
        self.strikes.push(Strike {
            hosts,
            nth: sent + nth,
            act,
        });
    }

    pub(crate) fn path(&self, from: EndKey) -> Path {
        Path {
            random: Random::new(self.config.seed, from.conn * 2 + from.side as u64),
            free_at: Duration::ZERO,
            last_due: Duration::ZERO,
        }
    }

    pub(crate) fn draw(&mut self) -> u64 {
        self.random.next()
    }

    pub(crate) fn at(&mut self, due: Duration, event: Event) {
        self.agenda.at(due, event);
    }

    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.agenda.next_due()
    }

    /// Goes on to the next event.
    pub(crate) fn next(&mut self) -> Option<Event> {
        let (due, event) = self.agenda.next()?;
        self.now = self.now.max(due);
        Some(event)
    }

    pub(crate) fn note(&self, what: fmt::Arguments<'_>) {
        self.trace.note(self.now, what);
    }

    /// Sends a packet on its way.
    pub(crate) fn send(&mut self, path: &mut Path, route: Route, packet: &Packet) {
        let Route { to, hosts } = route;
        let mut bytes = packet.encode();
        let fate = self.fate(path, hosts, bytes.len() as u64);
        self.counters.sent += 1;
        self.note(format_args!(
            "{} > {} c{} {packet}{fate}",
            hosts[0], hosts[1], to.conn
        ));
        let line_free = path.free_at.max(self.now) + self.config.serialization(bytes.len() as u64);
        path.free_at = line_free;
        let jitter = path.random.below(self.config.jitter.as_nanos() as u64 + 1);
        let due = line_free + self.config.latency + Duration::from_nanos(jitter);
        let due = due.max(path.last_due);
        match fate {
            Fate::Lost(_) => {
                self.counters.lost += 1;
                self.at(due, Event::Spent { of: to.other() });
            }
            Fate::Disconnects => {
                self.at(due, Event::Spent { of: to.other() });
                for to in [to, to.other()] {
                    let why = Goodbye::Transport;
                    self.at(self.now, Event::Ended { to, why });
                }
            }
            Fate::Arrives {
                twice,
                corrupt_bit,
                late,
            } => {
                if let Some(bit) = corrupt_bit {
                    self.counters.corrupted += 1;
                    bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
                }
                if late.is_zero() {
                    path.last_due = due;
                } else {
                    self.counters.reordered += 1;
                }
                let copy = twice.then(|| bytes.clone());
                self.at(
                    due + late,
                    Event::Arrives {
                        to,
                        bytes,
                        copy: false,
                    },
                );
                if let Some(bytes) = copy {
                    self.counters.duplicated += 1;
                    let again = due + late + self.config.latency / 2;
                    self.at(
                        again,
                        Event::Arrives {
                            to,
                            bytes,
                            copy: true,
                        },
                    );
                }
            }
        }
    }

    /// When a message of the connection manager arrives: it is repeated until it does.
    pub(crate) fn passage(&mut self, from: HostNo, to: HostNo) -> Passage {
        let rto = self.config.rto();
        let cut = self.cuts.contains(&[from, to]);
        let alive = [from, to].map(|host| self.is_alive(host) == Some(true));
        let mut after = Duration::ZERO;
        for tries in 0..=self.config.tries_max {
            let lost_ppm = self.noise.loss_ppm.saturating_add(self.noise.corrupt_ppm);
            let lost = self.random.chance(lost_ppm);
            if !lost && !cut && alive == [true, true] {
                let jitter = self.random.below(self.config.jitter.as_nanos() as u64 + 1);
                let way = self.config.latency + Duration::from_nanos(jitter);
                return Passage::Arrives(self.now + after + way);
            }
            after += rto * (1 << tries.min(RTO_DOUBLINGS));
        }
        Passage::Hopeless(self.now + after)
    }

    /// Where the last packet on the path will be gone by.
    pub(crate) fn behind(&self, path: &Path) -> Duration {
        path.last_due.max(self.now)
    }

    fn fate(&mut self, path: &mut Path, hosts: [HostNo; 2], len: u64) -> Fate {
        let lot = Lot::draw(&mut path.random, self.noise, &self.config, len);
        let sent = self.traffic.entry(hosts).or_insert(0);
        let no = *sent;
        *sent += 1;
        if hosts.iter().any(|&host| self.is_alive(host) != Some(true)) {
            return Fate::Lost("dead");
        }
        if self.cuts.contains(&hosts) {
            return Fate::Lost("cut");
        }
        let planned = |strike: &Strike| strike.hosts == hosts && strike.nth == no;
        match self.strikes.iter().position(planned) {
            Some(index) => lot.by_plan(self.strikes.swap_remove(index).act),
            None => lot.by_chance(),
        }
    }
}

/// The stream of chance that no connection has.
const CONTROL: u64 = u64::MAX;
/// Timers double so often at most.
pub(crate) const RTO_DOUBLINGS: u32 = 6;
