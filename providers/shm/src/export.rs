//! Endpoint exchange: a connection made of descriptors that its user carries.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use proto::setup::{MESSAGE_MAX, Message};
use sys::net::Conn;
use sys::segment::{Segment, Side};
use via::provider::Export;
use via::soft::Established;
use via::{Error, ViAttributes};

use crate::connect::{attributes_to_wire, from_wire};
use crate::link::{DATA_LEN, ShmLink};

/// Makes a connection and hands out its other end: the segment and the socket.
pub(crate) fn export(attributes: &ViAttributes) -> Result<(ShmLink, Export), Error> {
    let (segment, fd) = Segment::create(DATA_LEN).map_err(|_| Error::Resource)?;
    let (ours, theirs) = Conn::pair().map_err(|_| Error::Resource)?;
    let message = Message::Accept {
        attributes: attributes_to_wire(attributes),
        data_len: DATA_LEN as u32,
    };
    let export = Export {
        blob: message.encode(&mut [0; MESSAGE_MAX]).to_vec(),
        fds: vec![fd, theirs.into()],
    };
    Ok((ShmLink::new(segment, Side::A, Arc::new(ours)), export))
}

/// Takes the other end.
pub(crate) fn import(blob: &[u8], fds: Vec<OwnedFd>) -> Result<Established<ShmLink>, Error> {
    let Ok(Message::Accept {
        attributes,
        data_len,
    }) = Message::decode(blob)
    else {
        return Err(Error::InvalidParameter);
    };
    let [segment, conn] = <[OwnedFd; 2]>::try_from(fds).map_err(|_| Error::InvalidParameter)?;
    let conn = Conn::try_from(conn).map_err(|_| Error::InvalidParameter)?;
    let segment =
        Segment::import(segment, data_len as usize).map_err(|_| Error::InvalidParameter)?;
    Ok(Established {
        link: ShmLink::new(segment, Side::B, Arc::new(conn)),
        remote: from_wire(&attributes).ok_or(Error::InvalidParameter)?,
    })
}
