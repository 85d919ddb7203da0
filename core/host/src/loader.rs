//! Loads plugins. These are the steps, each with its errors
//! ([`LoadError::step`](crate::LoadError::step)):
//!
//! 1. **Find**: the file is opened once and identified by device and inode.
//! 2. **Manifest**: root symbols and manifest are read from the file; none of its code runs. This
//!    step refuses a library for another processor, for CPU features that this machine lacks, or
//!    built to abort on panics, and a file with damaged program headers.
//! 3. **Trust**: permissions, and the digest against the allow-list ([`crate::trust`]), if
//!    configured.
//! 4. **Open**: the file that was digested is opened, first in a process of its own if it was not
//!    opened before ([`probe`]). A library whose digest is open already is the same plugin.
//! 5. **Handshake**: ABI versions must agree, as the host sees them (manifest, table) and as the
//!    plugin does (door 2 may decline).
//! 6. **Layout**: door 1 compares the layout of every shared type; a refusal is final, and door 2
//!    is not tried.
//! 7. **Start**: the plugin's own `open` runs, once in a process.
//! 8. **Register**: all registrations of the plugin are collected in a transaction.
//! 9. **Compare**: manifest and registrations must agree.
//! 10. **Commit**: the registry validates the transaction and publishes a new snapshot, or nothing
//!     changes.
//!
//! Each step has a file: `find`, `image` (2), `trust`, `open`, `handshake` (5 and 6), `start`,
//! `register`, `compare`; `library` keeps the libraries that the process has opened, and performs
//! steps 3 to 7.
//!
//! Steps 1 and 2 are [`examine`], 3 to 7 [`open`], once per process; 8 and 9 are [`collect`], once
//! for each registry; 10 is [`Plugins`](crate::Plugins). An opened library stays mapped for the
//! life of the process: unloading Rust code is unsound.

mod compare;
pub(crate) mod elf;
mod find;
mod handshake;
pub mod image;
mod library;
mod open;
pub mod probe;
mod register;
#[cfg(target_os = "linux")]
mod sealed;
mod start;
mod trust;

pub use compare::compare;
pub use find::{PluginFile, failed};
pub use handshake::Door;
pub use image::{check_image, image_of_copy};
#[cfg(target_os = "linux")]
pub use library::open_sealed;
pub use library::{Library, open};
pub use open::Source;
pub use register::collect;
#[cfg(target_os = "linux")]
pub use register::register_with;
#[cfg(target_os = "linux")]
pub use sealed::sealed;
pub use trust::Policy;

use crate::error::LoadError;
use image::Image;
use std::path::Path;

/// Steps 1 and 2: finds a file and reads its manifest, without running any of its code.
///
/// # Errors
/// The errors of these steps.
pub fn examine(path: &Path) -> Result<(PluginFile, Image), LoadError> {
    let file = PluginFile::find(path)?;
    let image = image::read(&file.file, &file.path)?;
    Ok((file, image))
}
