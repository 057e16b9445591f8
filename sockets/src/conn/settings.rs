//! What the [rules](crate::rules) say of one connection, beside whether it leaves TCP.

use sys::stream::Size;
use sys::sync::Ordering;
use sys::wait::{self, Limits};

use super::Conn;
use super::life::GATHER;
use crate::lifetimes::Level;
use crate::rules::text::Settings;

impl Conn {
    /// From now on it is to be upgraded when these say, or at once if it `asks` the rules first.
    pub(crate) fn heed_settings(&self, settings: &Settings, asks: bool) {
        let Settings {
            turns,
            bytes,
            learns,
            ring,
            ..
        } = *settings;
        self.learn_nothing();
        match (asks, learns) {
            (true, _) => self.set_enough(0, 0),
            (false, true) => self.learn(),
            (false, false) => self.set_enough(turns, bytes),
        }
        self.longest.store(ring.bytes(), Ordering::Relaxed);
    }

    /// The longest rings that it may have.
    pub(super) fn longest(&self) -> Size {
        Size::new(self.longest.load(Ordering::Relaxed)).unwrap_or(Size::DEFAULT)
    }

    /// How long its waits poll from now on: as `limited` makes of what they would.
    pub(crate) fn set_limits(&self, limited: impl Fn(Limits) -> Limits) {
        let waits = [
            (&self.memory, Limits::MEMORY),
            (&self.socket, Limits::SOCKET),
            (&self.gather, GATHER),
        ];
        for (spinner, usual) in waits {
            spinner.set_limits(limited(usual), wait::cpus());
        }
    }

    /// Whether so little says nothing yet. Each time that others were found to have the socket eight times as much is wanted as what the user says, or as the least that
    /// is learned.
    pub(super) fn is_short(&self, turns: u32, bytes: u64) -> bool {
        let patience = 3 * self.looks.load(Ordering::Relaxed);
        let enough = self.enough.load(Ordering::Relaxed);
        let many = self.many.load(Ordering::Relaxed);
        let (enough, many) = if self.learns() {
            let Level { turns, bytes } = Level::SOON;
            (enough.max(turns << patience), many.max(bytes << patience))
        } else {
            (enough << patience, many << patience)
        };
        turns < enough && bytes < many
    }
}
