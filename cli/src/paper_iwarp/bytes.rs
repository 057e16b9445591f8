//! The plain calls of an extended socket as a pipe.

use std::io::IoSliceMut;

use sockets::extended::{Socket, Wait};

use super::convert::refused;
use crate::error::{Error, Result};
use crate::netpipe::pipe::Pipe;

/// One end, with a buffer each way.
pub(super) struct BytesPipe {
    socket: Socket,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

impl BytesPipe {
    pub(super) fn new(socket: Socket, bytes_max: usize) -> Self {
        Self {
            socket,
            // Not zero, so that every page is there before the clock runs.
            outgoing: vec![1; bytes_max],
            incoming: vec![1; bytes_max],
        }
    }
}

impl Pipe for BytesPipe {
    fn send(&mut self, len: usize) -> Result<()> {
        let bytes = self.outgoing.get(..len).ok_or(Error::Closed)?;
        refused(self.socket.write(bytes), "send")
    }

    fn recv(&mut self, len: usize) -> Result<()> {
        let mut room = self.incoming.get_mut(..len).ok_or(Error::Closed)?;
        while !room.is_empty() {
            let mut into = [IoSliceMut::new(room)];
            let received = self.socket.receive(&mut into, Wait::Ever, false, false);
            match refused(received, "recv")? {
                0 => return Err(Error::Closed),
                received => room = room.get_mut(received..).unwrap_or_default(),
            }
        }
        Ok(())
    }

    fn exchange(&mut self, len: usize) -> Result<()> {
        self.send(len)?;
        self.recv(len)
    }
}
