//! What the kernel tells of a set: its members, and whether two descriptors are one set.

use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;

use rustix::fs::{CWD, readlinkat_raw};
use rustix::process::getpid;

use crate::holders::write_number;

/// A member as the kernel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The number that it was added by, in the process that did.
    pub fd: RawFd,
    /// Events, and flags.
    pub events: u32,
    /// The data that was given.
    pub data: u64,
}

/// Whether `fd` is a set. Allocates nothing.
pub fn is_set(fd: RawFd) -> bool {
    let mut target = [MaybeUninit::uninit(); 40];
    let mut name = [0; 40];
    let number = u64::from(fd.cast_unsigned());
    let len = write_number(&mut name, b"/proc/self/fd/", number);
    fd >= 0
        && readlinkat_raw(CWD, name.get(..len).unwrap_or_default(), &mut target)
            .is_ok_and(|(target, _)| names_set(target))
}

/// Whether a descriptor is a set, by [what the kernel calls it](crate::fds::each_unlinked).
pub fn names_set(target: &[u8]) -> bool {
    target == b"anon_inode:[eventpoll]"
}

/// The members of a set; none if `fd` is not one, or there is no `/proc`.
pub fn entries(fd: RawFd) -> Vec<Entry> {
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap_or_default();
    text.lines().filter_map(entry).collect()
}

/// Of a line as `tfd:       17 events: 80000019 data:               11  pos:0 ino:3c sdev:8`.
fn entry(line: &str) -> Option<Entry> {
    let mut words = line.strip_prefix("tfd:")?.split_ascii_whitespace();
    let fd = words.next()?.parse().ok()?;
    let mut after = |name| {
        let word = words.find(|word| word.starts_with(name))?;
        let value = word.strip_prefix(name).filter(|value| !value.is_empty());
        value.or_else(|| words.next())
    };
    let events = u32::from_str_radix(after("events:")?, 16).ok()?;
    let data = u64::from_str_radix(after("data:")?, 16).ok()?;
    Some(Entry { fd, events, data })
}

/// Whether two descriptors of this process are one open file; `None` if the kernel does not tell.
pub fn are_same(one: RawFd, other: RawFd) -> Option<bool> {
    let me = getpid().as_raw_pid();
    // SAFETY: numbers only.
    let order = unsafe { libc::syscall(libc::SYS_kcmp, me, me, KCMP_FILE, one, other) };
    (order >= 0).then_some(order == 0)
}

const KCMP_FILE: libc::c_int = 0;

#[cfg(all(test, not(loom)))]
mod tests {
    use std::os::fd::AsRawFd;

    use rustix::event::epoll::{CreateFlags, create};

    use super::*;

    #[test]
    fn a_set_tells_of_its_members() {
        let set = create(CreateFlags::CLOEXEC).expect("a set");
        let twin = set.try_clone().expect("a number");
        let other = create(CreateFlags::CLOEXEC).expect("a set");
        let (one, two) = std::os::unix::net::UnixStream::pair().expect("sockets");
        let at = set.as_raw_fd();
        assert!(is_set(at) && !is_set(one.as_raw_fd()) && !is_set(-1));
        assert_eq!(entries(at), []);
        super::super::add(at, one.as_raw_fd(), 1 | 1 << 31, u64::MAX - 5).expect("added");
        super::super::add(at, two.as_raw_fd(), 4, 7).expect("added");
        let mut found = entries(at);
        found.sort_by_key(|entry| entry.fd);
        // An error and an end are always told of.
        let expected = |fd: RawFd, events: u32, data| Entry {
            fd,
            events: events | 0x18,
            data,
        };
        assert_eq!(
            found,
            [
                expected(one.as_raw_fd(), 1 | 1 << 31, u64::MAX - 5),
                expected(two.as_raw_fd(), 4, 7)
            ]
        );
        assert_eq!(entries(one.as_raw_fd()), []);
        if let Some(same) = are_same(at, twin.as_raw_fd()) {
            assert!(same);
            assert_eq!(are_same(at, other.as_raw_fd()), Some(false));
        }
    }
}
