//! How the two ends of a TCP connection find each other and agree on a shared [`Stream`], without a daemon, a thread, or waiting.
//!
//! Both ends derive one name from the connection's addresses. Whoever comes first listens there, the other calls. Each shows a
//! [witness](sys::tcp::witness) that it holds its end; the kernel says who owns the other end, and the two must agree (`proof`). Who
//! listens makes the memory; the caller maps it and declares it ready, and from then on both have it.
//!
//! ```text
//! listens                                        calls
//! arrive: socket bind listen                     arrive: socket bind connect
//!                       <- Hello, witness
//! checks the witness
//!    Accept, witness, memory ->
//!                                                checks the witness, maps the memory
//!                                                OFFERED -> READY, in the memory: met
//! sees READY: met
//! ```
//!
//! With a hello and an accept may go the board of who says it (`board`).
//!
//! A name can be taken by anybody. A stranger there gets a descriptor that is good for nothing and learns that somebody holds this connection, which
//! `/proc/net/tcp` tells as well. It can keep the connection on TCP, and no more.
//!
//! # Cost
//!
//! System calls: 10 to begin, 1 for each step in which nobody comes, 3 to give up, and none of them blocks. Who is second makes 13 to begin.
//! When both are there, a meeting takes some 30 more at the end that listens and 20 at the other, once. Nothing allocates, so it may happen in a signal handler.
//!
//! # Ends
//!
//! A meeting ends after [`STEPS_MAX`] steps (so many again once the other end has come), [`ARRIVALS_MAX`] vain attempts to get to the name, or [`STRANGERS_MAX`] strangers. Whatever happens, the
//! TCP connection is as it was.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, RawFd};

use sys::errno::Errno;
use sys::stream::{Size, Stream};
use sys::sync::{Ordering, mapped::AtomicU32};
use sys::tcp;
use via::window::Windows;

use crate::reason::Reason;
use seeker::{At, Next, Seeker};

mod board;
mod name;
mod packet;
pub(crate) mod proof;
mod seeker;

/// One end's part in a meeting.
///
/// Dropping it withdraws what was offered, so a process that has it from its parent must forget it instead.
pub struct Meeting {
    seeker: Seeker,
    place: At,
    steps: u32,
    /// The other end has come, and been made an offer.
    offers: bool,
    _seat: Seat,
}

/// What became of a step.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "made once a meeting, where nothing may allocate"
)]
pub enum Step {
    /// Nothing yet: step again with one of the next calls.
    Wait,
    /// Both ends have this.
    Met(Stream),
    /// It will not be.
    Over(Reason),
}

impl Meeting {
    /// Goes to the meeting of the connection that `tcp` is an end of, for rings no longer than `most`.
    ///
    /// # Errors
    /// Why there can be none.
    pub fn begin(
        tcp: BorrowedFd<'_>,
        windows: &'static dyn Windows,
        most: Size,
    ) -> Result<Self, Reason> {
        let identity = tcp::identity(tcp).map_err(|errno| match errno {
            Errno::NOTCONN | Errno::INVAL => Reason::NotConnected,
            Errno::AFNOSUPPORT => Reason::NotTcp,
            Errno::NOPROTOOPT => Reason::NoProof,
            errno => reason_of(errno),
        })?;
        if identity.is_to_itself() {
            return Err(Reason::ToItself);
        }
        if !identity.is_local() {
            return Err(Reason::NotLocal);
        }
        // Both are asked when both ends have agreed, where it is too late for a filter that refuses them.
        (tcp::inq(tcp).and_then(|_| tcp::outq(tcp))).map_err(reason_of)?;
        let mut seeker = Seeker::new(identity, windows, most);
        let place = seeker.arrive(tcp)?;
        Ok(Self {
            seeker,
            place,
            steps: 0,
            offers: false,
            _seat: Seat::take(),
        })
    }

