//! A TCP connection in a model: two queues, and what a poll would say of each.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::time::Duration;

use loom::sync::{Arc, Mutex};
use sys::errno::Errno;
use sys::sync::{AtomicU32, Ordering};

use crate::kernel::Kernel;

/// One end of a TCP connection.
#[derive(Clone)]
pub(crate) struct Tcp {
    pub(super) out: Arc<Pipe>,
    pub(super) input: Arc<Pipe>,
}

/// One direction of it.
#[derive(Default)]
pub(super) struct Pipe {
    inside: Mutex<Inside>,
    /// Not 0 while a poll would say that there is something.
    pub(super) level: AtomicU32,
}

#[derive(Default)]
struct Inside {
    bytes: VecDeque<u8>,
    written: u64,
    taken: u64,
    ended: bool,
}

impl Pipe {
    fn with<R>(&self, act: impl FnOnce(&mut Inside) -> R) -> R {
        let mut inside = self.inside.lock().expect("no panic");
        let result = act(&mut inside);
        let level = u32::from(!inside.bytes.is_empty() || inside.ended);
        self.level.store(level, Ordering::Release);
        result
    }
}

impl Kernel for Tcp {
    fn send(&self, bytes: &[u8]) -> Result<usize, Errno> {
        self.out.with(|out| {
            out.bytes.extend(bytes);
            out.written += bytes.len() as u64;
        });
        Ok(bytes.len())
    }

    fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> Result<usize, Errno> {
        let pieces: Vec<&[u8]> = pieces.iter().map(|piece| &**piece).collect();
        self.send(&pieces.concat())
    }

    fn recv(&self, into: &mut [u8]) -> Result<usize, Errno> {
        self.input.with(|input| {
            if input.bytes.is_empty() && !input.ended {
                return Err(Errno::AGAIN);
            }
            let n = into.len().min(input.bytes.len());
            for (to, from) in into.iter_mut().zip(input.bytes.drain(..n)) {
                *to = from;
            }
            input.taken += n as u64;
            Ok(n)
        })
    }

    fn peek(&self, into: &mut [u8]) -> Result<usize, Errno> {
        self.input.with(|input| {
            if input.bytes.is_empty() && !input.ended {
                return Err(Errno::AGAIN);
            }
            let n = into.len().min(input.bytes.len());
            for (to, from) in into.iter_mut().zip(&input.bytes) {
                *to = *from;
            }
            Ok(n)
        })
    }

    fn linger(&self) -> Option<Duration> {
        None
    }

    fn set_linger(&self, _: Option<Duration>) {}

    fn reset_now(&self) {
        unreachable!("nothing is spoilt");
    }

    fn finish(&self) {
        self.out.with(|out| out.ended = true);
    }

    fn has_ended(&self) -> bool {
        self.input.with(|input| input.ended)
    }

    fn written(&self) -> Result<u64, Errno> {
        Ok(self.out.with(|out| out.written))
    }

    fn taken(&self) -> Result<u64, Errno> {
        Ok(self.input.with(|input| input.taken))
    }

    fn queued(&self) -> Result<usize, Errno> {
        Ok(self.input.with(|input| input.bytes.len()))
    }
}
