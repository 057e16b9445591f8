//! The lines that a message there and back touches, asked for together.
//!
//! Of some thousand connections that are used in turn none has its lines in a near cache, and one after the other each would be waited for:
//! publishing, arming and, where there are other threads, turns are locked instructions, which nothing overtakes.

use std::mem::offset_of;
use std::ptr::without_provenance;

use super::Rx;
use super::layout::{BEHINDS, ControlPage, SHOWN, SideWords, in_page};
use crate::mem::{prefetch, prefetch_to_write};

impl Rx<'_> {
    /// Where [`fetch`] finds the stream: the address of what the peer shows, and which side's that is.
    pub fn watched(&self) -> usize {
        std::ptr::from_ref(self.words().published).addr() | self.index & 1
    }
}

/// Asks for what a message there and back touches, of the stream that is [watched](Rx::watched), without waiting for it. A hint: any number will do.
pub fn fetch(watched: usize) {
    let (rx, tx) = (watched & 1, watched & 1 ^ 1);
    let words = (watched ^ rx).wrapping_sub(SHOWN[rx]);
    let page = words - in_page(words);
    let at = |offset: usize| without_provenance::<u8>(words.wrapping_add(offset));
    let behind = |index: usize| {
        let offset = in_page(words.wrapping_add(BEHINDS[index]));
        without_provenance::<u8>(page + offset)
    };
    let side = |index: usize, offset| {
        at(offset_of!(ControlPage, sides) + index * size_of::<SideWords>() + offset)
    };
    prefetch(at(SHOWN[rx]), 1);
    // Where they are short, both begin here.
    prefetch(behind(rx), 1);
    prefetch_to_write(behind(tx), 1);
    prefetch_to_write(at(SHOWN[tx]), 1);
    prefetch_to_write(side(tx, offset_of!(SideWords, receiver)), 1);
    prefetch_to_write(side(tx, offset_of!(SideWords, sender)), 1);
    prefetch(at(offset_of!(ControlPage, both)), 1);
}
