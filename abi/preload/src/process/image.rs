//! What a program will be: with this library in it, or not.

use std::ffi::{CStr, c_char};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, fgetxattr, fstat, openat};
use rustix::io::{Errno, pread};
use rustix::process::{getegid, geteuid, getgid, getuid};
use sys::stream::fits_in_the_next;

/// What becomes of this library in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Image {
    /// It will be in front of the program's C library: a dynamic ELF of this machine, without privileges of its own, or a script for one; and the library
    /// is asked for, and there.
    Followed,
    /// It will not be there.
    Stranger,
    /// It is asked for, and the program's linker is one of another C library, which ends a program for which it cannot load what is asked for.
    Refuses,
}

/// What the program in the file `path` will be, run with `environment`.
///
/// # Safety
/// `environment` is a null-terminated array of strings, or null.
pub(crate) unsafe fn of_path(path: &CStr, environment: *const *const c_char) -> Image {
    // SAFETY: by the contract.
    if !unsafe { is_asked_for(environment) } {
        return Image::Stranger;
    }
    file(CWD, path).map_or(Image::Stranger, |file| of_file(file.as_fd(), 0))
}

/// As [`of_path`], for an open file.
///
/// # Safety
/// As there.
pub(crate) unsafe fn of_descriptor(
    at: BorrowedFd<'_>,
    path: &CStr,
    environment: *const *const c_char,
) -> Image {
    // SAFETY: by the contract.
    if !unsafe { is_asked_for(environment) } {
        return Image::Stranger;
    }
    if path.is_empty() {
        return of_file(at, 0);
    }
    file(at, path).map_or(Image::Stranger, |file| of_file(file.as_fd(), 0))
}

/// Calls `run` with the places where `execvp` looks for `name`, until it says true.
pub(crate) fn search(name: &CStr, mut run: impl FnMut(&CStr) -> bool) -> bool {
    let bytes = name.to_bytes();
    if bytes.contains(&b'/') {
        return run(name);
    }
    // SAFETY: the program's environment; its own call reads the same.
    let path = unsafe { libc::getenv(c"PATH".as_ptr()) };
    let path = if path.is_null() {
        c"/bin:/usr/bin"
    } else {
        // SAFETY: a string of the environment.
        unsafe { CStr::from_ptr(path) }
    };
    path.to_bytes()
        .split(|byte| *byte == b':')
        .any(|directory| {
            // Most are short, and the stack may be.
            in_directory::<SHORT>(directory, bytes, &mut run)
                .or_else(|| in_directory::<{ libc::PATH_MAX as usize }>(directory, bytes, &mut run))
                .unwrap_or(false)
        })
}

/// Calls `run` with the place of `name` in `directory`; `None` if there is no room for that.
#[inline(never)]
fn in_directory<const ROOM: usize>(
    directory: &[u8],
    name: &[u8],
    run: &mut impl FnMut(&CStr) -> bool,
) -> Option<bool> {
    let mut buffer = [0; ROOM];
    let slash: &[u8] = if directory.is_empty() { b"" } else { b"/" };
    let parts = [directory, slash, name, b"\0"];
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let room = buffer.get_mut(..len)?;
    room.iter_mut()
        .zip(parts.into_iter().flatten())
        .for_each(|(place, byte)| *place = *byte);
    let path = CStr::from_bytes_with_nul(room).ok();
    Some(path.is_some_and(run))
}

/// Whether `path` can be run, as far as its mode tells.
pub(crate) fn is_there(path: &CStr) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
        && file(CWD, path)
            .and_then(|file| fstat(&file))
            .is_ok_and(|found| found.st_mode & libc::S_IFMT == libc::S_IFREG)
}

unsafe fn is_asked_for(environment: *const *const c_char) -> bool {
    if environment.is_null() {
        return false;
    }
    (0..)
        // SAFETY: by the callers' contract the array goes on to a null pointer.
        .map(|n| unsafe { *environment.add(n) })
        .take_while(|variable| !variable.is_null())
        // SAFETY: as above, of strings.
        .filter_map(|variable| unsafe { CStr::from_ptr(variable) }.to_bytes().strip_prefix(b"LD_PRELOAD="))
        .any(|list| list.split(|byte| matches!(byte, b':' | b' ')).any(is_this_library))
}

/// Whether an entry of `LD_PRELOAD` names this library, and it is there.
pub(super) fn is_this_library(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    name == b"libsovia.so"
        && (name.len() == path.len()
            || rustix::fs::access(path, rustix::fs::Access::READ_OK).is_ok())
}

fn file(at: impl AsFd, path: &CStr) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    openat(at, path, flags, Mode::empty()).map(|file| File(ManuallyDrop::new(file)))
}

