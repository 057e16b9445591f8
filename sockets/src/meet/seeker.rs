//! What an end does wherever its meeting stands.

use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};

use proto::meet::{MESSAGE_MAX, MeetError, Message};
use sys::board::Id;
use sys::errno::Errno;
use sys::passed::Passed;
use sys::rendezvous::{Arrival, Caller, Place, arrive};
use sys::stream::{OFFERED, READY, Side, Size, Stream, leaves_room};
use sys::tcp::Identity;
use via::window::Windows;

use super::name::Name;
use super::packet::{Packet, declined, say, size_in, terms};
use super::{ARRIVALS_MAX, STRANGERS_MAX, board, proof, reason_of};
use crate::reason::Reason;

/// What stays the same wherever the meeting stands.
pub(super) struct Seeker {
    identity: Identity,
    windows: &'static dyn Windows,
    /// The longest rings that this end would have.
    most: Size,
    /// Attempts to get to the name.
    arrivals: u32,
    strangers: u32,
    /// What was wrong with the last stranger.
    blame: Option<Reason>,
    /// Whether the other end is only to be told that it is too early.
    postponed: bool,
    /// The board that went along with the last hello.
    lent: Option<Id>,
}

impl Seeker {
    pub(super) fn new(identity: Identity, windows: &'static dyn Windows, most: Size) -> Self {
        Self {
            identity,
            windows,
            most,
            arrivals: 0,
            strangers: 0,
            blame: None,
            postponed: false,
            lent: None,
        }
    }

    pub(super) fn ends(&self) -> [SocketAddr; 2] {
        [self.identity.local, self.identity.peer]
    }

    pub(super) fn postpone(&mut self) {
        self.postponed = true;
    }

    pub(super) fn is_postponed(&self) -> bool {
        self.postponed
    }

    pub(super) fn arrive(&mut self, tcp: BorrowedFd<'_>) -> Result<At, Reason> {
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
                let hello = Message::Hello(terms(self.most));
                match board::say_and_lend(&caller, &hello, &[witness.as_fd()]) {
                    Ok(lent) => {
                        self.lent = lent;
                        Ok(At::Calling(caller))
                    }
                    Err(Errno::PIPE | Errno::AGAIN) => Ok(At::Door),
                    Err(errno) => Err(reason_of(errno)),
                }
            }
            Arrival::Neither => Ok(At::Door),
        }
    }

    pub(super) fn listen(&mut self, mut hall: Hall, tcp: BorrowedFd<'_>) -> Next {
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
            Ok(terms) => match size_in(&terms) {
                None => decline(&caller, Reason::Layout),
                Some(_) if self.postponed => decline(&caller, Reason::GaveUp),
                Some(most) => match self.offer(&caller, tcp, most.min(self.most), packet.board) {
                    Ok(stream) => Next::At(At::Offering(Offer { caller, stream })),
                    Err(reason) => decline(&caller, reason),
                },
            },
        })
    }

    fn offer(
        &mut self,
        caller: &Caller,
        tcp: BorrowedFd<'_>,
        size: Size,
        board: Option<Passed>,
    ) -> Result<Stream, Reason> {
        let witness = proof::witness(tcp)?;
        spare(size)?;
        let memory = self
            .windows
            .create(size.memory_len())
            .map_err(|_| Reason::Memory)?;
        let mut stream = map(memory, Side::A)?;
        stream.set_post(board::taken(caller, board));
        let accept = Message::Accept(terms(size));
        let said = stream
            .with_fd(|memory| board::say_and_lend(caller, &accept, &[witness.as_fd(), memory]));
        match said.unwrap_or(Err(Errno::BADF)) {
            Ok(lent) => {
                stream.set_lent(lent);
                Ok(stream)
            }
            Err(Errno::PIPE | Errno::AGAIN) => Err(Reason::PeerLeft),
            Err(errno) => Err(reason_of(errno)),
        }
    }

    pub(super) fn look_for_ready(&mut self, offer: Offer) -> Next {
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

    pub(super) fn hear_answer(&mut self, caller: Caller, tcp: BorrowedFd<'_>) -> Next {
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
        // The maker takes the lesser of what the two would have, so nobody keeps more than he allows.
        let Some(size) = size_in(&terms).filter(|size| *size <= self.most) else {
            return decline(&caller, Reason::Layout);
        };
        match self.admit(packet.memory, size) {
            Ok(mut stream) => {
                stream.set_post(board::taken(&caller, packet.board));
                stream.set_lent(self.lent);
                if stream.decide(READY) {
                    Next::Met(stream)
                } else {
                    Next::Over(Reason::PeerGaveUp)
                }
            }
            Err(reason) => decline(&caller, reason),
        }
    }

    fn admit(&self, memory: Option<Passed>, size: Size) -> Result<Stream, Reason> {
        let memory = memory.and_then(Passed::into_memory);
        let memory = memory.ok_or(Reason::BadMemory)?.into_fd();
        spare(size)?;
        let memory = self.windows.admit(memory, size.memory_len());
        let memory = memory.map_err(|error| match error {
            via::Error::Resource => Reason::Memory,
            _ => Reason::BadMemory,
        })?;
        map(memory, Side::B)
    }

    /// There were steps enough.
    pub(super) fn leave(&self, place: At) -> Next {
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

/// Where a meeting stands.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "most come to the largest, and a box would be one more allocation in each"
)]
pub(super) enum At {
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
pub(super) struct Hall {
    place: Place,
    callers: [Option<Caller>; CALLERS_MAX],
}

/// What the other end has been given.
#[derive(Debug)]
pub(super) struct Offer {
    caller: Caller,
    stream: Stream,
}

impl Offer {
    /// Takes it back; what it was if the other end was quicker.
    pub(super) fn withdraw(self) -> Option<Stream> {
        (!self.stream.withdraw()).then_some(self.stream)
    }
}

pub(super) enum Next {
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

#[expect(
    clippy::large_enum_variant,
    reason = "made once a meeting, where nothing may allocate"
)]
enum Heard {
    /// It has not spoken.
    Nothing(Caller),
    /// It is not the other end.
    Stranger(Reason),
    /// It is.
    Peer(Next),
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

fn spare(size: Size) -> Result<(), Reason> {
    let leaves_room = leaves_room(size.memory_len());
    leaves_room.then_some(()).ok_or(Reason::Memory)
}

fn map(memory: OwnedFd, side: Side) -> Result<Stream, Reason> {
    Stream::map(memory, side).map_err(|error| match Errno::from_io_error(&error) {
        Some(errno) => reason_of(errno),
        None => Reason::BadMemory,
    })
}

/// Who may have come and not spoken.
const CALLERS_MAX: usize = 4;
/// Who may wait to be let in.
const BACKLOG: i32 = 4;
