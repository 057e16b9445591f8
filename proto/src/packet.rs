//! SOVIA's own protocol: a byte stream in the messages of a Virtual Interface.
//!
//! A message of a VI carries 32 bits beside its payload. They say what it is ([`Packet`]): DATA, ACK, WAKEUP, FIN or FINACK. Every message
//! needs a receive descriptor that was posted before, so a sender may have only so many DATA packets outstanding ([`Settings`]); the receiver
//! gives them back when it has posted their descriptors again, some at a time, with an ACK or on whatever else it sends.
//! [`Conversation`] is one end's view of this, and of how a connection ends ([`State`]); [`Combiner`] decides which small messages wait for others.
//!
//! The source is J.-S. Kim, K. Kim, S.-I. Jung and S. Ha, "Design and implementation of a user-level Sockets layer over Virtual Interface
//! Architecture", sections 3 and 4; where it leaves something open, the rule is in `docs/packet.md`.
//!
//! Nothing here holds bytes of a stream: who moves them asks what it may do, and says what it did.

mod combine;
mod conversation;
mod immediate;
mod settings;
mod state;
mod wakeup;

pub use combine::{Combiner, Verdict};
pub use conversation::{Arrival, Conversation, Violation};
pub use immediate::{ACKS_MAX, BadImmediate, Kind, Packet};
pub use settings::{BadSettings, Settings, WINDOW_MAX};
pub use state::{State, Trigger, transition, transitions};
pub use wakeup::{BadWakeup, PLACE_LEN, WAKEUP_LEN, Wakeup};
