use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::read::elf::{FileHeader, Rela, SectionHeader, SectionTable, Sym};
use object::{Endianness, elf};

use super::folders::folders;
use super::raw::{RawCalls, Text};

/// What the file of a program or library says about what it will call.
#[derive(Debug, Default)]
pub(super) struct Image {
    pub(super) path: PathBuf,
    /// `DT_NEEDED`.
    pub(super) needed: Vec<PathBuf>,
    /// `DT_SONAME`.
    pub(super) name: Option<PathBuf>,
    /// Folders of `DT_RPATH`, as they stand there; none beside a `DT_RUNPATH`.
    pub(super) rpath: Vec<PathBuf>,
    /// Folders of `DT_RUNPATH`; `None` if it has none.
    pub(super) runpath: Option<Vec<PathBuf>>,
    /// Functions that it wants from others.
    pub(super) imports: BTreeSet<String>,
    /// Functions that it has for others.
    pub(super) exports: BTreeSet<String>,
    /// System calls by instructions of its own.
    pub(super) raw: RawCalls,
    /// Whether it tells the kernel to filter its system calls.
    pub(super) filters: bool,
    /// Whether it sets up io_uring.
    pub(super) uses_uring: bool,
    /// Whether it does so only by calls that the library stands in front of.
    pub(super) is_uring_seen: bool,
}

impl Image {
    /// Reads an ELF file of 64 bits. What cannot be understood in it is left out.
    ///
    /// # Errors
    /// The kernel's; `InvalidData` for what is no such file, or too large to be read whole.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        if fs::metadata(path)?.len() > LEN_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut image = Self::parse(&fs::read(path)?)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        image.path = path.into();
        image.is_uring_seen |= image.is_liburing();
        Ok(image)
    }

    pub(super) fn parse(data: &[u8]) -> object::Result<Self> {
        let header = elf::FileHeader64::<Endianness>::parse(data)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, data)?;
        let mut image = Self::default();
        let dynamic = sections.dynamic_table(endian, data)?;
        for entry in &dynamic {
            let Ok(text) = dynamic.string(entry) else {
                continue;
            };
            match entry.tag {
                elf::DT_NEEDED => image.needed.push(OsStr::from_bytes(text).into()),
                elf::DT_SONAME => image.name = Some(OsStr::from_bytes(text).into()),
                elf::DT_RPATH => image.rpath = folders(text),
                elf::DT_RUNPATH => image.runpath = Some(folders(text)),
                _ => {}
            }
        }
        if image.runpath.is_some() {
            image.rpath.clear();
        }
        let symbols = sections.symbols(endian, data, elf::SHT_DYNSYM)?;
        for symbol in symbols.iter() {
            let Ok(name) = symbols.symbol_name(endian, symbol) else {
                continue;
            };
            let name = String::from_utf8_lossy(name).into_owned();
            if symbol.is_undefined(endian) {
                image.imports.insert(name);
            } else {
                image.exports.insert(name);
            }
        }
        if cfg!(target_arch = "x86_64") {
            let code = sections
                .iter()
                .filter(|section| section.sh_flags(endian).contains(elf::SHF_EXECINSTR));
            let text = Text(
                code.filter_map(|section| {
                    let code = section.data(endian, data).ok()?;
                    Some((section.sh_addr(endian), code))
                })
                .collect(),
            );
            let slots = |name| slots(&sections, endian, data, name).unwrap_or_default();
            image.raw = text.raw_calls();
            let by_number = slots("syscall");
            image.filters = image.imports_any(&SECCOMP)
                || image.raw.sets_filter()
                || text.calls_by_number(&by_number, SYS_SECCOMP)
                || text.calls_with(&slots("prctl"), PR_SET_SECCOMP);
            image.is_uring_seen = !image.raw.sets_up_io_uring();
            image.uses_uring = image.imports_any(&URING)
                || image.raw.sets_up_io_uring()
                || text.calls_by_number(&by_number, SYS_IO_URING_SETUP);
        }
        Ok(image)
    }

    /// Whether it is part of the C library or its loader, whose system calls ours stand in front of.
    pub(super) fn is_c_library(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default().as_bytes();
        C_LIBRARY
            .iter()
            .any(|prefix| name.starts_with(prefix.as_bytes()))
    }

    /// Whether it is liburing's shared library, whose functions ours stands in front of.
    pub(super) fn is_liburing(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default().as_bytes();
        name.starts_with(b"liburing.so")
    }

    pub(super) fn imports_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.imports.contains(*name))
    }
}

/// Where the dynamic linker puts the address of a function of others.
fn slots(
    sections: &SectionTable<'_, elf::FileHeader64<Endianness>>,
    endian: Endianness,
    data: &[u8],
    name: &str,
) -> object::Result<BTreeSet<u64>> {
    let symbols = sections.symbols(endian, data, elf::SHT_DYNSYM)?;
    let is_named = |index| {
        symbols
            .symbol(index)
            .and_then(|symbol| symbols.symbol_name(endian, symbol))
            .is_ok_and(|found| found == name.as_bytes())
    };
    let mut slots = BTreeSet::new();
    for section in sections.iter() {
        let Ok(Some((relocations, _))) = section.rela(endian, data) else {
            continue;
        };
        for relocation in relocations {
            let kind = relocation.r_type(endian, false);
            if matches!(kind, elf::R_X86_64_JUMP_SLOT | elf::R_X86_64_GLOB_DAT)
                && relocation.symbol(endian, false).is_some_and(is_named)
            {
                slots.insert(relocation.r_offset(endian));
            }
        }
    }
    Ok(slots)
}

const C_LIBRARY: [&str; 9] = [
    "libc.so",
    "ld-linux",
    "libpthread.so",
    "librt.so",
    "libdl.so",
    "libm.so",
    "libanl.so",
    "libresolv.so",
    "libsovia.so",
];

const URING: [&str; 4] = [
    "io_uring_queue_init",
    "io_uring_queue_init_mem",
    "io_uring_queue_init_params",
    "io_uring_setup",
];
const SECCOMP: [&str; 2] = ["seccomp_init", "seccomp_load"];

const PR_SET_SECCOMP: u8 = 22;
const SYS_SECCOMP: u16 = 317;
const SYS_IO_URING_SETUP: u16 = 425;
/// Ten times what the largest programs have.
const LEN_MAX: u64 = 2 << 30;
