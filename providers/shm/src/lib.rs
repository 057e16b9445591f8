//! A VI NIC between processes and threads of one host: M-VIA's loopback device, without a kernel
//! module and without a daemon.
//!
//! - [`DRIVER`] opens it. Processes find each other by abstract Unix sockets of their network
//!   namespace, named by address and discriminator.
//! - A connection is one sealed memfd with a ring for each direction ([`sys::segment`]), and the
//!   Unix socket over which it was made: that is doorbell and sign of life.
//! - Sends are copied into the receiver's ring by the sender's CPU and out of it, into the posted
//!   segments, by the receiver's. RDMA writes go straight to their place where that is safe: into
//!   memory that the NIC allocated ([`via::Memory::shared`]), through a mapping; into other memory,
//!   through `process_vm_writev`, if the kernel lets one process write the other's. Else they take
//!   the ring.
//! - An agent thread for each NIC handle looks after VIs that their owner does not look after. It
//!   sleeps, at no cost, until a doorbell or a death wakes it.
//!
//! Nothing is left of a connection when its processes end, however they end.
#![forbid(unsafe_code)]

mod agent;
mod connect;
mod cq;
mod device;
mod export;
mod link;
mod listen;
mod name;
mod peer;
mod peering;

pub use self::device::{DRIVER, ShmDriver};
