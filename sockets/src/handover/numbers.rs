//! Numbers of descriptors: the program is to have as many as without us.
//!
//! What a connection in shared memory keeps is its memory's descriptor, for the program that this one may become ([`super::arrival`]). One without goes on as well; it
//! only goes back to TCP where another program inherits it. So connections have such numbers while the program uses few, and none where it comes near to its limit.

use std::os::fd::RawFd;

use sys::hidden;
use sys::sync::{Ordering, mapped::AtomicU32};

use crate::flow::SEND;
use crate::reason::Reason;
use crate::{meet, share, table};

/// Whether one more connection, the program's `fd`, may keep its memory's descriptor.
pub(crate) fn may_keep(fd: RawFd) -> bool {
    let share = if is_near(fd) { FEW } else { MANY };
    SCARCE.load(Ordering::Relaxed) == 0 && hidden::count() < share_of(share)
}

/// Before one more connection meets, the program's `fd`: if ours would come to be in the way of the program's they are given up. The kernel gives out the lowest number that is
/// free, so this one tells how many are in use.
pub(crate) fn make_room(fd: RawFd) {
    if is_near(fd) {
        // Servers raise their limit.
        let changed = hidden::ask_again();
        if changed || hidden::count() > 2 * share_of(FEW) {
            give_up_all();
        }
    }
}

/// The program was refused a descriptor for want of a number (`EMFILE`): gives it ours, for good, with those of meetings that are under way. Whether there were any.
#[cold]
pub fn give_back() -> bool {
    // A server at its limit may ask again and again.
    let first = SCARCE.swap(1, Ordering::Relaxed) == 0;
    if !(first || meet::is_any()) || !table::has_any() {
        return false;
    }
    let mut any = give_up_all();
    if share::is_home() {
        table::for_each(|_, conn| {
            if conn.is_meeting() {
                conn.stay_on_tcp(Reason::Descriptors);
                any = true;
            }
        });
    }
    any
}

/// Whether there were any.
fn give_up_all() -> bool {
    let mut any = false;
    // The child of `vfork` has its parent's memory and descriptors of its own.
    if share::is_home() && !share::is_sharer() {
        table::each(|conn| {
            let turn = conn.flow.take(SEND);
            any |= turn.is_some_and(|flow| flow.stream().give_up_fd());
        });
    }
    any
}

fn is_near(fd: RawFd) -> bool {
    fd >= hidden::base() / 2
}

/// One in so many of all numbers.
fn share_of(part: usize) -> usize {
    hidden::end().unsigned_abs() as usize / part
}

const MANY: usize = 8;
const FEW: usize = 64;

/// Whether the program has been refused a number.
static SCARCE: AtomicU32 = AtomicU32::new(0);
