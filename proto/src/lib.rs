//! Bytes and rules: wire formats and sans-IO engines.
//!
//! Nothing here does I/O, reads a clock or draws a random number; what a peer sent is parsed into
//! types whose accessors cannot fail, and unknown code points are errors of the peer, never panics.
//!
//! - [`arq`]: reliable delivery over a medium that loses, doubles and reorders;
//! - [`ddp`], [`mpa`], [`rdmap`]: iWARP, from its messages to the octets of a TCP stream;
//! - [`extended`]: what the two ends of an extended socket say to each other over their VI;
//! - [`frame`]: the pieces into which a software VI NIC cuts messages;
//! - [`meet`]: what the two ends of a connection say when they look for each other;
//! - [`packet`]: SOVIA's own protocol, a byte stream in the messages of a VI;
//! - [`setup`]: what connection managers say to each other.
#![forbid(unsafe_code)]

pub mod arq;
pub mod ddp;
pub mod extended;
pub mod frame;
pub mod meet;
pub mod mpa;
pub mod packet;
pub mod rdmap;
pub mod setup;
