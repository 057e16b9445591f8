//! What the kernel's instance has of a member: the program's own registration, or our token.

use sys::errno::Errno;
use sys::{epoll, socket};

use super::super::{EDGE, EXCLUSIVE, Event, FLAGS, Instance, ONCE, places, token};
use super::{Armed, Member, UNTOLD, What, with};
use crate::conn::Conn;
use crate::handover;
use crate::ready::{self, ALWAYS, Bells, IN, OUT, RDHUP, READ, Spot, WRITE};

impl Member {
    /// The kernel has reported its token. Whether to look at it from now on.
    pub(in crate::epoll) fn hear(&mut self, events: u32, index: u32, instance: Instance) -> bool {
        self.said |= events;
        self.heard = true;
        if (events & (RDHUP | ALWAYS) != 0 || self.hides_end(events))
            && let What::Connection { conn, .. } = self.what
        {
            socket::with_borrowed(self.via, |fd| ready::note_end(conn, fd));
        }
        if self.fired && self.captured.is_some_and(|now| now & EDGE == 0) {
            // It would be reported again and again.
            let _ = self.register(EDGE, index, instance, false);
        }
        !self.fired
    }

    /// Whether TCP has ended behind what the kernel reports, and it was not asked for that: the connection moved to the ring after it was last armed, and who
    /// finds all that comes while he is awake arms no more.
    fn hides_end(&self, events: u32) -> bool {
        events & IN != 0
            && self.captured.is_some_and(|wake| wake & RDHUP == 0)
            && socket::with_borrowed(self.via, ready::has_ended) == Some(true)
    }

    /// Whether it has got rings, is to be told once, of ends alone, and has not been: those stay, and the kernel shows none. An end that comes just now may be
    /// told twice.
    pub(in crate::epoll) fn awaits_end_once(&self) -> bool {
        self.events & ONCE != 0
            && self.interest() & !(RDHUP | ALWAYS) == 0
            && !self.is_orphan()
            && self.is_connection()
            && self.what.is_in_memory()
            && epoll::shows(self.fd, self.interest() as u16) == 0
    }

    /// Has the kernel report our token instead of the program's data.
    pub(in crate::epoll) fn capture(
        &mut self,
        index: u32,
        instance: Instance,
    ) -> Result<(), Errno> {
        let wake = self.first_wake();
        if self.events & EXCLUSIVE != 0 {
            // The kernel modifies no such member.
            epoll::delete(instance, self.fd)?;
            epoll::add(instance, self.fd, wake, token::of(index))?;
        } else {
            epoll::modify(instance, self.fd, wake, token::of(index))?;
        }
        self.captured = Some(wake);
        self.told = UNTOLD;
        let interest = self.interest();
        if let What::Connection { conn, .. } = self.what
            && let Some((look, marks)) =
                with(self.via, |fd| ready::look_closely(conn, fd, interest))
            && look.ready & READ == 0
        {
            self.told = marks;
        }
        Ok(())
    }

    /// Has the kernel report what the program registered again, for all who have its instance.
    pub(in crate::epoll) fn give_back(&mut self, instance: Instance) -> Result<(), Errno> {
        if self.is_orphan() {
            return Err(Errno::BADF);
        }
        // One that has reported reports nothing more, but an end, which the kernel would leave out.
        let events = if self.fired {
            self.events & FLAGS
        } else {
            self.events
        };
        if self.events & EXCLUSIVE != 0 {
            epoll::delete(instance, self.fd)?;
            epoll::add(instance, self.fd, events, self.data)?;
        } else {
            epoll::modify(instance, self.fd, events, self.data)?;
        }
        self.captured = None;
        self.said = 0;
        Ok(())
    }

    /// What the kernel reports of a connection that only other processes have by now: as the program registered it, for no more is known.
    pub(in crate::epoll) fn pass_on(&self, said: u32) -> Option<Event> {
        let events = said & self.interest();
        let is_ours = self.captured.is_none() || !matches!(self.what, What::Other);
        (!is_ours && events != 0).then_some(Event {
            events,
            data: self.data,
        })
    }

    /// Whether it is a connection that is back on TCP, where the kernel knows all.
    pub(in crate::epoll) fn is_back(&self) -> bool {
        matches!(self.what, What::Connection { conn, generation }
            if conn.generation() == generation && (!conn.is_mapped() || handover::is_back(conn)))
    }

