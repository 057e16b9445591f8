//! Errors that cannot be put into a descriptor.

use crate::provider::{CqId, ViId};
use crate::{CompletedOp, ErrorCode};

/// What a NIC reports outside of any descriptor (`VIP_ERROR_DESCRIPTOR`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsyncError {
    /// What happened.
    pub code: ErrorCode,
    /// To which VI, if to one.
    pub vi: Option<ViId>,
    /// To which completion queue, if to one.
    pub cq: Option<CqId>,
    /// The name or address of the descriptor concerned.
    pub descriptor: Option<u64>,
    /// The operation concerned.
    pub op: Option<CompletedOp>,
}

impl AsyncError {
    /// An error about a VI as such.
    #[must_use]
    pub fn of_vi(code: ErrorCode, vi: ViId) -> Self {
        Self {
            code,
            vi: Some(vi),
            cq: None,
            descriptor: None,
            op: None,
        }
    }
}
