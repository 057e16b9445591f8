//! What a process says of its connections, in memory that others may read.
//!
//! A memfd of this name among a process's descriptors is its ledger. The process counts straight into it, with plain stores, so it costs the same as counting
//! anywhere else; whoever may look at the process's descriptors (its user, and root) maps it to read, and waits for nobody.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::fs::CWD;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::hidden::Hidden;
use crate::lock::Lock;
use crate::mem::{Mapping, memfd};
use crate::quiet::once;
use crate::sync::Ordering;
use crate::sync::mapped::{AtomicU32, AtomicU64};

pub use spare::Spare;
pub use words::{HISTORY, Record, Totals};

mod spare;
mod words;

/// The head of the ledger.
#[derive(Debug)]
#[repr(C, align(4096))]
struct Head {
    magic: AtomicU64,
    /// Records from 0 to here may have been used.
    top: AtomicU32,
    /// The same of those from [`RECORDS`] on.
    spare_top: AtomicU32,
    closed: Totals,
}

/// The sums of this process, if it has a ledger.
pub fn totals() -> Option<&'static Totals> {
    Some(&LEDGER.get()?.as_ref()?.head().closed)
}

/// The record `index` of this process; one that nobody reads if there is no memory or descriptor for a ledger.
pub fn record(index: usize) -> &'static Record {
    let own = once(&LEDGER, || Ledger::create().ok());
    match own.as_ref().and_then(|ledger| ledger.record(index)) {
        Some(record) => record,
        None => Box::leak(Box::default()),
    }
}

/// In the child of a fork: the ledger is the parent's. Puts a copy in its place.
///
/// # Errors
/// The kernel's; the child then counts nowhere that can be seen.
pub fn part_from_parent() -> io::Result<()> {
    match LEDGER.get() {
        Some(Some(ledger)) => ledger.part(),
        _ => Ok(()),
    }
}

/// Another process's ledger, as it is found.
#[derive(Debug)]
pub struct Reader {
    start: *const u8,
    pid: u32,
    /// Where it was found, and which file it is.
    path: PathBuf,
    id: memfd::Id,
}

impl Reader {
    /// The ledger of the process `pid`; `None` if it has none.
    ///
    /// # Errors
    /// `PermissionDenied` for a process that one may not look at, `NotFound` if there is none.
    pub fn open(pid: u32) -> io::Result<Option<Self>> {
        for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
            let path = entry?.path();
            let Ok(target) = fs::read_link(&path) else {
                continue;
            };
            // Any file may have that name, where its process has made itself another root.
            if target.to_string_lossy().starts_with(LINK)
                && let Some((fd, id)) = memfd::open(&path)?
            {
                return Self::map(pid, &fd, path, id).map(Some);
            }
        }
        Ok(None)
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the process still has this ledger: after `exec` it has another, or none.
    pub fn is_current(&self) -> bool {
        memfd::Id::of(CWD, &self.path).is_ok_and(|found| found == self.id)
    }

    /// The sums over connections that are no more.
    pub fn totals(&self) -> &Totals {
        &self.head().closed
    }

    fn head(&self) -> &Head {
        // SAFETY: the mapping is LEN long, begins with it, and consists of atomics.
        unsafe { &*self.start.cast() }
    }

    /// Calls `visit` with each record that is in use.
    pub fn for_each(&self, mut visit: impl FnMut(usize, &Record)) {
        let head = self.head();
        let top = (head.top.load(Ordering::Acquire) as usize).min(RECORDS);
        let spare = (head.spare_top.load(Ordering::Acquire) as usize).min(SPARE);
        for index in (0..top).chain(RECORDS..RECORDS + spare) {
            // SAFETY: `index` is below ALL, so the record lies in the mapping.
            let record = unsafe {
                &*self
                    .start
                    .add(HEAD + index * size_of::<Record>())
                    .cast::<Record>()
            };
            if record.state() != 0 {
                visit(index, record);
            }
        }
    }

    fn map(pid: u32, fd: &OwnedFd, path: PathBuf, id: memfd::Id) -> io::Result<Self> {
        // A stranger's file may be shorter, and reading past its end would kill us.
        if memfd::sealed_size(fd.as_fd())? < LEN as u64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // SAFETY: a new mapping, for reading.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                LEN,
                ProtFlags::READ,
                MapFlags::SHARED,
                fd,
                0,
            )
        }?;
        let reader = Self {
            start: start.cast(),
            pid,
            path,
            id,
        };
        let magic = reader.head().magic.load(Ordering::Acquire);
        if magic == MAGIC {
            Ok(reader)
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // SAFETY: the value's own mapping, of which it lends out nothing that outlives it.
        let _ = unsafe { munmap(self.start.cast_mut().cast(), LEN) };
    }
}

/// This process's.
struct Ledger {
    mapping: Mapping,
    fd: Lock<Option<Hidden>>,
}

// SAFETY: the mapping is never unmapped and consists of atomics.
unsafe impl Sync for Ledger {}
// SAFETY: as above.
unsafe impl Send for Ledger {}

