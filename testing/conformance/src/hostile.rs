//! Peers that keep to no rule, and peers that die.
//!
//! The attacks are carried out by `conformance-peer`, a process of its own; the checks are made by
//! the process that it attacks, over shared memory.

mod churn;
mod door;
mod flood;
mod garbage;
mod grants;
mod told;

pub use self::churn::{churn, connect_over_and_over};
pub use self::door::{pester, withstand_nonsense_at_the_door};
pub use self::flood::flood_with_errors;
pub use self::garbage::{withstand_garbage, write_garbage};
pub use self::grants::keep_a_mapping;
pub use self::told::doubt_what_is_told;
