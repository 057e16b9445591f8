//! SOVIA's protocol: states, packets, windows, and two ends over a VI that loses nothing.
#![allow(
    clippy::unwrap_used,
    reason = "a test fails where a value is not there"
)]

#[path = "packet/combine.rs"]
mod combine;
#[path = "packet/hostile.rs"]
mod hostile;
#[path = "packet/oracle.rs"]
mod oracle;
#[path = "packet/rig.rs"]
mod rig;
#[path = "packet/states.rs"]
mod states;
#[path = "packet/windows.rs"]
mod windows;
