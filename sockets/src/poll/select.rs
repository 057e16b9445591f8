//! `select`, as a `poll` on the members of its sets.

use std::os::fd::RawFd;
use std::time::Duration;

use sys::errno::Errno;

use super::{FEW, NONE, PollFd, Poller, SOME, poll};
use crate::ready::{ERR, HUP, IN, NVAL, OUT, PRI, RDBAND, RDNORM, WRBAND, WRNORM};
use crate::table;
use crate::{epoll, ready};

/// The three sets of `select`, as words of 64 descriptors; those that the program left out are empty.
#[derive(Debug, Default)]
pub struct Sets<'a> {
    /// To be read from.
    pub read: &'a mut [u64],
    /// To be written to.
    pub write: &'a mut [u64],
    /// Exceptional.
    pub except: &'a mut [u64],
}

impl Sets<'_> {
    /// Whether there is a connection among the first `count` descriptors, so that `select` here is another than the kernel's.
    pub fn concern_us(&self, count: RawFd) -> bool {
        self.members(count)
            .any(|(fd, _)| table::known(fd).is_some() || epoll::known(fd).is_some())
    }

    /// The members below `count`, and which events stand for their sets.
    fn members(&self, count: RawFd) -> impl Iterator<Item = (RawFd, u32)> {
        (0..count.cast_unsigned().div_ceil(64)).flat_map(move |word| {
            let of = |set: &[u64]| set.get(word as usize).copied().unwrap_or(0);
            let [read, write, except] = [of(self.read), of(self.write), of(self.except)];
            let mut any = read | write | except;
            std::iter::from_fn(move || {
                let bit = (any != 0).then(|| any.trailing_zeros())?;
                any &= any - 1;
                let fd = (word * 64 + bit).cast_signed();
                let asked = |set: u64, events| if set >> bit & 1 != 0 { events } else { 0 };
                let events = asked(read, READ) | asked(write, WRITE) | asked(except, EXCEPT);
                Some((fd, events))
            })
            .take_while(move |(fd, _)| *fd < count)
        })
    }

    fn clear(&mut self, count: RawFd) {
        let words = count.cast_unsigned().div_ceil(64) as usize;
        for set in [&mut *self.read, &mut *self.write, &mut *self.except] {
            set.iter_mut().take(words).for_each(|word| *word = 0);
        }
    }
}

/// As `select` on the first `count` descriptors.
///
/// # Errors
/// As `select`; the sets are unchanged then.
pub fn select(
    sets: &mut Sets<'_>,
    count: RawFd,
    timeout: Option<Duration>,
    kernel: &impl Poller,
) -> Result<usize, Errno> {
    match sets.members(count).count() {
        len if len <= FEW => select_in::<FEW>(sets, count, timeout, kernel),
        len if len <= SOME => select_in::<SOME>(sets, count, timeout, kernel),
        len => select_by(&mut vec![NONE; len], sets, count, timeout, kernel),
    }
}

/// As [`select`], of no more members than `ROOM`. Not in its caller, as in [`poll`].
#[inline(never)]
fn select_in<const ROOM: usize>(
    sets: &mut Sets<'_>,
    count: RawFd,
    timeout: Option<Duration>,
    kernel: &impl Poller,
) -> Result<usize, Errno> {
    let mut fds = [NONE; ROOM];
    // Another thread may have put more there meanwhile.
    let len = sets.members(count).count().min(ROOM);
    select_by(
        fds.get_mut(..len).unwrap_or_default(),
        sets,
        count,
        timeout,
        kernel,
    )
}

/// As [`select`], with an entry of `poll` for each member.
fn select_by(
    fds: &mut [PollFd],
    sets: &mut Sets<'_>,
    count: RawFd,
    timeout: Option<Duration>,
    kernel: &impl Poller,
) -> Result<usize, Errno> {
    for (entry, (fd, events)) in fds.iter_mut().zip(sets.members(count)) {
        *entry = PollFd {
            fd,
            events: super::revents(events),
            revents: 0,
        };
    }
    poll(fds, timeout, kernel)?;
    if fds
        .iter()
        .any(|entry| super::bits(entry.revents) & NVAL != 0)
    {
        return Err(Errno::BADF);
    }
    sets.clear(count);
    let mut ready = 0;
    for entry in fds {
        let (events, found) = (super::bits(entry.events), super::bits(entry.revents));
        for (set, asked, shows) in [
            (&mut *sets.read, READ, READ | HUP | ERR),
            (&mut *sets.write, WRITE, WRITE | ERR),
            (&mut *sets.except, EXCEPT, EXCEPT),
        ] {
            // An event of one set may stand for a member of another.
            let member = events & asked == asked;
            let word = set.get_mut(entry.fd.cast_unsigned() as usize / 64);
            if member
                && found & shows != 0
                && let Some(word) = word
            {
                *word |= 1 << (entry.fd % 64);
                ready += 1;
            }
        }
    }
    Ok(ready)
}

/// The kernel's: what makes a member of each set ready.
const READ: u32 = IN | RDNORM | RDBAND;
const WRITE: u32 = OUT | WRNORM | WRBAND;
const EXCEPT: u32 = PRI;

const _: () = assert!(READ & WRITE == 0 && (READ | WRITE) & EXCEPT == 0);
const _: () = assert!(ready::READ & READ == ready::READ);
