//! `sovia vi`: Virtual Interfaces by themselves, without sockets.

pub(crate) mod demo;
pub(crate) mod list;
pub(crate) mod ping;
pub(crate) mod rping;
