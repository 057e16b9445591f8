//! What is said under a figure: what the paper found, and what is different here, with the numbers of this run.

use super::end::{BANDWIDTH_BYTES, LATENCY_BYTES};
use super::report::Report;
use super::way::Way;
use super::words::RPC_US;
use crate::netpipe::table::{bytes, significant};
use crate::steps::What;

impl Report {
    pub(super) fn under_latency(&self) -> String {
        let paper = "The paper found SOVIA_SINGLE at 1.24 times the latency of the VI itself and TCP at 6.5 times, and SOVIA_HANDLER slower by one wake-up of a thread.";
        let us = |way| {
            let ns = self.ns(way, false, What::Latency, 4)?;
            Some(What::Latency.value(4, ns))
        };
        let here = || {
            let native = us(Way::Native)?;
            let single = us(Way::Single)?;
            Some(format!(
                " Here SOVIA_SINGLE is at {} times, and SOVIA_DACKS at {}: over a VI in software the layer hands the program's memory to the NIC as it is, and takes messages off \
                 the frame that they came in, so it has neither the descriptors nor the buffers that who uses the VI himself has; and an acknowledgement rides on the answer. TCP is \
                 at {} times, for it wakes a sleeping process on each way, and SOVIA_HANDLER {} µs slower than SOVIA_SINGLE: one thread wakes another, which \
                 takes {} µs on a CPU that both share, and {} on one that is asleep (T_sync).",
                significant(single / native),
                significant(us(Way::Dacks)? / native),
                significant(us(Way::Tcp)? / native),
                significant(us(Way::Handler)? - single),
                significant(self.t_sync_us?),
                significant(self.conditions.wakeup_us?),
            ))
        };
        paper.to_owned() + &here().unwrap_or_default()
    }

    pub(super) fn under_bandwidth(&self) -> String {
        let paper = "The paper found that a window and delayed acknowledgements bring SOVIA to the bandwidth of the VI itself from 16 kB up, and that combining small \
                     messages brings the most below 2 kB.";
        let speed = |way, size| {
            let ns = self.ns(way, false, What::Bandwidth, size)?;
            Some(What::Bandwidth.value(size, ns))
        };
        let here = || {
            let peak = 32 << 10;
            let native = speed(Way::Native, peak)?;
            Some(format!(
                " Here SOVIA_DACKS reaches {} of it with 32 kB, for copies cost what the PCI bus cost then: a VI in software copies into the ring and out of it, SOVIA adds none to \
                 that, and its programs' two buffers stay in the caches where a VI's many do not; the ring of the sockets layer reaches {}. Combining makes 64-byte messages {} times \
                 as fast.",
                significant(speed(Way::Dacks, peak)? / native),
                significant(speed(Way::Ring, peak)? / native),
                significant(speed(Way::Combine, 64)? / speed(Way::Dacks, 64)?),
            ))
        };
        paper.to_owned() + &here().unwrap_or_default()
    }

    /// Where packets are faster than the ring, and why.
    pub(super) fn ring_against_packets(&self) -> Option<String> {
        let behind = |what, sizes: &[usize]| -> Option<Vec<String>> {
            let mut behind = Vec::new();
            for &size in sizes {
                let ns = |way| self.ns(way, false, what, size);
                let packets = [Way::Single, Way::Flowctrl, Way::Dacks, Way::Combine];
                let best = packets.into_iter().filter_map(ns).min_by(f64::total_cmp)?;
                if ns(Way::Ring)? > best * NOISE {
                    behind.push(bytes(size));
                }
            }
            Some(behind)
        };
        let latency = behind(What::Latency, &LATENCY_BYTES)?;
        let stream = behind(What::Bandwidth, &BANDWIDTH_BYTES)?;
        let mut places = Vec::new();
        for (name, sizes) in [("latency", latency), ("streams", stream)] {
            if !sizes.is_empty() {
                places.push(format!("{name} of {}", sizes.join(", ")));
            }
        }
        Some(if places.is_empty() {
            "The ring is nowhere slower than packets.".to_owned()
        } else {
            format!(
                "The ring is faster than packets, or as fast, but for {}: packets are one process's, and poll without end here, while the ring's cursors lie where children of \
                 fork and signal handlers find them, and a program's call looks whether it should sleep; and in streams SOVIA_COMBINE hands over many messages as one packet, \
                 where each that is written to the ring is published at once, for a receiver who may be waiting for it.",
                places.join(" and ")
            )
        })
    }

    pub(super) fn under_waiting(&self) -> String {
        let paper = "The paper found that blocking calls cost 9 µs of latency and 4 % of the bandwidth, and saved the CPU.";
        let here = || {
            let us = |block| Some(self.ns(Way::Single, block, What::Latency, 4)? / 1e3);
            let peak = |block| self.ns(Way::Dacks, block, What::Bandwidth, 32 << 10);
            Some(format!(
                " Here they cost {} µs and {:.0} %: a blocking wait polls for some microseconds before it sleeps, so an answer that comes at once costs no wake-up, and only \
                 a handler thread pays one each time.",
                significant((us(true)? - us(false)?).max(0.0)),
                (peak(true)? / peak(false)? - 1.0).max(0.0) * 100.0,
            ))
        };
        paper.to_owned() + &here().unwrap_or_default()
    }
}

/// Under Table I: how many times faster than FTP over TCP are FTP over the ring, and a copy.
pub(super) fn under_files(ring: Option<f64>, bound: Option<f64>) -> String {
    let mut text = "The paper found FTP over SOVIA 2.1 times as fast as over TCP with the large file, and as fast as a local copy, for the RAM disk was \
the bound."
        .to_owned();
    if let (Some(ring), Some(bound)) = (ring, bound) {
        text += &format!(
            " Here it is {} times, and a local copy {} times: the receiver's write() is nearly all that is left, for the kernel has to find pages for the file, while what TCP does \
             at the same end is gone, though the file is copied once more at the other than by the kernel's sendfile.",
            significant(ring),
            significant(bound)
        );
    }
    text
}

/// Under Figure 10: nanoseconds of an empty RPC over TCP and the ring.
pub(super) fn under_calls(tcp: Option<f64>, ring: Option<f64>) -> String {
    let paper = format!(
        "The paper found an empty RPC to take 149 µs over TCP and 35 over SOVIA, {} of it.",
        significant(RPC_US[1] / RPC_US[0])
    );
    match (tcp, ring) {
        (Some(tcp), Some(ring)) => format!(
            "{paper} Here it takes {} µs over TCP and {} over the ring, {} of it: TCP's time is two wake-ups of a sleeping process, of which the ring's \
             polling needs none, and the rest is libtirpc's own: XDR, and a poll before each read.",
            significant(tcp / 1e3),
            significant(ring / 1e3),
            significant(ring / tcp)
        ),
        _ => paper,
    }
}

/// Less than this nobody should make much of.
const NOISE: f64 = 1.05;
