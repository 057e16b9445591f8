//! A RAM disk whose own speed is not what is measured.
//!
//! With the kernel's usual pages of 4 KiB it takes longer to write a file than to send it (`dd`: 2.9 GB/s, beside a stream's 20 and more), and most of FTP's time
//! goes there, however the bytes come. With pages of 2 MiB `dd` writes 19 GB/s.

use std::fs;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

use crate::error::{Error, Result};
use crate::output::complain;

/// A file system in large pages, which only this thread and what it starts see. It ends with this, or with the last of them.
pub(super) struct RamDisk(PathBuf);

impl RamDisk {
    /// At this folder, which is there.
    pub(super) fn mount(at: &Path) -> Result<Self> {
        let nothing = None::<&str>;
        let refused = |errno: Errno| Error::File {
            path: at.display().to_string(),
            source: errno.into(),
        };
        unshare(CloneFlags::CLONE_NEWNS).map_err(refused)?;
        // Else others would see what is mounted here.
        mount(
            nothing,
            "/",
            nothing,
            MsFlags::MS_REC | MsFlags::MS_PRIVATE,
            nothing,
        )
        .map_err(refused)?;
        mount(
            Some("sovia-bench"),
            at,
            Some("tmpfs"),
            MsFlags::empty(),
            Some("huge=always,size=1g"),
        )
        .map_err(refused)?;
        Ok(Self(at.to_owned()))
    }

    /// Why there can be none here.
    pub(super) fn obstacle() -> Option<String> {
        if fs::read_to_string(PAGES).is_ok_and(|pages| pages.contains("[deny]")) {
            return Some(format!("large pages are denied ({PAGES})"));
        }
        // For a moment, and nobody else sees it: it needs a folder that is there.
        Self::mount(&std::env::temp_dir())
            .err()
            .map(|error| format!("a RAM disk of large pages needs root: {error}"))
    }
}

impl Drop for RamDisk {
    fn drop(&mut self) {
        // Whoever is left in it keeps it until he ends.
        match umount2(&self.0, MntFlags::MNT_DETACH) {
            // Whoever was told to end has removed the folder, and what was mounted there with it.
            Ok(()) | Err(Errno::ENOENT | Errno::EINVAL) => {}
            Err(errno) => complain(format_args!("{}: {errno}", self.0.display())),
        }
    }
}

/// What the system says of large pages for files in memory.
const PAGES: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_goes_with_it() {
        let folder = std::env::temp_dir().join(format!("sovia-ram-test-{}", std::process::id()));
        fs::create_dir(&folder).expect("a folder");
        match RamDisk::mount(&folder) {
            Ok(disk) => {
                fs::write(folder.join("file"), "bytes").expect("room");
                drop(disk);
                assert_eq!(fs::read_dir(&folder).expect("the folder").count(), 0);
            }
            Err(error) => eprintln!("not tried, there is no RAM disk here: {error}"),
        }
        fs::remove_dir(&folder).expect("an empty folder");
    }
}
