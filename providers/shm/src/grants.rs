//! What the peer of one connection may write on its own.

use std::sync::{Mutex, MutexGuard, PoisonError};

use sys::segment::{Control, GRANTS};
use via::MemHandle;

/// The grants of one connection, by slot. They end with it at the latest: a peer that is honest begins nothing under them afterwards.
#[derive(Debug)]
pub(crate) struct Grants {
    control: Control,
    given: Mutex<Given>,
}

#[derive(Debug, Default)]
struct Given {
    slots: [Option<Granted>; GRANTS],
    /// The value of the last one: none is used twice.
    last: u32,
    /// The connection ends.
    closed: bool,
    /// What was taken back when it did.
    parted: Slots,
}

/// What a grant is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) handle: MemHandle,
    /// Where its memory begins: several regions may lie in one memory.
    pub(crate) addr: u64,
}

/// Some slots of a connection, a bit for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Slots(u32);

const _: () = assert!(GRANTS <= 32);

impl Grants {
    pub(crate) fn new(control: Control) -> Self {
        Self {
            control,
            given: Mutex::default(),
        }
    }

    /// Grants it: in which slot, under which value. `None` if it is granted already, all slots are taken, or the connection ends.
    pub(crate) fn offer(&self, granted: Granted) -> Option<(usize, u32)> {
        let mut given = self.given();
        if given.closed || given.slots.contains(&Some(granted)) {
            return None;
        }
        let slot = given.slots.iter().position(Option::is_none)?;
        let value = given.last.checked_add(1).unwrap_or(1);
        self.control.grant(slot)?.offer(value);
        given.slots[slot] = Some(granted);
        given.last = value;
        Some((slot, value))
    }

    /// Takes back what was granted of `which`: nothing begins there any more. In which slots something may be under way still.
    pub(crate) fn retract(&self, which: impl Fn(&Granted) -> bool) -> Slots {
        let mut given = self.given();
        let slots = self.take_back(&mut given, which);
        Slots(slots.0 | given.parted.0)
    }

    /// The connection ends: takes back everything, and grants nothing any more. In which slots something may be under way still.
    pub(crate) fn close(&self) -> Slots {
        let mut given = self.given();
        given.closed = true;
        let slots = self.take_back(&mut given, |_| true);
        given.parted.0 |= slots.0;
        given.parted
    }

    /// Whether the peer says that it writes under one of `slots`.
    pub(crate) fn is_busy(&self, slots: Slots) -> bool {
        (0..GRANTS)
            .filter(|slot| slots.0 & 1 << slot != 0)
            .filter_map(|slot| self.control.grant(slot))
            .any(|grant| grant.is_busy())
    }

    fn take_back(&self, given: &mut Given, which: impl Fn(&Granted) -> bool) -> Slots {
        let mut slots = Slots::default();
        for (slot, place) in given.slots.iter_mut().enumerate() {
            if place.take_if(|granted| which(granted)).is_some()
                && let Some(grant) = self.control.grant(slot)
            {
                grant.revoke();
                slots.0 |= 1 << slot;
            }
        }
        slots
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
