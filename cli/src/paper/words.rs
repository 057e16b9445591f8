//! The paper's figures (Giganet cLAN, two Pentium III of 500 MHz), and what is to be said under ours.

use super::ftp::By;
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

/// Table I, Mbit/s of its two files, where there is such a row.
pub(super) fn ftp_mbps(by: By, way: Way) -> Option<[f64; 2]> {
    match (by, way) {
        (By::Ftp, Way::Tcp) => Some([262.0, 254.0]),
        // SOVIA in the paper is what carries FTP; here the ring is.
        (By::Ftp, Way::Ring) => Some([573.0, 532.0]),
        (By::Copy, _) => Some([611.0, 538.0]),
        _ => None,
    }
}

/// An empty RPC, µs there and back: TCP on cLAN, and SOVIA.
pub(super) const RPC_US: [f64; 2] = [149.0, 35.0];

pub(super) const OWN_TRANSFER: &str = "Unmodified programs ask for TCP, and that goes over the ring; SOVIA's packets are for who asks for them by name. So what is called own \
transfer is not FTP: two programs of ours that read, send, receive and write 64 kB at a time, over TCP, over packets (SOVIA_COMBINE, sleeping while they wait) and over the ring.";

pub(super) const OWN_MESSAGES: &str = "Messages alone are of the same lengths (44 bytes and the argument, 28 and the result) between two programs of ours that do nothing else: \
libtirpc asks for TCP, and so meets the ring and no packets.";
