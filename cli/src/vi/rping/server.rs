//! The server: fetches what a client pings by RDMA Read, and puts it back by RDMA Write.

use std::io::{self, Write};

use via::Descriptor;

use super::end::{Advert, End};
use crate::error::{Context, Error, Result};

/// Answers one ping.
///
/// # Errors
/// [`Error::Closed`] when the client has gone.
pub(super) fn answer(end: &End, verbose: bool) -> Result<()> {
    let source = end.recv()?;
    let room = end.echo.len() as u32;
    if source.size == 0 || source.size > room {
        return Err(Error::Protocol {
            from: "the client",
            what: format!("a ping of {} bytes", source.size),
        });
    }
    end.carry_out(&Descriptor::rdma_read(source.remote).segment(&end.echo, 0..source.size))?;
    let mut data = vec![0; source.size as usize];
    let read = end.echo.memory().read(0, &mut data);
    read.map_err(io::Error::other).context("what was read")?;
    // It is a C string, and no more of it is written back.
    let text = data.split(|octet| *octet == 0).next().unwrap_or_default();
    if verbose {
        let text = String::from_utf8_lossy(text);
        writeln!(io::stdout(), "server ping data: {text}").context("standard output")?;
    }
    end.send(Advert::of(&end.echo))?;
    let sink = end.recv()?;
    let back = (text.len() as u32 + 1).min(source.size);
    end.carry_out(&Descriptor::rdma_write(sink.remote).segment(&end.echo, 0..back))?;
    end.send(Advert::of(&end.echo))
}
