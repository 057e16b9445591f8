//! A connection: two ends, and the two directions between them.

use std::collections::VecDeque;
use std::time::Duration;

use proto::arq::{self, Arq, Seq};
use via::Reliability;
use via::provider::ViId;
use via::soft::Goodbye;

use crate::adapter::{CqNo, NicNo};
use crate::event::{EndKey, Event, HostNo};
use crate::medium::{Medium, Passage, Path, RTO_DOUBLINGS, Route};
use crate::packet::{Body, Content, Frame, Packet};
use crate::seen::Seen;

pub(crate) struct Conn {
    no: u64,
    reliable: bool,
    pub(crate) ends: [End; 2],
    /// Each leads away from the end of the same index.
    paths: [Path; 2],
}

pub(crate) struct End {
    pub(crate) host: HostNo,
    pub(crate) owner: Owner,
    pub(crate) bell: Bell,
    pub(crate) inbox: VecDeque<Frame>,
    /// Why the connection is over, as far as this end knows.
    pub(crate) ended: Option<Goodbye>,
    life: Life,
    transport: Transport,
    credit: Credit,
}

/// Who looks after an end.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Owner {
    pub(crate) vi: Option<(NicNo, ViId)>,
    pub(crate) cq: Option<CqNo>,
}

/// Who wants to be woken.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bell {
    /// Threads that sleep on the VI, or are about to, or did lately.
    pub(crate) caller: bool,
    /// How many do.
    pub(crate) asleep: usize,
    /// The agent, or a sleeper on the completion queue.
    pub(crate) agent: bool,
    /// Counts how often it has rung, for the caller.
    pub(crate) rung: u32,
    /// Something happened that nobody has looked at.
    pub(crate) news: bool,
    /// An [`Event::Tend`] is under way.
    pub(crate) tended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// It may send.
    Open,
    /// It has said goodbye, which may still have to be repeated.
    Closing,
    /// Its link is gone, too.
    Gone,
}

enum Transport {
    Datagrams {
        next: Seq,
        seen: Seen,
    },
    Reliable {
        arq: Box<Arq<Body>>,
        /// The earliest [`Event::Timer`] under way.
        timer: Option<Duration>,
    },
    /// Nothing leaves or arrives any more.
    Silent,
}

/// How many frames may leave before the other end takes some.
struct Credit {
    left: u32,
    /// Somebody was refused.
    wanted: bool,
}

/// The ends for which something has happened.
#[derive(Debug, Default, Clone, Copy)]
#[must_use]
pub(crate) struct News(pub(crate) [bool; 2]);

impl Conn {
    pub(crate) fn new(no: u64, hosts: [HostNo; 2], level: Reliability, medium: &Medium) -> Self {
        let reliable = level.is_reliable();
        let key = |side| EndKey { conn: no, side };
        Self {
            no,
            reliable,
            ends: hosts.map(|host| End::new(host, reliable, medium)),
            paths: [medium.path(key(0)), medium.path(key(1))],
        }
    }

    /// Whether nobody will ever ask for it again.
    pub(crate) fn is_over(&self) -> bool {
        self.ends.iter().all(|end| end.life == Life::Gone)
    }

    /// Sends what `body` holds from `side`, which has [room](Conn::reserve).
    pub(crate) fn send(&mut self, side: usize, body: Body, medium: &mut Medium) {
        let end = &mut self.ends[side];
        if end.life != Life::Open {
            return;
        }
        end.credit.left = end.credit.left.saturating_sub(1);
        self.dispatch(side, body, medium);
    }

    pub(crate) fn reserve(&mut self, side: usize) -> bool {
        let end = &mut self.ends[side];
        let room = end.credit.left > 0;
        end.credit.wanted = !room;
        room && end.life == Life::Open
    }

    /// The frame at the front of `side` has been taken off.
    pub(crate) fn released(&mut self, side: usize) -> News {
        self.repay(1 - side)
    }

    pub(crate) fn close(&mut self, side: usize, why: Goodbye, medium: &mut Medium) {
        let end = &mut self.ends[side];
        if end.life != Life::Open {
            return;
        }
        end.life = Life::Closing;
        end.inbox.clear();
        if end.ended.is_some() {
            return;
        }
        match end.transport {
            Transport::Reliable { .. } => self.dispatch(side, Body::close(why), medium),
            // Goodbyes are the connection manager's business here: they are repeated.
            Transport::Datagrams { .. } => self.announce(side, why, medium),
            Transport::Silent => {}
        }
    }

    /// The link of `side` is gone.
    pub(crate) fn drop_link(&mut self, side: usize, medium: &mut Medium) {
        self.close(side, Goodbye::Died, medium);
        self.ends[side].life = Life::Gone;
        self.ends[side].owner = Owner::default();
    }

    pub(crate) fn handle_packet(
        &mut self,
        side: usize,
        bytes: Vec<u8>,
        copy: bool,
        medium: &mut Medium,
    ) -> News {
        let mut news = News::default();
        let end = &mut self.ends[side];
        let spent = self.reliable || copy;
        match (Packet::decode(bytes), &mut end.transport) {
            (Some(Packet::Datagram { seq, body }), Transport::Datagrams { seen, .. }) => {
                if seen.is_new(seq.0) {
                    news.0[side] |= end.take(body);
                } else if !spent {
                    return self.repay(1 - side);
                }
            }
            (Some(Packet::Reliable(packet)), Transport::Reliable { arq, .. }) => {
                arq.handle_packet(medium.now, packet);
                let mut bodies = Vec::new();
                bodies.extend(std::iter::from_fn(|| arq.poll_delivery()));
                for body in bodies {
                    news.0[side] |= end.take(body);
                }
                self.pump(side, medium);
            }
            // Its checksum was wrong, or nobody listens.
            _ if !spent => return self.repay(1 - side),
            _ => {}
        }
        news
    }

