//! What a program sees of a socket where it polls: its descriptor is a stand-in, which shows what we say
//! ([decision 13](../../../docs/decisions/0013-stand-in-for-extended-sockets.md)).

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sys::double::Double;

/// The stand-in, which the socket, its stream and its listener have together.
#[derive(Clone, Debug)]
pub(super) struct Show(Arc<Mutex<Double>>);

impl Show {
    /// # Errors
    /// The kernel's.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(Mutex::new(Double::new()?))))
    }

    /// One for the program.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.lock().duplicate(false)
    }

    /// The program is about to close its last descriptor.
    pub(super) fn release(&self) {
        self.lock().release();
    }

    /// Whether there is something to take; `fresh` if there may be more than there was.
    pub(super) fn input(&self, there: bool, fresh: bool) {
        self.lock().show_input(there, fresh);
    }

    /// Whether something can be sent.
    pub(super) fn room(&self, there: bool) {
        self.lock().show_room(there);
    }

    /// Nothing more will come.
    pub(super) fn end(&self) {
        self.lock().show_end();
    }

    /// Nothing more will come or go.
    pub(super) fn gone(&self) {
        self.lock().show_gone();
    }

    /// Nothing more will come or go, for an error.
    pub(super) fn reset(&self) {
        self.lock().show_reset();
    }

    /// The program has been told of the error.
    pub(super) fn told(&self) {
        self.lock().forget_error();
    }

    fn lock(&self) -> MutexGuard<'_, Double> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
