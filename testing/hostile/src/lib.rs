//! Unmodified programs under sovia where nothing goes well: a peer that is an enemy, system calls that fail, no descriptors, no memory, and
//! processors that others keep busy.
//!
//! The programs are in C (`programs/`) and know nothing of all this. What must hold is the same everywhere: no program crashes or hangs, bytes that
//! arrive are the bytes that were sent, and the worst that befalls a connection is a reset, of it alone.
#![forbid(unsafe_code)]

pub mod attacker;
pub mod program;
pub mod random;
pub mod victim;

/// Whether the full numbers are to be run (`SOVIA_LONG=1`).
pub fn is_long() -> bool {
    std::env::var_os("SOVIA_LONG").is_some_and(|value| value != "0")
}
