//! Options of TCP and IP that a program asks of what is no TCP socket: the kernel says of a fresh one what may be set, to what, and what is read back.
//!
//! System calls only, none through the C library.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::argument::Family;
use crate::errno::Errno;
use crate::system_call::call;

/// What has been set, by level and name.
#[derive(Debug, Clone, Default)]
pub struct Options(BTreeMap<(i32, i32), Box<[u8]>>);

impl Options {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Sets one, if a TCP socket that is nowhere yet may have it so. Where no socket can be had to ask it is set to nothing.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set(
        &mut self,
        family: Family,
        level: i32,
        name: i32,
        value: &[u8],
    ) -> Result<(), Errno> {
        let Some(asked) = fresh(family) else {
            return Ok(());
        };
        set_at(&asked, level, name, value)?;
        self.0.insert((level, name), value.into());
        Ok(())
    }

    /// What a TCP socket says that was set so, into `room`: how many bytes.
    ///
    /// # Errors
    /// The kernel's; `ENOPROTOOPT` where no socket can be had.
    pub fn get(
        &self,
        family: Family,
        level: i32,
        name: i32,
        room: &mut [u8],
    ) -> Result<usize, Errno> {
        let asked = fresh(family).ok_or(Errno::NOPROTOOPT)?;
        if let Some(value) = self.0.get(&(level, name)) {
            set_at(&asked, level, name, value)?;
        }
        let mut len = u32::try_from(room.len()).map_err(|_| Errno::INVAL)?;
        let place = room.as_mut_ptr().expose_provenance();
        let at = (&raw mut len).expose_provenance();
        let (fd, level, name) = numbers(&asked, level, name);
        // SAFETY: the kernel writes no more than `len` bytes of the room, and how many.
        let result = unsafe { call(libc::SYS_getsockopt, [fd, level, name, place, at, 0]) };
        told(result)?;
        Ok(room.len().min(len as usize))
    }
}

/// A TCP socket that is nowhere yet, and goes nowhere.
fn fresh(family: Family) -> Option<OwnedFd> {
    let family = match family {
        Family::V4 => AddressFamily::INET,
        Family::V6 => AddressFamily::INET6,
    };
    socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None).ok()
}

fn set_at(asked: &OwnedFd, level: i32, name: i32, value: &[u8]) -> Result<(), Errno> {
    let (fd, level, name) = numbers(asked, level, name);
    let (at, len) = (value.as_ptr().expose_provenance(), value.len());
    // SAFETY: the kernel reads the value. What an option of a TCP socket points to, as a filter's program, it checks.
    told(unsafe { call(libc::SYS_setsockopt, [fd, level, name, at, len, 0]) })
}

fn numbers(asked: &OwnedFd, level: i32, name: i32) -> (usize, usize, usize) {
    let as_word = |number: i32| number.cast_unsigned() as usize;
    (as_word(asked.as_raw_fd()), as_word(level), as_word(name))
}

fn told(result: isize) -> Result<(), Errno> {
    match i32::try_from(result) {
        Ok(errno @ ..0) => Err(Errno::from_raw_os_error(-errno)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: [(i32, i32, i32); 4] = [
        (libc::IPPROTO_IP, libc::IP_TTL, 7),
        (libc::IPPROTO_IP, libc::IP_TOS, 0x10),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 77),
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, 12345),
    ];

    fn read(options: &Options, level: i32, name: i32) -> Result<i32, Errno> {
        let mut room = [0; 4];
        let len = options.get(Family::V4, level, name, &mut room)?;
        assert_eq!(len, 4);
        Ok(i32::from_ne_bytes(room))
    }

    #[test]
    fn what_is_set_is_read_back_and_what_is_not_is_the_kernels() {
        let mut options = Options::new();
        for (level, name, value) in OPTIONS {
            let before = read(&options, level, name).expect("an option of TCP's");
            assert_ne!(before, value);
            let bytes = value.to_ne_bytes();
            options
                .set(Family::V4, level, name, &bytes)
                .expect("may be set");
            assert_eq!(read(&options, level, name), Ok(value));
        }
        assert_eq!(options.clone().0.len(), OPTIONS.len());
    }

    #[test]
    fn what_the_kernel_refuses_is_refused() {
        let mut options = Options::new();
        let ttl = (libc::IPPROTO_IP, libc::IP_TTL);
        let refused = options.set(Family::V4, ttl.0, ttl.1, &1000i32.to_ne_bytes());
        assert_eq!(refused, Err(Errno::INVAL));
        assert_eq!(read(&options, ttl.0, 12345), Err(Errno::NOPROTOOPT));
        assert_ne!(read(&options, ttl.0, ttl.1), Ok(1000));
    }
}
