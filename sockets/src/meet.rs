//! How the two ends of a TCP connection find each other and agree on a shared [`Stream`], without a daemon, a thread, or waiting.
//!
//! Both ends derive one name from the connection's addresses. Whoever comes first listens there, the other calls. Each shows a
//! [witness](sys::tcp::witness) that it holds its end; the kernel says who owns the other end, and the two must agree ([`proof`]). Who
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
//! A name can be taken by anybody. A stranger there gets a descriptor that is good for nothing and learns that somebody holds this connection, which
//! `/proc/net/tcp` tells as well. It can keep the connection on TCP, and no more.
//!
//! # Cost
//!
//! System calls: 8 to begin, 1 for each step in which nobody comes, 1 to give up, and none of them blocks. Who is second makes 11 to begin.
//! When both are there, a meeting takes some 30 more at the end that listens and 20 at the other, once. Nothing allocates, so it may happen in a signal handler.
//!
//! # Ends
//!
//! A meeting ends after [`STEPS_MAX`] steps, [`ARRIVALS_MAX`] vain attempts to get to the name, or [`STRANGERS_MAX`] strangers. Whatever happens, the
//! TCP connection is as it was.

use std::fmt;
use std::os::fd::{BorrowedFd, OwnedFd};

use proto::meet::{MESSAGE_MAX, MeetError, Message, Terms};
use sys::errno::Errno;
use sys::hidden::Hidden;
use sys::rendezvous::{Arrival, Caller, FDS_MAX, Place, Received, arrive};
use sys::stream::{self, OFFERED, READY, Side, Stream, WITHDRAWN};
use sys::tcp::{self, Identity};
use via::window::Windows;

use crate::reason::Reason;
use name::Name;

mod name;
mod proof;
#[cfg(test)]
mod tests;

/// One end's part in a meeting.
///
/// Dropping it withdraws what was offered, so a process that has it from its parent must forget it instead.
pub struct Meeting {
    seeker: Seeker,
    place: At,
    steps: u32,
}

/// What became of a step.
#[derive(Debug)]
pub enum Step {
    /// Nothing yet: step again with one of the next calls.
    Wait,
    /// Both ends have this.
    Met(Stream),
    /// It will not be.
    Over(Reason),
}

