//! The paper's figures (Giganet cLAN, two Pentium III of 500 MHz), and what is to be said under ours.

use super::way::Way;

/// One-way latency of 4 bytes, µs, where the paper gives a number.
pub(super) fn latency_us(way: Way) -> Option<f64> {
    match way {
        Way::Tcp => Some(55.0),
        Way::Native => Some(8.5),
        // 16 µs above SOVIA_SINGLE.
        Way::Handler => Some(26.5),
        Way::Single => Some(10.5),
        // "1–2 µs" for the timer.
        Way::Combine => Some(12.0),
        Way::Flowctrl | Way::Dacks | Way::Ring => None,
    }
}

/// Bandwidth of 32 kB messages, Mbit/s.
pub(super) fn bandwidth_mbps(way: Way) -> Option<f64> {
    match way {
        Way::Tcp => Some(450.0),
        Way::Native => Some(815.0),
        Way::Dacks => Some(814.0),
        _ => None,
    }
}

/// With blocking calls: 4 bytes, µs.
pub(super) const BLOCKING_LATENCY_US: f64 = 19.4;
/// With blocking calls: the peak, Mbit/s.
pub(super) const BLOCKING_BANDWIDTH_MBPS: f64 = 780.0;
/// T_sync on one processor and on two, µs.
pub(super) const T_SYNC_US: [f64; 2] = [17.0, 31.0];

pub(super) const UNDER_LATENCY: &str = "The paper found SOVIA_SINGLE 2 µs above the VI itself, which was a sixth of TCP's latency, and SOVIA_HANDLER slower by \
one wake-up of a thread. Today the wire is memory that two CPUs share, so what remains is the work of the layers: an acknowledgement of its own for each message is no longer \
hidden behind a slow wire, and TCP's cost is two wake-ups of processes and nothing else.";

pub(super) const UNDER_BANDWIDTH: &str = "The paper found that a window and delayed acknowledgements bring SOVIA to the VI's own bandwidth from 16 kB up, and that combining small \
messages brings the most below 2 kB. Today copies cost what the PCI bus cost then: a VI in software copies into the ring and out of it, and a stream once more out of its receive buffer \
(and, where registering buys nothing, once more into its send buffer), which the ring of the sockets layer leaves out.";

pub(super) const UNDER_WAITING: &str = "The paper found that blocking calls cost 9 µs of latency and 4 % of the bandwidth, and saved the CPU. Today a blocking wait polls for some \
microseconds before it sleeps, so an answer that comes at once costs no wake-up, and only a handler thread pays T_sync each time.";

pub(super) const LEFT_OUT: &str =
    "Table I (FTP) and Figure 10 (RPC) are not measured by this command.";
