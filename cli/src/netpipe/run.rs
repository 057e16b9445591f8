use std::time::Instant;

use super::pipe::Pipe;
use super::plan::{Job, Pattern};
use crate::error::Result;

/// Which of the two ends this process is. The active one starts each round and holds the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum End {
    Passive,
    Active,
}

/// Runs one end of `job`; the times of the blocks in nanoseconds (of use at the active end only).
pub(crate) fn run<P: Pipe>(pipe: &mut P, end: End, job: Job) -> Result<Vec<u64>> {
    match job.pattern {
        Pattern::PingPong => blocks(job, || ping_pong(pipe, end, job)),
        Pattern::Stream => blocks(job, || stream(pipe, end, job)),
        Pattern::Bidirectional => blocks(job, || bidirectional(pipe, job)),
        Pattern::RdmaWrite => blocks(job, || rdma_write(pipe, end, job)),
        Pattern::Connect => unreachable!("a connection cannot connect; see Port::knock"),
    }
}

/// Times `block` as often as `job` wants.
pub(crate) fn blocks(job: Job, mut block: impl FnMut() -> Result<()>) -> Result<Vec<u64>> {
    let mut times = Vec::with_capacity(job.blocks as usize);
    for _ in 0..job.blocks {
        let start = Instant::now();
        block()?;
        times.push(start.elapsed().as_nanos() as u64);
    }
    Ok(times)
}

fn ping_pong<P: Pipe>(pipe: &mut P, end: End, job: Job) -> Result<()> {
    for _ in 0..job.rounds {
        match end {
            End::Active => {
                pipe.send(job.size)?;
                pipe.recv(job.size)?;
            }
            End::Passive => {
                pipe.recv(job.size)?;
                pipe.send(job.size)?;
            }
        }
    }
    Ok(())
}

/// The acknowledgement makes the block end when the last byte has been taken, not when it has been put into a buffer.
fn stream<P: Pipe>(pipe: &mut P, end: End, job: Job) -> Result<()> {
    match end {
        End::Active => {
            for _ in 0..job.rounds {
                pipe.send(job.size)?;
            }
            pipe.recv(ACK_SIZE)
        }
        End::Passive => {
            for _ in 0..job.rounds {
                pipe.recv(job.size)?;
            }
            pipe.send(ACK_SIZE)
        }
    }
}

fn bidirectional<P: Pipe>(pipe: &mut P, job: Job) -> Result<()> {
    for _ in 0..job.rounds {
        pipe.exchange(job.size)?;
    }
    Ok(())
}

/// One-sided writes, then a message each way: the peer learns of them, and we learn that it has.
fn rdma_write<P: Pipe>(pipe: &mut P, end: End, job: Job) -> Result<()> {
    match end {
        End::Active => {
            for _ in 0..job.rounds {
                pipe.write(job.size)?;
            }
            pipe.send(ACK_SIZE)?;
            pipe.recv(ACK_SIZE)
        }
        End::Passive => {
            for _ in 0..job.rounds {
                pipe.absorb(job.size)?;
            }
            pipe.recv(ACK_SIZE)?;
            pipe.send(ACK_SIZE)
        }
    }
}

pub(super) const ACK_SIZE: usize = 8;
