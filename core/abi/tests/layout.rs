//! The committed table of sizes and offsets, and what every table in `src/` has to have.

use crate::support::source::{Item, Kind, Struct, modules};
use crate::support::{header, path, update};
use tenon_abi::{ABI_MAJOR, ABI_MINOR, layout};

/// Everything that `docs/layout.txt` holds: sizes and offsets, and a hash of the C declarations, since
/// a changed type or parameter need not move a field.
fn current() -> String {
    format!("{}\ndeclarations 0x{:016x}\n", layout::table(), declarations_hash(header::header()))
}

/// FNV-1a (64 bit) over the words of the header's declarations, comments left out.
fn declarations_hash(header: &str) -> u64 {
    let declarations = header.split(header::MARK).next().unwrap_or_default();
    let mut code = String::new();
    for (at, part) in declarations.split("/*").enumerate() {
        let part = if at == 0 { part } else { part.split_once("*/").map_or("", |(_, code)| code) };
        code.push_str(part);
        code.push(' ');
    }
    let words = code.split_whitespace().flat_map(|word| word.bytes().chain([b' ']));
    words.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// What to do about a difference.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Current,
    Rewrite,
    Refuse(&'static str),
}

fn judge(committed: &str, current: &str, update: &str) -> Verdict {
    let version = |text: &str| text.lines().next().map(str::to_owned);
    if committed == current {
        Verdict::Current
    } else if update == "force" {
        Verdict::Rewrite
    } else if version(committed) == version(current) {
        Verdict::Refuse(
            "the tables changed and the version did not: raise ABI_MINOR in src/lib.rs and the \
             crate's version with it, then run with TENON_UPDATE=1",
        )
    } else if update == "1" || committed.is_empty() {
        Verdict::Rewrite
    } else {
        Verdict::Refuse("the version changed: run with TENON_UPDATE=1")
    }
}

#[test]
fn layout_table_is_committed() {
    let file = path("docs/layout.txt");
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    let current = current();
    match judge(&committed, &current, &update()) {
        Verdict::Current => {}
        Verdict::Rewrite => {
            std::fs::write(&file, &current).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
        }
        Verdict::Refuse(why) => {
            let old: Vec<&str> = committed.lines().collect();
            let differs =
                current.lines().enumerate().find(|&(at, line)| old.get(at) != Some(&line));
            panic!("docs/layout.txt differs at {differs:?}; {why} (docs/evolution.md)");
        }
    }
}

#[test]
fn a_changed_table_needs_another_version() {
    let changed = "abi 0.1\n\nStr 24\n";
    let refused = |verdict| matches!(verdict, Verdict::Refuse(_));
    assert_eq!(judge("abi 0.1\n\nStr 16\n", "abi 0.1\n\nStr 16\n", ""), Verdict::Current);
    assert!(refused(judge("abi 0.1\n\nStr 16\n", changed, "")));
    assert!(refused(judge("abi 0.1\n\nStr 16\n", changed, "1")));
    assert_eq!(judge("abi 0.1\n\nStr 16\n", changed, "force"), Verdict::Rewrite);
    assert!(refused(judge("abi 0.0\n\nStr 16\n", changed, "")));
    assert_eq!(judge("abi 0.0\n\nStr 16\n", changed, "1"), Verdict::Rewrite);
}

#[test]
fn a_changed_type_changes_the_hash_and_a_comment_does_not() {
    let hash = declarations_hash("/* a */ struct X { uint32_t a; };");
    assert_eq!(hash, declarations_hash("/* other */\nstruct X {\n    uint32_t a; /**< b */\n};"));
    assert_ne!(hash, declarations_hash("struct X { int32_t a; };"));
    assert_ne!(hash, declarations_hash("struct X { uint32_t b; };"));
}

#[test]
fn the_crates_version_follows_the_abi() {
    let crate_version = format!("{ABI_MAJOR}.{ABI_MINOR}.");
    assert!(
        env!("CARGO_PKG_VERSION").starts_with(&crate_version),
        "ABI {ABI_MAJOR}.{ABI_MINOR}, but the crate is {}",
        env!("CARGO_PKG_VERSION")
    );
}

fn structs_with_fields() -> Vec<Struct> {
    let items = modules().into_iter().flat_map(|module| module.items);
    items
        .filter_map(|item| match item {
            Item::Struct(item) if item.kind == Kind::Fields => Some(item),
            _ => None,
        })
        .collect()
}

#[test]
fn every_shared_struct_is_in_the_table() {
    let structs = structs_with_fields();
    for item in &structs {
        let found = layout::LAYOUTS.iter().find(|layout| layout.name == item.name);
        let found = found.unwrap_or_else(|| panic!("{} is not in layout::LAYOUTS", item.name));
        let fields: Vec<&str> = found.fields.iter().map(|field| field.name).collect();
        assert_eq!(fields, item.fields, "{}: fields in another order", item.name);
    }
    assert_eq!(
        layout::LAYOUTS.len(),
        structs.len(),
        "LAYOUTS names a struct twice or a private one"
    );
}

/// Files that hold nothing for the header are listed, so that a new file cannot be forgotten in
/// `support/source.rs`.
#[test]
fn every_file_is_read() {
    let read: Vec<String> = modules().into_iter().map(|module| module.name).collect();
    let apart = ["door", "layout", "links", "refusal"];
    let files = std::fs::read_dir(path("src")).expect("src is there");
    for file in files {
        let file = file.expect("a readable entry").path();
        let stem = file.file_stem().and_then(|stem| stem.to_str()).expect("a UTF-8 name");
        let known = apart.contains(&stem) || read.iter().any(|name| name == stem);
        assert!(known, "src/{stem}.rs: add it to FILES in tests/support/source.rs");
    }
}

#[test]
fn every_shared_struct_says_who_fills_it() {
    for item in structs_with_fields() {
        let doc = item.doc.replace('\n', " ");
        assert!(doc.contains("Filled by "), "{}: say which side fills it: {doc:?}", item.name);
    }
}

#[test]
fn every_table_begins_with_its_size() {
    for item in structs_with_fields() {
        // What the host or a plugin may pass in arrays or by value has no size of its own.
        if item.fields.iter().any(|field| field == "ext" || field == "reserved")
            && !matches!(item.name.as_str(), "Slot" | "Numerics" | "GradientParts")
        {
            assert_eq!(
                item.fields.first().map(String::as_str),
                Some("struct_size"),
                "{}",
                item.name
            );
        }
    }
}
