//! What the tests of the committed files share.

pub mod comment;
pub mod header;
pub mod names;
pub mod source;

use std::path::{Path, PathBuf};

/// A path below this crate.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// What `TENON_UPDATE` says; empty when it is not set.
pub fn update() -> String {
    std::env::var("TENON_UPDATE").unwrap_or_default()
}
