//! Two ends with a VI between them: messages in order, and a receive descriptor for each, or the test fails. To an end without a window they wait
//! until there is one.

use std::collections::VecDeque;

use proto::packet::{Arrival, Conversation, Kind, Packet, Settings, State, Violation, Wakeup};

/// One end, with the bytes that a socket would keep.
pub(crate) struct End {
    pub(crate) talk: Conversation,
    /// Messages on their way to this end.
    pub(crate) inbox: VecDeque<(u32, Vec<u8>)>,
    /// Receive descriptors that are posted.
    pub(crate) posted: u32,
    /// DATA payloads that have come and are not read, and urgent bytes, which keep no descriptor.
    pub(crate) unread: VecDeque<(Vec<u8>, bool)>,
    /// What the application has taken.
    pub(crate) taken: Vec<u8>,
    pub(crate) ended: bool,
    /// MOVE has come, and MOVED is to be said.
    pub(crate) is_asked: bool,
    /// Kinds of the packets that this end sent, in order.
    pub(crate) sent: Vec<Kind>,
}

pub(crate) struct Pair {
    pub(crate) ends: [End; 2],
}

impl End {
    fn new(settings: Settings) -> Self {
        Self {
            talk: Conversation::new(settings),
            inbox: VecDeque::new(),
            posted: settings.pre_posted(),
            unread: VecDeque::new(),
            taken: Vec::new(),
            ended: false,
            is_asked: false,
            sent: Vec::new(),
        }
    }
}

impl Pair {
    pub(crate) fn new(settings: [Settings; 2]) -> Self {
        let mut pair = Self {
            ends: settings.map(End::new),
        };
        pair.transmit(0);
        pair.transmit(1);
        pair
    }

    /// Both ends know each other.
    pub(crate) fn woken(settings: Settings) -> Self {
        let mut pair = Self::new([settings; 2]);
        pair.deliver_all();
        pair
    }

    fn post(&mut self, from: usize, packet: Packet, payload: Vec<u8>) {
        let to = &mut self.ends[1 - from];
        assert!(
            (to.inbox.len() as u32) < to.posted || !to.talk.settings().has_window(),
            "{packet:?} finds no descriptor"
        );
        to.inbox.push_back((packet.encode(), payload));
        self.ends[from].sent.push(packet.kind);
    }

    /// Sends what the protocol itself has to say.
    pub(crate) fn transmit(&mut self, from: usize) {
        while let Some(packet) = self.ends[from].talk.poll_transmit() {
            let payload = if packet.kind == Kind::Wakeup {
                let settings = self.ends[from].talk.settings();
                let wakeup = Wakeup {
                    descriptor: 3,
                    address: [127, 0, 0, 1],
                    port: 7,
                    settings,
                    place: [0; 16],
                };
                wakeup.encode().to_vec()
            } else {
                Vec::new()
            };
            self.post(from, packet, payload);
        }
    }

    /// Sends one DATA packet if the window allows; whether it did.
    pub(crate) fn send(&mut self, from: usize, bytes: &[u8]) -> bool {
        match self.ends[from].talk.take_window() {
            Some(packet) => {
                self.post(from, packet, bytes.to_vec());
                true
            }
            None => false,
        }
    }

    /// As [`Pair::send`], of an urgent byte.
    pub(crate) fn urge(&mut self, from: usize, byte: u8) -> bool {
        match self.ends[from].talk.take_window_for(byte) {
            Some(packet) => {
                self.post(from, packet, Vec::new());
                true
            }
            None => false,
        }
    }

    /// Lets one message arrive.
    pub(crate) fn deliver(&mut self, to: usize) -> Result<Option<Arrival>, Violation> {
        let end = &mut self.ends[to];
        let next = if end.posted > 0 {
            end.inbox.pop_front()
        } else {
            None
        };
        let Some((immediate, payload)) = next else {
            return Ok(None);
        };
        end.posted -= 1;
        let packet = Packet::decode(immediate).unwrap();
        let arrival = end
            .talk
            .handle(packet, payload.len() as u32, || payload.clone())?;
        match arrival {
            Arrival::Data => end.unread.push_back((payload, false)),
            Arrival::Urgent(byte) => {
                end.posted += 1;
                end.unread.push_back((vec![byte], true));
            }
            Arrival::Wakeup(_) => {
                end.posted += 1;
                end.talk.reposted();
            }
            Arrival::Control => end.posted += 1,
            Arrival::Moved(kind) => {
                end.is_asked = kind == Kind::Move;
                end.posted += 1;
            }
            Arrival::End => {
                end.ended = true;
                end.posted += 1;
            }
            Arrival::Unwanted => {}
        }
        if end.is_asked && end.talk.hand_over(Kind::Moved) {
            end.is_asked = false;
        }
        self.transmit(to);
        Ok(Some(arrival))
    }

    pub(crate) fn deliver_all(&mut self) {
        loop {
            let both = [0, 1].map(|to| self.deliver(to).unwrap());
            if both == [None, None] {
                break;
            }
        }
    }

    /// The application reads one packet.
    pub(crate) fn read(&mut self, at: usize) -> bool {
        let end = &mut self.ends[at];
        let Some((bytes, is_urgent)) = end.unread.pop_front() else {
            return false;
        };
        end.taken.extend(bytes);
        end.posted += u32::from(!is_urgent);
        end.talk.reposted();
        self.transmit(at);
        true
    }

    /// The application ends its direction; the descriptor for the FINACK is posted first.
    pub(crate) fn close(&mut self, at: usize) -> bool {
        if !self.ends[at].talk.close() {
            return false;
        }
        self.ends[at].posted += 1;
        self.transmit(at);
        true
    }

    /// The end's process leaves it to its peer's.
    pub(crate) fn hand_over(&mut self, at: usize) -> bool {
        let said = self.ends[at].talk.hand_over(Kind::Move);
        self.transmit(at);
        said
    }

    pub(crate) fn states(&self) -> [State; 2] {
        [0, 1].map(|at| self.ends[at].talk.state())
    }
}
