//! Memory that bulk leaves behind: a connection that is idle keeps a few pages, whoever sleeps on it in `poll` or in `epoll_wait`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use hostile::program::Program;

#[test]
fn in_poll() {
    is_given_back("poll");
}

#[test]
fn in_epoll() {
    is_given_back("epoll");
}

fn is_given_back(how: &str) {
    let program = Program::compile("leftover");
    let mut command = program.preloaded();
    let mut running = Running(
        command
            .arg(how)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it was compiled"),
    );
    let said = running.0.stdout.take().expect("a pipe");
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line).expect("text");
    assert_eq!(line, "asleep\n");
    let begun = Instant::now();
    loop {
        let bytes = memory_of(running.0.id()).expect("it left TCP: 32 MB went over it");
        if bytes <= KEPT {
            break;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "{bytes} bytes are kept in {how}"
        );
        // tidy: sleep because the program does nothing that could be waited for
        thread::sleep(Duration::from_millis(20));
    }
}

/// Bytes of memory behind the process's one connection.
fn memory_of(pid: u32) -> Option<u64> {
    let numbers = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let paths = numbers.filter_map(|number| Some(number.ok()?.path()));
    let is_stream = |path: &std::path::PathBuf| {
        fs::read_link(path)
            .is_ok_and(|name| name.to_string_lossy().starts_with("/memfd:sovia-stream"))
    };
    let stream = paths.into_iter().find(is_stream)?;
    Some(fs::metadata(stream).ok()?.blocks() * 512)
}

/// A program that sleeps until it is stopped; its child goes with it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It is ours, and has not been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The page of cursors, and the first of each ring; twice that, for what else may have been touched.
const KEPT: u64 = 24 << 10;
/// Far beyond the seconds that it takes.
const PATIENCE: Duration = Duration::from_secs(60);
