//! An end lends the other its process's board, and has the other's for what it sends, where both are of the same user.

use std::os::fd::BorrowedFd;

use proto::meet::Message;
use sys::board::{self, Id, Post};
use sys::errno::Errno;
use sys::passed::Passed;
use sys::rendezvous::{Caller, FDS_MAX};

use super::packet::say;

/// Says a message, and if there is a board it goes along behind `fds`, of which there are two at most. Which board, if any.
pub(super) fn say_and_lend(
    caller: &Caller,
    message: &Message,
    fds: &[BorrowedFd<'_>],
) -> Result<Option<Id>, Errno> {
    if !caller.is_of_this_user() {
        return say(caller, message, fds).map(|()| None);
    }
    let lent = board::lend(|id, board| {
        let mut all = [board; FDS_MAX];
        for (place, fd) in all.iter_mut().zip(fds) {
            *place = *fd;
        }
        let fds = all.get(..=fds.len()).unwrap_or(fds);
        say(caller, message, fds).map(|()| Some(id))
    });
    lent.unwrap_or_else(|| say(caller, message, fds).map(|()| None))
}

/// The board that came along, for what goes to the other end.
pub(super) fn taken(caller: &Caller, board: Option<Passed>) -> Option<Post> {
    let board = board.filter(|_| caller.is_of_this_user())?;
    board::admit(&board.into_memory()?)
}
