//! Host names and NIC addresses (`VipNS…`).

use crate::Error;

/// A table of names and host addresses.
///
/// ```
/// let mut names = via::name_service::NameService::new("node1.cluster", [2, 0, 0, 0, 0, 1]);
/// names.read("# the others\nnode2 02:00:00:00:00:02\n")?;
/// assert_eq!(names.address("node2.cluster", 0)?, [2, 0, 0, 0, 0, 2]);
/// assert_eq!(names.address("node1", 0)?, [2, 0, 0, 0, 0, 1]);
/// assert_eq!(names.name([2, 0, 0, 0, 0, 1])?, "node1.cluster");
/// assert_eq!(names.address("node9", 0), Err(via::Error::NameService));
/// # Ok::<(), via::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct NameService {
    entries: Vec<(String, [u8; 6])>,
}

impl NameService {
    /// A table that knows this host: by its own name, by the part of that before the first dot, and as `localhost`.
    #[must_use]
    pub fn new(own_name: &str, own_address: [u8; 6]) -> Self {
        let mut entries: Vec<(String, [u8; 6])> = Vec::new();
        let short = own_name.split('.').next().unwrap_or(own_name);
        for name in [own_name, short, "localhost"] {
            // Each once: an index beyond the last address is an error.
            if !name.is_empty() && entries.iter().all(|(known, _)| known != name) {
                entries.push((name.to_owned(), own_address));
            }
        }
        Self { entries }
    }

    /// Adds lines of the form `name address`, where the address is six hexadecimal bytes with
    /// colons between them. Empty lines and what follows a `#` are skipped.
    ///
    /// # Errors
    /// [`Error::NameService`] for any other line; the table is then unchanged.
    pub fn read(&mut self, text: &str) -> Result<(), Error> {
        let read: Result<Vec<_>, Error> = text
            .lines()
            .map(|line| {
                line.split_once('#')
                    .map_or(line, |(before, _)| before)
                    .trim()
            })
            .filter(|line| !line.is_empty())
            .map(|line| {
                let mut words = line.split_whitespace();
                let (Some(name), Some(address), None) = (words.next(), words.next(), words.next())
                else {
                    return Err(Error::NameService);
                };
                Ok((name.to_owned(), parse(address)?))
            })
            .collect();
        self.entries.extend(read?);
        Ok(())
    }

    /// The address number `index` of `name`: first of the name as it is, then, if there is none,
    /// of the part before its first dot.
    ///
    /// # Errors
    /// [`Error::NameService`] for an unknown name or an index beyond its last address.
    pub fn address(&self, name: &str, index: usize) -> Result<[u8; 6], Error> {
        let short = name.split('.').next().unwrap_or(name);
        let known = |wanted: &str| self.entries.iter().any(|(name, _)| name == wanted);
        let wanted = if known(name) { name } else { short };
        self.entries
            .iter()
            .filter(|(name, _)| name == wanted)
            .nth(index)
            .map(|&(_, address)| address)
            .ok_or(Error::NameService)
    }

    /// The first name of an address.
    ///
    /// # Errors
    /// [`Error::NameService`] for an unknown address.
    pub fn name(&self, address: [u8; 6]) -> Result<&str, Error> {
        self.entries
            .iter()
            .find(|(_, known)| *known == address)
            .map(|(name, _)| name.as_str())
            .ok_or(Error::NameService)
    }
}

fn parse(address: &str) -> Result<[u8; 6], Error> {
    let bytes: Option<Vec<u8>> = address
        .split(':')
        .map(|byte| u8::from_str_radix(byte, 16).ok())
        .collect();
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or(Error::NameService)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_addresses_of_one_name() {
        let mut names = NameService::new("me", [0; 6]);
        names
            .read("you 2:0:0:0:0:1\nyou 2:0:0:0:0:2 # second card")
            .expect("well formed");
        assert_eq!(names.address("you", 1), Ok([2, 0, 0, 0, 0, 2]));
        assert_eq!(names.address("you", 2), Err(Error::NameService));
    }

    #[test]
    fn a_bad_line_changes_nothing() {
        let mut names = NameService::new("me", [0; 6]);
        for bad in [
            "you",
            "you 1:2:3",
            "you 1:2:3:4:5:g",
            "you 1:2:3:4:5:6 more",
        ] {
            assert_eq!(
                names.read(&format!("he 1:2:3:4:5:6\n{bad}")),
                Err(Error::NameService)
            );
            assert_eq!(names.address("he", 0), Err(Error::NameService));
        }
    }
}
