//! A socket that other processes have, too.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::RawFd;

use super::{Life, Socket};
use crate::packet::relay;

impl Socket {
    /// Its bytes go through the stand-in from now on, which is at `numbers` and which others may have. Nothing changes for one that has no connection.
    ///
    /// # Errors
    /// The kernel's; then all is as before.
    pub(in crate::packet) fn relay(&self, numbers: &[RawFd]) -> io::Result<()> {
        let (Some(show), Ok(stream)) = (&self.show, self.stream()) else {
            return Ok(());
        };
        let names = (self.local(), self.peer().ok());
        if relay::begin(stream, show, numbers)? {
            // It begins once.
            let _ = self.names.set(names);
        }
        Ok(())
    }

    /// As [`Socket::relay`], of one that listens: whoever has the stand-in accepts from it.
    ///
    /// # Errors
    /// The kernel's; then it is this process's.
    pub(in crate::packet) fn offer(&self) -> io::Result<()> {
        let life = self.lock().clone();
        if let (Some(show), Life::Listening(listener)) = (&self.show, life) {
            relay::offer::offer(&listener, show)?;
            // It begins once.
            let _ = self.names.set((listener.local(), None));
        }
        Ok(())
    }

    /// Whether it is a listener that other processes have, too.
    #[must_use]
    pub fn is_offered(&self) -> bool {
        self.names.get().is_some_and(|(_, peer)| peer.is_none()) && self.stream.get().is_none()
    }

    /// A connection that was accepted from such a listener: between those ends.
    pub(in crate::packet) fn taken_from(&self, [local, peer]: [SocketAddrV4; 2]) -> Self {
        let taken = Self::of(self.family, &self.adapter);
        // Nobody else has it.
        let _ = taken.names.set((local, Some(peer)));
        taken
    }
}
