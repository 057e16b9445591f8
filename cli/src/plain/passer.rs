//! A program that comes and goes on the CPUs, as compilers and their like do.

use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Computes for 1 to 20 ms, sleeps for 1 to 10 ms, and so on for ever; each process in another order.
pub(super) fn come_and_go() -> ! {
    let mut seed = u64::from(std::process::id());
    let mut within = |first_ms: u64, last_ms: u64| {
        // Knuth's generator; its upper bits are the better ones.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005);
        seed = seed.wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis(first_ms + (seed >> 33) % (last_ms - first_ms + 1))
    };
    loop {
        let until = computed() + within(1, 20);
        while computed() < until {
            std::hint::spin_loop();
        }
        thread::sleep(within(1, 10));
    }
}

/// The time on the CPU, so that one who is kept off it stays for longer.
fn computed() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    )
}
