//! Words that a process and those that it forks have in common.

use std::sync::OnceLock;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use crate::quiet::once;
use crate::sync::mapped::AtomicU64;

/// `LEN` words, all 0 in the beginning. Those have them that are born after the first look.
#[derive(Debug)]
pub struct Words<const LEN: usize>(OnceLock<Option<&'static [AtomicU64; LEN]>>);

impl<const LEN: usize> Words<LEN> {
    /// They take no memory before they are looked at.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it is for statics")]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Looks at them; `None` if there was no memory for them.
    pub fn get(&self) -> Option<&'static [AtomicU64; LEN]> {
        *once(&self.0, Self::map)
    }

    fn map() -> Option<&'static [AtomicU64; LEN]> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, which stays for ever, is as long as the words, and begins as zeros, which they may be.
        unsafe {
            let page = mmap_anonymous(
                std::ptr::null_mut(),
                size_of::<[AtomicU64; LEN]>(),
                access,
                MapFlags::SHARED,
            );
            page.ok().map(|page| &*page.cast())
        }
    }
}
