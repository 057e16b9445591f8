//! Calling back when something has become so: completions, and enough to read or room enough to write (seed 004, section 4.3).

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use proto::extended::{CREDITS, PAYLOAD_MAX};
use sys::errno::Errno;
use sys::quiet;

use super::Socket;
use super::core::Core;

/// A completion can be taken.
pub const COMPLETION: u32 = 0x1;
/// As many bytes as the receive watermark can be read.
pub const READABLE: u32 = 0x2;
/// There is room for as many bytes as the send watermark.
pub const WRITABLE: u32 = 0x4;
/// No more will come: the peer has ended its direction, or the connection is gone.
pub const END: u32 = 0x8;

/// Who is called, for what.
#[derive(Default)]
pub(super) struct Events {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    inner: Mutex<Watch>,
    changed: Condvar,
}

#[derive(Default)]
struct Watch {
    /// Rises with each callback.
    round: u64,
    /// The call that is under way: of which callback, and where.
    running: Option<(u64, ThreadId)>,
    wanted: bool,
    /// What is so now.
    are: u32,
    /// What became so, and nobody has been called for yet.
    due: u32,
    completions: u64,
    receive_low: usize,
    send_low: usize,
}

impl Socket {
    /// Has `call` called, on a thread of its own, one at a time, whenever one of [`COMPLETION`], [`READABLE`], [`WRITABLE`] and [`END`] becomes so, and for each that is so now. Each is told
    /// once until it has been otherwise; a completion each time that there is one more. It may call anything on the socket, and replaces a callback before it: one that sets
    /// another, or ends itself, is over before another runs.
    ///
    /// # Errors
    /// `EAGAIN` if there can be no thread; `ENOTCONN` in a forked child.
    pub fn on_events(&self, call: impl Fn(u32) + Send + 'static) -> Result<(), Errno> {
        self.off_events();
        let core = self.inner.enter()?;
        let state = Arc::clone(&self.inner.events.state);
        let mut watch = state.lock();
        let round = watch.renew();
        // Another may have set one meanwhile, which ends so.
        self.inner.events.state.changed.notify_all();
        let theirs = Arc::clone(&state);
        let thread = quiet::spawn("sovia-events", None, move || theirs.run(round, &call));
        // Nobody joins it: what counts is whether it calls.
        drop(thread.map_err(|_| Errno::AGAIN)?);
        watch.wanted = true;
        watch.are = 0;
        watch.due = 0;
        drop(watch);
        self.inner.settle(core);
        Ok(())
    }

    /// Calls nobody any more. When this returns no callback runs, unless this is one.
    pub fn off_events(&self) {
        if self.inner.is_home() {
            self.inner.events.end();
        }
    }

    /// Sets the watermarks of [`READABLE`] and [`WRITABLE`], in bytes; 1 and 1 at first. What is more than the window holds counts as a full window; more room than half of it, as half.
    ///
    /// # Errors
    /// `EINVAL` for 0; `ENOTCONN` in a forked child.
    pub fn set_watermarks(&self, receive: usize, send: usize) -> Result<(), Errno> {
        if receive == 0 || send == 0 {
            return Err(Errno::INVAL);
        }
        let core = self.inner.enter()?;
        let mut watch = self.inner.events.state.lock();
        watch.receive_low = receive - 1;
        watch.send_low = send - 1;
        drop(watch);
        self.inner.settle(core);
        Ok(())
    }
}

impl Events {
    /// Looks whether something has become so.
    pub(super) fn look(&self, core: &Core) {
        let mut watch = self.state.lock();
        if !watch.wanted {
            return;
        }
        let stream = &core.stream;
        let over = core.gone.is_some() || stream.heard_fin;
        let bit = |on, bit| if on { bit } else { 0 };
        let enough = stream.unread_bytes > watch.receive_low || core.is_full();
        let room = watch.send_low.min(ROOM - 1);
        let are = bit(!core.done.is_empty(), COMPLETION)
            | bit(enough || over, READABLE)
            | bit(core.room() > room || core.gone.is_some(), WRITABLE)
            | bit(over, END);
        let mut became = are & !watch.are;
        if are & COMPLETION != 0 && core.done.total() != watch.completions {
            became |= COMPLETION;
        }
        watch.completions = core.done.total();
        watch.are = are;
        watch.due |= became;
        if became != 0 {
            self.state.changed.notify_all();
        }
    }

    pub(super) fn are_wanted(&self) -> bool {
        self.state.lock().wanted
    }

    /// No new call begins. One may be under way.
    pub(super) fn stop(&self) -> u64 {
        let round = self.state.lock().renew();
        self.state.changed.notify_all();
        round
    }

    /// As [`Events::stop`], and waits for the call under way, unless this is within it.
    pub(super) fn end(&self) {
        let round = self.stop();
        let here = thread::current().id();
        let mut watch = self.state.lock();
        while watch
            .running
            .is_some_and(|(of, on)| of < round && on != here)
        {
            watch = self.state.wait(watch);
        }
    }
}

impl Watch {
    /// Nothing is called back for any more, until somebody sets this round's.
    fn renew(&mut self) -> u64 {
        self.round += 1;
        self.wanted = false;
        self.round
    }
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Watch> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, watch: MutexGuard<'a, Watch>) -> MutexGuard<'a, Watch> {
        let waited = self.changed.wait(watch);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, round: u64, call: &dyn Fn(u32)) {
        let mut watch = self.lock();
        while watch.round == round {
            // The callback before this one may be what has set it.
            if watch.due == 0 || watch.running.is_some() {
                watch = self.wait(watch);
                continue;
            }
            let due = std::mem::take(&mut watch.due);
            watch.running = Some((round, thread::current().id()));
            drop(watch);
            let under_way = UnderWay(self);
            call(due);
            drop(under_way);
            watch = self.lock();
        }
    }
}

/// A call, until it returns or panics.
struct UnderWay<'a>(&'a State);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.lock().running = None;
        self.0.changed.notify_all();
    }
}

/// Bytes of the stream that there is room for once all have been read: a peer does not tell of the last few receives by themselves.
const ROOM: usize = (CREDITS / 2) as usize * PAYLOAD_MAX;
