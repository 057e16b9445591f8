//! Memory files whose size is sealed.

use std::{
    io::{self, ErrorKind},
    iter,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, FileType, MemfdFlags, Mode, OFlags, SealFlags, SeekFrom, Stat, StatxFlags,
        fcntl_add_seals, fcntl_get_seals, fstat, fstatfs, ftruncate, memfd_create, seek, statx,
    },
    io::Errno,
};

use crate::limits;

pub(crate) fn create(len: usize) -> io::Result<OwnedFd> {
    create_as(NAME, len)
}

/// As [`create`], under a name that `/proc/PID/fd` and `/proc/PID/maps` show.
///
/// # Errors
/// `EFBIG` beyond the process's limit on the size of files, for which the kernel would send it `SIGXFSZ`; else the kernel's.
pub(crate) fn create_as(name: &str, len: usize) -> io::Result<OwnedFd> {
    if limits::soft(libc::RLIMIT_FSIZE).is_some_and(|most| most < len as u64) {
        return Err(Errno::FBIG.into());
    }
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        // Linux before 6.3 does not know the flag.
        Err(Errno::INVAL) => memfd_create(name, flags),
        result => result,
    }?;
    ftruncate(&fd, len as u64)?;
    fcntl_add_seals(&fd, SIZE_SEALS | SealFlags::SEAL)?;
    Ok(fd)
}

/// Which file something is, as the kernel tells it without asking a file system: a stranger's may never answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    device: (u32, u32),
    inode: u64,
}

impl Id {
    /// # Errors
    /// The kernel's; `InvalidData` for what is no regular file.
    pub(crate) fn of(at: impl AsFd, path: &Path) -> io::Result<Self> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let found = statx(at, path, flags, StatxFlags::TYPE | StatxFlags::INO)?;
        if FileType::from_raw_mode(found.stx_mode.into()) != FileType::RegularFile {
            return Err(ErrorKind::InvalidData.into());
        }
        Ok(Self {
            device: (found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
        })
    }
}

/// Opens a stranger's memfd by way of `/proc`, to read; `None` for what is none, and for one with a lease (`F_SETLEASE`): neither is waited for. To open a
/// pipe or a terminal, or what lies on a file system that its user serves, may take for ever, and a lease 45 seconds, as often as its user takes it.
///
/// # Errors
/// The kernel's.
pub(crate) fn open(path: &Path) -> io::Result<Option<(OwnedFd, Id)>> {
    // Nothing is opened by this, but what it is about stays the same.
    let place = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let own = memfd_create(NAME, MemfdFlags::CLOEXEC)?;
    let here = Path::new("");
    // All memfds are on one device, on which there is nothing else to open.
    let Ok(id) = Id::of(&place, here) else {
        return Ok(None);
    };
    if id.device != Id::of(&own, here)?.device {
        return Ok(None);
    }
    let path = format!("/proc/self/fd/{}", place.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Err(Errno::WOULDBLOCK) => Ok(None),
        opened => Ok(Some((opened?, id))),
    }
}

/// The size of a stranger's memfd, if nobody can ever change it.
///
/// # Errors
/// `InvalidData` if it is not a memfd, its size is not sealed, or it has huge pages (which a peer can take away: SIGBUS).
pub(crate) fn sealed_size(fd: BorrowedFd<'_>) -> io::Result<u64> {
    u64::try_from(sealed(fd)?.st_size).map_err(|_| ErrorKind::InvalidData.into())
}

/// As [`sealed_size`], and its device and number, which are the same for whoever has it.
///
/// # Errors
/// As there.
pub(crate) fn sealed(fd: BorrowedFd<'_>) -> io::Result<Stat> {
    // Only memory files have seals; others answer EINVAL.
    let seals = fcntl_get_seals(fd).map_err(|_| ErrorKind::InvalidData)?;
    let ordinary = fstatfs(fd)?.f_type.cast_unsigned() == TMPFS_MAGIC;
    if !seals.contains(SIZE_SEALS) || !ordinary {
        return Err(ErrorKind::InvalidData.into());
    }
    Ok(fstat(fd)?)
}

/// The parts of the first `len` bytes that may hold something other than zeros, in order.
pub(super) fn extents(fd: BorrowedFd<'_>, len: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    iter::from_fn(move || {
        let start = match seek(fd, SeekFrom::Data(at as u64)) {
            Ok(start) => usize::try_from(start).unwrap_or(len),
            Err(Errno::NXIO) => return None,
            Err(_) => at,
        };
        // A peer may fill and punch holes meanwhile; the answer is still after `at`, so this ends.
        let end = seek(fd, SeekFrom::Hole(start as u64))
            .map_or(len, |end| usize::try_from(end).unwrap_or(len));
        let (start, end) = (start.max(at), end.min(len));
        at = end;
        (start < end).then_some((start, end))
    })
}

const NAME: &str = "sovia";
const SIZE_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);
const TMPFS_MAGIC: u64 = 0x0102_1994;

#[cfg(all(test, not(loom)))]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn nobody_waits_for_who_holds_a_lease() {
        let made = create_as("leased", 4096).expect("memfd");
        let path = format!("/proc/self/fd/{}", made.as_raw_fd());
        let only = File::options().read(true).write(true).open(&path);
        let only = only.expect("opened anew");
        let path = format!("/proc/self/fd/{}", only.as_raw_fd());
        // A lease to write is for who alone has the file open.
        drop(made);
        let set = |command, value: i32| {
            // SAFETY: both commands take a number.
            assert_eq!(unsafe { libc::fcntl(only.as_raw_fd(), command, value) }, 0);
        };
        // What is sent to its holder would end this process.
        set(F_SETSIG, libc::SIGURG);
        set(libc::F_SETLEASE, libc::F_WRLCK);
        assert!(open(Path::new(&path)).expect("no error").is_none());
        set(libc::F_SETLEASE, libc::F_UNLCK);
        assert!(open(Path::new(&path)).expect("no error").is_some());
    }

    /// Not in the crate `libc`.
    const F_SETSIG: i32 = 10;
}
