//! The connection manager: how two NICs meet.

use std::collections::BTreeMap;

use via::soft::{Ask, Goodbye};
use via::{Error, NetAddress, ViAttributes};

use crate::adapter::NicNo;
use crate::event::{EndKey, Event, HostNo};
use crate::medium::Passage;
use crate::state::State;

/// A connection request, of a client or a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestNo(u64);

/// A thread that waits for requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListenNo(u64);

/// What comes of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    Yes { end: EndKey, remote: ViAttributes },
    No(Error),
}

#[derive(Default)]
pub(crate) struct Meetings {
    requests: BTreeMap<RequestNo, Request>,
    /// Oldest first.
    listens: Vec<Listen>,
    exports: BTreeMap<u64, Exported>,
}

struct Request {
    ask: Ask,
    host: HostNo,
    peer: bool,
    stage: Stage,
}

#[derive(Clone, Copy)]
enum Stage {
    /// On its way, or, a peer's, waiting for its mirror image.
    Asked,
    /// In the hands of a listener.
    Held,
    /// The answer is on its way.
    Settled,
    Answered(Answer),
    Cancelled,
}

struct Listen {
    no: ListenNo,
    nic: NicNo,
    local: NetAddress,
    caller: Option<RequestNo>,
}

/// The half of a connection that has been given out.
struct Exported {
    cookie: u64,
    attributes: ViAttributes,
}

impl Meetings {
    /// Whether the other half of the connection was still to be had; it is not any more.
    pub(crate) fn withdraw(&mut self, conn: u64) -> bool {
        self.exports.remove(&conn).is_some()
    }
}

impl State {
    /// A client's request leaves.
    pub(crate) fn request(&mut self, host: HostNo, ask: &Ask) -> RequestNo {
        let no = self.new_request(host, ask, false);
        let target = HostNo::of_address(ask.remote.host);
        match target.filter(|&target| self.medium.is_alive(target).is_some()) {
            Some(target) => match self.medium.passage(host, target) {
                Passage::Arrives(due) => self.medium.at(due, Event::Request(no)),
                Passage::Hopeless(due) => {
                    let unreachable = Answer::No(Error::NotReachable);
                    self.medium.at(due, Event::Answer(no, unreachable));
                }
            },
            None => {
                let due = self.medium.now + self.medium.config.latency * 2;
                let unreachable = Answer::No(Error::NotReachable);
                self.medium.at(due, Event::Answer(no, unreachable));
            }
        }
        no
    }

    /// A peer's request leaves. If it gets lost it only waits longer.
    pub(crate) fn offer(&mut self, host: HostNo, ask: &Ask) -> RequestNo {
        let no = self.new_request(host, ask, true);
        if let Some(target) = HostNo::of_address(ask.remote.host)
            && let Passage::Arrives(due) = self.medium.passage(host, target)
        {
            self.medium.at(due, Event::Offer(no));
        }
        no
    }

    pub(crate) fn request_arrives(&mut self, no: RequestNo) {
        let Some(request) = self.meetings.requests.get_mut(&no) else {
            return;
        };
        let remote = request.ask.remote;
        let waiting = self
            .meetings
            .listens
            .iter_mut()
            .find(|listen| listen.caller.is_none() && listen.local == remote);
        match (waiting, request.stage) {
            (Some(listen), Stage::Asked) => {
                listen.caller = Some(no);
                request.stage = Stage::Held;
                self.gate.stir();
            }
            (None, Stage::Asked) => self.reply(no, remote.host, Answer::No(Error::NoMatch)),
            _ => {}
        }
    }

