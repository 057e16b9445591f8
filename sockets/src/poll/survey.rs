//! What descriptors are to a poller.

use std::os::fd::RawFd;
use std::sync::OnceLock;

use sys::quiet::once;
use sys::wait::{Limits, Spinner};

use super::{PollFd, bits, habit};
use crate::conn::Conn;
use crate::epoll::{self, Set};
use crate::ready::PRI;
use crate::table::newborn;
use crate::{rules, table};

/// What a list of descriptors consists of.
pub(super) struct Survey {
    /// How many are looked at in memory.
    pub(super) in_memory: usize,
    /// The [`habit`]'s key of those of which the kernel may know what memory does not.
    pub(super) others_key: u64,
    /// How many are connections that only the kernel knows.
    pub(super) connections: usize,
    /// How many are such sets.
    pub(super) sets: usize,
    /// One that is a connection; with rings if there is such a one.
    pub(super) connection: Option<&'static Conn>,
}

impl Survey {
    /// How to wait for memory.
    pub(super) fn memory(&self) -> &Spinner {
        static SEVERAL: OnceLock<Spinner> = OnceLock::new();
        let several = || once(&SEVERAL, || Spinner::new(rules::limited(Limits::MEMORY)));
        self.speaker().map_or_else(several, |conn| &conn.memory)
    }

    /// How to wait for the kernel.
    pub(super) fn socket(&self) -> &Spinner {
        static SEVERAL: OnceLock<Spinner> = OnceLock::new();
        let several = || once(&SEVERAL, || Spinner::new(rules::limited(Limits::SOCKET)));
        self.speaker().map_or_else(several, |conn| &conn.socket)
    }

    /// The connection that this waits as: of several any of them, as long as they are all alike.
    fn speaker(&self) -> Option<&'static Conn> {
        let alike = match self.in_memory {
            0 => self.connections,
            rings => rings,
        };
        self.connection
            .filter(|_| alike == 1 || !rules::waits_differ())
    }
}

#[inline]
pub(super) fn survey(fds: &[PollFd]) -> Survey {
    let mut found = Survey {
        in_memory: 0,
        others_key: habit::NOTHING,
        connections: 0,
        sets: 0,
        connection: None,
    };
    for entry in fds {
        match What::is(entry.fd) {
            What::Nothing => {}
            What::Ring(conn) => {
                found.in_memory += 1;
                found.connection = Some(conn);
                if bits(entry.events) & PRI != 0 {
                    found.others_key = habit::key_with(found.others_key, entry);
                }
            }
            What::Set(_) => found.in_memory += 1,
            What::PlainSet(_) => {
                found.others_key = habit::key_with(found.others_key, entry);
                found.sets += 1;
            }
            What::Other => {
                found.others_key = habit::key_with(found.others_key, entry);
                if found.in_memory == 0
                    && let Some(conn) = table::known(entry.fd)
                {
                    found.connection = Some(conn);
                    found.connections += 1;
                }
            }
        }
    }
    found
}

/// What a descriptor is to a poller.
pub(super) enum What {
    /// A negative number.
    Nothing,
    /// A connection with rings.
    Ring(&'static Conn),
    /// A set with such connections in it.
    Set(&'static Set),
    /// A set of which only the kernel knows, as long as nothing with rings comes into it.
    PlainSet(&'static Set),
    /// The kernel's.
    Other,
}

impl What {
    #[inline]
    pub(super) fn is(fd: RawFd) -> Self {
        if fd < 0 {
            return Self::Nothing;
        }
        match table::known(fd) {
            Some(conn) if conn.is_mapped() => Self::Ring(conn),
            Some(_) => Self::Other,
            None => epoll::known(fd).map_or(Self::Other, Self::of_set),
        }
    }

    #[inline]
    fn of_set(set: &'static Set) -> Self {
        // Else it would be missed what it watches for the kernel alone.
        newborn::settle();
        set.catch_up();
        if set.is_in_memory() {
            Self::Set(set)
        } else {
            Self::PlainSet(set)
        }
    }
}
