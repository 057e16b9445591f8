//! Names under which processes find each other.

use std::sync::LazyLock;

use via::NetAddress;

/// This host's address, the same for all its processes until it boots again: locally administered,
/// and drawn from the boot id, so that hosts with one name are told apart.
pub(crate) fn host_address() -> [u8; 6] {
    static ADDRESS: LazyLock<[u8; 6]> = LazyLock::new(|| {
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        let name = boot_id.unwrap_or_else(|_| sys::host::hostname());
        let [a, b, c, d, e, ..] = fnv1a(name.as_bytes()).to_le_bytes();
        [0x02, a, b, c, d, e]
    });
    *ADDRESS
}

/// Where waiters for `address` listen, one name a process: the first that is free.
pub(crate) fn listener(address: &NetAddress, slot: usize) -> Vec<u8> {
    format!("sovia-via-{VERSION}/wait/{}/{slot}", hex(address)).into_bytes()
}

/// Where offers from `local` to `remote` are kept; both are of this host.
pub(crate) fn offer(local: &NetAddress, remote: &NetAddress, slot: usize) -> Vec<u8> {
    format!(
        "sovia-via-{VERSION}/peer/{}/{}/{slot}",
        hex(local),
        hex_of(remote.discriminator.as_bytes())
    )
    .into_bytes()
}

/// How many processes can wait for one address at a time.
pub(crate) const SLOTS: usize = 4;

/// One that is the same in every build: std promises that of none of its own, and a program and `libvipl.so` are two builds.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn hex(address: &NetAddress) -> String {
    hex_of(&address.host) + &hex_of(address.discriminator.as_bytes())
}

fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const VERSION: u8 = proto::setup::VERSION;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_its_authors() {
        let hashes = ["", "a", "foobar"].map(|text| fnv1a(text.as_bytes()));
        let published = [
            0xcbf2_9ce4_8422_2325,
            0xaf63_dc4c_8601_ec8c,
            0x8594_4171_f739_67e8,
        ];
        assert_eq!(hashes, published);
    }

    #[test]
    fn the_longest_addresses_make_names() {
        let address = NetAddress::new(host_address(), &[b'x'; via::DISCRIMINATOR_MAX]);
        let address = address.expect("not longer");
        for name in [
            listener(&address, SLOTS - 1),
            offer(&address, &address, SLOTS - 1),
        ] {
            assert!(sys::net::Listener::bind(&name, 1).is_ok(), "{}", name.len());
        }
    }
}
