//! What shows that something has become so: the descriptors that programs poll and calls sleep on.

use std::os::fd::OwnedFd;

use sys::double::Sign;
use sys::errno::Errno;

use super::Core;

impl Core {
    /// Wakes whoever waits for something else to come than what has.
    pub(super) fn tell_news(&mut self) {
        for (_, sign) in &mut self.news {
            sign.show(true);
        }
    }

    /// Has the call `waiter` sleep on a sign of its own.
    pub(in crate::extended) fn await_news<T>(&mut self, waiter: u64) -> Result<T, Errno> {
        match self.news.iter_mut().find(|(of, _)| *of == waiter) {
            Some((_, sign)) => sign.show(false),
            None => {
                let sign = Sign::new().map_err(|_| Errno::MFILE)?;
                self.news.push((waiter, sign));
            }
        }
        Err(Errno::AGAIN)
    }

    /// What the call `waiter` sleeps on.
    pub(in crate::extended) fn news_of(&self, waiter: u64) -> Option<OwnedFd> {
        let mut news = self.news.iter();
        let own = news.find(|(of, _)| *of == waiter);
        own.and_then(|(_, sign)| sign.fd().try_clone_to_owned().ok())
    }

    /// Has the descriptors show how things are, if somebody looks at them.
    pub(in crate::extended) fn show(&mut self) {
        let stream = &self.stream;
        let shown = (stream.came, self.done.total());
        let over = self.gone.is_some() || (stream.heard_fin && stream.said_fin);
        if !(over || self.watched || self.sleepers > 0) {
            // Nobody looks: each of these is a system call.
            return;
        }
        self.double
            .show_input(!stream.unread.is_empty(), shown.0 != self.shown.0);
        if stream.heard_fin || stream.deaf {
            self.double.show_end();
        }
        let room = self.room() > 0 || stream.wants_fin;
        self.double.show_room(room);
        if over {
            self.double.show_gone();
        }
        let there = !self.done.is_empty();
        if let Some(sign) = &mut self.sign {
            if there && shown.1 != self.shown.1 {
                sign.renew();
            } else {
                sign.show(there);
            }
        }
        if let Some(bed) = &mut self.bed {
            bed.show(there || self.gone.is_some());
        }
        self.shown = shown;
    }
}