    pub(crate) fn offer_arrives(&mut self, no: RequestNo) {
        let requests = &self.meetings.requests;
        let Some(offer) = requests.get(&no) else {
            return;
        };
        let (ask, host) = (offer.ask, offer.host);
        let mirrored = |(&other, mirror): (&RequestNo, &Request)| {
            let found = other != no
                && mirror.peer
                && matches!(mirror.stage, Stage::Asked)
                && mirror.ask.local == ask.remote
                && mirror.ask.remote == ask.local;
            found.then_some((other, mirror.host, mirror.ask.attributes))
        };
        if !matches!(offer.stage, Stage::Asked) {
            return;
        }
        let Some((other, other_host, theirs)) = requests.iter().find_map(mirrored) else {
            return;
        };
        let answers = match mismatch(&ask.attributes, &theirs) {
            Some(error) => [Answer::No(error); 2],
            None => {
                let conn = self.connect([other_host, host], theirs.reliability);
                let answer = |side, remote| Answer::Yes {
                    end: EndKey { conn, side },
                    remote,
                };
                [answer(0, ask.attributes), answer(1, theirs)]
            }
        };
        self.answer_arrives(other, answers[0]);
        self.reply(no, ask.remote.host, answers[1]);
    }

    pub(crate) fn answer_arrives(&mut self, no: RequestNo, answer: Answer) {
        match self.meetings.requests.get_mut(&no) {
            Some(request) if !matches!(request.stage, Stage::Cancelled) => {
                self.medium
                    .note(format_args!("{} is told {answer}", request.host));
                request.stage = Stage::Answered(answer);
                self.gate.stir();
            }
            // Nobody waits for it any more.
            _ => self.decline(answer),
        }
    }

    /// What has come of a request so far; it is handed out once.
    pub(crate) fn outcome(&mut self, no: RequestNo) -> Option<Answer> {
        let over = Answer::No(Error::InvalidState);
        let Some(request) = self.meetings.requests.get_mut(&no) else {
            return Some(over);
        };
        match request.stage {
            Stage::Answered(answer) => {
                request.stage = Stage::Cancelled;
                Some(answer)
            }
            Stage::Cancelled => Some(over),
            Stage::Asked | Stage::Held | Stage::Settled => None,
        }
    }

    pub(crate) fn cancel(&mut self, no: RequestNo) {
        if let Some(request) = self.meetings.requests.get_mut(&no) {
            let stage = std::mem::replace(&mut request.stage, Stage::Cancelled);
            if let Stage::Answered(answer) = stage {
                self.decline(answer);
            }
            self.gate.stir();
        }
    }

    pub(crate) fn forget(&mut self, no: RequestNo) {
        self.cancel(no);
        self.meetings.requests.remove(&no);
    }

    pub(crate) fn listen(&mut self, nic: NicNo, local: NetAddress) -> ListenNo {
        let no = ListenNo(self.number());
        self.meetings.listens.push(Listen {
            no,
            nic,
            local,
            caller: None,
        });
        no
    }

    /// The request that a listener has been given; the listener is done then. An error when its
    /// NIC has gone.
    pub(crate) fn take_call(&mut self, no: ListenNo) -> Option<Result<(RequestNo, Ask), Error>> {
        let listens = &mut self.meetings.listens;
        let Some(index) = listens.iter().position(|listen| listen.no == no) else {
            return Some(Err(Error::InvalidState));
        };
        let caller = listens[index].caller?;
        match self.meetings.requests.get(&caller) {
            Some(request) if matches!(request.stage, Stage::Held) => {
                listens.remove(index);
                Some(Ok((caller, request.ask)))
            }
            _ => {
                listens[index].caller = None;
                None
            }
        }
    }

    pub(crate) fn unlisten(&mut self, no: ListenNo) {
        self.meetings.listens.retain(|listen| listen.no != no);
    }

    /// The NIC closes.
    pub(crate) fn deafen(&mut self, nic: NicNo) {
        self.meetings.listens.retain(|listen| listen.nic != nic);
        self.gate.stir();
    }

