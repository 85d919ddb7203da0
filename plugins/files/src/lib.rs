//! Access of graphs to files, controlled by the knob `files` of a plugin: every file operation of its
//! kernels goes through here. [`register_file_knobs!`] registers the knobs, once in a plugin.
//!
//! Only regular files are read and written: a pipe would block a step, and a device may never end.
//! The size of a file is checked before memory is allocated, and again while the file is read,
//! since files such as those of `/proc` do not report it. A name is opened first and checked then,
//! so that the file cannot be exchanged in between.

mod folder;
mod glob;
mod matching;
#[cfg(not(unix))]
#[path = "other.rs"]
mod system;
#[cfg(unix)]
#[path = "unix.rs"]
mod system;

use std::{
    fs::{File, FileType},
    io::{self, ErrorKind, Read, Write},
    path::{Path, PathBuf},
};
use tenon_sdk::{Code, KernelError, author::Knobs};

pub use folder::Folder;

/// Registers the knobs `files` and `file_bytes` of a plugin; `files` alone for one that reads no file as a whole.
#[macro_export]
macro_rules! register_file_knobs {
    (files) => {
        tenon_sdk::register_knob!(
            "files": STRING = "any",
            "Which files graphs may read and write: `any`, `off` (none), `read-only` (read any, write none), or the absolute path of a folder, under which all of them must be. Names that are not absolute then begin there."
        );
    };
    () => {
        $crate::register_file_knobs!(files);
        tenon_sdk::register_knob!(
            "file_bytes": INT = "2147483648",
            "The size of the largest file that is read as a whole, in bytes."
        );
    };
}

/// The intended use of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Its bytes are read.
    Read,
    /// It is created, or truncated.
    Write,
    /// It is created, or extended.
    Append,
}

/// The places of files that may be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reach {
    Any,
    Off,
    ReadOnly,
    Under(PathBuf),
}

/// The permitted access.
#[derive(Debug, Clone)]
pub struct Access {
    reach: Reach,
    most: u64,
    /// The plugin whose knobs these are, for messages.
    plugin: &'static str,
}

/// The error of a file that an argument names, with TensorFlow's code for the system's error.
pub fn failed(what: &str, path: &Path, error: &io::Error) -> KernelError {
    let code = match error.kind() {
        ErrorKind::NotFound => Code::NOT_FOUND,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Code::PERMISSION_DENIED,
        ErrorKind::AlreadyExists => Code::ALREADY_EXISTS,
        ErrorKind::IsADirectory | ErrorKind::NotADirectory => Code::FAILED_PRECONDITION,
        ErrorKind::InvalidInput => Code::INVALID_ARGUMENT,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::OutOfMemory => {
            Code::RESOURCE_EXHAUSTED
        }
        ErrorKind::FileTooLarge => Code::OUT_OF_RANGE,
        _ => Code::UNKNOWN,
    };
    KernelError::new(code, format!("{what}: file '{}': {error}", path.display()))
}

fn denied(what: &str, path: &Path, why: &str) -> KernelError {
    let message = format!("{what}: file '{}' {why}", path.display());
    KernelError::new(Code::PERMISSION_DENIED, message)
}

/// What distinguishes a file from every other one that exists at the same time: its device and its number there.
pub type Identity = (u64, u64);

/// The identity of an open file; `None` where the system has none.
///
/// # Errors
/// The system's error.
pub fn identity(file: &File) -> io::Result<Option<Identity>> {
    system::identity(file)
}

/// The path that a text of a graph names.
#[cfg(unix)]
pub fn path_of(name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(std::ffi::OsString::from_vec(name.to_vec()))
}

/// The path that a text of a graph names.
#[cfg(not(unix))]
pub fn path_of(name: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(name).into_owned())
}

fn reach(plugin: &str, value: &str) -> Result<Reach, KernelError> {
    Ok(match value {
        "any" => Reach::Any,
        "off" => Reach::Off,
        "read-only" => Reach::ReadOnly,
        folder if Path::new(folder).is_absolute() => Reach::Under(folder.into()),
        other => {
            return Err(KernelError::invalid_argument(format!(
                "knob {plugin}.files: expected any, off, read-only or the absolute path of a folder, found '{other}'"
            )));
        }
    })
}

