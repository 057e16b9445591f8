//! `VIP_NET_ADDRESS`: two lengths, then the bytes of the host, then at once those of the discriminator.

use via::{DISCRIMINATOR_MAX, Error, NetAddress};

use crate::caller::Bytes;

/// Points to a `VIP_NET_ADDRESS` that is read.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct AddressIn(Bytes);

impl AddressIn {
    /// NULL is refused here, apart from what [`AddressIn::read`] refuses.
    pub(crate) fn check(self) -> Result<Self, Error> {
        self.0.check().map(Self)
    }

    /// # Errors
    /// [`Error::InvalidParameter`] unless the host part is as long as a NIC's address, and the discriminator not too long.
    pub(crate) fn read(self) -> Result<NetAddress, Error> {
        let (host_len, discriminator_len) = lengths(self.0);
        if host_len != HOST_LEN || discriminator_len > DISCRIMINATOR_MAX {
            return Err(Error::InvalidParameter);
        }
        let mut bytes = [0; HOST_LEN + DISCRIMINATOR_MAX];
        let bytes = &mut bytes[..HOST_LEN + discriminator_len];
        // SAFETY: as many bytes follow the lengths as these say.
        unsafe { self.0.read(HEAD_LEN, bytes) };
        let (host, discriminator) = bytes.split_first_chunk().ok_or(Error::InvalidParameter)?;
        NetAddress::new(*host, discriminator)
    }
}

/// Points to room for a `VIP_NET_ADDRESS`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct AddressOut(Bytes);

impl AddressOut {
    pub(crate) fn check(self) -> Result<Self, Error> {
        self.0.check().map(Self)
    }

    /// Most bytes of discriminator that fit: what the lengths in it say if they are plausible, else there is room for all.
    pub(crate) fn capacity(self) -> Capacity {
        let (host_len, discriminator_len) = lengths(self.0);
        if host_len == HOST_LEN && discriminator_len <= DISCRIMINATOR_MAX {
            Capacity(discriminator_len)
        } else {
            Capacity(DISCRIMINATOR_MAX)
        }
    }

    /// Writes the address, with as much of its discriminator as fits, and nothing behind it.
    pub(crate) fn write(self, address: &NetAddress, capacity: Capacity) {
        let discriminator = address.discriminator.as_bytes();
        let discriminator = &discriminator[..discriminator.len().min(capacity.0)];
        let mut bytes = [0; HEAD_LEN + HOST_LEN + DISCRIMINATOR_MAX];
        let len = HEAD_LEN + HOST_LEN + discriminator.len();
        bytes[..2].copy_from_slice(&(HOST_LEN as u16).to_ne_bytes());
        bytes[2..HEAD_LEN].copy_from_slice(&(discriminator.len() as u16).to_ne_bytes());
        bytes[HEAD_LEN..HEAD_LEN + HOST_LEN].copy_from_slice(&address.host);
        bytes[HEAD_LEN + HOST_LEN..len].copy_from_slice(discriminator);
        // SAFETY: `capacity` is what fits behind the lengths and the host, by `AddressOut::capacity`, or less.
        unsafe { self.0.write(&bytes[..len]) };
    }
}

/// How many bytes of discriminator there is room for.
#[derive(Clone, Copy)]
pub(crate) struct Capacity(usize);

impl Capacity {
    /// For the host part alone.
    pub(crate) const NONE: Self = Self(0);
}

/// Of the host part and of the discriminator.
fn lengths(address: Bytes) -> (usize, usize) {
    let mut head = [0; HEAD_LEN];
    // SAFETY: an address begins with its lengths.
    unsafe { address.read(0, &mut head) };
    let [a, b, c, d] = head;
    let len = |bytes| usize::from(u16::from_ne_bytes(bytes));
    (len([a, b]), len([c, d]))
}

const HEAD_LEN: usize = 4;
const HOST_LEN: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    /// `host_len`, `discriminator_len`, then bytes 10, 11, …
    fn raw(host_len: u16, discriminator_len: u16) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[..2].copy_from_slice(&host_len.to_ne_bytes());
        bytes[2..4].copy_from_slice(&discriminator_len.to_ne_bytes());
        for (n, byte) in bytes[4..].iter_mut().enumerate() {
            *byte = 10 + n as u8;
        }
        bytes
    }

    fn read(mut bytes: [u8; 64]) -> Result<NetAddress, Error> {
        AddressIn(Bytes::of(&mut bytes)).read()
    }

    #[test]
    fn read_as_it_lies() {
        let address = read(raw(6, 3)).expect("a good address");
        assert_eq!(address.host, [10, 11, 12, 13, 14, 15]);
        assert_eq!(address.discriminator.as_bytes(), [16, 17, 18]);
        let bare = read(raw(6, 0)).expect("a good address");
        assert_eq!(bare.discriminator.as_bytes(), []);
        let full = read(raw(6, 16)).expect("a good address");
        assert_eq!(full.discriminator.as_bytes().len(), 16);
    }

    #[test]
    fn bad_lengths() {
        for (host_len, discriminator_len) in [
            (0, 0),
            (5, 3),
            (7, 3),
            (6, 17),
            (6, u16::MAX),
            (u16::MAX, 0),
        ] {
            assert_eq!(
                read(raw(host_len, discriminator_len)),
                Err(Error::InvalidParameter)
            );
        }
    }

    #[test]
    fn written_within_its_capacity() {
        let address = NetAddress::new([1, 2, 3, 4, 5, 6], b"0123456789abcdef").expect("short");
        for (host_len, discriminator_len, kept) in [
            (6, 16, 16),
            (6, 5, 5),
            (6, 0, 0),
            (0, 0, 16),
            (0xeeee, 0xeeee, 16),
            (6, 17, 16),
        ] {
            let mut bytes = raw(host_len, discriminator_len);
            let before = bytes;
            let out = AddressOut(Bytes::of(&mut bytes));
            out.write(&address, out.capacity());
            assert_eq!(bytes[10 + kept..], before[10 + kept..]);
            let written = read(bytes).expect("a good address");
            assert_eq!(written.host, address.host);
            assert_eq!(
                written.discriminator.as_bytes(),
                &address.discriminator.as_bytes()[..kept]
            );
        }
    }

    #[test]
    fn any_alignment() {
        let mut bytes = [0; 64];
        bytes[1..].copy_from_slice(&raw(6, 3)[..63]);
        let address = AddressIn(Bytes::of(&mut bytes[1..])).read();
        assert_eq!(address, read(raw(6, 3)));
    }
}
