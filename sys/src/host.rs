//! The machine that a figure was measured on.

use std::fmt;
use std::fs;
use std::io;

use rustix::system::uname;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

mod bare;
mod line;

pub use bare::bare_round_trip;
pub use line::{Handoff, handoff, wakeup};

/// What belongs beside every figure; [`measure`](Self::measure) takes some 20 ms.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The CPUs that the calling thread may use.
    pub affinity: Vec<usize>,
    /// The algorithm of new TCP sockets.
    pub congestion_control: String,
    /// As the kernel names it.
    pub cpu_model: String,
    /// Between the first two CPUs of the affinity mask; `None` with a single one.
    pub handoff: Option<Handoff>,
    /// [`bare_round_trip`] of 64 bytes; `None` with a single CPU.
    pub bare_ns: Option<f64>,
    /// The name of the host.
    pub hostname: String,
    /// Name and release.
    pub kernel: String,
    /// Median one-way latency of waking an idle CPU, in microseconds; `None` with a single CPU.
    pub wakeup_us: Option<f64>,
}

impl Machine {
    /// Describes this machine, measuring on the first two CPUs of the affinity mask.
    ///
    /// # Errors
    /// A thread could not be started or pinned.
    pub fn measure() -> io::Result<Self> {
        Ok(Self {
            affinity: affinity()?,
            congestion_control: congestion_control(),
            cpu_model: cpu_model(),
            handoff: handoff()?,
            bare_ns: bare_round_trip()?,
            hostname: hostname(),
            kernel: kernel(),
            wakeup_us: wakeup()?,
        })
    }

    /// How the two CPUs lie to each other.
    pub fn placement(&self) -> Placement {
        match self.handoff {
            None => Placement::Single,
            Some(handoff) if handoff.median_ns < NEAR_NS => Placement::Near,
            Some(_) => Placement::Far,
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus: Vec<_> = self.affinity.iter().map(usize::to_string).collect();
        write!(
            f,
            "{}, CPU {}, {}",
            self.cpu_model,
            cpus.join(","),
            self.placement()
        )?;
        if let Some(handoff) = self.handoff {
            write!(f, " (cache line {:.0} ns one way)", handoff.median_ns)?;
        }
        if let Some(wakeup_us) = self.wakeup_us {
            write!(f, ", wake-up {wakeup_us:.1} us")?;
        }
        write!(
            f,
            ", {}, {}, host {}",
            self.kernel, self.congestion_control, self.hostname
        )
    }
}

/// How two CPUs lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// They share no cache.
    Far,
    /// They share a cache.
    Near,
    /// There is but one.
    Single,
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Far => "far",
            Self::Near => "near",
            Self::Single => "single CPU",
        })
    }
}

/// Binds the calling thread, and those it will start, to one CPU.
///
/// # Errors
/// `InvalidInput` if there is no such CPU or the cpuset forbids it.
pub fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut mask = CpuSet::new();
    mask.set(cpu);
    Ok(sched_setaffinity(None, &mask)?)
}

/// The CPUs that the calling thread may use, in ascending order.
///
/// # Errors
/// `EINVAL` on a machine with more than 1024 CPUs.
pub fn affinity() -> io::Result<Vec<usize>> {
    let mask = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&cpu| mask.is_set(cpu))
        .collect())
}

/// The model name of the first CPU; `unknown` where /proc does not tell.
pub fn cpu_model() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or_else(unknown, |(_, model)| model.trim().to_owned())
}

/// Name and release of the kernel, such as `Linux 6.18.44`.
pub fn kernel() -> String {
    let name = uname();
    format!(
        "{} {}",
        name.sysname().to_string_lossy(),
        name.release().to_string_lossy()
    )
}

/// The name of the host.
pub fn hostname() -> String {
    uname().nodename().to_string_lossy().into_owned()
}

/// The congestion control of new TCP sockets; `unknown` where /proc does not tell.
pub fn congestion_control() -> String {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")
        .map_or_else(|_| unknown(), |name| name.trim().to_owned())
}

/// Below this, one way, two CPUs share a cache. Measured: 41-45 ns with a shared L3, 170 and more without.
pub const NEAR_NS: f64 = 90.0;

fn unknown() -> String {
    "unknown".to_owned()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn measures_this_machine() {
        let machine = Machine::measure().expect("two threads");
        println!("{machine}");
        assert!(!machine.affinity.is_empty());
        assert_eq!(machine.handoff.is_some(), machine.affinity.len() > 1);
        assert_eq!(machine.wakeup_us.is_some(), machine.affinity.len() > 1);
        if let Some(handoff) = machine.handoff {
            assert!(handoff.best_ns > 0.0 && handoff.best_ns <= handoff.median_ns);
        }
    }

    #[test]
    fn says_how_cpus_lie() {
        let machine = |affinity: Vec<usize>, median_ns: Option<f64>| Machine {
            affinity,
            congestion_control: "cubic".to_owned(),
            cpu_model: "Model".to_owned(),
            handoff: median_ns.map(|median_ns| Handoff {
                best_ns: median_ns,
                median_ns,
            }),
            bare_ns: None,
            hostname: "here".to_owned(),
            kernel: "Linux 6".to_owned(),
            wakeup_us: median_ns.map(|_| 20.0),
        };
        assert_eq!(
            machine(vec![0, 1], Some(44.0)).to_string(),
            "Model, CPU 0,1, near (cache line 44 ns one way), wake-up 20.0 us, Linux 6, cubic, host here",
        );
        assert_eq!(machine(vec![0, 1], Some(170.0)).placement(), Placement::Far);
        assert_eq!(
            machine(vec![3], None).to_string(),
            "Model, CPU 3, single CPU, Linux 6, cubic, host here",
        );
    }

    #[test]
    fn pins_only_the_calling_thread() {
        let all = affinity().expect("affinity");
        let last = all[all.len() - 1];
        let pinned = thread::spawn(move || {
            pin(last).expect("pin");
            affinity().expect("affinity")
        });
        assert_eq!(pinned.join().expect("thread"), [last]);
        assert_eq!(affinity().expect("affinity"), all);
        assert_eq!(
            pin(usize::MAX).expect_err("no such CPU").kind(),
            io::ErrorKind::InvalidInput
        );
    }
}
