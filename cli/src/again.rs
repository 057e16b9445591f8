use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::error::{Context, Result};

/// This program once more, as another process; killed when dropped, because it may be spinning or asleep for ever.
pub(crate) struct Again(Child);

impl Again {
    /// Starts it. Standard error is ours.
    pub(crate) fn start<'a>(
        arguments: impl IntoIterator<Item = &'a str>,
        stdin: Stdio,
        stdout: Stdio,
    ) -> Result<Self> {
        // Not by name: the file may have been replaced or removed since we were started.
        let child = Command::new("/proc/self/exe")
            .args(arguments)
            .stdin(stdin)
            .stdout(stdout)
            .spawn()
            .context("starting this program once more")?;
        Ok(Self(child))
    }

    /// The pipes, where `Stdio::piped` was given.
    pub(crate) fn pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        self.0.stdin.take().zip(self.0.stdout.take())
    }
}

impl Drop for Again {
    fn drop(&mut self) {
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait()) {
            eprintln!("sovia: process {}: {error}", self.0.id());
        }
    }
}
