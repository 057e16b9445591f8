//! The thread that calls handlers.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::Instant;

use sys::quiet;

use crate::provider::{CqEntry, CqHandler, CqId, DoneHandler, ErrorHandler, ViId};
use crate::{AsyncError, Completion, Error, ErrorCode};

use error_log::ErrorLog;

mod error_log;

/// Calls the handlers of one NIC handle, one at a time, on a thread that begins with the first.
///
/// No lock is held while a handler runs, so it may call everything, and may end the process. The thread takes no signals.
#[derive(Default)]
pub(super) struct Dispatcher {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    jobs: VecDeque<Job>,
    running: Option<(Subject, ThreadId)>,
    thread: Option<JoinHandle<()>>,
    stopping: bool,
    handler: Option<ErrorHandler>,
    /// Errors from before the first handler was installed.
    early: VecDeque<AsyncError>,
    had_handler: bool,
    log: ErrorLog,
}

enum Job {
    Error(AsyncError),
    Done(ViId, DoneHandler, Completion),
    Entry(CqId, CqHandler, CqEntry),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// A descriptor of the VI, which has completed.
    Vi(ViId),
    /// An error of the VI.
    ViError(ViId),
    Cq(CqId),
    Nic,
}

impl Job {
    fn subject(&self) -> Subject {
        match self {
            Self::Error(error) => error.vi.map_or(Subject::Nic, Subject::ViError),
            Self::Done(vi, ..) => Subject::Vi(*vi),
            Self::Entry(cq, ..) => Subject::Cq(*cq),
        }
    }
}

impl Dispatcher {
    /// One of many that a peer can cause, and that end nothing, is left out where many jobs wait and another of its VI tells the same: it must
    /// not cost memory without bound.
    pub(super) fn error(&self, error: AsyncError) {
        let mut inner = self.state.lock();
        let same = |job: &Job| matches!(job, Job::Error(told) if (told.vi, told.code) == (error.vi, error.code));
        let repeats = matches!(error.code, ErrorCode::RdmawProt | ErrorCode::RecvqEmpty);
        if repeats && inner.jobs.len() >= WAITING_MAX && inner.jobs.iter().rev().any(same) {
            if inner.handler.is_none() {
                inner.log.leave_out();
            }
            return;
        }
        self.submit_to(inner, Job::Error(error));
    }

    pub(super) fn done(&self, vi: ViId, handler: DoneHandler, completion: Completion) {
        self.submit(Job::Done(vi, handler, completion));
    }

    pub(super) fn entry(&self, cq: CqId, handler: CqHandler, entry: CqEntry) {
        self.submit(Job::Entry(cq, handler, entry));
    }

    /// Sets the handler of errors; the first one gets what was reported before it came.
    pub(super) fn set_handler(&self, handler: Option<ErrorHandler>) -> Result<(), Error> {
        let mut inner = self.state.lock();
        inner.had_handler |= handler.is_some();
        let early = std::mem::take(&mut inner.early);
        if handler.is_some() {
            inner.jobs.extend(early.into_iter().map(Job::Error));
        }
        let before = std::mem::replace(&mut inner.handler, handler);
        let started = if inner.jobs.is_empty() {
            Ok(())
        } else {
            self.state.changed.notify_all();
            self.start(&mut inner)
        };
        drop(inner);
        // Without the lock: it may own what comes back here when it goes.
        drop(before);
        started
    }

    /// When this returns no error handler runs, or will run, for `vi`, unless called from one.
    /// Completed descriptors are still handed to whoever asked for them, and who is handed one now is not waited for: he may wait for the caller.
    pub(super) fn quiesce_vi(&self, vi: ViId) {
        self.quiesce(|subject| subject == Subject::ViError(vi));
    }

    /// The VI is destroyed: when this returns no handler of any kind runs, or will run, for it, unless called from one.
    pub(super) fn forget_vi(&self, vi: ViId) {
        self.quiesce(|subject| subject == Subject::ViError(vi) || subject == Subject::Vi(vi));
    }

    /// When this returns no handler runs, or will run, for `cq`, unless called from one.
    pub(super) fn quiesce_cq(&self, cq: CqId) {
        self.quiesce(|subject| subject == Subject::Cq(cq));
    }

    /// Ends the thread, after the handler that runs.
    pub(super) fn stop(&self) {
        let mut inner = self.state.lock();
        inner.stopping = true;
        let dropped = std::mem::take(&mut inner.jobs);
        let thread = inner.thread.take();
        drop(inner);
        drop(dropped);
        self.state.changed.notify_all();
        if let Some(thread) = thread
            && thread.thread().id() != thread::current().id()
        {
            // A handler that panicked has said so; there is nothing to add.
            drop(thread.join());
        }
    }

