//! Events, as `poll` and `epoll` have them.

/// There is something to receive.
pub const IN: u32 = 0x1;
/// There is out-of-band data.
pub const PRI: u32 = 0x2;
/// There is room to send.
pub const OUT: u32 = 0x4;
/// There is an error.
pub const ERR: u32 = 0x8;
/// Both directions have ended.
pub const HUP: u32 = 0x10;
/// There is no such descriptor.
pub const NVAL: u32 = 0x20;
/// As [`IN`].
pub const RDNORM: u32 = 0x40;
/// As [`PRI`], to some.
pub const RDBAND: u32 = 0x80;
/// As [`OUT`].
pub const WRNORM: u32 = 0x100;
/// Room for out-of-band data.
pub const WRBAND: u32 = 0x200;
/// The peer sends no more.
pub const RDHUP: u32 = 0x2000;

pub(crate) const READ: u32 = IN | RDNORM;
pub(crate) const WRITE: u32 = OUT | WRNORM;
/// Told without being asked for.
pub(crate) const ALWAYS: u32 = ERR | HUP;
