//! The sending half: what is in flight, and when it is sent again.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Ack, Config, Seq};

#[derive(Debug)]
pub(super) struct Sender<T> {
    config: Config,
    /// Number of the first body in `bodies`.
    base: Seq,
    /// Everything that is not acknowledged up to and including it, oldest first.
    bodies: VecDeque<Body<T>>,
    timer: Timer,
    broken: bool,
}

#[derive(Debug)]
struct Body<T> {
    body: T,
    state: State,
    /// How often it has been sent.
    tries: u32,
    sent_at: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// To be sent, or sent again.
    Due,
    /// On its way.
    Sent,
    /// At the other end, which still misses an earlier one.
    Seen,
}

/// RFC 6298.
#[derive(Debug)]
struct Timer {
    due: Option<Duration>,
    smoothed: Option<(Duration, Duration)>,
    /// Firings in a row.
    fired: u32,
}

impl<T: Clone> Sender<T> {
    pub(super) fn new(config: Config) -> Self {
        Self {
            config,
            base: config.first,
            bodies: VecDeque::new(),
            timer: Timer {
                due: None,
                smoothed: None,
                fired: 0,
            },
            broken: false,
        }
    }

    pub(super) fn push(&mut self, body: T) {
        self.bodies.push_back(Body {
            body,
            state: State::Due,
            tries: 0,
            sent_at: None,
        });
    }

    pub(super) fn handle_ack(&mut self, now: Duration, ack: Ack) {
        let acked = ack.next.since(self.base);
        let newest = acked.checked_sub(1).map(|n| self.bodies.get(n as usize));
        if newest.is_some_and(|body| body.is_none_or(|body| body.tries == 0)) {
            // Late, or a lie: it acknowledges what is no longer, or not yet, in flight.
            return;
        }
        let mut round_trip = None;
        let mut progress = acked > 0;
        for body in self.bodies.drain(..acked as usize) {
            round_trip = body.round_trip(now).or(round_trip);
        }
        self.base = ack.next;
        // The body at the front is the one wanted next, so the map begins behind it.
        for (n, body) in self.bodies.iter_mut().skip(1).take(64).enumerate() {
            if ack.seen & 1 << n != 0 && body.tries > 0 && body.state != State::Seen {
                progress = true;
                round_trip = body.round_trip(now).or(round_trip);
                body.state = State::Seen;
            }
        }
        if let Some(sample) = round_trip {
            self.timer.sample(sample);
        }
        self.repeat_overtaken();
        if progress {
            self.timer.fired = 0;
            self.timer.due = self
                .in_flight()
                .then(|| now + self.timer.length(&self.config));
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Duration) {
        if self.timer.due.is_none_or(|due| due > now) || self.broken {
            return;
        }
        self.timer.fired += 1;
        if self.timer.fired > self.config.tries_max {
            self.broken = true;
            self.timer.due = None;
            return;
        }
        for body in &mut self.bodies {
            if body.state == State::Sent {
                body.state = State::Due;
            }
        }
        self.timer.due = Some(now + self.timer.length(&self.config));
    }

    pub(super) fn poll_transmit(&mut self, now: Duration) -> Option<(Seq, T)> {
        if self.broken {
            return None;
        }
        let window = self.config.window as usize;
        let index = self
            .bodies
            .iter()
            .take(window)
            .position(|body| body.state == State::Due)?;
        let body = &mut self.bodies[index];
        body.state = State::Sent;
        body.tries += 1;
        body.sent_at = Some(now);
        if self.timer.due.is_none() {
            self.timer.due = Some(now + self.timer.length(&self.config));
        }
        Some((self.base.plus(index as u32), body.body.clone()))
    }

    pub(super) fn poll_timeout(&self) -> Option<Duration> {
        self.timer.due
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    fn in_flight(&self) -> bool {
        self.bodies.iter().any(|body| body.state != State::Due)
    }

    /// Takes a body for lost that [`OVERTAKEN`] later ones have passed: once; after that the medium
    /// reorders, and the timer decides.
    fn repeat_overtaken(&mut self) {
        let mut passed = 0;
        for body in self.bodies.iter_mut().rev() {
            match body.state {
                State::Seen => passed += 1,
                State::Sent if passed >= OVERTAKEN && body.tries == 1 => body.state = State::Due,
                State::Sent | State::Due => {}
            }
        }
    }
}

impl<T> Body<T> {
    /// How long the answer took, unless it is unclear to which of several tries it is.
    fn round_trip(&self, now: Duration) -> Option<Duration> {
        let sent_at = self
            .sent_at
            .filter(|_| self.tries == 1 && self.state != State::Seen)?;
        Some(now.saturating_sub(sent_at))
    }
}

impl Timer {
    fn sample(&mut self, round_trip: Duration) {
        self.smoothed = Some(match self.smoothed {
            None => (round_trip, round_trip / 2),
            Some((mean, deviation)) => (
                mean * 7 / 8 + round_trip / 8,
                deviation * 3 / 4 + mean.abs_diff(round_trip) / 4,
            ),
        });
    }

    fn length(&self, config: &Config) -> Duration {
        let once = match self.smoothed {
            None => config.rto_initial,
            Some((mean, deviation)) => mean + deviation * 4,
        };
        let doubled = once
            .max(config.rto_min)
            .saturating_mul(1 << self.fired.min(16));
        doubled.min(config.rto_max)
    }
}

const OVERTAKEN: u32 = 3;
