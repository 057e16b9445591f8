//! SOVIA's own stream over any VI NIC, and the sockets of type `SOCK_VIA` that speak it.
//!
//! From the top: [`table`] finds the [`Socket`] of a descriptor; a socket listens (`listener`), or has a [`Stream`], which moves bytes as
//! [`proto::packet`] says; an [`Adapter`] is the NIC that all of a process share; [`keeper`] is the one thread that sees to what nobody waits for:
//! timers of combined messages, and connections whose program has closed them. Which of the paper's versions runs is a [`Variant`].

pub mod adapter;
pub mod cache;
pub mod calls;
pub mod fork;
mod handler;
pub mod keeper;
mod listener;
pub mod option;
mod relay;
pub mod show;
mod socket;
pub mod stream;
pub mod table;
mod variant;
mod wait;

pub use adapter::Adapter;
pub use relay::offer;
pub use socket::Socket;
pub use stream::Stream;
pub use variant::{BadVariant, Flow, Large, Variant, Waiting, parse_over};
pub use wait::Wait;

/// The socket type of a stream over a VI: `socket(AF_INET, SOCK_VIA, 0)`. No type of Linux's has this number.
pub const SOCK_VIA: i32 = 15;
