//! A link with a tap.

use std::sync::Arc;
use std::time::Duration;

use proto::frame::Head;
use sys::mem::{Memory, OutOfRange};
use via::RemoteSegment;
use via::soft::{Device, Garbage, Goodbye, Link, Sleeper, Waiter};

use super::device::Shared;
use super::hold::{Hold, TappedWaiter};
use super::{Direction, Route, Sight, Tap};
use crate::fault::Act;

/// One end of a connection of a [`Tapped`](super::Tapped) device.
pub struct TappedLink<D: Device, T> {
    inner: D::Link,
    shared: Arc<Shared<D, T>>,
    route: Route,
    /// The first byte of the frame that is being filled.
    first: u8,
    /// The frame at the front, once the tap has seen it.
    front: Option<Front>,
    /// The frame that is filled and held back; nothing leaves before it.
    back: Option<Head>,
    /// Until when `front` is hidden and `back` stays.
    hold: Hold,
    /// The tap has ended the connection.
    severed: bool,
}

struct Front {
    head: Head,
    corrupt: bool,
}

impl<D: Device, T: Tap> TappedLink<D, T> {
    pub(super) fn new(inner: D::Link, shared: Arc<Shared<D, T>>, route: Route) -> Self {
        Self {
            inner,
            shared,
            route,
            first: 0,
            front: None,
            back: None,
            hold: Hold::default(),
            severed: false,
        }
    }

    pub(super) fn inner(&self) -> &D::Link {
        &self.inner
    }

    pub(super) fn hold(&self) -> &Hold {
        &self.hold
    }

    fn show(&self, direction: Direction, head: &Head) -> Option<Act> {
        self.shared.tap.frame(&Sight {
            at: self.shared.elapsed(),
            route: &self.route,
            direction,
            head,
        })
    }

    fn is_held(&self) -> bool {
        self.hold.is_on(|| self.shared.device.now())
    }

    fn begin_hold(&self, time: Duration) {
        self.hold.begin(self.shared.device.now() + time);
    }

    /// Sends the frame that was held back, when its time has come.
    fn let_go(&mut self) {
        if self.back.is_some() && !self.is_held() {
            self.send_back();
        }
    }

    fn send_back(&mut self) {
        if let Some(head) = self.back.take() {
            self.inner.commit(&head);
            self.inner.flush();
        }
    }

    fn sever(&mut self) {
        self.severed = true;
        self.inner.close(Goodbye::Transport);
        self.inner.waiter().wake();
    }
}

impl<D: Device, T: Tap> Link for TappedLink<D, T> {
    type Waiter = TappedWaiter<<D::Link as Link>::Waiter>;

    fn frame_max(&self) -> u32 {
        self.inner.frame_max()
    }

    fn reserve(&mut self, len: u32) -> bool {
        self.let_go();
        !self.severed && self.back.is_none() && self.inner.reserve(len)
    }

    fn fill(
        &mut self,
        at: u32,
        from: &Memory,
        offset: usize,
        len: usize,
    ) -> Result<(), OutOfRange> {
        if at == 0 && len > 0 {
            from.read(offset, std::slice::from_mut(&mut self.first))?;
        }
        self.inner.fill(at, from, offset, len)
    }

    fn fill_bytes(&mut self, from: &[u8]) -> Result<(), OutOfRange> {
        self.first = from.first().copied().unwrap_or(self.first);
        self.inner.fill_bytes(from)
    }

    fn commit(&mut self, head: &Head) {
        match self.show(Direction::Sent, head) {
            None => self.inner.commit(head),
            // The reservation is replaced by the next.
            Some(Act::Drop) => {}
            Some(Act::Disconnect) => self.sever(),
            Some(Act::Delay(time)) => {
                self.begin_hold(time);
                self.back = Some(*head);
            }
            Some(Act::Corrupt) => {
                let changed = head.len > 0
                    && Memory::private(1).is_ok_and(|byte| {
                        byte.write(0, &[self.first ^ 1]).is_ok()
                            && self.inner.fill(0, &byte, 0, 1).is_ok()
                    });
                let head = if changed { *head } else { corrupt(head) };
                self.inner.commit(&head);
            }
        }
    }

    fn flush(&mut self) {
        self.let_go();
        self.inner.flush();
    }

    fn ready(&self) -> bool {
        let hidden = self.severed || (self.front.is_some() && self.is_held());
        !hidden && self.inner.ready()
    }

    fn peek(&mut self) -> Result<Option<Head>, Garbage> {
        self.let_go();
        loop {
            if let Some(front) = &self.front {
                return Ok((!self.is_held()).then_some(front.head));
            }
            if self.severed {
                return Ok(None);
            }
            let Some(head) = self.inner.peek()? else {
                return Ok(None);
            };
            let mut front = Front {
                head,
                corrupt: false,
            };
            match self.show(Direction::Received, &head) {
                None => {}
                Some(Act::Drop) => {
                    self.inner.release();
                    continue;
                }
                Some(Act::Disconnect) => {
                    self.sever();
                    continue;
                }
                Some(Act::Delay(time)) => self.begin_hold(time),
                Some(Act::Corrupt) if head.len > 0 => front.corrupt = true,
                Some(Act::Corrupt) => front.head = corrupt(&head),
            }
            self.front = Some(front);
        }
    }

    fn read(&mut self, at: u32, to: &Memory, offset: usize, len: usize) -> Result<(), OutOfRange> {
        self.inner.read(at, to, offset, len)?;
        if at == 0 && len > 0 && self.front.as_ref().is_some_and(|front| front.corrupt) {
            let mut first = [0];
            to.read(offset, &mut first)?;
            to.write(offset, &[first[0] ^ 1])?;
        }
        Ok(())
    }

    fn read_bytes(&mut self, into: &mut [u8]) -> Result<(), OutOfRange> {
        self.inner.read_bytes(into)?;
        if let Some(first) = into.first_mut()
            && self.front.as_ref().is_some_and(|front| front.corrupt)
        {
            *first ^= 1;
        }
        Ok(())
    }

    fn release(&mut self) {
        self.front = None;
        self.inner.release();
    }

    fn ended(&mut self) -> Option<Goodbye> {
        self.let_go();
        match self.severed {
            true => Some(Goodbye::Transport),
            false => self.inner.ended(),
        }
    }

    fn close(&mut self, why: Goodbye) {
        if !self.severed {
            self.send_back();
            self.inner.close(why);
        }
    }

    fn enter(&mut self, remote: RemoteSegment, len: u32) -> bool {
        self.inner.enter(remote, len)
    }

    fn put(&mut self, at: u32, from: &Memory, offset: usize, len: usize) -> Result<(), OutOfRange> {
        self.inner.put(at, from, offset, len)
    }

    fn leave(&mut self) {
        self.inner.leave();
    }

    fn arm(&mut self, who: Sleeper) -> u32 {
        self.inner.arm(who)
    }

    fn disarm(&mut self) {
        self.inner.disarm();
    }

    fn waiter(&self) -> Self::Waiter {
        TappedWaiter {
            inner: self.inner.waiter(),
            hold: self.hold.clone(),
        }
    }
}

/// The head with one bit of its number changed.
fn corrupt(head: &Head) -> Head {
    Head {
        seq: head.seq ^ 1,
        ..*head
    }
}
