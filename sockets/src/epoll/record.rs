//! What a program writes down of a set and of each of its members, for the program that comes after it.

use std::os::fd::RawFd;

use crate::ready::Marks;

/// A line of what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// The first: what this process's tokens are made of.
    Prefix(u64),
    /// A set, whose members come next.
    Set(SetRecord),
    /// A member of the set before it.
    Member(MemberRecord),
}

/// A set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SetRecord {
    /// A descriptor of it that is inherited.
    pub(super) fd: RawFd,
    /// Whether other processes have it too.
    pub(super) shared: bool,
    /// Whether they know nothing of what is in memory.
    pub(super) for_kernel: bool,
    /// Whether what the kernel has of it is another process's business, as long as the next program does not use it.
    pub(super) visiting: bool,
    /// As [`Members`](super::members::Members) counts it.
    pub(super) came: u64,
}

/// A member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemberRecord {
    pub(super) index: u32,
    /// What the kernel knows it by.
    pub(super) fd: RawFd,
    /// Which socket it is; 0 for what is no connection.
    pub(super) cookie: u64,
    pub(super) events: u32,
    pub(super) data: u64,
    pub(super) captured: Option<u32>,
    pub(super) said: u32,
    pub(super) told_ends: u32,
    pub(super) fired: bool,
    pub(super) told: Marks,
}

impl Record {
    /// How it is written.
    pub(super) fn bytes(&self) -> [u8; LEN] {
        let words = match *self {
            Self::Prefix(prefix) => [PREFIX, prefix, 0, 0, 0, 0, 0, 0, 0, 0],
            Self::Set(set) => {
                let fd = u64::from(set.fd.cast_unsigned());
                let [shared, for_kernel, visiting] =
                    [set.shared, set.for_kernel, set.visiting].map(u64::from);
                let flags = shared | for_kernel << 1 | visiting << 2;
                [SET, fd, flags, set.came, 0, 0, 0, 0, 0, 0]
            }
            Self::Member(member) => [
                MEMBER,
                pair(member.fd.cast_unsigned(), member.index),
                member.cookie,
                pair(member.events, member.said),
                member.data,
                member
                    .captured
                    .map_or(NOT_CAPTURED, |events| pair(events, 0)),
                pair(member.told_ends, u32::from(member.fired)),
                member.told.input,
                member.told.sent,
                member.told.full_at,
            ],
        };
        let mut bytes = [0; LEN];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// What was written; `None` if it was not by this version of the library.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().ok()?);
        }
        let [kind, one, two, three, four, five, six, seven, eight, nine] = words;
        Some(match kind {
            PREFIX => Self::Prefix(one),
            SET => Self::Set(SetRecord {
                fd: low(one).cast_signed(),
                shared: two & 1 != 0,
                for_kernel: two & 2 != 0,
                visiting: two & 4 != 0,
                came: three,
            }),
            MEMBER => Self::Member(MemberRecord {
                index: high(one),
                fd: low(one).cast_signed(),
                cookie: two,
                events: low(three),
                said: high(three),
                data: four,
                captured: (five != NOT_CAPTURED).then(|| low(five)),
                told_ends: low(six),
                fired: high(six) != 0,
                told: Marks {
                    input: seven,
                    sent: eight,
                    full_at: nine,
                },
            }),
            _ => return None,
        })
    }
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn low(pair: u64) -> u32 {
    pair as u32
}

fn high(pair: u64) -> u32 {
    (pair >> 32) as u32
}

const WORDS: usize = 10;
/// Of a record, in bytes.
pub(super) const LEN: usize = WORDS * 8;
const NOT_CAPTURED: u64 = u64::MAX;
/// Kinds of records, with the version of all: another version has other numbers.
const PREFIX: u64 = 0x736f_7669_6100_0101;
const SET: u64 = PREFIX + 1;
const MEMBER: u64 = PREFIX + 2;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            numbers in any::<(u32, i32, u64, u32, u64)>(),
            more in any::<(Option<u32>, u32, u32, bool, [u64; 3])>(),
        ) {
            let (index, fd, cookie, events, data) = numbers;
            let (captured, said, told_ends, fired, [input, sent, full_at]) = more;
            let told = Marks { input, sent, full_at };
            let member = MemberRecord {
                index, fd, cookie, events, data, captured, said, told_ends, fired, told,
            };
            let set = SetRecord { fd, shared: fired, for_kernel: !fired, visiting: fired, came: data };
            for record in [Record::Prefix(data), Record::Set(set), Record::Member(member)] {
                prop_assert_eq!(Record::read(&record.bytes()), Some(record));
            }
        }
    }

    #[test]
    fn what_another_version_wrote_is_not_read() {
        let mut bytes = Record::Prefix(5).bytes();
        bytes[1] ^= 1;
        assert_eq!(Record::read(&bytes), None);
        assert_eq!(Record::read(&[]), None);
    }
}