    pub(crate) fn accept(
        &mut self,
        no: RequestNo,
        host: HostNo,
        attributes: &ViAttributes,
    ) -> Result<EndKey, Error> {
        let held = |request: &&mut Request| matches!(request.stage, Stage::Held);
        let request = self.meetings.requests.get_mut(&no).filter(held);
        let request = request.ok_or(Error::Timeout)?;
        let asker = request.host;
        let conn = self.connect([host, asker], attributes.reliability);
        let end = EndKey { conn, side: 0 };
        let answer = Answer::Yes {
            end: end.other(),
            remote: *attributes,
        };
        self.reply(no, host.address(), answer);
        Ok(end)
    }

    pub(crate) fn reject(&mut self, no: RequestNo, host: HostNo) {
        let request = self.meetings.requests.get(&no);
        if request.is_some_and(|request| matches!(request.stage, Stage::Held)) {
            self.reply(no, host.address(), Answer::No(Error::Reject));
        }
    }

    pub(crate) fn export(&mut self, host: HostNo, attributes: &ViAttributes) -> (EndKey, u64) {
        let conn = self.connect([host, host], attributes.reliability);
        let cookie = self.medium.draw();
        let exported = Exported {
            cookie,
            attributes: *attributes,
        };
        self.meetings.exports.insert(conn, exported);
        (EndKey { conn, side: 0 }, cookie)
    }

    pub(crate) fn import(
        &mut self,
        host: HostNo,
        attributes: &ViAttributes,
        conn: u64,
        cookie: u64,
    ) -> Result<(EndKey, ViAttributes), Error> {
        let exported = self.meetings.exports.get(&conn);
        let exported = exported.filter(|exported| exported.cookie == cookie);
        let theirs = exported.ok_or(Error::InvalidParameter)?.attributes;
        if let Some(error) = mismatch(attributes, &theirs) {
            return Err(error);
        }
        self.meetings.exports.remove(&conn);
        let key = EndKey { conn, side: 1 };
        let end = self.end(key).ok_or(Error::InvalidParameter)?;
        end.host = host;
        Ok((key, theirs))
    }

    fn new_request(&mut self, host: HostNo, ask: &Ask, peer: bool) -> RequestNo {
        let no = RequestNo(self.number());
        let what = if peer { "offers" } else { "requests" };
        self.medium
            .note(format_args!("{host} {what} {} > {}", ask.local, ask.remote));
        self.meetings.requests.insert(
            no,
            Request {
                ask: *ask,
                host,
                peer,
                stage: Stage::Asked,
            },
        );
        no
    }

    /// Sends the answer to a request from `from`.
    fn reply(&mut self, no: RequestNo, from: [u8; 6], answer: Answer) {
        let Some(request) = self.meetings.requests.get_mut(&no) else {
            return self.decline(answer);
        };
        request.stage = Stage::Settled;
        let Some(from) = HostNo::of_address(from) else {
            return;
        };
        match self.medium.passage(from, request.host) {
            Passage::Arrives(due) => self.medium.at(due, Event::Answer(no, answer)),
            Passage::Hopeless(due) => {
                let unreachable = Answer::No(Error::NotReachable);
                self.medium.at(due, Event::Answer(no, unreachable));
                if let Answer::Yes { end, .. } = answer {
                    let why = Goodbye::Transport;
                    let to = end.other();
                    self.medium.at(due, Event::Ended { to, why });
                    self.drop_link(end);
                }
            }
        }
    }

    /// Lets go of a connection that came too late.
    fn decline(&mut self, answer: Answer) {
        if let Answer::Yes { end, .. } = answer {
            self.drop_link(end);
        }
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Yes { end, .. } => write!(f, "c{}", end.conn),
            Self::No(error) => write!(f, "{error}"),
        }
    }
}

/// The code for the first attribute in which both ends differ and must not.
fn mismatch(ours: &ViAttributes, theirs: &ViAttributes) -> Option<Error> {
    if ours.reliability != theirs.reliability {
        return Some(Error::InvalidReliabilityLevel);
    }
    if ours.max_transfer_size != theirs.max_transfer_size {
        return Some(Error::InvalidMtu);
    }
    (ours.qos != theirs.qos).then_some(Error::InvalidQos)
}
