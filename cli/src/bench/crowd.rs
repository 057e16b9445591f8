use std::time::Duration;

use super::line::PINGPONG;
use super::pair::{Method, Pair, ended};
use super::place::{Cpus, Place};
use super::session::Contestant;
use super::way::Way;
use crate::error::Result;
use crate::plain::Order;

/// Several pairs at once, with fewer CPUs than processes.
pub(super) struct Crowd(Vec<Pair>);

impl Crowd {
    pub(super) fn start(place: &Place, pairs: usize, way: Way) -> Result<Self> {
        let start = |_| Pair::start(place, PINGPONG, way, Cpus::Both, Method::Whole);
        (0..pairs).map(start).collect::<Result<_>>().map(Self)
    }

    /// Round trips per second: of all pairs together, and of the slowest.
    pub(super) fn run(&mut self, time: Duration) -> Result<[f64; 2]> {
        let order = Order::Span {
            ms: time.as_millis() as u32,
        };
        for pair in &mut self.0 {
            pair.order(order)?;
        }
        let mut rates = [0.0, f64::INFINITY];
        for pair in &mut self.0 {
            let [rounds, ns] = pair.answer()?[..] else {
                return Err(ended());
            };
            let rate = rounds as f64 * 1e9 / ns.max(1) as f64;
            rates = [rates[0] + rate, rates[1].min(rate)];
        }
        Ok(rates)
    }

    pub(super) fn upgrades(&self) -> usize {
        self.0.iter().map(Contestant::upgrades).sum()
    }
}
