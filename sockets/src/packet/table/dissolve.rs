//! A `connect` to no address (`AF_UNSPEC`): the connection is dissolved, and the socket is as it was before it.
//!
//! A socket has one connection in its life. So another takes its place, at all of its descriptors.

use std::sync::Arc;

use sys::errno::Errno;

use super::sharing::numbers;
use super::{Held, is_guest, swap};

/// Dissolves the connection of `held`, or ends its listening. The peer is told of a reset.
///
/// # Errors
/// `ENOBUFS` where there is no descriptor for its stand-in.
pub fn dissolve(held: &Arc<Held>) -> Result<(), Errno> {
    if is_guest() || held.is_fresh() {
        return Ok(());
    }
    let numbers = numbers(held);
    let socket = held.anew(&numbers).map_err(|_| Errno::NOBUFS)?;
    if let Ok(stream) = held.stream() {
        stream.abort();
    }
    let home = held.home;
    let new = Arc::new(Held { socket, home });
    for fd in numbers {
        // Calls of other threads may be under way on what was there.
        drop(swap(fd, Some(Arc::clone(&new))));
    }
    Ok(())
}
