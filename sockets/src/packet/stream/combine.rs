//! Small messages that leave together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use proto::packet::Verdict;
use sys::errno::Errno;
use sys::lock::Guard;
use via::Descriptor;

use super::Stream;
use super::inner::Inner;
use crate::packet::keeper;
use crate::packet::wait::Wait;

impl Stream {
    /// The timer of the combined messages; when it is to ask again.
    pub(in crate::packet) fn expire(&self) -> Option<Instant> {
        let mut inner = self.lock();
        if inner.lost || inner.is_refused {
            // The window stays closed, whoever asks.
            inner.is_timed = false;
            return None;
        }
        match inner.combiner.due() {
            Some(due) if due <= self.now() || inner.is_ending => {
                if inner.talk.window() == 0 {
                    while self.take_in(&mut inner) {}
                }
                self.flush_now(&mut inner);
                // A closed window is looked at again.
                let again = inner.combiner.due().map(|_| Instant::now() + RETRY);
                inner.is_timed = again.is_some();
                again
            }
            Some(due) => Some(self.begun + due),
            None => {
                inner.is_timed = false;
                None
            }
        }
    }

    /// Appends a small message, which fits, to what is held.
    pub(super) fn hold(
        self: &Arc<Self>,
        mut inner: Guard<'_, Inner>,
        slot: u32,
        bytes: &[u8],
        begun: bool,
    ) -> Result<usize, Errno> {
        let start = slot as usize * self.stride as usize + inner.combiner.held() as usize;
        let written = self.outgoing.memory().write(start, bytes);
        written.map_err(|_| Errno::NOBUFS)?;
        // The first of those that wait together says until when; the clock is read for no other.
        let now = match inner.combiner.held() {
            0 => self.now(),
            _ => Duration::ZERO,
        };
        let verdict = inner.combiner.offer(bytes.len() as u32, now);
        debug_assert_eq!(verdict, Verdict::Append, "it fits");
        inner.tally.held(!begun);
        self.note_held();
        if !std::mem::replace(&mut inner.is_timed, true)
            && let Some(due) = inner.combiner.due()
        {
            drop(inner);
            keeper::flush_at(self.begun + due, self);
        }
        Ok(bytes.len())
    }

    fn note_held(&self) {
        let me = std::ptr::from_ref(self).addr();
        let last = LAST_HELD.load(Ordering::Relaxed);
        if last != me {
            LAST_HELD.store(me, Ordering::Relaxed);
            if last != 0 {
                OTHERS_HELD.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Before its program waits for this stream: whether others of this process may hold something back.
    pub(super) fn others_hold(&self) -> bool {
        hold_beside(std::ptr::from_ref(self).addr())
    }

    /// Sends what is held, waiting for the window if it may.
    pub(super) fn flush<'a>(
        &'a self,
        mut inner: Guard<'a, Inner>,
        patient: &impl Fn() -> Wait,
    ) -> Result<Guard<'a, Inner>, Errno> {
        while inner.combiner.held() > 0 {
            inner = self.window(inner, patient)?;
            self.flush_now(&mut inner);
        }
        Ok(inner)
    }

    /// Sends what is held, which is one packet, if the window is open, and the FIN that follows, if one does.
    #[inline(always)]
    pub(super) fn flush_now(&self, inner: &mut Inner) {
        if inner.held_in.is_some() || inner.is_ending {
            self.flush_what_is_held(inner);
        }
    }

    fn flush_what_is_held(&self, inner: &mut Inner) {
        let held = inner.combiner.held();
        if let Some(slot) = inner.held_in.filter(|_| held > 0)
            && let Some(packet) = inner.talk.take_window()
        {
            let start = slot * self.stride;
            let descriptor = Descriptor::send().segment(&self.outgoing, start..start + held);
            self.post(inner, packet, descriptor, slot);
            inner.tally.released(held as usize);
            inner.held_in = None;
            inner.combiner.flushed();
        }
        if inner.is_ending && inner.combiner.held() == 0 && inner.talk.sends() {
            self.say_fin(inner);
        }
    }
}

/// Before its program waits for something that is no stream: whether streams of this process may hold something back.
pub(in crate::packet) fn any_holds() -> bool {
    hold_beside(0)
}

/// What two threads change at once is told late, by the timer.
fn hold_beside(me: usize) -> bool {
    let last = LAST_HELD.load(Ordering::Relaxed);
    let is_other = last != me && last != 0;
    if is_other {
        LAST_HELD.store(0, Ordering::Relaxed);
    }
    if is_other || OTHERS_HELD.load(Ordering::Relaxed) {
        OTHERS_HELD.store(false, Ordering::Relaxed);
        return true;
    }
    false
}

/// The address of the stream that last held something back, which may be gone; 0 if all have been [asked to send](keeper::release).
static LAST_HELD: AtomicUsize = AtomicUsize::new(0);
/// Whether others held something back before it.
static OTHERS_HELD: AtomicBool = AtomicBool::new(false);
/// How often a closed window is looked at for what a timer should send.
const RETRY: Duration = Duration::from_millis(10);
