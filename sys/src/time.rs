//! Monotonic time and deadlines.

use std::time::{Duration, Instant};

use rustix::time::Timespec;

/// The monotonic clock; about 25 ns through the vDSO.
pub fn now() -> Instant {
    Instant::now()
}

/// The monotonic clock as of its last tick, some milliseconds ago at most; about 5 ns.
pub fn coarse() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    Duration::try_from(now).unwrap_or_default()
}

/// [`coarse`] in milliseconds, around which it goes; never 0.
pub fn coarse_ms() -> u32 {
    coarse().as_millis() as u32 | 1
}

/// The monotonic clock in nanoseconds, the same for all processes of a host.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// The monotonic clock in whole seconds, the same for all processes of a host.
pub fn seconds() -> u32 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u32::try_from(now.tv_sec).unwrap_or(u32::MAX)
}

/// The end of a wait that starts now; `None`, here and in every wait, is for ever.
pub fn deadline(timeout_ms: Option<u64>) -> Option<Instant> {
    now().checked_add(Duration::from_millis(timeout_ms?))
}

/// Whether `deadline` lies in the past; never so for `None`, and without a clock read.
pub fn expired(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| now() >= deadline)
}

/// What is left until `deadline`, in the kernel's form: zero when it has passed, `None` for ever.
pub(crate) fn remaining(deadline: Option<Instant>) -> Option<Timespec> {
    let left = deadline?.saturating_duration_since(now());
    Timespec::try_from(left).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_timeout_is_for_ever() {
        assert_eq!(deadline(None), None);
        assert!(!expired(None));
        assert!(!expired(deadline(Some(u64::MAX))));
        assert!(remaining(None).is_none());
    }

    #[test]
    fn a_deadline_passes() {
        let past = deadline(Some(0));
        assert!(expired(past));
        assert_eq!(remaining(past), Some(Timespec::default()));

        let ahead = deadline(Some(60_000));
        assert!(!expired(ahead));
        assert!(remaining(ahead).is_some_and(|left| left.tv_sec >= 58));
    }
}
