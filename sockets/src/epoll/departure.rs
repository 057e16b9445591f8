//! Sets that another program is about to have: one that this process becomes, or that it starts.
//!
//! The kernel's instance stays, with our tokens in it. A program with this library gets told what they stand for. For any other the connections are on TCP by now,
//! and the kernel gets back what the program registered.

use std::io;
use std::os::fd::RawFd;

use sys::bequest::Bequest;
use sys::stream::closes_on_exec;

use super::record::{Record, SetRecord};
use super::{Set, known, places, token};
use crate::table;

/// Who is to have the sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heir {
    /// This process, which becomes another program.
    Itself,
    /// The child of `vfork`, in whose descriptors we are.
    Guest,
    /// A process that is made with copies of this one's descriptors.
    Child,
}

/// Before another program has what is not closed on exec; `followed` says that it will have this library. After connections have been seen to.
///
/// What is returned must live until that program runs, or could not be run.
pub fn before_exec(heir: Heir, followed: bool) -> Option<Bequest> {
    if table::is_retired() {
        return None;
    }
    let mut bequest = None;
    for (fd, set) in places::all_numbers() {
        // Once each, by the lowest number.
        let mut lower = places::numbers(set).take_while(|other| *other < fd);
        if !is_inherited(set, fd, heir)
            || (set.has_duplicates() && lower.any(|other| is_inherited(set, other, heir)))
        {
            continue;
        }
        set.come_to_rest(fd, heir);
        if !followed {
            continue;
        }
        if bequest.is_none() {
            bequest = Some(begin());
        }
        let written = match &mut bequest {
            Some(Ok(bequest)) => set.write(bequest, fd, heir).is_ok(),
            _ => false,
        };
        if !written {
            set.give_all_to_kernel(fd);
        }
    }
    bequest?
        .and_then(|mut bequest| bequest.finish().map(|()| bequest))
        .ok()
}

fn begin() -> io::Result<Bequest> {
    let mut bequest = Bequest::begin()?;
    bequest.write(&Record::Prefix(token::prefix()).bytes())?;
    Ok(bequest)
}

fn is_inherited(set: &Set, fd: RawFd, heir: Heir) -> bool {
    if heir == Heir::Child && set.is_lent() {
        return true;
    }
    let stays = sys::socket::with_borrowed(fd, |fd| !closes_on_exec(fd)) == Some(true);
    // In the child of `vfork` something else may be there, or nothing.
    stays && (heir != Heir::Guest || sys::epoll::is_set(fd))
}

/// The program has said that a child will have a set at another number.
pub fn lend(fd: RawFd) {
    if let Some(set) = known(fd) {
        set.lend();
    }
}

impl Set {
    /// The kernel's instance, behind `fd`, has what the program registered, and tokens of what is in memory.
    fn come_to_rest(&self, fd: RawFd, heir: Heir) {
        if let Some(mut members) = self.enter() {
            members.leave_board();
            // In the child of `vfork` the numbers that it takes may be others.
            if heir != Heir::Guest {
                members.catch_up();
                members.forget_dormant();
            }
            members.give_back_to_kernel(fd, |member| member.is_back());
        }
    }

    /// What cannot be told to the next program the kernel is to tell it, as far as it can.
    fn give_all_to_kernel(&self, fd: RawFd) {
        if let Some(mut members) = self.enter()
            && !members.shared
        {
            members.give_back_to_kernel(fd, |_| true);
        }
    }

    fn write(&self, bequest: &mut Bequest, fd: RawFd, heir: Heir) -> io::Result<()> {
        let mut members = self.enter().ok_or(io::ErrorKind::WouldBlock)?;
        members.shared |= heir != Heir::Itself;
        let set = SetRecord {
            fd,
            shared: members.shared,
            for_kernel: members.for_kernel,
            visiting: members.visiting || heir != Heir::Itself,
            came: members.came(),
        };
        bequest.write(&Record::Set(set).bytes())?;
        for member in members.records() {
            bequest.write(&Record::Member(member).bytes())?;
        }
        Ok(())
    }
}
