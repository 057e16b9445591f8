//! Time-outs that have run out when they are set: `SO_RCVTIMEO` and `SO_SNDTIMEO` of less than no time. Calls of the kernel's do not wait then; asked for the
//! time-out, it says what it says of none. So what the program sets is noted, by socket: by its cookie, which no other ever has, for it need not be connected yet.

use std::os::fd::BorrowedFd;

use sys::socket::{cookie, receive_timeout_ms, send_timeout_ms};
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU64;

use crate::conn::Way;

/// How long a call that moves bytes that way waits: in milliseconds, `None` for ever.
#[cold]
pub fn limit_ms(fd: BorrowedFd<'_>, way: Way) -> Option<u64> {
    let limit_ms = match way {
        Way::In => receive_timeout_ms(fd),
        Way::Out => send_timeout_ms(fd),
    };
    let limit_ms = u64::try_from(limit_ms).ok();
    limit_ms.or_else(|| NOTED.is_at_once(fd, way).then_some(0))
}

/// The program has set the time-out for that way, which may be to wait for nothing.
pub fn note(fd: BorrowedFd<'_>, way: Way, at_once: bool) {
    if at_once || NOTED.has_any() {
        NOTED.note(fd, way, at_once);
    }
}

/// Sockets by the end of their cookies. One that comes to the place of another takes it.
struct Noted([AtomicU64; PLACES]);

impl Noted {
    fn has_any(&self) -> bool {
        (self.0.iter()).any(|place| place.load(Ordering::Relaxed) != 0)
    }

    fn note(&self, fd: BorrowedFd<'_>, way: Way, at_once: bool) {
        let Some((place, cookie)) = self.find(fd) else {
            return;
        };
        let _ = place.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |there| {
            let own = if there >> WAYS == cookie { there } else { 0 };
            if at_once {
                return Some(own | bit(way) | cookie << WAYS);
            }
            let left = own & !bit(way);
            // Another's is not to be touched.
            (own != 0).then_some(if left & BITS == 0 { 0 } else { left })
        });
    }

    fn is_at_once(&self, fd: BorrowedFd<'_>, way: Way) -> bool {
        self.has_any()
            && self.find(fd).is_some_and(|(place, cookie)| {
                let there = place.load(Ordering::Relaxed);
                there >> WAYS == cookie && there & bit(way) != 0
            })
    }

    fn find(&self, fd: BorrowedFd<'_>) -> Option<(&AtomicU64, u64)> {
        let cookie = cookie(fd)?;
        let place = self.0.get(cookie as usize % PLACES)?;
        Some((place, cookie << WAYS >> WAYS))
    }
}

fn bit(way: Way) -> u64 {
    match way {
        Way::In => 1,
        Way::Out => 2,
    }
}

static NOTED: Noted = Noted([const { AtomicU64::new(0) }; PLACES]);

/// Hardly a program has one.
const PLACES: usize = 64;
const WAYS: u32 = 2;
const BITS: u64 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    #[test]
    fn each_way_of_a_socket_is_noted_and_forgotten() {
        let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("bind"));
        let [one, other] = [0, 1].map(|n| sockets[n].as_fd());
        let ways = |fd| [Way::In, Way::Out].map(|way| limit_ms(fd, way));
        note(one, Way::In, false);
        assert_eq!((ways(one), ways(other)), ([None; 2], [None; 2]));
        note(one, Way::In, true);
        assert_eq!((ways(one), ways(other)), ([Some(0), None], [None; 2]));
        note(one, Way::Out, true);
        note(one, Way::In, false);
        assert_eq!((ways(one), ways(other)), ([None, Some(0)], [None; 2]));
        note(one, Way::Out, false);
        assert_eq!((ways(one), NOTED.has_any()), ([None; 2], false));
    }
}
