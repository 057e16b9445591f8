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
//! 3. [`Engine::pieces`] names our octets and the user's in the order of the stream; the driver
//!    makes `iovec`s of them and writes. What the socket took it [says](Engine::handle_written),
//!    and a work that has left entirely is an [`Action::Completed`].
//!
//! Coming in:
//!
//! 1. The driver reads the socket into [`Engine::space`], and calls [`Engine::handle_arrivals`].
//! 2. The [`Deframer`](crate::mpa::Deframer) finds a whole FPDU and verifies its checksum. Its
//!    header says which message of [the table](Opcode::TABLE) it is of, and where its payload
//!    belongs; [`Memory`](crate::ddp::Memory) says whether the peer may.
//! 3. The payload goes to its place, the only time it is moved. (With [`Engine::ahead`] the
//!    driver can read long payload from the socket right there.)
//! 4. A message that is complete becomes an [`Action`], if it is one that the user hears of.
//!
//! Whatever a peer does wrong ends the stream, with the [`Code`] that the RFCs give it in a
//! [`Terminate`], which is the last thing sent. The states in which a stream can be are one
//! [table](transition).
//!
//! Like everything here the engine does no I/O. After any call [fill](Engine::fill) and write what
//! [`Engine::pieces`] has, take what [`Engine::poll_action`] has, and call
//! [`Engine::handle_timeout`] when [`Engine::poll_timeout`] says.
//!
//! # Example
//!
//! An initiator writes a word into the responder's memory. What lies between the two engines here
//! is a socket elsewhere.
//!
//! ```
//! use std::time::Duration;
//!
//! use proto::ddp::{Access, Fault, InvalidateFault, Memory, Stag, Window};
//! use proto::mpa::{Depths, Piece, Place, Role, RtrSet, Source, SourceLost, Terms};
//! use proto::rdmap::{Config, Engine, Operation, Remote, Work, WorkId};
//!
//! /// One buffer, which the peer may write as STag 7 from offset 0 on.
//! struct Buffer(Vec<u8>);
//!
//! impl Source for Buffer {
//!     fn show(&self, at: Place, len: u32, mut see: impl FnMut(&[u8])) -> Result<(), SourceLost> {
//!         let from = at.offset as usize;
//!         see(self.0.get(from..from + len as usize).ok_or(SourceLost)?);
//!         Ok(())
//!     }
//! }
//!
//! impl Memory for Buffer {
//!     fn grant(&self, access: Access, stag: Stag, to: u64, len: u32) -> Result<Place, Fault> {
//!         if stag != Stag(7) {
//!             return Err(Fault::UnknownStag);
//!         }
//!         if access != Access::RemoteWrite {
//!             return Err(Fault::NoRight);
//!         }
//!         let window = Window { base: 0, len: self.0.len() as u64 };
//!         Ok(Place::new(0).advanced(window.offset(to, len)?))
//!     }
//!
//!     fn place(&mut self, at: Place, octets: &[u8]) -> Result<(), SourceLost> {
//!         let from = at.offset as usize;
//!         let room = self.0.get_mut(from..from + octets.len()).ok_or(SourceLost)?;
//!         room.copy_from_slice(octets);
//!         Ok(())
//!     }
//!
//!     fn invalidate(&mut self, _: Stag) -> Result<(), InvalidateFault> {
//!         Err(InvalidateFault::UnknownStag)
//!     }
//!
//!     fn atomic(&mut self, _: Place, _: impl Fn(u64) -> u64) -> Result<u64, SourceLost> {
//!         Err(SourceLost)
//!     }
//! }
//!
//! // As a `mpa::Handshake` would have brought about.
//! let terms = |role| Terms {
//!     role,
//!     crc: true,
//!     send_markers: false,
//!     receive_markers: false,
//!     depths: Depths { ird: 1, ord: 1 },
//!     rtr: RtrSet::EMPTY,
//! };
//! let now = Duration::ZERO;
//! let (here, mut there) = (Buffer(b"word".to_vec()), Buffer(vec![0; 8]));
//! let mut initiator = Engine::new(&terms(Role::Initiator), Config::default());
//! let mut responder = Engine::new(&terms(Role::Responder), Config::default());
//!
//! let to = Remote { stag: Stag(7), to: 2 };
//! let operation = Operation::Write { from: Place::new(0), len: 4, to };
//! initiator.post(Work { id: WorkId(1), operation, fence: false })?;
//!
//! initiator.fill(&here, now);
//! let mut wire = Vec::new();
//! for piece in initiator.pieces() {
//!     match piece {
//!         Piece::Own(octets) => wire.extend_from_slice(octets),
//!         Piece::Payload { place, len } => {
//!             let from = place.offset as usize;
//!             wire.extend_from_slice(&here.0[from..from + len as usize]);
//!         }
//!     }
//! }
//! initiator.handle_written(wire.len() as u64, now);
//!
//! responder.handle_octets(&wire);
//! responder.handle_arrivals(&mut there, now);
//! assert_eq!(there.0, b"\0\0word\0\0");
//! # Ok::<(), proto::rdmap::PostError>(())
//! ```

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
pub use self::engine::{Ahead, Engine, GUESSES_MAX, Guess, SEAM_MAX, SEND_LEAD};
pub use self::inbound::Received;
pub use self::line::Line;
pub use self::opcode::{Carries, Opcode, Row};
pub use self::state::{Effect, State, Trigger, transition, transitions};
pub use self::terminate::Terminate;
pub use self::work::{Completion, Flushed, Operation, PostError, Receive, Work, WorkId};
