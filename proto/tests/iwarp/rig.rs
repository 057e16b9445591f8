//! Memory, an engine in it, and peers that say what they like.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use proto::ddp::{Access, Fault, InvalidateFault, Memory, Stag, Window};
use proto::mpa::{
    Deframer, Depths, Framer, MarkerCheck, Piece, Place, Ready, Role, RtrSet, Source, SourceLost,
    Terms,
};
use proto::rdmap::{
    Action, Code, Config, Engine, Failure, Line, Operation, Receive, Remote, Work, WorkId,
};

pub(crate) const NOW: Duration = Duration::from_secs(100);

/// The octets of a line of hexadecimal digits; spaces do not matter.
pub(crate) fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<_> = digits.chars().filter_map(|c| c.to_digit(16)).collect();
    let pairs = digits.chunks(2);
    pairs.map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// `len` octets that differ from their neighbours.
pub(crate) fn counting(len: usize) -> Vec<u8> {
    (0..len).map(|i| i as u8).collect()
}

/// A region that peers know of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Region {
    pub(crate) handle: u64,
    pub(crate) base: u64,
    pub(crate) read: bool,
    pub(crate) write: bool,
    pub(crate) associated: bool,
    /// Nobody sees what is written there before a message behind it has come.
    pub(crate) unseen: bool,
}

/// A driver's memory.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    pub(crate) buffers: BTreeMap<u64, Vec<u8>>,
    pub(crate) regions: BTreeMap<u32, Region>,
    /// Octets placed, so that a second copy would show.
    pub(crate) placed: u64,
    /// Octets shown, for checksums.
    pub(crate) shown: Cell<u64>,
}

impl Plain {
    /// Memory that a peer may read and write under `stag`, from offset `base` on.
    pub(crate) fn region(&mut self, stag: u32, base: u64, octets: Vec<u8>) {
        let handle = 0x1000 + u64::from(stag);
        self.buffers.insert(handle, octets);
        let region = Region {
            handle,
            base,
            read: true,
            write: true,
            associated: true,
            unseen: false,
        };
        self.regions.insert(stag, region);
    }

    /// The same, where nobody sees what is written before a message behind it has come.
    pub(crate) fn unseen_region(&mut self, stag: u32, base: u64, octets: Vec<u8>) {
        self.region(stag, base, octets);
        let region = self.regions.get_mut(&stag).expect("just made");
        region.unseen = true;
    }

    pub(crate) fn octets_of(&self, stag: u32) -> &[u8] {
        &self.buffers[&(0x1000 + u64::from(stag))]
    }

    fn run(&self, place: Place, len: usize) -> Option<&[u8]> {
        let from = usize::try_from(place.offset).ok()?;
        self.buffers
            .get(&place.handle)?
            .get(from..from.checked_add(len)?)
    }
}

impl Source for Plain {
    fn show(&self, place: Place, len: u32, mut see: impl FnMut(&[u8])) -> Result<(), SourceLost> {
        let run = self.run(place, len as usize).ok_or(SourceLost)?;
        self.shown.set(self.shown.get() + u64::from(len));
        // Two runs, since memory may be in pieces.
        let (first, second) = run.split_at(run.len() / 3);
        see(first);
        see(second);
        Ok(())
    }
}

impl Memory for Plain {
    fn grant(&self, access: Access, stag: Stag, to: u64, len: u32) -> Result<Place, Fault> {
        let region = self.regions.get(&stag.0).ok_or(Fault::UnknownStag)?;
        if !region.associated {
            return Err(Fault::NotAssociated);
        }
        let allowed = match access {
            Access::RemoteRead => region.read,
            Access::RemoteWrite => region.write,
            Access::RemoteAtomic => region.read && region.write,
        };
        if !allowed {
            return Err(Fault::NoRight);
        }
        let window = Window {
            base: region.base,
            len: self.buffers[&region.handle].len() as u64,
        };
        let offset = window.offset(to, len)?;
        Ok(Place::new(region.handle).advanced(offset))
    }

    fn place(&mut self, place: Place, octets: &[u8]) -> Result<(), SourceLost> {
        self.run(place, octets.len()).ok_or(SourceLost)?;
        let from = place.offset as usize;
        let buffer = self.buffers.get_mut(&place.handle).ok_or(SourceLost)?;
        buffer[from..from + octets.len()].copy_from_slice(octets);
        self.placed += octets.len() as u64;
        Ok(())
    }

    fn unseen(&self, stag: Stag, to: u64) -> u64 {
        let region = self.regions.get(&stag.0).filter(|region| region.unseen);
        let end = |region: &Region| region.base + self.buffers[&region.handle].len() as u64;
        region.map_or(0, |region| end(region).saturating_sub(to))
    }

