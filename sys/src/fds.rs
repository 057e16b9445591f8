//! What a process holds: descriptors, threads, memory. For leak tests and for figures.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawDir, Statx, StatxFlags, open, readlinkat_raw, stat,
    statx,
};
use rustix::io::Errno;

use crate::alone::is_alone;
use crate::holders::write_number;

/// How many descriptors this process has open.
///
/// # Errors
/// `EMFILE` if not one more can be opened to look; /proc not mounted.
pub fn open_count() -> io::Result<usize> {
    // The listing itself is one of those listed.
    Ok(fs::read_dir("/proc/self/fd")?.count() - 1)
}

/// Calls `visit` with each descriptor of this process: of the child, in one of `vfork`. Nothing of it goes through the C library.
///
/// # Errors
/// As [`open_count`].
pub fn each(mut visit: impl FnMut(RawFd)) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = open("/proc/self/fd", flags, Mode::empty())?;
    let mut buffer = [MaybeUninit::uninit(); 2048];
    let mut entries = RawDir::new(&directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let number = entry
            .file_name()
            .to_str()
            .ok()
            .and_then(|name| name.parse().ok());
        if let Some(fd) = number.filter(|fd| *fd != directory.as_raw_fd()) {
            visit(fd);
        }
    }
    Ok(())
}

/// As [`each`], of those that are files in memory only, or have been deleted, of sockets, and of what is only the kernel's, as sets are: with what it calls them
/// (`/memfd:NAME (deleted)`, `socket:[`, `anon_inode:[eventpoll]`), or the beginning of that. No file system is waited for.
///
/// # Errors
/// As [`each`].
pub fn each_unlinked(mut visit: impl FnMut(RawFd, &[u8])) -> io::Result<()> {
    // The kernel takes 5 us for each descriptor that it lists, and as much for a name.
    let count = known_count();
    let mut left = count;
    for fd in 0..FEW {
        if left == 0 {
            break;
        }
        left -= u64::from(look_at(fd, &mut visit));
    }
    if count > 0 && left == 0 {
        return Ok(());
    }
    let first = if count > 0 { FEW } else { 0 };
    each(|fd| {
        if fd >= first {
            look_at(fd, &mut visit);
        }
    })
}

/// How many descriptors there are; 0 if that is not known: the kernel says it since Linux 6.2, and another thread may change it meanwhile.
fn known_count() -> u64 {
    // A directory has two links more than there are directories in it, one for each thread. The look at one of a new process makes the kernel build it.
    let is_alone = is_alone() || stat("/proc/self/task").is_ok_and(|tasks| tasks.st_nlink == 3);
    let count = stat("/proc/self/fd").map_or(0, |all| all.st_size.cast_unsigned());
    if is_alone { count } else { 0 }
}

/// Of [`each_unlinked`]; whether there is such a descriptor.
fn look_at(fd: RawFd, visit: &mut impl FnMut(RawFd, &[u8])) -> bool {
    // SAFETY: it is only asked what it is; who closes it meanwhile is told nothing wrong.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let wanted = StatxFlags::TYPE | StatxFlags::NLINK;
    match statx(file, "", flags, wanted).map(|found| (kind(&found), is_linked(&found))) {
        Err(Errno::BADF) => return false,
        // Whoever forbids the question has not said that nothing is there.
        Err(_) => {}
        Ok((FileType::Socket, _)) => {
            visit(fd, SOCKET);
            return true;
        }
        Ok(
            (
                FileType::Fifo
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Directory,
                _,
            )
            | (FileType::RegularFile, true),
        ) => return true,
        Ok(_) => {}
    }
    let mut path = [0; NAME_LEN];
    let len = write_number(&mut path, b"/proc/self/fd/", fd.cast_unsigned().into());
    let mut target = [MaybeUninit::uninit(); NAME_LEN];
    match readlinkat_raw(CWD, path.get(..len).unwrap_or_default(), &mut target) {
        Ok((target, _)) => visit(fd, target),
        Err(_) => return false,
    }
    true
}

