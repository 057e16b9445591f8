//! Sets that the program before this one, or that started it, has left.
//!
//! The kernel says what is in them. What our tokens there stand for, and what the program was told of, is written beside them.

use std::collections::BTreeSet;
use std::os::fd::RawFd;

use sys::epoll::Entry;
use sys::{bequest, epoll};

use super::member::{Member, What};
use super::record::{LEN, MemberRecord, Record, SetRecord};
use super::{Event, Set, places, token};

/// A set as it was left.
struct LeftSet {
    set: SetRecord,
    /// By index.
    members: Vec<MemberRecord>,
}

/// A set among the descriptors.
struct Found {
    fd: RawFd,
    entries: Vec<Entry>,
}

/// Mirrors these sets, of which these files tell. To be called once, before the program begins, when connections have been taken over.
pub fn take_over(sets: &[RawFd], bequests: &[RawFd]) {
    let mut found: Vec<Found> = Vec::new();
    let mut twins = Vec::new();
    for fd in sets.iter().copied() {
        let entries = epoll::entries(fd);
        let twin = found.iter().find(|other| {
            epoll::are_same(other.fd, fd)
                .unwrap_or_else(|| !entries.is_empty() && other.entries == entries)
        });
        match twin {
            Some(twin) => twins.push((twin.fd, fd)),
            None => found.push(Found { fd, entries }),
        }
    }
    let left: Vec<_> = bequest::claim(bequests)
        .iter()
        .flat_map(|file| read(file))
        .collect();
    // All are known before one is looked for among the members of another.
    for Found { fd, .. } in &found {
        places::first_seen(*fd);
    }
    for (old, new) in twins {
        places::duplicated(old, new);
    }
    for Found { fd, entries } in found {
        match places::known(fd) {
            Some(set) => {
                let left = found_in(&left, fd, &entries);
                set.resume(left, &entries);
                if left.is_some_and(|left| left.set.for_kernel) {
                    set.keep_to_kernel();
                }
            }
            None => entries
                .iter()
                .for_each(|entry| places::keep_to_kernel(entry.fd)),
        }
    }
}

/// Of a file that was left. None if this process has tokens of its own.
fn read(file: &[u8]) -> Vec<LeftSet> {
    let mut records = file.chunks_exact(LEN).map_while(Record::read);
    let mut sets: Vec<LeftSet> = Vec::new();
    let Some(Record::Prefix(prefix)) = records.next() else {
        return sets;
    };
    if !token::inherit(prefix) {
        return sets;
    }
    for record in records {
        match (record, sets.last_mut()) {
            (Record::Set(set), _) => sets.push(LeftSet {
                set,
                members: Vec::new(),
            }),
            (Record::Member(member), Some(set)) => set.members.push(member),
            _ => break,
        }
    }
    sets
}

/// What was left of the set at `fd`. What says that it is the one are the tokens in it, and where there are none, the number.
fn found_in<'a>(left: &'a [LeftSet], fd: RawFd, entries: &[Entry]) -> Option<&'a LeftSet> {
    let tokens = || {
        let is_token = |entry: &&Entry| token::member(entry.data).is_some();
        entries.iter().filter(is_token)
    };
    let fits = |set: &&LeftSet| {
        let known = keys(&set.members);
        tokens().all(|entry| known.contains(&(entry.fd, entry.data)))
    };
    let any = tokens().next().is_some();
    left.iter()
        .find(|set| set.set.fd == fd && fits(set))
        .or_else(|| left.iter().find(|set| any && fits(set)))
}

/// What the kernel has of these members.
fn keys(members: &[MemberRecord]) -> BTreeSet<(RawFd, u64)> {
    members.iter().map(MemberRecord::key).collect()
}

impl MemberRecord {
    /// The number and the data under which the kernel has it.
    fn key(&self) -> (RawFd, u64) {
        let data = match self.captured {
            Some(_) => token::of(self.index),
            None => self.data,
        };
        (self.fd, data)
    }
}

impl Set {
    fn resume(&self, left: Option<&LeftSet>, entries: &[Entry]) {
        let Some(mut members) = self.enter() else {
            return;
        };
        let records = left.map_or(&[][..], |left| &left.members);
        if let Some(left) = left {
            if left.set.visiting {
                self.visit(&mut members);
            }
            members.shared = left.set.shared;
            members.set_came(left.set.came);
        }
        let there: BTreeSet<_> = entries.iter().map(|entry| (entry.fd, entry.data)).collect();
        for record in records {
            if there.contains(&record.key()) && members.skip_to(record.index, record.fd).is_ok() {
                let member = Member::resumed(record);
                let is_orphan = member.via != member.fd;
                members.insert(record.index, member);
                if is_orphan {
                    members.orphan(record.index);
                }
                members.heat(record.index);
            }
        }
        let known = keys(records);
        for entry in entries {
            let is_known = known.contains(&(entry.fd, entry.data));
            if is_known || token::member(entry.data).is_some() {
                continue;
            }
            let Ok(index) = members.reserve(entry.fd) else {
                break;
            };
            let event = Event {
                events: entry.events,
                data: entry.data,
            };
            members.insert(index, Member::new(entry.fd, What::of(entry.fd), event));
            members.capture(index);
        }
    }
}
