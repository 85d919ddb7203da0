//! `include/tenon.h` is what the tables in `src/` say.

use crate::support::{header, path, update};

#[test]
fn header_is_current() {
    let file = path("include/tenon.h");
    let made = header::header();
    if update() == "1" {
        std::fs::write(&file, made).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = made.lines().zip(committed.lines()).position(|(made, old)| made != old);
    assert!(
        made == committed,
        "include/tenon.h differs from src/ from line {} on; write it anew with TENON_UPDATE=1",
        differs.unwrap_or_else(|| made.lines().count().min(committed.lines().count())) + 1
    );
}

/// A C author reads the header as documentation: no word of it may only mean something in Rust.
#[test]
fn header_speaks_c() {
    let made = header::header();
    let rust = ["::", "[`", "StableAbi", "Option<", "unsafe", "`&", "trait ", "impl ", "derive"];
    for (at, line) in made.lines().enumerate() {
        for word in rust {
            assert!(!line.contains(word), "line {}: `{word}` in {line:?}", at + 1);
        }
    }
}
