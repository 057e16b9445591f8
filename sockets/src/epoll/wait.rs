//! `epoll_wait`.

use std::os::fd::RawFd;
use std::time::Duration;

use sys::errno::Errno;
use sys::sync::Ordering;

use super::members::Glance;
use super::{Event, FEW, Set, Waiter, token};
use crate::ready::{self, Deadline};
use crate::table::newborn;
use crate::{left, leftover};

/// As `epoll_wait` on an instance; `events` is not empty.
///
/// # Errors
/// As `epoll_wait`.
#[inline]
pub fn wait(
    instance: RawFd,
    events: &mut [Event],
    timeout: Option<Duration>,
    kernel: &impl Waiter,
) -> Result<usize, Errno> {
    let Some(set) = super::known(instance) else {
        return match kernel.wait(events, timeout)? {
            // Another thread is closing it: nobody knows any more what our tokens mean.
            said if token::any(events, said) => Err(Errno::BADF),
            said => Ok(said),
        };
    };
    left::find_sets();
    set.begin_wait();
    let (mut timeout, mut end, mut early) = (timeout, None, None);
    if newborn::any() {
        early = beside_newborns(set, events, &mut timeout, kernel);
    }
    if early.is_none() && set.is_in_memory() {
        return mixed(set, events, timeout, kernel);
    }
    let found = match early {
        Some(said) => said?,
        None => plain(set, events, timeout, &mut end, kernel)?,
    };
    if !set.is_in_memory() && !token::any(events, found) {
        return Ok(found);
    }
    // A member has got rings meanwhile.
    let kept = match set.enter() {
        Some(mut members) => members.hear(events, found),
        // In a signal handler that came while its own thread had the set: what has a token by now that one looks at next.
        None => token::leave_out(events, found),
    };
    let left = end.map_or(timeout, Deadline::left);
    let over = left.is_some_and(|left| left.is_zero());
    if kept > 0 || (found == 0 && over) {
        return Ok(kept);
    }
    mixed(set, events, left, kernel)
}

/// Nothing is noted of [newborns](newborn) as long as something happens: the kernel has said so. `None` if they are connections as others are by now, and what
/// is left of the time is to be waited for.
fn beside_newborns(
    set: &Set,
    events: &mut [Event],
    timeout: &mut Option<Duration>,
    kernel: &impl Waiter,
) -> Option<Result<usize, Errno>> {
    if !set.is_in_memory() && !newborn::are_old() {
        let first = timeout.map_or(newborn::STILL, |timeout| timeout.min(newborn::STILL));
        let said = kernel.wait(events, Some(first));
        if said != Ok(0) || first < newborn::STILL {
            return Some(said);
        }
        *timeout = timeout.map(|timeout| timeout - first);
    }
    newborn::settle();
    None
}

/// Only the kernel knows, but for connections a few looks are quicker than sleep and wake-up. `end` is noted where time passes before events come: a busy server
/// of short connections would notice a clock that is read in vain.
fn plain(
    set: &Set,
    events: &mut [Event],
    timeout: Option<Duration>,
    end: &mut Option<Deadline>,
    kernel: &impl Waiter,
) -> Result<usize, Errno> {
    if timeout == Some(Duration::ZERO) {
        return kernel.wait(events, timeout);
    }
    let mut spin = set.socket.begin();
    let trickle = set.only_connection().filter(|conn| conn.trickles());
    let may_poll = trickle.is_none() && set.has_connections() && ready::worth_polling(timeout);
    if may_poll {
        let met = spin.poll_kernel(|| match kernel.wait(events, Some(Duration::ZERO)) {
            Ok(0) => {
                end.get_or_insert_with(|| Deadline::after(timeout));
                None
            }
            result => Some(result),
        });
        if let Some(result) = met {
            spin.hit();
            return result;
        }
    }
    let left = match end {
        Some(end) => end.left(),
        None => {
            *end = Some(Deadline::after(timeout));
            timeout
        }
    };
    let generation = set.generation.load(Ordering::Relaxed);
    let found = match trickle {
        _ if !set.lie_down_unaware() => Ok(0),
        Some(conn) => conn.gather(|| kernel.wait(events, left)),
        None => kernel.wait(events, left),
    };
    if set.generation.load(Ordering::Relaxed) == generation {
        set.get_up();
    }
    if found.is_ok_and(|found| found > 0) {
        spin.hit();
    }
    found
}

