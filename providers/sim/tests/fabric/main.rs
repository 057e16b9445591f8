//! The simulated network, through the engine.

mod chance;
mod determinism;
mod faults;
mod kit;
mod levels;
mod meet;
mod tap;
mod time;