    pub(crate) fn handle_spent(&mut self, side: usize) -> News {
        if self.reliable {
            return News::default();
        }
        self.repay(side)
    }

    pub(crate) fn handle_timer(&mut self, side: usize, medium: &mut Medium) -> News {
        let end = &mut self.ends[side];
        let Transport::Reliable { arq, timer } = &mut end.transport else {
            return News::default();
        };
        if timer.is_some_and(|due| due <= medium.now) {
            *timer = None;
        }
        arq.handle_timeout(medium.now);
        if !arq.is_broken() {
            self.pump(side, medium);
            return News::default();
        }
        medium.note(format_args!("{} c{} gives up", end.host, self.no));
        // The other end hears nothing either, and finds out in the same way.
        let ours = self.handle_end(side, Goodbye::Transport);
        let theirs = self.handle_end(1 - side, Goodbye::Transport);
        News([ours.0[0] || theirs.0[0], ours.0[1] || theirs.0[1]])
    }

    /// The connection is over for `side`.
    pub(crate) fn handle_end(&mut self, side: usize, why: Goodbye) -> News {
        let end = &mut self.ends[side];
        end.transport = Transport::Silent;
        let mut news = News::default();
        news.0[side] = end.end(why);
        news
    }

    /// Tells the other end that `side` has ended, behind what it has sent.
    fn announce(&mut self, side: usize, why: Goodbye, medium: &mut Medium) {
        let to = EndKey {
            conn: self.no,
            side: 1 - side,
        };
        let hosts = [self.ends[side].host, self.ends[1 - side].host];
        let behind = medium.behind(&self.paths[side]);
        let (due, why) = match medium.passage(hosts[0], hosts[1]) {
            Passage::Arrives(due) => (due.max(behind), why),
            Passage::Hopeless(due) => (due, Goodbye::Transport),
        };
        medium.note(format_args!(
            "{} > {} c{} close {why:?}",
            hosts[0], hosts[1], self.no
        ));
        medium.at(due, Event::Ended { to, why });
    }

    fn repay(&mut self, side: usize) -> News {
        let credit = &mut self.ends[side].credit;
        credit.left += 1;
        let mut news = News::default();
        news.0[side] = std::mem::take(&mut credit.wanted);
        news
    }

    fn dispatch(&mut self, side: usize, body: Body, medium: &mut Medium) {
        let route = self.route(side);
        match &mut self.ends[side].transport {
            Transport::Datagrams { next, .. } => {
                let seq = *next;
                *next = Seq(seq.0.wrapping_add(1));
                let packet = Packet::Datagram { seq, body };
                medium.send(&mut self.paths[side], route, &packet);
            }
            Transport::Reliable { arq, .. } => {
                arq.push(body);
                self.pump(side, medium);
            }
            Transport::Silent => {}
        }
    }

    /// Sends what the engine of `side` wants sent.
    fn pump(&mut self, side: usize, medium: &mut Medium) {
        let route = self.route(side);
        let Transport::Reliable { arq, timer } = &mut self.ends[side].transport else {
            return;
        };
        while let Some(packet) = arq.poll_transmit(medium.now) {
            medium.send(&mut self.paths[side], route, &Packet::Reliable(packet));
        }
        if let Some(due) = arq.poll_timeout()
            && timer.is_none_or(|timer| due < timer)
        {
            *timer = Some(due);
            let of = route.to.other();
            medium.at(due, Event::Timer { of });
        }
    }

    fn route(&self, side: usize) -> Route {
        Route {
            to: EndKey {
                conn: self.no,
                side: 1 - side,
            },
            hosts: [self.ends[side].host, self.ends[1 - side].host],
        }
    }
}

impl End {
    fn new(host: HostNo, reliable: bool, medium: &Medium) -> Self {
        let config = &medium.config;
        let rto = config.rto();
        let transport = if reliable {
            let arq = Arq::new(arq::Config {
                window: config.window,
                rto_initial: rto,
                rto_min: rto,
                rto_max: rto * (1 << RTO_DOUBLINGS),
                tries_max: config.tries_max,
                first: Seq(0),
            });
            Transport::Reliable {
                arq: Box::new(arq),
                timer: None,
            }
        } else {
            Transport::Datagrams {
                next: Seq(0),
                seen: Seen::default(),
            }
        };
        Self {
            host,
            owner: Owner::default(),
            bell: Bell::default(),
            inbox: VecDeque::new(),
            ended: None,
            life: Life::Open,
            transport,
            credit: Credit {
                left: config.window.clamp(1, arq::WINDOW_MAX),
                wanted: false,
            },
        }
    }

    /// Whether anything is there to be looked at.
    pub(crate) fn is_ready(&self) -> bool {
        !self.inbox.is_empty() || self.ended.is_some()
    }

    /// Whether somebody still has to look at it.
    pub(crate) fn has_unseen(&self) -> bool {
        self.bell.news || self.is_ready()
    }

    /// A body has arrived; whether it is news.
    fn take(&mut self, body: Body) -> bool {
        if self.life != Life::Open || self.ended.is_some() {
            return false;
        }
        match body.content() {
            Some(Content::Frame(frame)) => {
                self.inbox.push_back(frame);
                true
            }
            Some(Content::Close(why)) => self.end(why),
            None => self.end(Goodbye::Transport),
        }
    }

    fn end(&mut self, why: Goodbye) -> bool {
        let news = self.ended.is_none();
        self.ended.get_or_insert(why);
        news
    }
}
