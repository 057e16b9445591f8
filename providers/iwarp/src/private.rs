//! Private data: what two sovia ends say to each other in an MPA Request and Reply.
//!
//! It is one message of [`proto::setup`], little endian, behind the four octets `"sVI\0"` and a
//! version: in a Request who asks whom and with which VI, in a Reply the answer. Whoever sends
//! anything else, or nothing, is a stranger: an iWARP peer that knows neither discriminators nor
//! attributes, nor the immediate data that we put into a Send with Invalidate.

use proto::setup::{self, MESSAGE_MAX, Message};
use via::soft::Ask;
use via::{Discriminator, Error, NetAddress, Reliability, ViAttributes};

/// What a Request says.
pub(crate) enum Asked {
    /// Sovia: a client's request for a connection to a waiter.
    Client(Ask),
    /// Sovia: an offer for its mirror image.
    Peer(Ask),
    /// No sovia.
    Stranger,
}

pub(crate) fn request(ask: &Ask, peer: bool) -> Vec<u8> {
    let ask = to_wire(ask);
    octets(&if peer {
        Message::PeerRequest(ask)
    } else {
        Message::Request(ask)
    })
}

pub(crate) fn accept(attributes: &ViAttributes) -> Vec<u8> {
    octets(&Message::Accept {
        attributes: attributes_to_wire(attributes),
        data_len: 0,
    })
}

/// Why not.
pub(crate) fn refusal(error: Error) -> Vec<u8> {
    octets(&match error {
        Error::NoMatch => Message::NoMatch,
        Error::InvalidReliabilityLevel | Error::InvalidMtu | Error::InvalidQos => {
            Message::Mismatch(error as u8)
        }
        _ => Message::Reject,
    })
}

/// `None` for sovia's words that make no sense.
pub(crate) fn asked(private_data: &[u8]) -> Option<Asked> {
    match Message::decode(private_data) {
        Ok(Message::Request(ask)) => Some(Asked::Client(from_wire(&ask)?)),
        Ok(Message::PeerRequest(ask)) => Some(Asked::Peer(from_wire(&ask)?)),
        Err(setup::SetupError::Magic | setup::SetupError::Length)
            if !private_data.starts_with(MAGIC) =>
        {
            Some(Asked::Stranger)
        }
        _ => None,
    }
}

/// The attributes of whoever accepted; `None` for a stranger.
pub(crate) fn accepted(private_data: &[u8]) -> Option<ViAttributes> {
    match Message::decode(private_data) {
        Ok(Message::Accept { attributes, .. }) => attributes_from_wire(&attributes),
        _ => None,
    }
}

/// Whether two VIs can be connected.
pub(crate) fn fit(ours: &ViAttributes, theirs: &ViAttributes) -> Result<(), Error> {
    if ours.reliability != theirs.reliability {
        return Err(Error::InvalidReliabilityLevel);
    }
    if ours.max_transfer_size != theirs.max_transfer_size {
        return Err(Error::InvalidMtu);
    }
    if ours.qos != theirs.qos {
        return Err(Error::InvalidQos);
    }
    Ok(())
}

/// Whether a peer will do that answers RDMA Reads or none: reliable reception is asked by them.
pub(crate) fn suffice(ours: &ViAttributes, takes_reads: bool) -> Result<(), Error> {
    match ours.reliability {
        Reliability::ReliableReception if !takes_reads => Err(Error::InvalidReliabilityLevel),
        _ => Ok(()),
    }
}

/// What a refusal means.
pub(crate) fn refused(private_data: &[u8]) -> Error {
    match Message::decode(private_data) {
        Ok(Message::NoMatch) => Error::NoMatch,
        Ok(Message::Mismatch(code)) => [
            Error::InvalidReliabilityLevel,
            Error::InvalidMtu,
            Error::InvalidQos,
        ]
        .into_iter()
        .find(|&error| error as u32 == u32::from(code))
        .unwrap_or(Error::Reject),
        _ => Error::Reject,
    }
}

