//! Where a peer is expected to write.

use std::collections::VecDeque;

use crate::{MemHandle, Segment};

/// Places of which the peer has been told and into which nobody looks before it says, by immediate data behind its write, that all is there.
#[derive(Debug, Default)]
pub(super) struct Expected {
    /// In the order in which they are to be written to, if the peer keeps to it.
    places: VecDeque<Segment>,
    /// Where it wrote last.
    last: Option<(MemHandle, u64)>,
}

impl Expected {
    pub(super) fn add(&mut self, at: Segment) {
        self.places.push_back(at);
    }

    pub(super) fn remove(&mut self, at: Segment) {
        let index = self.places.iter().position(|place| *place == at);
        index.and_then(|index| self.places.remove(index));
    }

    /// How many bytes from `to` on are in one of the places.
    pub(super) fn free_from(&self, handle: MemHandle, to: u64) -> u64 {
        let place = self.places.iter().find(|place| holds(place, handle, to));
        place.map_or(0, |place| u64::from(place.len) - (to - place.addr))
    }

    /// The peer writes there.
    pub(super) fn handle_write(&mut self, handle: MemHandle, to: u64) {
        self.last = Some((handle, to));
    }

    /// It says that what it wrote last is whole: its reader may look.
    pub(super) fn handle_told(&mut self) {
        let Some((handle, to)) = self.last.take() else {
            return;
        };
        let mut places = self.places.iter();
        let index = places.position(|place| holds(place, handle, to));
        index.and_then(|index| self.places.remove(index));
    }
}

fn holds(place: &Segment, handle: MemHandle, to: u64) -> bool {
    let offset = to.checked_sub(place.addr);
    place.handle == handle && offset.is_some_and(|offset| offset < place.len.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANDLE: MemHandle = MemHandle(7);

    fn place(addr: u64) -> Segment {
        Segment {
            addr,
            handle: HANDLE,
            len: 10,
        }
    }

    #[test]
    fn a_place_is_unseen_until_what_was_written_there_is_told_of() {
        let mut expected = Expected::default();
        for addr in [100, 110, 120] {
            expected.add(place(addr));
        }
        assert_eq!(expected.free_from(HANDLE, 104), 6);
        assert_eq!(expected.free_from(HANDLE, 130), 0);
        assert_eq!(expected.free_from(HANDLE, 99), 0);
        assert_eq!(expected.free_from(MemHandle(8), 104), 0);
        // Without a write there is nothing to be told of.
        expected.handle_told();
        assert_eq!(expected.free_from(HANDLE, 104), 6);
        expected.handle_write(HANDLE, 110);
        expected.handle_write(HANDLE, 115);
        expected.handle_told();
        assert_eq!(expected.free_from(HANDLE, 115), 0);
        assert_eq!(expected.free_from(HANDLE, 104), 6);
        expected.remove(place(100));
        expected.remove(place(100));
        assert_eq!(expected.free_from(HANDLE, 104), 0);
        assert_eq!(expected.free_from(HANDLE, 129), 1);
    }
}