    /// Whether the kernel may go on reporting it, as the program registered it, when its descriptor is closed, for all that is known here.
    pub(in crate::epoll) fn may_stray(&self) -> bool {
        self.may_be_others() && self.captured.is_none() && !self.dormant
    }

    /// Whether another process may have it, too.
    pub(in crate::epoll) fn may_be_others(&self) -> bool {
        match self.what {
            What::Connection { conn, .. } => conn.may_be_shared(),
            What::Set(_) | What::Other => true,
            What::Nothing => false,
        }
    }

    /// Adds it to the kernel's instance, under our token.
    pub(in crate::epoll) fn add_captured(
        &mut self,
        index: u32,
        instance: Instance,
    ) -> Result<(), Errno> {
        let exclusive = self.events & EXCLUSIVE != 0;
        if exclusive && (self.events & !EXCLUSIVE_MAY != 0 || matches!(self.what, What::Set(_))) {
            return Err(Errno::INVAL);
        }
        let wake = self.first_wake();
        epoll::add(instance, self.fd, wake, token::of(index))?;
        self.captured = Some(wake);
        Ok(())
    }

    /// Before it is known what lies where: everything that may wake.
    fn first_wake(&self) -> u32 {
        self.events & (EDGE | !FLAGS) | IN | RDHUP
    }

    /// Before somebody sleeps: takes doorbells away, arms, has the kernel report what it must, looks once more. What comes is noted at `spot` of the
    /// set's board, if that can be.
    pub(in crate::epoll) fn arm(
        &mut self,
        index: u32,
        instance: Instance,
        shared: bool,
        spot: Option<Spot>,
    ) -> Armed {
        let spot = spot.filter(|_| self.is_of_one_set());
        if spot.is_some_and(|spot| self.lies_down_again(spot)) {
            return Armed::Quiet { nap: false };
        }
        if self.fired && self.noted {
            self.stand_down();
        }
        self.noted = false;
        if self.fired {
            return Armed::Quiet { nap: false };
        }
        let What::Connection { conn, .. } = self.what else {
            return Armed::Quiet { nap: false };
        };
        let edge = self.is_edge();
        let interest = self.interest();
        // What the kernel has not reported, it will: then somebody is awake, and looks.
        let Some((bed, once)) = with(self.via, |fd| {
            let bells = if self.heard {
                Bells::Take
            } else {
                Bells::Leave
            };
            let mut bed = ready::lie_down(conn, fd, interest, edge, bells, spot);
            // A doorbell need be reported once only, for it makes the member hot, and so need an end. But to each of two processes it must be.
            let once = edge || ((bed.over || !bed.carried) && !shared);
            if bed.spares && !once && !ready::is_silent(fd) {
                bed.sleep_beside_bells();
            }
            Some((bed, once))
        }) else {
            return Armed::Gone;
        };
        self.heard &= !bed.drained;
        self.noted = bed.noted;
        self.rang |= bed.rang;
        // What is always reported is left out: asked for anew, the kernel repeats an edge.
        let wake = bed.wake & !ALWAYS | if once { EDGE } else { 0 };
        if self.register(wake, index, instance, bed.moved).is_err() {
            return Armed::Gone;
        }
        self.lay_noted = if bed.noted && !bed.nap && !bed.over {
            wake
        } else {
            0
        };
        if self.news() != 0 {
            Armed::Awake
        } else {
            let nap = bed.nap || bed.carried && self.is_stuck();
            Armed::Quiet { nap }
        }
    }

    /// Arms it for the board once more, if nothing but bytes has come since it was last, and no more have by now. So it is with each message to one of
    /// thousands: all that [`Member::arm`] asks besides took a tenth of a server's time.
    fn lies_down_again(&self, spot: Spot) -> bool {
        self.lying().is_some_and(|conn| {
            socket::with_borrowed(self.via, |fd| ready::lie_down_again(conn, fd, spot))
                == Some(true)
        })
    }

    /// Whether nothing is to be done before it is looked at no more: it was told of, all that was there has been taken since, and what comes is noted on the
    /// board. Calls of this process that change what it shows have it looked at.
    #[inline]
    pub(in crate::epoll) fn rests(&self) -> bool {
        self.stands && self.lying().is_some_and(Conn::is_emptied)
    }