impl Meeting {
    /// Goes to the meeting of the connection that `tcp` is an end of.
    ///
    /// # Errors
    /// Why there can be none.
    pub fn begin(tcp: BorrowedFd<'_>, windows: &'static dyn Windows) -> Result<Self, Reason> {
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
        let mut seeker = Seeker {
            identity,
            windows,
            arrivals: 0,
            strangers: 0,
            blame: None,
        };
        let place = seeker.arrive(tcp)?;
        Ok(Self {
            seeker,
            place,
            steps: 0,
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

    /// Leaves. If the other end has decided for the stream meanwhile, here it is: the other believes that both have it.
    pub fn give_up(mut self) -> Option<Stream> {
        match std::mem::replace(&mut self.place, At::Nowhere(Reason::GaveUp)) {
            At::Offering(offer) => offer.withdraw(),
            _ => None,
        }
    }
}

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

/// Where a meeting stands.
#[derive(Debug)]
enum At {
    /// Somebody has the name and did not listen; it is tried again.
    Door,
    /// The name is ours.
    Listening(Hall),
    /// We have called, and said hello.
    Calling(Caller),
    /// The memory is made, and with the other end.
    Offering(Offer),
    /// It is over.
    Nowhere(Reason),
}

/// The name, and who has come and not spoken.
#[derive(Debug)]
struct Hall {
    place: Place,
    callers: [Option<Caller>; CALLERS_MAX],
}

/// What the other end has been given.
#[derive(Debug)]
struct Offer {
    caller: Caller,
    stream: Stream,
}

impl Offer {
    /// Takes it back; what it was if the other end was quicker.
    fn withdraw(self) -> Option<Stream> {
        if self.stream.decide(WITHDRAWN) || self.stream.state() != READY {
            return None;
        }
        Some(self.stream)
    }
}

enum Next {
    At(At),
    Met(Stream),
    Over(Reason),
}

impl From<Result<At, Reason>> for Next {
    fn from(outcome: Result<At, Reason>) -> Self {
        match outcome {
            Ok(At::Nowhere(reason)) | Err(reason) => Self::Over(reason),
            Ok(place) => Self::At(place),
        }
    }
}

/// What stays the same wherever the meeting stands.
struct Seeker {
    identity: Identity,
    windows: &'static dyn Windows,
    /// Attempts to get to the name.
    arrivals: u32,
    strangers: u32,
    /// What was wrong with the last stranger.
    blame: Option<Reason>,
}

impl Seeker {
    fn arrive(&mut self, tcp: BorrowedFd<'_>) -> Result<At, Reason> {
        self.arrivals += 1;
        if self.arrivals > ARRIVALS_MAX {
            return Err(self.blame.unwrap_or(Reason::Silent));
        }
        match arrive(Name::of(&self.identity).as_bytes(), BACKLOG).map_err(reason_of)? {
            Arrival::First(place) => Ok(At::Listening(Hall {
                place,
                callers: [const { None }; CALLERS_MAX],
            })),
            Arrival::Second(caller) => {
                let witness = proof::witness(tcp)?;
                match say(&caller, &Message::Hello(TERMS), &[witness.as_fd()]) {
                    Ok(()) => Ok(At::Calling(caller)),
                    Err(Errno::PIPE | Errno::AGAIN) => Ok(At::Door),
                    Err(errno) => Err(reason_of(errno)),
                }
            }
            Arrival::Neither => Ok(At::Door),
        }
    }

    fn listen(&mut self, mut hall: Hall, tcp: BorrowedFd<'_>) -> Next {
        for _ in 0..CALLERS_MAX {
            match hall.place.accept() {
                Ok(Some(caller)) => self.let_in(&mut hall, caller),
                Ok(None) => break,
                Err(errno) => return Next::Over(reason_of(errno)),
            }
        }
        for at in 0..CALLERS_MAX {
            let Some(caller) = hall.callers.get_mut(at).and_then(Option::take) else {
                continue;
            };
            match self.hear_hello(caller, tcp) {
                Heard::Nothing(caller) => {
                    if let Some(seat) = hall.callers.get_mut(at) {
                        *seat = Some(caller);
                    }
                }
                Heard::Stranger(blame) => {
                    self.strangers += 1;
                    self.blame = Some(blame);
                }
                Heard::Peer(next) => return next,
            }
        }
        if self.strangers > STRANGERS_MAX {
            return Next::Over(self.blame.unwrap_or(Reason::Disturbed));
        }
        Next::At(At::Listening(hall))
    }

    /// Who came last gets a seat: the other end speaks at once, so who has sat there for long is a stranger.
    fn let_in(&mut self, hall: &mut Hall, caller: Caller) {
        hall.callers.rotate_right(1);
        if let Some(seat) = hall.callers.first_mut()
            && seat.replace(caller).is_some()
        {
            self.strangers += 1;
            self.blame = Some(Reason::Disturbed);
        }
    }

    fn hear_hello(&mut self, caller: Caller, tcp: BorrowedFd<'_>) -> Heard {
        let mut bytes = [0; MESSAGE_MAX];
        let packet = match Packet::take(&caller, &mut bytes) {
            Ok(Some(packet)) => packet,
            Ok(None) => return Heard::Nothing(caller),
            Err(blame) => return Heard::Stranger(blame),
        };
        let asked = match packet.message {
            Ok(Message::Hello(terms)) => Ok(terms),
            Err(MeetError::Version(_)) => Err(Reason::Version),
            _ => return Heard::Stranger(Reason::Garbage),
        };
        // First of all, for only the other end may decide anything.
        match proof::holds(&caller, packet.witness, &self.identity, tcp) {
            Ok(true) => {}
            Ok(false) => return Heard::Stranger(Reason::FalseProof),
            // Who calls may be of a later connection with these addresses: it is to find the name free, not to be told no.
            Err(reason @ Reason::NotConnected) => return Heard::Peer(Next::Over(reason)),
            Err(reason) => return Heard::Peer(decline(&caller, reason)),
        }
        Heard::Peer(match asked {
            Err(reason) => decline(&caller, reason),
            Ok(terms) if !suits(&terms) => decline(&caller, Reason::Layout),
            Ok(_) => match self.offer(&caller, tcp) {
                Ok(stream) => Next::At(At::Offering(Offer { caller, stream })),
                Err(reason) => decline(&caller, reason),
            },
        })
    }

    fn offer(&mut self, caller: &Caller, tcp: BorrowedFd<'_>) -> Result<Stream, Reason> {
        let witness = proof::witness(tcp)?;
        let memory = self
            .windows
            .create(stream::LEN)
            .map_err(|_| Reason::Memory)?;
        let stream = map(memory, Side::A)?;
        let fds = [witness.as_fd(), stream.fd()];
        match say(caller, &Message::Accept(TERMS), &fds) {
            Ok(()) => Ok(stream),
            Err(Errno::PIPE | Errno::AGAIN) => Err(Reason::PeerLeft),
            Err(errno) => Err(reason_of(errno)),
        }
    }

    fn look_for_ready(&mut self, offer: Offer) -> Next {
        match offer.stream.state() {
            READY => return Next::Met(offer.stream),
            OFFERED => {}
            _ => return Next::Over(Reason::PeerGaveUp),
        }
        let mut bytes = [0; MESSAGE_MAX];
        let reason = match Packet::take(&offer.caller, &mut bytes) {
            Ok(None) => return Next::At(At::Offering(offer)),
            Ok(Some(packet)) => match packet.message {
                Ok(Message::Decline { reason }) => declined(reason),
                _ => Reason::Garbage,
            },
            Err(reason) => reason,
        };
        // It hangs up when it has decided, too.
        match offer.withdraw() {
            Some(stream) => Next::Met(stream),
            None => Next::Over(reason),
        }
    }

    fn hear_answer(&mut self, caller: Caller, tcp: BorrowedFd<'_>) -> Next {
        let mut bytes = [0; MESSAGE_MAX];
        let packet = match Packet::take(&caller, &mut bytes) {
            Ok(Some(packet)) => packet,
            Ok(None) => return Next::At(At::Calling(caller)),
            Err(Reason::PeerLeft) => {
                // Somebody who gave up, or heard of another caller first.
                self.blame = Some(Reason::PeerLeft);
                return Next::At(At::Door);
            }
            Err(reason) => return Next::Over(reason),
        };
        let terms = match packet.message {
            Ok(Message::Accept(terms)) => terms,
            Ok(Message::Decline { reason }) => return Next::Over(declined(reason)),
            Err(MeetError::Version(_)) => return Next::Over(Reason::Version),
            _ => return Next::Over(Reason::Garbage),
        };
        match proof::holds(&caller, packet.witness, &self.identity, tcp) {
            Ok(true) => {}
            Ok(false) => return Next::Over(Reason::FalseProof),
            Err(reason) => return decline(&caller, reason),
        }
        if !suits(&terms) {
            return decline(&caller, Reason::Layout);
        }
        match self.admit(packet.memory) {
            Ok(stream) if stream.decide(READY) => Next::Met(stream),
            Ok(_) => Next::Over(Reason::PeerGaveUp),
            Err(reason) => decline(&caller, reason),
        }
    }

    fn admit(&self, memory: Option<OwnedFd>) -> Result<Stream, Reason> {
        let memory = memory.ok_or(Reason::BadMemory)?;
        let memory = self.windows.admit(memory, stream::LEN);
        let memory = memory.map_err(|error| match error {
            via::Error::Resource => Reason::Memory,
            _ => Reason::BadMemory,
        })?;
        map(memory, Side::B)
    }

    /// There were steps enough.
    fn leave(&self, place: At) -> Next {
        match place {
            At::Offering(offer) => match offer.withdraw() {
                Some(stream) => Next::Met(stream),
                None => Next::Over(Reason::Silent),
            },
            At::Listening(_) => Next::Over(self.blame.unwrap_or(Reason::NobodyCame)),
            At::Door | At::Calling(_) => Next::Over(self.blame.unwrap_or(Reason::Silent)),
            At::Nowhere(reason) => Next::Over(reason),
        }
    }
}

enum Heard {
    /// It has not spoken.
    Nothing(Caller),
    /// It is not the other end.
    Stranger(Reason),
    /// It is.
    Peer(Next),
}

/// What came in, with its descriptors where they cannot be mistaken.
struct Packet {
    message: Result<Message, MeetError>,
    witness: Option<Hidden>,
    memory: Option<OwnedFd>,
}

impl Packet {
    fn take(caller: &Caller, bytes: &mut [u8; MESSAGE_MAX]) -> Result<Option<Self>, Reason> {
        let (len, fds, whole) = match caller.recv(bytes).map_err(reason_of)? {
            Received::Nothing => return Ok(None),
            Received::Closed => return Err(Reason::PeerLeft),
            Received::Packet { len, fds, whole } => (len, fds, whole),
        };
        let [witness, memory]: [Option<OwnedFd>; FDS_MAX] = fds;
        let packet = Self {
            message: Message::decode(bytes.get(..len).unwrap_or_default()),
            witness: witness.map(Hidden::adopt),
            memory,
        };
        // What a later version adds is not ours to judge.
        let later = matches!(packet.message, Err(MeetError::Version(_)));
        if whole || later {
            Ok(Some(packet))
        } else {
            Err(Reason::Garbage)
        }
    }
}

/// Says no, so that the other end need not wait, and ends.
fn decline(caller: &Caller, reason: Reason) -> Next {
    let message = Message::Decline {
        reason: reason.number(),
    };
    // If it cannot be told, it counts its steps.
    let _ = say(caller, &message, &[]);
    Next::Over(reason)
}

/// What to make of the other end's reason: the same if it is about both ends.
fn declined(reason: u16) -> Reason {
    match Reason::find(reason) {
        Some(reason @ (Reason::Version | Reason::Layout)) => reason,
        _ => Reason::Declined,
    }
}

fn say(caller: &Caller, message: &Message, fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    caller.send(message.encode(&mut [0; MESSAGE_MAX]), fds)
}

fn suits(terms: &Terms) -> bool {
    terms.layout == TERMS.layout && terms.memory_len == TERMS.memory_len
}

fn map(memory: OwnedFd, side: Side) -> Result<Stream, Reason> {
    Stream::map(memory, side).map_err(|error| match Errno::from_io_error(&error) {
        Some(errno) => reason_of(errno),
        None => Reason::BadMemory,
    })
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

/// Most steps of a meeting.
pub const STEPS_MAX: u32 = 256;
/// Most attempts to get to the name.
pub const ARRIVALS_MAX: u32 = 8;
/// Most who come and are not the other end.
pub const STRANGERS_MAX: u32 = 16;

/// Who may have come and not spoken.
const CALLERS_MAX: usize = 4;
/// Who may wait to be let in.
const BACKLOG: i32 = 4;
const TERMS: Terms = Terms {
    layout: stream::VERSION,
    features: 0,
    memory_len: stream::LEN as u64,
};
