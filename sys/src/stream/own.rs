//! What is this process's alone in a stream's descriptor: a file position nobody else can move, kept over `fork` and `exec`.

use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use rustix::fs::{Mode, OFlags, SeekFrom, open, seek, tell};

use super::{Side, Stream, VERSION};
use crate::hidden::Hidden;
use crate::lock::Lock;

/// Which socket of this process a stream belongs to, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The socket's cookie: no two sockets of a network namespace have the same until the host boots again.
    pub cookie: u64,
    /// Which end of the stream it is.
    pub side: Side,
    /// Whether this end called `connect`.
    pub opener: bool,
}

impl Stream {
    /// Writes `tag` where a program that this one becomes by `exec` finds it, and the peer cannot reach.
    ///
    /// The peer has the same open file, for it came or went as a descriptor. So the memory is opened once more, and the tag is the new
    /// file's position, which means nothing to who maps it.
    ///
    /// # Errors
    /// The kernel's; without `/proc` there is no opening. The stream is as it was, and has no tag.
    pub fn set_tag(&mut self, tag: Tag) -> io::Result<()> {
        let again = self.with_fd(|fd| {
            let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
            Hidden::new(open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
        });
        let again = again.unwrap_or(Err(ErrorKind::NotFound.into()))?;
        seek(again.as_fd(), SeekFrom::Start(tag.encode()))?;
        self.fd = Lock::new(Descriptor {
            fd: Some(again),
            tagged: true,
        });
        Ok(())
    }

    /// Does something with the memory's descriptor, if it is still there: passes it to the peer, say.
    pub fn with_fd<T>(&self, act: impl FnOnce(BorrowedFd<'_>) -> T) -> Option<T> {
        self.fd.try_lock()?.fd.as_ref().map(Hidden::as_fd).map(act)
    }

    /// Closes the descriptor, for the program needs the number. The stream goes on without one, and without a tag. Whether it is closed now, by this.
    pub fn give_up_fd(&self) -> bool {
        // A handler that came into a use of it by its own thread leaves it there.
        let given_up = self.fd.try_lock().and_then(|mut kept| {
            kept.tagged = false;
            kept.fd.take()
        });
        given_up.is_some()
    }

    /// Moves the descriptor away if it is at `number`, which the program wants; without another number it is [given up](Stream::give_up_fd). False if
    /// that cannot be said now: this is a signal handler, and its thread is in the middle of a use of it.
    pub fn step_aside(&self, number: RawFd) -> bool {
        let Some(mut kept) = self.fd.try_lock() else {
            return false;
        };
        let at_number = kept.fd.as_mut().filter(|fd| fd.as_raw_fd() == number);
        if at_number.is_some_and(|fd| fd.step_aside().is_err()) {
            *kept = Descriptor {
                fd: None,
                tagged: false,
            };
        }
        true
    }

    /// Lets programs inherit the stream over `exec`, or not; whether they do now, and could find out what it is. Those who would have it without a tag do not get it.
    pub fn inherit(&self, yes: bool) -> bool {
        self.fd.try_lock().is_some_and(|kept| {
            let inherit = |fd: &Hidden| fd.inherit(yes).is_ok();
            kept.tagged && kept.fd.as_ref().is_some_and(inherit) && yes
        })
    }

    /// The hidden descriptor of a stream that was inherited over `exec`, mapped again.
    ///
    /// # Errors
    /// As [`Stream::map`], and `InvalidData` if it is of another [`VERSION`]: the program before this one may have had another library.
    pub fn resume(fd: Hidden, side: Side) -> io::Result<Self> {
        if version_of(fd.as_fd().as_raw_fd()) != Some(VERSION) {
            return Err(ErrorKind::InvalidData.into());
        }
        let stream = Self::map_hidden(fd, side)?;
        stream.fd.lock().tagged = true;
        Ok(stream)
    }
}

/// The descriptor of a stream's memory. What is done with it is short, and who finds it taken is in a signal handler or leaves it.
#[derive(Debug)]
pub(super) struct Descriptor {
    /// `None` once it was given up: the mapping goes on.
    fd: Option<Hidden>,
    /// Whether it says what the stream is.
    tagged: bool,
}

impl Descriptor {
    pub(super) fn new(fd: Hidden) -> Self {
        Self {
            fd: Some(fd),
            tagged: false,
        }
    }
}

impl Tag {
    /// For a stream of `socket`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn for_socket(socket: BorrowedFd<'_>, side: Side, opener: bool) -> io::Result<Self> {
        Ok(Self {
            cookie: cookie(socket)?,
            side,
            opener,
        })
    }

    /// The tag of an inherited descriptor; `None` if it is not one of a stream, or has none.
    pub fn of(fd: BorrowedFd<'_>) -> Option<Self> {
        Self::decode(tell(fd).ok()?)
    }

    fn encode(self) -> u64 {
        let side = self.side.index() as u64;
        self.cookie << 3 | side << 2 | u64::from(self.opener) << 1 | 1
    }

    fn decode(position: u64) -> Option<Self> {
        (position & 1 != 0).then_some(Self {
            cookie: position >> 3,
            side: if position & 4 == 0 { Side::A } else { Side::B },
            opener: position & 2 != 0,
        })
    }
}

/// Whether a descriptor is the memory of a stream, of whatever version, by [what the kernel calls it](crate::fds::each_unlinked).
pub fn is_stream(target: &[u8]) -> bool {
    after_name(target).is_some()
}

/// The [`VERSION`] of the stream whose memory `fd` is, if its name says one.
fn version_of(fd: RawFd) -> Option<u32> {
    let mut target = [MaybeUninit::uninit(); 64];
    let link = format_args!("/proc/self/fd/{fd}").to_string();
    let (target, _) = rustix::fs::readlinkat_raw(rustix::fs::CWD, link, &mut target).ok()?;
    let rest = std::str::from_utf8(after_name(target)?).ok()?;
    rest.strip_prefix('-')?.split(' ').next()?.parse().ok()
}

/// What follows [`ANY`] in the name of a stream's memory.
fn after_name(target: &[u8]) -> Option<&[u8]> {
    target
        .strip_prefix(b"/memfd:")?
        .strip_prefix(ANY.as_bytes())
}

/// The cookie of a socket.
///
/// # Errors
/// `ENOTSOCK`.
pub fn cookie(socket: BorrowedFd<'_>) -> io::Result<u64> {
    Ok(rustix::net::sockopt::socket_cookie(socket)?)
}

/// Whether `fd` is closed when its process becomes another program.
pub fn closes_on_exec(fd: BorrowedFd<'_>) -> bool {
    rustix::io::fcntl_getfd(fd).is_ok_and(|flags| flags.contains(rustix::io::FdFlags::CLOEXEC))
}

/// The memory of a stream has this name, whoever makes it: the [`VERSION`] is in it, for a program that finds it after `exec`.
pub const NAME: &str = "sovia-stream-11";
/// What such a name of any version begins with.
const ANY: &str = "sovia-stream";
const _: () = assert!(VERSION == 11, "the name says so");

#[cfg(all(test, not(loom)))]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::stream::{LEN, Size};

