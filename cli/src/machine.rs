use std::fmt;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;
use sys::host::{self, Handoff, Machine};

use crate::error::{Context, Error, Result};
use crate::netpipe;
use crate::netpipe::plan::Placement;

/// What belongs beside figures: the machine before the first measurement, and what had become of it after the last.
#[derive(Debug, Serialize)]
pub(crate) struct Conditions {
    pub(crate) cpu_model: String,
    pub(crate) kernel: String,
    pub(crate) affinity: Vec<usize>,
    /// One-way hand-off of a cache line between the first two CPUs, before and after; `None` with a single CPU.
    pub(crate) handoff_ns: Option<[f64; 2]>,
    /// Nanoseconds for 64 bytes there and back between these CPUs with nothing around them, before and after.
    pub(crate) bare_ns: Option<[f64; 2]>,
    /// One-way wake-up of a thread on an idle CPU, before.
    pub(crate) wakeup_us: Option<f64>,
    /// Of TCP connections of programs of our own.
    pub(crate) congestion: String,
    /// Of all others: what the host gives to whoever does not ask, or may not have what he asks for.
    pub(crate) host_congestion: String,
}

impl Conditions {
    /// Completes what was measured before the run.
    pub(crate) fn since(before: Machine) -> Result<Self> {
        let after = host::handoff().context("cache-line hand-off")?;
        let bare = host::bare_round_trip().context("bare exchange of cache lines")?;
        let median = |handoff: Handoff| handoff.median_ns;
        Ok(Self {
            cpu_model: before.cpu_model,
            kernel: before.kernel,
            affinity: before.affinity,
            handoff_ns: before
                .handoff
                .zip(after)
                .map(|(before, after)| [median(before), median(after)]),
            bare_ns: before
                .bare_ns
                .zip(bare)
                .map(|(before, after)| [before, after]),
            wakeup_us: before.wakeup_us,
            congestion: netpipe::congestion()?
                .map_or_else(|| before.congestion_control.clone(), str::to_owned),
            host_congestion: before.congestion_control,
        })
    }
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus: Vec<_> = self.affinity.iter().map(usize::to_string).collect();
        write!(
            f,
            "machine: {}; CPUs {}; {}; TCP {}",
            self.cpu_model,
            cpus.join(","),
            self.kernel,
            self.congestion,
        )?;
        if self.host_congestion != self.congestion {
            write!(f, " ({} in programs not ours)", self.host_congestion)?;
        }
        if let Some([before, after]) = self.handoff_ns {
            let [was, is] = [near_or_far(before), near_or_far(after)];
            write!(
                f,
                "; cache line {before:.0} ns ({was}) before, {after:.0} ns ({is}) after"
            )?;
        }
        if let Some([before, after]) = self.bare_ns {
            write!(
                f,
                "; 64 B there and back, bare lines: {before:.0} ns before, {after:.0} ns after"
            )?;
        }
        match self.wakeup_us {
            Some(wakeup) => write!(f, "; wake-up {wakeup:.1} µs"),
            None => Ok(()),
        }
    }
}

pub(crate) fn near_or_far(handoff_ns: f64) -> &'static str {
    if handoff_ns < host::NEAR_NS {
        "near"
    } else {
        "far"
    }
}

/// Describes this machine; call it before the first measurement.
pub(crate) fn measure() -> Result<Machine> {
    Machine::measure().context("describing the machine")
}

/// Binds this process to one CPU.
pub(crate) fn pin(cpu: usize) -> Result<()> {
    host::pin(cpu).context("sched_setaffinity")
}

/// Keeps this process to these CPUs.
pub(crate) fn keep_to(cpus: &[usize]) -> Result<()> {
    let mut mask = CpuSet::new();
    for &cpu in cpus {
        mask.set(cpu);
    }
    sched_setaffinity(None, &mask).context("sched_setaffinity")
}

/// The CPUs that this process may use, to come back to.
pub(crate) struct Affinity(CpuSet);

impl Affinity {
    pub(crate) fn current() -> Result<Self> {
        sched_getaffinity(None)
            .map(Self)
            .context("sched_getaffinity")
    }

    pub(crate) fn restore(&self) -> Result<()> {
        sched_setaffinity(None, &self.0).context("sched_setaffinity")
    }
}

/// The CPUs for the passive and the active process.
///
/// # Errors
/// Two CPUs are wanted and this process may use one only.
pub(crate) fn cpus(placement: Placement) -> Result<[usize; 2]> {
    let allowed = host::affinity().context("sched_getaffinity")?;
    match (placement, allowed.as_slice()) {
        (Placement::One, [.., last]) => Ok([*last, *last]),
        (Placement::Two, [first, second, ..]) => Ok([*first, *second]),
        _ => Err(Error::Misuse(format!(
            "{placement} are asked for, but the affinity mask allows {allowed:?} only"
        ))),
    }
}
