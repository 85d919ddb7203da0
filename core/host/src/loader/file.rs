//! Step 1, find, and step 3, trust: a file is opened once, and what was digested is what is opened.
//!
//! On Linux the library is opened through the descriptor that was digested (`/proc/PID/fd/N`: a debugger,
//! which has descriptors of its own, finds the symbols under that name too); the descriptor is never closed,
//! so that the dynamic linker, which knows libraries by name too, never sees two libraries under one number.
//! Where that does not serve, the library is opened from a private copy that was digested while it was
//! written: on systems without such names; when an allow-list is in force (the file could be written to after
//! it was digested); for a replacement, since files that are replaced once are replaced again; and when the
//! same inode was opened before with other content (opening it again would return the old code). Writing over
//! a file that is open otherwise changes code that runs: install a new build by renaming it into place.

use super::{Policy, permissions::exposed};
use crate::{
    digest::{FileId, cache_folder, digest_copy, remembered_digest},
    error::{LoadError, Step},
};
use std::{
    env,
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Seek, SeekFrom},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

/// A plugin's file, opened once.
pub struct PluginFile {
    /// Absolute, without symbolic links.
    pub path: PathBuf,
    /// The open file.
    pub file: File,
    /// Its identity.
    pub id: FileId,
}

/// How a library is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Through the file itself, where that serves.
    File,
    /// From a private copy.
    PrivateCopy,
}

/// What the dynamic linker is given.
pub struct Openable {
    /// Name under which the library is opened.
    pub name: PathBuf,
    /// SHA-256 of what is opened.
    pub digest: String,
    /// Keeps the name alive; leaked once the library is open.
    pub file: File,
    /// A private copy, which loses its name as soon as the library is open.
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

/// The error of a step that needed a file.
pub fn failed(path: &Path, error: &io::Error, step: Step) -> LoadError {
    let (path, kind, detail) = (path.to_owned(), error.kind(), error.to_string());
    LoadError::File { path, kind, detail, step }
}

impl PluginFile {
    /// Opens the file and identifies it.
    ///
    /// # Errors
    /// It is not there, cannot be read, or is no regular file.
    pub fn find(path: &Path) -> Result<PluginFile, LoadError> {
        let at_find = |error: io::Error| failed(path, &error, Step::Find);
        let real = fs::canonicalize(path).map_err(at_find)?;
        // Asked before it is opened: opening a pipe waits for its writer.
        regular(path, &fs::metadata(&real).map_err(at_find)?)?;
        let file = File::open(&real).map_err(at_find)?;
        let meta = file.metadata().map_err(at_find)?;
        regular(path, &meta)?;
        Ok(PluginFile { path: real, id: FileId::of(&meta), file })
    }

    /// The digest, without trust: it may be a remembered one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn digest(&self) -> Result<String, LoadError> {
        remembered_digest(&self.file).map_err(|error| failed(&self.path, &error, Step::Trust))
    }

    /// Refuses a file that others than this user and root can write, or replace in its folder.
    ///
    /// # Errors
    /// [`LoadError::Writable`].
    pub fn check_permissions(&self) -> Result<(), LoadError> {
        let looked = self.file.metadata().and_then(|meta| exposed(&self.path, &meta));
        match looked.map_err(|error| failed(&self.path, &error, Step::Trust))? {
            Some(exposed) => Err(LoadError::Writable { path: self.path.clone(), exposed }),
            None => Ok(()),
        }
    }

    /// What the dynamic linker is given; `copy` asks for a private copy.
    ///
    /// # Errors
    /// The file cannot be read, or the copy cannot be written.
    pub fn openable(self, digest: String, copy: bool) -> Result<Openable, LoadError> {
        let name = descriptor_name(&self.file).filter(|_| !copy);
        match name {
            Some(name) => Ok(Openable { name, digest, file: self.file, copy: None }),
            None => self.copied().map_err(|error| failed(&self.path, &error, Step::Open)),
        }
    }

    fn copied(&self) -> io::Result<Openable> {
        let folder = private_folder()?;
        let path = folder.join(self.path.file_name().unwrap_or("plugin".as_ref()));
        let copy = PrivateCopy { folder, path };
        let mut file =
            OpenOptions::new().read(true).write(true).create_new(true).open(&copy.path)?;
        let mut from = &self.file;
        from.seek(SeekFrom::Start(0))?;
        let digest = digest_copy(from, &mut file)?;
        let name = descriptor_name(&file).unwrap_or_else(|| copy.path.clone());
        Ok(Openable { name, digest, file, copy: Some(copy) })
    }
}

