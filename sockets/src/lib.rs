//! Byte streams over Virtual Interfaces: the sockets layer under unmodified programs.
//!
//! The program's descriptor is always the kernel's TCP socket. [`table`] knows what each descriptor is, [`conn`] is one connection, [`io`] sends
//! and receives on it, waiting as long as the program would. While a connection is young its bytes go over TCP; then it looks for
//! its other end ([`meet`]), and if that is a process with this library too, its bytes move to a ring in shared memory ([`flow`]).
#![forbid(unsafe_code)]
#![cfg_attr(
    loom,
    allow(
        dead_code,
        unused_imports,
        reason = "only what its models need is there"
    )
)]

#[cfg(not(loom))]
pub mod conn;
#[cfg(not(loom))]
pub mod ends;
#[cfg(not(loom))]
pub mod epoll;
#[cfg(not(loom))]
pub mod extended;
pub mod flow;
#[cfg(not(loom))]
pub mod handover;
#[cfg(not(loom))]
pub mod host;
#[cfg(not(loom))]
pub mod io;
pub mod kernel;
#[cfg(not(loom))]
mod leftover;
#[cfg(not(loom))]
pub mod meet;
#[cfg(not(loom))]
pub mod packet;
#[cfg(not(loom))]
pub mod poll;
#[cfg(not(loom))]
pub mod ready;
#[cfg(not(loom))]
pub mod reason;
#[cfg(not(loom))]
pub mod rules;
#[cfg(not(loom))]
pub mod share;
#[cfg(not(loom))]
pub mod stat;
#[cfg(not(loom))]
pub mod table;
