//! From bytes to frames.

use zerocopy::FromBytes;

use super::layout::{
    ADVERTISE, AdvertBody, CREDIT, DATA, FIN, HELLO, Head, MAY_READ, MAY_WRITE, MESSAGE, PLACED,
    POSTED, PlaceBody, WITHDRAW,
};
use super::{Advert, Frame, FrameError, Grants, PLACES_MAX, Place, Rights};

impl<'a> Frame<'a> {
    /// Reads a frame.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub fn decode(bytes: &'a [u8]) -> Result<(Grants, Self), FrameError> {
        let (head, body) = Head::read_from_prefix(bytes).map_err(|_| FrameError::Length)?;
        if head.zero != 0 {
            return Err(FrameError::Reserved);
        }
        let grants = Grants {
            stream: head.stream.get(),
            control: head.control.get(),
        };
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
            DATA if body.is_empty() => return Err(FrameError::Length),
            DATA => Self::Data(body),
            FIN => bare(Self::Fin)?,
            MESSAGE => {
                let end = (b as usize).checked_add(body.len());
                // Only a message of no bytes has a piece of none.
                if end.is_none_or(|end| end > a as usize) || (body.is_empty() && a != 0) {
                    return Err(FrameError::Piece);
                }
                Self::Message {
                    total: a,
                    offset: b,
                    piece: body,
                }
            }
            POSTED => Self::Posted {
                len: a,
                places: places(a, head.count, body)?,
            },
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

/// As many as are said, with as many bytes.
fn places(len: u32, count: u8, body: &[u8]) -> Result<Vec<Place>, FrameError> {
    let count = usize::from(count);
    if count > PLACES_MAX || body.len() != count * size_of::<PlaceBody>() {
        return Err(FrameError::Length);
    }
    let read = |bytes| {
        let body = PlaceBody::read_from_bytes(bytes).map_err(|_| FrameError::Length)?;
        Ok(Place {
            addr: body.addr.get(),
            handle: body.handle.get(),
            len: body.len.get(),
        })
    };
    let chunks = body.chunks(size_of::<PlaceBody>());
    let places: Vec<Place> = chunks.map(read).collect::<Result<_, _>>()?;
    let room: u64 = places.iter().map(|place| u64::from(place.len)).sum();
    if count > 0 && room != u64::from(len) {
        return Err(FrameError::Length);
    }
    Ok(places)
}
