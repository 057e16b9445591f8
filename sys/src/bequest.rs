//! What a program leaves to the one that it becomes, or starts: a memory file among the descriptors that are inherited.

use std::io;
use std::os::fd::{BorrowedFd, IntoRawFd, RawFd};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, fcntl_dupfd_cloexec, fcntl_setfd};

use crate::hidden::{self, Hidden, Raw};

/// A memory file that is being written. The next program has it; what this one has of it goes when it is dropped.
///
/// Nothing here allocates, marks the number as [hidden] or goes through the C library: in the child of `vfork` all memory is the parent's.
pub struct Bequest {
    file: Raw,
    buffer: [u8; BUFFER],
    len: usize,
}

impl std::fmt::Debug for Bequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Bequest").field(&self.file.0).finish()
    }
}

impl Bequest {
    /// An empty one.
    ///
    /// # Errors
    /// The kernel's.
    pub fn begin() -> io::Result<Self> {
        let low = Raw(memfd_create(NAME, MemfdFlags::CLOEXEC)?.into_raw_fd());
        // SAFETY: `low` owns it until the end of this function.
        let file = unsafe { BorrowedFd::borrow_raw(low.0) };
        let high = fcntl_dupfd_cloexec(file, hidden::base())?.into_raw_fd();
        Ok(Self {
            file: Raw(high),
            buffer: [0; BUFFER],
            len: 0,
        })
    }

    /// Adds to it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes {
            if self.len == BUFFER {
                self.flush()?;
            }
            if let Some(place) = self.buffer.get_mut(self.len) {
                *place = *byte;
            }
            self.len += 1;
        }
        Ok(())
    }

    /// All is written: it is inherited from now on.
    ///
    /// # Errors
    /// The kernel's.
    pub fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        fcntl_setfd(self.file(), rustix::io::FdFlags::empty())?;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut left = self.buffer.get(..self.len).unwrap_or_default();
        while !left.is_empty() {
            match rustix::io::write(self.file(), left) {
                Ok(0) => return Err(Errno::NOSPC.into()),
                Ok(written) => left = left.get(written..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        self.len = 0;
        Ok(())
    }

    fn file(&self) -> BorrowedFd<'_> {
        // SAFETY: `self` owns it.
        unsafe { BorrowedFd::borrow_raw(self.file.0) }
    }
}

/// Takes what was left to this program, each of these files, out of its descriptors.
pub fn claim(files: &[RawFd]) -> Vec<Vec<u8>> {
    files.iter().copied().filter_map(read).collect()
}

/// Whether a descriptor is such a file, by [what the kernel calls it](crate::fds::each_unlinked).
pub fn is_bequest(target: &[u8]) -> bool {
    target.starts_with(b"/memfd:sovia-sets")
}

fn read(fd: RawFd) -> Option<Vec<u8>> {
    let file = Hidden::adopt_number(fd)?;
    let mut bytes = Vec::new();
    let mut part = [0; PART];
    loop {
        // The writer's position is shared, and at the end.
        match rustix::io::pread(file.as_fd(), &mut part, bytes.len() as u64) {
            Ok(0) => return Some(bytes),
            Ok(n) if bytes.len() < LEN_MAX => bytes.extend_from_slice(part.get(..n)?),
            Ok(_) => return None,
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

const NAME: &str = "sovia-sets";
/// A record has a tenth of it. It is on a stack that may be short, and moved.
const BUFFER: usize = 512;
const PART: usize = 4096;
/// For more members than there can be descriptors.
const LEN_MAX: usize = 1 << 28;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_found_once() {
        let mut bequest = Bequest::begin().expect("a memory file");
        let all: Vec<u8> = (0..10_000u32).map(|n| n as u8).collect();
        bequest.write(&all[..5000]).expect("room");
        bequest.write(&all[5000..]).expect("room");
        bequest.finish().expect("written");
        // As the next program would have it, which has no value of ours for the number.
        std::mem::forget(bequest);
        let there = || {
            let mut files = Vec::new();
            crate::fds::each_unlinked(|fd, target| {
                if is_bequest(target) {
                    files.push(fd);
                }
            })
            .expect("/proc");
            files
        };
        assert_eq!(claim(&there()), [all]);
        assert_eq!(there(), [] as [RawFd; 0]);
    }
}
