//! The trust file: lists by digest the plugin files that may be loaded.
//!
//! ```toml
//! version = 1                     # of this format
//!
//! [[plugin]]                      # one for each file, in any order
//! sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
//! name = "my-ops"                 # the rest is for people: only the digest counts
//! plugin_version = "0.1.0"
//! path = "/srv/plugins/libmy_ops.so"
//! added = "2026-11-23"
//! comment = "reviewed by Ada, ticket 1234"
//! ```
//!
//! The knob `host.trust_file` names it. It is read each time plugins are loaded, replaced or
//! inspected, so that a change applies from then on; loaded plugins stay.
//!
//! # Invariants
//! - A file that does not exist, cannot be read, is malformed, or can be written by others permits
//!   nothing; so does a file reached through a symbolic link that others can redirect.
//! - An empty list permits nothing either.

use crate::permissions::{Exposed, exposed};
use serde::Deserialize;
use std::{
    collections::BTreeSet,
    env,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};
use tenon_framework::text::cut_text;
use tenon_framework::{knob::Knobs, register_knob};
use thiserror::Error;

/// The version of the format.
pub const VERSION: i64 = 1;
/// Most bytes of a file, more than a list maintained by hand.
pub const MAX_BYTES: u64 = 4 << 20;

register_knob!(
    "trust_file": STRING = "",
    "File with the digests of the only plugin files to load (see `tenon trust`); empty for any."
);

/// An error of a trust file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TrustError {
    /// The path depends on the current folder.
    #[error("expected an absolute path")]
    Relative,
    /// The file does not exist, or cannot be read.
    #[error("it cannot be read: {detail}", detail = cut_text(.detail))]
    Read {
        /// What kind of failure.
        kind: io::ErrorKind,
        /// The system's message.
        detail: String,
    },
    /// It is not a regular file.
    #[error("expected a regular file")]
    NotAFile,
    /// The file is too large.
    #[error("it has {bytes} bytes, expected at most {MAX_BYTES}")]
    TooLarge {
        /// Its size.
        bytes: u64,
    },
    /// Other users can change the file.
    #[error("{0}")]
    Exposed(Exposed),
    /// The file is not TOML of this form.
    #[error("{text}", text = cut_text(.0))]
    Malformed(String),
    /// The file has another version of the format.
    #[error("version {found}, expected {VERSION}: it is a later tenon's")]
    Version {
        /// The file's version.
        found: i64,
    },
    /// An entry has an invalid digest.
    #[error(
        "entry {number}: sha256 = '{found}', expected 64 hexadecimal digits",
        found = cut_text(.found)
    )]
    Digest {
        /// The entry, from 1.
        number: usize,
        /// The invalid digest.
        found: String,
    },
}

impl From<io::Error> for TrustError {
    fn from(error: io::Error) -> TrustError {
        TrustError::Read { kind: error.kind(), detail: error.to_string() }
    }
}

/// A trusted plugin file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustEntry {
    /// SHA-256 of the file, in lower-case hexadecimal.
    pub sha256: String,
    /// Name of the plugin in its manifest.
    #[serde(default)]
    pub name: String,
    /// Version of the plugin.
    #[serde(default)]
    pub plugin_version: String,
    /// Path of the file when it was added.
    #[serde(default)]
    pub path: String,
    /// The date on which it was added.
    #[serde(default)]
    pub added: String,
    /// A comment of the operator.
    #[serde(default)]
    pub comment: String,
}

/// The contents of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    #[serde(rename = "version")]
    _known: i64,
    #[serde(default)]
    plugin: Vec<TrustEntry>,
}

/// Whether a text is a digest.
pub fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Parses the entries of a text.
///
/// # Errors
/// The text is not TOML of this form and version, or has an invalid digest.
pub fn parse(text: &str) -> Result<Vec<TrustEntry>, TrustError> {
    /// Parsed first, since other fields of a later version are unknown.
    #[derive(Deserialize)]
    struct Version {
        version: i64,
    }
    let malformed = |error: toml::de::Error| {
        let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
        let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        TrustError::Malformed(format!("{place}{}", error.message()))
    };
    let Version { version } = toml::from_str(text).map_err(malformed)?;
    if version != VERSION {
        return Err(TrustError::Version { found: version });
    }
    let Fields { mut plugin, .. } = toml::from_str(text).map_err(malformed)?;
    for (at, entry) in plugin.iter_mut().enumerate() {
        entry.sha256.make_ascii_lowercase();
        if !is_digest(&entry.sha256) {
            return Err(TrustError::Digest { number: at + 1, found: entry.sha256.clone() });
        }
    }
    Ok(plugin)
}

