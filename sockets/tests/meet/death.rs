//! The other end is killed, at each step.

use std::io;

use super::peer::Peer;
use super::*;

#[test]
fn the_other_end_dies_after_any_call() {
    let _alone = alone();
    let mut met = 0;
    for ours_first in [true, false] {
        for calls in 0..5 {
            let (mut ends, theirs) = Ends::new().half();
            let mut peer = Peer::with(theirs);
            for _ in 0..calls {
                if ours_first {
                    ends.go(0, shm());
                    peer.go();
                } else {
                    peer.go();
                    ends.go(0, shm());
                }
            }
            drop(peer);
            ends.finish(shm());
            met += usize::from(ends.reason(0).is_none());
            // That the other end is dead, TCP tells.
            let end = ends.tcp[0].read(&mut [0; 8]);
            let gone = end.as_ref().map_err(io::Error::kind);
            assert!(
                matches!(gone, Ok(0) | Err(io::ErrorKind::ConnectionReset)),
                "{end:?}"
            );
        }
    }
    assert!(met > 0, "a peer of enough calls meets");
}
