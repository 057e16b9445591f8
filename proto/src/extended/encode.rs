//! From frames to bytes.

use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64};

use super::layout::{
    ADVERTISE, AdvertBody, CREDIT, DATA, FIN, HELLO, Head, MAY_READ, MAY_WRITE, MESSAGE, PLACED,
    POSTED, PlaceBody, PostedBody, WITHDRAW,
};
use super::{Frame, Grants, PLACES_MAX, POSTED_MAX, Posted};

impl Frame<'_> {
    /// Writes it to the end of `into`, but for the payload of [`Frame::Data`] and [`Frame::Message`], which is to follow.
    pub fn encode(&self, grants: Grants, into: &mut Vec<u8>) {
        let (kind, a, b) = match self {
            Self::Hello { version } => (HELLO, *version, 0),
            Self::Data(_) => (DATA, 0, 0),
            Self::Fin => (FIN, 0, 0),
            Self::Message { total, offset, .. } => (MESSAGE, *total, *offset),
            Self::Posted(_) => (POSTED, 0, 0),
            Self::Placed { len } => (PLACED, *len, 0),
            Self::Advertise(advert) => {
                let bit = |on, bit| if on { bit } else { 0 };
                let rights =
                    bit(advert.rights.read, MAY_READ) | bit(advert.rights.write, MAY_WRITE);
                (ADVERTISE, advert.handle, rights)
            }
            Self::Withdraw { handle } => (WITHDRAW, *handle, 0),
            Self::Credit => (CREDIT, 0, 0),
        };
        let count = match self {
            Self::Posted(receives) => receives.len().min(POSTED_MAX) as u8,
            _ => 0,
        };
        let head = Head {
            kind,
            count,
            stream: U16::new(grants.stream),
            control: U16::new(grants.control),
            zero: U16::new(0),
            a: U32::new(a),
            b: U32::new(b),
        };
        into.extend(head.as_bytes());
        match self {
            Self::Posted(receives) => {
                for receive in receives.iter().take(POSTED_MAX) {
                    receive.encode(into);
                }
            }
            Self::Advertise(advert) => {
                let body = AdvertBody {
                    tag: U64::new(advert.tag),
                    addr: U64::new(advert.addr),
                    len: U64::new(advert.len),
                };
                into.extend(body.as_bytes());
            }
            _ => {}
        }
    }
}

impl Posted {
    fn encode(&self, into: &mut Vec<u8>) {
        let places = self.places.get(..PLACES_MAX).unwrap_or(&self.places);
        let head = PostedBody {
            len: U32::new(self.len),
            places: U32::new(places.len() as u32),
        };
        into.extend(head.as_bytes());
        for place in places {
            let body = PlaceBody {
                addr: U64::new(place.addr),
                handle: U32::new(place.handle),
                len: U32::new(place.len),
            };
            into.extend(body.as_bytes());
        }
    }
}
