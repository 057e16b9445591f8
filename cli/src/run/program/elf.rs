//! What an ELF file says of how it is run.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, FileKind, ReadCache, ReadRef, elf};

use super::{Obstacle, open};

/// What keeps it from being accelerated.
pub(super) fn inside(file: File) -> io::Result<Option<Obstacle>> {
    let cache = ReadCache::new(file);
    Ok(match FileKind::parse(&cache) {
        Ok(FileKind::Elf64) => elf64(&cache).unwrap_or(Some(Obstacle::Damaged)),
        Ok(FileKind::Elf32) => Some(elf32(&cache).unwrap_or(Obstacle::Damaged)),
        _ => starts_as_elf(&cache).then_some(Obstacle::Damaged),
    })
}

fn starts_as_elf(data: &ReadCache<File>) -> bool {
    let start = ReadRef::read_bytes_at(data, 0, elf::ELFMAG.len() as u64);
    start.is_ok_and(|start| start == elf::ELFMAG)
}

fn elf32(data: &ReadCache<File>) -> object::Result<Obstacle> {
    let header = elf::FileHeader32::<Endianness>::parse(data)?;
    let machine = header.e_machine(header.endian()?);
    Ok(if machine == MACHINE_32 {
        Obstacle::Narrow
    } else {
        Obstacle::Foreign
    })
}

fn elf64(data: &ReadCache<File>) -> object::Result<Option<Obstacle>> {
    let header = elf::FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    if header.e_machine(endian) != MACHINE {
        return Ok(Some(Obstacle::Foreign));
    }
    let linker = linker::<elf::FileHeader64<Endianness>>(data)?;
    let Some(linker) = linker else {
        return Ok(Some(Obstacle::Static));
    };
    if !linker
        .file_name()
        .is_some_and(|name| name.as_bytes().starts_with(b"ld-linux"))
    {
        return Ok(Some(Obstacle::OtherLibrary(linker)));
    }
    // No kernel looks at the sections.
    let Ok(sections) = header.sections(endian, data) else {
        return Ok(None);
    };
    let go = sections.section_by_name(endian, b".go.buildinfo").is_some()
        || sections
            .section_by_name(endian, b".note.go.buildid")
            .is_some();
    Ok(go.then_some(Obstacle::Go))
}

/// The dynamic linker that an ELF file asks for.
pub(super) fn linker_of(path: &Path) -> Option<PathBuf> {
    let cache = ReadCache::new(open(path).ok()?);
    match FileKind::parse(&cache) {
        Ok(FileKind::Elf64) => linker::<elf::FileHeader64<Endianness>>(&cache).ok()?,
        Ok(FileKind::Elf32) => linker::<elf::FileHeader32<Endianness>>(&cache).ok()?,
        _ => None,
    }
}

fn linker<H: FileHeader<Endian = Endianness>>(
    data: &ReadCache<File>,
) -> object::Result<Option<PathBuf>> {
    let header = H::parse(data)?;
    let endian = header.endian()?;
    for segment in header.program_headers(endian, data)? {
        if let Some(path) = segment.interpreter(endian, data)? {
            return Ok(Some(PathBuf::from(OsStr::from_bytes(path))));
        }
    }
    Ok(None)
}

/// Of this program, and so of the library that was built with it.
#[cfg(target_arch = "x86_64")]
const MACHINE: elf::Machine = elf::EM_X86_64;
#[cfg(target_arch = "x86_64")]
const MACHINE_32: elf::Machine = elf::EM_386;
#[cfg(target_arch = "aarch64")]
const MACHINE_32: elf::Machine = elf::EM_ARM;
#[cfg(target_arch = "aarch64")]
const MACHINE: elf::Machine = elf::EM_AARCH64;