fn regular(path: &Path, meta: &Metadata) -> Result<(), LoadError> {
    if meta.is_file() {
        return Ok(());
    }
    let found = if meta.is_dir() { "a folder" } else { "a device, pipe or socket" };
    Err(LoadError::NotAFile { path: path.to_owned(), found })
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

/// A new folder that nobody else can enter, in the cache folder or else in the system's temporary one.
fn private_folder() -> io::Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let cache = cache_folder().map(|folder| folder.join("copies"));
    let base =
        cache.filter(|folder| fs::create_dir_all(folder).is_ok()).unwrap_or_else(env::temp_dir);
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

/// Checks what can be checked before anything is opened: permissions, and the digest against the list.
/// Gives what the dynamic linker is given.
///
/// # Errors
/// The trust file is of no use, the file is writable for others, its digest is not on the list, it cannot be
/// read or copied.
pub fn trust(
    file: PluginFile,
    plugin: &str,
    policy: &Policy,
    source: Source,
    opened_before: impl Fn(FileId, &str) -> bool,
) -> Result<Openable, LoadError> {
    let path = file.path.clone();
    policy.check_trust_file(&path, plugin)?;
    if policy.refuse_writable {
        file.check_permissions()?;
    }
    let openable = match &policy.allowed_digests {
        Some(_) => file.openable(String::new(), true)?,
        None => {
            let digest = file.digest()?;
            let copy = source == Source::PrivateCopy || opened_before(file.id, &digest);
            file.openable(digest, copy)?
        }
    };
    policy.admit(&path, plugin, &openable.digest)?;
    Ok(openable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::TrustError;
    use std::io::Read;

    #[test]
    fn a_missing_file_a_folder_and_a_link_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let missing = PluginFile::find(&folder.path().join("none")).err().unwrap();
        assert!(matches!(missing, LoadError::File { kind: io::ErrorKind::NotFound, .. }));
        assert_eq!(missing.code(), tenon_abi::Code::NOT_FOUND);
        let error = PluginFile::find(folder.path()).err().unwrap();
        assert!(error.to_string().ends_with("expected a regular file, found a folder"), "{error}");
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&path, "abc").unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&path, &link).unwrap();
            let (a, b) = (PluginFile::find(&path).unwrap(), PluginFile::find(&link).unwrap());
            assert_eq!((a.id, a.path), (b.id, b.path), "a symbolic link is not a second plugin");
        }
    }

    #[test]
    fn what_is_digested_is_what_is_opened_though_the_path_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for copy in [false, true] {
            fs::write(&path, "abc").unwrap();
            let file = PluginFile::find(&path).unwrap();
            let digest = file.digest().unwrap();
            let openable = file.openable(digest.clone(), copy).unwrap();
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
        let openable = PluginFile::find(&path).unwrap().openable(String::new(), true).unwrap();
        let copy = openable.copy.as_ref().unwrap();
        let (file, home) = (copy.path.clone(), copy.folder.clone());
        assert!(file.exists());
        drop(openable);
        assert!(!file.exists() && !home.exists());
    }

    #[test]
    fn a_trust_file_of_no_use_lets_nothing_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "abc").unwrap();
        let digest = PluginFile::find(&path).unwrap().digest().unwrap();
        let policy = Policy {
            allowed_digests: Some([digest].into()),
            trust_file: Some(("/etc/trust.toml".into(), Err(TrustError::NotAFile))),
            ..Policy::default()
        };
        let file = PluginFile::find(&path).unwrap();
        let error = trust(file, "p", &policy, Source::File, |_, _| false).err().unwrap();
        assert_eq!((error.step(), error.code()), (Step::Trust, tenon_abi::Code::PERMISSION_DENIED));
        let said = "host.trust_file is /etc/trust.toml, and nothing is loaded: expected a regular";
        assert!(error.to_string().contains(said), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_write_is_refused_when_asked() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "abc").unwrap();
        let check = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            PluginFile::find(&path).unwrap().check_permissions()
        };
        assert!(check(0o755).is_ok());
        for mode in [0o775, 0o757] {
            let error = check(mode).unwrap_err();
            assert_eq!(error.step(), Step::Trust);
            assert!(error.to_string().contains(&format!("has mode {mode:o}")), "{error}");
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = check(0o755).unwrap_err();
        assert!(error.to_string().contains("has mode 777"), "{error}");
    }

    /// Between the digest and the opening, in place or by a rename.
    #[test]
    fn what_is_put_into_a_trusted_files_place_does_not_get_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "abc").unwrap();
        let digest = PluginFile::find(&path).unwrap().digest().unwrap();
        let policy = Policy { allowed_digests: Some([digest.clone()].into()), ..Policy::default() };
        let trusted = |file| trust(file, "p", &policy, Source::File, |_, _| false);
        let opened = trusted(PluginFile::find(&path).unwrap()).unwrap();
        fs::write(&path, "evil").unwrap();
        let mut text = String::new();
        File::open(&opened.name).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), &opened.digest), ("abc", &digest));

        fs::write(&path, "abc").unwrap();
        let file = PluginFile::find(&path).unwrap();
        assert_eq!(file.digest().unwrap(), digest);
        fs::write(&path, "xyz").unwrap();
        let error = trusted(file).err().unwrap();
        assert!(matches!(error, LoadError::Digest { .. }), "no remembered digest is believed");
    }

    #[test]
    fn only_digests_on_the_list_are_let_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "abc").unwrap();
        let digest = PluginFile::find(&path).unwrap().digest().unwrap();
        let trust_with = |list: &[&str]| {
            let allowed = list.iter().map(|digest| (*digest).to_owned()).collect();
            let policy = Policy { allowed_digests: Some(allowed), ..Policy::default() };
            trust(PluginFile::find(&path).unwrap(), "p", &policy, Source::File, |_, _| false)
        };
        let trusted = trust_with(&["00", &digest]).unwrap();
        assert_eq!(trusted.digest, digest);
        assert!(trusted.copy.is_some(), "a trusted file is opened from a private copy");
        let error = trust_with(&["00"]).err().unwrap();
        assert!(error.to_string().contains(&digest));
        assert_eq!(error.code(), tenon_abi::Code::PERMISSION_DENIED);
    }
}
