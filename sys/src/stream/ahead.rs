//! The lines that a message there and back touches, asked for together.
//!
//! Of some thousand connections that are used in turn none has its lines in a near cache, and one after the other each would be waited for: turns,
//! publishing and arming are locked instructions, which nothing overtakes.

use std::mem::offset_of;
use std::ptr::without_provenance;

use super::Rx;
use super::layout::{BEHINDS, ControlPage, PAGE, SHOWN, SideWords};
use crate::mem::{prefetch, prefetch_to_write};

impl Rx<'_> {
    /// Where [`fetch`] finds the stream: the address of what the peer shows.
    pub fn watched(&self) -> usize {
        std::ptr::from_ref(self.words().published).addr()
    }
}

/// Asks for what a message there and back touches, of the stream that is [watched](Rx::watched), without waiting for it. A hint: any number will do.
pub fn fetch(watched: usize) {
    let page = watched & !(PAGE as usize - 1);
    let rx = usize::from(watched != page + SHOWN[0]);
    let tx = rx ^ 1;
    let at = |offset: usize| without_provenance::<u8>(page + offset);
    let side = |index: usize, offset| {
        at(offset_of!(ControlPage, sides) + index * size_of::<SideWords>() + offset)
    };
    prefetch(at(SHOWN[rx]), 1);
    // Where they are short, both begin here.
    prefetch(at(BEHINDS[rx]), 1);
    prefetch_to_write(at(BEHINDS[tx]), 1);
    prefetch_to_write(at(SHOWN[tx]), 1);
    prefetch_to_write(side(tx, offset_of!(SideWords, receiver)), 1);
    prefetch_to_write(side(tx, offset_of!(SideWords, sender)), 1);
    prefetch(at(offset_of!(ControlPage, asked)), 1);
    prefetch(at(offset_of!(ControlPage, switches)), 1);
    prefetch(at(offset_of!(ControlPage, both)), 1);
}
