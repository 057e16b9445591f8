//! DDP (RFC 5041): every segment says where it belongs.
//!
//! A DDP message travels as segments, one a ULPDU. A *tagged* segment names memory that its
//! receiver has told about, by [`Stag`] and offset. An *untagged* one names a queue of the
//! receiver's, the number of a message in it and an offset in that; the receiver has put a buffer
//! there for every number that may come. So each segment can be placed the moment it is seen,
//! without the others: [`Memory`] is what a driver supplies to place it. What is placed is not yet
//! delivered: a message is delivered once, whole, and in the order of sending, which for untagged
//! ones a [`Queue`] decides.
//!
//! ```text
//!  tagged    control  ulp  STag(4)      TO(8)                          payload
//!  untagged  control  ulp  ulp word(4)  QN(4)    MSN(4)  MO(4)         payload
//! ```
//!
//! The two `ulp` fields are RDMAP's. Specification: RFC 5041.

mod cut;
mod error;
mod extents;
mod header;
mod memory;
mod queue;

pub use self::cut::{Cut, Segment};
pub use self::error::DdpError;
pub use self::header::{
    Header, HeaderOctets, Msn, QN_ATOMIC_RESPONSE, QN_REQUEST, QN_SEND, QN_TERMINATE, Stag,
    TAGGED_LEN, Tagged, UNTAGGED_LEN, Untagged,
};
pub use self::memory::{Access, Fault, InvalidateFault, Memory, Window};
pub use self::queue::{Arrival, Delivered, Queue, Spot};
