//! The libraries that this process has opened.
//!
//! A library is opened once per process, for all registries: it has one set of statics, among them
//! the host's table, so the plugin's `open` runs once and it has one record.

use super::{
    find::{PluginFile, failed},
    handshake::{self, Door, Who},
    image::{Image, check_image, image_of_copy},
    open::{Openable, Source, map},
    probe,
    start::start,
    trust::{Policy, admit},
};
use crate::{
    digest::FileId,
    error::{LoadError, Step},
    manifest::Manifest,
    record::PluginRecord,
};
use std::{
    fmt,
    fs::File,
    path::{Path, PathBuf},
    sync::LazyLock,
};
use tenon_abi::PluginV1;
use tenon_framework::sync::{Mutex, MutexGuard, Rank};

/// An opened plugin.
pub struct Library {
    /// Its file.
    pub path: PathBuf,
    /// Identity of the file that was opened first.
    pub id: FileId,
    /// SHA-256 of the file, in hexadecimal.
    pub digest: String,
    /// The root symbol through which it was opened.
    pub door: Door,
    /// Its manifest.
    pub manifest: Manifest,
    /// The host's record of it.
    pub record: &'static PluginRecord,
    /// Whether it was opened from a private copy that was digested while it was written, so that it
    /// could not change between digest and opening.
    private: bool,
    pub(super) table: &'static PluginV1,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library")
            .field("plugin", &self.manifest.plugin.name)
            .field("path", &self.path)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Opened {
    libraries: Vec<&'static Library>,
    /// The files that were opened directly, even unsuccessfully. Their descriptors stay open, so
    /// that no other file gets their device and inode; files that were only copied are not listed.
    mapped: Vec<(FileId, String)>,
}

/// Held while a plugin's `open` or `register_all` runs: both may take the host's inner locks.
const LIBRARIES: Rank = Rank(18);

static OPENED: LazyLock<Mutex<Opened>> =
    LazyLock::new(|| Mutex::ranked(LIBRARIES, Opened::default()));

/// Prevents libraries from being opened until the result is dropped, while one registers.
pub(super) fn turn() -> Turn {
    Turn(OPENED.lock())
}

/// See [`turn`].
pub(super) struct Turn(#[expect(dead_code, reason = "held")] MutexGuard<'static, Opened>);

/// Steps 3 to 7, for the result of [`examine`](super::examine), which is checked against this
/// machine and this host first. A library whose digest is open already is the same plugin; `source`
/// says how to open others.
///
/// # Errors
/// The errors of these steps.
pub fn open(
    file: PluginFile,
    image: Image,
    policy: &Policy,
    source: Source,
) -> Result<&'static Library, LoadError> {
    let plugin = image.manifest.plugin.clone();
    let (path, id) = (file.path.clone(), file.id);
    let who = Who { path: &path, plugin: &plugin.name, version: &plugin.version };
    check_image(&image, policy, who.path)?;
    let mut opened = OPENED.lock();
    // The digest of an open library can be trusted only if it was opened from a private copy:
    // another file could have been written while it was digested, and its digest may be a
    // remembered one.
    let strict = policy.allowed_digests.is_some();
    let known = |digest: &str| {
        let mut open = opened.libraries.iter();
        open.find(|library| library.digest == digest && (library.private || !strict))
    };
    if !strict
        && !policy.refuse_writable
        && let Some(library) = known(&file.digest()?)
    {
        return Ok(library);
    }
    let changed = |id: FileId, digest: &str| {
        opened.mapped.iter().any(|(other, before)| *other == id && before != digest)
    };
    let own_symbols = !image.unique.is_empty();
    let openable = admit(file, &plugin.name, policy, source, own_symbols, changed)?;
    let digest = openable.digest.clone();
    if let Some(library) = known(&digest) {
        return Ok(library);
    }
    // The file was checked so far; what is opened is its digested copy.
    let private = openable.private;
    let image =
        if strict { image_of_copy(&openable.file, policy, (&path, &plugin))? } else { image };
    probe::check(&openable.file, &digest, who, &policy.probing)?;
    if !private {
        opened.mapped.push((id, digest));
    }
    let library = enter(openable, id, image, private, who)?;
    opened.libraries.push(library);
    Ok(library)
}

/// Steps 4 to 7, for an immutable copy whose digest is trusted, in a process that isolates a
/// plugin.
///
/// # Errors
/// The errors of these steps.
#[cfg(target_os = "linux")]
pub fn open_sealed(
    file: File,
    path: &Path,
    digest: String,
    image: Image,
    policy: &Policy,
) -> Result<&'static Library, LoadError> {
    let plugin = image.manifest.plugin.clone();
    let who = Who { path, plugin: &plugin.name, version: &plugin.version };
    check_image(&image, policy, path)?;
    let at_open = |error: std::io::Error| failed(path, &error, Step::Open);
    let id = FileId::of(&file.metadata().map_err(at_open)?);
    let (asked, path) = (path.to_owned(), path.to_owned());
    let sealed = PluginFile { path, asked, file, id };
    enter(sealed.openable(digest, None)?, id, image, true, who)
}

/// Steps 4 to 7.
fn enter(
    openable: Openable,
    id: FileId,
    image: Image,
    private: bool,
    who: Who<'_>,
) -> Result<&'static Library, LoadError> {
    let digest = openable.digest.clone();
    let mapped = map(openable, who)?;
    // SAFETY: the file's export table has the root symbol, and the library stays mapped.
    let table = unsafe { handshake::table(&mapped, &image.door, who)? };
    let record = PluginRecord::leak(who.plugin, who.path);
    start(table, record, who)?;
    let Image { door, manifest, .. } = image;
    let path = who.path.to_owned();
    let library = Library { path, id, digest, door, manifest, record, private, table };
    Ok(Box::leak(Box::new(library)))
}