/// The text of a trust file that only its owner can write.
///
/// # Errors
/// The file does not exist, cannot be read, is too large, or others can change it.
pub fn read_text(path: &Path) -> Result<String, TrustError> {
    if !path.is_absolute() {
        return Err(TrustError::Relative);
    }
    let real = fs::canonicalize(path)?;
    // Checked before it is opened: opening a pipe would wait for a writer.
    if !fs::metadata(&real)?.is_file() {
        return Err(TrustError::NotAFile);
    }
    let file = File::open(&real)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(TrustError::NotAFile);
    }
    if let Some(exposed) = exposed(path, &meta)? {
        return Err(TrustError::Exposed(exposed));
    }
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 {
        bytes if bytes > MAX_BYTES => Err(TrustError::TooLarge { bytes: meta.len().max(bytes) }),
        _ => Ok(text),
    }
}

/// The digests that a trust file permits.
///
/// # Errors
/// As [`read_text`] and [`parse`].
pub fn digests(path: &Path) -> Result<BTreeSet<String>, TrustError> {
    Ok(parse(&read_text(path)?)?.into_iter().map(|entry| entry.sha256).collect())
}

/// The file that the knob names.
pub fn named_by(knobs: &Knobs) -> Option<PathBuf> {
    knobs.text("host", "trust_file").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The default path of `tenon trust`'s list: `$XDG_CONFIG_HOME/tenon/trust.toml`, or
/// `$HOME/.config/tenon/trust.toml`; `None` without a home directory.
pub fn usual_file() -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let base = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(base.join("tenon").join("trust.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD";

    #[test]
    fn only_the_digest_counts_and_its_case_does_not() {
        let text = format!("version = 1\n[[plugin]]\nsha256 = '{ABC}'\n# a comment\nname = 'a'\n");
        let entries = parse(&text).unwrap();
        assert_eq!((entries.len(), entries[0].name.as_str()), (1, "a"));
        assert_eq!(entries[0].sha256, ABC.to_ascii_lowercase());
        assert_eq!(parse("version = 1").unwrap(), []);
    }

    #[test]
    fn a_malformed_file_says_where() {
        let said = |text: &str| parse(text).unwrap_err().to_string();
        assert!(said("").contains("missing field `version`"), "{}", said(""));
        assert!(said("version = 1\n[[plugin]\n").starts_with("line 2: "));
        assert!(said("version = 1\n\n[[plugin]]\nname = 'a'").contains("missing field `sha256`"));
        let unknown = said("version = 1\n[[plugins]]\nsha256 = ''");
        assert!(unknown.contains("unknown field `plugins`"), "{unknown}");
        let short = said("version = 1\n[[plugin]]\nsha256 = 'ba78'");
        assert_eq!(short, "entry 1: sha256 = 'ba78', expected 64 hexadecimal digits");
        let later = "version = 2\n[[rule]]\n";
        assert_eq!(parse(later), Err(TrustError::Version { found: 2 }));
    }

    #[test]
    fn a_file_that_cannot_be_read_lets_nothing_in() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert_eq!(digests(Path::new("trust.toml")), Err(TrustError::Relative));
        let missing = digests(&at("none")).unwrap_err();
        assert!(matches!(missing, TrustError::Read { kind: io::ErrorKind::NotFound, .. }));
        assert_eq!(digests(folder.path()), Err(TrustError::NotAFile));
        fs::write(at("bytes"), [0xff, 0xfe]).unwrap();
        own(&at("bytes"));
        assert!(matches!(digests(&at("bytes")), Err(TrustError::Read { .. })));
        fs::write(at("large"), " ".repeat(MAX_BYTES as usize + 1)).unwrap();
        own(&at("large"));
        assert_eq!(digests(&at("large")), Err(TrustError::TooLarge { bytes: MAX_BYTES + 1 }));
    }

    #[cfg(unix)]
    fn own(path: &Path) {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }

    #[cfg(not(unix))]
    fn own(_path: &Path) {}

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_write_lets_nothing_in() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trust.toml");
        fs::write(&path, format!("version = 1\n[[plugin]]\nsha256 = '{ABC}'")).unwrap();
        own(&path);
        assert_eq!(digests(&path).unwrap().len(), 1);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).unwrap();
        let error = digests(&path).unwrap_err();
        assert!(error.to_string().contains("has mode 664"), "{error}");
    }

    /// A user who may write the folder of the link can redirect it to an older list.
    #[cfg(unix)]
    #[test]
    fn a_list_behind_a_link_in_a_folder_that_others_can_write_lets_nothing_in() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("trust.toml");
        fs::write(&path, format!("version = 1\n[[plugin]]\nsha256 = '{ABC}'")).unwrap();
        own(&path);
        let open = root.path().join("open");
        fs::create_dir(&open).unwrap();
        std::os::unix::fs::symlink(&path, open.join("list")).unwrap();
        let chmod = |mode| fs::set_permissions(&open, fs::Permissions::from_mode(mode)).unwrap();
        chmod(0o755);
        assert_eq!(digests(&open.join("list")).unwrap().len(), 1);
        chmod(0o775);
        let error = digests(&open.join("list")).unwrap_err().to_string();
        assert!(error.contains("open has mode 775"), "{error}");
        assert_eq!(digests(&path).unwrap().len(), 1, "the list itself is fine");
    }
}
