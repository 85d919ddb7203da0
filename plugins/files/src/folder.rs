//! Folders that are held open: files in them are renamed and removed, and what they hold is made durable.

use crate::{Access, Outside, Purpose, denied, failed, system};
use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};
use tenon_sdk::KernelError;

/// A folder that files are renamed into and removed from. It is found once: a link that is exchanged later has no effect.
#[derive(Debug)]
pub struct Folder {
    system: system::Folder,
    path: PathBuf,
}

impl Folder {
    /// Makes the names in the folder durable: a rename before this call survives a loss of power.
    ///
    /// # Errors
    /// The system's error.
    pub fn sync(&self, what: &str) -> Result<(), KernelError> {
        system::sync(&self.system).map_err(|error| failed(what, &self.path, &error))
    }

    /// Takes the folder's lock, which ends with this value. Returns false if another process or another `Folder` has it, and
    /// true on a system without such locks.
    ///
    /// # Errors
    /// The system's error.
    pub fn try_lock(&self, what: &str) -> Result<bool, KernelError> {
        system::try_lock(&self.system).map_err(|error| failed(what, &self.path, &error))
    }
}

/// The last part of a path.
fn name_of<'p>(what: &str, path: &'p Path) -> Result<&'p OsStr, KernelError> {
    path.file_name().ok_or_else(|| {
        KernelError::invalid_argument(format!(
            "{what}: expected the name of a file, found '{}'",
            path.display()
        ))
    })
}

/// The folder of a path; the current one if the path has none.
fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

impl Access {
    /// Opens the folder that a file is in, or will be.
    ///
    /// # Errors
    /// Files in it must not be written, or it does not exist.
    pub fn folder_of(&self, what: &str, file: &Path) -> Result<Folder, KernelError> {
        self.allowed(what, file, Purpose::Write)?;
        let path = parent_of(file);
        let opened = match self.under(path) {
            Ok(None) => system::folder(path),
            Ok(Some((top, rest))) => system::folder_under(top, &rest),
            Err(Outside) => return Err(self.outside(what, file)),
        };
        let system = opened.map_err(|error| self.refused(what, file, &error))?;
        Ok(Folder { system, path: path.to_owned() })
    }

    /// Creates the missing folders above a file, and makes their names durable.
    ///
    /// # Errors
    /// The file must not be written; the system's error.
    pub fn create_folders(&self, what: &str, file: &Path) -> Result<(), KernelError> {
        self.allowed(what, file, Purpose::Write)?;
        let above = file.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        let missing = above.clone().take_while(|folder| !self.is_folder(folder)).count();
        self.make_folders(what, file)?;
        // The name of a folder is in the one above it.
        let made = (0..missing).rev().filter_map(|at| above.clone().nth(at));
        made.into_iter().try_for_each(|folder| self.folder_of(what, folder)?.sync(what))
    }

    /// Gives a file another name, in one step: a file of that name is replaced.
    ///
    /// # Errors
    /// One of the files must not be written, or does not exist; the system's error.
    pub fn rename(&self, what: &str, from: &Path, to: &Path) -> Result<(), KernelError> {
        let (old, new) = (self.folder_of(what, from)?, self.folder_of(what, to)?);
        let names = (name_of(what, from)?, name_of(what, to)?);
        system::rename(&old.system, names.0, &new.system, names.1)
            .map_err(|error| failed(what, from, &error))
    }

    /// Removes a file.
    ///
    /// # Errors
    /// It must not be written, or does not exist; the system's error.
    pub fn remove(&self, what: &str, path: &Path) -> Result<(), KernelError> {
        let folder = self.folder_of(what, path)?;
        system::remove(&folder.system, name_of(what, path)?)
            .map_err(|error| failed(what, path, &error))
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// It must not be written, does not exist, or is not empty; the system's error.
    pub fn remove_folder(&self, what: &str, path: &Path) -> Result<(), KernelError> {
        let folder = self.folder_of(what, path)?;
        system::remove_folder(&folder.system, name_of(what, path)?)
            .map_err(|error| failed(what, path, &error))
    }

    fn refused(&self, what: &str, path: &Path, error: &io::Error) -> KernelError {
        match system::is_outside(error) {
            true => self.outside(what, path),
            false => failed(what, path, error),
        }
    }

    /// The error for a path that is not under the folder of the knob.
    pub(crate) fn outside(&self, what: &str, path: &Path) -> KernelError {
        let Some(folder) = self.top() else { return denied(what, path, "cannot be reached") };
        let why = format!(
            "is not under '{}', the folder that knob {}.files leaves to graphs",
            folder.display(),
            self.plugin
        );
        denied(what, path, &why)
    }
}
