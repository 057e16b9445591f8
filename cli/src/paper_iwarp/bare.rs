//! What records cost whoever writes them: plain calls that gather and scatter what iWARP's would, a pass of the checksum at each end, and nothing else.
//!
//! No octet of a header means anything, and nothing is verified. It is the bound of what an iWARP at user level can reach with these calls.
//! A message goes to one of as many places as a VI has, each in its turn: into one place, which stays in the near cache, TCP alone is a tenth faster, too.

use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::TcpStream;

use crc_fast::crc32_iscsi;

use crate::error::{Context, Error, Result};
use crate::netpipe::pipe::Pipe;
use crate::netpipe::vi;
use crate::nic::Medium;

/// One end. It polls.
pub(super) struct BarePipe {
    stream: TcpStream,
    markers: bool,
    outgoing: Vec<u8>,
    /// Places of the maximum transfer size that a VI would have, and whose turn it is.
    incoming: Vec<u8>,
    place: usize,
}

impl BarePipe {
    /// For messages of up to `mtu` bytes.
    pub(super) fn new(
        stream: TcpStream,
        markers: bool,
        mtu: usize,
        medium: Medium,
    ) -> Result<Self> {
        stream.set_nonblocking(true).context("O_NONBLOCK")?;
        let places = vi::receives(mtu as u32, medium);
        Ok(Self {
            stream,
            markers,
            // Not zero, so that every page is there before the clock runs.
            outgoing: vec![1; mtu],
            incoming: vec![1; places * mtu],
            place: 0,
        })
    }

    /// Lengths of the payload between two markers, or of a whole record's.
    fn piece(&self) -> usize {
        if self.markers {
            BETWEEN_MARKERS
        } else {
            RECORD
        }
    }
}

impl Pipe for BarePipe {
    fn send(&mut self, len: usize) -> Result<()> {
        let message = self.outgoing.get(..len).ok_or(Error::Closed)?;
        let piece = self.piece();
        let checksums: Vec<[u8; 4]> = message
            .chunks(RECORD)
            .map(|record| crc32_iscsi(record).to_le_bytes())
            .collect();
        let mut slices = Vec::new();
        for (record, checksum) in message.chunks(RECORD).zip(&checksums) {
            slices.push(IoSlice::new(&HEADER));
            for (index, piece) in record.chunks(piece).enumerate() {
                if index > 0 {
                    slices.push(IoSlice::new(&MARKER));
                }
                slices.push(IoSlice::new(piece));
            }
            slices.push(IoSlice::new(checksum));
        }
        let mut rest = &mut slices[..];
        while !rest.is_empty() {
            match self.stream.write_vectored(rest) {
                Ok(sent) => IoSlice::advance_slices(&mut rest, sent),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error).context("writev"),
            }
        }
        Ok(())
    }

    fn recv(&mut self, len: usize) -> Result<()> {
        let piece = self.piece();
        let mtu = self.outgoing.len();
        let mut places = self.incoming.chunks_mut(mtu);
        let count = places.len();
        let place = places.nth(self.place).and_then(|it| it.get_mut(..len));
        let message = place.ok_or(Error::Closed)?;
        self.place = (self.place + 1) % count;
        // As many records at a time as the near cache keeps until their checksums are made.
        for batch in message.chunks_mut(BATCH * RECORD) {
            scatter(&mut self.stream, batch, piece)?;
            for record in batch.chunks(RECORD) {
                std::hint::black_box(crc32_iscsi(record));
            }
        }
        Ok(())
    }

    fn exchange(&mut self, len: usize) -> Result<()> {
        self.send(len)?;
        self.recv(len)
    }
}

/// Some whole records, each octet where it belongs.
fn scatter(stream: &mut TcpStream, batch: &mut [u8], piece: usize) -> Result<()> {
    let records = batch.len().div_ceil(RECORD);
    let mut around = [[0; HEADER.len() + CHECKSUM]; BATCH];
    let mut markers = vec![MARKER; records * RECORD.div_ceil(piece)];
    let mut markers = markers.iter_mut();
    let mut slices = Vec::new();
    for (record, around) in batch.chunks_mut(RECORD).zip(&mut around) {
        let (header, checksum) = around.split_at_mut(HEADER.len());
        slices.push(IoSliceMut::new(header));
        for (index, piece) in record.chunks_mut(piece).enumerate() {
            if index > 0
                && let Some(marker) = markers.next()
            {
                slices.push(IoSliceMut::new(marker));
            }
            slices.push(IoSliceMut::new(piece));
        }
        slices.push(IoSliceMut::new(checksum));
    }
    let mut room = &mut slices[..];
    while !room.is_empty() {
        match stream.read_vectored(room) {
            Ok(0) => return Err(Error::Closed),
            Ok(received) => IoSliceMut::advance_slices(&mut room, received),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error).context("readv"),
        }
    }
    Ok(())
}

/// Length and DDP's header of an untagged segment (RFC 5044, 5041).
const HEADER: [u8; 20] = [1; 20];
const MARKER: [u8; 4] = [1; 4];
const CHECKSUM: usize = 4;
/// A marker each 512 octets of the stream (RFC 5044, 4.3).
const BETWEEN_MARKERS: usize = 512 - MARKER.len();
/// Payload of the longest record whose length field, header and checksum fit TCP's segment over loopback.
const RECORD: usize = 65_432;
const BATCH: usize = 4;
