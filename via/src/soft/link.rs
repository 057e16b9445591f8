//! One end of a connection, as a device carries it.

use std::time::Instant;

use proto::ddp::Stag;
use proto::frame::{Head, Refusal};
use proto::rdmap::{Action, Code, PostError, Receive, Work, WorkId};
use sys::mem::{Memory, OutOfRange};

use super::ground::Ground;
use crate::RemoteSegment;

mod brief;

pub use brief::{BRIEF_MAX, Brief};

/// One end of a connection: carries frames or, if it has a protocol of its own for them, messages, in order, as far as the medium can.
///
/// A link of frames fills in the first group of methods, a link of [messages](Link::MESSAGES) the
/// second, and both the third. Used by one thread at a time, under the lock of its VI.
pub trait Link: Send + 'static {
    /// How threads sleep on this link.
    type Waiter: Waiter;

    /// Whether it carries messages, as RDMAP has them.
    const MESSAGES: bool = false;

    /// Most bytes of payload in a frame.
    fn frame_max(&self) -> u32 {
        0
    }
    /// Makes room for a frame with `len` bytes of payload; `false` when there is none now.
    /// A reservation that was not committed is replaced by the next.
    fn reserve(&mut self, len: u32) -> bool {
        let _ = len;
        false
    }
    /// Fills `len` bytes of the reserved frame's payload, beginning at its byte `at`.
    ///
    /// # Errors
    /// When the bytes do not all lie in the memory.
    fn fill(
        &mut self,
        at: u32,
        from: &Memory,
        offset: usize,
        len: usize,
    ) -> Result<(), OutOfRange> {
        let _ = (at, from, offset, len);
        Err(OutOfRange)
    }
    /// Fills the reserved frame's payload from memory that is not registered, if the link can: [`Link::read_bytes`] is its other half.
    ///
    /// # Errors
    /// When they are more than was reserved, or it cannot.
    fn fill_bytes(&mut self, from: &[u8]) -> Result<(), OutOfRange> {
        let _ = from;
        Err(OutOfRange)
    }
    /// Sends the reserved frame.
    fn commit(&mut self, head: &Head) {
        let _ = head;
    }
    /// Frames were committed: wakes a receiver that sleeps.
    fn flush(&mut self) {}

    /// Whether the link has a quick way for a message that is nothing but a few bytes, and it is free now.
    fn has_brief_room(&mut self) -> bool {
        false
    }
    /// Sends one that way; `false` if it could not, and nothing was sent.
    fn send_brief(&mut self, message: Brief) -> bool {
        let _ = message;
        false
    }
    /// The message at the front, if it is such a one and was not peeked at: a copy, to be [taken](Link::take_brief) or peeked at. Who would
    /// ask again and again says how often to look for it.
    fn brief(&mut self, looks: u32) -> Option<Brief> {
        let _ = looks;
        None
    }
    /// Drops the message of which [`Link::brief`] gave a copy.
    fn take_brief(&mut self) {}
    /// Who waits for nothing but this link looks for a message: the link may make it wait until there can be one. Whether it does little between two looks.
    fn before_look(&mut self, steadily: bool) {
        let _ = steadily;
    }

    /// Whether [`Link::peek`] would find something; as cheap as possible.
    fn ready(&self) -> bool {
        false
    }
    /// The frame at the front, the same until it is released.
    ///
    /// # Errors
    /// [`Garbage`] when no honest peer sent it.
    fn peek(&mut self) -> Result<Option<Head>, Garbage> {
        Ok(None)
    }
    /// Copies `len` bytes of its payload, beginning at byte `at`, to `to` at `offset`.
    ///
    /// # Errors
    /// When they do not all fit.
    fn read(&mut self, at: u32, to: &Memory, offset: usize, len: usize) -> Result<(), OutOfRange> {
        let _ = (at, to, offset, len);
        Err(OutOfRange)
    }
    /// Copies its payload, from the beginning, to memory that is not registered, if the link can.
    ///
    /// # Errors
    /// When there is not as much of it, or it cannot.
    fn read_bytes(&mut self, into: &mut [u8]) -> Result<(), OutOfRange> {
        let _ = into;
        Err(OutOfRange)
    }
    /// Drops the frame at the front.
    fn release(&mut self) {}
    /// Whether and why the connection has ended. What was sent before can still be read.
    fn ended(&mut self) -> Option<Goodbye> {
        None
    }

    /// Queues something to send, over places of the [`Ground`]; [`Link::push`] follows.
    ///
    /// # Errors
    /// When it can never be sent.
    fn post(&mut self, work: Work) -> Result<(), PostError> {
        let _ = work;
        Err(PostError::NotConnected)
    }
    /// Sends a message of so many bytes at once, which `fill` copies, if the link has a quick way for one that is short, and nothing waits before it;
    /// `false` if it was not sent. It is complete then, and nothing [comes of it](Self::poll_action).
    fn send_short(
        &mut self,
        len: u32,
        immediate: Option<u32>,
        fill: impl FnOnce(&mut [u8]) -> bool,
    ) -> bool {
        let _ = (len, immediate, fill);
        false
    }
    /// Sends a message of so many bytes at once from `from`, which are those of `work`, a send without more to it, if the link has a quick way for one
    /// that is not short either, and nothing waits before it. `None` if it was not sent. Else whether it is complete: then nothing
    /// [comes of it](Self::poll_action), and if not it is as if it had been [posted](Self::post).
    fn send_lone(&mut self, work: &Work, len: u32, from: (&Memory, usize)) -> Option<bool> {
        let _ = (work, len, from);
        None
    }
    /// Looks once whether anything has come, where a short message may be next.
    fn look(&mut self) -> Look {
        Look::Unclear
    }
    /// Looks once whether the message of `len` bytes that is [expected](Look::Expected) has come, for the next receive, which is `id`, and puts it
    /// into its memory, `into`. If it has [come](Look::Came) it has been taken, and nothing else is told of it.
    fn look_for(&mut self, id: WorkId, len: u32, into: (&Memory, usize)) -> Look {
        let _ = (id, len, into);
        Look::Unclear
    }
    /// Takes the short message that has [come](Look::Came), for the next receive, which is `id`: `place` puts it there, or refuses. Its bytes. Otherwise
    /// [`Link::turn`] follows, which does not look again.
    fn receive_short(&mut self, id: WorkId, place: impl FnOnce(&[u8]) -> bool) -> Option<u32> {
        let _ = (id, place);
        None
    }
    /// Room for the next message.
    ///
    /// # Errors
    /// When the connection has ended.
    fn post_receive(&mut self, receive: Receive) -> Result<(), PostError> {
        let _ = receive;
        Err(PostError::NotConnected)
    }
    /// Sends what is queued, as far as the medium takes it. What had better go together with what is posted next may wait for the next
    /// [`turn`](Self::turn), or for [`hurry`](Self::hurry).
    fn push(&mut self, ground: &mut Ground<'_>) {
        let _ = ground;
    }
    /// The owner is about to end the connection: what waits for company leaves now.
    fn hurry(&mut self, ground: &mut Ground<'_>) {
        let _ = ground;
    }
    /// Moves what there is to move in both directions, within a bound; whether anything arrived.
    fn turn(&mut self, ground: &mut Ground<'_>) -> bool {
        let _ = ground;
        false
    }
    /// Ends the stream over a message of the peer's, a write to `written` if it is known, and tells it so.
    fn refuse(&mut self, code: Code, written: Option<(Stag, u64)>, ground: &Ground<'_>) {
        let _ = (code, written, ground);
    }
    /// Ends the stream over the message that [waits](Self::is_blocked) for a receive, and tells the peer so.
    fn refuse_blocked(&mut self, ground: &Ground<'_>) {
        let _ = ground;
    }
    /// What came of it.
    fn poll_action(&mut self) -> Option<Action> {
        None
    }
    /// Whether a message waits for a receive: the VI says what becomes of it.
    fn is_blocked(&self) -> bool {
        false
    }
    /// Whether the peer knows what we say beside the payload: immediate data.
    fn has_immediate(&self) -> bool {
        true
    }
    /// Whether the peer answers RDMA reads at all.
    fn takes_reads(&self) -> bool {
        true
    }

    /// Tells the other end that the connection ends, and why.
    fn close(&mut self, why: Goodbye);

    /// Begins to write `len` bytes at `remote` without the peer's help, if that is possible now;
    /// [`Link::put`] and [`Link::leave`] follow. The frames' way is always open instead.
    fn enter(&mut self, remote: RemoteSegment, len: u32) -> bool {
        let _ = (remote, len);
        false
    }
    /// Copies `len` bytes of `from` to byte `at` of the range that was entered.
    ///
    /// # Errors
    /// When that way turns out to be closed: the frames' way is taken for the whole range.
    fn put(&mut self, at: u32, from: &Memory, offset: usize, len: usize) -> Result<(), OutOfRange> {
        let _ = (at, from, offset, len);
        Err(OutOfRange)
    }
    /// The range has been written, or given up.
    fn leave(&mut self) {}

    /// Announces a sleeper: from now on a frame from the peer, room for one of ours, or the end of
    /// the connection wakes it. What came before is found by looking again afterwards. Returns what [`Waiter::sleep`] takes.
    fn arm(&mut self, who: Sleeper) -> u32;
    /// Nobody sleeps on it any more.
    fn disarm(&mut self);
    /// The agent need not hear of it until it is armed again, and its owner has looked for a while: what it costs to be heard can be saved.
    fn unwatch(&mut self) {}
    /// How to sleep, without the VI's lock.
    fn waiter(&self) -> Self::Waiter;
}

