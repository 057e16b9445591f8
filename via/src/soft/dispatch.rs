//! The thread that calls handlers.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};

use sys::quiet;

use crate::provider::{CqEntry, CqHandler, CqId, DoneHandler, ErrorHandler, ViId};
use crate::{AsyncError, Completion, Error};

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
}

enum Job {
    Error(AsyncError),
    Done(ViId, DoneHandler, Completion),
    Entry(CqId, CqHandler, CqEntry),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Vi(ViId),
    Cq(CqId),
    Nic,
}

impl Job {
    fn subject(&self) -> Subject {
        match self {
            Self::Error(error) => error.vi.map_or(Subject::Nic, Subject::Vi),
            Self::Done(vi, ..) => Subject::Vi(*vi),
            Self::Entry(cq, ..) => Subject::Cq(*cq),
        }
    }
}

impl Dispatcher {
    pub(super) fn error(&self, error: AsyncError) {
        self.submit(Job::Error(error));
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
        inner.handler = handler;
        if !inner.jobs.is_empty() {
            self.start(&mut inner)?;
            self.state.changed.notify_all();
        }
        Ok(())
    }

    /// When this returns no error handler runs, or will run, for `vi`, unless called from one.
    /// Completed descriptors are still handed to whoever asked for them.
    pub(super) fn quiesce_vi(&self, vi: ViId) {
        self.quiesce(
            Subject::Vi(vi),
            |job| matches!(job, Job::Error(error) if error.vi == Some(vi)),
        );
    }

    /// When this returns no handler runs, or will run, for `cq`, unless called from one.
    pub(super) fn quiesce_cq(&self, cq: CqId) {
        self.quiesce(
            Subject::Cq(cq),
            |job| matches!(job, Job::Entry(of, ..) if *of == cq),
        );
    }

    /// Ends the thread, after the handler that runs.
    pub(super) fn stop(&self) {
        let mut inner = self.state.lock();
        inner.stopping = true;
        inner.jobs.clear();
        let thread = inner.thread.take();
        drop(inner);
        self.state.changed.notify_all();
        if let Some(thread) = thread
            && thread.thread().id() != thread::current().id()
        {
            // A handler that panicked has said so; there is nothing to add.
            drop(thread.join());
        }
    }

    fn quiesce(&self, subject: Subject, drop_job: impl Fn(&Job) -> bool) {
        let mut inner = self.state.lock();
        inner.jobs.retain(|job| !drop_job(job));
        let me = thread::current().id();
        while inner
            .running
            .is_some_and(|(running, thread)| running == subject && thread != me)
        {
            inner = self
                .state
                .changed
                .wait(inner)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn submit(&self, job: Job) {
        let mut inner = self.state.lock();
        if inner.stopping {
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
            drop(inner);
            // A handler that panics ends its own call, not the ones of others.
            let call = std::panic::AssertUnwindSafe(|| job.call(handler));
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
            (Self::Error(error), None) => {
                eprintln!("via: asynchronous error: {error:?}");
            }
            (Self::Done(_, handler, completion), _) => handler(completion),
            (Self::Entry(_, handler, entry), _) => handler(entry),
        }
    }
}

const STACK: usize = 256 * 1024;
const EARLY_MAX: usize = 16;