impl Access {
    /// The access that the knobs of the plugin with this name permit.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a knob's value that says nothing.
    pub fn read(plugin: &'static str, knobs: Knobs<'_>) -> Result<Access, KernelError> {
        let files = knobs.text("files")?;
        let most = knobs.int("file_bytes")?;
        let most = u64::try_from(most).map_err(|_| {
            KernelError::invalid_argument(format!(
                "knob {plugin}.file_bytes: expected a number of bytes, found {most}"
            ))
        })?;
        Ok(Access { reach: reach(plugin, &files)?, most, plugin })
    }

    /// The access that the knob `files` of a plugin without `file_bytes` permits.
    ///
    /// # Errors
    /// As [`Access::read`].
    pub fn of_files(plugin: &'static str, knobs: Knobs<'_>) -> Result<Access, KernelError> {
        Ok(Access { reach: reach(plugin, &knobs.text("files")?)?, most: u64::MAX, plugin })
    }

    /// Access to all files, of any size: for programs that a user runs, and tests.
    pub fn to_any() -> Access {
        Access { reach: Reach::Any, most: u64::MAX, plugin: "test" }
    }

    /// The folder that all permitted files are under, if there is one.
    fn top(&self) -> Option<&Path> {
        match &self.reach {
            Reach::Under(folder) => Some(folder),
            _ => None,
        }
    }

    /// Fails if the purpose is forbidden for all files.
    fn allowed(&self, what: &str, path: &Path, purpose: Purpose) -> Result<(), KernelError> {
        match (&self.reach, purpose) {
            (Reach::Off, _) => {
                let plugin = self.plugin;
                let why = format!(
                    "may not be used: knob {plugin}.files is off, and keeps graphs from files"
                );
                Err(denied(what, path, &why))
            }
            (Reach::ReadOnly, Purpose::Write | Purpose::Append) => {
                let why = format!("may not be written: knob {}.files is read-only", self.plugin);
                Err(denied(what, path, &why))
            }
            _ => Ok(()),
        }
    }

