//! The kernel and shared memory, wrapped: the one place, with the C boundaries, where `unsafe` lives.
//!
//! Every function here is safe to call unless it says otherwise, whatever the process at the other side does: what a peer can write is
//! read once, as an atomic or by copying, and checked before use.
#![allow(
    unsafe_code,
    reason = "wrapping the kernel and shared memory is what this crate is for"
)]

pub mod alone;
pub mod argument;
pub mod bell;
pub mod bequest;
pub mod board;
pub mod double;
pub mod epoll;
pub mod errno;
pub mod family;
pub mod fds;
pub mod fork;
pub mod futex;
pub mod hidden;
pub mod holders;
pub mod host;
pub mod kin;
pub mod ledger;
pub mod limits;
pub mod lock;
pub mod mem;
pub mod net;
pub mod offer;
pub mod options;
pub mod passed;
pub mod poll;
pub mod process_vm;
pub mod quiet;
pub mod relay;
pub mod rendezvous;
pub mod ring;
pub mod section;
pub mod segment;
pub mod socket;
pub mod stack;
pub mod stream;
pub mod sync;
mod system_call;
pub mod tcp;
#[cfg(all(not(loom), target_arch = "x86_64"))]
mod thread_words;
pub mod time;
pub mod turn;
pub mod vectored;
pub mod wait;
pub mod window;
