//! Step 1, find, and step 3, trust: a file is opened once, and what was digested is what is opened.
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

use super::{Policy, elf};
use crate::{
    cache,
    digest::{FileId, cache_folder, digest_copy, remembered_digest},
    error::{LoadError, Step},
    permissions::exposed,
};
use std::{
    env,
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Seek, SeekFrom},
    path::{Path, PathBuf, absolute},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

/// A plugin's file, opened once.
pub struct PluginFile {
    /// Absolute, without symbolic links.
    pub path: PathBuf,
    /// Absolute, as it was asked for.
    pub asked: PathBuf,
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
        let asked = absolute(path).map_err(at_find)?;
        let real = fs::canonicalize(path).map_err(at_find)?;
        // Asked before it is opened: opening a pipe waits for its writer.
        regular(path, &fs::metadata(&real).map_err(at_find)?)?;
        let file = File::open(&real).map_err(at_find)?;
        let meta = file.metadata().map_err(at_find)?;
        regular(path, &meta)?;
        Ok(PluginFile { path: real, asked, id: FileId::of(&meta), file })
    }

    /// The digest, without trust: it may be a remembered one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn digest(&self) -> Result<String, LoadError> {
        remembered_digest(&self.file).map_err(|error| failed(&self.path, &error, Step::Trust))
    }

    /// Refuses a file that others than this user and root can write, or replace in its folder or behind a link.
    ///
    /// # Errors
    /// [`LoadError::Writable`].
    pub fn check_permissions(&self) -> Result<(), LoadError> {
        let looked = self.file.metadata().and_then(|meta| exposed(&self.asked, &meta));
        match looked.map_err(|error| failed(&self.path, &error, Step::Trust))? {
            Some(exposed) => Err(LoadError::Writable { path: self.path.clone(), exposed }),
            None => Ok(()),
        }
    }

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
    own_symbols: bool,
    opened_before: impl Fn(FileId, &str) -> bool,
) -> Result<Openable, LoadError> {
    let path = file.path.clone();
    policy.check_trust_file(&path, plugin)?;
    if policy.refuse_writable {
        file.check_permissions()?;
    }
    let openable = match &policy.allowed_digests {
        Some(_) => file.openable(String::new(), Some(Copying { sealed: true, own_symbols }))?,
        None => {
            let digest = file.digest()?;
            let asked = source == Source::PrivateCopy || own_symbols;
            let copy = asked || opened_before(file.id, &digest);
            file.openable(digest, copy.then_some(Copying { sealed: false, own_symbols }))?
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

    /// Between its digest and its opening, by somebody who is this user.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_trusted_copy_takes_no_other_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "abc").unwrap();
        let digest = PluginFile::find(&path).unwrap().digest().unwrap();
        let policy = Policy { allowed_digests: Some([digest].into()), ..Policy::default() };
        let file = PluginFile::find(&path).unwrap();
        let trusted = trust(file, "p", &policy, Source::File, false, |_, _| false).unwrap();
        assert!(fs::write(&trusted.name, "evil").is_err());
        let changed = OpenOptions::new().write(true).open(&trusted.name);
        let written = changed.and_then(|mut file| io::Write::write_all(&mut file, b"evil"));
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(fs::read(&trusted.name).unwrap(), b"abc");
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
        let error = trust(file, "p", &policy, Source::File, false, |_, _| false).err().unwrap();
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
        let trusted = |file| trust(file, "p", &policy, Source::File, false, |_, _| false);
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
            let file = PluginFile::find(&path).unwrap();
            trust(file, "p", &policy, Source::File, false, |_, _| false)
        };
        let trusted = trust_with(&["00", &digest]).unwrap();
        assert_eq!(trusted.digest, digest);
        assert!(trusted.private, "a trusted file is opened from a private copy");
        let error = trust_with(&["00"]).err().unwrap();
        assert!(error.to_string().contains(&digest));
        assert_eq!(error.code(), tenon_abi::Code::PERMISSION_DENIED);
    }
}
