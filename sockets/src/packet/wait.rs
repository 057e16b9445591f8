//! How a call waits, and where threads wait for each other.

use std::time::{Duration, Instant};

use sys::errno::Errno;
use sys::futex::{self, Wake};
use sys::sync::{AtomicU32, Ordering};

/// How a call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Until there is something.
    Ever,
    /// So long (`SO_RCVTIMEO`, `SO_SNDTIMEO`).
    Until(Instant),
    /// Not at all (`O_NONBLOCK`, `MSG_DONTWAIT`).
    Not,
}

impl From<bool> for Wait {
    fn from(patient: bool) -> Self {
        if patient { Self::Ever } else { Self::Not }
    }
}

impl Wait {
    /// How a call goes on waiting that has moved something: a signal ends it, also one whose handler asks for calls to go on. The kernel lets no
    /// sleep go on that has a limit.
    pub(super) fn for_the_rest(self) -> Self {
        match self {
            Self::Ever => Self::Until(Instant::now() + AGE),
            other => other,
        }
    }

    /// Until when to wait; `None` is without limit.
    ///
    /// # Errors
    /// `EAGAIN` where that is not at all, or over.
    pub(super) fn limit(self) -> Result<Option<Instant>, Errno> {
        match self {
            Self::Ever => Ok(None),
            Self::Until(end) if Instant::now() < end => Ok(Some(end)),
            Self::Until(_) | Self::Not => Err(Errno::AGAIN),
        }
    }
}

/// Longer than any connection.
const AGE: Duration = Duration::from_secs(1 << 32);

/// What is left until then, and never nothing: that would be another question to a NIC.
pub(super) fn left(limit: Option<Instant>) -> Option<Duration> {
    let least = Duration::from_nanos(1);
    limit.map(|end| end.saturating_duration_since(Instant::now()).max(least))
}

/// A condition of something behind a lock. Unlike the standard library's it tells of signals.
#[derive(Debug, Default)]
pub(super) struct Changed(AtomicU32);

impl Changed {
    /// To be taken with the lock held, before [`Changed::wait`] without it.
    pub(super) fn ticket(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    /// Sleeps until [`Changed::notify_all`] since `ticket`, or the limit. Whether a signal ended it.
    pub(super) fn wait(&self, ticket: u32, limit: Option<Instant>) -> bool {
        futex::wait(&self.0, ticket, left(limit)) == Wake::Interrupted
    }

    /// Wakes all.
    pub(super) fn notify_all(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        futex::wake(&self.0, u32::MAX);
    }
}
