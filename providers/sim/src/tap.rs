//! Looks at the frames of any software NIC, and tampers with them.

mod device;
mod hold;
mod link;

pub use self::device::{Tapped, TappedIncoming, TappedPending};
pub use self::hold::{TappedCqWaiter, TappedWaiter};
pub use self::link::TappedLink;

use std::fmt;
use std::time::Duration;

use proto::frame::Head;
use via::NetAddress;

use crate::fault::Act;
use crate::trace::Trace;

/// Sees every frame that the engine hands to a [`Tapped`] device, or takes from it.
pub trait Tap: Send + Sync + 'static {
    /// A frame is about to leave, or to be looked at for the first time. What is to be done to it.
    fn frame(&self, sight: &Sight<'_>) -> Option<Act>;
}

/// A frame as a [`Tap`] sees it.
#[derive(Debug, Clone, Copy)]
pub struct Sight<'a> {
    /// By the device's clock, since it was tapped.
    pub at: Duration,
    /// The connection.
    pub route: &'a Route,
    /// Which way it goes.
    pub direction: Direction,
    /// The frame's head.
    pub head: &'a Head,
}

/// Which way a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the peer.
    Sent = 0,
    /// From the peer.
    Received = 1,
}

/// A connection of a tapped device.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// Counts the connections of the device.
    pub no: u64,
    /// Our address and the peer's, unless it was connected by exchange.
    pub addresses: Option<(NetAddress, NetAddress)>,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.no)?;
        match self.addresses {
            Some((local, remote)) => write!(f, " {local} {remote}"),
            None => Ok(()),
        }
    }
}

impl Tap for Trace {
    fn frame(&self, sight: &Sight<'_>) -> Option<Act> {
        let Sight {
            at,
            route,
            direction,
            head,
        } = *sight;
        let arrow = match direction {
            Direction::Sent => '>',
            Direction::Received => '<',
        };
        match route.addresses {
            Some((local, remote)) => {
                self.note(at, format_args!("{local} {arrow} {remote} {head:?}"));
            }
            None => self.note(at, format_args!("#{} {arrow} {head:?}", route.no)),
        }
        None
    }
}
