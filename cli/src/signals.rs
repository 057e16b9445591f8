//! Which signals are ours to handle.

use std::ffi::c_int;
use std::fs;

/// Those of `signals` that have not been ignored since our start: whoever ignores them, as `nohup` does, has a reason, and a handler would undo it.
pub(crate) fn heeded(signals: &[c_int]) -> Vec<c_int> {
    // To ask sigaction(2) takes unsafe code. Where there is no /proc nothing is known to be ignored.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored(&status).unwrap_or(0);
    let is_heeded = |&signal: &c_int| ignored >> (signal - 1) & 1 == 0;
    signals.iter().copied().filter(is_heeded).collect()
}

/// The set of proc_pid_status(5), the first signal in its lowest bit.
fn ignored(status: &str) -> Option<u64> {
    let set = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(set.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_set_is_read() {
        assert_eq!(
            ignored("SigBlk:\t0000\nSigIgn:\t0000000000001003\n"),
            Some(0x1003)
        );
        assert_eq!(ignored("Name:\tx\n"), None);
        // Every program of Rust's ignores it.
        let all = [signal_hook::consts::SIGPIPE, signal_hook::consts::SIGTERM];
        assert_eq!(heeded(&all), [signal_hook::consts::SIGTERM]);
    }
}
