//! The machine that a figure was measured on.

use std::fmt;
use std::fs;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::system::uname;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, sched_yield};

use crate::sync::{AtomicU64, Ordering};

mod bare;
pub use bare::bare_round_trip;

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

/// What it takes to move a cache line from one CPU to another, one way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Handoff {
    /// The best block.
    pub best_ns: f64,
    /// The median block.
    pub median_ns: f64,
}

/// Bounces a cache line between the first two CPUs of the affinity mask: 20 blocks of 1000 round trips, normally in under 10 ms.
///
/// # Errors
/// A thread could not be started or pinned.
pub fn handoff() -> io::Result<Option<Handoff>> {
    let Some((near, far)) = two_cpus()? else {
        return Ok(None);
    };
    let line = Arc::new(Line::default());
    let echo = on_cpu(far, {
        let line = Arc::clone(&line);
        move || echo(&line, 0..BLOCKS * ROUNDS)
    })?;
    let timed = on_cpu(near, move || time_blocks(&line))?;

    let blocks = join(timed)?;
    join(echo)?;
    let sorted = sorted(blocks);
    Ok(Some(Handoff {
        best_ns: sorted[0],
        median_ns: sorted[sorted.len() / 2],
    }))
}

/// Wakes a thread that sleeps on an otherwise idle CPU; the median microseconds from before the call until it runs.
///
/// # Errors
/// A thread could not be started or pinned.
pub fn wakeup() -> io::Result<Option<f64>> {
    let Some((near, far)) = two_cpus()? else {
        return Ok(None);
    };
    let line = Arc::new(Line::default());
    let sleeper = on_cpu(far, {
        let line = Arc::clone(&line);
        move || sleep_and_stamp(&line)
    })?;
    let stamps = on_cpu(near, {
        let thread = sleeper.thread().clone();
        move || wake_and_stamp(&line, &thread)
    })?;

    let woken = join(sleeper)?;
    let called = join(stamps)?;
    let micros = called
        .iter()
        .zip(&woken)
        .map(|(called, woken)| woken.saturating_duration_since(*called).as_secs_f64() * 1e6);
    let sorted = sorted(micros.collect());
    Ok(Some(sorted[sorted.len() / 2]))
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

const BLOCKS: u64 = 20;
const ROUNDS: u64 = 1000;
const WAKEUPS: u64 = 51;

/// Long enough for an idle CPU to halt.
const ASLEEP: Duration = Duration::from_micros(150);

/// Alone on its cache line, and on the one that the prefetcher fetches along.
#[derive(Default)]
#[repr(align(128))]
struct Line {
    turn: AtomicU64,
}

impl Line {
    /// Spins until the other side has stored `turn`. It yields now and then, should both have come to share a CPU after all.
    fn await_turn(&self, turn: u64) {
        let mut polls = 0u32;
        while self.turn.load(Ordering::Acquire) != turn {
            polls = polls.wrapping_add(1);
            if polls.is_multiple_of(10_000) {
                sched_yield();
            }
            std::hint::spin_loop();
        }
    }

    fn pass(&self, turn: u64) {
        // Pairs with the acquire load in `await_turn`.
        self.turn.store(turn, Ordering::Release);
    }
}

fn echo(line: &Line, rounds: Range<u64>) {
    for round in rounds {
        line.await_turn(2 * round + 1);
        line.pass(2 * round + 2);
    }
}

fn time_blocks(line: &Line) -> Vec<f64> {
    let mut blocks = Vec::new();
    for block in 0..BLOCKS {
        let start = Instant::now();
        for round in block * ROUNDS..(block + 1) * ROUNDS {
            line.pass(2 * round + 1);
            line.await_turn(2 * round + 2);
        }
        blocks.push(start.elapsed().as_secs_f64() * 1e9 / (2 * ROUNDS) as f64);
    }
    blocks
}

fn sleep_and_stamp(line: &Line) -> Vec<Instant> {
    let mut stamps = Vec::new();
    for round in 0..WAKEUPS {
        line.pass(2 * round + 1);
        // Parking is a futex wait, and may end for no reason.
        while line.turn.load(Ordering::Acquire) != 2 * round + 2 {
            thread::park();
        }
        stamps.push(Instant::now());
    }
    stamps
}

fn wake_and_stamp(line: &Line, sleeper: &thread::Thread) -> Vec<Instant> {
    let mut stamps = Vec::new();
    for round in 0..WAKEUPS {
        line.await_turn(2 * round + 1);
        let ready = Instant::now();
        while ready.elapsed() < ASLEEP {
            std::hint::spin_loop();
        }
        stamps.push(Instant::now());
        line.pass(2 * round + 2);
        sleeper.unpark();
    }
    stamps
}

fn two_cpus() -> io::Result<Option<(usize, usize)>> {
    Ok(match affinity()?.as_slice() {
        [one, other, ..] => Some((*one, *other)),
        _ => None,
    })
}

fn on_cpu<T: Send + 'static>(
    cpu: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<io::Result<T>>> {
    // A thread that did not get its CPU works all the same, because the other one waits for it; the error comes after.
    thread::Builder::new().spawn(move || {
        let pinned = pin(cpu);
        let done = work();
        pinned.map(|()| done)
    })
}

fn join<T>(thread: JoinHandle<io::Result<T>>) -> io::Result<T> {
    thread
        .join()
        .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}

fn sorted(mut figures: Vec<f64>) -> Vec<f64> {
    figures.sort_by(f64::total_cmp);
    figures
}

fn unknown() -> String {
    "unknown".to_owned()
}

#[cfg(test)]
mod tests {
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