fn kind(found: &Statx) -> FileType {
    FileType::from_raw_mode(found.stx_mode.into())
}

/// Whether it has a name on a file system.
fn is_linked(found: &Statx) -> bool {
    found.stx_mask & StatxFlags::NLINK.bits() != 0 && found.stx_nlink > 0
}

/// What a socket's name begins with.
pub const SOCKET: &[u8] = b"socket:[";

/// Numbers from here on are listed, if there are any.
const FEW: RawFd = 256;
/// So long are names, at most. What is looked for by name is shorter.
const NAME_LEN: usize = 64;

/// How many threads this process has.
///
/// # Errors
/// As [`open_count`].
pub fn thread_count() -> io::Result<usize> {
    Ok(fs::read_dir("/proc/self/task")?.count())
}

/// The memory of a process in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Every page that it maps and that is in memory.
    pub resident: u64,
    /// The same, with a shared page divided among those who map it: these figures add up.
    pub proportional: u64,
}

/// The memory of the process `pid`; of this one for `None`.
///
/// # Errors
/// `NotFound` for no such process, `PermissionDenied` for another user's, `InvalidData` if the kernel says what we cannot read.
pub fn footprint(pid: Option<u32>) -> io::Result<Footprint> {
    let process = pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup"))?;
    parse(&rollup).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn parse(rollup: &str) -> Option<Footprint> {
    Some(Footprint {
        resident: bytes(rollup, "Rss:")?,
        proportional: bytes(rollup, "Pss:")?,
    })
}

fn bytes(rollup: &str, field: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, memfd_create};
    use rustix::io::fcntl_dupfd_cloexec;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::*;

    #[test]
    fn reads_the_kernels_table() {
        let rollup = "aaaa0000-ffff0000 ---p 00000000 00:00 0    [rollup]\n\
                      Rss:                1768 kB\nPss:                 401 kB\nPss_Dirty:           120 kB\n";
        let expected = Footprint {
            resident: 1768 * 1024,
            proportional: 401 * 1024,
        };
        assert_eq!(parse(rollup), Some(expected));
        assert_eq!(parse("Rss:  12 pages\n"), None);
    }

    #[test]
    fn this_process_has_memory() {
        let ours = footprint(None).expect("smaps_rollup");
        assert!(ours.proportional > 0);
        assert!(ours.resident >= ours.proportional);
        assert_eq!(
            footprint(Some(u32::MAX)).expect_err("no such pid").kind(),
            io::ErrorKind::NotFound
        );
    }

    #[test]
    fn files_are_found_by_name_wherever_they_are() {
        let limits = getrlimit(Resource::Nofile);
        let all = Rlimit {
            current: limits.maximum,
            ..limits
        };
        setrlimit(Resource::Nofile, all).expect("as many as may be");
        let low = memfd_create("sovia-test-of-files", MemfdFlags::CLOEXEC).expect("memory");
        let high = fcntl_dupfd_cloexec(&low, FEW + 7).expect("a number");
        let (other, _end) = std::os::unix::net::UnixStream::pair().expect("sockets");
        let linked = fs::File::open("/proc/self/exe").expect("a file");
        let mut found = Vec::new();
        let mut sockets = Vec::new();
        each_unlinked(|fd, name| {
            if name.starts_with(b"/memfd:sovia-test-of-files") {
                found.push(fd);
            }
            if name.starts_with(SOCKET) {
                sockets.push(fd);
            }
            assert_ne!(fd, linked.as_raw_fd(), "it is on a disk");
        })
        .expect("/proc");
        assert_eq!(found, [low.as_raw_fd(), high.as_raw_fd()]);
        assert!(sockets.contains(&other.as_raw_fd()));
    }

    // The other tests of this program open descriptors and start threads meanwhile, so only lower bounds hold.
    #[test]
    fn this_process_has_descriptors_and_threads() {
        let held: Vec<_> = (0..100)
            .map(|_| fs::File::open("/dev/null").expect("/dev/null"))
            .collect();
        assert!(open_count().expect("fds") >= held.len());
        assert!(thread_count().expect("tasks") >= 2);
    }
}
