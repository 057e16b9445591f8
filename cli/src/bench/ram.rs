//! A RAM disk whose own speed is not what is measured.
//!
//! With the kernel's usual pages of 4 KiB to write a file takes longer than to send it (`dd`: 2.6 GB/s, beside a stream's 20 and more), and so do most of FTP's seconds
//! go there, however the bytes come. With pages of 2 MiB it is 19 GB/s.

use std::fs;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

use crate::error::{Context, Error, Result};
use crate::output::complain;

/// A file system in large pages, which only this thread and what it starts see. It ends with this, or with the last of them.
pub(super) struct RamDisk(PathBuf);

impl RamDisk {
    /// At this folder, which is there.
    pub(super) fn mount(at: &Path) -> Result<Self> {
        let nothing = None::<&str>;
        let refused = |errno: nix::errno::Errno| Error::File {
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
        let folder = std::env::temp_dir().join(format!("sovia-ram-{}", std::process::id()));
        let tried = fs::create_dir(&folder)
            .context("a folder for a RAM disk")
            .and_then(|()| Self::mount(&folder));
        let obstacle = tried
            .err()
            .map(|error| format!("a RAM disk of large pages, which root may mount: {error}"));
        let _ = fs::remove_dir(&folder);
        obstacle
    }
}

impl Drop for RamDisk {
    fn drop(&mut self) {
        // Whoever is left in it keeps it until he ends.
        if let Err(errno) = umount2(&self.0, MntFlags::MNT_DETACH) {
            complain(format_args!("{}: {errno}", self.0.display()));
        }
    }
}
