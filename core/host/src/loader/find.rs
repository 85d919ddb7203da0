//! Step 1, find: a plugin's file is opened once and identified by device and inode.

use crate::{
    digest::{FileId, remembered_digest},
    error::{LoadError, Step},
};
use std::{
    fs::{self, File, Metadata},
    io,
    path::{Path, PathBuf, absolute},
};

/// A plugin's file, opened once.
pub struct PluginFile {
    /// Absolute, without symbolic links.
    pub path: PathBuf,
    /// Absolute, as requested.
    pub asked: PathBuf,
    /// The open file.
    pub file: File,
    /// Its identity.
    pub id: FileId,
}

/// The error of a step that could not use a file.
pub fn failed(path: &Path, error: &io::Error, step: Step) -> LoadError {
    let (path, kind, detail) = (path.to_owned(), error.kind(), error.to_string());
    LoadError::File { path, kind, detail, step }
}

impl PluginFile {
    /// Opens the file and identifies it.
    ///
    /// # Errors
    /// The file does not exist, cannot be read, or is not a regular file.
    pub fn find(path: &Path) -> Result<PluginFile, LoadError> {
        let at_find = |error: io::Error| failed(path, &error, Step::Find);
        let asked = absolute(path).map_err(at_find)?;
        let real = fs::canonicalize(path).map_err(at_find)?;
        // Checked before it is opened: opening a pipe would wait for a writer.
        regular(path, &fs::metadata(&real).map_err(at_find)?)?;
        let file = File::open(&real).map_err(at_find)?;
        let meta = file.metadata().map_err(at_find)?;
        regular(path, &meta)?;
        Ok(PluginFile { path: real, asked, id: FileId::of(&meta), file })
    }

    /// The digest for identification, which may be a remembered one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn digest(&self) -> Result<String, LoadError> {
        remembered_digest(&self.file).map_err(|error| failed(&self.path, &error, Step::Trust))
    }
}

fn regular(path: &Path, meta: &Metadata) -> Result<(), LoadError> {
    if meta.is_file() {
        return Ok(());
    }
    let found = if meta.is_dir() { "a folder" } else { "a device, pipe or socket" };
    Err(LoadError::NotAFile { path: path.to_owned(), found })
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
