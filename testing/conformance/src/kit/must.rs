//! What a test takes for granted.

use std::fmt::Debug;

/// A result that a test takes for granted.
pub(crate) trait Must {
    type Value;
    fn must(self) -> Self::Value;
}

impl<T, E: Debug> Must for Result<T, E> {
    type Value = T;

    #[track_caller]
    fn must(self) -> T {
        match self {
            Ok(value) => value,
            Err(error) => panic!("failed: {error:?}"),
        }
    }
}

impl<T> Must for Option<T> {
    type Value = T;

    #[track_caller]
    fn must(self) -> T {
        match self {
            Some(value) => value,
            None => panic!("nothing there"),
        }
    }
}
