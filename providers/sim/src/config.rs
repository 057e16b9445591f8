//! What a simulated network is like.

use std::time::Duration;

/// A simulated network.
#[derive(Debug, Clone, Copy)]
pub struct FabricConfig {
    /// Decides everything that is left to chance.
    pub seed: u64,
    /// How time passes.
    pub time: Time,
    /// From one host to another.
    pub latency: Duration,
    /// At most this much is added to the latency of a packet. Alone it does not reorder.
    pub jitter: Duration,
    /// Bits per second of each direction of a connection; `None` is without limit.
    pub bandwidth_bps: Option<u64>,
    /// What goes wrong.
    pub noise: Noise,
    /// Most bytes of payload in a frame.
    pub frame_max: u32,
    /// Most frames of one direction of a connection that the receiver has not taken, 1 to 64.
    pub window: u32,
    /// How far a thread moves time that polls the same VI in vain again; up to 16 times as far when
    /// it does so for long.
    pub poll_step: Duration,
    /// Retransmissions in a row without an answer before the medium gives up.
    pub tries_max: u32,
    /// Most lines that the trace keeps; 0 for no trace.
    pub trace_max: usize,
}

impl Default for FabricConfig {
    /// A quiet network of 10 µs latency and Ethernet's frames, for one thread.
    fn default() -> Self {
        Self {
            seed: 1,
            time: Time::Gated { threads: 1 },
            latency: Duration::from_micros(10),
            jitter: Duration::ZERO,
            bandwidth_bps: None,
            noise: Noise::default(),
            frame_max: 1500,
            window: 64,
            poll_step: Duration::from_nanos(100),
            tries_max: 12,
            trace_max: 100_000,
        }
    }
}

impl FabricConfig {
    /// The first retransmission timer: beyond the round trip of a full window.
    pub(crate) fn rto(&self) -> Duration {
        let frames = u64::from(self.window);
        let queueing = self.serialization(frames * (u64::from(self.frame_max) + 64));
        (self.latency + self.jitter) * 4 + queueing + Duration::from_micros(20)
    }

    /// How long `bytes` occupy the line.
    pub(crate) fn serialization(&self, bytes: u64) -> Duration {
        match self.bandwidth_bps {
            Some(bps) if bps > 0 => Duration::from_nanos(bytes.saturating_mul(8_000_000_000) / bps),
            _ => Duration::ZERO,
        }
    }
}

/// How time passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// It stands still while any of so many threads computes. When all of them wait in the fabric
    /// it goes on to the next event or deadline; when some poll and the others wait, by
    /// [`FabricConfig::poll_step`]. Threads that come and go are counted with
    /// [`Fabric::take_part`](crate::Fabric::take_part).
    Gated {
        /// Threads that take part from the start.
        threads: usize,
    },
    /// Frames arrive and retransmission timers fire at once, in order; deadlines are in real time.
    /// For any number of threads that nobody has counted, as in a C program.
    Free,
}

/// What goes wrong, in packets per million.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Noise {
    /// Are lost.
    pub loss_ppm: u32,
    /// Arrive twice.
    pub duplicate_ppm: u32,
    /// Arrive so late that others overtake them.
    pub reorder_ppm: u32,
    /// Arrive with one bit changed.
    pub corrupt_ppm: u32,
}

impl Noise {
    /// Everything goes wrong equally often.
    #[must_use]
    pub fn of_each_kind(ppm: u32) -> Self {
        Self {
            loss_ppm: ppm,
            duplicate_ppm: ppm,
            reorder_ppm: ppm,
            corrupt_ppm: ppm,
        }
    }
}
