//! Lists of operations, run on a connected pair beside a model of what they must do.
//!
//! `tests/properties.rs` makes up the lists. Everything that is not left open by the architecture is
//! checked: the model knows the order and the bytes, and where an end may be reached early, by
//! a disconnect, which outcomes are possible.

mod completions;
mod queues;
mod regions;

pub use self::completions::{CqOp, check_completions};
pub use self::queues::{QueueOp, check_queues};
pub use self::regions::{RegionOp, Rights, check_regions};

/// An end of the pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Asked for the connection.
    A = 0,
    /// Accepted.
    B = 1,
}
