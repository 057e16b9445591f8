//! Byte streams over Virtual Interfaces: the sockets layer under unmodified programs.
//!
//! The program's descriptor is always the kernel's TCP socket. [`table`] knows what each descriptor is, [`conn`] is one connection, [`io`] sends
//! and receives on it, waiting as long as the program would. While a connection is young its bytes go over TCP; then it looks for
//! its other end ([`meet`]), and if that is a process with this library too, its bytes move to a ring in shared memory ([`flow`]).
#![forbid(unsafe_code)]

pub mod accept;
pub mod conn;
pub mod ends;
pub mod epoll;
pub mod extended;
pub mod flow;
pub mod handover;
pub mod haste;
pub mod host;
pub mod io;
pub mod kernel;
pub mod left;
mod leftover;
pub mod lifetimes;
pub mod meet;
mod odds;
pub mod packet;
pub mod poll;
pub mod ready;
pub mod reason;
pub mod rules;
pub mod share;
pub mod stat;
pub mod states;
pub mod table;
