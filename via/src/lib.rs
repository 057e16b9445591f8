//! The Virtual Interface Architecture: NICs, VIs, completion queues, registered memory.
//!
//! Names, states, codes and numbers are those of VIPL 1.0, the API of the VI Architecture
//! Specification. From the top:
//!
//! - [`Nic`], [`Ptag`], [`Region`], [`Vi`], [`Cq`], [`Descriptor`]: the typed objects for Rust;
//! - [`provider`]: the tables of operations that a VI NIC fills, and its [`Capabilities`];
//! - [`soft`]: the engine that gives these operations to every NIC without VI hardware: queues,
//!   protection, reliability, completion queues, handlers. Such a NIC brings a link and a
//!   connection manager.
//!
//! What this crate is not: it knows no provider, makes no system call, and has no `unsafe`.
#![forbid(unsafe_code)]

mod address;
mod async_error;
mod attributes;
mod descriptor;
mod error;
pub mod name_service;
mod nic;
pub mod provider;
pub mod soft;
mod state;
mod vi;
pub mod window;

pub use sys::mem::Memory;

pub use crate::address::{DISCRIMINATOR_MAX, Discriminator, NetAddress};
pub use crate::async_error::AsyncError;
pub use crate::attributes::{
    Capabilities, Engine, Integrity, MemAttributes, NicAttributes, Reliability, ReliabilitySet,
    ViAttributes, WaitOn,
};
pub use crate::descriptor::{
    CompletedOp, Completion, Descriptor, DescriptorAt, Done, Fault, Op, Queue, RemoteSegment,
    Segment, Status,
};
pub use crate::error::{Error, ErrorCode, Resource};
pub use crate::nic::{Access, Nic, Ptag, Region};
pub use crate::provider::{CqEntry, MemHandle, PtagId, ViId};
pub use crate::state::{ViEvent, ViState};
pub use crate::vi::{Cq, Incoming, Vi, ViConfig};
