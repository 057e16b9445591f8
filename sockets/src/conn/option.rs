//! Options that a connection with rings needs otherwise than the program has them. They lie in the shared memory, so that all processes that have the
//! connection know them, and the program after this one.

use std::os::fd::BorrowedFd;

use sys::stream::Stream;
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU32;

use super::{Conn, Origin};
use crate::flow::SEND;
use crate::kernel::Kernel;
use crate::{handover, ready};

impl Conn {
    /// Notes `O_NONBLOCK`.
    pub fn set_nonblocking(&self, on: bool) {
        self.waits.store(u32::from(on), Ordering::Relaxed);
        self.keep_option(NONBLOCKING, on);
    }

    /// Another process may have set it: the flag is the open file's, which they share. The word in memory says that it was changed, and the kernel to what:
    /// the peer can write there too.
    pub(crate) fn heed_nonblocking(&self, fd: BorrowedFd<'_>, stream: &Stream) {
        let said = stream.options().load(Ordering::Relaxed) & NONBLOCKING != 0;
        if said != self.is_nonblocking() {
            let now = sys::socket::is_nonblocking(fd);
            self.waits.store(u32::from(now), Ordering::Relaxed);
        }
    }

    /// Notes `TCP_NODELAY`; true if that is all there is to do, because doorbells need it set.
    pub fn set_nodelay(&self, on: bool) -> bool {
        self.keep_option(NODELAY, on) && !handover::is_back(self)
    }

    /// `TCP_NODELAY` as the program set it, where the kernel does not know.
    pub fn nodelay(&self) -> Option<bool> {
        self.kept_option(NODELAY)
    }

    /// Notes `TCP_CORK`; true if that is all there is to do, because a doorbell would stay behind it.
    pub fn set_cork(&self, on: bool) -> bool {
        self.keep_option(CORK, on) && !handover::is_back(self)
    }

    /// `TCP_CORK` as the program set it, where the kernel does not know.
    pub fn cork(&self) -> Option<bool> {
        self.kept_option(CORK)
    }

    /// Notes a flag where there are rings; false if there are none.
    fn keep_option(&self, flag: u32, on: bool) -> bool {
        if !self.is_mapped() {
            return false;
        }
        let Some(flow) = self.flow.take(SEND).filter(|_| self.is_mapped()) else {
            return false;
        };
        let flags = flow.stream().options();
        if on {
            flags.fetch_or(flag, Ordering::Relaxed);
        } else {
            flags.fetch_and(!flag, Ordering::Relaxed);
        }
        true
    }

    fn kept_option(&self, flag: u32) -> Option<bool> {
        if !self.is_mapped() {
            return None;
        }
        let flow = self.flow.take(SEND).filter(|_| self.is_mapped())?;
        Some(flow.stream().options().load(Ordering::Relaxed) & flag != 0)
    }

    /// Takes over what doorbells need otherwise than the program has it.
    pub(super) fn keep_options(&self, fd: BorrowedFd<'_>) {
        let Some(flow) = self.flow.take(SEND) else {
            return;
        };
        let mut flags = 0;
        for (flag, on) in [
            (NONBLOCKING, self.is_nonblocking()),
            (NODELAY, sys::socket::nodelay(fd)),
            (CORK, sys::socket::cork(fd)),
        ] {
            flags |= if on { flag } else { 0 };
        }
        flow.stream().options().store(flags, Ordering::Relaxed);
        if ready::has_ended(fd) && !self.tcp(fd).has_ended() {
            flow.shut_read();
            if self.tcp(fd).has_finished() {
                flow.stream().set_deaf();
            }
        }
        sys::socket::set_nodelay(fd, true);
        if flags & CORK != 0 {
            sys::socket::set_cork(fd, false);
        }
    }

