//! That whoever came to the meeting holds the other end of this very connection.
//!
//! Three things must agree: who the kernel says owns the socket with the mirrored addresses, in our network namespace; what the witness is of; and as
//! whom the process at the other side of the Unix socket called or listened. The last holds off the man in the middle, who shows each end the witness that the
//! other has shown him: he must be of the same user as the end that he plays, and who is may do to that end what he likes.

use std::os::fd::BorrowedFd;

use sys::errno::Errno;
use sys::hidden::Hidden;
use sys::passed::Passed;
use sys::rendezvous::Caller;
use sys::tcp::{self, Identity, NOBODY, State};

use super::reason_of;
use crate::reason::Reason;

/// That we hold `tcp`, to be shown.
pub(crate) fn witness(tcp: BorrowedFd<'_>) -> Result<Hidden, Reason> {
    tcp::witness(tcp).map_err(unproven)
}

/// Whether whoever sent `witness` over `caller` holds the other end of `identity`, of which `tcp` is this one.
///
/// # Errors
/// Why it cannot be told.
pub(crate) fn holds(
    caller: &Caller,
    witness: Option<Passed>,
    identity: &Identity,
    tcp: BorrowedFd<'_>,
) -> Result<bool, Reason> {
    let Some(witness) = witness.and_then(Passed::into_path) else {
        return Ok(false);
    };
    let owner = tcp::owner(identity).map_err(|errno| match errno {
        Errno::NOENT => Reason::NotConnected,
        Errno::XDEV => Reason::NotLocal,
        errno => unproven(errno),
    })?;
    if owner.uid == NOBODY && !tcp::every_user_has_a_name() {
        return Err(Reason::NoProof);
    }
    let same = tcp::is_witness_of(&witness.as_fd(), &owner, tcp).map_err(reason_of)?
        && caller.uid().map_err(reason_of)? == owner.uid;
    // Last: while this end is connected its addresses belong to nobody else, so the other end is of this connection and not of a later one.
    if tcp::state(tcp) != Ok(State::Established) {
        return Err(Reason::NotConnected);
    }
    Ok(same)
}

fn unproven(errno: Errno) -> Reason {
    match reason_of(errno) {
        Reason::Refused => Reason::NoProof,
        reason => reason,
    }
}
