use std::sync::Arc;

use crate::{
    bell::Bell,
    segment::{Grant, Segment, Side, layout::BellWords, state::State},
};

/// What the two sides tell each other beside the rings. The peer's words say what the peer likes.
#[derive(Clone, Debug)]
pub struct Control {
    segment: Arc<Segment>,
    side: Side,
}

impl Control {
    pub(super) fn new(segment: Arc<Segment>, side: Side) -> Self {
        Self { segment, side }
    }

    /// Which side this is.
    pub fn side(&self) -> Side {
        self.side
    }

    /// This side's state, as far as the peer did not overwrite it.
    pub fn state(&self) -> u32 {
        self.state_of(self.side).get()
    }

    /// Sets this side's state: 0 is open, everything else the reason why not. Whatever was written before is visible to a peer
    /// that sees it. Knock on both of the peer's bells afterwards.
    pub fn set_state(&self, state: u32) {
        self.state_of(self.side).set(state);
    }

    /// The peer's state.
    #[inline]
    pub fn peer_state(&self) -> u32 {
        self.state_of(self.side.peer()).get()
    }

    /// The bell on which this side sleeps.
    #[inline]
    pub fn bell(&self, wait: Wait) -> Bell<'_> {
        self.bell_of(self.side, wait)
    }

    /// The bell on which the peer sleeps, to knock on: [`Wait::Frames`] after publishing, [`Wait::Room`] after releasing.
    #[inline]
    pub fn peer_bell(&self, wait: Wait) -> Bell<'_> {
        self.bell_of(self.side.peer(), wait)
    }

    /// This side's grant number `slot`, if there is such a slot: to offer and revoke.
    pub fn grant(&self, slot: usize) -> Option<Grant<'_>> {
        self.grant_of(self.side, slot)
    }

    /// The peer's grant number `slot`, if there is such a slot: to use.
    #[inline]
    pub fn peer_grant(&self, slot: usize) -> Option<Grant<'_>> {
        self.grant_of(self.side.peer(), slot)
    }

    #[inline]
    fn state_of(&self, side: Side) -> State<'_> {
        State::new(&self.segment.control().state[side.index()].0)
    }

    #[inline]
    fn bell_of(&self, side: Side, wait: Wait) -> Bell<'_> {
        let [frames, room] = &self.segment.control().bells[side.index()];
        let BellWords { armed, word } = match wait {
            Wait::Frames => &frames.0,
            Wait::Room => &room.0,
        };
        Bell::new(armed, word)
    }

    #[inline]
    fn grant_of(&self, side: Side, slot: usize) -> Option<Grant<'_>> {
        let words = self.segment.control().grants[side.index()].get(slot)?;
        Some(Grant::new(&words.valid.0, &words.busy.0))
    }
}

/// What one sleeps for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A frame to receive.
    Frames,
    /// Room to send.
    Room,
}
