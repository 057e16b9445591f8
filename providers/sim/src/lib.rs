//! A VI NIC in virtual time: a network of hosts within one process, with a seed.
//!
//! A [`Fabric`] is such a network. Each [`Host`] is a [driver](via::provider::Driver) whose NICs
//! reach those of the others. Frames travel as packets with a checksum; the fabric loses, doubles,
//! reorders and corrupts them as [`Noise`] and planned [faults](Fabric::strike) say. At Unreliable
//! Delivery that is what the VI sees; at the reliable levels retransmission hides it, until it gives
//! up.
//!
//! Time is virtual ([`Time`]): it goes on when every thread that takes part waits, so a test of a
//! timeout takes no time, and one that fails fails again. [`DRIVER`] is for programs that know
//! nothing of this.
//!
//! [`Tapped`] wraps a software NIC whose links carry frames, of this crate or another (`shm`'s, but not `iwarp`'s, whose links carry whole
//! messages), with a [`Tap`] on its frames: a [`Trace`] or planned [`Faults`].
//!
//! ```
//! use sim::{Fabric, FabricConfig};
//! use std::time::Duration;
//! use via::{Nic, ViConfig, ViState};
//!
//! # fn main() -> Result<(), via::Error> {
//! let fabric = Fabric::new(FabricConfig::default());
//! let nic = Nic::open(&fabric.host())?;
//! let tag = nic.create_ptag()?;
//! let (a, b) = (nic.create_vi(&ViConfig::new(&tag))?, nic.create_vi(&ViConfig::new(&tag))?);
//! b.import(&a.export()?.blob, vec![])?;
//! a.disconnect()?;
//! fabric.sleep(Duration::from_micros(10));
//! assert_eq!(b.state()?, ViState::Error);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod adapter;
mod config;
mod conn;
mod connect;
mod core;
mod driver;
mod endpoint;
mod errands;
mod event;
mod fabric;
mod fate;
mod fault;
mod gate;
mod medium;
mod meet;
mod packet;
mod random;
mod seen;
mod state;
mod tap;
mod trace;
mod window;

pub use crate::adapter::{Adapter, CqBell};
pub use crate::config::{FabricConfig, Noise, Time};
pub use crate::connect::{Call, Offer};
pub use crate::driver::{DRIVER, ProcessDriver};
pub use crate::endpoint::{Bell, Endpoint};
pub use crate::fabric::{Fabric, Host, Participant, Spawned};
pub use crate::fault::{Act, Faults};
pub use crate::medium::Counters;
pub use crate::tap::{
    Direction, Route, Sight, Tap, Tapped, TappedCqWaiter, TappedIncoming, TappedLink,
    TappedPending, TappedWaiter,
};
pub use crate::trace::Trace;
pub use crate::window::SimWindows;

/// The device name.
const NAME: &str = "sim";
