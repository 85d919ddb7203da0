//! The files of every kind of new plugin, which the command carries with it.

use crate::args::{NewKind, NewLang};

/// Paths in the new folder with their texts, placeholders open.
type Files = &'static [(&'static str, &'static str)];

macro_rules! template {
    ($($path:literal = $file:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../../templates/", $file)))),+]
    };
}

const RUST_OP: Files = template![
    "Cargo.toml" = "rust/op/Cargo.toml.in",
    "src/lib.rs" = "rust/op/src/lib.rs.in",
    "src/reference.rs" = "rust/op/src/reference.rs.in",
    "tests/kernel.rs" = "rust/op/tests/kernel.rs.in",
    "README.md" = "rust/op/README.md.in",
    ".gitignore" = "gitignore.in",
];

const RUST_KERNEL: Files = template![
    "Cargo.toml" = "rust/kernel/Cargo.toml.in",
    "src/lib.rs" = "rust/kernel/src/lib.rs.in",
    "tests/kernel.rs" = "rust/kernel/tests/kernel.rs.in",
    "README.md" = "rust/kernel/README.md.in",
    ".gitignore" = "gitignore.in",
];

/// Every language with every kind.
#[cfg(test)]
pub const ALL: [(NewLang, NewKind); 2] =
    [(NewLang::Rust, NewKind::Op), (NewLang::Rust, NewKind::Kernel)];

/// The files of a kind in a language.
pub fn files(lang: NewLang, kind: NewKind) -> Files {
    match (lang, kind) {
        (NewLang::Rust, NewKind::Op) => RUST_OP,
        (NewLang::Rust, NewKind::Kernel) => RUST_KERNEL,
    }
}