    fn invalidate(&mut self, stag: Stag) -> Result<(), InvalidateFault> {
        match self.regions.get(&stag.0) {
            None => Err(InvalidateFault::UnknownStag),
            Some(region) if !region.associated => Err(InvalidateFault::NotAssociated),
            Some(_) => {
                self.regions.remove(&stag.0);
                Ok(())
            }
        }
    }

    fn atomic(&mut self, place: Place, change: impl Fn(u64) -> u64) -> Result<u64, SourceLost> {
        let run = self.run(place, 8).ok_or(SourceLost)?;
        let original = u64::from_ne_bytes(run.try_into().map_err(|_| SourceLost)?);
        self.place(place, &change(original).to_ne_bytes())?;
        Ok(original)
    }
}

/// Terms with checksums, without markers.
pub(crate) fn terms(role: Role) -> Terms {
    Terms {
        role,
        crc: true,
        send_markers: false,
        receive_markers: false,
        depths: Depths { ird: 4, ord: 4 },
        rtr: RtrSet::EMPTY,
    }
}

/// An engine under test, with its memory.
pub(crate) struct Sut {
    pub(crate) engine: Engine,
    pub(crate) memory: Plain,
    pub(crate) terms: Terms,
    pub(crate) now: Duration,
    /// What it has said before a message that was taken by itself, and that.
    pub(crate) told: Vec<Action>,
    /// Messages that were taken by themselves.
    pub(crate) lone: usize,
}

impl Sut {
    /// An initiator, which may send at once.
    pub(crate) fn open() -> Self {
        Self::new(terms(Role::Initiator), Config::default())
    }

    pub(crate) fn with(config: Config) -> Self {
        Self::new(terms(Role::Initiator), config)
    }

    pub(crate) fn new(terms: Terms, config: Config) -> Self {
        Self {
            engine: Engine::new(&terms, config),
            memory: Plain::default(),
            terms,
            now: NOW,
            told: Vec::new(),
            lone: 0,
        }
    }

    /// A receive of `capacity` octets in the buffer with the number of its id.
    pub(crate) fn receive(&mut self, id: u64, capacity: u32) {
        self.memory
            .buffers
            .insert(id, vec![0xa5; capacity as usize]);
        let receive = Receive {
            id: WorkId(id),
            into: Place::new(id),
            capacity,
        };
        self.engine.post_receive(receive).unwrap();
    }

    /// Posts with the octets in the buffer with the number of the id.
    pub(crate) fn post(&mut self, id: u64, operation: Operation) {
        let work = Work {
            id: WorkId(id),
            operation,
            fence: false,
        };
        self.engine.post(work).unwrap();
    }

    pub(crate) fn send(&mut self, id: u64, octets: Vec<u8>) {
        let len = octets.len() as u64;
        self.memory.buffers.insert(id, octets);
        let operation = Operation::Send {
            from: Place::new(id),
            len,
            solicited: false,
            invalidate: None,
        };
        self.post(id, operation);
    }

    pub(crate) fn write(&mut self, id: u64, octets: Vec<u8>, to: Remote) {
        let len = octets.len() as u64;
        self.memory.buffers.insert(id, octets);
        let from = Place::new(id);
        self.post(id, Operation::Write { from, len, to });
    }

    pub(crate) fn read(&mut self, id: u64, len: u64, sink: Remote, source: Remote) {
        self.memory.buffers.insert(id, vec![0xa5; len as usize]);
        let operation = Operation::Read {
            into: Place::new(id),
            len,
            sink,
            source,
        };
        self.post(id, operation);
    }

    /// The peer's octets come.
    pub(crate) fn feed(&mut self, mut octets: &[u8]) {
        loop {
            let taken = self.engine.handle_octets(octets);
            octets = &octets[taken..];
            self.engine.handle_arrivals(&mut self.memory, self.now);
            if octets.is_empty() || (taken == 0 && self.engine.is_blocked()) {
                break;
            }
        }
    }

    /// The peer sends a ULPDU, well framed under the engine's terms without markers.
    pub(crate) fn feed_ulpdu(&mut self, digits: &str) {
        self.feed(&fpdu(&hex(digits)));
    }

    /// Everything that the engine has to say now, written at once.
    pub(crate) fn output(&mut self) -> Vec<u8> {
        let mut written = Vec::new();
        loop {
            let some = self.output_some(usize::MAX);
            if some.is_empty() {
                return written;
            }
            written.extend(some);
        }
    }

    /// At most `most` octets of it.
    pub(crate) fn output_some(&mut self, most: usize) -> Vec<u8> {
        self.engine.fill(&self.memory, self.now);
        let mut written = Vec::new();
        for piece in self.engine.pieces() {
            match piece {
                Piece::Own(octets) => written.extend(octets),
                Piece::Payload { place, len } => {
                    written.extend(self.memory.run(place, len as usize).expect("memory"));
                }
            }
        }
        assert_eq!(self.engine.waiting(), written.len() as u64);
        written.truncate(most);
        self.engine.handle_written(written.len() as u64, self.now);
        written
    }

