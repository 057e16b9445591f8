//! What an engine has to say to its driver.

use super::code::Code;
use super::inbound::Received;
use super::opcode::Opcode;
use super::terminate::Terminate;
use super::work::{Completion, WorkId};

/// What the driver, or its user, is to know or to do, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A message is in a receive.
    Received(Received),
    /// A work has ended.
    Completed(Completion),
    /// A receive has ended without a message.
    ReceiveFlushed(WorkId),
    /// The connection fails, for this reason; flushes follow.
    Failed(Failure),
    /// Shut the socket down for writing.
    ShutdownWrite,
    /// Close the socket.
    Close,
}

/// Why a connection fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The peer broke the rules, or something failed here; the peer is told so unless nothing may
    /// be sent.
    Violation {
        /// How.
        code: Code,
        /// With which message, if it is one: the same code may be of a Write or of the answer to a Read.
        opcode: Option<Opcode>,
    },
    /// The peer says that we did, or that something failed there.
    Terminated(Box<Terminate>),
    /// The TCP connection was lost.
    Lost,
    /// An orderly end took too long.
    Timeout,
}
