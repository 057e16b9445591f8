//! Which small messages wait for others.

use std::time::Duration;

/// Decides, message by message, what is held back. The bytes are the caller's.
///
/// What is held leaves (1) when the timer expires, (2) when the next message does not fit, (3) when a message comes that is too
/// large to copy, and (4) when the program receives or closes, which the caller says with [`Combiner::flushed`] after it has sent.
/// Time is what has passed since an epoch of the caller's.
#[derive(Debug, Clone)]
pub struct Combiner {
    /// How long a message may wait; `None` is TCP_NODELAY.
    delay: Option<Duration>,
    copy_max: u32,
    mtu: u32,
    held: u32,
    due: Option<Duration>,
}

/// What to do with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Append it to what is held.
    Append,
    /// Send what is held, then hold this one.
    FlushThenAppend,
    /// Send what is held, if anything is, then this one by itself.
    Send,
}

impl Combiner {
    /// Messages of at most `copy_max` bytes wait for at most `delay`, to leave in packets of at most `mtu` bytes.
    #[must_use]
    pub fn new(delay: Option<Duration>, copy_max: u32, mtu: u32) -> Self {
        Self {
            delay,
            copy_max: copy_max.min(mtu),
            mtu,
            held: 0,
            due: None,
        }
    }

    /// A message of `len` bytes, at `now`. The combiner counts it as held where it says so.
    #[inline]
    pub fn offer(&mut self, len: u32, now: Duration) -> Verdict {
        let Some(delay) = self.delay else {
            return Verdict::Send;
        };
        if len > self.copy_max {
            return Verdict::Send;
        }
        if self.held + len > self.mtu {
            self.held = len;
            self.due = Some(now + delay);
            return Verdict::FlushThenAppend;
        }
        if self.held == 0 {
            self.due = Some(now + delay);
        }
        self.held += len;
        Verdict::Append
    }

    /// Whether a message of `len` bytes can be appended to what is held.
    #[must_use]
    #[inline]
    pub fn fits(&self, len: u32) -> bool {
        self.is_on() && len <= self.copy_max && self.held + len <= self.mtu
    }

    /// Bytes held.
    #[must_use]
    #[inline]
    pub fn held(&self) -> u32 {
        self.held
    }

    /// When what is held has to leave.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        self.due
    }

    /// What was held has been sent.
    #[inline]
    pub fn flushed(&mut self) {
        self.held = 0;
        self.due = None;
    }

    /// Holds nothing back from now on, or begins to again; what is held is the caller's to send.
    pub fn set_delay(&mut self, delay: Option<Duration>) {
        self.delay = delay;
    }

    /// The peer takes packets of at most `mtu` bytes. Nothing may be held yet.
    pub fn limit(&mut self, mtu: u32) {
        debug_assert!(self.held == 0, "nothing leaves before the peer is known");
        self.mtu = self.mtu.min(mtu);
        self.copy_max = self.copy_max.min(mtu);
    }

    /// Whether messages may be held.
    #[must_use]
    #[inline]
    pub fn is_on(&self) -> bool {
        self.delay.is_some()
    }
}