    /// What another thread told the kernel of while it was taken over.
    pub(super) fn keep_late_options(&self, fd: BorrowedFd<'_>) {
        if handover::is_back(self) {
            return;
        }
        if !sys::socket::nodelay(fd) {
            self.keep_option(NODELAY, false);
            sys::socket::set_nodelay(fd, true);
        }
        if sys::socket::cork(fd) {
            self.keep_option(CORK, true);
            sys::socket::set_cork(fd, false);
        }
    }

    /// The program has told the kernel of a change while the connection got rings: what doorbells need is as it was.
    pub fn keep_options_again(&self, fd: BorrowedFd<'_>) {
        if !handover::is_back(self) {
            sys::socket::set_nodelay(fd, true);
            sys::socket::set_cork(fd, false);
        }
    }

    /// Tells the kernel, which has all bytes again.
    pub(crate) fn restore_options(&self, fd: BorrowedFd<'_>) {
        let flow = self.flow.take(SEND);
        if let Some(flags) = flow.map(|flow| flow.stream().options().load(Ordering::Relaxed)) {
            sys::socket::set_nodelay(fd, flags & NODELAY != 0);
            sys::socket::set_cork(fd, flags & CORK != 0);
        }
        let bytes = self.low_water.load(Ordering::Relaxed);
        if bytes > 1 {
            sys::socket::set_low_water(fd, bytes);
        }
    }

    /// Notes `SO_RCVLOWAT`, which the program has set in the kernel. Where there are rings it is not to stay there: a doorbell is one byte.
    pub fn note_low_water(&self, fd: BorrowedFd<'_>) {
        let bytes = sys::socket::low_water(fd);
        self.low_water.store(bytes, Ordering::Relaxed);
        let Some(flow) = self.flow.take(SEND).filter(|_| self.is_mapped()) else {
            return;
        };
        flow.stream().low_water().store(bytes, Ordering::Relaxed);
        drop(flow);
        if bytes > 1 && !handover::is_back(self) {
            sys::socket::set_low_water(fd, 1);
        }
    }

    /// Whether a receive that waits ends with the first byte. A socket that was accepted has `SO_RCVLOWAT` from the one that listens, and one that was
    /// inherited may have it from the program before.
    #[inline]
    pub(crate) fn takes_any(&self, fd: BorrowedFd<'_>) -> bool {
        if self.low_water.load(Ordering::Relaxed) == LOW_WATER_UNKNOWN {
            let bytes = sys::socket::low_water(fd);
            // Another thread, which gives the connection rings, knows it from before.
            let _ = self.low_water.compare_exchange(
                LOW_WATER_UNKNOWN,
                bytes,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
        self.low_water.load(Ordering::Relaxed) <= 1
    }

    /// `SO_RCVLOWAT` as the program set it, where the kernel does not know.
    pub fn low_water(&self) -> Option<u32> {
        self.is_mapped()
            .then(|| self.low_water.load(Ordering::Relaxed).max(1))
    }
}

/// The program sets `SO_RCVLOWAT` of a socket, perhaps of one that listens: of connections that begin from now on the kernel is to be asked.
pub fn low_water_is_used() {
    LOW_WATER_IS_USED.store(1, Ordering::Relaxed);
}

/// `SO_RCVLOWAT` of a connection that begins, as far as it is known: nobody asks the kernel of one that nobody can have set it for.
pub(super) fn first_low_water(origin: Origin) -> u32 {
    if origin == Origin::Inherited || LOW_WATER_IS_USED.load(Ordering::Relaxed) != 0 {
        LOW_WATER_UNKNOWN
    } else {
        1
    }
}

static LOW_WATER_IS_USED: AtomicU32 = AtomicU32::new(0);

/// Nobody has asked the kernel for `SO_RCVLOWAT`.
pub(super) const LOW_WATER_UNKNOWN: u32 = 0;

// 8 is `flow::owed`'s, 16 `flow::ends`'s.
const NONBLOCKING: u32 = 1;
const NODELAY: u32 = 2;
const CORK: u32 = 4;
