//! Checks of an ELF file for what the dynamic linker does not check, before the linker reads it.
//!
//! The linker reads the program headers and the dynamic section and follows them: if they are
//! damaged it overwrites other libraries' memory or crashes. Here they are compared with the file's
//! length, with each other, and with the section headers, which a linker writes from the same
//! layout. Contents of tables (relocations, hashes, symbols' values) are not checked: a library is
//! first opened in another process ([`super::probe`]).
//!
//! # Invariants
//! - Sizes are added with overflow checks; an overflow means that the file is damaged.
//! - A file that a linker wrote passes: the rules require only what the format requires of loadable
//!   files.

mod dynamic;
mod segments;
mod unique;

pub use unique::{make_own, unique_symbols};

use object::{
    Endianness, ReadRef, elf as spec,
    read::elf::{Dyn, ElfFile64, ProgramHeader, SectionHeader},
};
use segments::{Layout, Section, Segment};

/// A file of this system.
pub type Elf<'data, R> = ElfFile64<'data, Endianness, R>;

/// Most program headers of a library; linkers write about ten.
const MOST_SEGMENTS: usize = 128;

/// Checks that the dynamic linker can follow the file safely.
///
/// # Errors
/// A description of the damage.
pub fn check<'data, R: ReadRef<'data>>(file: &Elf<'data, R>) -> Result<(), String> {
    let bytes = file.data().len().map_err(|()| "its length cannot be read".to_owned())?;
    let segments = segments_of(file)?;
    let layout = Layout::new(&segments, bytes)?;
    layout.check_sections(&sections_of(file)?)?;
    let Some(dynamic) = segments.iter().find(|segment| segment.kind == spec::PT_DYNAMIC) else {
        return Err("no program header of a dynamic section".to_owned());
    };
    let header = &file.elf_program_headers()[dynamic.at];
    let entries = header.dynamic(file.endian(), file.data()).map_err(|error| error.to_string())?;
    let entries: Vec<(i64, u64)> = entries
        .unwrap_or_default()
        .iter()
        .map(|entry| (entry.tag(file.endian()).0, entry.val(file.endian())))
        .collect();
    dynamic::check(&entries, &layout)
}

fn segments_of<'data, R: ReadRef<'data>>(file: &Elf<'data, R>) -> Result<Vec<Segment>, String> {
    let headers = file.elf_program_headers();
    if headers.is_empty() || headers.len() > MOST_SEGMENTS {
        let found = headers.len();
        return Err(format!("{found} program headers, expected 1 to {MOST_SEGMENTS}"));
    }
    let endian = file.endian();
    let segment = |(at, header): (usize, &spec::ProgramHeader64<Endianness>)| Segment {
        at,
        kind: header.p_type(endian),
        flags: header.p_flags(endian).0,
        offset: header.p_offset(endian),
        address: header.p_vaddr(endian),
        file_bytes: header.p_filesz(endian),
        bytes: header.p_memsz(endian),
        align: header.p_align(endian),
    };
    Ok(headers.iter().enumerate().map(segment).collect())
}

/// The sections that exist while the library runs.
fn sections_of<'data, R: ReadRef<'data>>(file: &Elf<'data, R>) -> Result<Vec<Section>, String> {
    let endian = file.endian();
    let table = file.elf_section_table();
    let mut sections = Vec::new();
    for header in table.iter() {
        let flags = header.sh_flags(endian).0;
        if flags & spec::SHF_ALLOC.0 == 0 || header.sh_size(endian) == 0 {
            continue;
        }
        let name = table.section_name(endian, header).map_err(|error| error.to_string())?;
        sections.push(Section {
            name: String::from_utf8_lossy(name).chars().take(60).collect(),
            address: header.sh_addr(endian),
            offset: header.sh_offset(endian),
            bytes: header.sh_size(endian),
            in_file: header.sh_type(endian) != spec::SHT_NOBITS,
            writable: flags & spec::SHF_WRITE.0 != 0,
            executable: flags & spec::SHF_EXECINSTR.0 != 0,
            per_thread: flags & spec::SHF_TLS.0 != 0,
        });
    }
    Ok(sections)
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;
    use object::read::ReadCache;
    use std::{collections::BTreeSet, fs::File, path::PathBuf};

    fn checked(path: &PathBuf) -> Result<(), String> {
        let cache = ReadCache::new(File::open(path).map_err(|error| error.to_string())?);
        check(&Elf::parse(&cache).map_err(|error| error.to_string())?)
    }

    /// The system's libraries with which this process runs, from several linkers, and the program.
    /// Their code is mapped executable; a backtrace also maps files of debug information, which
    /// have their own headers.
    #[test]
    fn what_is_mapped_here_passes() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let files: BTreeSet<PathBuf> = maps
            .lines()
            .filter(|line| {
                line.split_ascii_whitespace().nth(1).is_some_and(|access| access.contains('x'))
            })
            .filter_map(|line| Some(line.split_once('/')?.1))
            .map(|path| format!("/{path}").into())
            .collect();
        let files: Vec<&PathBuf> = files.iter().filter(|path| path.is_file()).collect();
        assert!(files.len() > 1, "{files:?}");
        for path in files {
            checked(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
}