    /// The ULPDUs of what the engine has to say now.
    pub(crate) fn ulpdus(&mut self) -> Vec<Vec<u8>> {
        let output = self.output();
        ulpdus(&output, self.terms.send_markers, self.terms.crc)
    }

    /// As lines of a capture.
    pub(crate) fn lines(&mut self) -> Vec<String> {
        let ulpdus = self.ulpdus();
        ulpdus.iter().map(|ulpdu| Line(ulpdu).to_string()).collect()
    }

    pub(crate) fn actions(&mut self) -> Vec<Action> {
        let mut told = std::mem::take(&mut self.told);
        told.extend(std::iter::from_fn(|| self.engine.poll_action()));
        told
    }

    /// The messages received, as `id:len`.
    pub(crate) fn received(&mut self) -> Vec<(u64, u32)> {
        self.actions()
            .into_iter()
            .filter_map(|action| match action {
                Action::Received(received) => Some((received.id.0, received.len)),
                _ => None,
            })
            .collect()
    }

    /// The works that completed well, in order, with their values.
    pub(crate) fn completed(&mut self) -> Vec<(u64, u64)> {
        self.actions()
            .into_iter()
            .filter_map(|action| match action {
                Action::Completed(completion) => Some((completion.id.0, completion.outcome.ok()?)),
                _ => None,
            })
            .collect()
    }

    /// That it ends with the Terminate of `digits` (from the error on), says nothing else, and then
    /// shuts down.
    pub(crate) fn expect_terminate(&mut self, digits: &str) {
        let expected = [hex("4147 00000000 00000002 00000001 00000000"), hex(digits)].concat();
        let ulpdus = self.ulpdus();
        let said: Vec<_> = ulpdus.iter().map(|ulpdu| Line(ulpdu).to_string()).collect();
        assert_eq!(
            ulpdus,
            std::slice::from_ref(&expected),
            "{said:#?} {}",
            Line(&expected)
        );
        let actions = self.actions();
        let code = Code::new(expected[18] >> 4, expected[18] & 0xf, expected[19]);
        let told = actions.iter().find_map(|action| match action {
            Action::Failed(Failure::Violation { code, .. }) => Some(*code),
            _ => None,
        });
        assert_eq!(told, Some(code), "{actions:?}");
        assert_eq!(actions.last(), Some(&Action::ShutdownWrite), "{actions:?}");
        // Nothing more is taken in, and nothing said.
        self.feed(&fpdu(&hex("c140 00000001 0000000000000000")));
        assert_eq!(self.output(), b"");
        assert_eq!(self.actions(), []);
    }
}

/// An FPDU with its checksum, without markers.
pub(crate) fn fpdu(ulpdu: &[u8]) -> Vec<u8> {
    let mut framer = Framer::new(false, true);
    framed(&mut framer, ulpdu)
}

/// What a framer makes of a ULPDU.
pub(crate) fn framed(framer: &mut Framer, ulpdu: &[u8]) -> Vec<u8> {
    framer.frame(ulpdu, None, &Plain::default()).unwrap();
    drained(framer, &Plain::default())
}

/// Everything that waits in a framer.
pub(crate) fn drained(framer: &mut Framer, memory: &Plain) -> Vec<u8> {
    let mut octets = Vec::new();
    for piece in framer.pieces() {
        match piece {
            Piece::Own(own) => octets.extend(own),
            Piece::Payload { place, len } => {
                octets.extend(memory.run(place, len as usize).expect("memory"));
            }
        }
    }
    framer.handle_written(octets.len() as u64);
    octets
}

/// The ULPDUs in a stream of good FPDUs.
pub(crate) fn ulpdus(stream: &[u8], markers: bool, crc: bool) -> Vec<Vec<u8>> {
    let mut deframer = Deframer::new(markers.then_some(MarkerCheck::On), crc, 0);
    taken(&mut deframer, stream, usize::MAX)
}

/// What a deframer finds in `stream`, fed `step` octets at a time.
pub(crate) fn taken(deframer: &mut Deframer, stream: &[u8], step: usize) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for mut octets in stream.chunks(step.clamp(1, stream.len().max(1))) {
        while !octets.is_empty() {
            octets = &octets[deframer.handle_octets(octets)..];
            while deframer.poll() == Ok(Ready::Fpdu) {
                found.push(deframer.ulpdu().pieces().flatten().copied().collect());
                deframer.release();
            }
            if deframer.poll().is_err() {
                return found;
            }
        }
    }
    found
}
