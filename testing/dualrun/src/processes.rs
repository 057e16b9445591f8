//! The processes of a run: where each stands, and ending them. They are known by a word in their environment,
//! which children inherit, daemons too.

use std::fmt::Write;
use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// The variable whose value names the run.
pub(crate) const RUN: &str = "DUAL_RUN";

/// Ids of all processes of the run, except zombies.
pub(crate) fn of_run(run: &str) -> Vec<u32> {
    let word = format!("{RUN}={run}");
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let mut found: Vec<u32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| {
                environment
                    .split(|&byte| byte == 0)
                    .any(|entry| entry == word.as_bytes())
            })
        })
        .collect();
    found.sort_unstable();
    found
}

/// What each thread of each process is doing, for the person who reads the failure.
pub(crate) fn describe(pids: &[u32]) -> String {
    let mut text = String::new();
    let read = |path: String| fs::read(path).unwrap_or_default();
    for pid in pids {
        let command = read(format!("/proc/{pid}/cmdline"));
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        // A String takes whatever is written to it.
        let _ = writeln!(text, "  process {pid}: {command}");
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let task = task.path();
            let field = |name: &str| {
                let bytes = read(format!("{}/{name}", task.display()));
                String::from_utf8_lossy(&bytes).trim().to_owned()
            };
            let stat = field("stat");
            let state = stat.rsplit(')').next().unwrap_or("").trim();
            let _ = writeln!(
                text,
                "    thread {}: state {}, in {}, syscall {}",
                task.file_name().unwrap_or_default().to_string_lossy(),
                state.chars().next().unwrap_or('?'),
                field("wchan"),
                field("syscall"),
            );
            for line in field("stack").lines() {
                let _ = writeln!(text, "      {line}");
            }
        }
    }
    text
}

/// Kills each, by its id.
pub(crate) fn end(pids: &[u32]) {
    for &pid in pids {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            // It may have ended by itself meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}
