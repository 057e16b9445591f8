//! What handlers were called with.

use std::sync::{Arc, Mutex, PoisonError};

use via::provider::ViId;
use via::{AsyncError, ErrorCode};

use super::{Must, until};
use crate::lab::Lab;

/// What handlers were called with, in order.
pub(crate) struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T: Clone> Log<T> {
    pub(crate) fn note(&self, call: T) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(call);
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The first, as soon as there is one.
    #[track_caller]
    pub(crate) fn first(&self, lab: &dyn Lab) -> T {
        until(lab, "a handler to be called", || self.len() > 0);
        self.all().remove(0)
    }
}

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Log<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl Log<AsyncError> {
    pub(crate) fn of(&self, vi: ViId) -> Vec<AsyncError> {
        self.all()
            .into_iter()
            .filter(|error| error.vi == Some(vi))
            .collect()
    }

    pub(crate) fn count(&self, code: ErrorCode, vi: ViId) -> usize {
        self.of(vi)
            .iter()
            .filter(|error| error.code == code)
            .count()
    }

    /// The first error `code` of `vi`, as soon as there is one.
    #[track_caller]
    pub(crate) fn wait_for(&self, lab: &dyn Lab, code: ErrorCode, vi: ViId) -> AsyncError {
        let mut found = None;
        until(lab, &format!("the error {code:?}"), || {
            found = self.of(vi).into_iter().find(|error| error.code == code);
            found.is_some()
        });
        found.must()
    }
}