    fn is_found(memory: RawFd) -> bool {
        let mut found = false;
        crate::fds::each_unlinked(|fd, target| found |= fd == memory && is_stream(target))
            .expect("/proc");
        found
    }

    #[test]
    fn a_stream_of_another_version_is_not_taken_over() {
        let own = Stream::memory(Size::DEFAULT).expect("memfd");
        let older = ["", "-7", "-80", "-x"]
            .map(|suffix| crate::mem::memfd::create_as(&format!("{ANY}{suffix}"), LEN));
        for memory in older {
            let memory = memory.expect("memfd");
            assert!(is_found(memory.as_raw_fd()));
            let resumed = Stream::resume(Hidden::new(memory).expect("a number"), Side::A);
            let refused = resumed.expect_err("it lies otherwise");
            assert_eq!(refused.kind(), ErrorKind::InvalidData);
        }
        assert!(is_found(own.as_raw_fd()));
        Stream::resume(Hidden::new(own).expect("a number"), Side::A).expect("of this version");
    }

    #[test]
    fn a_tag_is_its_owners_alone() {
        let memory = Stream::memory(Size::DEFAULT).expect("memfd");
        let peers = memory.try_clone().expect("dup");
        let mut stream = Stream::map(memory, Side::B).expect("map");
        let tag_of = |stream: &Stream| stream.with_fd(Tag::of).expect("it is there");
        assert_eq!(tag_of(&stream), None);
        assert!(!stream.inherit(true), "nobody would know it");
        let tag = Tag {
            cookie: 0x1234_5678_9abc,
            side: Side::B,
            opener: true,
        };
        stream.set_tag(tag).expect("/proc");
        assert_eq!(tag_of(&stream), Some(tag));
        assert_eq!(Tag::of(peers.as_fd()), None);
        seek(&peers, SeekFrom::Start(LEN as u64)).expect("a position");
        assert_eq!(tag_of(&stream), Some(tag));
    }
    #[test]
    fn a_stream_goes_on_without_its_descriptor() {
        let memory = Stream::memory(Size::DEFAULT).expect("memfd");
        let peers = Stream::map(memory.try_clone().expect("dup"), Side::B).expect("map");
        let mut stream = Stream::map(memory, Side::A).expect("map");
        let tag = Tag {
            cookie: 7,
            side: Side::A,
            opener: false,
        };
        stream.set_tag(tag).expect("/proc");
        assert!(stream.inherit(true) && !stream.inherit(false));
        let number = stream.with_fd(|fd| fd.as_raw_fd()).expect("it is there");
        assert!(stream.give_up_fd() && !stream.give_up_fd());
        assert!(!crate::hidden::is_hidden(number) && !is_found(number));
        assert!(!stream.inherit(true) && stream.step_aside(number));
        assert!(stream.decide(super::super::READY) && peers.state() == super::super::READY);
    }
}
