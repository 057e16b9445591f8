use std::{
    io::{self, ErrorKind},
    os::fd::OwnedFd,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The memfd of a memory, which one lends to others.
pub(super) struct Lent(Mutex<Memfd>);

pub(super) struct Memfd {
    pub(super) fd: OwnedFd,
    lender: Option<u64>,
}

impl Lent {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self(Mutex::new(Memfd::new(fd)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Memfd> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memfd {
    /// Lent by nobody.
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self { fd, lender: None }
    }

    pub(super) fn lend(&mut self, lender: u64) -> io::Result<OwnedFd> {
        if self.lender.is_some_and(|other| other != lender) {
            return Err(ErrorKind::ResourceBusy.into());
        }
        let fd = self.fd.try_clone()?;
        self.lender = Some(lender);
        Ok(fd)
    }
}