    /// Goes on, as far as it goes without waiting. `tcp` is the connection it was begun for.
    pub fn step(&mut self, tcp: BorrowedFd<'_>) -> Step {
        self.steps += 1;
        let seeker = &mut self.seeker;
        // What is left of the place while we look at it: an end.
        let place = std::mem::replace(&mut self.place, At::Nowhere(Reason::GaveUp));
        let next = if self.steps > STEPS_MAX {
            seeker.leave(place)
        } else {
            match place {
                At::Nowhere(reason) => Next::Over(reason),
                At::Door => seeker.arrive(tcp).into(),
                At::Listening(hall) => seeker.listen(hall, tcp),
                At::Calling(caller) => seeker.hear_answer(caller, tcp),
                At::Offering(offer) => seeker.look_for_ready(offer),
            }
        };
        match next {
            Next::At(place) => {
                if matches!(place, At::Offering(_)) && !self.offers {
                    self.offers = true;
                    self.steps = 0;
                }
                self.place = place;
                Step::Wait
            }
            Next::Met(stream) => Step::Met(stream),
            Next::Over(reason) => {
                self.place = At::Nowhere(reason);
                Step::Over(reason)
            }
        }
    }

    /// Whether the other end has come, proved that it is that, and been made an offer.
    pub(crate) fn offers(&self) -> bool {
        self.offers
    }

    /// Has the next step be the last, if it leads to nothing.
    pub(crate) fn tire(&mut self) {
        self.steps = STEPS_MAX;
    }

    /// This end of the connection, and the other one.
    pub(crate) fn ends(&self) -> [SocketAddr; 2] {
        self.seeker.ends()
    }

    /// Another process has the socket from now on, so nothing may come of this: who comes is told so, and may come again later. If the other end has
    /// decided for the stream already, here it is, as it was before.
    pub(crate) fn postpone(&mut self) -> Option<Stream> {
        self.seeker.postpone();
        match std::mem::replace(&mut self.place, At::Nowhere(Reason::GaveUp)) {
            place @ At::Listening(_) => {
                self.place = place;
                None
            }
            At::Offering(offer) => offer.withdraw(),
            // Whoever listens there sees that its caller is gone.
            _ => None,
        }
    }

    /// Whether [`Meeting::postpone`] was called.
    pub(crate) fn is_postponed(&self) -> bool {
        self.seeker.is_postponed()
    }

    /// Leaves. If the other end has decided for the stream meanwhile, here it is: the other believes that both have it.
    pub fn give_up(mut self) -> Option<Stream> {
        match std::mem::replace(&mut self.place, At::Nowhere(Reason::GaveUp)) {
            At::Offering(offer) => offer.withdraw(),
            _ => None,
        }
    }
}

/// Whether so many meetings are under way that one more might find no descriptor: it had better begin later. A server's thousands of connections get to their
/// meetings all at once. With none under way the answer is no, and a meeting tells what is missing. The one more is of the connection `fd`, below which the program
/// has used up the numbers.
pub fn is_crowded(fd: RawFd) -> bool {
    let meetings = SEATS.load(Ordering::Relaxed) as usize;
    meetings > 0 && DESCRIPTORS_MAX * (meetings + 1) > sys::hidden::left_above(fd)
}

/// Whether any meeting is under way.
pub(crate) fn is_any() -> bool {
    SEATS.load(Ordering::Relaxed) != 0
}

/// Of one meeting that is under way in this process.
struct Seat(());

impl Seat {
    fn take() -> Self {
        SEATS.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        SEATS.fetch_sub(1, Ordering::Relaxed);
    }
}

static SEATS: AtomicU32 = AtomicU32::new(0);

impl Drop for Meeting {
    fn drop(&mut self) {
        if let At::Offering(offer) = std::mem::replace(&mut self.place, At::Nowhere(Reason::GaveUp))
        {
            // A stream that the other end takes for agreed stays unused, for this end never consents to anything on it.
            drop(offer.withdraw());
        }
    }
}

impl fmt::Debug for Meeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meeting")
            .field("place", &self.place)
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

/// Why a system call that the upgrade needs failed.
fn reason_of(errno: Errno) -> Reason {
    match errno {
        // The last: too many descriptors of this user are under way between processes.
        Errno::MFILE | Errno::NFILE | Errno::TOOMANYREFS => Reason::Descriptors,
        Errno::NOMEM | Errno::NOBUFS => Reason::Memory,
        _ => Reason::Refused,
    }
}

/// Most descriptors of ours that a meeting has at a time.
const DESCRIPTORS_MAX: usize = 4;
/// Most steps of a meeting.
pub const STEPS_MAX: u32 = 96;
/// Most attempts to get to the name.
pub const ARRIVALS_MAX: u32 = 8;
/// Most who come and are not the other end.
pub const STRANGERS_MAX: u32 = 16;
