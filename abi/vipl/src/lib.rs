//! VIPL 1.0 for C: the entry points of `vipl.h`, over the tables of [`via::provider`].
//!
//! What each entry point does, and with which codes it fails, is said in `vipl.h`. All of them check in one order: handles, then
//! NULL pointers, then the rest. `libvipl.so` is linked from this static library by `link.sh`, which adds the version map.
//!
//! - `caller`: what C hands in and out; the one module that follows its pointers.
//! - `handles`: tables of objects, and how a thread finds the ones that it used last without a lock.
//! - `objects`: what handles name. `guard`: where panics end.
//! - The rest: the entry points, by the sections of VIPL.
//!
//! After `fork`, handles of the parent name nothing.
#![allow(
    unsafe_code,
    reason = "a C boundary: exported names, callers' pointers and callers' functions"
)]

mod abi_types;
mod address;
mod caller;
mod connect;
mod cq;
mod data;
mod drivers;
mod errors;
mod guard;
mod handles;
mod memory;
mod name_service;
mod nic;
mod objects;
mod vi;
