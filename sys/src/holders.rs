//! Who else has a socket.
//!
//! The kernel counts who has an open file and does not tell. `/proc` does, for each process that we may look at. Nothing here allocates or goes
//! through the C library, for it is asked in the middle of a program's call, perhaps in its signal handler.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::str::FromStr;

use rustix::fs::{CWD, FileType, Mode, OFlags, RawDir, fstat, openat, readlinkat_raw};
use rustix::io::{Errno, read};
use rustix::process::{Pid, getpid, getppid, test_kill_process};
use rustix::time::{ClockId, clock_gettime};

/// Who has a socket beside this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Nobody.
    None,
    /// Another process has it.
    Some,
    /// One that may have it does not let itself be looked at, or there is no `/proc`.
    Unknown,
}

/// A fork before which the process that forked was the only one to have some socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fork {
    /// The process.
    pub pid: i32,
    /// When, in the kernel's ticks (hundredths of a second) since the host booted: those in which `/proc` says when a process began.
    pub ticks: u64,
}

impl Fork {
    /// For a fork of this process that is about to happen.
    pub fn imminent() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        let (seconds, part) = (now.tv_sec.cast_unsigned(), now.tv_nsec.cast_unsigned());
        Self {
            pid: getpid().as_raw_pid(),
            ticks: seconds * TICKS_PER_SECOND + part / (1_000_000_000 / TICKS_PER_SECOND),
        }
    }

    /// Whether the process may have what its forker had alone before.
    fn may_have_reached(self, pid: i32, process: BorrowedFd<'_>) -> bool {
        pid == self.pid || birth_at(process).is_none_or(|birth| birth.ticks >= self.ticks)
    }
}

/// Looks for other processes that have the socket `fd`. It takes microseconds per process of the host; what a descriptor under way in
/// a message holds is not seen.
///
/// A process that we may not look at counts only if it is an ancestor of this one or of its session: nobody else came to be with a copy
/// of this process's descriptors. Where `since` is the fork before which one process had the socket alone, it counts only if it is that process
/// or began later: a server's ancestors, who may be of another user, have nothing of what the server accepted.
pub fn others(fd: BorrowedFd<'_>, since: Option<Fork>) -> Others {
    let Ok(found) = fstat(fd) else {
        return Others::None;
    };
    let socket = Socket::of(found.st_ino);
    match look(&socket, since) {
        Ok(others) => others,
        // Too few descriptors to look, or no /proc.
        Err(_) => Others::Unknown,
    }
}

/// Whether the process, or that of the thread, with that number has the socket `fd`; `None` if we may not know. One that is not there, or not to be
/// seen, is not known not to have it.
pub fn is_held_by(fd: BorrowedFd<'_>, number: i32) -> Option<bool> {
    let socket = Socket::of(fstat(fd).ok()?.st_ino);
    let proc = directory(CWD, c"/proc").ok()?;
    let fds = open_files(proc.as_fd(), number).ok()?;
    has(fds.as_fd(), &socket).ok()
}

/// Whether the thread with that number belongs to another process that has the socket `fd`; `None` if we may not know.
pub fn is_other(fd: BorrowedFd<'_>, thread: u32) -> Option<bool> {
    let mut own = [0; 40];
    let len = write_number(&mut own, b"/proc/self/task/", u64::from(thread));
    if directory(CWD, own.get(..len).unwrap_or_default()).is_ok() {
        return Some(false);
    }
    is_held_by(fd, thread.cast_signed())
}

