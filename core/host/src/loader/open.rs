//! Step 4, open: ensures that what was digested is what is opened.
//!
//! On Linux the library is opened through the descriptor that was digested (`/proc/PID/fd/N`: a
//! debugger, which has its own descriptors, finds the symbols under that name too). The descriptor
//! is never closed, so that the dynamic linker, which also identifies libraries by name, never sees
//! two libraries under one number.
//!
//! In these cases the library is opened from a private copy instead, which is digested while it is
//! written:
//! - The system has no such names.
//! - An allow-list is in force, since the file could be changed after it was digested; the copy is
//!   in sealed memory where the system supports that.
//! - The library is a replacement, since a file that is replaced once is replaced again.
//! - The same inode was opened before with other content: opening it again would return the old
//!   code.
//! - Symbols that are unique in a process are made the library's own.
//!
//! In all other cases overwriting an open file changes running code: install a new build by
//! renaming it into place.

use super::{
    elf,
    find::{PluginFile, failed},
    handshake::{self, Who},
};
use crate::{
    cache,
    digest::{FileId, cache_folder, digest_copy},
    error::{LoadError, Step},
    permissions::exposed,
};
use std::{
    env,
    fs::{self, File, OpenOptions},
    io::{self, Seek, SeekFrom},
    mem::ManuallyDrop,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

/// How a library is to be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Through the file itself, if possible.
    File,
    /// From a private copy.
    PrivateCopy,
}

/// Properties of the copy from which a library is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copying {
    /// Whether nothing may change it, not even the user of this process.
    pub sealed: bool,
    /// Whether symbols that are unique in a process become the library's own ([`elf::make_own`]).
    pub own_symbols: bool,
}

/// A library for the dynamic linker to open.
pub struct Openable {
    /// The path to open.
    pub name: PathBuf,
    /// SHA-256 of the library.
    pub digest: String,
    /// Keeps the path valid; leaked once the library is open.
    pub file: File,
    /// Whether it is a copy that was digested while it was written.
    pub private: bool,
    /// A private copy in a folder, which is unlinked as soon as the library is open.
    pub copy: Option<PrivateCopy>,
}

/// A copy in its own folder; dropping it removes both.
pub struct PrivateCopy {
    folder: PathBuf,
    path: PathBuf,
}

impl Drop for PrivateCopy {
    fn drop(&mut self) {
        // A mapped file that cannot be removed stays until the system cleans up.
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_dir(&self.folder);
    }
}

impl PluginFile {
    /// Returns the library for the dynamic linker to open; `copy` requests a private copy.
    ///
    /// # Errors
    /// The file cannot be read, or the copy cannot be written.
    pub fn openable(self, digest: String, copy: Option<Copying>) -> Result<Openable, LoadError> {
        let name = descriptor_name(&self.file).filter(|_| copy.is_none());
        match name {
            Some(name) => {
                Ok(Openable { name, digest, file: self.file, private: false, copy: None })
            }
            None => self
                .copied(copy.unwrap_or_default())
                .map_err(|error| failed(&self.path, &error, Step::Open)),
        }
    }

    fn copied(&self, how: Copying) -> io::Result<Openable> {
        if how.sealed
            && let Some(openable) = self.sealed(how)
        {
            return openable;
        }
        self.copied_to_folder(how)
    }

    /// An immutable copy in memory; `None` if the system does not support it.
    #[cfg(target_os = "linux")]
    fn sealed(&self, how: Copying) -> Option<io::Result<Openable>> {
        let sealed = super::sealed(&self.file, |copy| how.prepare(copy));
        let (file, digest) = match sealed {
            Ok((copy, digest)) => (File::from(copy), digest),
            // The kernel, or a policy of its operator, does not allow files of this kind.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EACCES)) => {
                return None;
            }
            Err(error) => return Some(Err(error)),
        };
        let name = descriptor_name(&file)?;
        Some(Ok(Openable { name, digest, file, private: true, copy: None }))
    }

    #[cfg(not(target_os = "linux"))]
    fn sealed(&self, _how: Copying) -> Option<io::Result<Openable>> {
        None
    }

    fn copied_to_folder(&self, how: Copying) -> io::Result<Openable> {
        let folder = private_folder()?;
        let path = folder.join(self.path.file_name().unwrap_or("plugin".as_ref()));
        let copy = PrivateCopy { folder, path };
        let mut options = OpenOptions::new();
        let mut file =
            cache::open_regular(&copy.path, options.read(true).write(true).create_new(true))?;
        let mut from = &self.file;
        from.seek(SeekFrom::Start(0))?;
        let digest = digest_copy(from, &mut file)?;
        how.prepare(&file)?;
        let name = descriptor_name(&file).unwrap_or_else(|| copy.path.clone());
        Ok(Openable { name, digest, file, private: true, copy: Some(copy) })
    }
}

