//! Small programs in C, one a call or behaviour, each run natively and under sovia: the outcome must be the same, down to errno.
//!
//! A program has two ends, a client and a server, and each end prints a transcript: results, names of errors, digests of data,
//! event masks. The transcript of the kernel with itself is the reference. The library is preloaded into both ends, into the client and
//! into the server, and each time both transcripts, what the ends complain about and how they exit must be the same.
//!
//! The folder `programs/` is the list of programs; [`table`] holds what is particular about some, and the differences that are known.
#![forbid(unsafe_code)]

pub mod case;
pub mod compile;
pub mod ends;
pub mod library;
pub mod packet;
mod processes;
pub mod program;
pub mod suite;
pub mod table;
pub mod transcript;
