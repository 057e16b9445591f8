//! RDMAP (RFC 5040, RFC 7306): Send, RDMA Write, RDMA Read and their kin.
//!
//! # The way of a byte
//!
//! A user's octet that is to be sent goes this way, and is copied nowhere on it:
//!
//! 1. The driver [posts](Engine::post) a [`Work`] whose [`Operation`] names the memory by a
//!    [`Place`](crate::mpa::Place).
//! 2. When there is room towards the socket, [`Engine::fill`] cuts the message into
//!    [segments](crate::ddp::Cut), gives each a [header](crate::ddp::Header), and hands it to the
//!    [`Framer`](crate::mpa::Framer), which looks at the octet once, for the checksum.
//! 3. [`Engine::pieces`] names our octets and the user's in the order of the stream; the driver makes `iovec`s
//!    of them and writes. What the socket took it [says](Engine::handle_written), and
//!    a work that has left entirely is an [`Action::Completed`].
//!
//! Coming in:
//!
//! 1. The driver reads the socket into [`Engine::space`], and calls [`Engine::handle_arrivals`].
//! 2. The [`Deframer`](crate::mpa::Deframer) finds a whole FPDU and verifies its checksum. Its header says which message of
//!    [the table](Opcode::TABLE) it is of, and where its payload belongs; [`Memory`](crate::ddp::Memory) says
//!    whether the peer may.
//! 3. The payload goes to its place, the only time it is moved. (With [`Engine::ahead`] the
//!    driver can read long payload from the socket right there.)
//! 4. A message that is complete becomes an [`Action`], if it is one that the user hears of.
//!
//! Whatever a peer does wrong ends the stream, with the [`Code`] that the RFCs give it in a
//! [`Terminate`], which is the last thing sent. The states in which a stream can be are one
//! [table](transition).
//!
//! Like everything here the engine does no I/O. After any call take what [`Engine::poll_action`]
//! has, write what [`Engine::pieces`] has, and call [`Engine::handle_timeout`] when [`Engine::poll_timeout`] says.

mod action;
mod body;
mod code;
mod config;
mod engine;
mod inbound;
mod incoming;
mod line;
mod opcode;
mod outbound;
mod response;
mod state;
mod terminate;
mod work;

pub use self::action::{Action, Failure};
pub use self::body::{AtomicOperation, AtomicRequest, AtomicResponse, ReadRequest, Remote};
pub use self::code::{Code, RdmapError};
pub use self::config::{Config, NoBuffer, PlaceAhead, ReadCopy};
pub use self::engine::{Ahead, Engine};
pub use self::inbound::Received;
pub use self::line::Line;
pub use self::opcode::{Carries, Opcode, Row};
pub use self::state::{Effect, State, Trigger, transition, transitions};
pub use self::terminate::Terminate;
pub use self::work::{Completion, Flushed, Operation, PostError, Receive, Work, WorkId};