fn mixed(
    set: &Set,
    events: &mut [Event],
    timeout: Option<Duration>,
    kernel: &impl Waiter,
) -> Result<usize, Errno> {
    let generation = set.generation.load(Ordering::Relaxed);
    let patient = timeout != Some(Duration::ZERO);
    let mut spin = set.memory.begin();
    let mut end: Option<Deadline> = None;
    let mut looks = 0u32;
    loop {
        let (mut found, mut due) = (0, !patient);
        let mut is_late = looks >= IDLE;
        {
            // In a signal handler that came while its thread was here there is no truth to be had.
            let mut members = set.enter().ok_or(Errno::INTR)?;
            due |= (looks + 1).is_multiple_of(members.looks_for_kernel());
            is_late |= looks > 0 && members.kernel_is_busy();
            if looks == 0 {
                members.note_wait();
            }
            if looks == 0 && members.kernel_is_due(patient) {
                due = true;
            } else {
                let glance = match looks {
                    _ if !patient => Glance::Close,
                    0 => Glance::Eager,
                    _ => Glance::Idle,
                };
                found = members.tell(events, 0, glance);
                if found > 0 && set.has_waiters() {
                    members.keep_watch();
                }
            }
        }
        if found > 0 && is_late {
            found = precede(set, events, found, kernel);
        }
        if found == 0 && due {
            let said = kernel.wait(events, Some(Duration::ZERO))?;
            let glance = if patient {
                Glance::Eager
            } else {
                Glance::Close
            };
            found = sort(set, events, said, glance, false)?;
        }
        if found > 0 {
            spin.hit();
            set.tell_others();
            return Ok(found);
        }
        if !patient {
            set.tell_others();
            if looks == 0 && !set.is_cold(FEW) {
                looks += 1;
                continue;
            }
            return Ok(0);
        }
        looks += 1;
        let end = *end.get_or_insert_with(|| Deadline::after(timeout));
        if ready::worth_polling(timeout) && spin.again() {
            continue;
        }
        let nap = match set.enter() {
            Some(mut members) => members.fall_asleep(),
            None => return Err(Errno::INTR),
        };
        set.tell_others();
        let Some(nap) = nap else {
            continue;
        };
        let left = leftover::within(end.left());
        let left = if nap.short {
            ready::nap_within(left)
        } else {
            left
        };
        let slept = kernel.wait(events, left);
        if set.generation.load(Ordering::Relaxed) != generation {
            // Closed meanwhile by another thread: who sleeps on it is nobody's business, and nobody knows what our tokens mean.
            return match slept {
                Ok(said) if token::any(events, said) => Err(Errno::INTR),
                slept => slept,
            };
        }
        nap.end();
        set.get_up();
        if let Ok(said @ 1..) = slept
            && let Some(members) = set.enter()
        {
            members.count_sleep(events, said);
        }
        found = match slept {
            Ok(said) => sort(set, events, said, Glance::Eager, said > 0)?,
            // What came at the same time is told first.
            Err(errno) => match sort(set, events, 0, Glance::Eager, true)? {
                0 if set.is_cold(usize::MAX) => {
                    set.tell_others();
                    return Err(errno);
                }
                0 => continue,
                found => found,
            },
        };
        set.tell_others();
        if found > 0 {
            spin.hit();
            return Ok(found);
        }
        if end.left() == Some(Duration::ZERO) {
            return Ok(0);
        }
    }
}

/// Sorts what the kernel said and adds what memory shows. Who was `woken` looks at others, too, behind those for whose doorbells he was: what rang first is told first.
fn sort(
    set: &Set,
    events: &mut [Event],
    said: usize,
    glance: Glance,
    woken: bool,
) -> Result<usize, Errno> {
    let mut members = set.enter().ok_or(Errno::INTR)?;
    let kept = members.hear_first(events, said);
    // Another may have lain down while this one waited for the members.
    if woken && !set.has_waiters() {
        members.rouse();
    }
    members.kernel_had(kept > 0, said > kept, kept == events.len());
    let found = members.tell(events, kept, glance);
    // Whose doorbells these were, though there was nothing any more, others wait for, too.
    if (found > 0 || said > kept) && set.has_waiters() {
        members.keep_watch();
    }
    Ok(found)
}

/// Memory has shown what is `found` to one who had waited for a while. What only the kernel knows of may have come before, from who now uses memory: it is told
/// first.
#[cold]
fn precede(set: &Set, events: &mut [Event], found: usize, kernel: &impl Waiter) -> usize {
    let rest = events.get_mut(found..).filter(|rest| !rest.is_empty());
    let (Some(rest), Some(members)) = (rest, set.enter()) else {
        return found;
    };
    if members.has_only_tokens() {
        return found;
    }
    drop(members);
    // What was told stays told, whatever this says.
    let (Ok(said), Some(mut members)) = (kernel.wait(rest, Some(Duration::ZERO)), set.enter())
    else {
        return found;
    };
    let kept = members.hear_first(rest, said);
    members.kernel_had(kept > 0, said > kept, kept == rest.len());
    if said > kept && set.has_waiters() {
        // Whose doorbells these were, others wait for, too.
        members.keep_watch();
    }
    if let Some(told) = events.get_mut(..found + kept) {
        told.rotate_left(found);
    }
    found + kept
}

/// After so many looks, a microsecond or two, a call of the kernel's more delays nobody much.
const IDLE: u32 = 64;
