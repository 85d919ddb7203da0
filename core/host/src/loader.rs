//! Loads plugins. The steps, each with its errors ([`LoadError::step`](crate::LoadError::step)):
//!
//! 1. **Find**: the file is opened once and identified by device and inode.
//! 2. **Manifest**: doors and manifest are read from the file; nothing of it runs. A library for another
//!    processor, compiled for CPU features that are not there, or built to abort on panics, ends here, and so does
//!    a file whose program headers are damaged.
//! 3. **Trust**: permissions, and the digest against the allow-list ([`crate::trust`]), when asked for.
//! 4. **Open**: what was digested is opened, in a process of its own first where it was not opened before
//!    ([`probe`]). A library whose digest is open already is the same plugin.
//! 5. **Handshake**: ABI versions must agree, as the host sees them (manifest, table) and as the plugin does
//!    (door 2 may decline).
//! 6. **Layout**: door 1 compares the layout of every shared type; a refusal is final, door 2 is not tried.
//! 7. **Start**: the plugin's own `open` runs, once in a process.
//! 8. **Register**: all that the plugin registers is collected in a transaction.
//! 9. **Compare**: manifest and registrations must agree.
//! 10. **Commit**: the registry validates the transaction and publishes a new snapshot, or nothing changes.
//!
//! Steps 1 and 2 are [`examine`], 3 to 7 [`open`], once in a process; 8 and 9 are [`collect`], once for each
//! registry; 10 is [`Plugins`](crate::Plugins). An opened library stays mapped for ever, whatever becomes of
//! it: unloading Rust code is unsound.

mod door;
pub(crate) mod elf;
pub mod file;
pub mod image;
mod library;
pub mod probe;
#[cfg(target_os = "linux")]
mod sealed;

pub use file::{PluginFile, Source};
pub use library::{Library, check_image, collect, compare, examine, image_of_copy, open};
#[cfg(target_os = "linux")]
pub use library::{open_sealed, register_with};
#[cfg(target_os = "linux")]
pub use sealed::sealed;

use crate::{
    error::LoadError,
    trust::{self, TrustError},
};
use probe::Probing;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};
use tenon_framework::{
    knob::{KnobOrigin, Knobs},
    register_knob,
};

register_knob!(
    "allow_panic_abort": BOOL = "false",
    "Loads plugins built with panic = \"abort\", in which a panic ends the process."
);
register_knob!(
    "allowed_digests": STRING = "",
    "SHA-256 digests of the only plugin files to load, with commas between; none where it is set to nothing, any where it is not set."
);
register_knob!(
    "refuse_writable": BOOL = "false",
    "Refuses plugin files that others than this user and root can write or replace."
);

/// What is let in. The default lets every file in that the user can read, except those built to abort.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Loads plugins in which a panic ends the process.
    pub allow_panic_abort: bool,
    /// The only digests that are let in; `None` for any.
    pub allowed_digests: Option<BTreeSet<String>>,
    /// The trust file in force, and what is wrong with it: then nothing is let in.
    pub trust_file: Option<(PathBuf, Result<(), TrustError>)>,
    /// Refuses files that others than this user and root can write or replace.
    pub refuse_writable: bool,
    /// Which libraries are tried in another process first.
    pub probing: Probing,
}

impl Policy {
    /// Refuses everything where the trust file in force is of no use.
    ///
    /// # Errors
    /// [`LoadError::TrustFile`].
    pub fn check_trust_file(&self, path: &Path, plugin: &str) -> Result<(), LoadError> {
        let Some((list, Err(error))) = &self.trust_file else { return Ok(()) };
        let (path, plugin) = (path.to_owned(), plugin.to_owned());
        Err(LoadError::TrustFile { path, plugin, file: list.clone(), error: error.clone() })
    }

    /// Refuses a digest that is not on the list, where there is one.
    ///
    /// # Errors
    /// [`LoadError::Digest`].
    pub fn admit(&self, path: &Path, plugin: &str, digest: &str) -> Result<(), LoadError> {
        match &self.allowed_digests {
            Some(allowed) if !allowed.contains(digest) => Err(LoadError::Digest {
                path: path.to_owned(),
                plugin: plugin.to_owned(),
                digest: digest.to_owned(),
                allowed: allowed.len(),
                trust_file: self.trust_file.as_ref().map(|(file, _)| file.clone()),
            }),
            _ => Ok(()),
        }
    }

    /// What the host's knobs say, and the trust file that they name, which is read now.
    pub fn from_knobs(knobs: &Knobs) -> Policy {
        let setting = knobs.get("host", "allowed_digests");
        // A list that is set and has no digest on it is a list.
        let is_set = setting.is_some_and(|setting| setting.origin != KnobOrigin::Default);
        let list = knobs.text("host", "allowed_digests").unwrap_or_default();
        let mut digests: BTreeSet<String> = list
            .split(',')
            .map(|digest| digest.trim().to_ascii_lowercase())
            .filter(|digest| !digest.is_empty())
            .collect();
        let trust_file = trust::named_by(knobs).map(|file| {
            let read = trust::digests(&file).map(|of_file| digests.extend(of_file));
            (file, read)
        });
        Policy {
            allow_panic_abort: knobs.bool("host", "allow_panic_abort").unwrap_or(false),
            allowed_digests: (is_set || trust_file.is_some()).then_some(digests),
            trust_file,
            refuse_writable: knobs.bool("host", "refuse_writable").unwrap_or(false),
            probing: Probing::from_knobs(knobs),
        }
    }
}
