//! What of this host and of the caller's limits keeps connections on TCP, whatever the program.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::process::{Resource, getrlimit};
use sockets::reason::Reason;
use sys::stream::Size;

use super::finding::{Finding, Verdict};
use super::image::Image;
use super::libraries::{Folders, Search};
use super::rules::Rings;
use crate::run::library::Library;

/// Everything that is to be said of the surroundings, for connections with such rings.
pub(super) fn look(rings: Rings, found: &mut Vec<Finding>) {
    library(found);
    kernel(found);
    limits(rings, found);
    proc(found);
}

/// Whether there is one of ours to load.
pub(super) fn library(found: &mut Vec<Finding>) {
    let library = match Library::find() {
        Ok(library) => library,
        Err(error) => {
            found.push(Finding::new(Verdict::CannotRun, ABSENT, error.to_string()));
            return;
        }
    };
    let forbids = |vfs: rustix::fs::StatVfs| vfs.f_flag.contains(StatVfsMountFlags::NOEXEC);
    if statvfs(library.path()).is_ok_and(forbids) {
        found.push(
            Finding::new(
                Verdict::Tcp,
                "noexec",
                format!(
                    "{} is on a file system mounted noexec, so nobody can load it",
                    library.path().display()
                ),
            )
            .because(Reason::NobodyCame),
        );
    }
}

/// `SO_NETNS_COOKIE` tells that both ends are in one network namespace.
fn kernel(found: &mut Vec<Finding>) {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy();
    if version(&release).is_some_and(|version| version < KERNEL_MIN) {
        found.push(
            Finding::new(
                Verdict::Tcp,
                "kernel",
                format!("Linux {release} is older than 5.14"),
            )
            .because(Reason::NoProof),
        );
    }
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|byte: char| !byte.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn limits(rings: Rings, found: &mut Vec<Finding>) {
    let of = |resource| getrlimit(resource).current;
    let descriptors = of(Resource::Nofile);
    if descriptors.is_some_and(|descriptors| descriptors < 2 * FEW) {
        found.push(
            Finding::new(
                Verdict::Partly,
                "descriptors",
                "less than 64 descriptors (ulimit -n): a connection needs a few more while its ends meet",
            )
            .because(Reason::Descriptors),
        );
    }
    let memory = |size: Size| size.memory_len() as u64;
    let longest = of(Resource::Fsize).unwrap_or(u64::MAX);
    if longest < memory(rings.most) {
        let (verdict, which) = match longest < memory(rings.least) {
            true => (Verdict::Tcp, rings.least),
            false => (Verdict::Partly, rings.most),
        };
        found.push(
            Finding::new(
                verdict,
                "file-size",
                format!(
                    "files may not be as large as the memory of a connection with buffer-bytes = {}, {} (ulimit -f)",
                    which.bytes(),
                    shown(which)
                ),
            )
            .because(Reason::Memory),
        );
    }
    let room = |size| of(Resource::As).map(|bytes| bytes / sys::stream::PART / memory(size));
    let mapped = room(rings.usual);
    if mapped.is_some_and(|connections| connections < FEW) {
        let (verdict, how_many) = match room(rings.least) {
            Some(0) => (Verdict::Tcp, "a connection"),
            _ => (Verdict::Partly, "many connections"),
        };
        found.push(
            Finding::new(
                verdict,
                "address-space",
                format!(
                    "no room to map {how_many}, {} each in a quarter of it (ulimit -v)",
                    shown(rings.usual)
                ),
            )
            .because(Reason::Memory),
        );
    }
    let open = descriptors.map(|n| n.min(CONNECTIONS_MAX));
    let (most, limit) = match (open, mapped) {
        (None, None) => ("any number of".to_owned(), "-n"),
        (open, Some(mapped)) if open.is_none_or(|open| mapped < open) => {
            (format!("up to {mapped}"), "-v")
        }
        (open, _) => (format!("up to {}", open.unwrap_or(CONNECTIONS_MAX)), "-n"),
    };
    found.push(Finding::note(
        LIMITS,
        format!("{most} connections at a time in shared memory (ulimit {limit})"),
    ));
}

/// Both rings of a connection; the page before them is no news.
fn shown(size: Size) -> String {
    match (2 * size.bytes()) >> 10 {
        kib if kib < 1024 => format!("{kib} KiB"),
        kib => format!("{} MiB", kib >> 10),
    }
}

fn proc(found: &mut Vec<Finding>) {
    if fs::read_link("/proc/self/exe").is_err() {
        found.push(
            Finding::new(Verdict::Tcp, "no-proc", "/proc is not mounted").because(Reason::NoProof),
        );
    }
}

/// Others in front of the C library's socket calls; without a slash they are looked for as libraries of the program.
pub(super) fn others_preloaded(search: &Search, folders: &Folders, found: &mut Vec<Finding>) {
    let list = env::var_os(crate::run::PRELOAD).unwrap_or_default();
    let file = fs::read("/etc/ld.so.preload").unwrap_or_default();
    for (from, list) in [
        ("LD_PRELOAD", list.as_bytes()),
        ("/etc/ld.so.preload", &file),
    ] {
        let names = list
            .split(|byte| matches!(byte, b':' | b' ' | b'\n' | b'\t'))
            .filter(|name| !name.is_empty());
        for path in names.map(|name| PathBuf::from(OsStr::from_bytes(name))) {
            let there = search.find(&path, folders);
            if let Some(calls) = there.and_then(|path| takes(&path)) {
                found.push(Finding::new(
                    Verdict::Partly,
                    "other-preload",
                    format!(
                        "{} of {from} stands in front of {calls} too: what it does with them behind sovia is its own affair, and sovia's stat may miss it",
                        path.display()
                    ),
                ));
            }
        }
    }
}

/// The socket calls that a library takes, if it is not ours and takes any.
fn takes(path: &Path) -> Option<String> {
    let image = Image::read(path).ok()?;
    if image.is_c_library() {
        return None;
    }
    let calls: Vec<_> = SOCKET_CALLS
        .into_iter()
        .filter(|name| image.exports.contains(*name))
        .collect();
    (!calls.is_empty()).then(|| calls.join(", "))
}

/// Without `libsovia.so` no program is run.
pub(super) const ABSENT: &str = "no-library";

/// What is said of connections in shared memory, if there will be any.
pub(super) const LIMITS: &str = "limits";

/// Without one of these nothing reaches a socket.
pub(super) const SOCKET_CALLS: [&str; 6] = [
    "accept",
    "accept4",
    "connect",
    "epoll_wait",
    "recv",
    "socket",
];

const KERNEL_MIN: (u32, u32) = (5, 14);
const FEW: u64 = 32;
const CONNECTIONS_MAX: u64 = sys::ledger::RECORDS as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_as_numbers() {
        assert_eq!(version("6.18.0-rc1+deb"), Some((6, 18)));
        assert_eq!(version("5.9-generic"), Some((5, 9)));
        assert!(version("5.9").is_some_and(|version| version < KERNEL_MIN));
        assert_eq!(version("next"), None);
    }
}
