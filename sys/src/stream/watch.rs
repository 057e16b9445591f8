//! Looks at what a sender shows, by who has no turn.

use std::fmt;

use super::Stream;
use super::layout::ControlPage;
use crate::mem::{Lease, prefetch};
use crate::sync::Ordering;

/// What the sender of one direction shows. The memory stays mapped as long as this lives, whatever becomes of the [`Stream`].
pub struct Watch {
    _mapping: Lease,
    /// Where the words are in it.
    #[cfg(not(loom))]
    words: *const ControlPage,
    #[cfg(loom)]
    page: super::modelled::Page,
    index: usize,
}

// SAFETY: the pointer is to what is mapped as long as the value lives, and is not tied to a thread.
unsafe impl Send for Watch {}
// SAFETY: what is reached through `&self` is atomics.
unsafe impl Sync for Watch {}

/// What it showed. The peer can write it: it is to be compared, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    tail: u64,
    fin: u32,
}

impl Watch {
    pub(super) fn new(stream: &Stream, index: usize) -> Option<Self> {
        Some(Self {
            _mapping: stream.mapping.share()?,
            #[cfg(not(loom))]
            words: stream.words.cast(),
            #[cfg(loom)]
            page: stream.page.clone(),
            index: index & 1,
        })
    }

    /// What changes with each byte that is sent, and when the sender ends.
    #[inline]
    pub fn shown(&self) -> Shown {
        let published = self.control().direction(self.index).published;
        Shown {
            tail: published.tail.load(Ordering::Acquire),
            fin: published.fin.load(Ordering::Relaxed),
        }
    }

    /// Asks for what [`Watch::shown`] reads, without waiting for it.
    #[inline]
    pub fn foresee(&self) {
        let published = std::ptr::from_ref(self.control().direction(self.index).published);
        prefetch(published.cast(), 1);
    }

    /// Whether it watches this direction: the number is [`Rx::watched`](super::Rx::watched)'s.
    #[inline]
    pub fn is_of(&self, watched: usize) -> bool {
        let published = self.control().direction(self.index).published;
        std::ptr::from_ref(published).addr() | self.index == watched
    }

    #[cfg(loom)]
    fn control(&self) -> &ControlPage {
        self.page.words()
    }

    #[cfg(not(loom))]
    #[inline]
    fn control(&self) -> &ControlPage {
        // SAFETY: as in `Stream::control`: the mapping is a whole stream's, and outlives `self`.
        unsafe { &*self.words }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("shown", &self.shown())
            .finish()
    }
}
