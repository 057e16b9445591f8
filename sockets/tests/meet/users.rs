//! The ends are of two users.

use super::peer::Peer;
use super::*;

/// Nobody in particular, and not the id that stands for nobody.
const ANOTHER: u32 = 54_321;

/// The outcome of our end and, as it says itself, of the peer's.
fn finish(mut ends: Ends, mut peer: Peer) -> (Ends, u8) {
    let mut theirs = b'.';
    for _ in 0..=STEPS_MAX + 1 {
        theirs = peer.go();
        ends.go(0, shm());
        if theirs != b'.' && ends.outcomes[0].is_some() {
            break;
        }
    }
    (ends, theirs)
}

#[test]
fn ends_of_two_users_meet() {
    let _alone = alone();
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("address");
    let peer = match Peer::of_user(ANOTHER, address) {
        Ok(peer) => peer,
        Err(error) => return println!("skipped: cannot be another user: {error}"),
    };
    let (accepted, _) = listener.accept().expect("accept");
    let holder = accepted.try_clone().expect("dup");
    let mut ends = Ends::of(accepted, holder);
    ends.outcomes[1] = Some(Outcome::Over(Reason::HandedOver));
    assert!(sys::board::make());
    let board = sys::board::lend(|id, _| id).expect("it was made");
    let (ends, theirs) = finish(ends, peer);
    sys::board::part_from_parent();
    assert_eq!(theirs, b'm');
    assert_eq!(ends.reason(0), None);
    let Some(Outcome::Met(stream)) = &ends.outcomes[0] else {
        panic!("they have met");
    };
    assert!(
        !stream.notes_on(board),
        "it is for its own user's processes"
    );
}

/// A man in the middle has no more than this: a witness of the right socket, but he is not who owns it.
#[test]
fn who_is_not_the_owner_proves_nothing() {
    let _alone = alone();
    let (ends, theirs) = Ends::new().half();
    let peer = match Peer::of_user_with(ANOTHER, theirs) {
        Ok(peer) => peer,
        Err(error) => return println!("skipped: cannot be another user: {error}"),
    };
    let (ends, theirs) = finish(ends, peer);
    assert_eq!(theirs, b'o');
    assert_eq!(ends.reason(0), Some(Reason::FalseProof));
}