    /// Its connection, if it is as it was when it was last armed for the board, and only bytes can end its rest.
    #[inline]
    fn lying(&self) -> Option<&'static Conn> {
        let What::Connection { conn, generation } = self.what else {
            return None;
        };
        let as_before = self.noted && self.lay_noted != 0 && self.captured == Some(self.lay_noted);
        // There may always be room.
        let by_bytes_only = self.settled && self.interest() & WRITE == 0;
        let is_quiet = !self.heard && !self.fired && conn.generation() == generation;
        (as_before && by_bytes_only && is_quiet).then_some(conn)
    }

    /// What comes need not be noted on the board any more.
    pub(in crate::epoll) fn stand_down(&self) {
        if let What::Connection { conn, generation } = self.what
            && conn.generation() == generation
        {
            socket::with_borrowed(self.via, |fd| ready::stand_down(conn, fd));
        }
    }

    /// After a sleep that it was armed for, in this set only: it is looked at again, and need not ring.
    pub(in crate::epoll) fn rouse(&self) {
        if let What::Connection { conn, generation } = self.what
            && conn.generation() == generation
            && self.is_of_one_set()
        {
            socket::with_borrowed(self.via, |fd| ready::awake(conn, fd));
        }
    }

    /// Whether nobody but this set waits for it under whatever descriptor, as far as sets go.
    fn is_of_one_set(&self) -> bool {
        !self.is_orphan()
            && self.events & EXCLUSIVE == 0
            && places::memberships(self.via) == 1
            && !self.has_duplicates()
    }

    /// After a change: sees to it that the kernel reports what only it knows.
    pub(in crate::epoll) fn widen(&mut self, index: u32, instance: Instance) -> Result<(), Errno> {
        // A change reports an edge again.
        let again = self.events & (EDGE | ONCE) != 0;
        self.have_reported(index, instance, again)
    }

    /// After a look that found the connection no longer in memory, as where another process has taken it back to TCP: the same, for who waits and does not sleep.
    /// Whether the kernel is to report more from now on.
    #[cold]
    pub(in crate::epoll) fn follow(&mut self, index: u32, instance: Instance) -> bool {
        let before = self.captured;
        if !self.fired && before.is_some() && self.is_same() {
            // What cannot be registered was closed, and is nothing.
            let _ = self.have_reported(index, instance, false);
        }
        self.captured != before
    }

    /// What it sends goes elsewhere from now on: if over TCP, has the kernel report room there, of which it may have told when there was none on the ring.
    /// Whether it will.
    pub(in crate::epoll) fn expect_room(&mut self, index: u32, instance: Instance) -> bool {
        self.told.full_at = 0;
        let What::Connection { conn, .. } = self.what else {
            return false;
        };
        let asks = with(self.via, |fd| ready::asks(conn, fd, WRITE)).unwrap_or_default();
        let goes_there = asks & self.interest() & WRITE != 0 && self.captured.is_some();
        if goes_there && !self.fired {
            // What cannot be registered was closed, and is nothing.
            let _ = self.have_reported(index, instance, true);
        }
        goes_there
    }

    fn have_reported(&mut self, index: u32, instance: Instance, again: bool) -> Result<(), Errno> {
        let What::Connection { conn, .. } = self.what else {
            return Ok(());
        };
        let asks = with(self.via, |fd| ready::asks(conn, fd, self.interest())).unwrap_or_default();
        let needed = asks & self.interest() & !ALWAYS;
        let now = self.captured.unwrap_or(0);
        if needed == 0 {
            return Ok(());
        }
        let flags = self.events & EDGE;
        let wake = needed | now & !(EDGE | OUT) | flags;
        if again || wake & !now != 0 || now & EDGE != flags {
            self.register(wake, index, instance, true)?;
        }
        Ok(())
    }

    /// Wakes one who sleeps in the kernel's instance: the connection can nearly always be written to, for it carries doorbells.
    pub(in crate::epoll) fn wake_sleeper(&mut self, index: u32, instance: Instance) {
        // Who is not woken by this has been woken by the end of the connection.
        let _ = self.register(IN | RDHUP | OUT | EDGE, index, instance, true);
    }

    pub(super) fn register(
        &mut self,
        wake: u32,
        index: u32,
        instance: Instance,
        again: bool,
    ) -> Result<(), Errno> {
        if (self.captured == Some(wake) && !again) || self.is_orphan() {
            return Ok(());
        }
        epoll::modify(instance, self.fd, wake, token::of(index))?;
        self.captured = Some(wake);
        Ok(())
    }
}

/// With [`EXCLUSIVE`] the kernel allows no more.
const EXCLUSIVE_MAY: u32 = IN | OUT | ALWAYS | EDGE | EXCLUSIVE | 1 << 29;
