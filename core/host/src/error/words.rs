//! Parts of the error messages.

use std::{
    fmt,
    path::{Path, PathBuf},
};
use tenon_framework::text::{TEXT_BYTES, cut, cut_message, cut_text};

/// Most items of a list in a message.
const MOST: usize = 64;

/// A plugin and its file.
pub(super) fn at(plugin: &str, path: &Path) -> String {
    format!("plugin {} ({})", cut(plugin), path.display())
}

/// Items with a separator between them, truncated where there are many.
pub(super) fn joined<T: fmt::Display>(items: &[T], between: &str) -> String {
    let shown = items.iter().take(MOST).map(|item| cut_text(&item.to_string()).to_string());
    let text = shown.collect::<Vec<_>>().join(between);
    let text = cut_message(&text).to_string();
    match items.len().saturating_sub(MOST) {
        0 => text,
        more => format!("{text}{between}and {more} more"),
    }
}

pub(super) fn list<E: fmt::Display>(errors: &[E]) -> String {
    joined(errors, "; ")
}

pub(super) fn admit(trust_file: &Option<PathBuf>, path: &Path) -> String {
    match trust_file {
        Some(list) => format!("tenon trust add {} --file {}", path.display(), list.display()),
        None => "add it to host.allowed_digests".to_owned(),
    }
}

pub(super) fn taken(loaded: &Option<PathBuf>) -> String {
    match loaded {
        Some(path) => format!("loaded from {}: replace it, or retire it first", path.display()),
        None => "linked into the host: leave the file out".to_owned(),
    }
}

pub(super) fn differences(missing: &[String], surplus: &[String]) -> String {
    let cut = |entry: &String| tenon_framework::text::cut_to(entry, TEXT_BYTES / 2).to_string();
    let absent =
        missing.iter().map(|entry| format!("{} is in the manifest, not registered", cut(entry)));
    let extra =
        surplus.iter().map(|entry| format!("{} is registered, not in the manifest", cut(entry)));
    let all: Vec<String> = absent.chain(extra).collect();
    format!("manifest and registrations differ: {}; build the plugin again", joined(&all, "; "))
}
