//! The other process of a conversation.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::kit::{Must, until};
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

    /// Tells it to go on to what its role does next.
    #[track_caller]
    pub(crate) fn tell(&mut self) {
        let stdin = self.stdin.as_mut().must();
        stdin.write_all(b"\n").must();
    }

    /// SIGSTOP; returns when all of it stands still.
    #[track_caller]
    pub(crate) fn stop(&self, lab: &dyn Lab) {
        self.shell("kill -STOP $pid");
        let tasks = format!("/proc/{}/task", self.child.id());
        until(lab, "the other process to stand still", || {
            fs::read_dir(&tasks).must().all(|task| {
                let stat = fs::read_to_string(task.must().path().join("stat")).must();
                stat.rsplit_once(") ")
                    .is_some_and(|(_, rest)| rest.starts_with('T'))
            })
        });
    }

    /// Interrupts whatever it does, without a handler that would notice.
    #[track_caller]
    pub(crate) fn stop_and_continue(&self, times: u32) {
        let step = "kill -STOP $pid && kill -CONT $pid || exit 1; i=$((i + 1))";
        self.shell(&format!("i=0; while [ $i -lt {times} ]; do {step}; done"));
    }

    #[track_caller]
    fn shell(&self, script: &str) {
        let script = format!("pid={}; {script}", self.child.id());
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