impl Copying {
    /// Changes a copy after it was digested.
    fn prepare(self, copy: &File) -> io::Result<()> {
        match self.own_symbols {
            true => elf::make_own(copy).map(drop),
            false => Ok(()),
        }
    }
}

/// A path by which exactly this file is opened again.
#[cfg(target_os = "linux")]
fn descriptor_name(file: &File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    let id = FileId::of(&file.metadata().ok()?);
    let names = [process::id().to_string(), "self".to_owned()];
    let mut names =
        names.map(|who| PathBuf::from(format!("/proc/{who}/fd/{}", file.as_raw_fd()))).into_iter();
    names.find(|name| fs::metadata(name).is_ok_and(|meta| FileId::of(&meta) == id))
}

#[cfg(not(target_os = "linux"))]
fn descriptor_name(_file: &File) -> Option<PathBuf> {
    None
}

/// Whether a folder exists, created if necessary, in which no other user can replace an entry.
fn is_own_folder(folder: &Path) -> bool {
    let looked = cache::make_folder(folder).and_then(|()| exposed(folder, &fs::metadata(folder)?));
    matches!(looked, Ok(None))
}

/// A new folder that no other user can enter, in the cache folder or else the system's temporary
/// folder.
fn private_folder() -> io::Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let cache = cache_folder().map(|folder| folder.join("copies"));
    let base = cache.filter(|folder| is_own_folder(folder)).unwrap_or_else(env::temp_dir);
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = base.join(format!("tenon-{}-{number}", process::id()));
        match builder.create(&folder) {
            Ok(()) => return Ok(folder),
            // Left behind by an earlier process with the same id.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Opens a library. It stays mapped, with the descriptor that its path refers to, after the handle
/// is dropped.
pub fn map(
    openable: Openable,
    who: Who<'_>,
) -> Result<ManuallyDrop<libloading::Library>, LoadError> {
    let Openable { name, file, copy, .. } = openable;
    let failed = |error: libloading::Error| LoadError::Open {
        path: who.path.to_owned(),
        plugin: who.plugin.to_owned(),
        detail: handshake::detail(&error)
            .replace(&*name.to_string_lossy(), &who.path.to_string_lossy()),
    };
    // SAFETY: opening runs the library's initialisers; earlier steps have established that it is a
    // plugin, and trusted as far as required.
    let library = unsafe { open_library(&name) }.map_err(failed)?;
    std::mem::forget(file);
    drop(copy);
    Ok(ManuallyDrop::new(library))
}

/// Opens a library and binds all symbols at once, so that a missing one is found here and not in a
/// step.
///
/// # Safety
/// - The library's initialisers may run.
#[cfg(unix)]
unsafe fn open_library(name: &Path) -> Result<libloading::Library, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    // SAFETY: the library's initialisers may run, as the caller has decided.
    unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) }.map(Into::into)
}

/// # Safety
/// - The library's initialisers may run.
#[cfg(not(unix))]
unsafe fn open_library(name: &Path) -> Result<libloading::Library, libloading::Error> {
    // SAFETY: the library's initialisers may run, as the caller has decided.
    unsafe { libloading::Library::new(name) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn what_is_digested_is_what_is_opened_though_the_path_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for copy in [false, true] {
            fs::write(&path, "abc").unwrap();
            let file = PluginFile::find(&path).unwrap();
            let digest = file.digest().unwrap();
            let copying = copy.then(Copying::default);
            let openable = file.openable(digest.clone(), copying).unwrap();
            let other = folder.path().join("other");
            fs::write(&other, "something else").unwrap();
            fs::rename(&other, &path).unwrap();
            assert_eq!(openable.digest, digest);
            assert_eq!(openable.copy.is_some(), copy);
            let mut text = String::new();
            File::open(&openable.name).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "abc");
        }
    }

    #[test]
    fn a_private_copy_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "abc").unwrap();
        let copying = Some(Copying::default());
        let openable = PluginFile::find(&path).unwrap().openable(String::new(), copying).unwrap();
        let copy = openable.copy.as_ref().unwrap();
        let (file, home) = (copy.path.clone(), copy.folder.clone());
        assert!(file.exists());
        drop(openable);
        assert!(!file.exists() && !home.exists());
    }

    #[cfg(unix)]
    #[test]
    fn folders_of_copies_are_for_their_user_alone_whatever_was_there() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("tenon/copies");
        assert!(is_own_folder(&folder));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(folder.parent().unwrap())), (0o700, 0o700));
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!is_own_folder(&folder), "others could exchange the folder of a copy");
    }
}
