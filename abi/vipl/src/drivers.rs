//! The devices that `VipOpenNic` knows.

use via::Error;
use via::provider::{Driver, OpenOptions};

/// The driver and the options that a device name stands for: `NAME` or `NAME,strict`.
///
/// # Errors
/// [`Error::InvalidParameter`] if there is no such device, or a word behind it means nothing.
pub(crate) fn find(device: &str) -> Result<(&'static dyn Driver, OpenOptions), Error> {
    let mut words = device.split(',');
    let name = words.next().unwrap_or_default();
    let driver = DRIVERS
        .iter()
        .find(|driver| driver.name() == name)
        .ok_or(Error::InvalidParameter)?;
    let mut options = OpenOptions {
        strict: std::env::var_os(STRICT).is_some_and(|value| value == "1"),
        ..OpenOptions::default()
    };
    for word in words {
        match word {
            "strict" => options.strict = true,
            _ => return Err(Error::InvalidParameter),
        }
    }
    Ok((*driver, options))
}

const STRICT: &str = "SOVIA_VIPL_STRICT";

static DRIVERS: [&dyn Driver; 3] = [&shm::DRIVER, &iwarp::DRIVER, &sim::DRIVER];

#[cfg(test)]
mod tests {
    use super::*;

    fn options(device: &str) -> Option<bool> {
        find(device).ok().map(|(_, options)| options.strict)
    }

    #[test]
    fn names() {
        for name in ["shm", "sim"] {
            assert_eq!(options(name), Some(false));
            assert_eq!(options(&format!("{name},strict")), Some(true));
            assert_eq!(options(&format!("{name},strict,strict")), Some(true));
        }
        for bad in ["", ",", "strict", "no_such_nic", " shm", "SHM"] {
            assert_eq!(options(bad), None, "{bad}");
        }
        for tail in [",", ",strict,", ", strict", ",no_such_word"] {
            assert_eq!(options(&format!("shm{tail}")), None, "{tail}");
        }
    }
}
