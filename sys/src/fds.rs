//! What a process holds: descriptors, threads, memory. For leak tests and for figures.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, RawFd};

use rustix::fs::{Mode, OFlags, RawDir, open};

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