    fn quiesce(&self, is_meant: impl Fn(Subject) -> bool) {
        let mut inner = self.state.lock();
        // Dropped without the lock: a handler may own what comes back here when it goes.
        let (dropped, kept) = std::mem::take(&mut inner.jobs)
            .into_iter()
            .partition(|job: &Job| is_meant(job.subject()));
        inner.jobs = kept;
        let is_kept = |error: &AsyncError| !is_meant(Job::Error(*error).subject());
        inner.early.retain(is_kept);
        drop(inner);
        drop::<VecDeque<Job>>(dropped);
        let mut inner = self.state.lock();
        let me = thread::current().id();
        while inner
            .running
            .is_some_and(|(running, thread)| is_meant(running) && thread != me)
        {
            inner = self
                .state
                .changed
                .wait(inner)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn submit(&self, job: Job) {
        self.submit_to(self.state.lock(), job);
    }

    fn submit_to(&self, mut inner: MutexGuard<'_, Inner>, job: Job) {
        if inner.stopping {
            drop(inner);
            drop(job);
            return;
        }
        inner.jobs.push_back(job);
        // Without a thread the job waits until one can be made.
        if self.start(&mut inner).is_ok() {
            self.state.changed.notify_all();
        }
    }

    fn start(&self, inner: &mut Inner) -> Result<(), Error> {
        if inner.thread.is_none() && !inner.stopping {
            let state = Arc::clone(&self.state);
            let spawned = quiet::spawn("via-handlers", Some(STACK), move || state.run());
            inner.thread = Some(spawned.map_err(|_| Error::Resource)?);
        }
        Ok(())
    }
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut inner = self.lock();
        loop {
            if inner.stopping {
                return;
            }
            let Some(job) = inner.jobs.pop_front() else {
                inner = self
                    .changed
                    .wait(inner)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            inner.running = Some((job.subject(), thread::current().id()));
            let handler = inner.handler.clone();
            if let (Job::Error(error), None, false) = (&job, &handler, inner.had_handler)
                && inner.early.len() < EARLY_MAX
            {
                inner.early.push_back(*error);
            }
            let line = match (&job, &handler) {
                (Job::Error(error), None) => inner.log.line(error, Instant::now()),
                _ => None,
            };
            drop(inner);
            // A handler that panics ends its own call, not the ones of others; so does a standard error that is closed.
            let call = std::panic::AssertUnwindSafe(|| match line {
                Some(line) => eprintln!("{line}"),
                None => job.call(handler),
            });
            drop(std::panic::catch_unwind(call));
            inner = self.lock();
            inner.running = None;
            self.changed.notify_all();
        }
    }
}

impl Job {
    fn call(self, handler: Option<ErrorHandler>) {
        match (self, handler) {
            (Self::Error(error), Some(handler)) => handler(&error),
            // Logged, or left out.
            (Self::Error(_), None) => {}
            (Self::Done(_, handler, completion), _) => handler(completion),
            (Self::Entry(_, handler, entry), _) => handler(entry),
        }
    }
}

const STACK: usize = 256 * 1024;
const EARLY_MAX: usize = 16;
/// Jobs that wait, beyond which errors that repeat are left out.
const WAITING_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
    use std::time::Duration;

    use crate::{CompletedOp, Status};

    use super::*;

    /// A handler may wait for a lock that whoever disconnects the VI holds.
    #[test]
    fn a_disconnect_does_not_wait_for_who_is_handed_a_descriptor() {
        let dispatcher = Dispatcher::default();
        let (begun, has_begun) = channel();
        let (end, may_end) = channel::<()>();
        let handler = move |_| {
            begun.send(()).expect("awaited");
            let _ended = may_end.recv();
        };
        dispatcher.done(VI, Box::new(handler), completion());
        has_begun.recv().expect("it is called");
        thread::scope(|scope| {
            let disconnected = ends(scope, || dispatcher.quiesce_vi(VI));
            let waited = disconnected.recv_timeout(LONG);
            let destroyed = ends(scope, || dispatcher.forget_vi(VI));
            let early = destroyed.recv_timeout(MOMENT);
            drop(end);
            assert_eq!(waited, Ok(()));
            assert_eq!(early, Err(RecvTimeoutError::Timeout));
            assert_eq!(destroyed.recv(), Ok(()));
        });
        dispatcher.stop();
    }

    #[test]
    fn a_disconnect_waits_for_who_hears_of_an_error() {
        let dispatcher = Dispatcher::default();
        let (begun, has_begun) = channel();
        let (end, may_end) = channel::<()>();
        let may_end = Mutex::new(may_end);
        let handler = move |_: &AsyncError| {
            begun.send(()).expect("awaited");
            let _ended = may_end.lock().expect("no panic").recv();
        };
        dispatcher
            .set_handler(Some(Arc::new(handler)))
            .expect("a thread");
        dispatcher.error(AsyncError::of_vi(ErrorCode::ConnLost, VI));
        has_begun.recv().expect("it is called");
        thread::scope(|scope| {
            let disconnected = ends(scope, || dispatcher.quiesce_vi(VI));
            let early = disconnected.recv_timeout(MOMENT);
            drop(end);
            assert_eq!(early, Err(RecvTimeoutError::Timeout));
            assert_eq!(disconnected.recv(), Ok(()));
        });
        dispatcher.stop();
    }

    /// Tells when `call` has returned.
    fn ends<'scope>(
        scope: &'scope thread::Scope<'scope, '_>,
        call: impl FnOnce() + Send + 'scope,
    ) -> Receiver<()> {
        let (ended, has_ended) = channel();
        scope.spawn(move || {
            call();
            ended.send(()).expect("awaited");
        });
        has_ended
    }

    fn completion() -> Completion {
        Completion {
            token: 0,
            status: Status::new(CompletedOp::Receive, None, false),
            length: 0,
            immediate: None,
        }
    }

    const VI: ViId = ViId(7);
    const MOMENT: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_secs(10);
}
