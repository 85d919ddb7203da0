//! Symbols of which a process has one, whatever libraries define them (`STB_GNU_UNIQUE`).
//!
//! GCC gives this binding to variables of templates and inline functions in C++. The linker binds all libraries to
//! the definition that came first, whether they were opened apart or not: of two plugins with a class of the same
//! name, or of a plugin and the build that replaces it, the second would run with the variables, and through tables
//! in them the code, of the first. A plugin has variables of its own, as `-fvisibility=hidden` says at build time;
//! where it was built without, it is opened from a copy in which these symbols are ordinary ones.

use super::Elf;
use object::{
    ReadRef, elf as spec,
    read::{
        ReadCache,
        elf::{FileHeader, SectionHeader, Sym},
    },
};
use std::{
    fs::File,
    io::{self, BufReader, Seek, SeekFrom, Write},
};

/// Bytes of a symbol's record, and the place of binding and type in it.
const RECORD: u64 = 24;
const INFO: u64 = 4;

/// The names of the symbols that a library defines and of which a process has one.
pub fn unique_symbols<'data, R: ReadRef<'data>>(file: &Elf<'data, R>) -> Vec<String> {
    let table = file.elf_dynamic_symbol_table();
    let unique = table.iter().filter(|symbol| is_unique(symbol, file.endian()));
    let names = unique.filter_map(|symbol| table.symbol_name(file.endian(), symbol).ok());
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

fn is_unique(symbol: &spec::Sym64<object::Endianness>, endian: object::Endianness) -> bool {
    symbol.st_bind() == spec::STB_GNU_UNIQUE && !symbol.is_undefined(endian)
}

/// Makes these symbols of a copy of a library ordinary ones; how many there were.
///
/// # Errors
/// It cannot be read or written, or is no library.
pub fn make_own(mut copy: &File) -> io::Result<usize> {
    let places = places(copy).map_err(io::Error::other)?;
    for (place, info) in &places {
        copy.seek(SeekFrom::Start(*place))?;
        copy.write_all(&[*info])?;
    }
    Ok(places.len())
}

/// The bytes to change, and what they become.
fn places(mut copy: &File) -> Result<Vec<(u64, u8)>, object::read::Error> {
    // A position that cannot be set shows when the file is read.
    let _ = copy.seek(SeekFrom::Start(0));
    let cache = ReadCache::new(BufReader::new(copy));
    let header = spec::FileHeader64::<object::Endianness>::parse(&cache)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, &cache)?;
    let symbols = sections.symbols(endian, &cache, spec::SHT_DYNSYM)?;
    let section = sections.section(symbols.section())?;
    let begin = section.sh_offset(endian);
    let unique = symbols.enumerate().filter(|(_, symbol)| is_unique(symbol, endian));
    let place = |(at, symbol): (object::SymbolIndex, &spec::Sym64<object::Endianness>)| {
        let info = spec::STB_GLOBAL.0 << 4 | symbol.st_type().0;
        (begin + at.0 as u64 * RECORD + INFO, info)
    };
    Ok(unique.map(place).collect())
}
