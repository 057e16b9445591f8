//! From bytes to frames.

use zerocopy::FromBytes;

use super::layout::{
    ADVERTISE, AdvertBody, CREDIT, DATA, FIN, HELLO, Head, MAY_READ, MAY_WRITE, MESSAGE, PLACED,
    POSTED, PlaceBody, PostedBody, WITHDRAW,
};
use super::{
    Advert, Frame, FrameError, Grants, Lead, PLACES_MAX, POSTED_MAX, Place, Posted, Rights,
};

impl<'a> Frame<'a> {
    /// Reads a frame.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub fn decode(bytes: &'a [u8]) -> Result<(Grants, Self), FrameError> {
        let (head, body) = Head::read_from_prefix(bytes).map_err(|_| FrameError::Length)?;
        let grants = head.grants()?;
        match head.lead(body.len())? {
            Some(Lead::Data) => return Ok((grants, Self::Data(body))),
            Some(Lead::Message { total, offset }) => {
                let piece = body;
                let message = Self::Message {
                    total,
                    offset,
                    piece,
                };
                return Ok((grants, message));
            }
            None => {}
        }
        let (a, b) = (head.a.get(), head.b.get());
        let bare = |frame| {
            if body.is_empty() {
                Ok(frame)
            } else {
                Err(FrameError::Length)
            }
        };
        let frame = match head.kind {
            HELLO => bare(Self::Hello { version: a })?,
            FIN => bare(Self::Fin)?,
            POSTED => Self::Posted(receives(head.count, body)?),
            PLACED => bare(Self::Placed { len: a })?,
            ADVERTISE => {
                let body = AdvertBody::read_from_bytes(body).map_err(|_| FrameError::Length)?;
                if b & !(MAY_READ | MAY_WRITE) != 0 {
                    return Err(FrameError::Reserved);
                }
                Self::Advertise(Advert {
                    handle: a,
                    rights: Rights {
                        read: b & MAY_READ != 0,
                        write: b & MAY_WRITE != 0,
                    },
                    tag: body.tag.get(),
                    addr: body.addr.get(),
                    len: body.len.get(),
                })
            }
            WITHDRAW => bare(Self::Withdraw { handle: a })?,
            CREDIT => bare(Self::Credit)?,
            other => return Err(FrameError::Kind(other)),
        };
        Ok((grants, frame))
    }
}

impl Lead {
    /// Reads the head of a frame that `payload` bytes follow; nothing for a frame that is to be [decoded](Frame::decode) whole.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub fn decode(head: &[u8], payload: usize) -> Result<Option<(Grants, Self)>, FrameError> {
        let head = Head::read_from_bytes(head).map_err(|_| FrameError::Length)?;
        let lead = head.lead(payload)?;
        lead.map(|lead| Ok((head.grants()?, lead))).transpose()
    }
}

impl Head {
    fn grants(&self) -> Result<Grants, FrameError> {
        if self.zero != 0 {
            return Err(FrameError::Reserved);
        }
        Ok(Grants {
            stream: self.stream.get(),
            control: self.control.get(),
        })
    }

    fn lead(&self, payload: usize) -> Result<Option<Lead>, FrameError> {
        let (total, offset) = (self.a.get(), self.b.get());
        match self.kind {
            DATA if payload == 0 => Err(FrameError::Length),
            DATA => Ok(Some(Lead::Data)),
            MESSAGE => {
                let end = (offset as usize).checked_add(payload);
                // Only a message of no bytes has a piece of none.
                if end.is_none_or(|end| end > total as usize) || (payload == 0 && total != 0) {
                    return Err(FrameError::Piece);
                }
                Ok(Some(Lead::Message { total, offset }))
            }
            _ => Ok(None),
        }
    }
}

/// As many as are said, with as many bytes.
fn receives(count: u8, mut body: &[u8]) -> Result<Vec<Posted>, FrameError> {
    let count = usize::from(count);
    if count == 0 || count > POSTED_MAX {
        return Err(FrameError::Length);
    }
    let mut receives = Vec::with_capacity(count);
    for _ in 0..count {
        let (receive, rest) = receive(body)?;
        receives.push(receive);
        body = rest;
    }
    if !body.is_empty() {
        return Err(FrameError::Length);
    }
    Ok(receives)
}

/// The first, and what follows it.
fn receive(body: &[u8]) -> Result<(Posted, &[u8]), FrameError> {
    let (head, body) = PostedBody::read_from_prefix(body).map_err(|_| FrameError::Length)?;
    let (len, count) = (head.len.get(), head.places.get() as usize);
    if count > PLACES_MAX {
        return Err(FrameError::Length);
    }
    let (places, rest) = body
        .split_at_checked(count * size_of::<PlaceBody>())
        .ok_or(FrameError::Length)?;
    let read = |bytes| {
        let body = PlaceBody::read_from_bytes(bytes).map_err(|_| FrameError::Length)?;
        Ok(Place {
            addr: body.addr.get(),
            handle: body.handle.get(),
            len: body.len.get(),
        })
    };
    let places = places.chunks(size_of::<PlaceBody>());
    let places: Vec<Place> = places.map(read).collect::<Result<_, _>>()?;
    let room: u64 = places.iter().map(|place| u64::from(place.len)).sum();
    if count > 0 && room != u64::from(len) {
        return Err(FrameError::Length);
    }
    Ok((Posted { len, places }, rest))
}
