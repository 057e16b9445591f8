//! MPA (RFC 5044, RFC 6581): records with a checksum over a stream of octets.
//!
//! TCP carries octets and knows no message. MPA first agrees, with one Request and one Reply, that
//! from here on the stream carries *FPDUs*; a [`Handshake`] is either end of that. Then each
//! direction is a chain of FPDUs:
//!
//! ```text
//!  ULPDU_Length  ULPDU (one DDP segment)  pad to 4  CRC32C
//!  2 octets      up to 64768 octets       0..3      4
//! ```
//!
//! A [`Framer`] makes them around payload that stays where it is, a [`Deframer`] takes them apart
//! in the buffer into which the socket was read. Either can run with *markers*: four octets
//! at every 512th of the stream, which point back to where the FPDU around them begins. They let
//! hardware find a beginning amid lost segments; a peer that asks for them gets them.
//!
//! # Example
//!
//! Two ends agree; `write` and `read` of a socket would stand between them.
//!
//! ```
//! use std::time::Duration;
//!
//! use proto::mpa::{Handshake, Options, Outcome};
//!
//! let now = Duration::ZERO;
//! let mut client = Handshake::initiate(Options::default(), b"to whom", now)?;
//! let mut server = Handshake::respond(Options::default(), now);
//!
//! let request = client.output().to_vec();
//! client.handle_written(request.len());
//! assert_eq!(server.handle_octets(&request), request.len());
//! assert!(matches!(server.poll_outcome(), Some(Outcome::Requested { .. })));
//! server.accept(b"welcome")?;
//!
//! let reply = server.output().to_vec();
//! server.handle_written(reply.len());
//! client.handle_octets(&reply);
//! for end in [&mut client, &mut server] {
//!     let Some(Outcome::Established { terms, .. }) = end.poll_outcome() else {
//!         panic!("refused");
//!     };
//!     assert!(terms.crc);
//! }
//! # Ok::<(), proto::mpa::HandshakeMisuse>(())
//! ```
//!
//! Specifications: RFC 5044, RFC 6581 (revision 2), RFC 3720 B.4 (the checksum).

mod crc;
mod deframer;
mod error;
mod fpdu;
mod framer;
mod handshake;
mod negotiation;
mod ring;
mod source;
mod startup;
mod state;
mod ulpdu;

pub use self::crc::Crc;
pub use self::deframer::{Deframer, MarkerCheck, Ready};
pub use self::error::MpaError;
pub use self::fpdu::{
    FPDU_LEN_MAX, MARKER_INTERVAL, ULPDU_LEN_MAX, ULPDU_LEN_MIN, fpdu_len, mulpdu, pad_len,
};
pub use self::framer::{Framer, Piece, ULPDU_APART_MAX};
pub use self::handshake::{Handshake, HandshakeMisuse, Outcome};
pub use self::negotiation::{Depths, Options, PeerToPeer, Revision, Role, Terms};
pub use self::source::{Place, Source, SourceLost};
pub use self::startup::{
    Enhanced, Flags, Kind, NOT_NEGOTIATED, PRIVATE_DATA_MAX, Rtr, RtrSet, Startup,
};
pub use self::state::{State, Trigger, transition, transitions};
pub use self::ulpdu::{Pieces, Ulpdu};
