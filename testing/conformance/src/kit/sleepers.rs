//! Threads that sleep in a call while something ends it.

use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use super::{Log, Must, until};
use crate::lab::Lab;

/// What `wait` returns in three threads that sleep in it when `end` is called.
#[track_caller]
pub(crate) fn three_sleepers<T: Send>(
    lab: &dyn Lab,
    wait: impl Fn() -> T + Sync,
    end: impl FnOnce(),
) -> Vec<T> {
    let threads: Log<PathBuf> = Log::default();
    thread::scope(|scope| {
        let waits: Vec<_> = (0..3)
            .map(|_| {
                let (part, threads, wait) = (lab.take_part(), &threads, &wait);
                scope.spawn(move || {
                    let _part = part;
                    threads.note(fs::read_link("/proc/thread-self").must());
                    wait()
                })
            })
            .collect();
        until(lab, "three threads to sleep", || {
            threads.len() == 3 && threads.all().iter().all(|thread| is_asleep(thread))
        });
        end();
        while !waits.iter().all(thread::ScopedJoinHandle::is_finished) {
            lab.pass();
        }
        let ends = waits.into_iter().map(thread::ScopedJoinHandle::join);
        ends.map(|end| end.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

fn is_asleep(thread: &Path) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(thread).join("stat"));
    let stat = stat.unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with('S'))
}
