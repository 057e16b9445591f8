//! Memory for an iWARP engine that is driven by hand.

use std::collections::BTreeMap;

use proto::ddp::{Access, Fault, InvalidateFault, Memory, Stag, Window};
use proto::mpa::{Piece, Place, Source, SourceLost};
use proto::rdmap::Engine;

/// Buffers by number. Those below 2^32 are regions of that STag too, from offset 0 on, which a peer may read and write.
#[derive(Debug, Default)]
pub struct Plain(pub BTreeMap<u64, Vec<u8>>);

impl Plain {
    fn run(&self, at: Place, len: usize) -> Option<&[u8]> {
        let from = usize::try_from(at.offset).ok()?;
        let end = from.checked_add(len)?;
        self.0.get(&at.handle)?.get(from..end)
    }

    /// The kernel puts octets there, as far as it was told to.
    ///
    /// # Panics
    /// When that is no memory.
    pub fn put(&mut self, at: Place, octets: &[u8]) {
        self.place(at, octets).expect("within its memory");
    }

    /// Everything that `engine` has to say, as if it were written at once.
    ///
    /// # Panics
    /// When it wants to send what is not there.
    pub fn said(&self, engine: &mut Engine) -> Vec<u8> {
        let now = std::time::Duration::ZERO;
        let mut said = Vec::new();
        loop {
            engine.fill(self, now);
            let before = said.len();
            for piece in engine.pieces() {
                match piece {
                    Piece::Own(octets) => said.extend_from_slice(octets),
                    Piece::Payload { place, len } => {
                        let run = self.run(place, len as usize);
                        said.extend_from_slice(run.expect("it was there when it was framed"));
                    }
                }
            }
            if said.len() == before {
                return said;
            }
            engine.handle_written((said.len() - before) as u64, now);
        }
    }
}

impl Source for Plain {
    fn show(&self, at: Place, len: u32, mut see: impl FnMut(&[u8])) -> Result<(), SourceLost> {
        see(self.run(at, len as usize).ok_or(SourceLost)?);
        Ok(())
    }
}

impl Memory for Plain {
    fn grant(&self, _: Access, stag: Stag, to: u64, len: u32) -> Result<Place, Fault> {
        let handle = u64::from(stag.0);
        let buffer = self.0.get(&handle).ok_or(Fault::UnknownStag)?;
        let window = Window {
            base: 0,
            len: buffer.len() as u64,
        };
        Ok(Place::new(handle).advanced(window.offset(to, len)?))
    }

    fn place(&mut self, at: Place, octets: &[u8]) -> Result<(), SourceLost> {
        self.run(at, octets.len()).ok_or(SourceLost)?;
        let from = at.offset as usize;
        let buffer = self.0.get_mut(&at.handle).ok_or(SourceLost)?;
        buffer[from..from + octets.len()].copy_from_slice(octets);
        Ok(())
    }

    fn invalidate(&mut self, stag: Stag) -> Result<(), InvalidateFault> {
        let removed = self.0.remove(&u64::from(stag.0));
        removed.map(drop).ok_or(InvalidateFault::UnknownStag)
    }

    fn atomic(&mut self, at: Place, change: impl Fn(u64) -> u64) -> Result<u64, SourceLost> {
        let run = self.run(at, 8).and_then(<[u8]>::first_chunk);
        let original = u64::from_ne_bytes(*run.ok_or(SourceLost)?);
        self.place(at, &change(original).to_ne_bytes())?;
        Ok(original)
    }
}