/// What a [look](Link::look) found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Something has come, and is to be taken now.
    Came,
    /// Nothing has come, and there is nothing else that a [turn](Link::turn) could do.
    Nothing,
    /// It has not been looked yet: a message of so many bytes should be next, for which there is [another look](Link::look_for), or a turn.
    Expected(u32),
    /// A turn is to say.
    Unclear,
}

/// A frame that no honest peer sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Garbage;

/// Who sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sleeper {
    /// A thread on the VI itself, through [`Waiter::sleep`].
    Caller,
    /// The agent, or a thread on a completion queue.
    Agent,
}

/// Sleeps until a link, or a local thread, wakes it.
pub trait Waiter: Clone + Send + Sync + 'static {
    /// Sleeps until woken since [`Link::arm`] returned `ticket`, or until the deadline.
    fn sleep(&self, ticket: u32, deadline: Option<Instant>);
    /// Wakes all local sleepers.
    fn wake(&self);
}

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goodbye {
    /// The other end disconnected.
    Disconnected,
    /// The other end refused our message `seq`.
    Refused {
        /// The number of the message.
        seq: u32,
        /// Why.
        refusal: Refusal,
    },
    /// The other end broke the connection for a fault of its own.
    Broken,
    /// The other process is gone.
    Died,
    /// The medium gave up.
    Transport,
}