/// Whether the process with that number has ended, and was waited for.
pub fn has_ended(pid: u32) -> bool {
    Pid::from_raw(pid.cast_signed()).is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

fn look(socket: &Socket, since: Option<Fork>) -> Result<Others, Errno> {
    let me = getpid().as_raw_pid();
    let family = Family::of_this_process();
    let proc = directory(CWD, c"/proc")?;
    let mut unseen = family.incomplete;
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(&proc, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let Some(pid) = number(entry.file_name().to_bytes()) else {
            continue;
        };
        if pid == me || !matches!(entry.file_type(), FileType::Directory | FileType::Unknown) {
            continue;
        }
        match open_files(proc.as_fd(), pid).and_then(|fds| has(fds.as_fd(), socket)) {
            Ok(true) => return Ok(Others::Some),
            Ok(false) => {}
            // It has ended.
            Err(Errno::SRCH | Errno::NOENT) => {}
            Err(Errno::MFILE | Errno::NFILE) => return Err(Errno::MFILE),
            Err(_) => {
                let Ok(process) = directory(proc.as_fd(), entry.file_name()) else {
                    continue;
                };
                unseen |= family.may_include(pid, process.as_fd())
                    && since.is_none_or(|fork| fork.may_have_reached(pid, process.as_fd()));
            }
        }
    }
    Ok(if unseen {
        Others::Unknown
    } else {
        Others::None
    })
}

/// In one step: there may be thousands of processes.
fn open_files(proc: BorrowedFd<'_>, pid: i32) -> Result<OwnedFd, Errno> {
    let mut path = [0; 24];
    let pid = u64::try_from(pid).map_err(|_| Errno::NOENT)?;
    let len = write_number(&mut path, b"", pid);
    let name = path.get_mut(len..).and_then(|rest| rest.get_mut(..3));
    name.ok_or(Errno::NOENT)?.copy_from_slice(b"/fd");
    directory(proc, path.get(..len + 3).unwrap_or_default())
}

fn has(fds: BorrowedFd<'_>, socket: &Socket) -> Result<bool, Errno> {
    let mut buffer = [MaybeUninit::uninit(); 2048];
    let mut entries = RawDir::new(fds, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let mut target = [MaybeUninit::uninit(); 40];
        // One that was closed meanwhile is no holder.
        if let Ok((target, _)) = readlinkat_raw(fds, entry.file_name(), &mut target)
            && target == socket.name()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Processes from which this one may have its descriptors.
struct Family {
    session: i32,
    ancestors: [i32; GENERATIONS],
    /// Whether there are ancestors that `/proc` does not show.
    incomplete: bool,
}

impl Family {
    fn of_this_process() -> Self {
        let mut family = Self {
            // 0 for a leader outside of the namespace of process numbers, which rustix's getsid does not expect.
            session: birth(getpid().as_raw_pid()).map_or(0, |own| own.session),
            ancestors: [0; GENERATIONS],
            incomplete: false,
        };
        let mut parent = getppid().map_or(0, |pid| pid.as_raw_pid());
        if parent == 0 {
            // Outside of the namespace of process numbers, unless this is the first in it.
            family.incomplete = getpid().as_raw_pid() != 1;
        }
        for ancestor in &mut family.ancestors {
            if parent <= 0 {
                break;
            }
            *ancestor = parent;
            match birth(parent) {
                Some(of_parent) => parent = of_parent.parent,
                None => {
                    family.incomplete = true;
                    break;
                }
            }
        }
        family
    }

    fn may_include(&self, pid: i32, process: BorrowedFd<'_>) -> bool {
        if self.ancestors.contains(&pid) {
            // The first process has what it opened for itself; who is its child by adoption has nothing of it.
            return pid != 1 || getppid().map_or(0, |parent| parent.as_raw_pid()) != 1;
        }
        birth_at(process).is_some_and(|birth| birth.session == self.session)
    }
}

/// Where a process comes from.
struct Birth {
    parent: i32,
    session: i32,
    /// As in [`Fork`].
    ticks: u64,
}

fn birth(pid: i32) -> Option<Birth> {
    let mut name = [0; 24];
    let len = write_number(&mut name, b"/proc/", u64::try_from(pid).ok()?);
    let path = name.get(..len)?;
    birth_at(directory(CWD, path).ok()?.as_fd())
}

/// proc(5), `/proc/PID/stat`: `ppid` is field 4, `session` 6, `starttime` 22.
fn birth_at(process: BorrowedFd<'_>) -> Option<Birth> {
    let stat = openat(
        process,
        c"stat",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .ok()?;
    let mut text = [0; 512];
    let n = read(&stat, &mut text).ok()?;
    let text = text.get(..n)?;
    // The name of the program, in parentheses, may hold anything.
    let after = text.iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = text
        .get(after..)?
        .split(|byte| *byte == b' ')
        .filter(|field| !field.is_empty())
        .skip(1);
    Some(Birth {
        parent: number(fields.next()?)?,
        session: number(fields.nth(1)?)?,
        ticks: number(fields.nth(15)?)?,
    })
}

/// As `/proc/PID/fd` names a socket.
struct Socket {
    name: [u8; 40],
    len: usize,
}

impl Socket {
    fn of(inode: u64) -> Self {
        let mut name = [0; 40];
        let mut len = write_number(&mut name, b"socket:[", inode);
        if let Some(end) = name.get_mut(len) {
            *end = b']';
            len += 1;
        }
        Self { name, len }
    }

    fn name(&self) -> &[u8] {
        self.name.get(..self.len).unwrap_or_default()
    }
}

/// Writes `before` and a decimal number; returns how many bytes.
pub(crate) fn write_number(into: &mut [u8], before: &[u8], number: u64) -> usize {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        if let Some(digit) = digits.get_mut(at) {
            *digit = b'0' + (rest % 10) as u8;
        }
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let written = before.iter().chain(digits.iter().skip(at));
    into.iter_mut()
        .zip(written)
        .map(|(place, byte)| *place = *byte)
        .count()
}

fn number<N: FromStr>(digits: &[u8]) -> Option<N> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn directory(at: BorrowedFd<'_>, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(at, name, flags, Mode::empty())
}

/// The kernel's `USER_HZ`, the same on all its processors but Alpha and IA-64.
const TICKS_PER_SECOND: u64 = 100;

/// More ancestors than anybody has.
const GENERATIONS: usize = 64;

#[cfg(all(test, not(loom)))]
mod tests {
    use std::net::TcpListener;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_child_that_inherits_a_socket_has_it_until_it_ends() {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
        assert_ne!(others(socket.as_fd(), None), Others::Some);
        let as_input = socket.try_clone().expect("dup");
        let mut child = Command::new("sleep")
            .arg("1000")
            .stdin(Stdio::from(OwnedFd::from(as_input)))
            .spawn()
            .expect("sleep(1)");
        assert_eq!(others(socket.as_fd(), None), Others::Some);
        child.kill().expect("it runs");
        child.wait().expect("it is ours");
        assert_ne!(others(socket.as_fd(), None), Others::Some);
    }

    /// What a process that we may not look at is counted by.
    #[test]
    fn who_began_before_the_fork_has_nothing_of_it() {
        let fork = Fork::imminent();
        let mut child = Command::new("sleep").arg("1000").spawn().expect("sleep(1)");
        let process = |pid: u32| {
            let path = format!("/proc/{pid}");
            directory(CWD, path.as_str()).expect("it runs")
        };
        let reached = |pid: u32| {
            let number = i32::try_from(pid).expect("a process's number");
            fork.may_have_reached(number, process(pid).as_fd())
        };
        assert!(reached(std::process::id()), "the one that forked");
        assert!(reached(child.id()), "a younger one");
        let later = Fork {
            pid: 0,
            ticks: fork.ticks + 100 * TICKS_PER_SECOND,
        };
        let number = i32::try_from(child.id()).expect("a process's number");
        assert!(
            !later.may_have_reached(number, process(child.id()).as_fd()),
            "an older one"
        );
        let own = birth(i32::try_from(std::process::id()).expect("a number")).expect("/proc");
        assert!(own.ticks <= fork.ticks && fork.ticks <= Fork::imminent().ticks);
        child.kill().expect("it runs");
        child.wait().expect("it is ours");
    }

    #[test]
    fn names_are_as_the_kernel_writes_them() {
        assert_eq!(Socket::of(1234567).name(), b"socket:[1234567]");
        let whole = Socket::of(u64::MAX);
        assert_eq!(whole.name(), b"socket:[18446744073709551615]");
    }
}
