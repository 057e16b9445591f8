use std::io::{self, BufRead, Write};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::{Context, Error, Result};

/// What a client is told to do, one JSON value a line; it answers each with a line, a list of whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Order {
    /// So many blocks of so many rounds; answered with the nanoseconds of each block.
    Blocks { blocks: u32, rounds: u32 },
    /// Rounds for so long; answered with how many they were, and the nanoseconds that they took.
    Span { ms: u32 },
}

/// One end of a measurement: what is repeated.
pub(super) trait Client {
    /// Rounds, ended by something that the peer sends when it has done them, too.
    fn block(&mut self, rounds: u32) -> io::Result<()>;
}

/// Carries out orders until there are no more.
pub(super) fn obey(client: &mut impl Client) -> Result<()> {
    for line in io::stdin().lock().lines() {
        let line = line.context("standard input")?;
        let order = serde_json::from_str(&line).map_err(|error| Error::Protocol {
            from: "standard input",
            what: error.to_string(),
        })?;
        let answer = match order {
            Order::Blocks { blocks, rounds } => (0..blocks)
                .map(|_| timed(client, rounds))
                .collect::<Result<Vec<_>>>()?,
            Order::Span { ms } => span(client, Duration::from_millis(ms.into()))?,
        };
        let mut stdout = io::stdout().lock();
        let answer = serde_json::to_string(&answer).context("encoding an answer")?;
        writeln!(stdout, "{answer}").context("standard output")?;
        stdout.flush().context("standard output")?;
    }
    Ok(())
}

fn timed(client: &mut impl Client, rounds: u32) -> Result<u64> {
    let start = Instant::now();
    client.block(rounds).context("a block")?;
    Ok(start.elapsed().as_nanos() as u64)
}

fn span(client: &mut impl Client, time: Duration) -> Result<Vec<u64>> {
    let start = Instant::now();
    let mut rounds = 0;
    loop {
        client.block(ROUNDS_BETWEEN_CLOCKS).context("a block")?;
        rounds += u64::from(ROUNDS_BETWEEN_CLOCKS);
        let elapsed = start.elapsed();
        if elapsed >= time {
            return Ok(vec![rounds, elapsed.as_nanos() as u64]);
        }
    }
}

/// Reading the clock takes a tenth of the fastest round.
const ROUNDS_BETWEEN_CLOCKS: u32 = 16;
