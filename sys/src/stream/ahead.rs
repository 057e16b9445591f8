//! The lines that a message there and back touches, asked for together.
//!
//! Of some thousand connections that are used in turn none has its lines in a near cache, and one after the other each would be waited for: turns,
//! publishing and arming are locked instructions, which nothing overtakes.

use std::mem::offset_of;
use std::ptr::without_provenance_mut;

use super::Rx;
use super::layout::{BEHINDS, ControlPage, Direction, PAGE, SHOWN};
use crate::mem::{prefetch, prefetch_to_write};

impl Rx<'_> {
    /// Where [`fetch`] finds the stream: the address of what the peer shows.
    pub fn watched(&self) -> usize {
        std::ptr::from_ref(&self.words().published).addr()
    }
}

/// Asks for what a message there and back touches, of the stream that is [watched](Rx::watched), without waiting for it. A hint: any number will do.
pub fn fetch(watched: usize) {
    let page = watched & !(PAGE as usize - 1);
    let rx = usize::from(watched != page + SHOWN[0]);
    let word = |index: usize, offset| {
        let at =
            page + offset_of!(ControlPage, directions) + index * size_of::<Direction>() + offset;
        without_provenance_mut::<u8>(at)
    };
    let tx = rx ^ 1;
    prefetch(word(rx, offset_of!(Direction, published)), 1);
    // Where they are short, both begin here.
    prefetch(without_provenance_mut::<u8>(page + BEHINDS[rx]), 1);
    prefetch_to_write(without_provenance_mut::<u8>(page + BEHINDS[tx]), 1);
    prefetch_to_write(word(tx, offset_of!(Direction, published)), 1);
    prefetch_to_write(word(rx, offset_of!(Direction, receiver)), 1);
    prefetch(word(rx, offset_of!(Direction, asked)), 1);
    prefetch_to_write(word(tx, offset_of!(Direction, sender)), 1);
    prefetch(word(tx, offset_of!(Direction, asked)), 1);
    for index in [0, 1] {
        prefetch(word(index, offset_of!(Direction, switch)), 1);
    }
    prefetch(
        without_provenance_mut::<u8>(page + offset_of!(ControlPage, both)),
        1,
    );
}