fn octets(message: &Message) -> Vec<u8> {
    message.encode(&mut [0; MESSAGE_MAX]).to_vec()
}

fn to_wire(ask: &Ask) -> setup::Ask {
    setup::Ask {
        local: address_to_wire(&ask.local),
        remote: address_to_wire(&ask.remote),
        attributes: attributes_to_wire(&ask.attributes),
    }
}

fn from_wire(ask: &setup::Ask) -> Option<Ask> {
    Some(Ask {
        local: address_from_wire(&ask.local)?,
        remote: address_from_wire(&ask.remote)?,
        attributes: attributes_from_wire(&ask.attributes)?,
    })
}

fn address_to_wire(address: &NetAddress) -> setup::Address {
    let bytes = address.discriminator.as_bytes();
    let mut discriminator = [0; setup::DISCRIMINATOR_MAX];
    for (to, from) in discriminator.iter_mut().zip(bytes) {
        *to = *from;
    }
    setup::Address {
        host: address.host,
        discriminator_len: bytes.len() as u8,
        discriminator,
    }
}

fn address_from_wire(address: &setup::Address) -> Option<NetAddress> {
    let len = usize::from(address.discriminator_len);
    let discriminator = Discriminator::new(address.discriminator.get(..len)?).ok()?;
    Some(NetAddress {
        host: address.host,
        discriminator,
    })
}

fn attributes_to_wire(attributes: &ViAttributes) -> setup::Attributes {
    setup::Attributes {
        reliability: attributes.reliability.bits(),
        enable_rdma_write: attributes.enable_rdma_write,
        enable_rdma_read: attributes.enable_rdma_read,
        max_transfer_size: attributes.max_transfer_size,
        qos: attributes.qos,
    }
}

/// `None` for a reliability level that does not exist.
fn attributes_from_wire(attributes: &setup::Attributes) -> Option<ViAttributes> {
    Some(ViAttributes {
        reliability: Reliability::from_bits(attributes.reliability)?,
        max_transfer_size: attributes.max_transfer_size,
        qos: attributes.qos,
        ptag: None,
        enable_rdma_write: attributes.enable_rdma_write,
        enable_rdma_read: attributes.enable_rdma_read,
    })
}

const MAGIC: &[u8] = b"sVI\0";

#[cfg(test)]
mod tests {
    use super::*;

    fn ask() -> Ask {
        Ask {
            local: NetAddress::new([127, 0, 0, 1, 1, 2], b"here").expect("short"),
            remote: NetAddress::new([127, 0, 0, 1, 3, 4], b"there").expect("short"),
            attributes: ViAttributes::default(),
        }
    }

    #[test]
    fn requests_are_told_apart() {
        let Some(Asked::Client(client)) = asked(&request(&ask(), false)) else {
            panic!("a client");
        };
        assert_eq!(client.remote, ask().remote);
        assert!(matches!(
            asked(&request(&ask(), true)),
            Some(Asked::Peer(_))
        ));
        for stranger in [&b""[..], b"s", b"hello, I am rping", &[0; 64]] {
            assert!(matches!(asked(stranger), Some(Asked::Stranger)));
        }
        let whole = request(&ask(), false);
        assert!(asked(whole.get(..20).expect("longer")).is_none());
    }

    #[test]
    fn answers_keep_their_meaning() {
        for error in [
            Error::Reject,
            Error::NoMatch,
            Error::InvalidReliabilityLevel,
            Error::InvalidMtu,
            Error::InvalidQos,
        ] {
            assert_eq!(refused(&refusal(error)), error);
        }
        assert_eq!(refused(b"no"), Error::Reject);
        let told = accepted(&accept(&ViAttributes::default()));
        assert_eq!(told, Some(ViAttributes::default()));
        assert_eq!(accepted(b""), None);
    }
}
