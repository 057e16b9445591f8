use std::{
    io::{self, ErrorKind},
    os::fd::OwnedFd,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::hidden::Hidden;

/// The memfd of a memory, which one lends to others.
pub(super) struct Lent(Mutex<Memfd>);

pub(super) struct Memfd {
    /// None once the pages are nobody else's for good.
    fd: Option<Hidden>,
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
        Self {
            fd: Some(Hidden::of_a_nic(fd)),
            lender: None,
        }
    }

    /// Of pages that no file has.
    pub(super) fn none() -> Self {
        Self {
            fd: None,
            lender: None,
        }
    }

    pub(super) fn fd(&self) -> io::Result<&Hidden> {
        self.fd
            .as_ref()
            .ok_or_else(|| ErrorKind::Unsupported.into())
    }

    pub(super) fn lend(&mut self, lender: u64) -> io::Result<OwnedFd> {
        if self.lender.is_some_and(|other| other != lender) {
            return Err(ErrorKind::ResourceBusy.into());
        }
        let fd = self.fd()?.duplicate()?;
        self.lender = Some(lender);
        Ok(fd)
    }
}
