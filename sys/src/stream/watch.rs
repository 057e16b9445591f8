//! Looks at what a sender shows, by who has no turn.

use std::fmt;

use super::Stream;
use super::layout::ControlPage;
use crate::mem::{Lease, prefetch};
use crate::sync::Ordering;

/// What the sender of one direction shows. The memory stays mapped as long as this lives, whatever becomes of the [`Stream`].
pub struct Watch {
    #[cfg_attr(loom, expect(dead_code, reason = "what is in it loom has elsewhere"))]
    mapping: Lease,
    #[cfg(loom)]
    page: super::modelled::Page,
    index: usize,
}

/// What it showed. The peer can write it: it is to be compared, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    tail: u64,
    fin: u32,
}

impl Watch {
    pub(super) fn new(stream: &Stream, index: usize) -> Option<Self> {
        Some(Self {
            mapping: stream.mapping.share()?,
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
        std::ptr::from_ref(self.control().direction(self.index).published).addr() == watched
    }

    #[cfg(loom)]
    fn control(&self) -> &ControlPage {
        self.page.words()
    }

    #[cfg(not(loom))]
    #[inline]
    fn control(&self) -> &ControlPage {
        // SAFETY: as in `Stream::control`: the mapping is a whole stream's, and outlives `self`.
        unsafe { &*self.mapping.first().cast() }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("shown", &self.shown())
            .finish()
    }
}
