//! `libsovia.so`: what an unmodified program finds in front of the C library.
//!
//! Each function here has the name and the meaning of one of the C library's. It asks [`sockets`] whether the descriptor is one of a TCP
//! connection. There are three outcomes (`outcome::Outcome`): it is done; it is not ours, and the C library's function (`real`) does it; or it failed, with
//! errno set. Nothing here keeps state: that is what `sockets` is for.
//!
//! Rules for whoever adds a function: no allocation, lock or log on the way of a byte; errno is changed only by failing; a signal may
//! come at any instruction, and a thread may be cancelled in any call that sleeps, so nothing that needs undoing is held across `real` calls that sleep but
//! by a destructor. The C library unwinds such a thread, so functions here are `extern "C-unwind"`: an `extern "C"` one with a destructor in its frame, or called from
//! another function here, ends the program then.
#![allow(
    unsafe_code,
    reason = "the boundary to C: pointers and descriptors come from the program"
)]
#![cfg_attr(
    test,
    allow(
        dead_code,
        reason = "C calls these, and a test program must not find them by name"
    )
)]
#![allow(
    unreachable_pub,
    reason = "what C finds by name is public though no Rust program names it"
)]

mod aio;
mod buffers;
mod cancel;
mod connect;
mod descriptor;
mod directory;
mod epoll;
mod extended;
mod file;
mod filter;
mod host;
mod jump;
mod load;
mod messages;
mod names;
mod option;
mod outcome;
mod pass;
mod poll;
mod process;
mod raw;
mod real;
mod receive;
mod rules;
mod send;
mod settled;
mod signal;
mod stdio;
#[cfg(all(target_arch = "x86_64", not(test)))]
mod unwind;
mod uring;
mod via_socket;
