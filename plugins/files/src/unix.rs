//! Opens files on Unix, without ever blocking on a pipe, and under a folder without leaving it.
//!
//! Under a folder, Linux itself follows links and `..` and refuses those that leave it (`openat2`).
//! On other systems a path is opened component by component, and a link or `..` in it is refused.

use super::Purpose;
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{AtFlags, CWD, Dir, Mode, OFlags, mkdirat, openat, renameat, unlinkat},
    io::Errno,
};
use std::{
    ffi::OsStr,
    fs::{File, FileType},
    io,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Component, Path},
};

/// The default mode of the C library; the process's umask removes bits.
const FILE: Mode = Mode::from_raw_mode(0o666);
const FOLDER: Mode = Mode::from_raw_mode(0o777);

fn flags(purpose: Purpose) -> OFlags {
    let always = OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    always
        | match purpose {
            Purpose::Read => OFlags::RDONLY,
            Purpose::Write => OFlags::WRONLY | OFlags::CREATE,
            Purpose::Append => OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND,
        }
}

fn folder_flags() -> OFlags {
    OFlags::CLOEXEC | OFlags::RDONLY | OFlags::DIRECTORY
}

pub fn open(path: &Path, purpose: Purpose) -> io::Result<File> {
    Ok(openat(CWD, path, flags(purpose), FILE)?.into())
}

/// The permitted folder itself, which the operator names, and which may be reached through links.
fn top(folder: &Path) -> io::Result<OwnedFd> {
    Ok(openat(CWD, folder, folder_flags(), Mode::empty())?)
}

pub fn open_under(folder: &Path, rest: &Path, purpose: Purpose) -> io::Result<File> {
    Ok(beneath(top(folder)?.as_fd(), rest, flags(purpose))?.into())
}

/// A folder that is held open.
pub type Folder = File;

pub fn folder(path: &Path) -> io::Result<Folder> {
    Ok(openat(CWD, path, folder_flags(), Mode::empty())?.into())
}

pub fn folder_under(folder: &Path, rest: &Path) -> io::Result<Folder> {
    Ok(beneath(top(folder)?.as_fd(), rest, folder_flags())?.into())
}

pub fn identity(file: &File) -> io::Result<Option<super::Identity>> {
    let found = file.metadata()?;
    Ok(Some((found.dev(), found.ino())))
}

pub fn sync(folder: &Folder) -> io::Result<()> {
    folder.sync_all()
}

/// Locks a folder; false if another has the lock. A file system without locks has none that another could have.
pub fn try_lock(folder: &Folder) -> io::Result<bool> {
    match folder.try_lock() {
        Ok(()) => Ok(true),
        Err(std::fs::TryLockError::WouldBlock) => Ok(false),
        Err(std::fs::TryLockError::Error(error)) => match Errno::from_io_error(&error) {
            Some(Errno::NOTSUP | Errno::NOLCK | Errno::NOSYS | Errno::INVAL | Errno::BADF) => {
                Ok(true)
            }
            _ => Err(error),
        },
    }
}

pub fn rename(from: &Folder, old: &OsStr, to: &Folder, new: &OsStr) -> io::Result<()> {
    Ok(renameat(from, old, to, new)?)
}

pub fn remove(folder: &Folder, name: &OsStr) -> io::Result<()> {
    Ok(unlinkat(folder, name, AtFlags::empty())?)
}

pub fn remove_folder(folder: &Folder, name: &OsStr) -> io::Result<()> {
    Ok(unlinkat(folder, name, AtFlags::REMOVEDIR)?)
}

pub fn exists_under(folder: &Path, rest: &Path) -> bool {
    let found = top(folder).and_then(|top| {
        let flags = flags(Purpose::Read);
        Ok(beneath(top.as_fd(), rest, flags)?)
    });
    // A socket, or a file that cannot be read, also exists.
    found.map_or_else(
        |error| is_no_file(&error) || error.kind() == io::ErrorKind::PermissionDenied,
        |_| true,
    )
}

pub fn is_folder_under(folder: &Path, rest: &Path) -> bool {
    top(folder).is_ok_and(|top| beneath(top.as_fd(), rest, folder_flags()).is_ok())
}

pub fn names_under(folder: &Path, rest: &Path) -> io::Result<Vec<Vec<u8>>> {
    let inner = beneath(top(folder)?.as_fd(), rest, folder_flags())?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&inner)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(name);
        }
    }
    Ok(names)
}

/// Creates the missing folders of a path.
pub fn make_folders_under(folder: &Path, rest: &Path) -> io::Result<()> {
    let top = top(folder)?;
    let mut above = openat(&top, ".", folder_flags(), Mode::empty())?;
    let mut reached = std::path::PathBuf::new();
    for part in rest.components() {
        reached.push(part);
        above = match (beneath(top.as_fd(), &reached, folder_flags()), part) {
            (Err(Errno::NOENT), Component::Normal(name)) => {
                match mkdirat(&above, name, FOLDER) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                beneath(top.as_fd(), &reached, folder_flags())?
            }
            (found, _) => found?,
        };
    }
    Ok(())
}

/// Whether an error says that a path leads out of its folder.
pub fn is_outside(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::XDEV.raw_os_error())
}

/// Whether an error says that a pipe or socket has no other end.
pub fn is_no_file(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NXIO.raw_os_error())
}

/// The kind of an irregular file.
pub fn named(found: FileType) -> &'static str {
    if found.is_fifo() {
        "a pipe"
    } else if found.is_char_device() || found.is_block_device() {
        "a device"
    } else if found.is_socket() {
        "a socket"
    } else {
        super::commonly_named(found)
    }
}

/// Opens a path under `top`; `XDEV` if it leads outside.
#[cfg(target_os = "linux")]
fn beneath(top: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};
    /// Number of attempts to resolve a path that changes meanwhile.
    const TRIES: usize = 16;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let mode = if flags.contains(OFlags::CREATE) { FILE } else { Mode::empty() };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..TRIES {
        match openat2(top, path, flags, mode, resolve) {
            Err(Errno::AGAIN) => {}
            // A kernel without this call, or a sandbox that does not permit it.
            Err(Errno::NOSYS | Errno::PERM) => return step_by_step(top, path, flags),
            found => return found,
        }
    }
    Err(Errno::AGAIN)
}

#[cfg(not(target_os = "linux"))]
fn beneath(top: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    step_by_step(top, path, flags)
}

/// Opens each component of a path in the folder before it, and follows no link.
pub fn step_by_step(top: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::CurDir => {}
            _ => return Err(Errno::XDEV),
        }
    }
    let mode = if flags.contains(OFlags::CREATE) { FILE } else { Mode::empty() };
    let Some((last, folders)) = parts.split_last() else {
        return openat(top, ".", flags, mode);
    };
    let mut within = openat(top, ".", folder_flags(), Mode::empty())?;
    let step = |folder: &OwnedFd, name, flags, mode| match openat(folder, name, flags, mode) {
        // Only a second check distinguishes the error for a link from that for a file in place of a
        // folder.
        Err(Errno::LOOP | Errno::MLINK) => Err(Errno::XDEV),
        Err(Errno::NOTDIR) if is_link(folder, name) => Err(Errno::XDEV),
        found => found,
    };
    for name in folders {
        within = step(&within, *name, folder_flags() | OFlags::NOFOLLOW, Mode::empty())?;
    }
    step(&within, *last, flags | OFlags::NOFOLLOW, mode)
}

fn is_link(folder: &OwnedFd, name: &OsStr) -> bool {
    use rustix::fs::{FileType, statat};
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink)
}
