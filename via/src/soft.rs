//! The software engine: VI semantics for NICs that have no hardware for them.
//!
//! A [`Device`] brings what differs between such NICs: a [`Link`] that carries frames between two
//! connected VIs, a connection manager, and a way to sleep. The engine does the rest once: work
//! queues, protection checks, the three reliability levels, RDMA, completion queues, handlers,
//! asynchronous errors and limits. [`SoftNic::open`] makes a NIC of a device.
//!
//! The path of a message: [`crate::provider::ViOps::post`] queues the descriptor, checks it, cuts
//! the message into frames and hands them to the link, all under the VI's one lock. The receiver's
//! poll finds them, checks where they may go, and places them. There is no thread in between. A
//! thread of the device serves VIs whose owner is elsewhere ([`Service`]; [`Agent`] is one), and a
//! dispatcher calls handlers.

mod agent;
mod blame;
mod brief;
mod connect;
mod core;
mod cq;
mod device;
mod direct;
mod dispatch;
mod expected;
mod ground;
mod idle;
mod layout;
mod link;
mod memory;
mod messages;
mod nic;
mod ops;
mod post;
mod queue;
mod receive;
mod short;
mod transmit;
mod vi;

pub use self::agent::{Agent, CqBell, Duties, Member};
pub use self::device::{Ask, Attention, CqWaiter, Device, Established, Incoming, Pending, Service};
pub use self::ground::{Ground, Run};
pub use self::link::{BRIEF_MAX, Brief, Garbage, Goodbye, Link, Look, Sleeper, Waiter};
pub use self::nic::SoftNic;