/// Closed past what stands in front of `close` for the program: its number has never been one of the program's.
struct File(ManuallyDrop<OwnedFd>);

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: its owner, which is not looked at again.
        unsafe { rustix::io::close(self.0.as_raw_fd()) };
    }
}

fn of_file(file: BorrowedFd<'_>, depth: u32) -> Image {
    if depth > 4 || is_privileged(file) {
        return Image::Stranger;
    }
    let mut head = [0u8; 1024];
    let len = pread(file, &mut head, 0).unwrap_or(0);
    let head = head.get(..len).unwrap_or_default();
    let Some(line) = head.strip_prefix(b"#!") else {
        return of_elf(file, head);
    };
    // The path is followed by zeros.
    interpreter(line)
        .and_then(|path| {
            let path = CStr::from_bytes_until_nul(&path).ok()?;
            self::file(CWD, path).ok()
        })
        .map_or(Image::Stranger, |file| of_file(file.as_fd(), depth + 1))
}

/// The loader ignores `LD_PRELOAD` for a program that gets privileges by being run.
fn is_privileged(file: BorrowedFd<'_>) -> bool {
    let Ok(found) = fstat(file) else {
        return true;
    };
    let by_mode = found.st_mode & (libc::S_ISUID | libc::S_ISGID) != 0;
    let mut capability = [MaybeUninit::uninit(); 64];
    let by_attribute = !matches!(
        fgetxattr(file, c"security.capability", &mut capability),
        Err(Errno::NODATA | Errno::OPNOTSUPP)
    );
    by_mode || by_attribute || getuid() != geteuid() || getgid() != getegid()
}

/// The path in the first line of a script.
fn interpreter(line: &[u8]) -> Option<[u8; 256]> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let path = line
        .split(|byte| matches!(byte, b' ' | b'\t'))
        .find(|word| !word.is_empty())?;
    let mut copy = [0; 256];
    if path.len() >= copy.len() {
        return None;
    }
    copy.iter_mut()
        .zip(path)
        .for_each(|(place, byte)| *place = *byte);
    Some(copy)
}

/// An ELF asks for the linker that it is for.
fn of_elf(file: BorrowedFd<'_>, head: &[u8]) -> Image {
    let number = |at: usize, len: usize| -> Option<u64> {
        let bytes = head.get(at..at + len)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |value, byte| value << 8 | u64::from(*byte)),
        )
    };
    // ELF, 64 bits, least significant byte first.
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return Image::Stranger;
    }
    let (Some(table), Some(size), Some(count)) = (number(32, 8), number(54, 2), number(56, 2))
    else {
        return Image::Stranger;
    };
    let linker = (0..count.min(64)).find_map(|n| {
        let entry = entry(file, head, table.saturating_add(n * size))?;
        let word = |at: usize, len: usize| {
            entry.get(at..at + len).map_or(0, |bytes| {
                bytes
                    .iter()
                    .rev()
                    .fold(0u64, |value, byte| value << 8 | u64::from(*byte))
            })
        };
        if word(0, 4) != PT_INTERP {
            return None;
        }
        let mut path = [0; 256];
        pread(file, &mut path, word(8, 8)).ok().map(|_| path)
    });
    let path = (linker.as_ref()).and_then(|path| CStr::from_bytes_until_nul(path).ok());
    let name = path.and_then(|path| path.to_bytes().rsplit(|byte| *byte == b'/').next());
    match name {
        None => Image::Stranger,
        // glibc's: of another machine it says so, and goes on.
        Some(name) if GLIBC.iter().any(|start| name.starts_with(start)) => {
            if number(18, 2) == Some(MACHINE) && fits_in_the_next() {
                Image::Followed
            } else {
                Image::Stranger
            }
        }
        Some(_) => Image::Refuses,
    }
}

/// One of the program's headers; as a rule they are in the first bytes of the file.
fn entry(file: BorrowedFd<'_>, head: &[u8], at: u64) -> Option<[u8; 40]> {
    let start = usize::try_from(at).ok()?;
    if let Some(entry) = head.get(start..).and_then(|rest| rest.first_chunk()) {
        return Some(*entry);
    }
    let mut entry = [0; 40];
    (pread(file, &mut entry, at) == Ok(entry.len())).then_some(entry)
}

/// Of a path, in bytes.
const SHORT: usize = 256;

const GLIBC: [&[u8]; 3] = [b"ld-linux", b"ld64.so", b"ld.so"];

const PT_INTERP: u64 = 3;
#[cfg(target_arch = "x86_64")]
const MACHINE: u64 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u64 = 183;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE: u64 = u64::MAX;
