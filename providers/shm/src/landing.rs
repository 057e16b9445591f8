//! RDMA writes take effect in the order in which they were posted, by whichever way they go.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use sys::ring::Producer;

/// What a link knows of the RDMA writes whose data went through the ring. The peer copies it to its place when it comes to it; what is written
/// into the peer's memory meanwhile would be covered by what is older.
#[derive(Default)]
pub(crate) struct Landing {
    /// Frames published when the last of that data went into the ring, until the peer has released it.
    written: Option<u32>,
    /// Frames published when the peer was last waited for in vain.
    vain: Option<u32>,
}

impl Landing {
    /// The frame published last held data of an RDMA write.
    #[inline]
    pub(crate) fn note(&mut self, producer: &Producer) {
        self.written = Some(producer.published());
    }

    /// Whether there is any.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.written.is_some()
    }

    /// Whether all of it is in its place. Waits for that for a moment, or a stream of writes that has begun in the ring would stay there; but not
    /// at each call where the peer does not attend: it must not cost the time of whoever looks after other connections, too.
    pub(crate) fn is_done(&mut self, producer: &mut Producer) -> bool {
        let Some(written) = self.written else {
            return true;
        };
        let published = producer.published();
        let mut until = None;
        while !producer.has_released(written) {
            let waits = |vain| published.wrapping_sub(vain) >= FRAMES_BETWEEN;
            if until.is_none() && !self.vain.is_none_or(waits) {
                return false;
            }
            let now = Instant::now();
            if now > *until.get_or_insert(now + WAIT_MAX) {
                self.vain = Some(published);
                return false;
            }
            spin_loop();
        }
        *self = Self::default();
        true
    }
}

/// What a peer that polls needs to copy a whole ring.
const WAIT_MAX: Duration = Duration::from_micros(50);
/// Frames that go by after a wait in vain, before the next.
const FRAMES_BETWEEN: u32 = 16;
