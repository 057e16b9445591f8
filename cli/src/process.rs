use std::io::{self, Read};
use std::mem;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal,
};

use crate::error::{Context, Result};
use crate::output::complain;

/// All that run, to be [ended](end_all) by whoever is told to end.
static STARTED: Mutex<Started> = Mutex::new(Started {
    told_to_end: false,
    running: Vec::new(),
});

struct Started {
    told_to_end: bool,
    running: Vec<Running>,
}

struct Running {
    id: u32,
    pidfd: OwnedFd,
    /// What it ends by in order.
    signal: Signal,
}

fn started() -> MutexGuard<'static, Started> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Another process; killed when dropped, because it may be spinning or asleep for ever.
pub(crate) struct Process(Child);

impl Process {
    /// Starts `command`.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let mut started = started();
        if started.told_to_end {
            drop(started);
            wait_for_our_end();
        }
        let process = command.spawn().map(Self).context("starting a process")?;
        match pidfd_open(Pid::from_child(&process.0), PidfdFlags::empty()) {
            Ok(pidfd) => started.running.push(Running {
                id: process.id(),
                pidfd,
                signal: Signal::TERM,
            }),
            Err(errno) => {
                // Dropping the process needs the list.
                drop(started);
                return Err(errno).context("pidfd_open");
            }
        }
        Ok(process)
    }

    /// What ends it in order, where that is not `SIGTERM`.
    pub(crate) fn ends_by(&self, signal: Signal) {
        let mut started = started();
        let own = started.running.iter_mut().find(|one| one.id == self.id());
        if let Some(own) = own {
            own.signal = signal;
        }
    }

    /// Starts this program once more. Standard error is ours.
    pub(crate) fn again<'a>(
        arguments: impl IntoIterator<Item = &'a str>,
        stdin: Stdio,
        stdout: Stdio,
    ) -> Result<Self> {
        Self::start(myself().args(arguments).stdin(stdin).stdout(stdout))
    }

    /// The same, with one more environment variable, until our end, however that comes; standard input is empty, standard output ours to forget.
    pub(crate) fn again_with<'a>(
        arguments: impl IntoIterator<Item = &'a str>,
        variable: (&str, &str),
    ) -> Result<Self> {
        let (name, value) = variable;
        let mut command = until_our_end(Path::new(MYSELF), Signal::TERM);
        command.args(arguments).env(name, value);
        Self::start(command.stdin(Stdio::null()).stdout(Stdio::null()))
    }

    /// The pipes, where `Stdio::piped` was given.
    pub(crate) fn pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        self.0.stdin.take().zip(self.0.stdout.take())
    }

    /// Its standard output, where `Stdio::piped` was given.
    pub(crate) fn stdout(&mut self) -> Option<ChildStdout> {
        self.0.stdout.take()
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Whether it has ended.
    pub(crate) fn ended(&mut self) -> Result<bool> {
        let status = self.0.try_wait().context("looking for a process")?;
        Ok(status.is_some())
    }

    /// Asks it to end, with the processes that it has started; one that does not within `patience` is killed when dropped.
    pub(crate) fn stop(&mut self, signal: Signal, patience: Duration) {
        let id = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        if id.is_some_and(|id| kill_process(id, signal).is_ok()) {
            self.wait_for_end(patience);
        }
    }

    /// Waits for its end, but not for ever.
    pub(crate) fn wait_for_end(&mut self, patience: Duration) {
        let start = Instant::now();
        while matches!(self.0.try_wait(), Ok(None)) && start.elapsed() < patience {
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        self.0.wait().context("waiting for a process")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Killing one that has been waited for does nothing.
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait()) {
            complain(format_args!("process {}: {error}", self.0.id()));
        }
        let id = self.id();
        started().running.retain(|one| one.id != id);
    }
}

/// Asks all that were started to end, and waits for that. Nobody starts another one from then on.
pub(crate) fn end_all(patience: Duration) {
    let running = {
        let mut started = started();
        started.told_to_end = true;
        mem::take(&mut started.running)
    };
    for one in &running {
        // It may have ended by itself.
        let _ = pidfd_send_signal(&one.pidfd, one.signal);
    }
    let start = Instant::now();
    for one in &running {
        let left = patience.saturating_sub(start.elapsed());
        let left = Timespec::try_from(left).ok();
        let _ = poll(&mut [PollFd::new(&one.pidfd, PollFlags::IN)], left.as_ref());
    }
}

/// Comes back only if nobody has told us to end: what failed because of that is no failure.
pub(crate) fn unless_told_to_end() {
    if started().told_to_end {
        wait_for_our_end();
    }
}

/// Whoever was told of it ends this process.
fn wait_for_our_end() -> ! {
    loop {
        thread::park();
    }
}

/// What a process says on its standard output. Reading fails when it has been silent for too long.
pub(crate) struct Said {
    stdout: ChildStdout,
    silence_max: Timespec,
}

impl Said {
    pub(crate) fn new(stdout: ChildStdout, silence_max: Duration) -> Result<Self> {
        let silence_max = silence_max.try_into().map_err(io::Error::other);
        Ok(Self {
            stdout,
            silence_max: silence_max.context("a limit on silence")?,
        })
    }
}

impl Read for Said {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut fds = [PollFd::new(&self.stdout, PollFlags::IN)];
        loop {
            match poll(&mut fds, Some(&self.silence_max)) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => return self.stdout.read(buffer),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A program that is asked to end when we do, however we do.
pub(crate) fn until_our_end(program: &Path, signal: Signal) -> Command {
    let mut command = myself();
    let signal = signal.as_raw().to_string();
    let parent = getpid().as_raw_pid().to_string();
    command.args([crate::plain::COMMAND, "until", &signal, &parent, "--"]);
    command.arg(program);
    command
}

/// This program, to be started once more.
pub(crate) fn myself() -> Command {
    // Not by name: the file may have been replaced or removed since we were started.
    Command::new(MYSELF)
}

const MYSELF: &str = "/proc/self/exe";