impl Ledger {
    fn create() -> io::Result<Self> {
        let fd = Hidden::new(memfd::create_as(NAME, LEN)?)?;
        let mapping = Mapping::shared(fd.as_fd(), LEN)?;
        let ledger = Self {
            mapping,
            fd: Lock::new(Some(fd)),
        };
        ledger.head().magic.store(MAGIC, Ordering::Release);
        Ok(ledger)
    }

    fn record(&'static self, index: usize) -> Option<&'static Record> {
        let (top, first) = match index {
            0..RECORDS => (&self.head().top, 0),
            RECORDS..ALL => (&self.head().spare_top, RECORDS),
            _ => return None,
        };
        let above = u32::try_from(index - first + 1).unwrap_or(u32::MAX);
        top.fetch_max(above, Ordering::AcqRel);
        // SAFETY: `index` is below ALL; the mapping is as long as the process, and consists of atomics.
        Some(unsafe {
            &*self
                .mapping
                .start()
                .add(HEAD + index * size_of::<Record>())
                .cast()
        })
    }

    fn part(&self) -> io::Result<()> {
        let fresh = memfd::create_as(NAME, LEN)?;
        let used = HEAD + self.head().top.load(Ordering::Acquire) as usize * size_of::<Record>();
        let copied = Mapping::shared(fresh.as_fd(), LEN)?;
        // SAFETY: both mappings are LEN long, and `used` is not more; they do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(self.mapping.start(), copied.start(), used.min(LEN))
        };
        self.mapping.replace(fresh.as_fd())?;
        // What the parent's connections carried is told by the parent.
        let Totals {
            ending,
            ended,
            connections,
            bytes,
            calls,
            sleeps,
            bells,
        } = &self.head().closed;
        for count in [ending, ended, connections, sleeps, bells]
            .into_iter()
            .chain(bytes)
            .chain(calls)
        {
            count.store(0, Ordering::Relaxed);
        }
        // Nor can it go on with the parent's VIs, whose records were left out.
        self.head().spare_top.store(0, Ordering::Relaxed);
        let mut fd = self.fd.lock();
        // The old number goes first, so that the child has no more descriptors than its parent.
        *fd = None;
        *fd = Some(Hidden::new(fresh)?);
        Ok(())
    }

    fn head(&self) -> &Head {
        // SAFETY: the mapping begins with it.
        unsafe { &*self.mapping.start().cast() }
    }
}

/// Moves the ledger's descriptor away from `number`, if it is there. Without another number nobody finds the ledger any more.
pub fn step_aside(number: RawFd) {
    // In a signal handler its own thread may have it.
    if let Some(Some(ledger)) = LEDGER.get()
        && let Some(mut fd) = ledger.fd.try_lock()
        && let Some(own) = fd.as_mut().filter(|own| own.as_raw_fd() == number)
        && own.step_aside().is_err()
    {
        *fd = None;
    }
}

/// The number of the descriptor that holds this process's ledger, if it has one.
pub fn own_fd() -> Option<i32> {
    let ledger = LEDGER.get()?.as_ref()?;
    ledger.fd.lock().as_ref().map(AsRawFd::as_raw_fd)
}

const NAME: &str = "sovia-process";
const LINK: &str = "/memfd:sovia-process";
/// "sovia" and the version of the layout.
const MAGIC: u64 = 0x736f_7669_6100_0004;
const HEAD: usize = size_of::<Head>();
/// Records by index; untouched pages cost nothing.
pub const RECORDS: usize = 1 << 16;
/// Records beyond those, for whoever asks for one.
const SPARE: usize = 1 << 14;
const ALL: usize = RECORDS + SPARE;
const LEN: usize = HEAD + ALL * size_of::<Record>();

static LEDGER: OnceLock<Option<Ledger>> = OnceLock::new();

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn another_reads_what_this_process_counts() {
        let mine = record(5);
        mine.state.store(3, Ordering::Release);
        mine.bytes[0].store(77, Ordering::Relaxed);
        let reader = Reader::open(std::process::id())
            .expect("own process")
            .expect("a ledger");
        let mut seen = Vec::new();
        reader.for_each(|index, record| {
            if index < RECORDS {
                seen.push((index, record.bytes[0].load(Ordering::Relaxed)));
            }
        });
        assert_eq!(seen, [(5, 77)]);
        mine.state.store(0, Ordering::Release);
    }

    #[test]
    fn a_spare_record_is_one_persons() {
        let first = Spare::take().expect("there are some");
        let second = Spare::take().expect("there are more");
        second.bytes[0].store(78, Ordering::Relaxed);
        second.state.store(8, Ordering::Release);
        let place: *const Record = &raw const *second;
        assert_ne!(place, &raw const *first);
        let reader = Reader::open(std::process::id())
            .expect("own process")
            .expect("a ledger");
        let mut seen = Vec::new();
        reader.for_each(|index, record| {
            if index >= RECORDS {
                seen.push(record.bytes[0].load(Ordering::Relaxed));
            }
        });
        assert_eq!(seen, [78]);
        second.state.store(0, Ordering::Release);
        drop(second);
        assert_eq!(place, &raw const *Spare::take().expect("given back"));
    }

    #[test]
    fn a_process_without_one_has_none() {
        assert!(Reader::open(1).map_or(true, |ledger| ledger.is_none()));
    }
}
