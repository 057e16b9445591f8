//! A member as it is left to the next program, and as that has it.

use std::os::fd::RawFd;

use super::{Event, Member, What};
use crate::epoll::record::MemberRecord;
use crate::ready::ALWAYS;
use crate::table;

impl Member {
    /// What the next program is to know; `None` of a free place, and of what the program has deleted.
    pub(in crate::epoll) fn record(&self, index: u32) -> Option<MemberRecord> {
        let cookie = match self.what {
            What::Connection { conn, .. } => {
                sys::socket::with_borrowed(self.via, |fd| conn.note_socket(fd));
                conn.cookie()
            }
            What::Set(_) | What::Other => 0,
            What::Nothing => return None,
        };
        if self.dormant {
            return None;
        }
        Some(MemberRecord {
            index,
            fd: self.fd,
            cookie,
            events: self.events,
            data: self.data,
            captured: self.captured,
            said: self.said,
            told_ends: self.told_ends.into(),
            fired: self.fired,
            told: self.told,
        })
    }

    /// Goes on as the program before this one left it.
    pub(in crate::epoll) fn resumed(record: &MemberRecord) -> Self {
        let (what, via) = match record.cookie {
            0 => (What::of(record.fd), record.fd),
            cookie => connection(record.fd, cookie),
        };
        let event = Event {
            events: record.events,
            data: record.data,
        };
        Self {
            captured: record.captured,
            said: record.said,
            told_ends: (record.told_ends & ALWAYS) as u8,
            fired: record.fired,
            told: record.told,
            via,
            ..Self::new(record.fd, what, event)
        }
    }
}

/// The connection with that cookie, and a descriptor of it: the one that it was a member by, or another one if that was closed.
fn connection(fd: RawFd, cookie: u64) -> (What, RawFd) {
    let what = What::of(fd);
    if matches!(what, What::Connection { conn, .. } if conn.cookie() == cookie) {
        return (what, fd);
    }
    let mut found = None;
    table::for_each(|other, conn| {
        if conn.cookie() == cookie {
            found = Some((other, conn));
        }
    });
    match found {
        Some((via, conn)) => {
            let generation = conn.generation();
            (What::Connection { conn, generation }, via)
        }
        // Another process has it, and not this one.
        None => (What::Other, fd),
    }
}
