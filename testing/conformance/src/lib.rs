//! One conformance suite for every VI NIC: the VIPL checklist, one test a statement.
//!
//! [`Statement::ALL`] is the checklist. A statement's test is a function of a [`Lab`], which is what
//! a provider under test offers: how to open it, how to wait without sleeping, which faults it can
//! be made to suffer. `tests/NAME.rs` gives each provider a test for each statement, named by its
//! number, so that `cargo test -p conformance s153` runs statement 153 everywhere. A statement that
//! cannot be tested on a provider prints why. Statements about the C interface are tested by C
//! programs, which the table names.
//!
//! All NICs are opened strict; tests about what old programs need open one that is not.
#![forbid(unsafe_code)]

mod answering;
mod async_errors;
mod buffer;
mod client_server;
mod completion_queue;
mod disconnect;
pub mod fuzz;
pub mod hostile;
mod kit;
pub mod lab;
mod layout;
mod memory;
mod name_service;
mod nic;
mod notify;
pub mod oracle;
mod peer;
mod plain;
mod process;
mod queues;
mod rdma;
mod reliability;
mod robustness;
mod run;
mod send_recv;
mod statements;
mod stream;
mod vi;

pub use self::plain::Plain;
pub use crate::lab::Lab;
pub use crate::run::{is_long, run, watch};
pub use crate::statements::Statement;
