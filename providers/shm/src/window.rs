//! The NIC as a lender of memory to byte streams.

use std::os::fd::OwnedFd;

use via::Error;
use via::window::Windows;

/// Sealed memfds.
pub(crate) static WINDOWS: ShmWindows = ShmWindows;

pub(crate) struct ShmWindows;

impl Windows for ShmWindows {
    fn name(&self) -> &'static str {
        "shm"
    }

    fn create(&self, len: usize) -> Result<OwnedFd, Error> {
        sys::window::create(sys::stream::NAME, len).map_err(|_| Error::Resource)
    }

    fn admit(&self, fd: OwnedFd, len: usize) -> Result<OwnedFd, Error> {
        sys::window::admit(&fd, len).map_err(|_| Error::InvalidParameter)?;
        Ok(fd)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use via::provider::Driver;

    use super::*;

    #[test]
    fn what_it_lends_it_admits_at_that_length_only() {
        let windows = crate::DRIVER.windows().expect("this NIC lends memory");
        assert_eq!(windows.name(), crate::DRIVER.name());
        let fd = windows.create(8192).expect("memory");
        let same = fd.try_clone().expect("dup");
        windows.admit(same, 8192).expect("its own");
        let refused = windows.admit(fd, 4096).expect_err("another length");
        assert_eq!(refused, Error::InvalidParameter);
        let file = File::open("/dev/zero").expect("/dev/zero");
        let refused = windows.admit(file.into(), 8192).expect_err("a file");
        assert_eq!(refused, Error::InvalidParameter);
    }
}