    /// The path relative to the folder that contains all permitted files, if there is one.
    fn under<'a>(&'a self, path: &Path) -> Result<Option<(&'a Path, PathBuf)>, Outside> {
        let Reach::Under(folder) = &self.reach else { return Ok(None) };
        let rest = match path.is_absolute() {
            true => path.strip_prefix(folder).map_err(|_| Outside)?,
            false => path,
        };
        Ok(Some((folder, rest.to_owned())))
    }

    /// Opens a file; `what` names the argument.
    ///
    /// # Errors
    /// The file must not be used so, does not exist, or is not regular.
    pub fn open(&self, what: &str, path: &Path, purpose: Purpose) -> Result<File, KernelError> {
        self.allowed(what, path, purpose)?;
        let opened = match self.under(path) {
            Ok(None) => system::open(path, purpose),
            Ok(Some((folder, rest))) => system::open_under(folder, &rest, purpose),
            Err(Outside) => return Err(self.outside(what, path)),
        };
        let file = opened.map_err(|error| match &error {
            error if system::is_outside(error) => self.outside(what, path),
            error if system::is_no_file(error) => not_regular(what, path, "a pipe or a socket"),
            error => failed(what, path, error),
        })?;
        let found = file.metadata().map_err(|error| failed(what, path, &error))?.file_type();
        match found.is_file() {
            true => Ok(file),
            false => Err(not_regular(what, path, system::named(found))),
        }
    }

    /// The contents of a file; `what` names the argument.
    ///
    /// # Errors
    /// The file must not be read, does not exist, is not regular, or is too large.
    pub fn contents(&self, what: &str, path: &Path) -> Result<Vec<u8>, KernelError> {
        let file = self.open(what, path, Purpose::Read)?;
        let unreadable = |error: io::Error| failed(what, path, &error);
        let too_large = |size: &str| {
            let most = self.most;
            let message = format!(
                "{what}: file '{}' has {size} bytes, while knob {}.file_bytes lets {most} be read",
                path.display(),
                self.plugin
            );
            KernelError::new(Code::RESOURCE_EXHAUSTED, message)
        };
        let size = file.metadata().map_err(unreadable)?.len();
        if size > self.most {
            return Err(too_large(&size.to_string()));
        }
        let mut contents = Vec::new();
        contents
            .try_reserve_exact(size as usize)
            .map_err(|_| unreadable(ErrorKind::OutOfMemory.into()))?;
        // The size may have changed, and files of /proc report 0.
        file.take(self.most.saturating_add(1)).read_to_end(&mut contents).map_err(unreadable)?;
        match contents.len() as u64 > self.most {
            true => Err(too_large("more")),
            false => Ok(contents),
        }
    }

    /// Writes a file, after creating its missing folders.
    ///
    /// # Errors
    /// The file must not be written or is not regular; the system's error.
    pub fn write(&self, what: &str, path: &Path, contents: &[u8]) -> Result<(), KernelError> {
        self.allowed(what, path, Purpose::Write)?;
        self.make_folders(what, path)?;
        let mut file = self.open(what, path, Purpose::Write)?;
        // Truncated only now that it is known to be a regular file.
        let written = file.set_len(0).and_then(|()| file.write_all(contents));
        written.map_err(|error| failed(what, path, &error))
    }

    fn make_folders(&self, what: &str, path: &Path) -> Result<(), KernelError> {
        let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
            return Ok(());
        };
        let made = match self.under(parent) {
            Ok(None) => std::fs::create_dir_all(parent).map_err(|error| match error.kind() {
                // What is there is not a folder.
                ErrorKind::AlreadyExists => ErrorKind::NotADirectory.into(),
                _ => error,
            }),
            Ok(Some((folder, rest))) => system::make_folders_under(folder, &rest),
            Err(Outside) => return Err(self.outside(what, path)),
        };
        made.map_err(|error| match system::is_outside(&error) {
            true => self.outside(what, path),
            false => failed(what, parent, &error),
        })
    }

    /// Appends to a file.
    ///
    /// # Errors
    /// As [`Access::write`].
    pub fn append(&self, what: &str, path: &Path, text: &[u8]) -> Result<(), KernelError> {
        let mut file = self.open(what, path, Purpose::Append)?;
        file.write_all(text).map_err(|error| failed(what, path, &error))
    }

    /// Fails if files with this name must not even be looked for.
    ///
    /// # Errors
    /// Files are off, or `path` is not under the folder.
    pub fn may_look(&self, what: &str, path: &Path) -> Result<(), KernelError> {
        self.allowed(what, path, Purpose::Read)?;
        self.under(path).map(|_| ()).map_err(|Outside| self.outside(what, path))
    }

    /// Whether the path exists.
    pub fn exists(&self, path: &Path) -> bool {
        match self.under(path) {
            Ok(None) => path.exists(),
            Ok(Some((folder, rest))) => system::exists_under(folder, &rest),
            Err(Outside) => false,
        }
    }

    /// Whether the path is a folder.
    pub fn is_folder(&self, path: &Path) -> bool {
        match self.under(path) {
            Ok(None) => path.is_dir(),
            Ok(Some((folder, rest))) => system::is_folder_under(folder, &rest),
            Err(Outside) => false,
        }
    }

    /// The names in a folder; none if it cannot be read.
    pub fn names(&self, folder: &Path) -> Vec<Vec<u8>> {
        let found = match self.under(folder) {
            Ok(None) => names_in(folder),
            Ok(Some((top, rest))) => system::names_under(top, &rest),
            Err(Outside) => return Vec::new(),
        };
        found.unwrap_or_default()
    }
}

/// The path is outside the permitted folder.
#[derive(Debug)]
struct Outside;

fn not_regular(what: &str, path: &Path, found: &str) -> KernelError {
    let message =
        format!("{what}: file '{}': expected a regular file, found {found}", path.display());
    KernelError::new(Code::FAILED_PRECONDITION, message)
}

fn names_in(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let names = std::fs::read_dir(folder)?.flatten();
    Ok(names.map(|entry| entry.file_name().into_encoded_bytes()).collect())
}

/// The kinds of irregular files that every system can distinguish.
fn commonly_named(found: FileType) -> &'static str {
    if found.is_dir() { "a folder" } else { "something else" }
}

#[cfg(test)]
mod tests;
