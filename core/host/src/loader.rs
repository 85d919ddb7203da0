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
//! Each step has a file: `find`, `image` (2), `trust`, `open`, `handshake` (5 and 6), `start`, `register`, `compare`;
//! `library` has the libraries that the process has opened, and goes through steps 3 to 7.
//!
//! Steps 1 and 2 are [`examine`], 3 to 7 [`open`], once in a process; 8 and 9 are [`collect`], once for each
//! registry; 10 is [`Plugins`](crate::Plugins). An opened library stays mapped for ever, whatever becomes of
//! it: unloading Rust code is unsound.

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

/// Steps 1 and 2: finds a file and reads its manifest, without running anything of it.
///
/// # Errors
/// As the steps say.
pub fn examine(path: &Path) -> Result<(PluginFile, Image), LoadError> {
    let file = PluginFile::find(path)?;
    let image = image::read(&file.file, &file.path)?;
    Ok((file, image))
}
