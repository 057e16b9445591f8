//! What two measuring processes do over a connection between them: the same steps in the same order at both ends.
//!
//! Each paper has its own steps and ways ([`crate::paper`], [`crate::paper_iwarp`]). A listening end says where on its standard output, the
//! other one its figures.

use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::time::{Duration, Instant};

use crate::error::{Context, Error, Result};
use crate::netpipe::pipe::{Pipe, Port, Shape};
use crate::process::{Process, Said};

pub(crate) use figure::{Figure, What, keep_best, ns};

mod figure;

/// What is measured at one size.
pub(crate) struct Step {
    pub(crate) what: What,
    /// What the figure goes by.
    pub(crate) bytes: usize,
    /// Bytes there and back.
    pub(crate) lengths: [usize; 2],
    /// Of so many messages each.
    pub(crate) count: usize,
    pub(crate) blocks: usize,
}

impl Step {
    /// Messages of one length.
    pub(crate) fn of(what: What, bytes: usize, count: usize, blocks: usize) -> Self {
        Self {
            what,
            bytes,
            lengths: [bytes; 2],
            count,
            blocks,
        }
    }

    fn answer(&self, pipe: &mut impl Pipe) -> Result<()> {
        let [there, back] = self.lengths;
        for _ in 0..=self.blocks {
            for _ in 0..self.count {
                pipe.recv(there)?;
                if self.what != What::Bandwidth {
                    pipe.send(back)?;
                }
            }
            if self.what == What::Bandwidth {
                pipe.send(ANSWER)?;
            }
            // Whatever is held back leaves, and both begin together.
            pipe.recv(ANSWER)?;
        }
        Ok(())
    }

    fn ask(&self, pipe: &mut impl Pipe) -> Result<Figure> {
        let [there, back] = self.lengths;
        let mut times = Vec::with_capacity(self.blocks);
        // The first block warms up.
        for block in 0..=self.blocks {
            let start = Instant::now();
            for _ in 0..self.count {
                if self.what == What::Bandwidth {
                    pipe.post(there)?;
                } else {
                    pipe.send(there)?;
                    pipe.recv(back)?;
                }
            }
            if self.what == What::Bandwidth {
                pipe.recv(ANSWER)?;
            }
            let messages = match self.what {
                What::Latency => 2 * self.count,
                What::Bandwidth | What::Call => self.count,
            };
            let time = start.elapsed().as_nanos() as f64 / messages as f64;
            pipe.send(ANSWER)?;
            if block > 0 {
                times.push(time);
            }
        }
        times.sort_by(f64::total_cmp);
        Ok(Figure {
            what: self.what,
            bytes: self.bytes,
            ns: times.get(times.len() / 2).copied().unwrap_or(f64::NAN),
        })
    }
}

/// Where an end listens, of which it says on its standard output, or where it dials.
pub(crate) fn port<P: Port>(shape: Shape, dial: Option<&str>) -> Result<P> {
    if let Some(address) = dial {
        return P::dial(shape, address);
    }
    let port = P::listen(shape)?;
    say(&port.address())?;
    Ok(port)
}

/// Takes the steps; figures at the end that asks.
pub(crate) fn take(
    steps: impl IntoIterator<Item = Step>,
    pipe: &mut impl Pipe,
    asks: bool,
) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for step in steps {
        if asks {
            figures.push(step.ask(pipe)?);
        } else {
            step.answer(pipe)?;
        }
    }
    Ok(figures)
}

/// The end of one end: says its figures, or waits until the other has all that it waits for, before its connection goes.
pub(crate) fn finish(figures: &[Figure], asks: bool) -> Result<()> {
    if asks {
        return say(&serde_json::to_string(figures).context("figures")?);
    }
    let _end = stdin().lock().read_line(&mut String::new());
    Ok(())
}

/// A line for who started this process.
pub(crate) fn say(line: &str) -> Result<()> {
    let mut stdout = stdout().lock();
    writeln!(stdout, "{line}")
        .and_then(|()| stdout.flush())
        .context("standard output")
}

/// Starts both ends, which `start` does for one of them, with the other's address if that listens already; and hears the figures.
pub(crate) fn between(
    start: impl Fn(usize, Option<&str>) -> Result<Process>,
) -> Result<Vec<Figure>> {
    let mut server = start(0, None)?;
    let address = line(&mut server)?;
    let mut client = start(1, Some(&address))?;
    let figures = line(&mut client)?;
    client.wait()?;
    drop(client);
    // The end of its standard input is the end of its work.
    drop(server.pipes());
    server.wait_for_end(PATIENCE);
    serde_json::from_str(&figures).map_err(|_| Error::Protocol {
        from: "a measuring process",
        what: figures,
    })
}

/// The next thing that a measuring process says, of which there is no second.
pub(crate) fn line(process: &mut Process) -> Result<String> {
    let stdout = process.stdout().ok_or(Error::Closed)?;
    let mut line = String::new();
    BufReader::new(Said::new(stdout, SILENCE_MAX)?)
        .read_line(&mut line)
        .context("a measuring process")?;
    match line.trim() {
        "" => Err(Error::Closed),
        said => Ok(said.to_owned()),
    }
}

const ANSWER: usize = 4;
/// Who measures says something within.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(180);
/// A process whose work is done has so long to end.
const PATIENCE: Duration = Duration::from_secs(5);
