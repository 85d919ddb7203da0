//! Errors in a manifest.

use tenon_framework::text::{cut, cut_text};
use thiserror::Error;

/// An error in the text of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ManifestError {
    /// The section is larger than a manifest may be.
    #[error("the section has {bytes} bytes, expected at most {limit}")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The section reaches past the end of the file.
    #[error(
        "the section cannot be read ({detail}): the file is cut short or damaged, build it again",
        detail = cut_text(.detail)
    )]
    Unreadable {
        /// The reader's message.
        detail: String,
    },
    /// A line contains bytes that are not UTF-8.
    #[error("line {line} is not UTF-8")]
    Utf8 {
        /// The line, from 1.
        line: usize,
    },
    /// A line is not a record.
    #[error(
        "line {line} is not a record ({detail}): {text:?}",
        detail = cut_text(.detail), text = cut_text(.text)
    )]
    Line {
        /// The line, from 1.
        line: usize,
        /// The reader's message.
        detail: String,
        /// The beginning of the line.
        text: String,
    },
    /// The manifest has no record of kind `plugin`.
    #[error(
        "no record of kind 'plugin': say export_plugin!() at the crate's root, or TENON_MANIFEST in C"
    )]
    NoPlugin,
    /// The manifest has two records of kind `plugin`.
    #[error(
        "two records of kind 'plugin', of {first} and {second}: a library is one plugin",
        first = cut(.first), second = cut(.second)
    )]
    TwoPlugins {
        /// One name.
        first: String,
        /// The other.
        second: String,
    },
}
