//! Step 4, open: what was digested is what is opened.
//!
//! On Linux the library is opened through the descriptor that was digested (`/proc/PID/fd/N`: a debugger,
//! which has descriptors of its own, finds the symbols under that name too); the descriptor is never closed,
//! so that the dynamic linker, which knows libraries by name too, never sees two libraries under one number.
//! Where that does not serve, the library is opened from a private copy that was digested while it was
//! written: on systems without such names; when an allow-list is in force (the file could be written to after
//! it was digested), from one in memory that is sealed where the system has such; for a replacement, since files
//! that are replaced once are replaced again; when the same inode was opened before with other content (opening it
//! again would return the old code); and when symbols of which a process has one are made the library's own. Writing
//! over a file that is open otherwise changes code that runs: install a new build by renaming it into place.

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
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

/// How a library is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Through the file itself, where that serves.
    File,
    /// From a private copy.
    PrivateCopy,
}

/// The copy from which a library is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copying {
    /// Nobody may change it, the user of this process included.
    pub sealed: bool,
    /// Symbols of which a process has one become the library's own ([`elf::make_own`]).
    pub own_symbols: bool,
}

/// What the dynamic linker is given.
pub struct Openable {
    /// Name under which the library is opened.
    pub name: PathBuf,
    /// SHA-256 of what is opened.
    pub digest: String,
    /// Keeps the name alive; leaked once the library is open.
    pub file: File,
    /// Whether it is a copy that was digested while it was written.
    pub private: bool,
    /// A private copy in a folder, which loses its name as soon as the library is open.
    pub copy: Option<PrivateCopy>,
}

/// A copy in a folder of its own; dropping it removes both.
pub struct PrivateCopy {
    folder: PathBuf,
    path: PathBuf,
}

impl Drop for PrivateCopy {
    fn drop(&mut self) {
        // Where a mapped file cannot be removed, it stays until the system cleans up.
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_dir(&self.folder);
    }
}

impl PluginFile {
    /// What the dynamic linker is given; `copy` asks for a private copy.
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

    /// A copy in memory that nobody can change; `None` where the system has none.
    #[cfg(target_os = "linux")]
    fn sealed(&self, how: Copying) -> Option<io::Result<Openable>> {
        let sealed = super::sealed(&self.file, |copy| how.prepare(copy));
        let (file, digest) = match sealed {
            Ok((copy, digest)) => (File::from(copy), digest),
            // A kernel, or a rule of its operator's, without files of this kind.
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
    /// Changes a copy that was digested.
    fn prepare(self, copy: &File) -> io::Result<()> {
        match self.own_symbols {
            true => elf::make_own(copy).map(drop),
            false => Ok(()),
        }
    }
}

/// The name under which this very file is opened again.
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

/// Whether a folder is there, made where it is not, in which nobody else can put one folder in another's place.
fn is_own_folder(folder: &Path) -> bool {
    let looked = cache::make_folder(folder).and_then(|()| exposed(folder, &fs::metadata(folder)?));
    matches!(looked, Ok(None))
}

/// A new folder that nobody else can enter, in the cache folder or else in the system's temporary one.
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
            // Left behind by an earlier process of the same number.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Opens a library. It is leaked, with the descriptor that its name stands for.
pub fn map(openable: Openable, who: Who<'_>) -> Result<&'static libloading::Library, LoadError> {
    let Openable { name, file, copy, .. } = openable;
    let failed = |error: libloading::Error| LoadError::Open {
        path: who.path.to_owned(),
        plugin: who.plugin.to_owned(),
        detail: handshake::detail(&error)
            .replace(&*name.to_string_lossy(), &who.path.to_string_lossy()),
    };
    // SAFETY: opening runs the library's initialisers; that it is a plugin, and trusted as far as was asked
    // for, is known by now.
    let library = unsafe { open_library(&name) }.map_err(failed)?;
    std::mem::forget(file);
    drop(copy);
    Ok(Box::leak(Box::new(library)))
}

/// Binds all symbols at once, so that a missing one is found here and not in a step.
///
/// # Safety
/// The library's initialisers may run.
#[cfg(unix)]
unsafe fn open_library(name: &Path) -> Result<libloading::Library, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    // SAFETY: the library's initialisers may run, as the caller has decided.
    unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) }.map(Into::into)
}

/// # Safety
/// The library's initialisers may run.
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
