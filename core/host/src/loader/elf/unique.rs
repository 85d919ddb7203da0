//! Symbols that are unique in a process, whichever libraries define them (`STB_GNU_UNIQUE`).
//!
//! GCC gives this binding to variables of templates and inline functions in C++. The linker binds
//! all libraries to the first definition, even if they were opened separately: of two plugins with
//! a class of the same name, or of a plugin and the build that replaces it, the second would run
//! with the variables of the first, and through tables in them with its code. A plugin must have
//! its own variables, as `-fvisibility=hidden` ensures at build time; if it was built without that,
//! it is opened from a copy in which these symbols are global ones.

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

/// Bytes of a symbol's record, and the offset of binding and type in it.
const RECORD: u64 = 24;
const INFO: u64 = 4;

/// The names of a library's symbols that are unique in a process.
pub fn unique_symbols<'data, R: ReadRef<'data>>(file: &Elf<'data, R>) -> Vec<String> {
    let table = file.elf_dynamic_symbol_table();
    let unique = table.iter().filter(|symbol| is_unique(symbol, file.endian()));
    let names = unique.filter_map(|symbol| table.symbol_name(file.endian(), symbol).ok());
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

fn is_unique(symbol: &spec::Sym64<object::Endianness>, endian: object::Endianness) -> bool {
    symbol.st_bind() == spec::STB_GNU_UNIQUE && !symbol.is_undefined(endian)
}

/// Makes the unique symbols ordinary ones in a copy of a library; returns their number.
///
/// # Errors
/// The copy cannot be read or written, or is not a library.
pub fn make_own(mut copy: &File) -> io::Result<usize> {
    let places = places(copy).map_err(io::Error::other)?;
    for (place, info) in &places {
        copy.seek(SeekFrom::Start(*place))?;
        copy.write_all(&[*info])?;
    }
    Ok(places.len())
}

/// The offsets of bytes to change, with their new values.
fn places(mut copy: &File) -> Result<Vec<(u64, u8)>, object::read::Error> {
    // If the position cannot be set, reading the file fails.
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
