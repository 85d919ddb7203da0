//! Opens files on systems other than Unix, by name only; access cannot be restricted to a folder.

use super::Purpose;
use std::{
    ffi::OsStr,
    fs::{File, FileType, OpenOptions},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

pub fn open(path: &Path, purpose: Purpose) -> io::Result<File> {
    let mut options = OpenOptions::new();
    match purpose {
        Purpose::Read => options.read(true),
        Purpose::Write => options.write(true).create(true).truncate(false),
        Purpose::Append => options.append(true).create(true),
    };
    options.open(path)
}

fn unknown() -> io::Error {
    io::Error::new(
        ErrorKind::Unsupported,
        "a folder in knob files is for Unix only: set it to off or read-only",
    )
}

/// A folder, by its path.
pub type Folder = PathBuf;

pub fn folder(path: &Path) -> io::Result<Folder> {
    match path.is_dir() {
        true => Ok(path.to_owned()),
        false => Err(ErrorKind::NotFound.into()),
    }
}

pub fn folder_under(_: &Path, _: &Path) -> io::Result<Folder> {
    Err(unknown())
}

/// The standard library cannot tell it on these systems.
pub fn identity(_: &File) -> io::Result<Option<super::Identity>> {
    Ok(None)
}

/// The standard library cannot make a folder's names durable on these systems.
pub fn sync(_: &Folder) -> io::Result<()> {
    Ok(())
}

/// Nor lock a folder.
pub fn try_lock(_: &Folder) -> io::Result<bool> {
    Ok(true)
}

pub fn rename(from: &Folder, old: &OsStr, to: &Folder, new: &OsStr) -> io::Result<()> {
    std::fs::rename(from.join(old), to.join(new))
}

pub fn remove(folder: &Folder, name: &OsStr) -> io::Result<()> {
    std::fs::remove_file(folder.join(name))
}

pub fn remove_folder(folder: &Folder, name: &OsStr) -> io::Result<()> {
    std::fs::remove_dir(folder.join(name))
}

pub fn open_under(_: &Path, _: &Path, _: Purpose) -> io::Result<File> {
    Err(unknown())
}

pub fn make_folders_under(_: &Path, _: &Path) -> io::Result<()> {
    Err(unknown())
}

pub fn names_under(_: &Path, _: &Path) -> io::Result<Vec<Vec<u8>>> {
    Err(unknown())
}

pub fn exists_under(_: &Path, _: &Path) -> bool {
    false
}

pub fn is_folder_under(_: &Path, _: &Path) -> bool {
    false
}

pub fn is_outside(_: &io::Error) -> bool {
    false
}

pub fn is_no_file(_: &io::Error) -> bool {
    false
}

/// The kind of an irregular file.
pub fn named(found: FileType) -> &'static str {
    super::commonly_named(found)
}
