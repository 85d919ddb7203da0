//! Checks the dynamic section: the tables that the linker follows, against the mapped segments.

use super::segments::Layout;
use object::elf as spec;

/// Entries of the dynamic section: tag and value, in file order.
type Entry = (i64, u64);

/// Tables with an entry for their size.
const SIZED: [(&str, spec::DynamicTag, spec::DynamicTag); 7] = [
    ("the texts", spec::DT_STRTAB, spec::DT_STRSZ),
    ("the relocations", spec::DT_RELA, spec::DT_RELASZ),
    ("the relocations", spec::DT_REL, spec::DT_RELSZ),
    ("the relative relocations", spec::DT_RELR, spec::DT_RELRSZ),
    ("the relocations of calls", spec::DT_JMPREL, spec::DT_PLTRELSZ),
    ("the functions to begin with", spec::DT_INIT_ARRAY, spec::DT_INIT_ARRAYSZ),
    ("the functions to end with", spec::DT_FINI_ARRAY, spec::DT_FINI_ARRAYSZ),
];

/// Functions, and tables that contain their own length; the number is the least size in bytes.
const PLACES: [(&str, spec::DynamicTag, u64); 9] = [
    ("the symbols", spec::DT_SYMTAB, 24),
    ("the hashes of symbols", spec::DT_HASH, 8),
    ("the hashes of symbols", spec::DT_GNU_HASH, 16),
    ("the versions of symbols", spec::DT_VERSYM, 2),
    ("the versions that are needed", spec::DT_VERNEED, 16),
    ("the versions that are defined", spec::DT_VERDEF, 20),
    ("the addresses of calls", spec::DT_PLTGOT, 8),
    ("the function to begin with", spec::DT_INIT, 1),
    ("the function to end with", spec::DT_FINI, 1),
];

/// Entries that are offsets of texts.
const TEXTS: [spec::DynamicTag; 4] =
    [spec::DT_NEEDED, spec::DT_SONAME, spec::DT_RPATH, spec::DT_RUNPATH];

/// Sizes of records that the linker assumes.
const SIZES: [(&str, spec::DynamicTag, u64); 3] = [
    ("a symbol", spec::DT_SYMENT, 24),
    ("a relocation", spec::DT_RELAENT, 24),
    ("a relative relocation", spec::DT_RELRENT, 8),
];

/// Checks the entries of a dynamic section.
///
/// # Errors
/// A description of the damage.
pub fn check(entries: &[Entry], layout: &Layout) -> Result<(), String> {
    let Some(end) = entries.iter().position(|(tag, _)| *tag == spec::DT_NULL.0) else {
        return Err("the dynamic section has no end".to_owned());
    };
    let entries = &entries[..end];
    // The last entry with a tag counts.
    let value = |tag: spec::DynamicTag| {
        entries.iter().rev().find(|(found, _)| *found == tag.0).map(|(_, value)| *value)
    };
    for (what, tag) in [("the texts", spec::DT_STRTAB), ("the symbols", spec::DT_SYMTAB)] {
        if value(tag).is_none() {
            return Err(format!("the dynamic section does not say where {what} are"));
        }
    }
    for (what, place, size) in SIZED {
        let (Some(address), bytes) = (value(place), value(size).unwrap_or(0)) else { continue };
        if bytes > 0 && !layout.covers(address, bytes) {
            return Err(format!(
                "{what} ({bytes} bytes at {address:#x}) are in no part that is mapped"
            ));
        }
    }
    for (what, place, bytes) in PLACES {
        if let Some(address) = value(place).filter(|address| !layout.covers(*address, bytes)) {
            return Err(format!("{what} (at {address:#x}) are in no part that is mapped"));
        }
    }
    for (what, tag, expected) in SIZES {
        if let Some(found) = value(tag).filter(|found| *found != expected) {
            return Err(format!("{what} is of {found} bytes, expected {expected}"));
        }
    }
    let texts = value(spec::DT_STRSZ).unwrap_or(0);
    let is_text = |tag: i64| TEXTS.iter().any(|text| text.0 == tag);
    match entries.iter().find(|(tag, at)| is_text(*tag) && *at >= texts) {
        Some((_, at)) => Err(format!("a name is text {at} of {texts} bytes of texts")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::segments::Segment, *};

    fn layout() -> Layout {
        let load = Segment {
            at: 0,
            kind: spec::PT_LOAD,
            flags: 6,
            offset: 0,
            address: 0,
            file_bytes: 0x1000,
            bytes: 0x1000,
            align: 0x1000,
        };
        Layout::new(&[load], 0x1000).unwrap()
    }

    const GOOD: [(spec::DynamicTag, u64); 8] = [
        (spec::DT_NEEDED, 1),
        (spec::DT_STRTAB, 0x100),
        (spec::DT_STRSZ, 0x80),
        (spec::DT_SYMTAB, 0x200),
        (spec::DT_SYMENT, 24),
        (spec::DT_INIT_ARRAY, 0x300),
        (spec::DT_INIT_ARRAYSZ, 16),
        (spec::DT_NULL, 0),
    ];

    fn with(at: usize, entry: (spec::DynamicTag, u64)) -> Result<(), String> {
        let mut entries = GOOD;
        entries[at] = entry;
        check(&entries.map(|(tag, value)| (tag.0, value)), &layout())
    }

    #[test]
    fn tables_must_be_mapped_and_names_be_texts() {
        with(0, GOOD[0]).unwrap();
        let said = |at, entry| with(at, entry).unwrap_err();
        assert_eq!(said(0, (spec::DT_NEEDED, 0x80)), "a name is text 128 of 128 bytes of texts");
        assert!(said(2, (spec::DT_STRSZ, u64::MAX)).contains("the texts (18446744073709551615"));
        assert!(said(3, (spec::DT_SYMTAB, 0xff0)).starts_with("the symbols (at 0xff0) are in no"));
        assert!(said(5, (spec::DT_INIT_ARRAY, 0xffa)).contains("the functions to begin with"));
        assert!(said(3, (spec::DT_FINI, 0x100)).contains("where the symbols are"));
        assert!(said(4, (spec::DT_SYMENT, 25)).contains("is of 25 bytes, expected 24"));
        assert!(said(7, (spec::DT_DEBUG, 0)).contains("has no end"));
    }
}
