//! What a program sees of a socket where it polls: its descriptor is a stand-in, which shows what we say
//! ([decision 13](../../../docs/decisions/0013-stand-in-for-extended-sockets.md)), until bytes pass through it.

use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sys::double::Double;
use sys::relay::Pair;

use super::relay::Bell;
use super::wait::Changed;

/// The stand-in, which the socket, its stream and its listener have together.
#[derive(Clone, Debug)]
pub(super) struct Show(Arc<Mutex<Shown>>);

#[derive(Debug)]
enum Shown {
    By(Double),
    /// Bytes show themselves, and who moves them is to look.
    Relayed(Bell),
    /// No program polls it: these are to look.
    Told(Arc<Changed>),
}

impl Show {
    /// # Errors
    /// The kernel's.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(Mutex::new(Shown::By(Double::new()?)))))
    }

    /// That of a socket which is nowhere yet, until [`Show::join`].
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn alone() -> io::Result<Self> {
        Ok(Self(Arc::new(Mutex::new(Shown::By(Double::alone()?)))))
    }

    /// The socket is connected, or is to be, or listens.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn join(&self) -> io::Result<()> {
        match &mut *self.lock() {
            Shown::By(double) => double.join(),
            Shown::Relayed(_) | Shown::Told(_) => Ok(()),
        }
    }

    /// One that no program has: who waits for `changed` hears of what there is, and has the stream say what.
    pub(super) fn telling(changed: &Arc<Changed>) -> Self {
        Self(Arc::new(Mutex::new(Shown::Told(Arc::clone(changed)))))
    }

    /// One for the program.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        match &*self.lock() {
            Shown::By(double) => double.duplicate(false),
            Shown::Relayed(_) | Shown::Told(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Bytes pass through it from now on: our end, or that of what `instead` puts in its place where it has shown an end. What changes
    /// rings `bell`.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn open(
        &self,
        bell: Bell,
        instead: impl FnOnce() -> io::Result<Pair>,
    ) -> io::Result<Pair> {
        let mut shown = self.lock();
        let pair = match &mut *shown {
            Shown::By(double) => double.open()?,
            Shown::Relayed(_) | Shown::Told(_) => None,
        };
        let pair = pair.map_or_else(instead, Ok)?;
        *shown = Shown::Relayed(bell);
        Ok(pair)
    }

    /// Which of the kernel's sockets it is, until bytes pass through it.
    pub(super) fn inode(&self) -> Option<u64> {
        match &*self.lock() {
            Shown::By(double) => double.inode(),
            Shown::Relayed(_) | Shown::Told(_) => None,
        }
    }

    /// Another stand-in, which shows no end, is at each of `numbers` from now on.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn renew(&self, numbers: &[RawFd]) -> io::Result<()> {
        match &mut *self.lock() {
            Shown::By(double) => double.renew(numbers),
            Shown::Relayed(_) | Shown::Told(_) => Ok(()),
        }
    }

    /// The program is about to close its last descriptor.
    pub(super) fn release(&self) {
        self.tell(Double::release);
    }

    /// Whether there is something to take; `fresh` if there may be more than there was.
    pub(super) fn input(&self, there: bool, fresh: bool) {
        self.tell(|double| double.show_input(there, fresh));
    }

    /// Whether something can be sent.
    pub(super) fn room(&self, there: bool) {
        self.tell(|double| double.show_room(there));
    }

    /// Nothing more will come.
    pub(super) fn end(&self) {
        self.tell(Double::show_end);
    }

    /// Nothing more will come or go.
    pub(super) fn gone(&self) {
        self.tell(Double::show_gone);
    }

    /// Nothing more will come or go, for an error.
    pub(super) fn reset(&self) {
        self.tell(Double::show_reset);
    }

    /// The program has been told of the error.
    pub(super) fn told(&self) {
        self.tell(|double| double.forget_error());
    }

    fn tell(&self, what: impl FnOnce(&mut Double)) {
        match &mut *self.lock() {
            Shown::By(double) => what(double),
            Shown::Relayed(bell) => bell.ring(),
            Shown::Told(changed) => changed.notify_all(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
