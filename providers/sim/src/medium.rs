//! What lies between hosts: time, the queue of events, and all that goes wrong on the way.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fmt;
use std::time::Duration;

use via::soft::Goodbye;

use crate::config::{FabricConfig, Noise};
use crate::fault::Act;
use crate::meet::{Answer, RequestNo};
use crate::packet::Packet;
use crate::random::Random;
use crate::trace::Trace;

/// A host of the fabric, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostNo(pub(crate) u16);

impl HostNo {
    pub(crate) fn address(self) -> [u8; 6] {
        let [high, low] = self.0.to_be_bytes();
        [0x02, b's', b'i', b'm', high, low]
    }

    pub(crate) fn of_address(address: [u8; 6]) -> Option<Self> {
        let no = Self(u16::from_be_bytes([address[4], address[5]]));
        (no.address() == address).then_some(no)
    }
}

impl fmt::Display for HostNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host{}", self.0)
    }
}

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EndKey {
    pub(crate) conn: u64,
    /// 0 or 1.
    pub(crate) side: usize,
}

impl EndKey {
    pub(crate) fn other(self) -> Self {
        Self {
            side: 1 - self.side,
            ..self
        }
    }
}

/// What happens at a certain time.
#[derive(Debug)]
pub(crate) enum Event {
    /// A packet arrives; a `copy` if it did before.
    Arrives {
        to: EndKey,
        bytes: Vec<u8>,
        copy: bool,
    },
    /// A datagram that would have arrived by now has been lost.
    Spent { of: EndKey },
    /// A retransmission timer fires, unless it has been put off.
    Timer { of: EndKey },
    /// Somebody has to see whether the end is looked after.
    Tend { of: EndKey },
    /// The connection is over for this end.
    Ended { to: EndKey, why: Goodbye },
    /// A connection request arrives.
    Request(RequestNo),
    /// A peer's request arrives.
    Offer(RequestNo),
    /// The answer to a request arrives.
    Answer(RequestNo, Answer),
}

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
    events: BinaryHeap<Reverse<Entry>>,
    events_made: u64,
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

#[derive(Debug)]
struct Entry {
    due: Duration,
    no: u64,
    event: Event,
}

/// What becomes of one packet.
enum Fate {
    Lost(&'static str),
    Arrives {
        twice: bool,
        corrupt_bit: Option<u64>,
        late: Duration,
    },
    Disconnects,
}

impl Medium {
    pub(crate) fn new(config: FabricConfig) -> Self {
        Self {
            config,
            now: Duration::ZERO,
            noise: config.noise,
            trace: Trace::new(config.trace_max),
            counters: Counters::default(),
            events: BinaryHeap::new(),
            events_made: 0,
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
        self.events_made += 1;
        self.events.push(Reverse(Entry {
            due,
            no: self.events_made,
            event,
        }));
    }

    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.events.peek().map(|Reverse(entry)| entry.due)
    }

    /// Goes on to the next event.
    pub(crate) fn next(&mut self) -> Option<Event> {
        let Reverse(entry) = self.events.pop()?;
        self.now = self.now.max(entry.due);
        Some(entry.event)
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
        // Every packet draws the same numbers, so that one knob does not move what others decide.
        let random = &mut path.random;
        let lost = random.chance(self.noise.loss_ppm);
        let corrupt = random.chance(self.noise.corrupt_ppm);
        let twice = random.chance(self.noise.duplicate_ppm);
        let late = random.chance(self.noise.reorder_ppm);
        let bit = random.below(len * 8);
        let lateness = Duration::from_nanos(
            self.config.latency.as_nanos() as u64
                + random.below(2 * self.config.latency.as_nanos() as u64 + 1)
                + 1,
        );
        let sent = self.traffic.entry(hosts).or_insert(0);
        let no = *sent;
        *sent += 1;
        if hosts.iter().any(|&host| self.is_alive(host) != Some(true)) {
            return Fate::Lost("dead");
        }
        if self.cuts.contains(&hosts) {
            return Fate::Lost("cut");
        }
        let on_time = Fate::Arrives {
            twice: false,
            corrupt_bit: None,
            late: Duration::ZERO,
        };
        let planned = self
            .strikes
            .iter()
            .position(|strike| strike.hosts == hosts && strike.nth == no);
        if let Some(index) = planned {
            return match self.strikes.swap_remove(index).act {
                Act::Drop => Fate::Lost("dropped"),
                Act::Disconnect => Fate::Disconnects,
                Act::Corrupt => Fate::Arrives {
                    twice: false,
                    corrupt_bit: Some(bit),
                    late: Duration::ZERO,
                },
                Act::Delay(late) => Fate::Arrives {
                    twice: false,
                    corrupt_bit: None,
                    late,
                },
            };
        }
        match (lost, corrupt) {
            (true, _) => Fate::Lost("lost"),
            (false, true) => Fate::Arrives {
                twice: false,
                corrupt_bit: Some(bit),
                late: Duration::ZERO,
            },
            (false, false) if twice || late => Fate::Arrives {
                twice,
                corrupt_bit: None,
                late: if late { lateness } else { Duration::ZERO },
            },
            (false, false) => on_time,
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(how) => write!(f, ": {how}"),
            Self::Disconnects => f.write_str(": disconnects"),
            Self::Arrives {
                twice,
                corrupt_bit,
                late,
            } => {
                if *twice {
                    f.write_str(": twice")?;
                }
                if let Some(bit) = corrupt_bit {
                    write!(f, ": bit {bit} changed")?;
                }
                if !late.is_zero() {
                    write!(f, ": {late:?} late")?;
                }
                Ok(())
            }
        }
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.no == other.no
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.no).cmp(&(other.due, other.no))
    }
}

/// The stream of chance that no connection has.
const CONTROL: u64 = u64::MAX;
/// Timers double so often at most.
pub(crate) const RTO_DOUBLINGS: u32 = 6;
