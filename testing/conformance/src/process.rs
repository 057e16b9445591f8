//! The other process of a conversation.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::kit::Must;
use crate::lab::Lab;

/// A running `conformance-peer`. It is killed when this is dropped.
pub(crate) struct Process {
    child: Child,
    /// Closed to ask it to end.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    /// With the NIC of the lab.
    #[track_caller]
    pub(crate) fn of(lab: &dyn Lab, role: &str, arguments: &[&OsStr]) -> Self {
        let mut command = Command::new(lab.peer_program().must());
        command.args(lab.peer_arguments());
        Self::run(command, role, arguments)
    }

    /// With the NIC over shared memory.
    #[track_caller]
    pub(crate) fn start(program: &Path, role: &str, arguments: &[&OsStr]) -> Self {
        Self::run(Command::new(program), role, arguments)
    }

    #[track_caller]
    fn run(mut command: Command, role: &str, arguments: &[&OsStr]) -> Self {
        let mut child = command
            .arg(role)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .must();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().must());
        Self {
            child,
            stdin,
            stdout,
        }
    }

    /// The next line that it prints.
    #[track_caller]
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).must();
        assert!(line.ends_with('\n'), "the other process ended: {line:?}");
        line.trim_end().to_owned()
    }

    /// SIGKILL; returns when it is dead.
    #[track_caller]
    pub(crate) fn kill(&mut self) {
        self.child.kill().must();
        self.child.wait().must();
    }

    /// Interrupts whatever it does, without a handler that would notice.
    #[track_caller]
    pub(crate) fn stop_and_continue(&self, times: u32) {
        let pid = self.child.id();
        let script = format!(
            "i=0; while [ $i -lt {times} ]; do kill -STOP {pid} && kill -CONT {pid} || exit 1; i=$((i + 1)); done"
        );
        let status = Command::new("sh").args(["-c", &script]).status().must();
        assert!(status.success(), "kill: {status}");
    }

    /// Asks it to end, which must succeed.
    #[track_caller]
    pub(crate) fn end(mut self) {
        drop(self.stdin.take());
        let status = self.child.wait().must();
        assert!(status.success(), "the other process: {status}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        if matches!(self.child.try_wait(), Ok(None)) && self.child.kill().is_ok() {
            drop(self.child.wait());
        }
    }
}
